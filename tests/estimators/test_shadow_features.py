"""Importances on validation rows: what they measure, and that shadows are what chance gives."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.inspection import permutation_importance
from sklearn.metrics import check_scoring

from sklboost import (
    XGBClassifierLite,
    XGBRegressorLite,
    XGBSurvivalLite,
    bin_features,
    survival_targets,
)
from sklboost.data.frames.numpy_arrays import ArrayTable
from sklboost.estimators.predict.shadow_features import (
    Sample,
    _permutation_importances,
    _shap_importances,
    _with_shadows,
)
from tests.small_models import small

N = 120


def make_frame(seed=0, n_rows=2 * N):
    """Return features of three kinds and targets that depend on the first of each pair."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": random.normal(size=n_rows),
            "noise": random.normal(size=n_rows),
            "kind": pd.Categorical(random.choice(list("abcd"), n_rows)),
            "useless kind": pd.Categorical(random.choice(list("abcd"), n_rows)),
        }
    )
    y = frame["size"] + 2.0 * frame["kind"].isin(["a", "c"]) + 0.2 * random.normal(size=n_rows)
    return frame, y.to_numpy()


def halves(X, y):
    return (X[:N], y[:N]), dict(X_val=X[N:], y_val=y[N:])


def measure(model, X, y, **settings):
    training, validation = halves(X, y)
    return model.validation_importances(
        *training, **validation, **(dict(random_state=0, n_repeats=4) | settings)
    )


def test_features_of_the_target_exceed_the_shadows():
    found = measure(small(XGBRegressorLite), *make_frame())
    assert found.feature_names == ["size", "noise", "kind", "useless kind"]
    assert found.importances.shape == found.shadow_importances.shape == (4, 4)
    assert_array_equal(found.exceeds_baseline, [True, False, True, False])
    assert found.importances_mean[[0, 2]].min() > 10 * np.abs(found.shadow_importances).max()


def test_one_repetition_is_scikit_learn_s_permutation_importance_of_a_model_with_shadows():
    random = np.random.default_rng(1)
    X = random.normal(size=(N, 3))
    y = X @ [1.0, 2.0, 0.0]
    model = small(XGBRegressorLite).fit(X, y)
    rows = Sample(ArrayTable(X), y, None)
    arrangement = [(i, None) for i in range(3)]
    score = check_scoring(model, "neg_mean_absolute_error")
    found = [_permutation_importances(model, score, rows, arrangement, random) for _ in range(30)]
    own = np.mean(found, axis=0)
    peer = permutation_importance(
        model, X, y, scoring="neg_mean_absolute_error", n_repeats=30, random_state=0
    )
    assert_allclose(own, peer.importances_mean, rtol=0.1, atol=0.01)


def test_survival_times_are_read_as_by_fit():
    X, risk = make_frame()
    event, time = np.arange(2 * N) % 4 > 0, np.exp(-risk)
    forms = [
        np.where(event, time, -time),
        survival_targets(event, time),
        pd.DataFrame({"time": time, "event": event}),
    ]
    found = [measure(small(XGBSurvivalLite), X, y, n_repeats=2) for y in forms]
    assert found[0].importances_mean[[0, 2]].min() > 3 * np.abs(found[0].shadow_importances).max()
    for other in found[1:]:
        assert_array_equal(other.importances, found[0].importances)


def test_shap_values_find_the_same_features():
    X, y = make_frame()
    found = measure(small(XGBRegressorLite), X, y, method="shap")
    # a SHAP value is of either sign, its size is not: noise is small, but may exceed its shadow
    assert found.exceeds_baseline[[0, 2]].all()
    assert not found.exceeds_baseline[3]
    assert found.importances_mean[1] < 0.05 * found.importances_mean[[0, 2]].min()
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [0.5, 1.5])]
    for how in (dict(method="shap"), dict(scoring="neg_log_loss")):
        found = measure(small(XGBClassifierLite), X, labels, **how)
        assert_array_equal(found.exceeds_baseline, [True, False, True, False])


class Explained:
    """Something whose SHAP values are known."""

    def __init__(self, values):
        self.values = np.array(values)

    def shap_values(self, X):
        assert X.shape == self.values.shape[:2]
        return self.values


@pytest.mark.parametrize(
    ("values", "weight", "expected"),
    [
        ([[1.0, -2.0], [3.0, 0.0]], None, [2.0, 1.0]),
        ([[1.0, -2.0], [3.0, 0.0]], [1.0, 3.0], [2.5, 0.5]),
        ([[[1.0, -1.0], [0.0, 4.0]], [[3.0, 1.0], [0.0, 0.0]]], None, [3.0, 2.0]),
    ],
)
def test_shap_importances_are_mean_sizes_and_of_outputs_the_sum(values, weight, expected):
    rows = Sample(ArrayTable(np.zeros((2, 1))), None, weight)
    arrangement = [(0, None), (0, np.array([1, 0]))]
    found = _shap_importances(Explained(values), rows, arrangement)
    assert_allclose(found, expected)


def test_the_columns_of_any_table_are_found_by_name():
    X, y = make_frame()
    training, validation = halves(X, y)
    settings = dict(n_repeats=2, random_state=0)
    model = small(XGBRegressorLite)
    expected = model.validation_importances(*training, **validation, **settings)
    turned = dict(validation, X_val=validation["X_val"][X.columns[::-1]])
    found = model.validation_importances(*training, **turned, **settings)
    assert_array_equal(found.importances, expected.importances)
    other = {name: pl.from_pandas(own) for name, own in (("X", X[:N]), ("X_val", X[N:]))}
    found = model.validation_importances(**other, y=y[:N], y_val=y[N:], **settings)
    assert_array_equal(found.importances, expected.importances)
    assert_array_equal(found.shadow_importances, expected.shadow_importances)


def test_categories_that_the_training_has_not_are_no_warning():
    X, y = make_frame()
    X = X.assign(kind=X["kind"].cat.add_categories("new"))
    X.loc[X.index[-5:], "kind"] = "new"
    assert measure(small(XGBRegressorLite), X, y).exceeds_baseline[2]


def test_weights_count():
    X, y = make_frame()
    training, validation = halves(X.drop(columns=["kind", "useless kind"]), y)
    settings = dict(n_repeats=2, random_state=0)
    model = small(XGBRegressorLite)
    plain = model.validation_importances(*training, **validation, **settings)
    ones = dict(sample_weight=np.ones(N), sample_weight_val=np.ones(N))
    same = model.validation_importances(*training, **validation, **settings, **ones)
    assert_allclose(same.importances, plain.importances, rtol=1e-9)
    for name in ones:
        weights = ones | {name: np.arange(N) % 2}
        other = model.validation_importances(*training, **validation, **settings, **weights)
        assert not np.allclose(other.importances, plain.importances)


def test_the_estimator_stays_as_it_is_and_random_state_decides():
    X, y = make_frame()
    model = small(XGBRegressorLite, random_state=7)
    before = dict(vars(model))
    first = measure(model, X, y, random_state=None)
    assert vars(model) == before
    assert_array_equal(measure(model, X, y, random_state=7).importances, first.importances)
    other = measure(model, X, y, random_state=8)
    assert not np.array_equal(other.importances, first.importances)


def test_shadows_are_constrained_like_their_features():
    model = small(
        XGBRegressorLite,
        monotone_constraints={"size": 1},
        feature_weights=[1.0, 2.0, 3.0, 4.0],
        interaction_constraints=[["size", "kind"], [1]],
        categorical_features=["kind"],
        warm_start=True,
    )
    assert _with_shadows(model, ["size", "noise", "kind", "other"]) == {
        "monotone_constraints": [1, 0, 0, 0, 1, 0, 0, 0],
        "feature_weights": [1.0, 2.0, 3.0, 4.0] * 2,
        "interaction_constraints": [[0, 2], [1], [4, 6], [5]],
        "categorical_features": [2, 6],
        "warm_start": False,
    }
    assert model.monotone_constraints == {"size": 1}
    model = small(XGBRegressorLite, monotone_constraints={"size": -1})
    found = measure(model, *make_frame())
    assert_array_equal(found.exceeds_baseline, [False, False, True, False])
    plain = small(XGBRegressorLite, interaction_constraints="pairwise")
    assert _with_shadows(plain, ["size"]) == {"warm_start": False}
    strings = dict(monotone_constraints="(1,-1)", interaction_constraints="[[0],[1]]")
    assert _with_shadows(small(XGBRegressorLite, **strings), ["size", "noise"]) == {
        "monotone_constraints": [1, -1, 1, -1],
        "interaction_constraints": [[0], [1], [2], [3]],
        "warm_start": False,
    }


def test_linear_leaves_read_their_features():
    random = np.random.default_rng(0)
    X = random.normal(size=(2 * N, 2))
    found = measure(small(XGBRegressorLite, linear_tree=True), X, X[:, 1])
    assert_array_equal(found.exceeds_baseline, [False, True])


def test_errors():
    X, y = make_frame()
    model = small(XGBRegressorLite)
    with pytest.raises(ValueError, match=r"^method='gain': it must be one of 'permutation', 'sh"):
        measure(model, X, y, method="gain")
    with pytest.raises(ValueError, match=r"^n_repeats=0: it must be an integer >= 1"):
        measure(model, X, y, n_repeats=0)
    numbers = X[["size", "noise"]].to_numpy()
    with pytest.raises(ValueError, match=r"^X_val has 1 features, but X has 2"):
        model.validation_importances(numbers, y, X_val=numbers[:, :1], y_val=y)
    with pytest.raises(ValueError, match=r"yet now missing:\n- size"):
        model.validation_importances(X, y, X_val=X.drop(columns="size"), y_val=y)
    for unfit, words in (
        (
            scipy.sparse.csr_array(numbers),
            "Sparse .* for X, but dense data is required",
        ),
        (bin_features(numbers), "pass the raw values"),
    ):
        with pytest.raises(TypeError, match=words):
            model.validation_importances(unfit, y, X_val=unfit, y_val=y)
