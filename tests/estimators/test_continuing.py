"""Training in several goes is training in one go, bit for bit."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError

from sklboost import XGBClassifierLite, XGBRegressorLite, XGBSurvivalLite, bin_features
from tests.small_models import outputs

TASKS = {
    "regression": (XGBRegressorLite, load_diabetes),
    "binary": (XGBClassifierLite, load_breast_cancer),
    "softmax": (XGBClassifierLite, load_iris),
}
SETTINGS = {
    "plain": {},
    "rows drawn": dict(subsample=0.6, random_state=3),
    "by gradient": dict(subsample=0.4, sampling_method="gradient_based", random_state=3),
    "features drawn": dict(
        colsample_bytree=0.7, colsample_bylevel=0.8, colsample_bynode=0.9, random_state=3
    ),
    "lossguide": dict(grow_policy="lossguide", max_leaves=7, max_depth=0, gamma=0.1),
}


@pytest.fixture(scope="module")
def data():
    return load_diabetes(return_X_y=True)


def make(estimator, **parameters):
    return estimator(**(dict(n_estimators=9, max_depth=3) | parameters))


def check_same_model(one, other):
    for name in ("nodes", "tree_starts", "base_score", "n_pruned"):
        assert getattr(one.model_, name).tobytes() == getattr(other.model_, name).tobytes()
    assert one.n_estimators_ == other.n_estimators_


def in_goes(model, X, y, goes, **arguments):
    """Fit in several goes, by `init_model` and by `warm_start`; give both models."""
    continued, warm, total = None, clone(model).set_params(warm_start=True), 0
    for n_rounds in goes:
        total += n_rounds
        own = clone(model).set_params(n_estimators=n_rounds)
        continued = own.fit(X, y, init_model=continued, **arguments)
        warm.set_params(n_estimators=total).fit(X, y, **arguments)
    return continued, warm


# --- bit for bit ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "settings", "goes"),
    [
        ("regression", "plain", (1, 6, 2)),
        ("regression", "by gradient", (4, 5)),
        ("binary", "rows drawn", (1, 6, 2)),
        ("binary", "lossguide", (4, 5)),
        ("softmax", "plain", (4, 5)),
        ("softmax", "rows drawn", (4, 5)),
        ("softmax", "features drawn", (1, 6, 2)),
    ],
)
def test_in_one_go_and_in_several(task, settings, goes):
    estimator, load = TASKS[task]
    X, y = load(return_X_y=True)
    model = make(estimator, **SETTINGS[settings])
    whole = clone(model).fit(X, y)
    for own in in_goes(model, X, y, goes):
        check_same_model(own, whole)
        assert_array_equal(outputs(own, X), outputs(whole, X))
        assert_array_equal(own.apply(X), whole.apply(X))
        assert own.trees_to_dataframe().equals(whole.trees_to_dataframe())


@pytest.mark.parametrize(
    ("task", "settings"),
    [("regression", {}), *((task, dict(subsample=0.5, random_state=0)) for task in TASKS)],
)
def test_weights_and_margins(task, settings):
    estimator, load = TASKS[task]
    X, y = load(return_X_y=True)
    random = np.random.default_rng(0)
    weight = random.integers(0, 4, len(y)) / (1 if settings else 2)
    margin = random.normal(size=(len(y), 3 if task == "softmax" else 1))
    for arguments in (dict(sample_weight=weight), dict(base_margin=margin)):
        model = make(estimator, **settings)
        whole = clone(model).fit(X, y, **arguments)
        for own in in_goes(model, X, y, (4, 5), **arguments):
            check_same_model(own, whole)


@pytest.mark.parametrize("max_bin", [40, 300])
def test_bins(data, max_bin):
    X, y = data
    binned = bin_features(X, max_bin=max_bin)
    model = make(XGBRegressorLite, max_bin=max_bin, max_depth=7)
    whole = clone(model).fit(binned, y)
    for own in in_goes(model, binned, y, (4, 5)):
        check_same_model(own, whole)
    first = make(XGBRegressorLite, max_bin=max_bin, max_depth=7, n_estimators=4).fit(X, y)
    mixed = make(XGBRegressorLite, max_bin=max_bin, max_depth=7, n_estimators=5)
    check_same_model(mixed.fit(binned, y, init_model=first), whole)


@pytest.mark.parametrize(
    ("task", "settings"),
    [("regression", dict(subsample=0.5, colsample_bynode=0.5)), ("binary", {}), ("softmax", {})],
)
def test_many_rows_and_other_numbers_of_threads(task, settings):
    estimator, _ = TASKS[task]
    random = np.random.default_rng(0)
    X = random.normal(size=(30_000, 7))  # gradients are rounded at random beyond 4,096
    X[::9, 0] = np.nan
    y = X[:, 1] * X[:, 2] + random.normal(size=len(X))
    if task != "regression":
        y = np.digitize(y, [0.0] if task == "binary" else [-0.5, 0.5])
    settings = settings | dict(random_state=5)
    whole = make(estimator, n_estimators=4, **settings, n_jobs=1).fit(X, y)
    first = make(estimator, n_estimators=1, **settings, n_jobs=2).fit(X, y)
    first = pickle.loads(pickle.dumps(first))
    model = make(estimator, n_estimators=3, **settings, n_jobs=3)
    model.fit(X, y, init_model=first)
    check_same_model(model, whole)
    assert model.fit_report_.n_threads == 3


def test_an_estimator_may_continue_itself(data):
    X, y = data
    whole = make(XGBRegressorLite, n_estimators=18).fit(X, y)
    model = make(XGBRegressorLite).fit(X, y)
    first, nodes = model.model_, model.model_.nodes.tobytes()
    check_same_model(model.fit(X, y, init_model=model), whole)
    assert first.nodes.tobytes() == nodes  # the model of before is left as it was


def test_init_model_goes_before_warm_start(data):
    X, y = data
    first = make(XGBRegressorLite, n_estimators=2).fit(X, y)
    model = make(XGBRegressorLite, warm_start=True, n_estimators=7).fit(X, y)
    model.fit(X, y, init_model=first)
    assert model.n_estimators_ == 9


# --- other settings, other data ------------------------------------------------------------------


def check_outputs_are_values(model):
    """Check that Output times the learning rate is the value, tree by tree."""
    frame = model.trees_to_dataframe()
    leaves = frame[frame["Feature"] == "Leaf"]
    rates = model.model_.params["learning_rate"][leaves["Tree"]]
    assert_allclose(leaves["Output"] * rates, leaves["Gain"], rtol=1e-12)
    return rates


@pytest.mark.parametrize("task", TASKS)
def test_parameters_changed_in_between(task):
    estimator, load = TASKS[task]
    X, y = load(return_X_y=True)
    first = make(estimator, n_estimators=2, learning_rate=0.5, reg_lambda=1.0, reg_alpha=0.0)
    first.fit(X, y)
    model = make(estimator, n_estimators=3, learning_rate=0.1, reg_lambda=4.0, reg_alpha=0.5)
    model.set_params(max_depth=2, max_bin=12, gamma=0.2, max_delta_step=1.0)
    model.fit(X, y, init_model=first)
    assert set(check_outputs_are_values(model)) == {0.5, 0.1}
    n_trees = first.model_.n_trees
    frame, own = first.trees_to_dataframe(), model.trees_to_dataframe()
    assert own[own["Tree"] < n_trees].equals(frame)
    # what came first is the margin of the rest, but for the start
    margin = first.predict(X) if task == "regression" else first.decision_function(X)
    rest = clone(model).fit(X, y, base_margin=margin)
    of_rest = rest.trees_to_dataframe()
    columns = ["Node", "Feature", "Split", "Gain", "Cover", "Output"]
    new = own[own["Tree"] >= n_trees].reset_index()
    assert new[columns].equals(of_rest[columns])
    assert new["Tree"].min() == n_trees


@pytest.mark.parametrize("is_warm", [True, False])
def test_another_loss_continues_from_the_scores_as_from_margins(data, is_warm):
    X, y = data
    y = 1000 * y
    first = make(XGBRegressorLite, n_estimators=60, warm_start=is_warm).fit(X, y)
    margin = first.predict(X)
    settings = dict(objective="reg:pseudohubererror", huber_slope=100.0, min_child_weight=20)
    rest = make(XGBRegressorLite, **settings).fit(X, y, base_margin=margin)
    if is_warm:
        own = first.set_params(**settings, n_estimators=69).fit(X, y)
    else:
        own = make(XGBRegressorLite, **settings).fit(X, y, init_model=first)
    assert own.model_.nodes[-len(rest.model_.nodes) :].tobytes() == rest.model_.nodes.tobytes()
    # more rounds of this loss are the rest of one training
    whole = make(XGBRegressorLite, **settings, n_estimators=18).fit(X, y)
    for more in in_goes(make(XGBRegressorLite, **settings), X, y, (7, 11)):
        check_same_model(more, whole)


def test_validation_goes_on(data):
    X, y = data
    valid = dict(X_val=X[300:], y_val=y[300:])
    whole = make(XGBRegressorLite).fit(X[:300], y[:300], **valid).evals_result_
    first = make(XGBRegressorLite, n_estimators=4).fit(X[:300], y[:300])
    model = make(XGBRegressorLite, n_estimators=5).fit(X[:300], y[:300], init_model=first, **valid)
    assert model.evals_result_["validation_0"]["rmse"] == whole["validation_0"]["rmse"][4:]


# --- slices and stages ---------------------------------------------------------------------------


def raw(model, X, **arguments):
    method = model.decision_function if is_classifier(model) else model.predict
    return method(X, **arguments)


@pytest.mark.parametrize("task", TASKS)
def test_slices_and_stages_sum_up(task):
    estimator, load = TASKS[task]
    X, y = load(return_X_y=True)
    model = make(estimator, base_score=0.0 if task != "binary" else 0.5).fit(X, y)
    whole = raw(model, X)
    parts = [raw(model, X, iteration_range=own) for own in ((0, 2), (2, 3), (3, 9))]
    assert_allclose(sum(parts), whole, rtol=1e-12, atol=1e-12)
    assert_array_equal(raw(model, X, iteration_range=(0, 0)), whole)
    assert_array_equal(raw(model, X, iteration_range=(0, 9)), whole)
    n_outputs = model.model_.n_outputs
    leaves = model.apply(X, iteration_range=(2, 5))
    assert_array_equal(leaves, model.apply(X)[:, 2 * n_outputs : 5 * n_outputs])
    names = ["staged_predict"]
    if is_classifier(model):
        names += ["staged_predict_proba", "staged_decision_function"]
    for name in names:
        stages = list(getattr(model, name)(X))
        assert len(stages) == 9
        method = name.removeprefix("staged_")
        for n_rounds, stage in enumerate(stages, start=1):
            assert_array_equal(stage, getattr(model, method)(X, iteration_range=(0, n_rounds)))
        shorter = make(estimator, n_estimators=4, base_score=model.base_score).fit(X, y)
        assert_array_equal(stages[3], getattr(shorter, method)(X))


def test_ranges_that_the_model_has_not(data):
    model = make(XGBRegressorLite).fit(*data)
    words = r"^iteration_range=.*0 <= first < last <= 9; a last of 0"
    for wrong in (
        (3, 2),
        (2, 2),
        (0, 10),
        (-1, 3),
        (9, 0),
        3,
        (1, 2, 3),
        (0.0, 2),
        "02",
        (True, 3),
    ):
        with pytest.raises(ValueError, match=words):
            model.predict(data[0], iteration_range=wrong)


# --- errors --------------------------------------------------------------------------------------


def test_other_estimators_cannot_be_continued(data):
    X, y = data
    labels = (y > 100).astype(int)
    classifier = make(XGBClassifierLite).fit(X, labels)
    for wrong in (classifier, 3, XGBRegressorLite):
        with pytest.raises(TypeError, match=r"^init_model=.*must be a fitted XGBRegressorLite"):
            make(XGBRegressorLite).fit(X, y, init_model=wrong)
    with pytest.raises(NotFittedError):
        make(XGBRegressorLite).fit(X, y, init_model=make(XGBRegressorLite))


@pytest.mark.parametrize("is_warm", [True, False])
@pytest.mark.parametrize(
    ("task", "before", "after"),
    [
        ("regression", "reg:squarederror", "reg:gamma"),
        ("regression", "reg:tweedie", "reg:absoluteerror"),
        ("regression", "reg:gamma", "reg:squaredlogerror"),
        ("regression", "reg:squarederror", "reg:logistic"),
        ("binary", "binary:logistic", "binary:hinge"),
        ("softmax", "multi:softprob", "multi:onevsrest"),
        ("survival", "survival:cox", "survival:aft"),
    ],
)
def test_raw_scores_of_another_meaning_cannot_be_continued(task, before, after, is_warm):
    if task == "survival":
        estimator, (X, y) = XGBSurvivalLite, load_diabetes(return_X_y=True)
    else:
        estimator, load = TASKS[task]
        X, y = load(return_X_y=True)
        y = y / y.max() if task == "regression" else y
    first = make(estimator, objective=before, warm_start=is_warm).fit(X, y)
    expected, name = first.predict(X), "the model of warm_start=True" if is_warm else "init_model"
    own = first if is_warm else make(estimator)
    own.set_params(objective=after, n_estimators=20)
    words = rf"^objective='{after}' .*, but {name} was fitted with '{before}' .*fit anew$"
    with pytest.raises(ValueError, match=words):
        own.fit(X, y, **({} if is_warm else dict(init_model=first)))
    assert_array_equal(first.predict(X), expected)


def test_as_many_outputs_of_other_targets_cannot_be_continued(data):
    X, y = data
    settings = dict(objective="reg:quantileerror")
    two = make(XGBRegressorLite, **settings).fit(X, np.column_stack([y, -y]))
    model = make(XGBRegressorLite, **settings, quantile_alpha=[0.1, 0.9])
    with pytest.raises(ValueError, match=r"1 target.* 2 raw .*but init_model .*2 target.* 2 raw"):
        model.fit(X, y, init_model=two)


@pytest.mark.parametrize("is_warm", [True, False])
def test_other_features_and_classes(is_warm):
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = make(XGBClassifierLite, warm_start=is_warm).fit(X, y)
    before = model.model_
    own = model if is_warm else make(XGBClassifierLite)
    arguments = {} if is_warm else dict(init_model=model)
    own.set_params(n_estimators=20)
    name = "the model of warm_start=True" if is_warm else "init_model"
    with pytest.raises(ValueError, match=f"^X has 3 features, but {name} was fitted with 4"):
        own.fit(X.iloc[:, :3], y, **arguments)
    with pytest.raises(ValueError, match=f"^X has the features .*, but {name} was fitted with"):
        own.fit(X.rename(columns={"petal width (cm)": "width"}), y, **arguments)
    with pytest.raises(ValueError, match=rf"classes \[0, 1\], but {name} was .* \[0, 1, 2\]: cont"):
        own.fit(X[y < 2], y[y < 2], **arguments)
    assert model.model_ is before


def test_classes_of_times_are_those_of_any_unit():
    X, y = load_iris(return_X_y=True)
    days = np.array(["2026-01-01", "2026-01-02", "2026-01-03"], dtype="M8[D]")[y]
    before = make(XGBClassifierLite).fit(X, days)
    nanoseconds = days.astype("M8[ns]")
    model = make(XGBClassifierLite).fit(X, nanoseconds, init_model=before)
    assert (model.predict(X) == days).mean() > 0.9
    with pytest.raises(ValueError, match=r"^y has the classes \[17\d+, .*\['2026-01-01', "):
        make(XGBClassifierLite).fit(X, nanoseconds.astype(np.int64), init_model=before)


def test_number_of_rounds_of_a_warm_start(data):
    X, y = data
    model = make(XGBRegressorLite, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"^n_estimators=8: .* at least the 9 rounds"):
        model.set_params(n_estimators=8).fit(X, y)
    before = model.predict(X)
    with pytest.warns(UserWarning, match="n_estimators=9 is what the model already has"):
        model.set_params(n_estimators=9).fit(X, y)
    assert_array_equal(model.predict(X), before)
    assert (model.n_estimators_, model.stop_reason_) == (9, "completed")


def test_margins_of_the_continued_model_are_asked_for_again(data):
    X, y = data
    first = make(XGBRegressorLite).fit(X, y, base_margin=y / 2)
    with pytest.raises(ValueError, match=r"^init_model was fitted with base_margin.*pass it"):
        make(XGBRegressorLite).fit(X, y, init_model=first)


def test_another_marker_of_missing_values(data):
    model = make(XGBRegressorLite, missing=-1.0).fit(*data)
    with pytest.raises(ValueError, match=r"missing=nan, but init_model was fitted with missing=-1"):
        make(XGBRegressorLite).fit(*data, init_model=model)
    assert make(XGBRegressorLite, missing=-1).fit(*data, init_model=model).n_estimators_ == 18


# --- warm start and early stopping ---------------------------------------------------------------


def check_is_consistent(model):
    """Check that what is said of the best round is true, and that the model ends with it."""
    assert model.n_estimators_ == model.model_.n_rounds == model.best_iteration_ + 1
    values = list(list(model.evals_result_.values())[-1].values())[-1]
    assert values[model.best_iteration_] == model.best_score_ == min(values)


def stopping(estimator=XGBRegressorLite, **parameters):
    settings = dict(n_estimators=300, early_stopping_rounds=4, warm_start=True, learning_rate=0.5)
    return make(estimator, **settings | parameters)


@pytest.mark.parametrize(
    ("task", "is_given", "settings"),
    [
        ("regression", False, dict(random_state=7)),
        ("regression", True, dict(subsample=0.7)),
        ("binary", True, {}),
        ("binary", False, dict(subsample=0.7)),
        ("softmax", False, {}),
        ("softmax", True, dict(random_state=7)),
    ],
)
def test_another_fit_that_finds_nothing_better_changes_nothing(task, is_given, settings):
    estimator, load = TASKS[task]
    X, y = load(return_X_y=True)
    valid = dict(X_val=X[1::4], y_val=y[1::4]) if is_given else {}
    X, y = (X[0::2], y[0::2]) if is_given else (X, y)
    model = stopping(estimator, **settings).fit(X, y, **valid)
    check_is_consistent(model)
    nodes, kept = model.model_.nodes.tobytes(), (model.best_iteration_, model.best_score_)
    for _ in range(3):
        n_before = model.n_estimators_
        model.fit(X, y, **valid)
        check_is_consistent(model)
        if settings != dict(subsample=0.7):  # other rows are drawn, which may be luckier
            assert (model.best_iteration_, model.best_score_) == kept
            assert model.model_.nodes.tobytes() == nodes
            assert model.stop_reason_ == ("early_stopping" if n_before < 296 else "completed")
        assert model.n_estimators_ >= n_before
        assert model.best_score_ <= kept[1]


def test_what_is_better_is_kept(data):
    X, y = data
    valid = dict(X_val=X[300:], y_val=y[300:])
    model = stopping(n_estimators=3, learning_rate=0.1).fit(X[:300], y[:300], **valid)
    before = model.best_score_
    first, n_first = model.model_, model.n_estimators_
    model.set_params(n_estimators=300, learning_rate=0.05).fit(X[:300], y[:300], **valid)
    check_is_consistent(model)
    assert model.n_estimators_ > n_first
    assert model.best_score_ < before
    assert model.model_.nodes[: len(first.nodes)].tobytes() == first.nodes.tobytes()
    predicted = model.predict(X[300:])
    assert np.mean((predicted - y[300:]) ** 2) ** 0.5 == pytest.approx(model.best_score_)


def test_metrics_of_all_rounds_are_those_of_one_fit(data):
    X, y = data
    valid = dict(eval_set=[(X[:300], y[:300]), (X[300:], y[300:])])
    metrics = ["mae", lambda y_true, y_pred: np.abs(y_true - y_pred).max(), "rmse"]
    whole = make(XGBRegressorLite, eval_metric=metrics).fit(X[:300], y[:300], **valid)
    model = make(XGBRegressorLite, eval_metric=metrics, warm_start=True, n_estimators=4)
    model.fit(X[:300], y[:300])
    model.set_params(n_estimators=9).fit(X[:300], y[:300], **valid)
    assert list(model.evals_result_) == list(whole.evals_result_)
    for name, of_set in whole.evals_result_.items():
        for metric, values in of_set.items():
            assert model.evals_result_[name][metric] == values


def test_a_model_that_was_trained_beyond_its_best_round_ends_there(data):
    X, y = data
    valid = dict(X_val=X[300:], y_val=y[300:])
    model = stopping(n_estimators=60, early_stopping_rounds=None).fit(X[:300], y[:300])
    model.set_params(n_estimators=70, early_stopping_rounds=4).fit(X[:300], y[:300], **valid)
    check_is_consistent(model)
    assert model.n_estimators_ < 60
    check_same_model(
        model, stopping(n_estimators=model.n_estimators_).fit(X[:300], y[:300], **valid)
    )


def test_nothing_to_fit_leaves_the_best_round_known(data):
    X, y = data
    valid = dict(X_val=X[300:], y_val=y[300:])
    model = stopping(n_estimators=3, learning_rate=0.1).fit(X[:300], y[:300], **valid)
    best = model.best_score_
    with pytest.warns(UserWarning, match="there is nothing to fit"):
        model.fit(X[:300], y[:300], **valid)
    check_is_consistent(model)
    assert model.best_score_ == best


@pytest.mark.parametrize(
    "settings", [dict(linear_tree=True), dict(refit=True, random_state=1), dict(refit=True)]
)
def test_other_ways_to_train(data, settings):
    X, y = data
    X = X if settings.get("linear_tree") else csr_array(np.maximum(X, 0.0))
    model = stopping(**dict(random_state=0) | settings).fit(X, y)
    best, predicted = (model.best_iteration_, model.best_score_), model.predict(X)
    for _ in range(2):
        model.fit(X, y)
        check_is_consistent(model)
        assert (model.best_iteration_, model.best_score_) == best
        assert_array_equal(model.predict(X), predicted)


def test_more_rounds_of_a_model_that_was_trained_on_all_rows(data):
    settings = dict(refit=True, learning_rate=0.1, random_state=0)
    whole = stopping(n_estimators=8, **settings).fit(*data)
    assert whole.n_estimators_ == 8
    model = stopping(n_estimators=5, **settings).fit(*data)
    model.set_params(n_estimators=8).fit(*data)
    check_same_model(model, whole)
    assert model.evals_result_ == whole.evals_result_
    assert model.set_params(refit=False, warm_start=False).fit(*data)._before_refit is None


def test_the_same_rows_are_held_out_again(data):
    seen = []

    def error(y_true, y_pred):
        seen.append(y_true.tolist())
        return np.mean((y_true - y_pred) ** 2)

    model = stopping(eval_metric=error, random_state=np.random.RandomState(0)).fit(*data)
    first = seen[0]
    seen.clear()
    model.fit(*data)
    assert all(rows == first for rows in seen)
    seen.clear()
    model.set_params(warm_start=False).fit(*data)
    assert seen[0] != first


@pytest.mark.parametrize(
    "settings", [dict(refit=False), dict(refit=True), dict(refit=True, max_time=1e-9)], ids=str
)
def test_what_is_held_out_now_was_held_out_of_the_model_that_is_continued(settings):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(400, 6)), random.normal(size=400)  # nothing to learn
    model = stopping(random_state=0, refit=True).fit(X, y)
    best, known = model.best_score_, model.predict(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(**settings).fit(X, y)
    assert model.best_score_ == best
    assert (model.predict(X) == known).all() == settings["refit"]


@pytest.mark.parametrize("settings", [dict(early_stopping_rounds=None), dict(refit=True)], ids=str)
def test_a_model_that_has_learnt_from_what_is_held_out_now(data, settings):
    X, y = data
    model = stopping(n_estimators=5, random_state=0, warm_start=False, **settings).fit(X, y)
    model.set_params(n_estimators=8, early_stopping_rounds=4, warm_start=True)
    with pytest.warns(UserWarning, match="^the model of warm_start=True has learnt from the rows"):
        model.fit(X, y)
