"""Processes that need the same kernel at the same time: one compiles it, the others wait for it.

The lock is on a file beside the one that is to be made, and goes with the process that holds it,
however that ends. Who holds one may wait for that of a kernel which is called, never for that of a
caller, so no two wait for each other. Where there are no locks, as on some network file systems,
each process compiles for itself.
"""

import contextlib
import os
import sys
import time
from collections.abc import Iterator

from sklboost.engine.compiler.caching import n_kept, open_lock
from sklboost.engine.compiler.notice import NOTICE

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_LOOK_EVERY = 0.05
# Seconds without a new file after which a process that holds a lock is taken for stopped: a kernel
# takes at most five. From then on nobody is waited for.
_patience = 60.0


@contextlib.contextmanager
def one_at_a_time(name: str) -> Iterator[None]:
    """Wait until no other process makes the file of this name; others then wait for this one.

    Look whether there is one now. Without a name, or a folder that can be written, nobody waits.
    """
    lock = open_lock(name) if name else None
    if lock is None:
        yield
        return
    path, descriptor = lock
    is_ours = False
    try:
        is_ours = _wait_for(descriptor)
        yield
    finally:
        os.close(descriptor)
        if is_ours:  # who waits for it has it open, and finds what was made; so do all later ones
            with contextlib.suppress(OSError):
                path.unlink()


def _wait_for(descriptor: int) -> bool:
    """Wait until a lock can be taken, but not for a process that makes nothing any more."""
    global _patience
    n_files, since = n_kept(), time.monotonic()
    while not _take(descriptor):
        if n_kept() != n_files:
            n_files, since = n_kept(), time.monotonic()
        if time.monotonic() - since > _patience:
            _patience = 0.0
            return False
        NOTICE.update()
        time.sleep(_LOOK_EVERY)
    return True


def _take(descriptor: int) -> bool:
    """Take a lock, unless another process has it; True also where the file system has no locks."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True
    return True
