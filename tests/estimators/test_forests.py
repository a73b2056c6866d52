"""Forests of one round, and rounds of several trees."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import log_loss, root_mean_squared_error

from sklboost import (
    EarlyStopping,
    XGBClassifierLite,
    XGBRegressorLite,
    XGBRFClassifierLite,
    XGBRFRegressorLite,
)
from sklboost.boosting import rounds as calls

DRAWS = dict(subsample=0.7, colsample_bynode=0.6, colsample_bytree=0.8)


def bits(model):
    """Return what a model's trees are, but for the learning rate they were grown with."""
    own = model.model_
    return own.nodes.tobytes(), own.tree_starts.tobytes(), own.n_pruned.tobytes()


# --- what a forest is


@pytest.mark.parametrize(
    ("objective", "summary"), [("reg:squarederror", np.mean), ("reg:absoluteerror", np.median)]
)
def test_a_leaf_sums_up_its_rows_and_the_forest_is_the_mean(objective, summary, regression):
    X, y = regression
    forest = XGBRFRegressorLite(n_estimators=6, reg_lambda=0, subsample=1, random_state=0)
    forest.set_params(objective=objective).fit(X, y)
    leaves = forest.apply(X)
    trees = [[summary(y[leaf == own]) for own in leaf] for leaf in leaves.T]
    assert_allclose(forest.predict(X), np.mean(trees, axis=0), rtol=1e-6)
    assert len({tuple(leaf) for leaf in leaves.T}) == 6  # features were drawn for each


@pytest.mark.parametrize("data", ["regression", "binary", "multiclass"])
def test_trees_are_those_of_rounds_that_change_nothing(data, request):
    """Tree k of a forest draws as round k does, and has the gradients of the start."""
    X, y = request.getfixturevalue(data)
    boosted, forest = XGBClassifierLite, XGBRFClassifierLite
    if data == "regression":
        boosted, forest = XGBRegressorLite, XGBRFRegressorLite
    settings = dict(n_estimators=5, reg_lambda=0.3, random_state=3, max_depth=3) | DRAWS
    one = forest(**settings).fit(X, y)
    # values so small that the gradients stay what they were, and powers of two stay exact
    other = boosted(learning_rate=2.0**-500, **settings).fit(X, y)
    n_outputs = one.model_.n_outputs
    assert one.model_.n_trees == other.model_.n_trees == 5 * n_outputs
    assert (one.model_.n_rounds, other.model_.n_rounds) == (1, 5)
    assert one.n_estimators_ == other.n_estimators_ == 5
    for name in ("threshold", "gain", "gradient", "cover", "feature", "left"):
        assert_array_equal(one.model_.nodes[name], other.model_.nodes[name])
    assert_allclose(one.model_.nodes.value, other.model_.nodes.value * 2.0**500 / 5, rtol=1e-12)
    table, other_table = one.trees_to_dataframe(), other.trees_to_dataframe()
    assert_allclose(table["Output"], other_table["Output"], rtol=1e-12)


def test_trees_of_several_classes_lie_output_by_output(multiclass):
    X, y = multiclass
    forest = XGBRFClassifierLite(n_estimators=4, random_state=0).fit(X, y)
    leaves, starts = forest.apply(X), forest.model_.tree_starts
    raw = np.repeat(forest.model_.base_score[np.newaxis], len(X), axis=0)
    for tree in range(12):
        raw[:, tree % 3] += forest.model_.nodes.value[starts[tree] + leaves[:, tree]]
    assert_allclose(forest.decision_function(X), raw, rtol=1e-12)


def test_out_of_the_box(binary):
    X, y = binary
    forest = XGBRFClassifierLite(random_state=0).fit(X, y)
    given = forest.get_params()
    names = ("n_estimators", "learning_rate", "subsample", "colsample_bynode", "reg_lambda")
    assert [given[name] for name in names] == [100, 1.0, 0.8, 0.8, 1e-5]
    assert forest.fit_report_.n_trees == 100
    assert forest.fit_report_.n_rounds == 1
    assert len(list(forest.staged_predict(X))) == 1
    assert_array_equal(forest.predict(X, iteration_range=(0, 1)), forest.predict(X))


# --- rounds of several trees


def boosted_forest(task, n_estimators=4, **changes):
    estimator = XGBRegressorLite if task == "regression" else XGBClassifierLite
    settings = dict(num_parallel_tree=3, max_depth=3, random_state=1) | DRAWS | changes
    return estimator(n_estimators=n_estimators, **settings)


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_rounds_count_all_over(task, request):
    X, y = request.getfixturevalue(task)
    model = boosted_forest(task).fit(X, y, X_val=X, y_val=y)
    n_outputs = model.model_.n_outputs
    assert model.model_.n_trees == 4 * 3 * n_outputs
    assert model.n_estimators_ == model.model_.n_rounds == model.fit_report_.n_rounds == 4
    (values,) = model.evals_result_["validation_0"].values()
    assert len(values) == 4
    stages = model.staged_predict(X) if task == "regression" else model.staged_predict_proba(X)
    measure = root_mean_squared_error if task == "regression" else log_loss
    assert_allclose([measure(y, stage) for stage in stages], values, rtol=1e-9)
    assert values == sorted(values, reverse=True)
    leaves = model.apply(X)
    assert leaves.shape == (len(X), 4 * 3 * n_outputs)
    part = model.apply(X, iteration_range=(1, 3))
    assert_array_equal(part, leaves[:, 3 * n_outputs : 9 * n_outputs])
    predict = model.predict if task == "regression" else model.predict_proba
    first = list(model.staged_predict(X) if task == "regression" else model.staged_predict_proba(X))
    assert_array_equal(predict(X, iteration_range=(0, 2)), first[1])


@pytest.mark.parametrize(
    ("task", "trees_per_call"),
    [("regression", 1), ("regression", 3), ("multiclass", 2), ("multiclass", 100)],
)
def test_rounds_in_several_calls_are_those_in_one(task, trees_per_call, request, monkeypatch):
    X, y = request.getfixturevalue(task)
    whole = boosted_forest(task).fit(X, y, X_val=X, y_val=y)
    n_outputs = whole.model_.n_outputs
    monkeypatch.setattr(calls, "_VALUES_PER_CALL", X.size * n_outputs * trees_per_call)
    parts = boosted_forest(task).fit(X, y, X_val=X, y_val=y)
    assert bits(parts) == bits(whole)
    assert parts.evals_result_ == whole.evals_result_


def test_a_metric_in_python_sees_whole_rounds_only(regression, monkeypatch):
    X, y = regression
    monkeypatch.setattr(calls, "_VALUES_PER_CALL", X.size)
    seen = []

    def error(y_true, y_pred):
        seen.append(1)
        return root_mean_squared_error(y_true, y_pred)

    model = boosted_forest("regression", eval_metric=error).fit(X, y, X_val=X, y_val=y)
    values = model.evals_result_["validation_0"]["error"]
    stages = [root_mean_squared_error(y, stage) for stage in model.staged_predict(X)]
    assert_allclose(values, stages, rtol=1e-12)
    assert len(seen) <= 4 + 1  # one more that finds out what it takes


def test_early_stopping_ends_with_a_whole_round(regression):
    X, y = regression
    model = boosted_forest("regression", 50, early_stopping_rounds=2, refit=True).fit(X, y)
    assert model.n_estimators_ == model.best_iteration_ + 1 < 50
    assert model.model_.n_trees == 3 * model.n_estimators_


@pytest.mark.parametrize("task", ["regression", "multiclass"])
def test_continuing_gives_the_bits_of_one_go(task, request):
    X, y = request.getfixturevalue(task)
    whole = boosted_forest(task).fit(X, y)
    half = boosted_forest(task, 2).fit(X, y)
    assert bits(boosted_forest(task, 2).fit(X, y, init_model=half)) == bits(whole)
    warm = boosted_forest(task, 2, warm_start=True).fit(X, y)
    assert bits(warm.set_params(n_estimators=4).fit(X, y)) == bits(whole)


def test_continuing_with_other_rounds(regression):
    X, y = regression
    half = boosted_forest("regression", 2).fit(X, y)
    with pytest.raises(ValueError, match=r"5 parallel trees.*init_model have 3"):
        boosted_forest("regression", num_parallel_tree=5).fit(X, y, init_model=half)


# --- what does not go together


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("num_parallel_tree", 5, "1: n_estimators is the number of trees"),
        ("booster", "dart", "'gbtree': a forest is one round"),
        ("early_stopping_rounds", 5, "None: a forest is one round"),
        ("callbacks", [EarlyStopping(3)], "None: a forest is one round"),
    ],
)
def test_what_a_forest_does_not_have(name, value, words, binary):
    for forest in (XGBRFRegressorLite, XGBRFClassifierLite):
        with pytest.raises(ValueError, match=f"{name}=.*it must be {words}"):
            forest(**{name: value}).fit(*binary)
        with pytest.raises(ValueError, match=r"warm_start=True is not supported.* a forest is one"):
            forest(warm_start=True)


@pytest.mark.parametrize("estimator", [boosted_forest("regression"), XGBRFRegressorLite()])
def test_gradient_based_sampling_is_for_one_tree(estimator, regression):
    estimator.set_params(sampling_method="gradient_based", subsample=0.5)
    with pytest.raises(ValueError, match=r"gradient_based.*parallel trees.*uniform"):
        estimator.fit(*regression)
