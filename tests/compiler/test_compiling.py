import gc
import io
import itertools
import logging
import pickle
import re
from typing import NamedTuple

import numba
import numpy as np
import pytest

from sklboost.engine import elementary as hashing
from sklboost.engine.compiler import kernels
from sklboost.engine.compiler.caching import UNKNOWN, digest_of
from sklboost.engine.compiler.kernels import Kernel
from sklboost.engine.compiler.linking import KERNELS
from sklboost.engine.compiler.lowering import types_of
from sklboost.engine.compiling import (
    inlined,
    is_compiled_by_user,
    kernel,
    late,
    made_kernel,
    returns_two_numbers,
)
from sklboost.objectives.metrics import wrong_side
from sklboost.tree.core.histogram import add_rows
from sklboost.tree.core.pruning import prune
from sklboost.tree.core.workspace import NARROW_CELLS
from tests.conftest import run_kernels

pytestmark = pytest.mark.usefixtures("empty_cache")


@kernel
def double(x):
    return 2 * x


@kernel
def quadruple(x):
    return double(double(x))


@inlined
def triple(x):
    return 3 * x


@kernel
def six_times(x):
    return double(triple(x))


def n_compiled(*kernels):
    return sum(sum(k.stats.cache_misses.values()) for k in kernels)


def names(folder):
    return sorted(path.name.split("-")[0] for path in folder.iterdir())


# --- kernels


def test_kernels_are_called_by_kernels_and_from_python(empty_cache):
    assert quadruple(3) == 12
    assert double(3.5) == 7.0
    assert [str(s) for s in double.signatures] == ["(int64,)", "(float64,)"]
    assert [str(s) for s in double.entry.signatures] == ["(float64,)"]
    assert [str(s) for s in quadruple.signatures] == ["(int64,)"]
    assert names(empty_cache) == ["double"] * 3 + ["quadruple"] * 2


def test_inlined_kernels_are_kept_as_part_of_others(empty_cache):
    assert six_times(2) == 12
    assert "triple" not in names(empty_cache)
    assert triple(2) == 6
    assert names(empty_cache).count("triple") == 1  # what Python calls


def test_a_kernel_that_allocates_does_not_compile():
    @kernel
    def allocate(n):
        return np.zeros(n).sum()

    with pytest.raises(numba.TypingError, match="array passed into the function"):
        allocate(3)


@pytest.mark.parametrize("decorate", [kernel, inlined, late("float64")])
def test_division_by_zero_is_that_of_numpy(decorate):
    @decorate
    def divide(a, b):
        return a / b

    assert divide(1.0, 0.0) == float("inf")


@pytest.mark.parametrize("function", [prune, wrong_side])
def test_kernels_release_the_lock_of_the_interpreter_and_keep_strict_arithmetic(function):
    for dispatcher in (function, function.entry):
        assert dispatcher.targetoptions["nogil"]
        assert not dispatcher.targetoptions.get("fastmath")


@kernel
def failing(x):
    if x > 2:
        raise ValueError("too large")
    return x


@kernel
def calls_failing(x):
    return failing(x)


def test_an_exception_of_a_kernel_comes_through_those_that_call_it():
    assert calls_failing(2) == 2
    for function in (failing, calls_failing):
        with pytest.raises(ValueError, match="too large"):
            function(3)


@kernel
def with_default(x, factor=5):
    return factor * x


@kernel
def calls_with_default(x):
    return with_default(x) + with_default(x, 2) + with_default(x, factor=3)


def test_kernels_give_kernels_defaults_and_names_of_arguments():
    assert calls_with_default(1) == 10


def test_a_kernel_that_is_named_by_its_module_counts_in_the_digest_of_its_caller(monkeypatch):
    def caller(number):
        return hashing.mix_bits(number)

    before = digest_of(caller)
    monkeypatch.setattr(hashing, "mix_bits", inlined(lambda number: number))
    assert len({before, digest_of(caller), UNKNOWN}) == 3


# --- what is kept


def around(function):
    def call(x):
        return function(x) + 1

    return call


def test_a_made_kernel_with_a_name_is_kept(empty_cache):
    assert made_kernel(around(double), "double")(3) == 7
    again = made_kernel(around(double), "double")
    assert again(3) == 7
    assert n_compiled(again, again.entry) == 0
    assert made_kernel(around(triple), "triple")(3) == 10


def test_a_made_kernel_without_a_name_is_kept_nowhere(empty_cache):
    # it may be made around anything, as around what a user has compiled: two of one name
    @numba.njit
    def one(x):
        return 2 * x

    @numba.njit
    def two(x):
        return 3 * x

    made = [made_kernel(around(function), None) for function in (one, one, two)]
    assert [new(3) for new in made] == [7, 7, 10]
    assert n_compiled(*made, *(new.entry for new in made)) == 6
    assert kernel(around(one)).digest == UNKNOWN
    assert names(empty_cache) == []


def define(number):
    if number == 1:

        @kernel
        def redefined(x):
            return x + 1
    else:

        @kernel
        def redefined(x):
            return x + 2

    return redefined


def test_kernels_of_one_name_with_other_code_live_side_by_side():
    first, second = define(1), define(2)
    assert (first(1), second(1), first(2.5), second(2.5)) == (2, 3, 3.5, 4.5)

    @kernel
    def call_both(x):
        return 10 * first(x) + second(x)

    assert call_both(1) == 23


def test_the_code_of_a_kernel_that_is_gone_is_not_that_of_another_of_its_name(empty_cache):
    name = f"{__name__}.{define.__qualname__}.<locals>.redefined"
    KERNELS.pop(name, None)  # as if the test before had not been
    first = define(1)
    assert first(np.uint8(1)) == 2
    del first
    gc.collect()
    assert name not in KERNELS
    assert define(2)(np.uint8(1)) == 3


def test_the_same_code_may_have_two_names():
    def copy(name):
        scope = {"__name__": name}
        exec("def same(x):\n    return x + 41", scope)
        return kernel(scope["same"])

    first, second = copy("first_module"), copy("second_module")

    @kernel
    def call_both(x):
        return first(x) + second(x)

    assert call_both(0) == 82
    assert (first(1), second(1)) == (42, 42)


class LocalPair(NamedTuple):
    x: float
    y: float


def test_a_kernel_for_a_class_within_a_function_is_compiled_by_each_process(empty_cache):
    class Pair(NamedTuple):
        x: float
        y: float

    @kernel
    def difference(pair):
        return pair.x - pair.y

    assert difference(Pair(3.0, 1.0)) == 2.0
    assert names(empty_cache) == []
    assert difference(LocalPair(3.0, 1.0)) == 2.0
    assert names(empty_cache) == ["difference"] * 2


def test_kernels_that_get_functions_are_not_kept(empty_cache):
    # numba tells functions apart by their place in memory, where another process has another one
    @kernel
    def apply(function, x):
        return function(x)

    @kernel
    def use(x):
        return 10 * apply(double, x) + apply(triple, x)

    assert use(1) == 23
    assert "apply" not in names(empty_cache)


SCRIPT = """
from typing import NamedTuple
import numpy as np
from sklboost.engine.compiling import kernel

class Group(NamedTuple):
    n: int
    values: np.ndarray

@kernel
def read(group):
    return group.n * group.values[1]

@kernel
def make(values):
    return read(Group(3, values))

values = np.arange(3.0)
print(read(Group(2, values)), make(values))
"""


def test_a_script_may_run_again(tmp_path):
    for _ in range(2):
        assert run_kernels(SCRIPT, tmp_path) == "2.0 3.0"


# --- what others ask


def test_a_kernel_is_pickled_by_its_name():
    for function in (prune, double, triple, wrong_side):
        assert pickle.loads(pickle.dumps(function)) is function


def test_functions_that_users_have_compiled():
    @numba.njit
    def of_one(x):
        return x + 0.5

    @numba.njit
    def one_of_two(x, y):
        return x + y

    @numba.njit
    def two_of_two(x, y):
        return x + y, 1

    assert is_compiled_by_user(of_one)
    assert not is_compiled_by_user(define)
    assert [returns_two_numbers(f) for f in (of_one, one_of_two, two_of_two)] == [
        False,
        False,
        True,
    ]


# --- what the speed of a fit depends on ----------------------------------------------------------


def ir_of_add_rows():
    kernel_ = Kernel(add_rows.py_func, is_kept=False)
    numbers = "int64[::1], uint32[::1], UniTuple(int64, 2), int64[::1]"
    version = kernel_.version(types_of(f"Array(uint8, 2, 'C', readonly=True), {numbers}"))
    return version.library.get_llvm_str()


def test_the_room_of_a_column_is_a_constant_where_histograms_are_built():
    """As a variable it costs an instruction more for each row and column: up to a third."""
    assert str(8 * NARROW_CELLS) in ir_of_add_rows()  # bytes from column to column


def test_scattered_rows_are_prefetched_into_both_levels_of_cache():
    """Into the first level alone it takes up to twice as long."""
    levels = re.findall(r"call void @llvm.prefetch.*i32 0, i32 (\d), i32 1\)", ir_of_add_rows())
    n_loops = len(levels) // 5  # the compiler may copy the loop
    assert n_loops > 0
    # of a row that comes soon both ends of its bins, of a later one its gradient, too
    assert (levels.count("3"), levels.count("2")) == (2 * n_loops, 3 * n_loops)


# --- what is said


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "is_shown"), [(Terminal, True), (io.StringIO, False)])
def test_that_many_kernels_are_compiled_is_said_once(stream, is_shown, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "sklboost")
    monkeypatch.setattr(kernels, "_N_MADE", itertools.count(1))
    monkeypatch.setattr(kernels.sys, "stderr", stream())
    for n_made in range(1, 30):
        kernels._say_what_takes_so_long()
        assert len(caplog.records) == (n_made >= kernels._MANY)
    assert kernels.sys.stderr.getvalue().count("sklboost: compiling kernels") == is_shown
