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
    """How Python called a kernel.

    Attributes
    ----------
    kernel : Kernel
    types : tuple of numba types
    n_words : tuple of int
        Of the words that packing makes of each argument, in a group those of its fields.
    """

    kernel: Any
    types: Types
    n_words: tuple[int, ...]


class Recording(NamedTuple):
    """What was compiled and called.

    Attributes
    ----------
    modules : dict of str to bytes
        By the symbol of a kernel's code: LLVM's bitcode of it and of what is linked into it, before
        LLVM optimises it for this processor.
    calls : dict of (str, str) to PythonCall
        By the name of the kernel and the kinds of its arguments.
    addresses : dict of (str, str) to str
        By the name of a kernel and the text of the types of its arguments: the symbol of the code
        whose address was asked for.
    """

    modules: dict[str, bytes]
    calls: dict[tuple[str, str], PythonCall]
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
