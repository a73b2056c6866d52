"""Floats sorted by their digits, as NumPy sorts them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from sklboost.engine.sorting import order_floats, sort_floats

DTYPES = [np.float32, np.float64]
nan, inf = np.nan, np.inf
NO_ORDER = np.empty(0, dtype=np.int64)


def assert_sorted(values):
    """As NumPy sorts them, whose order of equal values is that of the array, too."""
    ordered, order = order_floats(values)
    assert_array_equal(ordered, np.sort(values))
    assert_array_equal(sort_floats(values, NO_ORDER)[0], ordered)
    assert ordered.dtype == values.dtype
    assert_array_equal(order, np.argsort(values, kind="stable"))


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values(dtype):
    tiny, most = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    values = [nan, 1.0, -inf, 0.0, -0.0, tiny, -tiny, inf, -most, most, -nan, -1.0, 1.0, 0.0]
    assert_sorted(np.array(values, dtype=dtype))
    assert_sorted(np.array(values[::-1], dtype=dtype))
    infinity = np.array(inf, dtype=dtype).view(f"i{np.dtype(dtype).itemsize}")
    signalling = np.array([infinity + 1, 0, infinity + 1], dtype=infinity.dtype).view(dtype)
    with np.errstate(all="raise"):
        ordered, _ = sort_floats(signalling, NO_ORDER)
    assert_array_equal(ordered, [0.0, nan, nan])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "make",
    [
        lambda random: random.normal(size=5000),
        lambda random: random.integers(-3, 3, size=5000),
        lambda random: np.full(5000, -7.5),
        lambda random: 1.7e9 + random.random(5000),  # differ in their last digits only
        lambda random: random.choice([nan, -nan, 1.0], 5000),
        lambda random: np.ldexp(1.0, random.integers(-1000, 1000, 5000)),
        lambda random: np.arange(5000.0)[::-1],
    ],
)
def test_many_values(dtype, make):
    with np.errstate(over="ignore"):
        values = np.asarray(make(np.random.default_rng(0)), dtype=dtype)
    assert_sorted(values)
    assert_sorted(np.repeat(values, 3)[::2])  # strided


@pytest.mark.parametrize("width", [32, 64])
@given(data=st.data())
def test_any_values(width, data):
    floats = st.floats(width=width, allow_nan=True, allow_infinity=True)
    assert_sorted(data.draw(arrays(f"f{width // 8}", st.integers(1, 40), elements=floats)))


def test_what_is_not_a_float_of_this_machine_becomes_one():
    for values in (np.array([3, -1, 2]), np.array([3.0, -1.0, 2.0], dtype=">f8")):
        ordered, order = order_floats(values)
        assert_array_equal(ordered, [-1, 2, 3])
        assert_array_equal(order, [1, 2, 0])
        assert ordered.dtype == np.float64


def test_the_values_stay_as_they_are():
    values = np.random.default_rng(0).normal(size=100)
    values.flags.writeable = False
    assert_sorted(values)
