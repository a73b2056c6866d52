"""Linear leaves, as users meet them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklboost import XGBClassifierLite, XGBRegressorLite, bin_features
from tests.small_models import outputs

TASKS = {
    "regression": (XGBRegressorLite, load_diabetes),
    "binary": (XGBClassifierLite, load_breast_cancer),
    "softmax": (XGBClassifierLite, load_iris),
}
each_task = pytest.mark.parametrize("task", TASKS)
inf, nan = np.inf, np.nan


def make(task, **changes):
    estimator, load = TASKS[task]
    X, y = load(return_X_y=True)
    X = X.copy()
    X[::13, 1], X[::17, 2] = nan, inf
    settings = dict(n_estimators=8, max_depth=3, linear_tree=True) | changes
    return estimator(**settings), X, y


def bits(model, X):
    return np.ascontiguousarray(outputs(model, X)).view(np.int64)


def check_same_model(one, other, X):
    for name in ("nodes", "tree_starts", "base_score"):
        assert getattr(one.model_, name).tobytes() == getattr(other.model_, name).tobytes()
    for first, second in zip(one.model_.linear, other.model_.linear, strict=True):
        assert first.tobytes() == second.tobytes()
    assert_array_equal(bits(one, X), bits(other, X))


@parametrize_with_checks([XGBRegressorLite(linear_tree=True, n_estimators=5)])
def test_scikit_learn(estimator, check):
    check(estimator)


# --- what they are for ---------------------------------------------------------------------------


def test_a_straight_line_needs_one_leaf_a_side():
    X = np.linspace(-2.0, 2.0, 50)[:, np.newaxis]
    y = np.where(X[:, 0] < 0.5, 3.0 * X[:, 0], 7.0 - X[:, 0])
    settings = dict(n_estimators=1, learning_rate=1.0, max_depth=1, reg_lambda=0.0)
    model = XGBRegressorLite(linear_tree=True, linear_lambda=0.0, **settings).fit(X, y)
    assert_allclose(model.predict(X), y, rtol=1e-6, atol=1e-6)
    assert_allclose(model.predict([[-9.0], [9.0]]), y[[0, -1]], rtol=1e-6)  # no further


# --- the same by whichever way -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "sampling"),
    [("regression", "gradient_based"), ("binary", "uniform"), ("softmax", "none")],
)
def test_weight_two_is_the_row_twice(task, sampling):
    changes = {} if sampling == "none" else dict(subsample=0.5, sampling_method=sampling)
    model, X, y = make(task, linear_lambda=0.3, random_state=1, **changes)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = clone(model).fit(X, y, sample_weight=weight)
    repeated = clone(model).fit(X.repeat(weight, axis=0), y.repeat(weight))
    one, other = outputs(weighted, X), outputs(repeated, X)
    assert_allclose(one, other, rtol=1e-7, atol=1e-7 * np.abs(one).max())


@each_task
def test_the_order_of_the_rows_does_not_matter(task):
    model, X, y = make(task)
    order = np.random.default_rng(0).permutation(len(y))
    check_same_model(clone(model).fit(X[order], y[order]), model.fit(X, y), X)


@each_task
def test_table_gives_predictions(task):
    model, X, y = make(task, n_estimators=3)
    model.fit(X, y)
    frame = model.trees_to_dataframe().set_index(["Tree", "Node"])
    names = [f"f{feature}" for feature in range(X.shape[1])]
    raw = np.tile(model.model_.base_score, (len(X), 1))
    n_lines = 0
    for row, leaves in enumerate(model.apply(X)):
        values = dict(zip(names, X[row], strict=True))
        for tree, leaf in enumerate(leaves):
            node = frame.loc[(tree, leaf)]
            raw[row, tree % raw.shape[1]] += node["Gain"]
            if all(np.isfinite(values[name]) for name in node["Slopes"]):
                n_lines += len(node["Slopes"]) > 0
                centres = node["Centres"]
                steps = (slope * (values[f] - centres[f]) for f, slope in node["Slopes"].items())
                part = node["Shift"] + sum(steps)
                raw[row, tree % raw.shape[1]] += min(max(part, node["Least"]), node["Most"])
    assert n_lines > len(X)
    assert frame.loc[(0, 0), ["Shift", "Slopes", "Centres", "Least", "Most"]].isna().all()
    predicted = model.decision_function(X) if is_classifier(model) else model.predict(X)
    assert_allclose(predicted, raw.squeeze(), rtol=1e-9, atol=1e-12)


# --- training in its many ways -------------------------------------------------------------------


FEATURES = dict(path_smooth=5.0, extra_trees=True, interaction_constraints=[[0, 1, 2]])
LOSSGUIDE = dict(grow_policy="lossguide", max_leaves=7, max_depth=0, gamma=0.1, max_delta_step=0.8)


@pytest.mark.parametrize(
    ("task", "settings"),
    [
        ("regression", {}),
        ("regression", dict(random_state=3) | FEATURES),
        ("binary", LOSSGUIDE),
        ("binary", dict(subsample=0.4, sampling_method="gradient_based", random_state=3)),
        ("softmax", dict(subsample=0.6, random_state=3)),
    ],
)
def test_several_goes_are_one_go(task, settings):
    model, X, y = make(task, **settings)
    whole = clone(model).fit(X, y)
    start = clone(model).set_params(n_estimators=3).fit(X, y)
    continued = clone(model).set_params(n_estimators=5).fit(X, y, init_model=start)
    check_same_model(continued, whole, X)
    warm = start.set_params(warm_start=True, n_estimators=8).fit(X, y)
    check_same_model(warm, whole, X)


@each_task
def test_constant_and_linear_rounds_in_one_model(task):
    linear, X, y = make(task)
    constant = clone(linear).set_params(linear_tree=False, n_estimators=3).fit(X, y)
    mixed = linear.fit(X, y, init_model=constant)
    before = (0, 3)
    if is_classifier(linear):
        assert_array_equal(
            mixed.predict_proba(X, iteration_range=before), constant.predict_proba(X)
        )
    else:
        assert_array_equal(mixed.predict(X, iteration_range=before), constant.predict(X))
    n_nodes = len(constant.model_.nodes)
    assert mixed.model_.linear.starts[n_nodes] == 0
    assert len(mixed.model_.linear.terms) > 0
    back = clone(constant).fit(X, y, init_model=mixed)
    assert back.model_.linear.terms.tobytes() == mixed.model_.linear.terms.tobytes()
    assert len(back.model_.linear.shifts) == len(back.model_.nodes)
    assert mixed.n_estimators_ == 11


@each_task
def test_validation_rows_are_scored_as_predicted(task):
    seen = []

    def watch(y_true, y_pred):
        seen.append(np.copy(y_pred))
        return 0.0

    model, X, y = make(task, n_estimators=6, eval_metric=watch)
    model.fit(X[::2], y[::2], X_val=X[1::2], y_val=y[1::2])
    staged = model.staged_predict_proba if is_classifier(model) else model.staged_predict
    stages = [stage.copy() for stage in staged(X[1::2])]
    for given, stage in zip(seen[-6:], stages, strict=True):
        assert_array_equal(given, stage[:, 1] if task == "binary" else stage)


@pytest.mark.parametrize("task", ["regression", "softmax"])
def test_early_stopping(task):
    model, X, y = make(task, n_estimators=80, learning_rate=0.5, early_stopping_rounds=3)
    X_val, y_val = X[1::2], y[1::2]
    model.fit(X[::2], y[::2], X_val=X_val, y_val=y_val)
    assert model.stop_reason_ == "early_stopping"
    (values,) = model.evals_result_["validation_0"].values()
    assert model.best_iteration_ == int(np.argmin(values))
    assert len(model.model_.linear.shifts) == len(model.model_.nodes)
    again = clone(model).set_params(early_stopping_rounds=None)
    again.set_params(n_estimators=model.n_estimators_).fit(X[::2], y[::2])
    check_same_model(again, model, X)
    refitted = clone(model).set_params(refit=True).fit(X[::2], y[::2], X_val=X_val, y_val=y_val)
    assert refitted.n_estimators_ == model.n_estimators_
    assert len(refitted.model_.linear.terms) > 0


# --- limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["regression", "softmax"])
def test_extreme_values_stay_finite(task):
    model, X, y = make(task)
    X[:, 0] *= 1e300
    X[5, 3], X[6, 3] = 1.7e308, -1.7e308
    X[:, 2] += 1e15
    model.fit(X, y)
    assert np.isfinite(outputs(model, X)).all()
    assert np.isfinite(outputs(model, -X)).all()


# --- errors --------------------------------------------------------------------------------------


def test_parallel_trees():
    settings = dict(num_parallel_tree=4, subsample=0.6, random_state=0, n_estimators=2)
    model, X, y = make("regression", **settings)
    model.fit(X, y, X_val=X, y_val=y)
    predicted = [np.sqrt(np.mean((y - stage) ** 2)) for stage in model.staged_predict(X)]
    assert_allclose(model.evals_result_["validation_0"]["rmse"], predicted, rtol=1e-12)
    # parallel trees share the gradients of their round, in the first also with a longer model's
    one = clone(model).set_params(n_estimators=1).fit(X, y)
    n_terms = len(one.model_.linear.terms)
    assert one.model_.linear.terms.tobytes() == model.model_.linear.terms[:n_terms].tobytes()
    # the first tree is that of a model of such trees alone, but for its share of the step
    alone = clone(model).set_params(n_estimators=1, num_parallel_tree=1).fit(X, y)
    n_alone = len(alone.model_.linear.terms)
    slopes = one.model_.linear.terms.slope[:n_alone]
    assert_allclose(4 * slopes, alone.model_.linear.terms.slope, rtol=1e-9)


def test_several_targets():
    model, X, y = make("regression")
    targets = np.column_stack([y, -2.0 * y, np.where(np.arange(len(y)) % 3 == 0, nan, y)])
    both = clone(model).fit(X, targets)
    first = clone(model).fit(X, y)
    assert_allclose(both.predict(X)[:, 0], first.predict(X), rtol=1e-9)
    assert_allclose(both.predict(X)[:, 1], -2.0 * first.predict(X), rtol=1e-6)
    known = ~np.isnan(targets[:, 2])
    third = clone(model).fit(X[known], y[known])
    assert_allclose(both.predict(X)[:, 2], third.predict(X), rtol=1e-6, atol=1e-3)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (dict(monotone_constraints={2: 1}), "linear_tree=True does not go with monotone_constrain"),
        (dict(booster="dart"), "linear_tree=True does not go with booster='dart'"),
        *(
            (dict(objective=o), f"linear_tree=True, but the leaves of objective='{o}' are quantile")
            for o in ("reg:absoluteerror", "reg:quantileerror")
        ),
    ],
)
def test_what_does_not_go_with_lines(changes, words):
    model, X, y = make("regression", **changes)
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)


def test_monotone_constraints_are_not_verified():
    model, X, y = make("regression")
    model.set_params(monotone_constraints={2: 0}).fit(X, y)
    with pytest.raises(ValueError, match="verify_monotone compares constant leaves"):
        model.verify_monotone({2: 1})


def test_bins_have_no_values():
    words = "has no values, only the numbers of their bins.*pass the raw values"
    model, X, y = make("regression")
    binned = bin_features(X)
    with pytest.raises(ValueError, match=words):
        model.fit(binned, y)
    model.fit(X, y)
    constant = clone(model).set_params(linear_tree=False)
    with pytest.raises(ValueError, match=words):
        constant.fit(binned, y, init_model=model)
    with pytest.raises(ValueError, match="raw values"):
        model.predict(binned)


@pytest.mark.parametrize("case", ["far values", "heavy rows", "far values of little weight"])
def test_few_rows_do_not_cost_the_others_digits(case):
    """Sums are whole numbers of a step, which what is largest in a leaf decides on."""
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(200_000, 2)), rng.normal(size=200_000)
    y, weight = 6.0 * X[:, 0] + 5.0 * X[:, 1] + 0.1 * noise, np.ones(len(X))
    settings = dict(n_estimators=1, max_depth=2, linear_tree=True, linear_lambda=0.0)
    if case == "heavy rows":
        X, weight[:2000], y[:2000] = X[:, :1], 1e12, 0.0
        X[:2000], settings["max_depth"] = np.nan, 1  # or a leaf would have nothing but these
    else:
        X[:5, 0] = 3e6
        # rows that miss a feature are not counted for slopes
        X[:5, 1], weight[:5] = (np.nan, 1.0) if case == "far values" else (X[:5, 1], 1e-12)
    model = XGBRegressorLite(**settings, learning_rate=1.0).fit(X, y, sample_weight=weight)
    leaves, linear = model.apply(X)[:, 0], model.model_.linear
    leaf = leaves[0]
    terms = linear.terms[linear.starts[leaf] : linear.starts[leaf + 1]]
    features = terms.feature.tolist()
    rows = (leaves == leaf) & np.isfinite(X[:, features]).all(axis=1)
    design = np.column_stack([X[rows][:, features], np.ones(rows.sum())])
    roots = np.sqrt(weight[rows])
    slopes, *_ = np.linalg.lstsq(design * roots[:, np.newaxis], y[rows] * roots)
    assert rows.sum() > 20_000
    assert_allclose(terms.slope, slopes[: len(features)], rtol=1e-9)
