"""The machine code of a wheel: shared libraries of kernels, one for each level of processors.

What is used while kernels are recorded is what the libraries have: the kernels that Python calls,
for arguments of the kinds that it calls them with; those whose addresses were asked for; and all
that these call. numba makes LLVM's code of each once, on whatever processor; for each level that is
then optimised and made machine code, as it is for this processor where kernels are compiled when
they are first called.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import joblib
import llvmlite.binding as llvm
from numba import types

from sklboost.engine.compiler.emission import SUFFIX, emit, link
from sklboost.engine.compiler.kernels import Kernel, caller
from sklboost.engine.compiler.linking import code_behind
from sklboost.engine.compiler.packed_functions import (
    IS_X86_64,
    Packed,
    processor_module,
    table_module,
)
from sklboost.engine.compiler.recording import PythonCall, Recording, recording
from sklboost.engine.library.loading import GENERIC, INDEX, sources_digest
from sklboost.engine.library.processor import X86_64_LEVELS
from sklboost.version import __version__

# Levels, and LLVM's names of their processors.
LEVELS = {level: level for level in X86_64_LEVELS} if IS_X86_64 else {GENERIC: ""}
# What every processor of this architecture can run.
_ANY = "x86-64" if IS_X86_64 else ""
# Object files that a process makes at a time.
_CHUNK = 20


def export(folder: Path, use: Callable[[], object]) -> None:
    """Write the machine code of all kernels that a function uses to a folder, with an index.

    Parameters
    ----------
    folder : Path
    use : callable
        Its calls of kernels are recorded.
    """
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


def _collect(found: Recording) -> tuple[list[bytes], dict[str, Any]]:
    """Return the bitcode of all that the libraries have, and where in their table kernels are."""
    functions: list[Packed | str] = []
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


def _packed(call: PythonCall) -> Packed:
    kernel = call.kernel
    if kernel.is_inlined:  # it has no code of its own
        kernel = Kernel(caller(kernel), is_kept=False)
    version = kernel.version(kernel.kinds(call.types))
    returns, kinds = version.signature.return_type, version.signature.args
    # to numba a constant has a type of its own
    return Packed(version.fndesc.llvm_func_name, types.unliteral(returns), kinds, call.n_words)


def _reached(
    functions: Iterable[Packed | str], found: Recording
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
