import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.engine.compiling import kernel
from sklboost.tree.core.fetching import bins_are_scattered, numbers_are_scattered, row_ahead
from sklboost.tree.core.histogram import add_rows
from sklboost.tree.core.partition import add_by_side, divide_rows
from sklboost.tree.core.workspace import NARROW_CELLS
from sklboost.tree.options.several_outputs import add_rows_to_strip


@kernel
def judge(bins, row_list):
    return bins_are_scattered(bins, row_list), numbers_are_scattered(row_list)


@kernel
def look_ahead(row_list, position, n_ahead):
    return row_ahead(row_list, position, n_ahead)


def every(step, n_rows=2000):
    return np.arange(0, n_rows, step, dtype=np.uint32)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("step", "scattered"),
    [(1, (False, False)), (3, (False, False)), (4, (True, False)), (41, (True, True))],
)
def test_rows_are_scattered_if_they_are_far_apart_in_memory(step, scattered):
    bins = np.zeros((2000, 20), dtype=np.uint8)
    assert judge(bins, every(step)) == scattered
    assert judge(bins, every(step)[::-1].copy()) == scattered


@pytest.mark.interpreted
def test_wider_bins_are_farther_apart():
    assert judge(np.zeros((2000, 20), dtype=np.uint16), every(2)) == (True, False)
    assert judge(np.zeros((2000, 65), dtype=np.uint8), every(1)) == (True, False)
    assert judge(np.zeros((2000, 64), dtype=np.uint8), every(1)) == (False, False)


@pytest.mark.interpreted
@pytest.mark.parametrize("row_list", [[], [1999]])
def test_no_row_and_one_row_are_not_scattered(row_list):
    rows = np.array(row_list, dtype=np.uint32)
    assert judge(np.zeros((2000, 200), dtype=np.uint8), rows) == (False, False)


@pytest.mark.interpreted
def test_the_row_ahead_is_the_last_one_at_the_end_of_the_list():
    rows = np.array([9, 7, 5, 0], dtype=np.uint32)
    ahead = [look_ahead(rows, position, 2) for position in range(4)]
    assert ahead == [5, 0, 0, 0]


# In order, backwards, and scattered enough for both kinds of numbers; fewer rows than are fetched
# ahead, and more.
LISTS = [
    every(1),
    every(1)[::-1].copy(),
    every(3),
    every(50),
    every(41)[::-1].copy(),
    every(50, 9000),
]


@pytest.mark.parametrize("row_list", LISTS, ids=len)
def test_kernels_do_the_same_with_scattered_rows(row_list):
    random = np.random.default_rng(len(row_list))
    bins = random.integers(0, 256, (9000, 20)).astype(np.uint8)
    packed = random.integers(-(2**40), 2**40, (9000, 4))
    columns, cells = np.arange(20), NARROW_CELLS

    sums = np.zeros((20, cells), dtype=np.int64)
    add_rows(bins, packed[:, 0].copy(), row_list, (0, 20), sums.reshape(-1))
    expected = np.zeros((20, cells, 4), dtype=np.int64)
    for row in row_list:
        expected[columns, bins[row]] += packed[row]
    assert_array_equal(sums, expected[:, :, 0])

    of_four = np.zeros((20, cells, 4), dtype=np.int64)
    add_rows_to_strip(bins, packed.reshape(-1), row_list, (0, 20), of_four.reshape(-1))
    assert_array_equal(of_four, expected)

    column, sides = bins[:, 5].copy(), random.integers(0, 2, 256).astype(np.uint8)
    left = sides[column[row_list]] == 1
    target = np.empty_like(row_list)
    assert divide_rows(column, row_list, sides, target) == left.sum()
    assert_array_equal(target, np.r_[row_list[left], row_list[~left][::-1]])

    raw_score, expected_score = np.ones(9000), np.ones(9000)
    add_by_side(column, row_list, sides, np.array([0.5, 0.25]), raw_score)
    expected_score[row_list] += np.where(left, 0.5, 0.25)
    assert_array_equal(raw_score, expected_score)
