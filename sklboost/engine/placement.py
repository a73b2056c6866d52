"""Which processors the threads of a team run on.

The idle processors of a virtual machine may look occupied to its Linux. It then wakes a helper on
the processor of the thread that wakes it, and takes 10 to 20 ms to move one of them away. So
helpers look where they are, and move if a processor is known to be idle. That is known on Linux
only, and only of threads that may run on all processors.
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
            # which keeps the interpreter's lock: the call takes less time than giving it back
            getcpu: Callable[[], int] = ctypes.PyDLL(None).sched_getcpu
            return getcpu
    return lambda: -1


# Returns the number of the processor that this thread runs on; -1 if that is unknown.
current_processor = _find_getcpu()


def allowed_processors() -> set[int]:
    """Return the processors that this thread may run on; an empty set if they are unknown."""
    if sys.platform == "linux":
        with suppress(OSError):
            return os.sched_getaffinity(0)
    return set()


def n_spare_processors(allowed: set[int]) -> int | None:
    """Return the number of processors minus that of all threads that run or wait for one.

    It is negative on a busy machine. None if it is unknown, for example if `allowed`, the
    processors that this thread may run on, are not all.
    """
    with suppress(OSError, ValueError, IndexError):
        if len(allowed) == os.cpu_count():
            n_running, _ = _LOAD.read_bytes().split()[3].split(b"/")
            return len(allowed) - int(n_running)
    return None


def n_that_find_one(limit: int) -> int:
    """Return how many of `limit` threads, this one among them, have a processor at once.

    At least 1; all if that is unknown.
    """
    n_spare = n_spare_processors(allowed_processors())
    return limit if n_spare is None else max(1, min(limit, 1 + n_spare))


class Placement:
    """Where the members of a team were last seen.

    Made by the caller's thread, which is member 0 and never moved.
    """

    def __init__(self, n_members: int):
        self._processors = [-1] * n_members
        self._has_moved = [False] * n_members
        self._allowed = allowed_processors() if n_members > 1 else set()

    def look(self, rank: int) -> None:
        """Note where a member is, to be called by itself."""
        self._processors[rank] = current_processor()

    def run_apart(self, rank: int, run: Callable[[int], None]) -> None:
        """Call ``run(rank)`` in a helper, on a processor of its own if one is idle."""
        # without memory, say, it runs where it is
        with suppress(Exception):
            self._move_apart(rank)
        run(rank)
        with suppress(Exception):
            self._release(rank)

    def _move_apart(self, rank: int) -> None:
        """Move this helper off the processor of another member, if it is there.

        But only if another processor is idle: beside a thread of another program, or of a library
        that waits for work without sleeping, the helper would be slower than beside its team.
        """
        self.look(rank)
        taken = {*self._processors[:rank], *self._processors[rank + 1 :]} - {-1}
        others, here = self._allowed - taken, self._processors[rank]
        if here not in taken or not others:
            return
        n_spare = n_spare_processors(self._allowed)
        # 0 is enough, since two of the threads that were counted share a processor
        if n_spare is not None and n_spare >= 0:
            self._has_moved[rank] = True
            _run_on(others)
            self.look(rank)

    def _release(self, rank: int) -> None:
        """Let this helper run on all processors again, if it was moved."""
        if self._has_moved[rank]:
            _run_on(self._allowed)
            self._has_moved[rank] = False


def _run_on(processors: set[int]) -> None:
    if sys.platform == "linux":
        with suppress(OSError):
            os.sched_setaffinity(0, processors)
