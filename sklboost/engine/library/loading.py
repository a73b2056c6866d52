"""The shared library of a wheel: which of its levels fits the processor, and what is in it."""

import ctypes
import hashlib
import json
import platform
from pathlib import Path
from typing import Any

from sklboost.engine.library.processor import asking, levels_of
from sklboost.version import __version__

# A wheel has it; a checkout does not.
_PACKAGE = Path(__file__).parents[2]
FOLDER = _PACKAGE / "machine_code"
INDEX = "index.json"
# The table of addresses in a library.
FUNCTIONS = "sklboost_functions"
REMEDY = "pip install sklboost[jit]"
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
    sources : str
        The digest of the sources that it was made of.

    Raises
    ------
    LibraryError
        If the library cannot be used on this machine.
    """

    def __init__(self, folder: Path, level: str | None = None):
        try:
            index = json.loads((folder / INDEX).read_text("utf-8"))
            if index["version"] != __version__:
                raise LibraryError(f"it is of version {index['version']}, not {__version__}")
            levels = list(index["libraries"])
            lowest = _load(folder, index["libraries"][levels[0]])
            self.level = _choose(levels, lowest, level)
            library = _load(folder, index["libraries"][self.level])
            table = ctypes.c_void_p * index["n_functions"]
            self._addresses = table.in_dll(library, FUNCTIONS)
            self._kernels: dict[str, list[dict[str, Any]]] = index["kernels"]
            self._blocks: dict[str, dict[str, int]] = index["blocks"]
            self.sources: str = index["sources"]
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise LibraryError(f"it cannot be loaded: {error!r}") from error
        self._library = library  # the addresses are good as long as it is loaded

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


def _load(folder: Path, file: dict[str, Any]) -> ctypes.CDLL:
    """Load a library whose name and size the index has: a part of one would end the process."""
    path = folder / file["name"]
    size = path.stat().st_size
    if size != file["size"]:
        raise LibraryError(f"{path} has {size:,} bytes of {file['size']:,}: install it again")
    return ctypes.CDLL(str(path))


def sources_digest() -> str:
    """Return a digest of the sources of the package, which machine code is made of."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(f"{path.relative_to(_PACKAGE).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def needs_compiler(what: str) -> ImportError:
    """Return the error for what needs numba where there is none."""
    return ImportError(f"{what} needs numba, which is not installed: {REMEDY}", name="numba")


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
    if wanted not in levels:
        raise LibraryError(f"the machine code is for {', '.join(levels)}")
    if wanted not in here:
        raise LibraryError(f"this processor has {', '.join(here)} of {', '.join(levels)}")
    return wanted
