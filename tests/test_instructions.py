"""Vectors of 64-bit numbers, compiled and interpreted."""

import numpy as np
import pytest

from sklboost.engine.compiling import kernel
from sklboost.engine.instructions import add_lanes, load_lanes


@kernel
def add_from(values, start, cells, place, sign, lanes):
    add_lanes(cells, np.uint64(place), load_lanes(values, np.uint64(start), lanes), sign)


@pytest.mark.interpreted
@pytest.mark.parametrize("n_lanes", [1, 4])
@pytest.mark.parametrize("sign", [1, -1])
def test_neighbouring_numbers_are_added(n_lanes, sign):
    values, cells = np.array([2**40, -3, 5, 7, -(2**62), 9]), np.arange(10)
    add_from(values, 1, cells, 3, sign, (0,) * n_lanes)
    expected = np.arange(10)
    expected[3 : 3 + n_lanes] += sign * values[1 : 1 + n_lanes]
    assert cells.tolist() == expected.tolist()
    add_from(values, 2, cells, 10 - n_lanes, sign, (0,) * n_lanes)  # up to the end
    expected[-n_lanes:] += sign * values[2 : 2 + n_lanes]
    assert cells.tolist() == expected.tolist()
