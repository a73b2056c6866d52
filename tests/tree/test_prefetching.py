import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.engine.compiling import kernel
from sklboost.tree.core import partition, prefetching
from sklboost.tree.core.histogram import add_rows
from sklboost.tree.core.partition import add_by_side, divide_rows
from sklboost.tree.core.prefetching import (
    bins_are_scattered,
    prefetch_bins,
    prefetch_values,
    row_ahead,
    values_are_scattered,
)
from sklboost.tree.core.workspace import NARROW_CELLS
from sklboost.tree.options import several_outputs
from sklboost.tree.options.several_outputs import add_rows_to_strip


@kernel
def judge(bins, row_list):
    return bins_are_scattered(bins, row_list), values_are_scattered(row_list)


@kernel
def look_ahead(row_list, position, distance):
    return row_ahead(row_list, position, distance)


def every(step, n_rows=2000):
    return np.arange(0, n_rows, step, dtype=np.uint32)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("step", "scattered"),
    [
        (1, (False, False)),
        (3, (False, False)),
        (4, (True, False)),
        (40, (True, False)),
        (41, (True, True)),
    ],
)
def test_rows_are_scattered_if_they_are_far_apart_in_memory(step, scattered):
    bins = np.zeros((2000, 20), dtype=np.uint8)
    assert judge(bins, every(step)) == scattered
    assert judge(bins, every(step)[::-1].copy()) == scattered


@pytest.mark.interpreted
def test_wider_bins_are_farther_apart_and_one_row_is_not():
    assert judge(np.zeros((2000, 20), dtype=np.uint16), every(2)) == (True, False)
    assert judge(np.zeros((2000, 65), dtype=np.uint8), every(1)) == (True, False)
    assert judge(np.zeros((2000, 64), dtype=np.uint8), every(1)) == (False, False)
    for rows in (every(2000)[:0], every(2000)):
        assert judge(np.zeros((2000, 200), dtype=np.uint8), rows) == (False, False)


@pytest.mark.interpreted
def test_the_row_ahead_is_the_last_one_at_the_end_of_the_list():
    rows = np.array([9, 7, 5, 0], dtype=np.uint32)
    ahead = [look_ahead(rows, position, 2) for position in range(4)]
    assert ahead == [5, 0, 0, 0]


def in_python(function):
    return getattr(function, "py_func", function)


@pytest.fixture
def prefetched(monkeypatch):
    """Note the arguments of prefetches instead of making them: for functions in plain Python."""
    noted = []

    def note(level):
        return lambda array, row, column: noted.append((level, len(array), int(row), int(column)))

    monkeypatch.setattr(prefetching, "prefetch", note(1))
    monkeypatch.setattr(prefetching, "prefetch_l2", note(2))
    monkeypatch.setattr(prefetching, "row_ahead", in_python(row_ahead))
    return noted


def test_both_ends_of_rows_to_come_are_prefetched(prefetched):
    rows, columns = every(3), (np.uint64(2), np.uint64(20))
    bins = np.zeros((2000, 30), dtype=np.uint8)
    in_python(prefetch_bins)(bins, rows, 100, columns)
    near, far = rows[104], rows[164]
    expected = [(1, 2000, near, 2), (1, 2000, near, 19), (2, 2000, far, 2), (2, 2000, far, 19)]
    assert prefetched == expected


@pytest.mark.parametrize("n_each", [1, 4])
def test_the_values_of_a_row_to_come_are_prefetched(prefetched, n_each):
    rows, values = every(3), np.zeros(2000 * n_each)
    for position in (100, len(rows) - 1):
        in_python(prefetch_values)(values, np.uint64(n_each), rows, position)
    assert [row for _, _, row, _ in prefetched] == [n_each * rows[164], n_each * rows[-1]]
    assert {level for level, *_ in prefetched} == {2}


@pytest.fixture
def noted_values(monkeypatch):
    """Note how many values a row has whenever values are prefetched, in plain Python."""
    noted = []

    def note(values, n_each, row_list, position):
        noted.append(int(n_each))

    for module in (partition, several_outputs):
        monkeypatch.setattr(module, "prefetch_values", note)
    monkeypatch.setattr(partition, "values_are_scattered", in_python(values_are_scattered))
    monkeypatch.setattr(prefetching, "mean_step", in_python(prefetching.mean_step))
    return noted


@pytest.mark.parametrize(("step", "n_prefetched"), [(40, 0), (50, 40)])
def test_routing_and_leaf_values_prefetch_scattered_rows_only(noted_values, step, n_prefetched):
    column, rows = np.zeros(2000, dtype=np.uint8), every(step)
    sides = np.ones(1, dtype=np.uint8)
    in_python(divide_rows)(column, rows, sides, np.empty_like(rows))
    assert noted_values == n_prefetched * [1]
    noted_values.clear()
    in_python(add_by_side)(column, rows, sides, np.zeros(2), np.zeros(2000))
    assert noted_values == 2 * n_prefetched * [1]  # the bin and the raw score


@pytest.mark.parametrize(("step", "n_prefetched"), [(1, 0), (50, 40)])
def test_strips_prefetch_scattered_rows_only(noted_values, monkeypatch, step, n_prefetched):
    for name in ("bins_are_scattered", "width_of_four", "add_row_of_four"):
        monkeypatch.setattr(several_outputs, name, in_python(getattr(several_outputs, name)))
    monkeypatch.setattr(several_outputs, "prefetch_bins", lambda *arguments: None)
    bins, packed = np.zeros((2000, 3), dtype=np.uint8), np.ones(8000, dtype=np.int64)
    cells = np.zeros(3 * NARROW_CELLS * 4, dtype=np.int64)
    in_python(add_rows_to_strip)(bins, packed, every(step), (0, 3), cells)
    assert noted_values == n_prefetched * [4]
    assert cells.sum() == 12 * len(every(step))


LISTS = {
    "none": every(9000, 0),
    "one row": every(9000, 1),
    "in order": every(1),
    "backwards": every(1)[::-1].copy(),
    "bins scattered": every(7, 9000),
    "all scattered": every(50, 9000),
    "all scattered, backwards": every(50, 9000)[::-1].copy(),
}


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("name", list(LISTS))
def test_kernels_do_the_same_with_scattered_rows(name, dtype):
    row_list, (first, stop) = LISTS[name], (3, 20)
    random = np.random.default_rng(len(row_list))
    n_bins = NARROW_CELLS if dtype == np.uint8 else 700
    bins = random.integers(0, min(n_bins, np.iinfo(dtype).max), (9000, 20)).astype(dtype)
    packed = random.integers(-(2**40), 2**40, (9000, 4))

    sums = np.zeros((20, n_bins), dtype=np.int64)
    add_rows(bins, packed[:, 0].copy(), row_list, (first, stop), sums.reshape(-1))
    expected = np.zeros((20, n_bins, 4), dtype=np.int64)
    columns = np.arange(first, stop)
    for row in row_list:
        expected[columns, bins[row, first:stop]] += packed[row]
    assert_array_equal(sums, expected[:, :, 0])

    of_four = np.zeros((20, n_bins, 4), dtype=np.int64)
    add_rows_to_strip(bins, packed.reshape(-1), row_list, (first, stop), of_four.reshape(-1))
    assert_array_equal(of_four, expected)

    column, sides = bins[:, 5].copy(), random.integers(0, 2, n_bins).astype(np.uint8)
    left = sides[column[row_list]] == 1
    target = np.empty_like(row_list)
    assert divide_rows(column, row_list, sides, target) == left.sum()
    assert_array_equal(target, np.r_[row_list[left], row_list[~left][::-1]])

    raw_score, expected_score = np.ones(9000), np.ones(9000)
    add_by_side(column, row_list, sides, np.array([0.5, 0.25]), raw_score)
    expected_score[row_list] += np.where(left, 0.5, 0.25)
    assert_array_equal(raw_score, expected_score)
