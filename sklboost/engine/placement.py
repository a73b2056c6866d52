"""Which processors threads run on.

The idle processors of a virtual machine may look occupied to its Linux. It then wakes a thread on
the processor of the thread that wakes it, and takes 10 ms or more to move one of them away. So
helper threads look where they are, and move where a processor is known to be idle. On other systems
than Linux, and where a thread may not use all processors, nothing is known and nothing is done.
"""

import ctypes
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_LOAD = Path("/proc/loadavg")


def _find_getcpu() -> Callable[[], int]:
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            getcpu: Callable[[], int] = ctypes.CDLL(None).sched_getcpu
            return getcpu
    return lambda: -1


# Returns the number of the processor that this thread runs on; -1: not known.
current_processor = _find_getcpu()


def allowed_processors() -> set[int]:
    """Return the processors that this thread may run on; none where the system does not tell."""
    if sys.platform == "linux":
        with suppress(OSError):
            return os.sched_getaffinity(0)
    return set()


def n_idle_processors(allowed: set[int]) -> int | None:
    """Return the number of processors less that of all threads that run or wait for one.

    None: not known, as of a thread that is not allowed all processors.
    """
    with suppress(OSError, ValueError, IndexError):
        if len(allowed) == os.cpu_count():
            n_running, _ = _LOAD.read_bytes().split()[3].split(b"/")
            return len(allowed) - int(n_running)
    return None


def leave_processors(taken: set[int], allowed: set[int]) -> None:
    """Let this thread, which shares its processor with another, run on those not `taken`.

    Nothing is done unless a processor is known to be idle: another program's threads, or those of a
    library that still wait for work awake, would be in the way there.
    """
    n_idle, others = n_idle_processors(allowed), allowed - taken
    if sys.platform == "linux" and n_idle is not None and n_idle >= 0 and others:
        with suppress(OSError):
            os.sched_setaffinity(0, others)
