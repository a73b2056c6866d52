"""Bins in a folder: opened again, chosen from, copied to other processes, fitted on; same bits."""

import copy
import enum
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from sklboost import (
    BinnedMatrix,
    XGBClassifierLite,
    XGBDistributionLite,
    XGBRankerLite,
    XGBRegressorLite,
    XGBSurvivalLite,
    bin_features,
    open_bins,
)
from sklboost.data import raw_values as row_arrays
from sklboost.tree.core import workspace
from tests.estimators.test_binned_matrix import assert_same_model

Kind = enum.Enum("Kind", "A B C")
N_ROWS = 5000
RANDOM = np.random.default_rng(0)


def make_frame(n_rows=N_ROWS):
    X = pd.DataFrame(RANDOM.normal(size=(n_rows, 4)), columns=list("abcd"))
    X.loc[::7, "c"] = np.nan
    X["town"] = pd.Categorical(RANDOM.choice(["Bath", "Rome", "York"], n_rows))
    X["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(RANDOM.integers(0, 99, n_rows), "D")
    return X


X = make_frame()
SIGNAL = 2 * X["a"] + X["b"] ** 2 + (X["town"] == "York") + X["c"].fillna(3)
LABELS = np.digitize(SIGNAL, [2, 4])
WEIGHT = RANDOM.uniform(0.5, 3, N_ROWS)


@pytest.fixture(scope="module")
def in_memory():
    return bin_features(X)


@pytest.fixture
def on_disk(tmp_path, monkeypatch):
    """Return the same bins on disk, with blocks so small that there are many."""
    monkeypatch.setattr(row_arrays, "BLOCK_ROWS", 300)
    monkeypatch.setattr(workspace, "BLOCK_ROWS", 300)
    return bin_features(X, path=tmp_path / "bins")


def assert_same_matrix(one, other):
    assert_array_equal(one.bins, other.bins)
    assert one.binning.digest == other.binning.digest
    assert repr(one) == repr(other)


def test_bins_are_the_same_and_open_again(on_disk, in_memory, tmp_path):
    assert_same_matrix(on_disk, in_memory)
    opened = open_bins(str(tmp_path / "bins"))
    assert_same_matrix(opened, in_memory)
    assert type(opened) is BinnedMatrix
    assert_array_equal(opened.columns, in_memory.bins.T)
    assert in_memory.columns is None
    assert list(opened.feature_names_in_) == list(X.columns)
    model = XGBRegressorLite(n_estimators=3).fit(on_disk, SIGNAL)
    assert_array_equal(model.predict(opened), model.predict(X))
    for part in ("cuts", "encodings"):
        assert json.loads((tmp_path / "bins" / "bins.json").read_text())["binning"][part]


@pytest.mark.parametrize(
    "values",
    [
        np.array([[0.0, -np.inf], [1.0, np.inf], [-0.0, np.nan]]),
        np.arange(600, dtype=np.int64)[:, np.newaxis] + 2**60,
        csr_array(np.eye(5)),
        pd.DataFrame({0: [1.0, 2], ("a", 1): [3.0, 4]}),
        pd.DataFrame({("a", 1): [1.0, 2], ("b", 1): [3.0, 4]}),
        pd.DataFrame({"x": pd.Categorical([3, 1, 3])}),
        pd.DataFrame({"x": pd.Categorical(pd.to_datetime(["2020-01-01", "2021-03-04", None]))}),
        pd.DataFrame({"x": np.array([0, 5, 9], "m8[s]"), "y": [True, False, True]}),
    ],
)
def test_every_kind_of_feature_opens_again(values, tmp_path):
    in_memory = bin_features(values, max_bin=16)
    bin_features(values, max_bin=16, path=tmp_path)
    assert_same_matrix(open_bins(tmp_path), in_memory)
    assert open_bins(tmp_path).max_bin == 16


@pytest.mark.parametrize("missing", [-999, np.int64(3), np.float32(0.1)])
def test_a_marker_of_missing_values_of_any_type(missing, tmp_path):
    in_memory = bin_features([[0.0], [-999.0], [3.0]], missing=missing)
    bin_features([[0.0], [-999.0], [3.0]], missing=missing, path=tmp_path)
    assert_same_matrix(open_bins(tmp_path), in_memory)
    assert open_bins(tmp_path).binning.missing == float(missing)


def test_what_a_description_cannot_hold(tmp_path):
    frame = pd.DataFrame({frozenset([object()]): [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"cannot be written to a folder of bins: .* turn these"):
        bin_features(frame, path=tmp_path / "new")
    assert list(tmp_path.iterdir()) == []
    frame = pd.DataFrame({"x": pd.Categorical(list(Kind))})
    with pytest.raises(ValueError, match=r"is of type Kind, .*; turn these into text"):
        bin_features(frame, path=tmp_path / "new")


def test_rows_are_chosen(on_disk, in_memory, tmp_path):
    mask = RANDOM.random(N_ROWS) < 0.5
    for rows in (slice(10, 4000), slice(None, None, 3), mask, np.flatnonzero(mask), [-1, 3], []):
        assert_array_equal(on_disk[rows].bins, in_memory[rows].bins)
        assert (on_disk[rows].columns is None) == (len(on_disk[rows]) < N_ROWS)
    assert np.shares_memory(on_disk[10:20].bins, on_disk.bins)
    with pytest.raises(TypeError, match="a slice, a list of row numbers or a mask"):
        on_disk[3]
    with pytest.raises(IndexError):
        on_disk[[N_ROWS]]
    # what is copied lies in files without a name
    assert sorted(p.name for p in (tmp_path / "bins").iterdir()) == [
        *("bins.json", "columns.npy", "rows.npy")
    ]


def test_copies_are_opened_from_the_folder(on_disk):
    for part in (on_disk, on_disk[100:4900][10:90]):
        for other in (pickle.loads(pickle.dumps(part)), copy.deepcopy(part), copy.copy(part)):
            assert_same_matrix(other, part)
    assert (
        abs(len(pickle.dumps(on_disk)) - len(pickle.dumps(on_disk[5:7]))) < 10
    )  # they have the place only
    chosen = on_disk[::2]
    assert_array_equal(pickle.loads(pickle.dumps(chosen)).bins, chosen.bins)


@pytest.mark.parametrize(
    "damage",
    [
        ("digest", "0"),
        ("max_bin", 1),
        ("has_missing", None),
        ("has_missing", "x"),
        ("feature_names", 3),
    ],
)
def test_a_damaged_description_is_refused(on_disk, tmp_path, damage):
    path = tmp_path / "bins" / "bins.json"
    document = json.loads(path.read_text())
    document["binning"][damage[0]] = damage[1]
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=r"bins\.json"):
        open_bins(path.parent)


REGRESSION = (XGBRegressorLite, SIGNAL)
FITS = {
    "plain": (*REGRESSION, {}),
    "float32": (XGBRegressorLite, SIGNAL.astype(np.float32), {}),
    "deep": (*REGRESSION, dict(max_depth=12, min_child_weight=3)),
    "lossguide": (*REGRESSION, dict(grow_policy="lossguide", max_leaves=20)),
    "subsample": (*REGRESSION, dict(subsample=0.4, colsample_bytree=0.5)),
    "by gradient": (*REGRESSION, dict(subsample=0.4, sampling_method="gradient_based")),
    "renewed leaves": (*REGRESSION, dict(objective="reg:absoluteerror")),
    "dart": (*REGRESSION, dict(booster="dart", rate_drop=0.5)),
    "forest": (*REGRESSION, dict(num_parallel_tree=3, subsample=0.5)),
    "stopped": (*REGRESSION, dict(early_stopping_rounds=2, refit=True)),
    "two classes": (XGBClassifierLite, LABELS > 0, dict(calibrated_prior=True)),
    "classes": (XGBClassifierLite, LABELS.astype(str), {}),
    "vector trees": (XGBClassifierLite, LABELS, dict(multi_strategy="multi_output_tree")),
    "targets": (XGBRegressorLite, np.column_stack([SIGNAL, -SIGNAL]), {}),
    "ranks": (XGBRankerLite, LABELS, {}),
    "distribution": (XGBDistributionLite, SIGNAL, {}),
    "times": (XGBSurvivalLite, np.exp(SIGNAL / 4) * np.where(LABELS > 0, 1, -1), {}),
}


@pytest.mark.parametrize("name", FITS)
def test_fits_have_the_same_bits(name, on_disk, in_memory):
    estimator, y, settings = FITS[name]
    y = np.array(y)
    y.setflags(write=False)
    settings = dict(n_estimators=4, n_jobs=2, random_state=0) | settings
    given = dict(qid=np.arange(N_ROWS) // 10) if name == "ranks" else dict(sample_weight=WEIGHT)
    model = estimator(**settings).fit(in_memory, y, **given)
    again = estimator(**settings).fit(on_disk, y, **given)
    assert_same_model(again, model)
    assert_array_equal(again.predict(on_disk), model.predict(X))
    assert again.evals_result_ == model.evals_result_


def test_validation_data_on_disk(on_disk, in_memory):
    y = np.array(SIGNAL)

    def fit(rows):
        model = XGBRegressorLite(n_estimators=20, early_stopping_rounds=3, refit=True)
        return model.fit(rows[:4000], y[:4000], X_val=rows[4000:], y_val=y[4000:])

    one, other = fit(on_disk), fit(in_memory)
    assert one.evals_result_ == other.evals_result_
    assert_same_model(one, other)


def test_training_goes_on(on_disk, in_memory):
    first = XGBRegressorLite(n_estimators=3).fit(in_memory, SIGNAL)
    both = [
        XGBRegressorLite(n_estimators=6).fit(bins, SIGNAL, init_model=first)
        for bins in (in_memory, on_disk)
    ]
    assert_same_model(both[1], both[0])
    margin = np.array(SIGNAL) / 2
    both = [
        XGBRegressorLite(n_estimators=3).fit(bins, SIGNAL, base_margin=margin)
        for bins in (in_memory, on_disk)
    ]
    assert_same_model(both[1], both[0])


def test_what_fits_write_may_lie_elsewhere(on_disk, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    opened, used = open_bins(tmp_path / "bins", scratch=str(scratch)), set()
    new_file = row_arrays._new_file
    monkeypatch.setattr(row_arrays, "_new_file", lambda path: used.add(path) or new_file(path))
    model = XGBRegressorLite(n_estimators=2)
    for rows in (opened, pickle.loads(pickle.dumps(opened)), opened[::2]):
        model.fit(rows, SIGNAL[: len(rows)])
    assert used == {scratch}
    model.fit(on_disk, SIGNAL)
    assert used == {scratch, tmp_path / "bins"}
