"""Forks while another thread is within the compiler."""

import os
import time

import pytest

from tests.conftest import run_python
from tests.test_robustness import COMMON

pytestmark = pytest.mark.timeout(240)

FORK_WHILE_COMPILING = """
from sklboost.engine.compiling import kernel

def add_often(number):
    {additions}
    return number

compiling = threading.Thread(target=kernel(add_often), args=(1,))
compiling.start()
time.sleep(0.05)
assert compiling.is_alive()
child = os.fork()
if child == 0:
    fit_and_predict()
    os._exit(0)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0
compiling.join()
print("ended well")
"""

if hasattr(os, "fork"):

    def test_fork_while_another_thread_compiles(tmp_path):
        # a number that no earlier run had, whose compiled code would be found on disk
        additions = "; ".join([f"number += number % {time.time_ns()}"] * 200)
        text = COMMON + FORK_WHILE_COMPILING.format(additions=additions)
        assert run_python(text, tmp_path) == "ended well"


FORK_WHILE_NAMING = """
import signal
from sklboost.engine.compiler import kernels
from sklboost.engine.compiling import kernel

begun, digest_of = threading.Event(), kernels.digest_of

def digest_slowly(function):
    begun.set()
    time.sleep(0.5)
    return digest_of(function)

@kernel
def double(number):
    return 2 * number

kernels.digest_of = digest_slowly
calling = threading.Thread(target=double, args=(1,))
calling.start()
begun.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if double(2) == 4 else 1)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0
calling.join()
print("ended well")
"""

if hasattr(os, "fork"):

    def test_fork_while_another_thread_calls_a_kernel_for_the_first_time(tmp_path):
        assert run_python(COMMON + FORK_WHILE_NAMING, tmp_path) == "ended well"
