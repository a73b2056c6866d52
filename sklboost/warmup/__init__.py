"""Compilation ahead of time."""

import time

from sklboost.engine.backend import BACKEND, Backend, description
from sklboost.engine.compiling import compile_all


def warmup(verbose: bool = False) -> float:
    """Compile everything now, so that no later fit or prediction has to wait for it.

    Each kernel is compiled when it is first needed, and kept on disk for later processes. This
    compiles all of them: while a container image is built, at the start of a CI job or in the first
    cell of a notebook. What is on disk already is not compiled again.

    Parameters
    ----------
    verbose : bool, default=False
        Print each step and its seconds; that there is nothing to compile, where the machine code
        came with the package.

    Returns
    -------
    float
        Seconds it took: about 100 the first time, two where everything was on disk.

    See Also
    --------
    XGBClassifierLite, XGBRegressorLite : What is then ready.

    Notes
    -----
    ``python -m sklboost.warmup`` does the same from a command line. The code is for this kind of
    processor, these versions of Python and numba, and this version of the package; another one
    compiles anew.

    Examples
    --------
    >>> import sklboost
    >>> seconds = sklboost.warmup()
    """
    if BACKEND is not Backend.COMPILER:
        if verbose:
            print(f"nothing to compile: {description()}")
        return 0.0
    from sklboost.warmup.steps import steps  # here, since few programs need it

    begin = time.perf_counter()
    for title, step in steps():
        step_begin = time.perf_counter()
        if verbose:
            print(f"{title} ... ", end="", flush=True)
        step()
        compile_all()
        if verbose:
            print(f"{time.perf_counter() - step_begin:.1f} s", flush=True)
    return time.perf_counter() - begin
