from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.tree.options.scanning import list_few, list_many
from sklboost.tree.options.several_outputs import list_sums


@pytest.mark.interpreted
@pytest.mark.parametrize("list_occupied", [list_few, list_many])
def test_list_of_occupied_bins(list_occupied):
    cells = np.array([0, 5, 0, 7, 2, 0])
    bins, sums = np.empty(6, dtype=np.int64), np.empty(6, dtype=np.int64)
    assert list_occupied(cells, bins, sums) == 3
    assert list(bins[:3]) == [1, 3, 4]
    assert list(sums[:3]) == [0, 5, 12]
    assert list_occupied(cells[5:], bins, sums) == 0
    assert list_occupied(cells[:0], bins, sums) == 0


@pytest.mark.parametrize("list_occupied", [list_few, list_many])
def test_lists_of_any_length(list_occupied):
    random = np.random.default_rng(0)
    for n_bins, share in product((1, 63, 64, 65, 256, 1000), (0.0, 0.01, 0.5, 1.0)):
        occupied = random.random(n_bins) < share
        cells = np.where(occupied, random.integers(-(2**50), 2**50, n_bins), 0)
        bins, sums = np.empty(n_bins, dtype=np.int64), np.empty(n_bins, dtype=np.int64)
        n_occupied = list_occupied(cells, bins, sums)
        assert_array_equal(bins[:n_occupied], np.flatnonzero(cells))
        assert_array_equal(sums[:n_occupied], (np.cumsum(cells) - cells)[cells != 0])


@pytest.mark.interpreted
@pytest.mark.parametrize("lane", [0, 3])
def test_sums_of_another_output_before_the_same_bins(lane):
    cells = np.array([0, 5, 0, 7, 2, 0])
    lanes = np.full((6, 4), 1000)
    lanes[:, lane] = cells
    sums = np.empty(3, dtype=np.int64)
    list_sums(lanes.ravel(), 4, lane, np.array([1, 3, 4]), sums)
    assert list(sums) == [0, 5, 12]
