"""A kernel for arguments of certain types, as numba knows it and as it is kept on disk."""

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

from sklboost.engine.compiler.digests import UNKNOWN
from sklboost.engine.compiler.linking import Call, Code, keep
from sklboost.engine.compiler.numba_internals import dumps

# Without the GIL; division by zero as in NumPy; without reference counts, since kernels neither
# allocate nor free, and one that allocates does not compile; without a version for C code.
OPTIONS: dict[str, Any] = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
}


class Version(NamedTuple):
    """A kernel for arguments of certain types, with the names that numba's dispatchers ask for.

    Attributes
    ----------
    signature, fndesc : signature and function descriptor of numba's
    entry_point : object
        By what numba finds it; of an entry, what Python calls.
    library : code library of numba's, or None
        None: the code was loaded.
    calls : tuple of Call
    objectmode : bool
    """

    signature: Any
    fndesc: Any
    entry_point: Any
    library: Any
    calls: tuple[Call, ...]
    objectmode: bool = False


def code_of(version: Version) -> Code:
    """Return what is kept of a version that was compiled."""
    fndesc, signature = version.fndesc, version.signature
    fndesc.typemap = fndesc.calltypes = None  # large, and not asked for again
    return Code(
        version.library._get_compiled_object(),
        fndesc.llvm_func_name,
        signature.return_type.name,
        version.calls,
        dumps((fndesc, signature)),
    )


def mean_the_same_elsewhere(kinds: tuple) -> bool:
    """Whether types can be kept for other processes.

    Not those with classes of a script or within a function, which other processes cannot import,
    and not those of functions, which are told apart by their places in memory.
    """
    try:
        has_script = b"__main__" in pickle.dumps(kinds)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return not has_script and not any(" at 0x" in kind.name for kind in kinds)


def file_name(function: Callable, digest: str, types_: str) -> str:
    """Return the name of the file of a version; UNKNOWN if the digest is."""
    if digest == UNKNOWN:
        return UNKNOWN
    name = "".join(filter(str.isidentifier, function.__name__))  # without <> of a lambda
    return f"{name}-{digest}-{types_}"


def keep_version(file: str, version: Version) -> None:
    """Write a version that was compiled to disk, if it means the same in other processes."""
    is_the_same = mean_the_same_elsewhere(version.signature.args)
    if is_the_same and not version.library.has_dynamic_globals:
        keep(file, code_of(version))
