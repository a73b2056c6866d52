"""Forks while another thread is within the compiler."""

import os
import signal
import threading
import time

import pytest

from sklboost.engine.compiler import kernels
from sklboost.engine.compiler.numba_internals import llvm_lock
from sklboost.engine.compiling import kernel

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.usefixtures("empty_cache"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
]


def fork_while(begin, begun, called):
    """Fork while a thread does something; a kernel that the child calls does not wait for it."""
    thread = threading.Thread(target=begin)
    thread.start()
    begun.wait()
    child = os.fork()
    if child == 0:  # only this thread lives on here, whatever the other was doing
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        status = 1
        try:
            status = int(called(2) != 4)
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    thread.join()


@pytest.mark.parametrize(("owner", "step"), [(kernels, "digest_of"), (kernels.Kernel, "_make")])
def test_a_fork_while_another_thread_calls_a_kernel_for_the_first_time(monkeypatch, owner, step):
    begun, work = threading.Event(), getattr(owner, step)

    def work_slowly(*arguments):
        begun.set()
        time.sleep(0.3)
        return work(*arguments)

    def double(number):
        return 2 * number

    double.__qualname__ += step  # a name that has no code in this process
    called = kernel(double)
    monkeypatch.setattr(owner, step, work_slowly)
    fork_while(lambda: called(1), begun, called)


def test_a_fork_while_another_thread_asks_llvm():
    begun = threading.Event()

    def ask():
        with llvm_lock:
            begun.set()
            time.sleep(0.3)

    fork_while(ask, begun, kernel(lambda number: number + number))
