"""A fork must not catch the compiler at work.

A forked child has only the thread that forked. A lock that another thread held stays taken there
for ever, and both numba's compiler and LLVM below it have one: LLVM's is taken at the first call of
a kernel, for its address, and for every question about compiled code. So whoever forks takes both
first, which waits until the other thread is through (a question: microseconds; a kernel that is
being compiled: up to seconds), and gives them back on both sides of the fork.
"""

import os

from sklboost.engine.compiler.numba_internals import compiler_lock, llvm_lock

# The order in which numba takes them.
_LOCKS = tuple(filter(None, (compiler_lock, llvm_lock)))


def _take() -> None:
    for lock in _LOCKS:
        lock.__enter__()


def _give_back() -> None:
    for lock in reversed(_LOCKS):
        lock.__exit__(None, None, None)


def keep_compiler_out_of_forks() -> None:
    """Make every later ``os.fork`` of this process wait for a moment without compilation."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_take, after_in_parent=_give_back, after_in_child=_give_back)
