"""The array-like: what it tells of itself, how rows are chosen, copies of it."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from sklboost.data.binned_matrix import BinnedMatrix, Binning
from sklboost.engine.structs import BinCuts

pytestmark = pytest.mark.interpreted


def make_binning(cut=0.5, missing=0, names=None, max_bin=256):
    """Return the binning of three features: two bins, two bins, one bin."""
    values = np.array([0.0, 1.0, 0.0, 1.0, 7.0])
    cuts = BinCuts(np.array([cut, 0.5]), np.array([0, 1, 2, 2]), values, values, np.zeros(3, int))
    return Binning(cuts, np.array([missing, 0, 0]), max_bin, names, None, np.nan)


def make_matrix(n_rows=6, dtype=np.uint8, **binning):
    bins = np.arange(n_rows * 3).reshape(n_rows, 3) % 2
    return BinnedMatrix(bins.astype(dtype), make_binning(**binning))


@pytest.fixture
def matrix():
    """Six rows of three features."""
    return make_matrix()


def test_attributes(matrix):
    assert matrix.shape == (6, 3)
    assert len(matrix) == 6
    assert matrix.ndim == 2
    assert matrix.size == 18
    assert matrix.dtype == np.uint8
    assert matrix.nbytes == 18
    assert make_matrix(dtype=np.uint16).nbytes == 36
    assert matrix.max_bin == 256
    assert matrix.feature_names_in_ is None
    assert repr(make_matrix(2000)) == (
        "<BinnedMatrix of 2,000 rows and 3 features, max_bin=256, uint8>"
    )


ROWS = {
    "slice": slice(1, 4),
    "slice with a step": slice(None, None, 2),
    "slice backwards": slice(None, None, -1),
    "empty slice": slice(3, 3),
    "array": np.array([4, 0, 4]),
    "negative": np.array([-1, -6]),
    "list": [5, 1],
    "empty list": [],
    "mask": np.array([True, False, True, False, False, True]),
    "list of bool": [True, False, True, False, False, True],
    "pandas": pd.Series([2, 3]),
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_rows_are_chosen_as_those_of_an_array(matrix, rows):
    for chosen in (matrix[rows], matrix[rows, ...], matrix[rows, :]):
        assert isinstance(chosen, BinnedMatrix)
        assert_array_equal(chosen.bins, matrix.bins[rows])
        assert chosen.bins.flags.c_contiguous
        assert chosen.binning is matrix.binning  # the cuts are not copied


def test_a_contiguous_slice_is_a_view(matrix):
    assert np.shares_memory(matrix[2:5].bins, matrix.bins)
    assert not np.shares_memory(matrix[::2].bins, matrix.bins)


@pytest.mark.parametrize("row", [0, np.int64(2), -1, None, [[0, 1]], np.ones((6, 3), dtype=bool)])
def test_what_does_not_choose_rows(matrix, row):
    with pytest.raises(TypeError, match=r"(?s)^B\[.*a slice, a list of row numbers or a mask"):
        matrix[row]
    with pytest.raises(TypeError, match=r"^B\[0\]: "):
        list(matrix)  # nor is it a sequence of rows


@pytest.mark.parametrize("rest", [(1,), ([0, 1],), (slice(1),), ("a",), (..., ...), ()])
def test_columns_cannot_be_chosen(matrix, rest):
    with pytest.raises(TypeError, match=r"only the rows .* choose the columns before bin_features"):
        matrix[(slice(None), *rest)]


def test_rows_that_are_not_there(matrix):
    with pytest.raises(IndexError):
        matrix[[6]]
    with pytest.raises(IndexError):
        matrix[[True, False]]


@pytest.mark.parametrize("use", [np.asarray, np.array, lambda m: np.asarray(m, float)])
def test_bins_are_not_taken_for_values(matrix, use):
    with pytest.raises(TypeError, match=r"<BinnedMatrix .* cannot become an array.*raw values"):
        use(matrix)


def test_it_cannot_be_written_to(matrix):
    with pytest.raises(TypeError, match="item assignment"):
        matrix[0:1] = matrix[1:2]
    with pytest.raises(ValueError, match="read-only"):
        matrix.bins[0, 0] = 1
    bins = np.zeros((2, 3), dtype=np.uint8)
    BinnedMatrix(bins, make_binning())
    assert bins.flags.writeable  # the array given is left as it was


def test_a_pickled_slice_leaves_the_other_rows_behind():
    assert len(pickle.dumps(make_matrix(100_000)[10:20])) < 5000


def test_the_digest_tells_binnings_apart():
    names = np.array(["a", "b", "c"], dtype=object)
    digests = [
        make_binning().digest,
        make_binning(cut=np.nextafter(0.5, 1)).digest,
        make_binning(missing=1).digest,
        make_binning(names=names).digest,
        make_binning(names=names[::-1]).digest,
    ]
    assert len(set(digests)) == 5
    assert make_binning(names=names.copy()).digest == digests[3]
    assert make_binning(max_bin=99).digest == digests[0]  # not what bins mean
    # which of the equal zeros is met first depends on how the values are sorted
    assert make_binning(cut=-0.0).digest == make_binning(cut=0.0).digest
