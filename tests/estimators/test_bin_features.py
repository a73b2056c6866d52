"""bin_features: its parameters, the data it takes, the cuts it chooses."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import sklboost
from sklboost import BinnedMatrix, bin_features
from sklboost.data import raw_values
from sklboost.estimators import progress
from tests.data.test_binning import binned, make_X

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("max_bin", [4, 256])
def test_bins_are_those_of_a_fit(max_bin):
    X = make_X(60)
    B = bin_features(X, max_bin=max_bin)
    assert type(B) is sklboost.BinnedMatrix is BinnedMatrix
    assert_array_equal(B.bins, binned(X, max_bin).rows)
    assert B.max_bin == max_bin


def test_every_form_of_the_data():
    X = np.round(make_X(30), 1).astype(np.float32).astype(float)
    expected = bin_features(X)
    for other in (X.astype(np.float32), np.asfortranarray(X), X.tolist(), pd.DataFrame(X)):
        B = bin_features(other)
        assert_array_equal(B.bins, expected.bins)
        assert B.binning.digest == expected.binning.digest


def test_names_of_a_frame_are_kept():
    B = bin_features(pd.DataFrame(np.zeros((3, 2)), columns=["b", "a"]))
    assert list(B.feature_names_in_) == ["b", "a"]
    assert B[1:].feature_names_in_ is B.feature_names_in_


def test_names_that_are_not_text_are_none():
    assert bin_features(pd.DataFrame(np.zeros((3, 2)))).feature_names_in_ is None
    assert bin_features(np.zeros((3, 2))).feature_names_in_ is None


def test_weights_move_the_cuts():
    X = np.arange(100.0)[:, np.newaxis]
    weight = np.where(X[:, 0] < 10, 9.0, 1.0)
    assert (bin_features(X, 2).bins == 0).sum() == 50
    assert (bin_features(X, 2, sample_weight=weight).bins == 0).sum() == 10
    assert (bin_features(X, 2, sample_weight=3.0).bins == 0).sum() == 50


def test_rows_of_weight_zero_have_bins_but_no_say_in_the_cuts():
    X = np.array([[1.0], [2.0], [3.0], [-9.0], [2.4], [99.0], [np.nan]])
    B = bin_features(X, 3, sample_weight=[1, 1, 1, 0, 0, 0, 0])
    assert_array_equal(B.bins[:, 0], [0, 1, 2, 0, 1, 2, 3])
    assert_array_equal(B.binning.cuts.cuts, [1.5, 2.5])
    assert list(B.binning.has_missing) == [1]


def test_missing_values_of_weight_zero_take_no_bin_from_the_others():
    X = np.append(np.arange(8.0), np.nan)[:, np.newaxis]
    B = bin_features(X, 4, sample_weight=np.append(np.ones(8), 0.0))
    assert_array_equal(B.bins[:, 0], [0, 0, 1, 1, 2, 2, 3, 3, 4])


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (dict(max_bin=1), "^max_bin=1: it must be an integer from 2 to 65535$"),
        (dict(max_bin=70_000), "max_bin=70000"),
        (dict(n_jobs=0), "^n_jobs=0: it must be"),
        (dict(sample_weight=[1.0, -1.0]), r"sample_weight\[1\]=-1"),
        (dict(sample_weight=[1.0]), r"inconsistent numbers of samples: \[1, 2\]"),
        (dict(X=[1.0, 2.0]), "Expected 2D array, got 1D array"),
        (dict(X=np.empty((0, 2))), r"0 sample\(s\).* by bin_features"),
        (dict(X=[["a"], ["b"]]), r"^text is not a number: column 0 \(object, such as 'a'\)"),
    ],
)
def test_errors(parameters, words):
    with pytest.raises(ValueError, match=words):
        bin_features(**(dict(X=np.zeros((2, 2))) | parameters))


def test_what_is_binned_is_not_binned_again():
    with pytest.raises(TypeError, match="cannot become an array"):
        bin_features(bin_features(np.zeros((2, 2))))


def test_blocks_of_a_memory_map_and_progress(tmp_path, monkeypatch, capsys):
    X = make_X(60)
    np.save(tmp_path / "X.npy", X)
    monkeypatch.setattr(raw_values, "ARRAY_BLOCK_VALUES", 7 * X.shape[1])
    monkeypatch.setattr(progress, "_READING_IS_LONG", 0.0)
    monkeypatch.setattr(progress, "_BAR_INTERVAL", 0.0)
    B = bin_features(np.load(tmp_path / "X.npy", mmap_mode="r"))
    assert "120/120" in capsys.readouterr().err  # rows are read twice
    assert_array_equal(B.bins, binned(X, 256).rows)
    bin_features(X, sample_weight=np.arange(60.0), verbose=0)
    assert capsys.readouterr().err == ""
    bin_features(X, sample_weight=np.arange(60.0))  # a row without weight: one fewer for the cuts
    assert "119/119" in capsys.readouterr().err
