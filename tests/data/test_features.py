"""Bins made before become the same training bins, and values that stand for them."""

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.data import features
from sklboost.data.binned_matrix import BinnedMatrix, Binning
from sklboost.data.binning import apply_cuts
from sklboost.data.cuts import find_cuts
from sklboost.data.features import raw_blocks
from sklboost.engine.parallel import ThreadTeam
from tests.data.test_binning import NO_WEIGHT, assert_same_matrix, binned, make_X
from tests.data.test_raw_values import elements

inf, nan = math.inf, math.nan


def binned_matrix(X, max_bin=256):
    with ThreadTeam(1) as team:
        cuts, has_missing = find_cuts(team, X, NO_WEIGHT, max_bin)
        bins = apply_cuts(team, X, cuts, has_missing).rows
    return BinnedMatrix(bins, Binning(cuts, has_missing, max_bin, None, None, math.nan))


def values_of(B, n_threads=1):
    """Put the blocks of values together, and the ranges of their rows."""
    with ThreadTeam(n_threads) as team:
        blocks = [(rows, elements(raw)) for rows, raw in raw_blocks(team, B)]
    return np.concatenate([values for _, values in blocks]), [rows for rows, _ in blocks]


@pytest.mark.parametrize("n_rows", [1, 256, 257, 3000])
@pytest.mark.parametrize("max_bin", [4, 256, 1000])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_training_bins_are_those_of_the_raw_values(n_rows, max_bin, n_threads):
    X = make_X(n_rows)
    expected = binned(X, max_bin)
    for features_ in (X, np.asfortranarray(X), binned_matrix(X, max_bin)):
        matrix = binned(features_, max_bin, n_threads)
        assert_same_matrix(matrix, expected)
        # kernels know one kind of each
        for array, other in zip(matrix, expected, strict=True):
            assert array.flags.writeable == other.flags.writeable
            assert array.flags.c_contiguous


@pytest.mark.interpreted
def test_values_stand_for_the_middle_of_their_bins():
    tiny, huge = math.ulp(0.0), 1.7e308
    X = np.array(
        [
            [0.0, 1.0, -inf, -inf, huge, tiny],
            [4.0, nan, -inf, 5.0, 1.5e308, tiny],
            [10.0, 2.0, 3.0, nan, -huge, -tiny],
            [12.0, 5.0, inf, inf, -huge, -tiny],
        ]
    )
    values, _ = values_of(binned_matrix(X, max_bin=2))
    expected = np.array(
        [
            [2.0, 3.0, -inf, -inf, 1.6e308, tiny],
            [2.0, nan, -inf, -inf, 1.6e308, tiny],
            [11.0, 3.0, inf, nan, -huge, -tiny],
            [11.0, 3.0, inf, -inf, -huge, -tiny],
        ]
    )
    assert_array_equal(values, expected)


@pytest.mark.interpreted
@pytest.mark.parametrize("n_rows", [1, 4, 5, 8, 10])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_blocks_of_rows(n_rows, n_threads, monkeypatch):
    X = make_X(n_rows)
    monkeypatch.setattr(features, "BLOCK_VALUES", 4 * 6 + 5)  # four rows, not quite five
    values, ranges = values_of(binned_matrix(X), n_threads)
    assert_array_equal(values, X)  # every distinct value has a bin
    assert ranges == [slice(i, min(i + 4, n_rows)) for i in range(0, n_rows, 4)]
    monkeypatch.setattr(features, "BLOCK_VALUES", 1)  # less than one row
    assert_array_equal(values_of(binned_matrix(X), n_threads)[0], X)
