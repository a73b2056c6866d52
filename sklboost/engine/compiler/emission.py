"""From LLVM's bitcode to a shared library for one kind of processor, which need not be this one."""

import functools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import llvmlite.binding as llvm

from sklboost.engine.compiler.numba_internals import AOTCPUCodegen
from sklboost.engine.library.loading import FUNCTIONS
from sklboost.engine.library.processor import PROCESSOR

SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
_EXPORTED = (FUNCTIONS, PROCESSOR)
# Functions of the operating system that kernels call themselves.
_OF_SYSTEM = ("sched_yield", "SwitchToThread")
# What numba would make Python's exceptions of, and where that is; it names files of this machine.
_EXCEPTION = re.compile(r"^@\.const\.pickledata\..*\n", re.MULTILINE)
_PLACE_OF_EXCEPTION = re.compile(r"^(@\.const\.picklebuf\..*? constant {[^}]*}) {.*}", re.MULTILINE)


# --- machine code


@functools.cache
def _codegen(processor: str) -> Any:
    llvm.initialize_native_asmparser()  # of an instruction that is written as text
    return AOTCPUCodegen("sklboost", processor)


def emit(processor: str, modules: Sequence[bytes]) -> list[bytes]:
    """Return the object file of each module, optimised for a processor.

    Parameters
    ----------
    processor : str
        LLVM's name, "" for any of this architecture.
    modules : sequence of bytes
        Bitcode.
    """
    return [_emit_one(_codegen(processor), bitcode) for bitcode in modules]


def _emit_one(codegen: Any, bitcode: bytes) -> bytes:
    library = codegen.create_library("")
    library._final_module = module = llvm.parse_bitcode(bitcode)
    module.data_layout = codegen._data_layout
    library._optimize_final_module()
    module = library._final_module
    if any(variable.name.startswith(".const.pickledata") for variable in module.global_variables):
        text = _PLACE_OF_EXCEPTION.sub(r"\1 zeroinitializer", str(module))
        module = llvm.parse_assembly(_EXCEPTION.sub("", text))
    for symbol in (*module.functions, *module.global_variables):
        name = symbol.name
        # kernels call one another directly, and not through a table of what other libraries define
        if symbol.linkage.name != "internal" and not _is_visible(name):
            symbol.visibility = "hidden"
    object_file: bytes = codegen._tm.emit_object(module)
    return object_file


def _is_visible(name: str) -> bool:
    return name in _EXPORTED or name in _OF_SYSTEM or name.startswith("llvm.")


# --- linking

# What the linker is told: nothing of the C library's start, nothing that differs from build to
# build, no symbols but those that are exported, and none that the C library does not have.
_LINUX = ["-shared", "-nostartfiles"] + [
    f"-Wl,{option}"
    for option in ("-z,defs", "-z,now", "--gc-sections", "--strip-all", "--build-id=none")
]
_MACOS = ["-dynamiclib", "-Wl,-dead_strip", "-Wl,-x"]
_WINDOWS = ["-shared", "-Wl,/OPT:REF", "-Wl,/Brepro", "-lkernel32"] + [
    *(f"-Wl,/EXPORT:{FUNCTIONS},DATA", f"-Wl,/EXPORT:{PROCESSOR}")
]
_OPTIONS = {"win32": _WINDOWS, "darwin": _MACOS}.get(sys.platform, _LINUX)


def compiler() -> list[str]:
    """Return the command that links."""
    return shlex.split(os.environ.get("CC", "clang" if sys.platform == "win32" else "cc"))


def link(objects: Sequence[bytes], library: Path) -> None:
    """Write a shared library of object files, with the system's C compiler.

    Raises
    ------
    RuntimeError
        If there is no C compiler, or if it cannot link.
    """
    with TemporaryDirectory() as folder:
        names = [f"{number}.o" for number in range(len(objects))]
        for name, content in zip(names, objects, strict=True):
            Path(folder, name).write_bytes(content)
        Path(folder, "objects").write_text("\n".join(names), "utf-8")
        command = [*compiler(), "-o", library.name, "@objects", *_OPTIONS]
        try:
            run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        except OSError as error:
            raise RuntimeError(
                f"no C compiler, which links the machine code: {shlex.join(compiler())}: {error}. "
                "Install one, such as gcc or clang, or name it in the environment variable CC"
            ) from error
        if run.returncode:
            raise RuntimeError(f"{shlex.join(command)} failed:\n{run.stdout}{run.stderr}")
        library.write_bytes(Path(folder, library.name).read_bytes())
