"""Forks while another thread compiles.

A forked child has only the thread that forked. A lock that another thread held stays taken there
for ever. Compilation takes both of these; LLVM's is taken as well for every question about compiled
code. So a fork takes both first, in the order in which numba does, which waits until the other
thread is through (a question: microseconds; a kernel: up to seconds), and gives them back on both
sides.
"""

import os

from sklboost.engine.compiler.numba_internals import compiler_lock, llvm_lock

_LOCKS = tuple(filter(None, (compiler_lock, llvm_lock)))


def _take_locks() -> None:
    for lock in _LOCKS:
        lock.__enter__()


def _give_locks_back() -> None:
    for lock in reversed(_LOCKS):
        lock.__exit__(None, None, None)


def guard_forks() -> None:
    """Let every later fork of this process wait for what another thread compiles."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=_take_locks, after_in_parent=_give_locks_back, after_in_child=_give_locks_back
        )
