"""The shared library of a wheel: which of its levels fits the processor, and what is in it."""

import ctypes
import json
import platform
from pathlib import Path
from typing import Any

from sklboost.engine.library.processor import asking, levels_of

# A wheel has it; a checkout does not.
FOLDER = Path(__file__).parents[2] / "machine_code"
_INDEX = "index.json"
# The only level of architectures other than x86-64.
GENERIC = "generic"
# Of a kernel for calls from Python: (words of the arguments, room for the result) -> 0 if all is
# well. Without the GIL.
_PACKED_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)


class LibraryError(Exception):
    """The machine code of this installation cannot be used here; says why."""


class Library:
    """A shared library of machine code.

    Parameters
    ----------
    folder : Path
    level : str or None
        None: the highest that the processor has.

    Attributes
    ----------
    level : str

    Raises
    ------
    LibraryError
        If the library cannot be used on this machine.
    """

    def __init__(self, folder: Path, level: str | None = None):
        try:
            index = json.loads((folder / _INDEX).read_text("utf-8"))
            levels, suffix = index["levels"], index["suffix"]
            library = ctypes.CDLL(str(folder / f"{levels[0]}{suffix}"))
            self.level = _choose(levels, library, level)
            if self.level != levels[0]:
                library = ctypes.CDLL(str(folder / f"{self.level}{suffix}"))
        except (OSError, ValueError, KeyError) as error:
            raise LibraryError(f"it cannot be loaded: {error}") from error
        self._library = library  # the addresses are good as long as it is loaded
        self._addresses = (ctypes.c_void_p * index["n_functions"]).in_dll(
            library, "sklboost_functions"
        )
        self._kernels: dict[str, list[dict[str, Any]]] = index["kernels"]
        self._blocks: dict[str, dict[str, int]] = index["blocks"]

    def versions(self, kernel: str) -> dict[str, tuple[Any, str]]:
        """Return functions of a kernel, and the types of their results, by their kinds."""
        return {
            entry["kinds"]: (_PACKED_FUNCTION(self._addresses[entry["function"]]), entry["returns"])
            for entry in self._kernels.get(kernel, ())
        }

    def address(self, kernel: str, types: str) -> int | None:
        """Return the address of a kernel's code for types, as text; None if it is not here."""
        number = self._blocks.get(kernel, {}).get(types)
        return None if number is None else self._addresses[number]


def _choose(levels: list[str], lowest: ctypes.CDLL, wanted: str | None) -> str:
    """Return the highest level of a library that the processor has, or the one that is wanted."""
    if levels == [GENERIC]:
        here = [GENERIC]
    else:
        here = [level for level in levels_of(asking(lowest)) if level in levels]
    if not here:
        raise LibraryError(f"this processor ({platform.machine()}) has less than {levels[0]}")
    if wanted is None:
        return here[-1]
    if wanted not in here:
        raise LibraryError(f"this processor has {', '.join(here)} of {', '.join(levels)}")
    return wanted
