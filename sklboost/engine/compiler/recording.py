"""What an export has to know of the kernels that this process compiles and calls.

Nothing is noted unless a recording runs, see :mod:`sklboost.engine.compiler.exporting`.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numba

from sklboost.engine.compiler.digests import Types
from sklboost.engine.library.packing import pack


class PythonCall(NamedTuple):
    """How Python called a kernel."""

    kernel: Any
    types: Types
    # of the words that packing makes of each argument, in a group those of its fields
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


# Those that run.
RECORDINGS: list[Recording] = []


@contextlib.contextmanager
def recording() -> Iterator[Recording]:
    """Record what is compiled and called meanwhile; no machine code is read or kept."""
    recording = Recording({}, {}, {})
    RECORDINGS.append(recording)
    try:
        yield recording
    finally:
        RECORDINGS.remove(recording)
