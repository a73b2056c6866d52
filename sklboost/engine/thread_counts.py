"""How many threads a task takes."""

import math
import os
import sys
from multiprocessing import current_process

import joblib
from joblib.parallel import ThreadingBackend, get_active_backend

from sklboost.engine.placement import n_that_find_one

# A task is small if no more threads are useful for it, and it is done no more times.
_FEW_THREADS, _FEW_TIMES = 4, 200


def default_n_threads() -> int:
    """Return the number of threads this process may use without crowding others out.

    The smallest of the processors it may run on (affinity and cgroup quota), the limit that joblib
    sets in its worker processes, and 1 in joblib's worker threads, whose number is not known. It is
    1, too, in a task of a Dask worker, which has a thread for each of its tasks, and in processes
    of a ``multiprocessing.Pool``.
    """
    # before joblib is asked, which would warn, or ask Dask's scheduler how large the cluster is
    if _is_dask_task() or current_process().daemon or is_joblib_task():
        return 1
    limits: list[int] = [joblib.cpu_count(), joblib.effective_n_jobs(-1)]
    inner_limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]  # a list: by nesting
    if inner_limit.isdigit() and int(inner_limit) > 0:
        limits.append(int(inner_limit))
    return max(1, min(limits))


def is_joblib_task() -> bool:
    """Whether this thread works on a task of joblib, in a worker thread or a worker process."""
    if _is_dask_task():
        return False
    backend, _ = get_active_backend()
    return isinstance(backend, ThreadingBackend) and backend.nesting_level > 0


def _is_dask_task() -> bool:
    """Whether this thread works on a task of a Dask worker; Dask is not imported to know that."""
    state = getattr(sys.modules.get("distributed.utils"), "thread_state", None)
    return hasattr(state, "execution_state")


def n_threads_for(n_jobs: int | None, work: int, unit: int, n_times: int = 1) -> int:
    """Return the number of threads for a task.

    A small task has no more than find a processor at once: to wait takes longer than they save.

    Parameters
    ----------
    n_jobs : int or None
        The most the user allows; None: :func:`default_n_threads`, -1: all processors, -2: all but
        one, ...
    work : int
        The size of the task.
    unit : int
        The work that one thread does in the time that another one costs. Each thread takes its
        share of the work and adds its cost, so the least time is where their number is the square
        root of the units.
    n_times : int
        How many times the team does the task, as for each round of boosting.
    """
    n_useful = max(1, math.isqrt(work // unit))
    if n_useful == 1:
        return 1  # to learn the limits of this process takes longer than predicting a row
    if n_jobs is None:
        limit = default_n_threads()
    elif n_jobs < 0:
        limit = joblib.cpu_count() + 1 + n_jobs
    else:
        limit = n_jobs
    if limit > 1 and n_useful <= _FEW_THREADS and n_times <= _FEW_TIMES:
        limit = n_that_find_one(limit)
    return max(1, min(limit, n_useful))
