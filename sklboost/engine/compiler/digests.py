"""What the machine code of a kernel depends on, as a number.

In: a function. Out: a digest of its bytecode and of all that numba makes constants of: the values
of global names, the fields of groups, and the kernels that are inlined. Not of those that it calls
by their symbols, whose code is apart. Not of comments, docstrings and line numbers.
"""

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

# The digest of what depends on something that has no digest: its code is not kept.
UNKNOWN = ""

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), np.generic, slice)


class _HasNoDigestError(Exception):
    """A value whose content cannot be told from its address."""


def digest_of(function: Callable) -> str:
    """Return a digest of what code compiled from a function depends on, or :data:`UNKNOWN`."""
    try:
        return _hash("\n".join(_function_parts(function)))
    except (_HasNoDigestError, OSError, TypeError, ValueError):
        return UNKNOWN  # also where sources are missing, or a closure's variable has no value yet


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _function_parts(function: Any) -> Iterator[str]:
    yield from _code_parts(function.__code__, function.__doc__)
    yield _value_part(function.__defaults__)
    names = sorted(_global_names(function.__code__))
    for name in names:
        if name in function.__globals__:
            yield f"{name} = {_value_part(function.__globals__[name])}"
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
    """Describe a value that is a constant for the compiler."""
    described = getattr(value, "digest_part", None)  # a kernel
    if described is not None:
        part = described()
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
    if isinstance(value, FunctionType) and not hasattr(value, "py_func"):
        # of a library, whose version counts; or of ours, an instruction or used by Python only
        if value.__module__.partition(".")[0] == __name__.partition(".")[0]:
            return f"{value.__qualname__} {_module_digest(value.__module__)}"
        if _is_of_library(value.__module__):
            return f"{value.__module__}.{value.__qualname__}"
    if type(value).__module__.startswith("numpy") or type(value).__module__ == "functools":
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value)}"
    raise _HasNoDigestError


def _is_of_library(module: str) -> bool:
    return module.partition(".")[0] in {"numpy", "math", "numba", *sys.stdlib_module_names}


def _digest_now(module: str) -> dict[str, str]:
    # when this is imported: later the file may be that of a newer version
    path = Path(__file__).parents[1] / "instructions.py"
    return {f"sklboost.{module}": _hash(path.read_text("utf-8"))} if path.is_file() else {}


_MODULE_DIGESTS = _digest_now("engine.instructions")


def _module_digest(name: str) -> str:
    if name not in _MODULE_DIGESTS:
        _MODULE_DIGESTS[name] = _hash(inspect.getsource(sys.modules[name]))
    return _MODULE_DIGESTS[name]
