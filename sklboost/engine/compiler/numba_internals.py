"""Every private name of numba and llvmlite that the package uses, and the numba it is tested with.

No release of numba promises these names, so the extra ``jit`` of ``pyproject.toml`` bounds its
version. ``tests/compiler/test_numba_assumptions.py`` tests what would go wrong silently if numba
changed it; a weekly job runs all tests on the newest numba and tells when the bounds can move.
"""

import os
import warnings

import numba

# The first release that is tested, and the first one that is not, as in pyproject.toml.
TESTED = ((0, 61), (0, 69))

_REMEDY = (
    f"sklboost is tested with numba {'.'.join(map(str, TESTED[0]))} to "
    f"{TESTED[1][0]}.{TESTED[1][1] - 1}, and numba {numba.__version__} is installed: run "
    "pip install 'sklboost[jit]', or install a newer sklboost"
)

try:
    import numba.core.registry  # first: the others need what it imports
    from llvmlite.binding import ffi
    from numba.core import cgutils as cgutils
    from numba.core.bytecode import FunctionIdentity as FunctionIdentity
    from numba.core.codegen import AOTCPUCodegen as AOTCPUCodegen
    from numba.core.codegen import JITCodeLibrary as JITCodeLibrary
    from numba.core.compiler import Compiler as Compiler
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.event import trigger_event as trigger_event
    from numba.core.funcdesc import default_mangler as default_mangler
    from numba.core.imputils import lower_getattr_generic as lower_getattr_generic
    from numba.core.lowering import Environment as Environment
    from numba.core.registry import CPUDispatcher as CPUDispatcher
    from numba.core.registry import cpu_target as cpu_target
    from numba.core.serialize import dumps as dumps
    from numba.core.sigutils import normalize_signature as normalize_signature
    from numba.core.typeconv import Conversion as Conversion
    from numba.core.types import BaseNamedTuple as BaseNamedTuple  # type: ignore[attr-defined]
    from numba.core.typing import make_concrete_template as make_concrete_template
    from numba.core.typing.templates import AttributeTemplate as AttributeTemplate
    from numba.core.typing.templates import infer_getattr as infer_getattr
    from numba.core.untyped_passes import ExtractByteCode as ExtractByteCode

    compiler_lock = global_compiler_lock
    llvm_lock = ffi.lib._lock
except (ImportError, AttributeError) as error:
    raise ImportError(f"kernels cannot be compiled ({error}): {_REMEDY}") from error

if not TESTED[0] <= numba.version_info.short < TESTED[1]:
    warnings.warn(f"kernels may be compiled wrongly: {_REMEDY}", RuntimeWarning, stacklevel=2)


# Both are taken for compilation, LLVM's also for every question about compiled code. A forked child
# has only the thread that forked, and a lock that another thread held would stay taken there for
# ever. So a fork takes both, in numba's order, which waits until the other thread is through (a
# question: microseconds; a kernel: up to seconds), and gives them back on both sides.
def _give_locks_back() -> None:
    llvm_lock.__exit__(None, None, None)
    compiler_lock.__exit__(None, None, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: (compiler_lock.__enter__(), llvm_lock.__enter__()),
        after_in_parent=_give_locks_back,
        after_in_child=_give_locks_back,
    )
