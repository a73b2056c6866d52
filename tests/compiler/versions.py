"""What scripts in processes of their own ask about compilation: versions after fits of all kinds.

A process has a version of a kernel when it has compiled it, or has loaded what another process
compiled. Which of the two depends on what is on disk, which is the same either way: so scripts use
the folder that all tests share, and ask what versions there are, not which were compiled.
"""

import pickle
from collections import defaultdict

from numba.types import BaseTuple

from sklboost.engine.compiler.linking import KERNELS, LINKED
from sklboost.engine.compiler.references import Reference
from tests.fits import kinds_of_fits


def versions():
    """Return the signatures of each kernel's versions that the process has, sorted.

    Those of a kernel that are called from Python are listed as those of ``<kernel>.entry``.
    Inlined kernels have no versions of their own, but where Python calls them.
    """
    found, calls, seen = defaultdict(set), [], set()
    for kernel in list(KERNELS.values()):
        dispatchers = {} if kernel.is_inlined else {kernel.name: kernel}
        if "entry" in vars(kernel):
            dispatchers[f"{kernel.name}.entry"] = kernel.entry
        for name, dispatcher in dispatchers.items():
            for types, version in dispatcher.overloads.items():
                found[name].add(_signature(types))
                calls += version.calls
    while calls:  # what was loaded with a caller's code, and of which only its file knows
        call = calls.pop()
        key = (call.kernel, call.types)
        if key in LINKED and key not in seen:
            seen.add(key)
            found[call.kernel].add(_signature(pickle.loads(call.arguments)))
            version = KERNELS[call.kernel].read(call.types)
            # None where another test of this process has kept code in a folder that is gone
            calls += version.calls if version is not None else []
    return {name: sorted(signatures) for name, signatures in found.items()}


def _signature(types):
    """Return types as text, a group with all its fields."""
    return ", ".join(map(_text, types))


def _text(kind):
    if isinstance(kind, Reference):
        return str(kind.group)
    if isinstance(kind, BaseTuple) and any(isinstance(part, Reference) for part in kind):
        return f"({_signature(kind)})"
    return str(kind)


def versions_after_fits(folder, without=()):
    """Return the versions that the process has after each kind of fits."""
    result = {}
    for title, fit in kinds_of_fits(folder):
        if title not in without:
            fit()
            result[title] = versions()
    return result
