"""Values of `base_score` and `learning_rate` that XGBoost takes, too: by class, and 0."""

import numpy as np
import pytest
import xgboost
from numpy.testing import assert_allclose, assert_array_equal

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.displays import plot_derivation

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
TARGETS = {
    "regression": X[:, 0] + 0.1 * RNG.normal(size=120),
    "two classes": (X[:, 0] > 0).astype(int),
    "three classes": np.arange(120) % 3,
}


def make(y, **settings):
    kind = XGBRegressorLite if y.dtype.kind == "f" else XGBClassifierLite
    return kind(n_estimators=3, max_depth=3, **settings)


# --- base_score by class


@pytest.mark.parametrize(
    "base_score",
    [[0.2, 0.3, 0.5], (2, -1, 0.5), np.array([0.0, 0.5, 0.5]), [0.7], 0.7, np.array([1])],
)
def test_base_score_by_class_is_xgboost_s(base_score):
    y = TARGETS["three classes"]
    ours = make(y, base_score=base_score, learning_rate=0).fit(X, y)
    theirs = xgboost.XGBClassifier(base_score=base_score, learning_rate=0, n_estimators=3).fit(X, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-6)
    raw = ours.predict(X[:1], output_margin=True)
    assert_allclose(raw, theirs.predict(X[:1], output_margin=True), rtol=1e-6)


def test_base_score_by_class_of_one_vs_rest():
    y, start = TARGETS["three classes"], [-0.5, -1.0, -2.0]
    model = make(y, base_score=start, objective="multi:onevsrest", learning_rate=0).fit(X, y)
    assert_allclose(model.decision_function(X[:1])[0], start)


def test_base_score_by_quantile():
    y = TARGETS["regression"]
    settings = dict(objective="reg:quantileerror", quantile_alpha=np.array([0.1, 0.9]))
    model = make(y, base_score=[-1.0, 2.0], learning_rate=0, **settings).fit(X, y)
    assert_array_equal(model.predict(X[:1]), [[-1.0, 2.0]])


@pytest.mark.parametrize(
    ("kind", "base_score", "words"),
    [
        ("three classes", [0.2, 0.8], r"a list of 1 or 3"),
        ("three classes", [0.2] * 4, r"a list of 1 or 3"),
        ("two classes", [0.2, 0.8], r"a list of 1$"),
        ("two classes", [1.5], "probability"),
        ("three classes", [0.2, 0.8, np.inf], "finite number"),
        ("three classes", [[0.2, 0.8, 0.0]], "finite number"),
    ],
)
def test_base_scores_that_do_not_fit(kind, base_score, words):
    y = TARGETS[kind]
    with pytest.raises(ValueError, match=rf"^base_score=.*{words}"):
        make(y, base_score=base_score).fit(X, y)


# --- learning_rate=0


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("regression", {}),
        ("three classes", {}),
        ("regression", {"linear_tree": True}),
        ("three classes", {"multi_strategy": "multi_output_tree"}),
        ("two classes", {"booster": "dart", "one_drop": True, "random_state": 0}),
        ("three classes", {"booster": "dart", "rate_drop": 0.5, "normalize_type": "forest"}),
        ("two classes", {"num_parallel_tree": 2, "subsample": 0.5, "random_state": 0}),
        ("regression", {"keep_pruned": True, "gamma": 0.1}),
    ],
)
def test_trees_of_learning_rate_0_add_nothing(kind, settings, tmp_path):
    y = TARGETS[kind]
    model = make(y, learning_rate=0, **settings).fit(X, y)
    plain = make(y, learning_rate=1.0, **settings).fit(X, y)
    assert_array_equal(model.predict(X, output_margin=True), plain_start(plain))
    assert np.isfinite(model.feature_importances_).all()
    text = str(model.explain_prediction(X[0], full=True)) + str(model.explain_prediction(X[0]))
    assert "nan" not in text
    assert "inf" not in text
    model.to_html(tmp_path / "model.html", X, y)
    if not settings:
        # the trees are grown all the same, with the leaf weights of any learning rate
        trees = (own.trees_to_dataframe() for own in (model, plain))
        first, other = (own[own.Tree < len(np.unique(own.Tree)) // 3] for own in trees)
        assert_array_equal(first.Output, other.Output)
        assert_array_equal(first.Feature, other.Feature)
        leaf = int(first.Node[first.Feature == "Leaf"].iloc[0])
        assert str(model.explain_split(0, leaf)) != ""
        assert "nan" not in str(model.explain_split(0, 0))
        plot_derivation(model, 0, leaf)


def plain_start(plain):
    raw = plain.model_.base_score
    return np.full(len(X), raw[0]) if len(raw) == 1 else np.tile(raw, (len(X), 1))


def test_learning_rate_0_with_early_stopping_and_refit():
    y = TARGETS["two classes"]
    settings = dict(early_stopping_rounds=2, refit=True, random_state=0)
    model = XGBClassifierLite(learning_rate=0, n_estimators=9, **settings).fit(X, y)
    assert model.n_estimators_ == 1
    assert model.stop_reason_ == "early_stopping"
