"""Raw scores that training and prediction start from."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from sklboost import XGBClassifierLite, XGBRegressorLite, bin_features

TASKS = {
    "regression": (XGBRegressorLite, load_diabetes, 1),
    "binary": (XGBClassifierLite, load_breast_cancer, 1),
    "softmax": (XGBClassifierLite, load_iris, 3),
}


@pytest.fixture(params=TASKS)
def case(request):
    """Return an estimator, features, targets, and margins of shape (n_samples, n_outputs)."""
    estimator, load, n_outputs = TASKS[request.param]
    X, y = load(return_X_y=True)
    margin = np.random.default_rng(0).normal(size=(len(y), n_outputs))
    margin.flags.writeable = False  # nothing is written to the user's margins
    return estimator(n_estimators=6, max_depth=3), X, y, margin


def raw(model, X, **arguments):
    method = model.decision_function if is_classifier(model) else model.predict
    return method(X, **arguments)


def nodes(model):
    return model.model_.nodes.tobytes()


# --- at fit --------------------------------------------------------------------------------------


@pytest.mark.interpreted
def test_a_tree_by_hand():
    # residuals from the margins 1, 1, 3, 3: -1, 1, 3, 5, so leaves of 0 and 4
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0.0, 2.0, 6.0, 8.0])
    margin = np.array([1.0, 1.0, 3.0, 3.0])
    model = XGBRegressorLite(n_estimators=1, learning_rate=0.5, reg_lambda=0.0, gamma=0.0)
    model.fit(X, y, base_margin=margin)
    assert_allclose(model.predict(X, base_margin=margin), [1.0, 1.0, 5.0, 5.0], atol=1e-6)
    assert_allclose(model.predict(X, base_margin=np.zeros(4)), [0.0, 0.0, 2.0, 2.0], atol=1e-6)
    assert_array_equal(model.model_.base_score, [0.0])


def test_margins_are_a_first_model(case):
    model, X, y, _ = case
    first = type(model)(n_estimators=2, max_depth=4).fit(X, y)
    margin = raw(first, X)
    model.fit(X, y, base_margin=margin)
    continued = type(model)(n_estimators=6, max_depth=3).fit(X, y, init_model=first)
    n_before = len(first.model_.nodes)
    assert nodes(model) == continued.model_.nodes[n_before:].tobytes()
    assert_allclose(raw(model, X, base_margin=margin), raw(continued, X), rtol=1e-12, atol=1e-12)


DIFFERENCES = [
    *("reg:squarederror", "reg:absoluteerror", "reg:quantileerror", "reg:expectileerror"),
    *("reg:huber", "reg:pseudohubererror", "reg:fair", "reg:logcosh"),
]


@pytest.mark.parametrize("objective", DIFFERENCES)
@pytest.mark.parametrize("n_targets", [1, 2])
def test_an_offset_in_targets_and_margins_changes_nothing(objective, n_targets):
    rng = np.random.default_rng(0)
    X, offset = rng.normal(size=(1000, 4)), rng.integers(0, 2**17, (1000, n_targets))
    y = X[:, :1] + rng.standard_t(2, (1000, n_targets))
    y, offset = np.round(y * 2**10) / 2**10, offset.astype(float)  # their sum is not rounded
    if n_targets == 1:
        y, offset = y[:, 0], offset[:, 0]
    train, valid = slice(0, 600), slice(600, None)
    model = XGBRegressorLite(objective=objective, base_score=0.0, early_stopping_rounds=3)
    model.set_params(n_estimators=40, min_child_weight=20, max_depth=4)
    model.fit(X[train], y[train], X_val=X[valid], y_val=y[valid])
    moved = XGBRegressorLite(**model.get_params() | dict(base_score=None))
    moved.fit(
        X[train],
        y[train] + offset[train],
        base_margin=offset[train],
        **dict(X_val=X[valid], y_val=y[valid] + offset[valid], base_margin_val=offset[valid]),
    )
    assert moved.best_iteration_ == model.best_iteration_
    for name in ("feature", "left", "threshold"):
        assert_array_equal(moved.model_.nodes[name], model.model_.nodes[name])
    assert_allclose(moved.predict(X, base_margin=np.zeros_like(y)), model.predict(X), atol=1e-4)


@pytest.mark.parametrize("kind", [list, np.float32, np.asfortranarray])
def test_forms_of_margins(case, kind):
    model, X, y, margin = case
    margin = margin.astype(np.float32).astype(float)
    expected = nodes(model.fit(X, y, base_margin=margin))
    given = margin.astype(kind) if kind is np.float32 else kind(margin)
    assert nodes(model.fit(X, y, base_margin=given)) == expected
    if margin.shape[1] == 1:
        assert nodes(model.fit(X, y, base_margin=margin[:, 0])) == expected
        assert nodes(model.fit(bin_features(X), y, base_margin=margin[:, 0])) == expected


def test_rows_of_weight_zero_or_two_take_their_margins_and_groups_along(case):
    model, X, y, margin = case
    weight = np.random.default_rng(1).integers(0, 2, len(y)).astype(float)
    group, kept = np.arange(len(y)) % 25, weight > 0
    margin = np.where(kept[:, np.newaxis], margin, 1e6)
    model.set_params(early_stopping_rounds=3, validation_fraction=0.3, random_state=0)
    model.fit(X, y, sample_weight=weight, base_margin=margin, groups=group)
    results, own = model.evals_result_, nodes(model)
    model.fit(X[kept], y[kept], base_margin=margin[kept], groups=group[kept])
    assert model.evals_result_ == results
    assert nodes(model) == own
    # so do rows of whole weights, which are repeated where some are drawn
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    model.set_params(early_stopping_rounds=None, subsample=0.6)
    own = nodes(model.fit(X, y, sample_weight=weight, base_margin=margin))
    assert nodes(model.fit(X[rows], y[rows], base_margin=margin[rows])) == own


def test_rows_held_out_take_their_margins_along(case):
    model, X, y, margin = case
    order = np.random.default_rng(0).permutation(len(y))
    X, y, margin = X[order], y[order], margin[order]
    n_train = len(y) - int(np.ceil(0.25 * len(y)))
    model.set_params(early_stopping_rounds=4, validation_split="time", validation_fraction=0.25)
    results = model.fit(X, y, base_margin=margin).evals_result_
    own = nodes(model)
    model.fit(
        *(X[:n_train], y[:n_train]),
        base_margin=margin[:n_train],
        eval_set=[(X[n_train:], y[n_train:])],
        base_margin_eval_set=[margin[n_train:]],
    )
    assert (model.evals_result_, nodes(model)) == (results, own)


def test_refit_with_margins(case):
    model, X, y, margin = case
    n_train = len(y) - 40
    order = np.random.default_rng(0).permutation(len(y))
    X, y, margin = X[order], y[order], margin[order]
    model.set_params(early_stopping_rounds=2, refit=True).fit(
        *(X[:n_train], y[:n_train]),
        base_margin=margin[:n_train],
        X_val=X[n_train:],
        y_val=y[n_train:],
        base_margin_val=margin[n_train:],
    )
    alone = type(model)(n_estimators=model.best_iteration_ + 1, max_depth=3)
    assert nodes(model) == nodes(alone.fit(X, y, base_margin=margin))


# --- at predict ----------------------------------------------------------------------------------


def test_prediction_adds_the_trees_to_the_margin(case):
    model, X, y, margin = case
    model.fit(X, y, base_margin=margin)
    nothing = np.zeros_like(margin)
    trees = raw(model, X, base_margin=nothing)
    expected = trees + (margin[:, 0] if margin.shape[1] == 1 else margin)
    assert_allclose(raw(model, X, base_margin=margin), expected, rtol=1e-9, atol=1e-12)
    stages = list(model.staged_predict(X, base_margin=margin))
    assert_array_equal(stages[-1], model.predict(X, base_margin=margin))
    sliced = raw(model, X, base_margin=margin, iteration_range=(2, 4))
    after_4 = raw(model, X, base_margin=margin, iteration_range=(0, 4))
    after_2 = raw(model, X, base_margin=margin, iteration_range=(0, 2))
    start = margin[:, 0] if margin.shape[1] == 1 else margin
    assert_allclose(sliced - start, after_4 - after_2, rtol=1e-9, atol=1e-9)


def test_prediction_without_the_margin_warns(case):
    model, X, y, margin = case
    model.fit(X, y, base_margin=margin)
    names = ["predict"] + (["predict_proba", "decision_function"] if is_classifier(model) else [])
    for name in names:
        expected = getattr(model, name)(X, base_margin=np.zeros_like(margin))
        with pytest.warns(
            UserWarning, match="was fitted with base_margin, but predicts without"
        ) as told:
            assert_array_equal(getattr(model, name)(X), expected)
        assert told[0].filename == __file__
    model.fit(X, y).predict(X)  # which does not warn any more


def test_a_margin_at_predict_alone_replaces_the_base_score(case):
    model, X, y, margin = case
    prediction, own = raw(model.fit(X, y), X), nodes(model)
    start = np.repeat(model.model_.base_score[np.newaxis], len(y), axis=0)
    assert_array_equal(raw(model, X, base_margin=start), prediction)
    assert not np.allclose(raw(model, X, base_margin=start + margin), prediction)
    model.fit(X, y, base_margin=start)  # equal margins are a base score in the training, too
    assert nodes(model) == own
    assert_array_equal(raw(model, X, base_margin=start), prediction)


# --- errors --------------------------------------------------------------------------------------


def test_wrong_shapes_and_what_is_no_number(case):
    model, X, y, margin = case
    n, n_outputs = margin.shape
    for wrong in (margin[1:], np.zeros((n, n_outputs, 1)), np.zeros(n + 1)):
        with pytest.raises(ValueError, match=rf"^base_margin has shape .* each of the {n} rows"):
            model.fit(X, y, base_margin=wrong)
    for wrong in (np.zeros((n, n_outputs + 1)), np.zeros((n, 2))):
        with pytest.raises(ValueError, match=rf"column\(s\), but the model has {n_outputs} raw"):
            model.fit(X, y, base_margin=wrong)
    for value in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="Input base_margin contains"):
            model.fit(X, y, base_margin=np.full_like(margin, value))
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"^base_margin has shape \(3,\): it must be one"):
        model.predict(X, base_margin=np.zeros(3))
    with pytest.raises(ValueError, match=rf"column\(s\), but the model has {n_outputs} raw"):
        model.predict(X, base_margin=np.zeros((n, 2)))


def test_validation_data_needs_margins_where_the_training_has_them(case):
    model, X, y, margin = case
    with pytest.raises(ValueError, match=r"^base_margin is given for X, but not for X_val"):
        model.fit(X, y, base_margin=margin, X_val=X, y_val=y)
    sets = dict(eval_set=[(X, y), (X, y)])
    with pytest.raises(ValueError, match=r"^base_margin is given for X, but not for eval_set\[1\]"):
        model.fit(X, y, base_margin=margin, **sets, base_margin_eval_set=[margin, None])
    with pytest.raises(ValueError, match=r"^base_margin is given for eval_set\[0\], but not for X"):
        model.fit(X, y, **sets, base_margin_eval_set=[margin, None])
    with pytest.raises(ValueError, match=r"^base_margin of X_val has shape \(2,\): it must be one"):
        model.fit(X, y, base_margin=margin, X_val=X, y_val=y, base_margin_val=[1.0, 2.0])
