import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.tree.options.occupied_bins import list_few, list_many


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


@pytest.mark.parametrize("n_bins", [1, 63, 64, 65, 256, 1000])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_both_ways_of_listing_agree(n_bins, share):
    random = np.random.default_rng(n_bins)
    occupied = random.random(n_bins) < share
    cells = np.where(occupied, random.integers(-(2**50), 2**50, n_bins), 0)
    for list_occupied in (list_few, list_many):
        bins, sums = np.empty(n_bins, dtype=np.int64), np.empty(n_bins, dtype=np.int64)
        n_occupied = list_occupied(cells, bins, sums)
        assert_array_equal(bins[:n_occupied], np.flatnonzero(cells))
        assert_array_equal(sums[:n_occupied], (np.cumsum(cells) - cells)[cells != 0])
