"""Where compiled kernels are kept: one file for each version of each kernel.

A file is named by a digest of all that its machine code depends on, the folder by the processor and
the versions of Python and of the compiler. So what is found is right, whoever wrote it and when.
numba's own cache checks only whether the kernel's own file has changed, and not those of the
kernels that it calls; it does not read a folder that it cannot write to, as that of a container
often is; and two processes that fill it at once can mix up their versions.

The machine code of a kernel depends on its bytecode, on all that numba makes constants of (the
values of global names, the fields of groups, the kernels that are inlined), and on the types of its
arguments. The code of kernels that are called by their symbols is apart, and comments, docstrings
and line numbers do not count.
"""

import contextlib
import functools
import hashlib
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any
from uuid import uuid4

import llvmlite
import numba
import numpy as np

from sklboost.engine.compiler.numba_internals import cpu_target

# numba's types of the arguments of a function.
Types = tuple[Any, ...]
# The digest of what depends on something that has no digest: its code is not kept.
UNKNOWN = ""


# --- files

# Each file begins with a checksum: damaged machine code could end the process or change results.
_CHECKSUM_SIZE = hashlib.sha256().digest_size


def cache_folders() -> list[Path]:
    """Return the folders to look in, in turn; code is kept in the first that can be written.

    That is ``NUMBA_CACHE_DIR`` if it is set; otherwise ``__pycache__`` of the package, and a folder
    in the user's home.
    """
    package = Path(__file__).parents[2]
    if numba.config.CACHE_DIR:
        places = [Path(numba.config.CACHE_DIR)]
    else:
        places = [package / "__pycache__"]
        with contextlib.suppress(RuntimeError):  # a user without home, as some containers have
            places.append(Path.home() / ".cache" / "sklboost")
    return [place / f"kernels-{_TOOLCHAIN}" for place in places if _TOOLCHAIN]


def _toolchain_digest() -> str:
    """Return a digest of all that turns sources into machine code; "" if it is not known."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    if not sources:
        return ""
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.read_bytes())
    versions = (numba.__version__, llvmlite.__version__, sys.implementation.cache_tag)
    processor = cpu_target.target_context.codegen().magic_tuple()
    settings = [getattr(numba.config, name, None) for name in _SETTINGS]
    digest.update(repr((versions, processor, settings)).encode())
    return digest.hexdigest()[:16]


# Settings of numba that change machine code.
_SETTINGS = ("OPT", "BOUNDSCHECK", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO_DEFAULT")
# At import, not at first use: the files may then be of a newer version.
_TOOLCHAIN = _toolchain_digest()


@functools.cache
def _folders() -> list[Path]:
    return cache_folders()


def filled_folders() -> list[Path]:
    """Return the folders that have compiled code of this version of the package."""
    return [folder for folder in _folders() if any(folder.glob("*.code"))]


def read_code(name: str) -> bytes | None:
    """Return the content of a file, None if there is none or if it is damaged."""
    for folder in _folders():
        with contextlib.suppress(OSError):
            content = (folder / f"{name}.code").read_bytes()
            checksum, content = content[:_CHECKSUM_SIZE], content[_CHECKSUM_SIZE:]
            if hashlib.sha256(content).digest() == checksum:
                return content
    return None


def write_code(name: str, content: bytes) -> None:
    """Keep the content of a file, if a folder can be written."""
    for folder in _folders():
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            checksum = hashlib.sha256(content).digest()
            _write_at_once(folder / f"{name}.code", checksum + content)
            return


def _write_at_once(path: Path, content: bytes) -> None:
    """Write a file so that no other process reads half of it."""
    part = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


# --- digests

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), np.generic, slice)


class _HasNoDigestError(Exception):
    """A value whose content is not known, only its address."""


def digest_of(function: Callable[..., Any]) -> str:
    """Return a digest of what code compiled from a function depends on, or :data:`UNKNOWN`."""
    try:
        return hash_of("\n".join(_function_parts(function)))
    except (_HasNoDigestError, OSError, TypeError, ValueError):
        return UNKNOWN  # also where sources are missing, or a closure's variable has no value yet


@functools.cache
def types_digest(kinds: Types) -> str:
    """Return a digest of types; the same in every process, unlike the numbers numba gives them."""
    return hash_of("|".join(map(full_name, kinds)))


def full_name(kind: Any) -> str:
    """Return the name of a type, with the modules of all classes of groups in it.

    What is kept of a kernel is read by importing them: of a class that has moved, nothing is kept.
    """
    parts = ", ".join(map(full_name, getattr(kind, "types", ())))
    group = getattr(kind, "instance_class", None)
    if group is None:
        return f"({parts})" if parts else str(kind.name)
    return f"{group.__module__}.{group.__qualname__}{kind.fields}({parts})"


def mean_the_same_elsewhere(kinds: Types) -> bool:
    """Whether code for these types can be kept for other processes.

    Not with classes of a script or within a function, which other processes cannot import, and not
    with functions, which numba distinguishes by their places in memory.
    """
    try:
        has_script = b"__main__" in pickle.dumps(kinds)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return not has_script and not any(" at 0x" in kind.name for kind in kinds)


def hash_of(text: str) -> str:
    """Return the first 64 bits of a text's SHA-256, as 16 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _function_parts(function: Any) -> Iterator[str]:
    yield from _code_parts(function.__code__, function.__doc__)
    yield _value_part(function.__defaults__)
    names = sorted(_global_names(function.__code__))
    for name in names:
        value = function.__globals__.get(name, function)
        if isinstance(value, ModuleType) and value.__name__.startswith("sklboost."):
            used = [(own, getattr(value, own, function)) for own in names]
        else:
            used = [(name, value)]
        yield from (f"{name} = {_value_part(own)}" for name, own in used if own is not function)
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        yield f"{name} = {_value_part(cell.cell_contents)}"


def _code_parts(code: CodeType, doc: str | None = None) -> Iterator[str]:
    yield f"{code.co_name} {code.co_varnames} {code.co_names} {code.co_freevars}"
    yield code.co_code.hex()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_parts(constant)
        elif doc is None or constant != doc:
            yield _value_part(constant)


def _global_names(code: CodeType) -> set[str]:
    """Return the names a function looks up; some are attributes, which do no harm here."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _global_names(constant)
    return names


def _value_part(value: Any) -> str:
    """Return a text that stands for a value, which is a constant for the compiler."""
    described = getattr(value, "digest_part", None)  # of kernels and instructions
    if described is not None:
        part: str = described()
        if part == UNKNOWN:
            raise _HasNoDigestError
        return part
    if isinstance(value, _PLAIN):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, (tuple, frozenset, list)):
        parts = map(_value_part, value)
        fields = getattr(value, "_fields", "")
        return f"{fields}({', '.join(sorted(parts) if isinstance(value, frozenset) else parts)})"
    if isinstance(value, np.dtype):
        return f"{value!r} {value.isalignedstruct}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype!r} {value.shape} {value.tobytes().hex()}"
    if isinstance(value, ModuleType) and _is_of_library(value.__name__):
        return value.__name__
    if isinstance(value, type) and (hasattr(value, "_fields") or _is_of_library(value.__module__)):
        return f"{value.__module__}.{value.__qualname__} {getattr(value, '_fields', '')}"
    if isinstance(value, (BuiltinFunctionType, np.ufunc)):
        return f"{getattr(value, '__module__', '')}.{value.__name__}"
    is_plain = isinstance(value, FunctionType) and not hasattr(value, "py_func")
    # of a library, whose version counts; or of this package, and then only Python calls it
    if is_plain and (_is_of_library(value.__module__) or value.__module__.startswith("sklboost.")):
        return f"{value.__module__}.{value.__qualname__}"
    if type(value).__module__.startswith("numpy") or type(value).__module__ == "functools":
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value)}"
    raise _HasNoDigestError


def _is_of_library(module: str) -> bool:
    return module.partition(".")[0] in {"numpy", "math", "numba", *sys.stdlib_module_names}
