"""booster="dart" in fits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import log_loss, root_mean_squared_error

from sklboost import LearningRateScheduler, TrainingCallback, XGBClassifierLite, XGBRegressorLite
from sklboost.boosting.boosters import choose_rounds
from sklboost.boosting.settings import Dropout
from sklboost.estimators.parameters.boosters import seeds
from tests.reference import Settings, Tree, derivatives, start_score

DROPPING = dict(booster="dart", rate_drop=0.3, one_drop=True, random_state=5)
ORACLE_TASKS = {"regression": "squared_error", "binary": "log_loss", "multiclass": "softmax"}


def make(task, **changes):
    estimator = XGBRegressorLite if task == "regression" else XGBClassifierLite
    return estimator(**(dict(n_estimators=12, max_depth=2, n_jobs=1) | DROPPING | changes))


def predict(model, X):
    return model.predict(X) if isinstance(model, XGBRegressorLite) else model.predict_proba(X)


def measure(task):
    return root_mean_squared_error if task == "regression" else log_loss


def halves(data):
    X, y = data
    even = np.arange(len(y)) % 2 == 0
    return X[even], y[even], X[~even], y[~even]


def slow_dart(loss, X, y, weight, model):
    """Boost with dropped rounds in plain NumPy; give raw scores, (n_outputs, n_rows)."""
    eta, settings = model.learning_rate, Settings(max_depth=model.max_depth)
    start = start_score(loss, y, weight, None)[:, np.newaxis]
    own = Dropout(
        model.rate_drop,
        model.skip_drop,
        model.one_drop,
        model.sample_type == "weighted",
        model.normalize_type == "forest",
    )
    contributions, weights = [], []

    def total(left_out):
        raw = start + np.zeros(len(y))
        for index, added in enumerate(contributions):
            if index not in left_out:
                raw = raw + weights[index] * added
        return raw

    for _ in range(model.n_estimators):
        dropped = choose_rounds(np.array(weights), own, seeds(model.random_state, True)[1])
        g, h = derivatives(loss, y, total(dropped))
        trees = [Tree(X, weight * g[k], weight * h[k], settings) for k in range(len(g))]
        contributions.append(
            np.array([[eta * tree.leaf_of(x).weight for x in X] for tree in trees])
        )
        k = len(dropped)
        for index in dropped:
            weights[index] *= 1 / (1 + eta) if model.normalize_type == "forest" else k / (k + eta)
        if k == 0:
            weights.append(1.0)
        else:
            weights.append(1 / (1 + eta) if model.normalize_type == "forest" else 1 / (k + eta))
    assert len(set(weights)) > 3
    return total([])


@pytest.mark.parametrize(
    ("task", "changes"),
    [
        ("regression", dict(normalize_type="forest")),
        ("regression", dict(one_drop=False, skip_drop=0.4, learning_rate=0.8)),
        ("binary", dict(sample_type="weighted")),
        ("binary", dict(random_state=6)),
        ("multiclass", {}),
    ],
)
def test_the_oracle_of_the_same_rules(task, changes):
    random = np.random.default_rng(3)
    X = random.integers(0, 9, (40, 3)) + random.uniform(0, 0.5, (40, 3))
    signal, weight = X[:, 0] - X[:, 1] + random.normal(size=40), random.uniform(0.5, 2, 40)
    y = {"regression": signal, "binary": 1.0 * (signal > 0)}.get(task)
    y = np.digitize(signal, [-2.0, 2.0]).astype(float) if y is None else y
    model = make(task, **changes).fit(X, y, sample_weight=weight)
    expected = slow_dart(ORACLE_TASKS[task], X, y, weight, model)
    own = model.predict(X) if task == "regression" else model.decision_function(X)
    assert_allclose(own.T.reshape(expected.shape), expected, rtol=1e-5, atol=1e-5)


class Snapshots(TrainingCallback):
    """Keeps the estimator as it was after each round, and its loss."""

    def __init__(self):
        self.taken = []

    def after_iteration(self, training, epoch, evals_log):
        self.taken.append((training.snapshot(), training.training_loss()))
        return False


@pytest.mark.parametrize(
    ("task", "changes"),
    [("regression", dict(num_parallel_tree=2, subsample=0.7)), ("binary", {}), ("multiclass", {})],
)
def test_values_after_each_round_are_those_of_the_model_then(task, changes, request):
    X, y, X_val, y_val = halves(request.getfixturevalue(task))
    keep = Snapshots()
    model = make(task, callbacks=[keep], **changes)
    model.fit(X, y, eval_set=[(X, y), (X_val, y_val)])
    values = [next(iter(own.values())) for own in model.evals_result_.values()]
    for of_set, (rows, targets) in zip(values, [(X, y), (X_val, y_val)], strict=True):
        then = [measure(task)(targets, predict(own, rows)) for own, _ in keep.taken]
        assert_allclose(of_set, then, rtol=1e-9)
    losses = [loss for _, loss in keep.taken]  # of the scores that the training itself has
    assert_allclose(losses, [0.5 * v**2 if task == "regression" else v for v in values[0]])
    assert_array_equal(predict(keep.taken[-1][0], X), predict(model, X))
    # an earlier round has lost weight since
    assert model.model_.params.learning_rate[0] < keep.taken[0][0].model_.params.learning_rate[0]


def test_leaves_that_are_medians(regression):
    X, y, X_val, y_val = halves(regression)
    settings = dict(objective="reg:absoluteerror", eval_metric="rmse", num_parallel_tree=2)
    model = make("regression", **settings).fit(X, y, eval_set=[(X, y), (X_val, y_val)])
    for own, (rows, targets) in zip(
        model.evals_result_.values(), [(X, y), (X_val, y_val)], strict=True
    ):
        last = root_mean_squared_error(targets, model.predict(rows))
        assert_allclose(own["rmse"][-1], last, rtol=1e-9)


@pytest.mark.parametrize("task", ["regression", "multiclass"])
def test_early_stopping_gives_the_model_as_it_was_at_its_best(task, request):
    X, y, X_val, y_val = halves(request.getfixturevalue(task))
    settings = dict(early_stopping_rounds=5, learning_rate=0.9, max_depth=3)
    model = make(task, n_estimators=100, **settings).fit(X, y, X_val=X_val, y_val=y_val)
    (values,) = model.evals_result_["validation_0"].values()
    assert model.stop_reason_ == "early_stopping"
    assert len(values) == model.best_iteration_ + 6
    assert_allclose(measure(task)(y_val, predict(model, X_val)), model.best_score_, rtol=1e-9)
    short = make(task, n_estimators=model.best_iteration_ + 1, learning_rate=0.9, max_depth=3)
    assert_array_equal(predict(short.fit(X, y), X_val), predict(model, X_val))
    model.set_params(refit=True).fit(X, y, X_val=X_val, y_val=y_val)
    whole = short.fit(np.vstack([X, X_val]), np.r_[y, y_val])
    assert_array_equal(predict(model, X), predict(whole, X))


@pytest.mark.parametrize("task", ["regression", "multiclass"])
def test_nothing_dropped_is_plain_boosting(task, request):
    X, y = request.getfixturevalue(task)
    plain, nothing, skipped = (
        make(task, **changes).fit(X, y)
        for changes in (
            dict(booster="gbtree"),
            dict(rate_drop=0.0, one_drop=False),
            dict(skip_drop=1.0),
        )
    )
    for own in (nothing, skipped):
        assert own.model_.nodes.tobytes() == plain.model_.nodes.tobytes()


def test_learning_rates_of_rounds(regression):
    X, y = regression
    rates = [0.5, 0.1] * 6
    keep = Snapshots()
    callbacks = [LearningRateScheduler(rates), keep]
    model = make("regression", rate_drop=1.0, callbacks=callbacks).fit(X, y)
    # all are dropped, and the second round was told 0.1: both keep a weight of 1 / (1 + 0.1)
    own = keep.taken[1][0].model_.params.learning_rate
    assert_allclose(own, [0.5 / 1.1, 0.1 / 1.1])
    assert model.n_estimators_ == 12


@pytest.mark.parametrize("how", ["init_model", "warm_start"])
def test_dart_cannot_continue_a_model(how, regression):
    X, y = regression
    model = make("regression", warm_start=how == "warm_start").fit(X, y)
    more = model.set_params(n_estimators=20) if how == "warm_start" else make("regression")
    with pytest.raises(ValueError, match=rf"booster='dart'.*cannot continue.*{how}"):
        more.fit(X, y, init_model=model if how == "init_model" else None)
    # but others can continue what it made
    made = make("regression").fit(X, y)
    longer = make("regression", booster="gbtree").fit(X, y, init_model=made)
    # whose gradients are known of its own rounds only, whatever the parameters are later
    made.set_params(booster="gbtree")
    texts = [model.explain_split(11, 0, X, y).text for model in (made, longer)]
    assert all("which these were is not kept" in text for text in texts)
    assert "These are the sums of the training" in longer.explain_split(12, 0, X, y).text
    assert_array_equal(longer.predict(X, iteration_range=(0, 12)), made.predict(X))
