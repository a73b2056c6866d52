"""scikit-learn's tools on features that were binned before: what works, what is refused."""

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.inspection import permutation_importance
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
    learning_curve,
    train_test_split,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing

from sklboost import XGBClassifierLite, bin_features
from tests.estimators.test_binned_matrix import (
    ESTIMATORS,
    assert_same_model,
    make_data,
    small,
)


@pytest.mark.parametrize("rows", [[2, 0], np.array([1, 1]), np.arange(60) > 50, slice(1, 9)])
def test_safe_indexing(rows):
    X, _ = make_data(60)
    B = bin_features(X)
    assert_array_equal(_safe_indexing(B, rows).bins, B.bins[rows])


def test_folds_and_splits():
    X, y = make_data()
    B = bin_features(X)
    B_train, B_test, X_train, X_test, y_train, _ = train_test_split(B, X, y, random_state=0)
    assert len(B_train) == len(y_train) == 525
    model = small(XGBClassifierLite).fit(B_train, y_train)
    assert_array_equal(model.predict(B_train), model.predict(X_train))
    assert np.mean(model.predict(B_test) == model.predict(X_test)) > 0.98
    for train, test in StratifiedKFold(5).split(B, y):
        assert len(B[train]) + len(B[test]) == len(B)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("cv", [4, TimeSeriesSplit(3)])
def test_cross_validation(estimator, cv):
    """The scores of raw values, if every value has a bin and the folds have the same cuts."""
    X, y = make_data()
    X = np.round(np.nan_to_num(X, posinf=2, neginf=-2) * 2)
    raw, binned = (
        cross_val_score(small(estimator), rows, y, cv=cv) for rows in (X, bin_features(X))
    )
    assert_array_equal(raw, binned)


def test_tools_that_choose_rows_only():
    X, y = make_data()
    B = bin_features(X)
    model = small(XGBClassifierLite)
    assert cross_val_predict(model, B, y, method="predict_proba").shape == (700, 2)
    _, train_scores, test_scores = learning_curve(model, B, y, cv=3, train_sizes=[0.3, 1.0])
    assert train_scores.min() > 0.8
    assert test_scores.min() > 0.6
    voting = VotingClassifier([("a", model), ("b", small(XGBClassifierLite, max_depth=1))])
    for tool in (
        CalibratedClassifierCV(model, cv=3),
        Pipeline([("scale", "passthrough"), ("model", model)]),
        voting.set_params(voting="soft"),
    ):
        assert tool.fit(B, y).score(B, y) > 0.8
        assert tool.score(X, y) > 0.8


def test_tools_that_read_values_are_told_so():
    X, y = make_data()
    B = bin_features(X)
    with pytest.raises(TypeError, match="pass the raw values"):
        make_pipeline(StandardScaler(), small(XGBClassifierLite)).fit(B, y)
    model = small(XGBClassifierLite).fit(B, y)
    with pytest.raises(TypeError, match="pass the raw values"):
        permutation_importance(model, B, y)
    X[np.isinf(X)] = 2.0  # which that tool does not take
    assert permutation_importance(model, X, y, n_repeats=1).importances_mean.max() > 0


@pytest.mark.parametrize("n_jobs", [None, 2])
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


def test_a_grid_over_max_bin_does_not_do_nothing():
    X, y = make_data(60)
    grid = {"max_bin": [16, 256]}
    search = GridSearchCV(small(XGBClassifierLite), grid, cv=2, error_score="raise")
    with pytest.raises(ValueError, match="max_bin=16, but X was binned with max_bin=256"):
        search.fit(bin_features(X), y)
