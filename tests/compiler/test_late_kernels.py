"""Late kernels: cells, what fills them, and failures while they are filled."""

import gc
import itertools
import os
import signal
import threading
import time
from types import ModuleType, SimpleNamespace
from typing import NamedTuple

import numba
import numpy as np
import pytest

from sklboost.engine.compiler import linking
from sklboost.engine.compiler.kernels import LateKernel
from sklboost.engine.compiler.linking import KERNELS
from sklboost.engine.compiling import compile_all, kernel, late
from sklboost.engine.instructions import atomic_load, atomic_store, yield_processor
from sklboost.engine.parallel import ThreadTeam, assemble, barrier

pytestmark = [
    pytest.mark.timeout(120),  # what waits at a barrier for ever is to fail
    pytest.mark.usefixtures("empty_cache"),
]


OPTIONS = ModuleType("sklboost.of_tests")


def n_compiled(kernel):
    return sum(kernel.stats.cache_misses.values())


NUMBERS = itertools.count()


def named_anew(function):
    """Change a function's name to one that none had before, and so has no code in this process."""
    function.__qualname__ += f"_{next(NUMBERS)}"
    return function


def new_kernel(function):
    return kernel(named_anew(function))


def new_late(returns="none"):
    return lambda function: late(returns)(named_anew(function))


@pytest.fixture
def pair():
    """A late kernel, and a kernel that calls it for positive numbers."""

    @new_late("int64")
    def rarely(x):
        return x + 100

    @new_kernel
    def often(x):
        return rarely(x) if x > 0 else x

    return rarely, often


def test_a_late_kernel_is_compiled_once_when_it_is_first_called(pair):
    rarely, often = pair
    assert often(-1) == -1
    assert n_compiled(rarely) == 0
    assert [often(x) for x in (1, 2, 3)] == [101, 102, 103]
    assert n_compiled(rarely) == 1
    assert rarely(4) == 104

    @new_kernel
    def another(x):
        return rarely(x) + often(x)

    assert another(1) == 202
    assert n_compiled(rarely) == 1


def test_all_late_kernels_can_be_compiled_at_once(monkeypatch):
    monkeypatch.setattr(linking, "_CELLS", {})  # without those of other tests, and of the package

    @new_late("int64")
    def deepest(x):
        return x + 1

    @new_late("int64")
    def deep(x):
        return deepest(x) + 1

    @new_kernel
    def top(x):
        return deep(x) if x > 0 else x

    assert top(-1) == -1
    assert (n_compiled(deep), n_compiled(deepest)) == (0, 0)
    for _ in range(2):
        compile_all()
        assert (n_compiled(deep), n_compiled(deepest)) == (1, 1)
        assert top(1) == 3


def test_compiling_all_passes_over_kernels_that_are_gone(monkeypatch):
    monkeypatch.setattr(linking, "_CELLS", {})

    @new_late("int64")
    def gone(x):
        return x

    @new_kernel
    def caller(x):
        return gone(x) if x > 0 else x  # noqa: F821, deleted below

    assert caller(-1) == -1
    name = gone.name
    del gone, caller
    gc.collect()
    assert name not in KERNELS
    compile_all()


def test_a_kernel_of_a_module_that_is_imported_when_it_is_needed(pair):
    def fetch(name):
        if name != "rarely":
            raise AttributeError(name)
        return pair[0]

    OPTIONS.__getattr__ = fetch

    @new_kernel
    def often(x):
        return OPTIONS.rarely(x) if x > 0 else x

    assert often(-1) == -1
    assert n_compiled(pair[0]) == 0
    assert often(1) == 101
    assert n_compiled(pair[0]) == 1


class Group(NamedTuple):
    n: int
    values: np.ndarray


def test_late_kernels_take_groups_and_return_numbers_of_all_kinds():
    @new_late("float64")
    def number(group, x):
        return group.values[0] * x

    @new_late("boolean")
    def truth(group, x):
        return group.n > x

    @new_late("uint64")
    def unsigned(x):
        return np.uint64(x) + np.uint64(2**63)

    @new_late()
    def nothing(group, x):
        group.values[1] = x

    @new_kernel
    def top(group, x):
        nothing(group, x)
        return number(group, x), truth(group, x), unsigned(x), group.values[1]

    values = np.arange(1.0, 4.0)
    assert top(Group(3, values), 2) == (2.0, True, 2**63 + 2, 2.0)
    assert values[1] == 2.0


def test_an_exception_of_a_late_kernel_comes_through():
    @new_late("int64")
    def failing(x):
        if x > 2:
            raise ValueError("too large")
        return x

    @new_kernel
    def top(x):
        return failing(x)

    assert top(2) == 2
    with pytest.raises(ValueError, match="too large"):
        top(3)
    assert top(1) == 1


# --- failures


def test_a_result_of_another_type_than_declared_is_a_type_error_each_time():
    @new_late("int64")
    def wrong(x):
        return x * 1.5

    @new_kernel
    def top(x, out):
        out[0] = x
        out[1] = wrong(x)
        out[2] = x

    for _ in range(3):
        out = np.zeros(3)
        with pytest.raises(TypeError, match=r"wrong_\d+ returns float64; it was declared"):
            top(3, out)
        assert out[0] == out[2] == 3  # the kernel ran to its end
    with pytest.raises(TypeError, match="declared"):
        wrong(3)


ALWAYS = 100 * [numba.TypingError("no such thing")]


@pytest.fixture
def switch(monkeypatch):
    """Let the compilation of `rarely` raise the last of `failures`, as long as there are any."""
    build, switch = LateKernel._make, SimpleNamespace(failures=[], n_tries=0)

    def build_or_fail(kernel, kinds):
        if kernel.py_func.__name__ == "rarely":
            switch.n_tries += 1
            if switch.failures:
                raise switch.failures.pop()
        return build(kernel, kinds)

    monkeypatch.setattr(LateKernel, "_make", build_or_fail)
    return switch


def test_what_cannot_be_compiled_raises_in_the_caller_and_works_when_it_can(pair, switch):
    _, often = pair
    switch.failures = list(ALWAYS)
    for _ in range(2):
        with pytest.raises(numba.TypingError, match="no such thing"):
            often(1)
    assert often(-1) == -1
    switch.failures = []
    assert often(1) == 101

    @new_late("int64")
    def wrong(x):
        return x.no_such_attribute

    @new_kernel
    def top(x):
        return wrong(x)

    with pytest.raises(numba.TypingError, match="no_such_attribute"):
        top(1)


def test_it_is_tried_once_more_and_not_at_each_call(pair, switch):
    rarely, _ = pair

    @new_kernel
    def loop(n):
        total = 0
        for i in range(n):
            total += rarely(i)
        return total

    switch.failures = list(ALWAYS)
    with pytest.raises(numba.TypingError):
        loop(10)
    assert switch.n_tries == 2


@pytest.mark.parametrize("failures", [[TimeoutError()], [KeyboardInterrupt()] * 2], ids=repr)
def test_what_a_signal_raises_while_a_late_kernel_is_compiled_is_raised_after_the_caller(
    pair, switch, failures
):
    rarely, _ = pair

    @new_kernel
    def top(x, out):
        out[0] = rarely(x)
        out[1] = 1.0

    switch.failures = list(failures)
    out = np.zeros(2)
    with pytest.raises(type(failures[0])):
        top(1, out)
    assert out.tolist() == [101.0, 1.0]  # it ran to its end, with the kernel that it called
    top(2, out)
    assert out.tolist() == [102.0, 1.0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="here Ctrl-C reaches other processes, too")
# ctypes tells of what is raised before the first line of what machine code calls
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_while_a_kernel_runs_that_then_calls_a_late_one(pair):
    rarely, _ = pair

    @new_kernel
    def top(x, flags, out):
        atomic_store(flags, 0, 1)
        while atomic_load(flags, 1) == 0:
            yield_processor()
        out[0] = rarely(x)
        out[1] = rarely(x + 1)

    def press_ctrl_c():
        while flags[0] == 0:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
        flags[1] = 1  # the kernel goes on, with a Ctrl-C that Python has not seen yet

    flags, out = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    top.entry.compile((numba.int64, numba.typeof(flags), numba.typeof(out)))
    thread = threading.Thread(target=press_ctrl_c)
    thread.start()
    with pytest.raises(KeyboardInterrupt):  # before the first line of what fills the cell
        top(1, flags, out)
    thread.join()
    assert out.tolist() == [101, 102]  # the kernel has run to its end
    top(2, flags, out)
    assert out.tolist() == [102, 103]


# --- threads


@pytest.mark.parametrize("size", [1, 4])
def test_a_failure_within_a_team_hangs_nobody(size, pair, switch):
    rarely, _ = pair

    @new_kernel
    def work(team, out):
        if not assemble(team):
            return
        out[team.rank] = 1
        barrier(team)
        out[team.rank] += rarely(team.rank)
        barrier(team)
        out[team.rank] += 1

    switch.failures = list(ALWAYS)
    out = np.zeros(4, dtype=np.int64)
    for _ in range(2):
        with pytest.raises(numba.TypingError, match="no such thing"), ThreadTeam(size) as team:
            team.run(work, out)
        assert list(out[:size]) == [2] * size  # all came to the end
    switch.failures = []
    with ThreadTeam(size) as team:
        team.run(work, out)
    assert list(out[:size]) == [102 + rank for rank in range(size)]


def in_threads(n_threads, call):
    """Call in several threads at once; return what each returned or raised."""
    start, results = threading.Barrier(n_threads), [None] * n_threads

    def run(i):
        start.wait()
        try:
            results[i] = call(i)
        except BaseException as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_threads_fill_one_cell_at_once(pair):
    rarely, often = pair
    often(-1)
    assert in_threads(8, lambda i: often(i + 1)) == [101 + i for i in range(8)]
    assert n_compiled(rarely) == 1


def test_each_thread_that_calls_what_cannot_be_compiled_is_told(pair, switch):
    _, often = pair
    often(-1)
    switch.failures = list(ALWAYS)
    results = in_threads(8, lambda i: often(i - 3))
    for i, result in enumerate(results):
        if i - 3 > 0:
            assert isinstance(result, numba.TypingError), result
        else:
            assert result == i - 3  # has called nothing, and is told nothing
    switch.failures = []
    assert often(1) == 101


def test_a_failure_is_raised_although_the_caller_raises_too(pair, switch):
    rarely, often = pair

    @new_kernel
    def top(x):
        if rarely(x) != 100 + x:
            raise ValueError("a consequence")
        return x

    switch.failures = list(ALWAYS)
    with pytest.raises(numba.TypingError, match="no such thing"):
        top(1)
    switch.failures = []
    assert often(-1) == -1
    assert top(1) == 1


def test_a_try_that_fails_in_another_thread_is_not_taken_for_ctrl_c(pair, monkeypatch):
    rarely, often = pair
    fill, tried = linking._Cell.fill, []

    def find_it_done(cell):
        """Fill a cell, but first come when another thread has tried, failed and raised that."""
        tried.append(cell)
        if len(tried) == 1:
            linking._LAST_FAILURE[:] = [numba.TypingError("no such thing")]
        else:
            fill(cell)

    monkeypatch.setattr(linking._Cell, "fill", find_it_done)
    with pytest.raises(numba.TypingError, match="no such thing"):
        often(1)
    assert often(1) == 101
    assert n_compiled(rarely) == 1
