"""bin_features, and estimators and scikit-learn's tools on features that were binned before."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import (
    GridSearchCV,
)

from sklboost import XGBClassifierLite, XGBRegressorLite, bin_features
from sklboost.data import features, raw_values
from sklboost.data.features import join_rows
from sklboost.estimators import progress
from tests.data.test_binning import binned, make_X

ESTIMATORS = [XGBRegressorLite, XGBClassifierLite]
METHODS = ["predict", "predict_proba", "decision_function", "apply", "staged_predict"]


def make_data(n_rows=700, n_classes=2):
    """Return features of many values and few, missing and infinite ones; classes of their sum."""
    random = np.random.default_rng(n_classes)
    X = random.normal(size=(n_rows, 5))
    X[:, 1] = np.round(X[:, 1], 1)
    X[:, 4] = random.choice([-np.inf, 0.0, 1.0, np.inf], n_rows)
    X[::7, 2] = np.nan
    X[3::11, 4] = np.nan
    signal = np.nan_to_num(X, posinf=2, neginf=-2).sum(axis=1) + random.normal(size=n_rows)
    return X, np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))


def small(estimator, **parameters):
    return estimator(**(dict(n_estimators=6, max_depth=4) | parameters))


def assert_same_model(one, other):
    assert one.model_.nodes.tobytes() == other.model_.nodes.tobytes()
    assert_array_equal(one.model_.base_score, other.model_.base_score)


def assert_same_predictions(model, one, other):
    """Compare all that a model says of rows in two forms, bit for bit."""
    for name in METHODS:
        if hasattr(model, name):
            pair = [getattr(model, name)(rows) for rows in (one, other)]
            if name == "staged_predict":
                pair = [np.stack(list(stages)) for stages in pair]
            assert pair[0].dtype == pair[1].dtype
            assert_array_equal(*pair)


# --- bin_features -------------------------------------------------------------------------------


@pytest.mark.interpreted
def test_weights_move_the_cuts():
    X = np.arange(100.0)[:, np.newaxis]
    weight = np.where(X[:, 0] < 10, 9.0, 1.0)
    assert (bin_features(X, 2).bins == 0).sum() == 50
    assert (bin_features(X, 2, sample_weight=weight).bins == 0).sum() == 10
    assert (bin_features(X, 2, sample_weight=3.0).bins == 0).sum() == 50


@pytest.mark.interpreted
def test_rows_of_weight_zero_have_bins_but_no_say_in_the_cuts():
    X = np.array([[1.0], [2.0], [3.0], [-9.0], [2.4], [99.0], [np.nan]])
    B = bin_features(X, 3, sample_weight=[1, 1, 1, 0, 0, 0, 0])
    assert_array_equal(B.bins[:, 0], [0, 1, 2, 0, 1, 2, 3])
    assert_array_equal(B.binning.cuts.cuts, [1.5, 2.5])
    assert list(B.binning.has_missing) == [1]


@pytest.mark.interpreted
def test_missing_values_of_weight_zero_take_no_bin_from_the_others():
    X = np.append(np.arange(8.0), np.nan)[:, np.newaxis]
    B = bin_features(X, 4, sample_weight=np.append(np.ones(8), 0.0))
    assert_array_equal(B.bins[:, 0], [0, 0, 1, 1, 2, 2, 3, 3, 4])


@pytest.mark.interpreted
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
def test_errors_of_bin_features(parameters, words):
    with pytest.raises(ValueError, match=words):
        bin_features(**(dict(X=np.zeros((2, 2))) | parameters))


@pytest.mark.interpreted
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


# --- the same model ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "max_bin", "weighted", "dtype", "order"),
    [
        (XGBRegressorLite, 16, False, np.float32, "C"),
        (XGBClassifierLite, 16, True, np.float64, "F"),
        (XGBRegressorLite, 256, True, np.float32, "F"),
        (XGBClassifierLite, 256, False, np.float64, "C"),
        (XGBRegressorLite, 1000, False, np.float64, "F"),
        (XGBClassifierLite, 1000, True, np.float32, "C"),
    ],
)
def test_same_bits_as_from_raw_values(estimator, max_bin, weighted, dtype, order):
    X, y = make_data(1200, n_classes=3)
    X = np.asarray(X, dtype=dtype, order=order)
    weight = np.random.default_rng(0).integers(0, 3, len(y)) if weighted else None
    B = bin_features(X, max_bin, sample_weight=weight)
    assert B.dtype == (np.uint16 if max_bin == 1000 else np.uint8)
    raw, model = (
        small(estimator, max_bin=max_bin).fit(rows, y, sample_weight=weight) for rows in (X, B)
    )
    assert_same_model(raw, model)
    counted = slice(None) if weight is None else weight > 0
    assert_same_predictions(model, B[counted], X[counted])
    assert_array_equal(model.predict(X), raw.predict(X))


@pytest.mark.interpreted
def test_rows_of_a_matrix_train_as_their_values_do_if_every_value_has_a_bin():
    random = np.random.default_rng(0)
    X = random.integers(0, 9, (80, 3)).astype(float)
    X[::9, 1] = np.nan
    y = np.nan_to_num(X).sum(axis=1) + random.normal(size=80)
    B = bin_features(X)
    rows = np.flatnonzero(X[:, 0] != 4)  # a bin is empty
    raw = small(XGBRegressorLite).fit(X[rows], y[rows])
    model = small(XGBRegressorLite).fit(B[rows], y[rows])
    assert_same_model(raw, model)
    assert_same_predictions(model, B, X)  # those left out, too


# --- prediction ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "max_bin", "n_classes"),
    [
        (XGBRegressorLite, 2, 3),
        (XGBClassifierLite, 3, 2),
        (XGBRegressorLite, 20, 2),
        (XGBClassifierLite, 256, 3),
    ],
)
def test_rows_are_predicted_as_their_values(estimator, max_bin, n_classes):
    """Whatever rows a model saw: no threshold divides the values of a bin."""
    X, y = make_data(n_classes=n_classes)
    B = bin_features(X, max_bin)
    for rows in (slice(None), slice(0, 300), np.arange(5, 700, 9)):
        settings = dict(max_depth=0, min_child_weight=0.0, pruning="full", max_bin=max_bin)
        model = small(estimator, **settings).fit(B[rows], y[rows])
        assert_same_predictions(model, B, X)


def test_rows_beyond_the_sample_that_the_cuts_are_chosen_from():
    # more than 200,000 rows: bins hold values outside of what the sample showed
    random = np.random.default_rng(0)
    X = random.normal(size=(250_000, 1)) ** 3
    X[::50] = random.choice([-np.inf, np.inf, np.nan], (5000, 1))
    y = np.sin(3 * np.nan_to_num(X[:, 0], posinf=4, neginf=-4))
    B = bin_features(X, max_bin=200)
    cuts = B.binning.cuts
    finite = np.isfinite(X)
    values, bins = X[finite], B.bins[finite]
    assert ((values < cuts.lower[bins]) | (values > cuts.upper[bins])).any()
    model = XGBRegressorLite(n_estimators=3, max_bin=200, max_depth=0).fit(B, y)
    assert len(np.unique(model.apply(B)[:, 0])) > 150  # many thresholds
    assert_same_predictions(model, B, X)


@pytest.mark.interpreted
def test_a_threshold_does_not_divide_a_bin_that_is_empty_in_the_node():
    X = np.array([[0.0], [1.0], [10.0], [14.0], [20.0], [21.0]])
    y = np.array([0.0, 0.0, 9.0, 9.0, 5.0, 5.0])
    B = bin_features(X, max_bin=3)
    assert list(B.bins[:, 0]) == [0, 0, 1, 1, 2, 2]
    rows = [0, 1, 4, 5]  # halfway from 1 to 20 is 10.5, in the bin left out
    model = XGBRegressorLite(max_bin=3, n_estimators=1, min_child_weight=0).fit(B[rows], y[rows])
    assert model.model_.nodes.threshold[0] == 5.5  # the cuts are 5.5 and 17
    assert list(model.apply(X)[:, 0]) == list(model.apply(B)[:, 0]) == [1, 1, 2, 2, 2, 2]


def test_blocks_of_rows_are_predicted_as_all_at_once(monkeypatch):
    X, y = make_data(n_classes=3)
    B = bin_features(X)
    model = small(XGBClassifierLite).fit(B, y)
    monkeypatch.setattr(features, "BLOCK_VALUES", 5 * 64)
    assert_same_predictions(model, B, X)
    assert_same_predictions(model, B[:1], X[:1])
    assert model.score(B, y) == model.score(X, y) > 0.4


# --- what does not fit together ------------------------------------------------------------------


@pytest.mark.interpreted
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_bins_of_other_cuts_are_refused(estimator):
    X, y = make_data(60)
    B, other = bin_features(X), bin_features(X[:40])
    model = small(estimator, n_estimators=1).fit(B[:50], y[:50])
    raw = small(estimator, n_estimators=1).fit(X, y)
    for name in METHODS + ["score"]:
        if not hasattr(model, name):
            continue
        rest = [y[:40]] if name == "score" else []
        for fitted, rows in ((model, other), (raw, B[:40])):
            words = rf"(?s)<BinnedMatrix of 40 rows .*{estimator.__name__}.*pass the raw values"
            with pytest.raises(ValueError, match=words):
                list(getattr(fitted, name)(rows, *rest))


def test_a_refit_joins_bins_with_bins_and_values_with_values():
    X, y = make_data(60)
    B = bin_features(X)
    model = XGBRegressorLite(n_estimators=3, early_stopping_rounds=2, refit=True)
    assert model.fit(B[:40], y[:40], eval_set=[(B[40:], y[40:])]).n_estimators_ >= 1
    with pytest.raises(ValueError, match="both as raw values, or both as rows of one BinnedMatrix"):
        join_rows(B, X)


@pytest.mark.interpreted
def test_max_bin_of_both():
    X, y = make_data(60)
    with pytest.raises(ValueError, match=r"^max_bin=16, but X was binned with max_bin=256: "):
        small(XGBRegressorLite, max_bin=16).fit(bin_features(X), y)
    with pytest.raises(ValueError, match=r"^max_bin=256, but X was binned with max_bin=16: "):
        small(XGBRegressorLite).fit(bin_features(X, 16), y)
    small(XGBRegressorLite, max_bin=16).fit(bin_features(X, np.int64(16)), y)


@pytest.mark.interpreted
def test_numbers_of_rows_are_checked_as_for_raw_values():
    X, y = make_data(60)
    B = bin_features(X)
    model = small(XGBClassifierLite)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[60, 59\]"):
        model.fit(B, y[:-1])
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        model.fit(B[:0], y[:0])
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        model.fit(B, y).predict(B[:0])


@pytest.mark.interpreted
def test_names_of_the_features():
    X, y = make_data(60)
    frame = pd.DataFrame(X, columns=list("abcde"))
    B = bin_features(frame)
    assert B[1:].feature_names_in_ is B.feature_names_in_
    model = small(XGBRegressorLite).fit(B, y)
    assert model.n_features_in_ == 5
    assert list(model.feature_names_in_) == list("abcde")
    assert_same_predictions(model, B, frame)
    assert_array_equal(model.predict(frame[list("bacde")]), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(bin_features(frame.rename(columns={"a": "f"})))
    with pytest.raises(ValueError, match="X has 4 features"):
        model.fit(bin_features(X), y).predict(X[:, :4])
    assert bin_features(X).feature_names_in_ is None
    assert not hasattr(model, "feature_names_in_")


# --- copies and memory maps ----------------------------------------------------------------------


@pytest.mark.parametrize("max_bin", [256, 1000])
def test_pickles_and_memory_maps_are_the_same_data(max_bin, tmp_path):
    X, y = make_data(1200)
    B = bin_features(X, max_bin)
    model = small(XGBClassifierLite, max_bin=max_bin).fit(B, y)
    joblib.dump(B, tmp_path / "B")
    for other in (pickle.loads(pickle.dumps(B)), joblib.load(tmp_path / "B", mmap_mode="r")):
        assert_same_model(small(XGBClassifierLite, max_bin=max_bin).fit(other, y), model)
        assert_same_predictions(model, other, X)
    again = pickle.loads(pickle.dumps(model))
    assert_same_predictions(again, B, X)


# --- in the tools of scikit-learn ----------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_grid_search(n_jobs):
    X, y = make_data(2000)
    B = bin_features(X)
    grid = {"max_depth": [1, 3], "learning_rate": [0.01, 0.5]}
    search = GridSearchCV(small(XGBClassifierLite), grid, cv=3, n_jobs=n_jobs, error_score="raise")
    with joblib.parallel_config(max_nbytes=1000):  # large arrays reach the workers as memory maps
        search.fit(B, y)
    assert search.best_params_["learning_rate"] == 0.5
    assert_same_model(
        search.best_estimator_, small(XGBClassifierLite, **search.best_params_).fit(X, y)
    )
    assert search.score(B, y) == search.score(X, y) > 0.8
