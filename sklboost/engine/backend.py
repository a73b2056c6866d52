"""Which code runs the kernels: machine code of a wheel, numba's, or Python itself.

Decided once, when the package is imported. The environment variable ``SKLBOOST_BACKEND`` can name
another: ``compiler``, ``interpreter``, or a processor level of the wheel, such as ``x86-64-v2``.
Below: the shared library of a wheel, the kernels whose machine code is in it, and which of its
levels fits the processor.
"""

import ctypes
import enum
import functools
import hashlib
import importlib
import json
import operator
import os
import pickle
import platform
import warnings
from array import array
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from sklboost.engine.cached import cached_property
from sklboost.engine.packing import pack
from sklboost.version import __version__

_VARIABLE = "SKLBOOST_BACKEND"


class Backend(enum.Enum):
    """What runs the kernels."""

    LIBRARY = "machine code of the wheel"
    COMPILER = "compiled on this machine"
    INTERPRETER = "interpreted"


def _choose() -> tuple[Backend, "Library | None"]:
    wanted = os.environ.get(_VARIABLE, "").strip()
    if wanted == "interpreter":
        return Backend.INTERPRETER, None
    has_compiler = find_spec("numba") is not None
    if wanted == "compiler":
        if not has_compiler:
            raise needs_compiler(f"{_VARIABLE}=compiler")
        return _compiler_or_interpreter(), None
    why = "this installation has no machine code"
    if FOLDER.is_dir() or wanted:
        try:
            return Backend.LIBRARY, Library(FOLDER, wanted or None)
        except LibraryError as error:
            if wanted:
                raise ImportError(
                    f"{_VARIABLE}={wanted!r}: {error}; or take compiler or interpreter"
                ) from error
            why = f"the machine code of this installation is not used, as {error}"
            if has_compiler:
                _warn(f"{why}. Kernels are compiled by numba at their first call.")
    if has_compiler:
        return _compiler_or_interpreter(), None
    slowly = "Python runs it all, hundreds of times slower"
    _warn(f"{why}, and numba is not installed. {slowly}: {REMEDY}")
    return Backend.INTERPRETER, None


def _compiler_or_interpreter() -> Backend:
    import numba  # here, since with a library it is not needed

    # by NUMBA_DISABLE_JIT, or by a file of settings
    return Backend.INTERPRETER if numba.config.DISABLE_JIT else Backend.COMPILER


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)


# --- the shared library of a wheel

# A wheel has it; a checkout does not.
_PACKAGE = Path(__file__).parents[1]
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
    """A shared library of machine code; LibraryError if it cannot be used on this machine."""

    # `level`: None is the highest that the processor has
    def __init__(self, folder: Path, level: str | None = None):
        try:
            index = json.loads((folder / INDEX).read_text("utf-8"))
            if index["version"] != __version__:
                raise LibraryError(f"it is of version {index['version']}, not {__version__}")
            levels = list(index["libraries"])
            lowest = _load(folder, index["libraries"][levels[0]])
            self.level = _choose_level(levels, lowest, level)
            library = _load(folder, index["libraries"][self.level])
            table = ctypes.c_void_p * index["n_functions"]
            self._addresses = table.in_dll(library, FUNCTIONS)
            self._kernels: dict[str, list[dict[str, Any]]] = index["kernels"]
            self._blocks: dict[str, dict[str, int]] = index["blocks"]
            self.sources: str = index["sources"]  # a digest of what it was made of
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise LibraryError(f"it cannot be loaded: {error!r}") from error
        self._library = library  # the addresses are good as long as it is loaded

    def versions_of(self, kernel: str) -> dict[str, tuple[Any, str]]:
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


def _choose_level(levels: list[str], lowest: ctypes.CDLL, wanted: str | None) -> str:
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


# --- kernels of the library

# The types of results, and room for them.
RESULTS: dict[str, Callable[[], Any]] = {
    "none": ctypes.c_int64,
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "float64": ctypes.c_double,
}


class PackedCall(NamedTuple):
    """A call of machine code whose arguments are packed."""

    name: str
    function: Any  # a packed function
    returns: str
    words: "array[int]"
    alive: Sequence[Any]  # groups that the words point to

    def __call__(self) -> Any:
        """Call the machine code."""
        result = RESULTS[self.returns]()
        if self.function(self.words.buffer_info()[0], ctypes.addressof(result)) != 0:
            raise RuntimeError(f"{self.name} failed")
        return None if self.returns == "none" else result.value

    @property
    def addresses(self) -> tuple[int, int]:
        """The addresses of the function and of the words."""
        return ctypes.cast(self.function, ctypes.c_void_p).value or 0, self.words.buffer_info()[0]


class LibraryKernel:
    """A function whose machine code was made when the wheel was built.

    `compiler` makes the same kernel with numba, for arguments that the library has no code for, and
    for compiled functions of users that call it. It raises ImportError if there is no numba.
    """

    def __init__(self, function: Callable[..., Any], library: Library, compiler: Callable[[], Any]):
        functools.update_wrapper(self, function)
        self.py_func = function
        self._library = library
        self._compiler = compiler
        self._versions: dict[str, tuple[Any, str]] | None = None  # until the first call

    @property
    def name(self) -> str:
        """Its name in the library."""
        return f"{self.__module__}.{self.py_func.__qualname__}"

    def __call__(self, *arguments: Any) -> Any:
        """Call the machine code for these arguments."""
        try:
            kinds, words, alive = pack(arguments)
            function, returns = self._version(kinds)
        except (KeyError, TypeError, OverflowError) as missing:
            return self._compiled_for(missing)(*arguments)
        return PackedCall(self.name, function, returns, words, alive)()

    def calls(self, groups: Sequence[Any], arguments: tuple[Any, ...]) -> list[Callable[[], Any]]:
        """Return the calls with each of several groups before arguments, packed once for all."""
        try:
            kinds, words, alive = pack((groups[0], *arguments))
            version = self._version(kinds)
        except (KeyError, TypeError, OverflowError) as missing:
            compiled = self._compiled_for(missing)
            return [functools.partial(compiled, group, *arguments) for group in groups]
        calls: list[Any] = []
        for group in groups:
            _, (address,), [packed] = pack((group,))
            words[0] = address
            calls.append(PackedCall(self.name, *version, words[:], (packed, *alive)))
        return calls

    def _version(self, kinds: str) -> tuple[Any, str]:
        if self._versions is None:
            self._versions = self._library.versions_of(self.name)
        return self._versions[kinds]

    def address(self, types: str) -> int:
        """Return where the code for types, given as text, begins."""
        address = self._library.address(self.name, types)
        return self.kernel.address(types) if address is None else address

    def __reduce__(self) -> tuple[Any, ...]:
        by_name = pickled_by_name(self)
        if by_name is None:
            raise pickle.PicklingError(f"{self.name} was made while the program ran")
        return by_name

    def _compiled_for(self, missing: Exception) -> Any:
        try:
            return self.kernel
        except ImportError as error:
            if error.name not in ("numba", "llvmlite"):  # installed, but of no use: it says why
                raise
            what = f"{self.name} for arguments of which the wheel has no machine code ({missing})"
            raise needs_compiler(what) from error

    @cached_property
    def kernel(self) -> Any:
        """The same kernel, compiled by numba in this process."""
        return self._compiler()

    @property
    def _numba_type_(self) -> Any:
        return self.kernel._numba_type_

    def digest_part(self) -> str:
        """Return what the machine code of a caller depends on."""
        part: str = self.kernel.digest_part()
        return part


def calls_of(
    function: Callable[..., Any], groups: Sequence[Any], arguments: tuple[Any, ...]
) -> list[Any]:
    """Return the calls of a function with each of several groups before the arguments."""
    if isinstance(function, LibraryKernel):
        return function.calls(groups, arguments)
    return [functools.partial(function, group, *arguments) for group in groups]


def named_kernel(module: str, name: str) -> Any:
    """Return the kernel that goes by a name in a module; pickles of kernels call this."""
    return operator.attrgetter(name)(importlib.import_module(module))


def pickled_by_name(kernel: Any) -> tuple[Any, ...] | None:
    """Return what pickles a kernel of a module; None for one that was made while a program ran."""
    place = (kernel.py_func.__module__, kernel.py_func.__qualname__)
    try:
        return (named_kernel, place) if named_kernel(*place) is kernel else None
    except (ImportError, AttributeError):
        return None


# --- levels of processors
#
# The x86-64 levels are defined in the psABI (https://gitlab.com/x86-psABIs/x86-64-ABI, table 3.1).

# Asks a processor, as its instruction CPUID does: (leaf, subleaf) -> registers eax, ebx, ecx, edx.
Ask = Callable[[int, int], Sequence[int]]
# What a library has for that, and the leaf that gives XGETBV's eax instead: which registers the
# operating system keeps.
PROCESSOR, REGISTERS_KEPT = "sklboost_processor", -1
_EAX, _EBX, _ECX, _EDX = range(4)
# In XGETBV's eax: xmm and ymm; opmask and zmm, too.
_YMM, _ZMM = 0x6, 0xE6


class _Bit(NamedTuple):
    """A bit of CPUID."""

    leaf: int
    register: int
    position: int


_LEAF_7, _EXTENDED = 7, 0x80000001
# What each level needs in addition to the ones before it.
X86_64_LEVELS = {
    "x86-64-v2": {
        "SSE3": _Bit(1, _ECX, 0),
        "SSSE3": _Bit(1, _ECX, 9),
        "CMPXCHG16B": _Bit(1, _ECX, 13),
        "SSE4.1": _Bit(1, _ECX, 19),
        "SSE4.2": _Bit(1, _ECX, 20),
        "POPCNT": _Bit(1, _ECX, 23),
        "LAHF": _Bit(_EXTENDED, _ECX, 0),
    },
    "x86-64-v3": {
        "FMA": _Bit(1, _ECX, 12),
        "MOVBE": _Bit(1, _ECX, 22),
        "OSXSAVE": _Bit(1, _ECX, 27),
        "AVX": _Bit(1, _ECX, 28),
        "F16C": _Bit(1, _ECX, 29),
        "BMI1": _Bit(_LEAF_7, _EBX, 3),
        "AVX2": _Bit(_LEAF_7, _EBX, 5),
        "BMI2": _Bit(_LEAF_7, _EBX, 8),
        "LZCNT": _Bit(_EXTENDED, _ECX, 5),
    },
    "x86-64-v4": {
        "AVX512F": _Bit(_LEAF_7, _EBX, 16),
        "AVX512DQ": _Bit(_LEAF_7, _EBX, 17),
        "AVX512CD": _Bit(_LEAF_7, _EBX, 28),
        "AVX512BW": _Bit(_LEAF_7, _EBX, 30),
        "AVX512VL": _Bit(_LEAF_7, _EBX, 31),
    },
}
# Vector registers that the operating system must keep when it changes threads.
_KEPT = {"x86-64-v3": _YMM, "x86-64-v4": _ZMM}


def asking(library: ctypes.CDLL) -> Ask:
    """Return the way to ask the processor that a library of machine code has."""
    function = library[PROCESSOR]
    function.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    function.restype = None

    def ask(leaf: int, subleaf: int) -> Sequence[int]:
        registers = (ctypes.c_uint32 * 4)()
        function(leaf, subleaf, ctypes.addressof(registers))
        return list(registers)

    return ask


def levels_of(ask: Ask) -> list[str]:
    """Return the x86-64 levels that a processor has, lowest first."""
    levels: list[str] = []
    for level, features in X86_64_LEVELS.items():
        if not all(_has(ask, bit) for bit in features.values()):
            break
        kept = _KEPT.get(level, 0)
        # OSXSAVE, without which there is no XGETBV, is among the features
        if kept and ask(REGISTERS_KEPT, 0)[_EAX] & kept != kept:
            break
        levels.append(level)
    return levels


def _has(ask: Ask, bit: _Bit) -> bool:
    base = bit.leaf & 0x80000000
    if ask(base, 0)[_EAX] < bit.leaf:  # the highest leaf that there is
        return False
    return bool(ask(bit.leaf, 0)[bit.register] >> bit.position & 1)


# --- the choice

BACKEND, LIBRARY = _choose()


def description() -> str:
    """Return a line that says which code runs."""
    if LIBRARY is not None:
        return f"{BACKEND.value} ({LIBRARY.level})"
    return BACKEND.value
