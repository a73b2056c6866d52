"""scikit-learn's HistGradientBoosting predicts here what it predicts there."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.exceptions import NotFittedError

from sklboost import ModelFileError, UnknownCategoryWarning, from_hist_gradient_boosting

N_ROWS = 200
_RNG = np.random.default_rng(0)
X = np.round(_RNG.normal(size=(N_ROWS, 3)), 1)
X[_RNG.random(X.shape) < 0.1] = np.nan
SCORE = np.nan_to_num(X[:, 0]) + 0.3 * _RNG.normal(size=N_ROWS)
# categories are neither first nor last, and have missing values
FRAME = pd.DataFrame(X, columns=[*"uvw"])
FRAME.insert(1, "kind", pd.Categorical(_RNG.choice(["é", "zz", "b", "", None], N_ROWS)))
FRAME.insert(3, "size", pd.Categorical(_RNG.choice([5, -3, 11], N_ROWS)))
SPECIAL = _RNG.choice([np.nan, 0.0, -0.0, np.inf, -np.inf, 1e300], size=(40, 3))
FEW = dict(max_iter=5, min_samples_leaf=4, random_state=0)


def check_same(theirs, X):
    model = from_hist_gradient_boosting(theirs)
    if hasattr(theirs, "classes_"):
        assert (model.predict(X) == theirs.predict(X)).all()
        np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), rtol=1e-12)
    else:
        np.testing.assert_allclose(model.predict(X), theirs.predict(X), rtol=1e-12)
    return model


@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "quantile", "poisson", "gamma"]
)
def test_regression(loss):
    quantile = 0.3 if loss == "quantile" else None
    theirs = HistGradientBoostingRegressor(loss=loss, quantile=quantile, **FEW)
    theirs.fit(X, np.exp(SCORE))
    check_same(theirs, np.vstack([X, X + 0.05, SPECIAL]))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes(n_classes):
    classes = np.array(["low", "middle", "high", "top"])
    y = classes[np.digitize(SCORE, [0.0, 0.5, 1.0][: n_classes - 1])]
    theirs = HistGradientBoostingClassifier(**FEW).fit(X, y)
    model = check_same(theirs, np.vstack([X, X + 0.05, SPECIAL]))
    assert model.classes_.tolist() == sorted(classes[:n_classes].tolist())


def test_a_split_of_missing_values_from_all_others():
    rows = np.where(np.arange(40) < 20, np.nan, np.arange(40.0))[:, np.newaxis]
    theirs = HistGradientBoostingRegressor(**FEW).fit(rows, np.isnan(rows[:, 0]) * 3.0)
    model = check_same(theirs, np.vstack([rows, [[np.inf], [-np.inf]]]))
    assert model.model_.nodes.threshold[0] == -np.inf


@pytest.mark.parametrize("learning_rate", [0.1, 1.0])
def test_categories_of_frames(learning_rate):
    y = SCORE + FRAME["kind"].cat.codes
    theirs = HistGradientBoostingRegressor(
        categorical_features="from_dtype", learning_rate=learning_rate, **FEW
    )
    model = check_same(theirs.fit(FRAME, y), FRAME)
    assert list(model.categories_) == ["kind", "size"]
    assert model.feature_names_in_.tolist() == list(FRAME.columns)
    other = FRAME.assign(kind=FRAME["kind"].cat.add_categories("new"))
    other.loc[::2, "kind"] = "new"
    with pytest.warns(UnknownCategoryWarning):
        check_same(theirs, other)


def test_categories_that_are_declared():
    codes = np.column_stack([X, _RNG.integers(-20, 20, N_ROWS)])
    theirs = HistGradientBoostingRegressor(categorical_features=[3], **FEW)
    theirs.fit(codes, SCORE + np.sin(codes[:, 3]))
    check_same(theirs, codes)


def test_gradients_are_known_for_squared_error():
    theirs = HistGradientBoostingRegressor(l2_regularization=1.0, **FEW).fit(X, SCORE)
    model = from_hist_gradient_boosting(theirs)
    nodes = model.model_.nodes[: model.model_.tree_starts[1]]
    leaves = model.apply(X)[:, 0]
    for leaf in np.unique(leaves):
        rows = leaves == leaf
        expected = (model.model_.base_score[0] - SCORE)[rows].sum()
        np.testing.assert_allclose(nodes.gradient[leaf], expected, rtol=1e-4, atol=1e-4)
        assert nodes.cover[leaf] == rows.sum()
    theirs = HistGradientBoostingRegressor(loss="poisson", **FEW).fit(X, np.exp(SCORE))
    model = from_hist_gradient_boosting(theirs)
    assert np.isnan(model.model_.nodes.gradient).all()


def test_parameters_are_taken_over():
    theirs = HistGradientBoostingRegressor(
        loss="quantile", quantile=0.2, max_leaf_nodes=None, **FEW
    )
    model = from_hist_gradient_boosting(theirs.fit(X, SCORE))
    assert (model.quantile_alpha, model.max_leaves, model.max_depth) == (0.2, 0, 0)
    assert (model.n_estimators, model.learning_rate, model.random_state) == (5, 0.1, 0)
    theirs = HistGradientBoostingRegressor(monotonic_cst=[1, 0, 0], **FEW).fit(X, SCORE)
    assert from_hist_gradient_boosting(theirs).verify_monotone().holds


def test_what_is_refused():
    words = np.array([["a"], ["b"], [None]] * 20, dtype=object)
    theirs = HistGradientBoostingRegressor(categorical_features=[0], **FEW)
    with pytest.raises(ModelFileError, match="None is a category"):
        from_hist_gradient_boosting(theirs.fit(words, np.arange(60.0)))
    with pytest.raises(TypeError, match="no HistGradientBoosting estimator"):
        from_hist_gradient_boosting(GradientBoostingRegressor())
    with pytest.raises(NotFittedError):
        from_hist_gradient_boosting(HistGradientBoostingRegressor())
