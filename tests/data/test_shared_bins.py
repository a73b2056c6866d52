"""In tasks of joblib bins of the same values are made once, and kept while their threads live."""

import time

import numpy as np
import pytest
from joblib import Parallel, delayed
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from sklboost.data import features as module
from sklboost.data.features import training_bins
from sklboost.data.sparse_table import SparseTable
from sklboost.data.table import Column, Table
from sklboost.engine.parallel import ThreadTeam
from tests.data.test_binning import NO_WEIGHT, make_X
from tests.data.test_features import binned_matrix

pytestmark = pytest.mark.interpreted


def bins_of(X, weight=NO_WEIGHT, max_bin=16):
    with ThreadTeam(1) as team:
        return training_bins(team, X, weight, max_bin)


def n_made_when_threads_have_ended():
    """Return the number of bins still kept; joblib does not wait until its threads have ended."""
    limit = time.monotonic() + 30
    while len(module._made) > 0 and time.monotonic() < limit:
        time.sleep(0.001)
    return len(module._made)


@pytest.fixture(autouse=True)
def nothing_kept_by_earlier_tests():
    assert n_made_when_threads_have_ended() == 0


def in_one_task(function, *arguments):
    """Call it in the first of two tasks in threads; joblib runs a single one without any."""
    calls = [delayed(function)(*arguments), delayed(int)()]
    return Parallel(n_jobs=2, backend="threading")(calls)[0]


def assert_same_arrays(group, other):
    for array, twin in zip(group, other, strict=True):
        assert_array_equal(array, twin)


def table_of(X, n_categories=0):
    return Table([Column(column) for column in X.T], np.full(X.shape[1], n_categories))


@pytest.mark.parametrize("form", [np.array, np.asfortranarray, table_of])
def test_the_same_values_are_binned_once_in_a_task(form):
    X = make_X(50)

    def twice():
        return bins_of(form(X)), bins_of(form(X.copy()))

    (matrix, cuts), (again, same_cuts) = in_one_task(twice)
    assert again is matrix
    assert same_cuts is cuts
    expected, expected_cuts = bins_of(form(X))
    assert_same_arrays(matrix, expected)
    assert_same_arrays(cuts, expected_cuts)


def test_whatever_bins_depend_on_makes_others():
    X = np.random.default_rng(0).integers(0, 9, size=(40, 2)).astype(np.float64)
    changed, weight = X.copy(), np.ones(40)
    changed[7, 1] += 1.0
    heavier = weight.copy()
    heavier[3] = 2.0
    square = np.random.default_rng(1).normal(size=(30, 30))
    cases = [
        (square,),
        (square.T,),  # the same memory in another order
        (X,),
        (changed,),
        (X[:39],),
        (X.reshape(20, 4),),
        (X.astype(np.float32),),
        (table_of(X, n_categories=int(X.max()) + 1),),
        (X, weight),
        (X, heavier),
        (X, NO_WEIGHT, 4),
    ]

    def all_of_them():
        return [bins_of(*case) for case in cases]

    found = in_one_task(all_of_them)
    assert len({id(matrix.rows) for matrix, _ in found}) == len(cases)
    for case, (matrix, cuts) in zip(cases, found, strict=True):
        expected, expected_cuts = bins_of(*case)
        assert_same_arrays(matrix, expected)
        assert_same_arrays(cuts, expected_cuts)


def test_outside_of_tasks_nothing_is_kept():
    X = make_X(30)
    assert bins_of(X)[0] is not bins_of(X)[0]
    assert len(module._made) == 0


def test_everything_is_freed_when_the_threads_have_ended():
    X = make_X(30)

    def number_kept():
        bins_of(X)
        return len(module._made)

    assert in_one_task(number_kept) == 1
    assert n_made_when_threads_have_ended() == 0


def test_what_was_not_used_for_longest_goes_first(monkeypatch):
    first, second, third = (np.full((40, 3), number) for number in (0.0, 1.0, 2.0))
    n_bytes = sum(array.nbytes for group in bins_of(first) for array in group)
    monkeypatch.setattr(module, "_ROOM", 2 * n_bytes)

    def use():
        kept = [bins_of(X)[0] for X in (first, second, first, third)]
        rows = [matrix.rows for matrix in kept]
        del kept
        return rows, bins_of(first)[0].rows, bins_of(second)[0].rows

    rows, first_rows, second_rows = in_one_task(use)
    assert rows[0] is rows[2] is first_rows
    assert second_rows is not rows[1]


def test_cuts_count_as_kept_memory(monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 200))
    monkeypatch.setattr(module, "_ROOM", 3 * 2 * X.size)  # of bins alone there is room for three

    def n_kept():
        for number in range(3):
            bins_of(X + number, max_bin=256)
        return len(module._memory.kept)

    assert in_one_task(n_kept) == 0


def test_large_binned_and_sparse_features_are_not_kept(monkeypatch):
    X = make_X(30)
    B, sparse = binned_matrix(X), SparseTable(csr_array(np.nan_to_num(X)))

    def n_kept(features):
        bins_of(features)
        return len(module._memory.kept)

    assert in_one_task(n_kept, X) == 1
    assert in_one_task(n_kept, B) == 0
    assert in_one_task(n_kept, sparse) == 0
    monkeypatch.setattr(module, "_MOST_VALUES", X.size - 1)
    assert in_one_task(n_kept, X) == 0
