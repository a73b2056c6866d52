"""``python -m export_machine_code FOLDER``: the machine code of a wheel, made when it is built.

A shared library of kernels for each level of processors, and ``index.json``. What
:func:`sklboost.warmup` uses is what the libraries have: the kernels that Python calls, for
arguments of the kinds that it calls them with; those whose addresses were asked for; and all that
these call. numba makes LLVM's code of each once, on whatever processor; for each level that is then
optimised and made machine code, as it is for this processor where kernels are compiled when they
are first called. With ``PYTHONHASHSEED=0`` the files are the same bytes each time.
"""

import argparse
import contextlib
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import joblib
import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba import types

from sklboost.engine.backend import (
    BACKEND,
    FUNCTIONS,
    GENERIC,
    INDEX,
    PROCESSOR,
    REGISTERS_KEPT,
    RESULTS,
    X86_64_LEVELS,
    Backend,
    sources_digest,
)
from sklboost.engine.compiler.caching import Types
from sklboost.engine.compiler.kernels import RECORDINGS, Kernel, caller
from sklboost.engine.compiler.linking import FILL_CELL, code_behind
from sklboost.engine.compiler.numba_internals import AOTCPUCodegen, cgutils, cpu_target
from sklboost.engine.compiler.references import Reference, at, load, size_of
from sklboost.engine.packing import pack
from sklboost.version import __version__
from sklboost.warmup import warmup

IS_X86_64 = platform.machine().lower() in ("x86_64", "amd64")
# Levels, and LLVM's names of their processors.
LEVELS = {level: level for level in X86_64_LEVELS} if IS_X86_64 else {GENERIC: ""}
# What every processor of this architecture can run.
_ANY = "x86-64" if IS_X86_64 else ""
# Object files that a process makes at a time.
_CHUNK = 20


class PythonCall(NamedTuple):
    """How Python called a kernel."""

    kernel: Any
    types: Types
    # number of words that packing makes of each argument, in a group of its fields
    n_words: tuple[int, ...]


class Recording(NamedTuple):
    """What was compiled and called."""

    # by the symbol of a kernel's code: LLVM's bitcode of it and of what is linked into it, before
    # LLVM optimises it for this processor
    modules: dict[str, bytes]
    # by the name of the kernel and the kinds of its arguments
    calls: dict[tuple[str, str], PythonCall]
    # by the name of a kernel and the text of the types of its arguments: the symbol of the code
    # whose address was asked for
    addresses: dict[tuple[str, str], str]

    def note_module(self, module: Any) -> None:
        """Note the code of a kernel."""
        bitcode = module.as_bitcode()
        for function in module.functions:
            if not function.is_declaration and function.linkage.name == "external":
                self.modules[function.name] = bitcode

    def note_call(self, kernel: Any, arguments: tuple[Any, ...]) -> None:
        """Note a call from Python."""
        packed = [pack((argument,)) for argument in arguments]
        key = (kernel.name, " ".join(kinds for kinds, _, _ in packed))
        if key not in self.calls:
            n_words = [len(of[0].words) if of else len(words) for _, words, of in packed]
            types = tuple(map(numba.typeof, arguments))
            self.calls[key] = PythonCall(kernel, types, tuple(n_words))


class PackedFunction(NamedTuple):
    """A kernel that Python calls."""

    symbol: str
    returns: Any  # of the result
    types: Types
    # number of words that packing makes of each argument, in a group of its fields
    n_words: tuple[int, ...]


_WORD, _INT32, _POINTER = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()


def export(folder: Path, use: Callable[[], object]) -> None:
    """Write the machine code of all kernels that calling `use` needs to a folder, with an index."""
    with recording() as found:
        use()
        modules, contents = _collect(found)
    chunks = [modules[i : i + _CHUNK] for i in range(0, len(modules), _CHUNK)]
    run = joblib.delayed(emit)
    tasks = [run(processor, chunk) for processor in LEVELS.values() for chunk in chunks]
    emitted = iter(joblib.Parallel(n_jobs=-1)(tasks))
    asking = emit(_ANY, [processor_module()])
    libraries = {}
    for level in LEVELS:
        objects = [file for _ in chunks for file in next(emitted)]
        path = folder / f"{level}{SUFFIX}"
        link(asking + objects, path)
        libraries[level] = {"name": path.name, "size": path.stat().st_size}
    of_what = {"version": __version__, "sources": sources_digest()}
    index = json.dumps({**of_what, "libraries": libraries, **contents}, indent=1)
    (folder / INDEX).write_text(index, "utf-8")


@contextlib.contextmanager
def recording() -> Iterator[Recording]:
    """Record what is compiled and called meanwhile; no machine code is read or kept."""
    recording = Recording({}, {}, {})
    RECORDINGS.append(recording)
    try:
        yield recording
    finally:
        RECORDINGS.remove(recording)


def _collect(found: Recording) -> tuple[list[bytes], dict[str, Any]]:
    """Return the bitcode of all that the libraries have, and where in their table kernels are."""
    functions: list[PackedFunction | str] = []
    kernels: dict[str, list[dict[str, Any]]] = {}
    blocks: dict[str, dict[str, int]] = {}
    for (name, kinds), call in sorted(found.calls.items()):
        packed = _packed(call)
        entry = {"kinds": kinds, "returns": packed.returns.name, "function": len(functions)}
        kernels.setdefault(name, []).append(entry)
        functions.append(packed)
    for (name, kinds), symbol in sorted(found.addresses.items()):
        blocks.setdefault(name, {})[kinds] = len(functions)
        functions.append(symbol)
    symbols, cells = _reached(functions, found)
    modules = [found.modules[symbol] for symbol in symbols]
    contents = {"n_functions": len(functions), "kernels": kernels, "blocks": blocks}
    return [*modules, table_module(functions, cells)], contents


def _packed(call: PythonCall) -> PackedFunction:
    kernel = call.kernel
    if kernel.is_inlined:  # it has no code of its own
        kernel = Kernel(caller(kernel), is_kept=False)
    version = kernel.version(kernel.kinds(call.types))
    returns, kinds = version.signature.return_type, version.signature.args
    # to numba a constant has a type of its own
    return PackedFunction(
        version.fndesc.llvm_func_name, types.unliteral(returns), kinds, call.n_words
    )


def _reached(
    functions: Iterable[PackedFunction | str], found: Recording
) -> tuple[list[str], dict[str, str]]:
    """Return the symbols of all code that is called, sorted, and the cells that lead to some of it.

    Late kernels that nobody has called so far are compiled here.
    """
    reached: set[str] = set()
    cells: dict[str, str] = {}
    waiting = {item if isinstance(item, str) else item.symbol for item in functions}
    while waiting:
        symbol = waiting.pop()
        reached.add(symbol)
        module = llvm.parse_bitcode(found.modules[symbol])
        for name in [item.name for item in (*module.functions, *module.global_variables)]:
            if name.startswith("cell."):
                cells[name] = code_behind(name)
            called = cells.get(name, name)
            if called in found.modules and called not in reached:
                waiting.add(called)
    return sorted(reached), dict(sorted(cells.items()))


# --- the table of functions, as LLVM code
#
# Python gives a packed function the arguments of a kernel as words, laid out as packing.py says; it
# takes them apart and calls the kernel. It returns 0, or 1 if the kernel raised.


def table_module(functions: Iterable[PackedFunction | str], cells: Mapping[str, str]) -> bytes:
    """Return the bitcode of packed functions, of the table of all functions, and of cells.

    Of `functions`, text is the symbol of code whose address goes into the table as it is. `cells`
    has the symbols of cells, and of the code that each leads to.
    """
    module = ir.Module("functions")
    module.triple = llvm.get_process_triple()
    addresses = []
    for number, function in enumerate(functions):
        if isinstance(function, PackedFunction):
            code = _packed_function(module, f"packed.{number}", function)
        else:
            code = _symbol(module, function)
        addresses.append(code.bitcast(_POINTER))
    table = ir.ArrayType(_POINTER, len(addresses))
    _constant(module, FUNCTIONS, ir.Constant(table, addresses))
    for cell, symbol in cells.items():
        _constant(module, cell, _symbol(module, symbol).ptrtoint(_WORD))
    _fill_cell(module)
    return _bitcode(module)


def _bitcode(module: ir.Module) -> bytes:
    bitcode: bytes = llvm.parse_assembly(str(module)).as_bitcode()
    return bitcode


def _constant(module: ir.Module, name: str, value: Any) -> None:
    variable = ir.GlobalVariable(module, value.type, name)
    variable.global_constant = True
    variable.initializer = value


def _symbol(module: ir.Module, symbol: str) -> Any:
    """Return the code that goes by a symbol, whatever its type."""
    if symbol in module.globals:
        return module.globals[symbol]
    return ir.Function(module, ir.FunctionType(ir.VoidType(), []), symbol)


def _fill_cell(module: ir.Module) -> None:
    """Write what machine code calls if a cell is empty: none is."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_POINTER, _WORD]), FILL_CELL)
    builder = ir.IRBuilder(function.append_basic_block())
    builder.call(cgutils.get_or_insert_function(module, _TRAP, "llvm.trap"), [])
    builder.unreachable()


_TRAP = ir.FunctionType(ir.VoidType(), [])


def _packed_function(module: ir.Module, name: str, packed: PackedFunction) -> ir.Function:
    """Write ``int32 function(void *arguments, void *result)``."""
    context, convention = cpu_target.target_context, cpu_target.target_context.call_conv
    function = ir.Function(module, ir.FunctionType(_INT32, [_POINTER, _POINTER]), name)
    words, result = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    values = []
    for kind, n_words in zip(packed.types, packed.n_words, strict=True):
        size = _size_of_words(kind)
        expected = size_of(context, kind.group) if isinstance(kind, Reference) else size
        if 8 * n_words != expected:
            raise TypeError(f"{packed.symbol} takes {kind}, of which packing makes {n_words} words")
        values.append(_value(builder, kind, words))
        words = at(builder, words, size)
    returns = packed.returns
    if returns.name not in RESULTS:
        known = ", ".join(RESULTS)
        raise TypeError(f"{packed.symbol} returns {returns}, and Python can read {known}")
    kind = convention.get_function_type(returns, packed.types)
    code = cgutils.get_or_insert_function(module, kind, packed.symbol)
    status, value = convention.call_function(builder, code, returns, packed.types, values)
    if returns != types.none:
        builder.store(value, builder.bitcast(result, value.type.as_pointer()))
    builder.ret(builder.zext(status.is_error, _INT32))
    return function


def _size_of_words(kind: Any) -> int:
    """Return the number of bytes that the words of an argument take."""
    if isinstance(kind, types.BaseTuple):
        return sum(map(_size_of_words, kind.types))
    size: int = size_of(cpu_target.target_context, kind)
    return size


def _value(builder: Any, kind: Any, words: Any) -> Any:
    """Write what makes the value of an argument of its words."""
    context = cpu_target.target_context
    if not isinstance(kind, types.BaseTuple):
        return load(context, builder, kind, words)
    items = []
    for inner in kind.types:
        items.append(_value(builder, inner, words))
        words = at(builder, words, _size_of_words(inner))
    return context.make_tuple(builder, kind, items)


def processor_module() -> bytes:
    """Return the bitcode of what asks the processor for its features.

    ``void sklboost_processor(int64 leaf, int64 subleaf, int32 registers[4])`` gives what the
    instruction CPUID does, of leaf -1 what XGETBV does; zeros on other architectures than x86-64.
    """
    module = ir.Module("processor")
    module.triple = llvm.get_process_triple()
    kind = ir.FunctionType(ir.VoidType(), [_WORD, _WORD, _INT32.as_pointer()])
    function = ir.Function(module, kind, PROCESSOR)
    leaf, subleaf, registers = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    if not IS_X86_64:
        _store_all(builder, [_INT32(0)] * 4, registers)
    else:
        selectors = [builder.trunc(number, _INT32) for number in (leaf, subleaf)]
        asks_for_kept = builder.icmp_signed("==", leaf, _WORD(REGISTERS_KEPT))
        with builder.if_else(asks_for_kept) as (kept, features):
            with kept:
                _store_all(builder, _ask(builder, "xgetbv", "ad", "c", selectors[1:]), registers)
            with features:
                _store_all(builder, _ask(builder, "cpuid", "abcd", "ac", selectors), registers)
    builder.ret_void()
    return _bitcode(module)


def _ask(builder: Any, instruction: str, outputs: str, inputs: str, values: list[Any]) -> list[Any]:
    """Write an instruction that takes and gives registers eax to edx, named by their letters."""
    constraints = [f"={{{letter}x}}" for letter in outputs]
    constraints += [f"{{{letter}x}}" for letter in inputs]
    gives = ir.LiteralStructType([_INT32] * len(outputs))
    kind = ir.FunctionType(gives, [_INT32] * len(inputs))
    given = builder.asm(kind, instruction, ",".join(constraints), values, side_effect=True)
    return [builder.extract_value(given, index) for index in range(len(outputs))]


def _store_all(builder: Any, values: list[Any], registers: Any) -> None:
    for index, value in enumerate(values):
        builder.store(value, builder.gep(registers, [_WORD(index)]))


SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
# What a library shows, and functions of the operating system that kernels call themselves.
_VISIBLE = (FUNCTIONS, PROCESSOR, "sched_yield", "SwitchToThread")
# What numba would make Python's exceptions of, and where that is; it names files of this machine.
_EXCEPTION = re.compile(r"^@\.const\.pickledata\..*\n", re.MULTILINE)
_PLACE_OF_EXCEPTION = re.compile(r"^(@\.const\.picklebuf\..*? constant {[^}]*}) {.*}", re.MULTILINE)


# --- machine code


def emit(processor: str, modules: Sequence[bytes]) -> list[bytes]:
    """Return the object file of each module's bitcode, optimised for a processor.

    `processor` is LLVM's name, "" for any of this architecture.
    """
    llvm.initialize_native_asmparser()  # of an instruction that is written as text
    codegen = AOTCPUCodegen("sklboost", processor)
    return [_emit_one(codegen, bitcode) for bitcode in modules]


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
        # kernels call one another directly, and not through a table of what other libraries define
        is_visible = symbol.name in _VISIBLE or symbol.name.startswith("llvm.")
        if symbol.linkage.name != "internal" and not is_visible:
            symbol.visibility = "hidden"
    object_file: bytes = codegen._tm.emit_object(module)
    return object_file


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

    RuntimeError if there is none, or if it cannot link.
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


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m export_machine_code",
        description="Compile all of sklboost for every level of processors, for a wheel. Takes "
        "two or three minutes.",
    )
    parser.add_argument("folder", type=Path, help="where the shared libraries are written")
    folder = parser.parse_args().folder
    if BACKEND is not Backend.COMPILER:
        sys.exit(f"kernels must be compiled here, and are {BACKEND.value}")
    folder.mkdir(parents=True, exist_ok=True)
    export(folder, lambda: warmup(verbose=True))
    for path in sorted(folder.iterdir()):
        print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
