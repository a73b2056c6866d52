"""MAPIE and crepes: their intervals by hand, the share of targets in them, bins made once."""

import warnings
from functools import partial
from math import ceil

import numpy as np
import pandas as pd
import pytest
from crepes import ConformalRegressor, WrapClassifier, WrapRegressor
from crepes.extras import DifficultyEstimator
from mapie.classification import SplitConformalClassifier
from mapie.regression import (
    ConformalizedQuantileRegressor,
    CrossConformalizedQuantileRegressor,
    CrossConformalRegressor,
    JackknifeAfterBootstrapRegressor,
    SplitConformalRegressor,
)
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import betabinom
from sklearn.model_selection import KFold

from benchmarks.distributions import Fitted
from sklboost import (
    XGBClassifierLite,
    XGBDistributionLite,
    XGBRegressorLite,
    bin_features,
)

N_FIT, N_CALIBRATED, N_TEST = 700, 500, 1200
CONFIDENCE = 0.9
FIT, CALIBRATE = slice(0, N_FIT), slice(N_FIT, N_FIT + N_CALIBRATED)
TRAIN, TEST = slice(0, N_FIT + N_CALIBRATED), slice(N_FIT + N_CALIBRATED, None)
SETTINGS = dict(n_estimators=20, max_depth=3, learning_rate=0.2)


def model(estimator=XGBRegressorLite, **changes):
    return estimator(**SETTINGS | changes)


def three_quantiles(**changes):
    levels = [0.05, 0.5, 0.95]
    return model(
        objective="reg:quantileerror", quantile_alpha=levels, min_child_weight=10, **changes
    )


@pytest.fixture(scope="module")
def frame():
    """Numbers with two decimals, some missing, and a category; noise that grows with a feature."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_FIT + N_CALIBRATED + N_TEST, 4)).round(1)
    X = pd.DataFrame(X, columns=[*"abcd"])
    X.loc[::7, "b"] = np.nan
    X["kind"] = pd.Categorical(rng.choice(["x", "y", "z"], len(X)))
    return X


@pytest.fixture(scope="module")
def y(frame):
    noise = np.random.default_rng(1).normal(size=len(frame))
    mean = 2 * frame["a"] + 2 * (frame["kind"] == "y") + frame["b"].isna()
    return (mean + noise * (0.3 + frame["c"].abs())).to_numpy()


@pytest.fixture(scope="module", params=["array", "frame", "bins"])
def X(request, frame):
    """Return a function from a slice to the rows of it."""
    if request.param == "frame":
        return lambda rows: frame.iloc[rows]
    if request.param == "bins":
        return bin_features(frame).__getitem__
    return frame.drop(columns="kind").to_numpy().__getitem__


@pytest.fixture(scope="module")
def weight(y):
    return np.random.default_rng(2).integers(0, 3, len(y)).astype(float)


def assert_covers(covered, n_calibrated=N_CALIBRATED):
    """The share of the test rows is one that exchangeable rows have but in a case of a million.

    With n rows to calibrate on and k = ceil((n + 1) * confidence), the coverage that is reached has
    the distribution Beta(k, n + 1 - k) (Vovk 2012, "Conditional validity of inductive conformal
    predictors"), so the number of covered rows is beta-binomial.
    """
    k = ceil((n_calibrated + 1) * CONFIDENCE)
    distribution = betabinom(len(covered), k, n_calibrated + 1 - k)
    least, most = distribution.ppf([5e-7, 1 - 5e-7])
    assert least <= covered.sum() <= most


def is_covered(intervals, y):
    low, high = intervals.reshape(len(y), 2).T
    return (low <= y) & (y <= high)


def kth_smallest(scores, level=CONFIDENCE):
    """The quantile of conformal prediction, which allows for the one test row."""
    return np.sort(scores)[ceil((len(scores) + 1) * level) - 1]


# --- split ---------------------------------------------------------------------------------------


def test_split_by_hand(X, y):
    fitted = model().fit(X(FIT), y[FIT])
    margin = kth_smallest(np.abs(y[CALIBRATE] - fitted.predict(X(CALIBRATE))))
    middle = fitted.predict(X(TEST))
    expected = np.stack([middle - margin, middle + margin], axis=1)
    assert_covers(is_covered(expected, y[TEST]))
    ours = Fitted(fitted)
    split = SplitConformalRegressor(ours, confidence_level=CONFIDENCE)
    split.conformalize(X(CALIBRATE), y[CALIBRATE])
    assert_allclose(split.predict_interval(X(TEST))[1][:, :, 0], expected)
    wrapped = WrapRegressor(fitted)
    wrapped.calibrate(X(CALIBRATE), y[CALIBRATE])
    assert_allclose(wrapped.predict_int(X(TEST), confidence=CONFIDENCE), expected)


def test_mapie_tries_zeros_which_are_no_categories(frame, y):
    """docs/how_to/predict_intervals.md says so, and the way round it: Fitted."""
    fitted = model().fit(frame.iloc[FIT], y[FIT])
    split = SplitConformalRegressor(fitted)
    refusal = pytest.raises(UserWarning, match="held categories at fit and holds numbers")
    with refusal, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        split.conformalize(frame.iloc[CALIBRATE], y[CALIBRATE])


def gamma_spread(fitted, X, y):
    """Return a function from rows to the size of the error that a second model expects."""
    error = np.abs(y[FIT] - fitted.predict(X(FIT))) + 1e-9
    return model(objective="reg:gamma").fit(X(FIT), error).predict


def spread_of_distributions(fitted, X, y):
    return lambda rows: fitted.predict_dist(rows).std()


@pytest.mark.parametrize(
    ("estimator", "difficulty"),
    [(XGBRegressorLite, gamma_spread), (XGBDistributionLite, spread_of_distributions)],
)
def test_difficulty_by_hand(X, y, estimator, difficulty):
    fitted = model(estimator).fit(X(FIT), y[FIT])
    spread = difficulty(fitted, X, y)
    residuals = y[CALIBRATE] - fitted.predict(X(CALIBRATE))
    sigma, middle = spread(X(CALIBRATE)), fitted.predict(X(TEST))
    margin = kth_smallest(np.abs(residuals) / sigma) * spread(X(TEST))
    expected = np.stack([middle - margin, middle + margin], axis=1)
    scaled = ConformalRegressor().fit(residuals, sigmas=sigma)
    intervals = scaled.predict_int(middle, sigmas=spread(X(TEST)), confidence=CONFIDENCE)
    assert_allclose(intervals, expected)
    wrapped = WrapRegressor(fitted)
    estimated = DifficultyEstimator().fit(f=spread, beta=0)
    wrapped.calibrate(X(CALIBRATE), y[CALIBRATE], de=estimated)
    assert_allclose(wrapped.predict_int(X(TEST), confidence=CONFIDENCE), expected)
    assert_covers(is_covered(expected, y[TEST]))


def test_neighbours_of_crepes_need_values(frame):
    with pytest.raises(TypeError, match="pass the raw values"):
        DifficultyEstimator().fit(bin_features(frame))


# --- cross ---------------------------------------------------------------------------------------


def test_cross_by_hand(X, y, weight):
    weight = weight + 1  # MAPIE leaves rows of weight 0 out
    rows, folds = X(TRAIN), KFold(4)
    residuals = np.empty(N_FIT + N_CALIBRATED)
    for train, rest in folds.split(y[TRAIN]):
        fitted = model().fit(X(train), y[train], sample_weight=weight[train])
        residuals[rest] = y[rest] - fitted.predict(X(rest))
    middle = model().fit(rows, y[TRAIN], sample_weight=weight[TRAIN]).predict(X(TEST))
    margin = kth_smallest(np.abs(residuals))
    cross = CrossConformalRegressor(model(), confidence_level=CONFIDENCE, method="base", cv=folds)
    cross.fit_conformalize(rows, y[TRAIN], fit_params={"sample_weight": weight[TRAIN]})
    intervals = cross.predict_interval(X(TEST), aggregate_point_predictions=None)[1][:, :, 0]
    assert_allclose(intervals, np.stack([middle - margin, middle + margin], axis=1))


CROSS = {
    "stopped early": (CrossConformalRegressor, dict(early_stopping_rounds=3, n_estimators=60)),
    "jackknife+": (partial(JackknifeAfterBootstrapRegressor, resampling=25), {}),
    "quantiles": (
        CrossConformalizedQuantileRegressor,
        dict(objective="quantile", min_child_weight=10),
    ),
}


@pytest.mark.parametrize("method", CROSS)
def test_cross_covers(frame, y, method, monkeypatch):
    # MAPIE has a table of estimators for quantiles, which its error message says to add to
    names = {"loss_name": "objective", "alpha_name": "quantile_alpha"}
    table = CrossConformalizedQuantileRegressor.quantile_estimator_params
    monkeypatch.setitem(table, "XGBRegressorLite", names)
    B, (wrapper, settings) = bin_features(frame), CROSS[method]
    wrapped = wrapper(model(**settings), random_state=0).fit_conformalize(B[TRAIN], y[TRAIN])
    assert_covers(is_covered(wrapped.predict_interval(B[TEST])[1], y[TEST]))


# --- quantiles -----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_symmetric", [True, False])
def test_quantiles_by_hand(X, y, is_symmetric):
    """Romano, Patterson & Candès 2019: one margin (theorem 1), or one a side (theorem 2)."""
    fitted = three_quantiles().fit(X(FIT), y[FIT])
    low, _, high = fitted.predict(X(CALIBRATE)).T
    below, above = low - y[CALIBRATE], y[CALIBRATE] - high
    if is_symmetric:
        below = above = kth_smallest(np.maximum(below, above))
    else:
        below, above = (kth_smallest(side, (1 + CONFIDENCE) / 2) for side in (below, above))
    low, middle, high = fitted.predict(X(TEST)).T
    lower_upper_middle = [Fitted(fitted, column) for column in (0, 2, 1)]
    wrapped = ConformalizedQuantileRegressor(
        lower_upper_middle, confidence_level=CONFIDENCE, prefit=True
    )
    wrapped.conformalize(X(CALIBRATE), y[CALIBRATE])
    points, intervals = wrapped.predict_interval(X(TEST), symmetric_correction=is_symmetric)
    assert_array_equal(points, middle)
    assert_allclose(intervals[:, :, 0], np.stack([low - below, high + above], axis=1))
    assert_covers(is_covered(intervals, y[TEST]))


# --- classes -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def labels(y):
    return np.array(["low", "middle", "high"])[(y > 0).astype(int) + (y > 2)]


@pytest.mark.parametrize("by_class", [False, True])
def test_sets_cover(X, labels, by_class):
    fitted = model(XGBClassifierLite).fit(X(FIT), labels[FIT])
    column = np.searchsorted(fitted.classes_, labels[TEST])
    wrapped = WrapClassifier(fitted)
    wrapped.calibrate(X(CALIBRATE), labels[CALIBRATE], class_cond=by_class, seed=0)
    sets = wrapped.predict_set(X(TEST), labels=False, confidence=CONFIDENCE)
    covered = np.asarray(sets)[np.arange(N_TEST), column] == 1
    groups = labels if by_class else np.full(len(labels), "all")
    for group in np.unique(groups):
        assert_covers(covered[groups[TEST] == group], np.sum(groups[CALIBRATE] == group))


def test_sets_of_mapie_cover(frame, labels):
    X = frame.drop(columns="kind").to_numpy()
    fitted = model(XGBClassifierLite).fit(X[FIT], labels[FIT])
    split = SplitConformalClassifier(fitted, confidence_level=CONFIDENCE, random_state=0)
    points, sets = split.conformalize(X[CALIBRATE], labels[CALIBRATE]).predict_set(X[TEST])
    assert_array_equal(points, fitted.predict(X[TEST]))
    column = np.searchsorted(fitted.classes_, labels[TEST])
    assert_covers(sets[np.arange(N_TEST), column, 0])
