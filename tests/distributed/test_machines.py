"""Machines that each have some of the rows grow the model of one machine, bit for bit."""

import gc
import weakref

import numpy as np
import pytest
from numba import njit
from sklearn.base import clone

from sklboost import (
    Loss,
    TrainingCallback,
    XGBClassifierLite,
    XGBDistributionLite,
    XGBRegressorLite,
    bin_features,
)
from sklboost.data.features import training_bins
from sklboost.distributed.exchange import Exchange
from sklboost.distributed.messages import LostPeerError, StoppedError
from sklboost.distributed.worker_group import LostWorkersError
from sklboost.engine.parallel import ThreadTeam
from sklboost.tree.core.machines import BLOCK_ROWS, SPLITS
from tests.distributed.machines import (
    ThreadGroup,
    assert_same_model,
    on_machines,
    thread_peers,
)

N_ROWS = 20_000  # five blocks, the last one shorter


def make_rows(n_rows=N_ROWS, n_features=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)).round(2)
    X[rng.random(X.shape) < 0.05] = np.nan
    X[:, 1] = rng.integers(30, size=n_rows)
    y = np.nan_to_num(X[:, 0]) * 2 + X[:, 1] % 7 + rng.normal(size=n_rows)
    return X, y


X, Y = make_rows()


def fit_both(monkeypatch, model, X, y, group, **arguments):
    """Fit on one machine and on a group; return both estimators and the rounds of the group."""
    categories = arguments.pop("categories", "from_dtype")
    weight = arguments.get("sample_weight") if model.linear_tree else None
    B = bin_features(X, model.max_bin, weight, categorical_features=categories)
    rows = X if model.linear_tree else B
    one = model.fit(rows, y, **arguments)
    with monkeypatch.context() as patch:
        made = on_machines(patch, group, B, X)
        other = clone(model).fit(rows, y, **arguments)
    (rounds,) = made
    return one, other, rounds


def classes_of(y, n_classes):
    return np.digitize(y, np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1]))


def each_on(n_machines, names, **other_numbers):
    """List names and numbers of machines: each name with one number, some with others, too.

    What a loss or a kind of leaves sends is of one form, whatever the number; and what the numbers
    change, who sends what to whom, is the same for all of them.
    """
    more = [(name, other) for name, others in other_numbers.items() for other in others]
    assert set(other_numbers) <= set(names)
    return [*((name, n_machines) for name in names), *more]


SETTINGS = {
    "plain": {},
    "deep": dict(max_depth=12, min_child_weight=0.0),
    "lossguide": dict(grow_policy="lossguide", max_depth=0, max_leaves=31),
    "few leaves": dict(max_leaves=11),
    "symmetric": dict(grow_policy="symmetric", gamma=3.0, colsample_bylevel=0.7),
    "symmetric, all splits": dict(grow_policy="symmetric", pruning="full", gamma=9.0),
    "subsample": dict(subsample=0.5),
    "gradient_based": dict(subsample=0.3, sampling_method="gradient_based"),
    "columns": dict(colsample_bytree=0.5, colsample_bylevel=0.7, colsample_bynode=0.7),
    "monotone": dict(monotone_constraints=(1, 0, -1, 0, 0, 0)),
    "interactions": dict(interaction_constraints=[[0, 1], [2, 3, 4]]),
    "smooth": dict(path_smooth=5.0, reg_alpha=1.0, max_delta_step=0.5),
    "extra trees": dict(extra_trees=True),
    "counted rows": dict(min_child_samples=100),
    "pruned": dict(gamma=50.0, ccp_alpha=0.001),
    "parallel trees": dict(num_parallel_tree=3, subsample=0.6, learning_rate=0.5),
    "many bins": dict(max_bin=700),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_any_number_of_machines_grows_the_same_trees(monkeypatch, name):
    model = XGBRegressorLite(n_estimators=2, random_state=3, **SETTINGS[name])
    for n_machines, n_threads in [
        (2, 2),
        *[(5, 1)] * (name in ("plain", "lossguide", "symmetric")),
    ]:
        group = ThreadGroup(n_machines, n_threads)
        one, other, rounds = fit_both(monkeypatch, model, X, Y, group)
        assert_same_model(one, other)
        assert one.fit_report_.traffic == {}
        assert other.fit_report_.traffic == rounds.traffic
        assert rounds.traffic["splits"] > (0, 0)
        assert other.fit_report_.n_threads == n_machines * n_threads


VECTORS = dict(multi_strategy="multi_output_tree")
OTHERS = {
    "classes": XGBClassifierLite(n_estimators=3, min_child_samples=20),
    "classes of vectors": XGBClassifierLite(n_estimators=3, min_child_samples=20, **VECTORS),
    "targets": XGBRegressorLite(n_estimators=3),
    "targets of vectors": XGBRegressorLite(n_estimators=3, **VECTORS),
    "distribution": XGBDistributionLite(n_estimators=4, random_state=0),
    "more machines than features": XGBRegressorLite(n_estimators=3),
    "weights far from one": XGBClassifierLite(
        n_estimators=4, class_weight="balanced", subsample=0.9, random_state=0
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_estimators_targets_and_weights(monkeypatch, name):
    X, y = make_rows()
    arguments, n_machines = {}, 3
    if "classes" in name:
        y = classes_of(y, 5)
    if "targets" in name:
        y = np.column_stack([y, np.where(X[:, 1] > 5, y**2, np.nan)])
    if name == "more machines than features":
        X, n_machines = X[:, :2], 5
    if name == "weights far from one":
        y, weight = classes_of(y, 2), np.random.default_rng(0).exponential(size=N_ROWS) * 1e6
        arguments = dict(sample_weight=weight)
    group = ThreadGroup(n_machines)
    assert_same_model(*fit_both(monkeypatch, OTHERS[name], X, y, group, **arguments)[:2])


@pytest.mark.parametrize(
    ("weighted", "strategy"), [(False, "one_output_per_tree"), (True, "multi_output_tree")]
)
def test_categories(monkeypatch, weighted, strategy):
    X, y = make_rows()
    X[:, 2] = np.random.default_rng(1).integers(90, size=N_ROWS)
    y = classes_of(y + np.sin(X[:, 2] * 17), 3)
    weight = np.random.default_rng(2).exponential(size=N_ROWS) if weighted else None
    model = XGBClassifierLite(n_estimators=3, multi_strategy=strategy, max_cat_to_onehot=20)
    arguments = dict(sample_weight=weight, categories=[1, 2])
    one, other, _ = fit_both(monkeypatch, model, X, y, ThreadGroup(3), **arguments)
    assert_same_model(one, other)
    assert (one.model_.nodes.feature == 2).any()
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


RENEWED = {
    "median": dict(objective="reg:absoluteerror", subsample=0.7),
    "quantiles": dict(objective="reg:quantileerror", quantile_alpha=[0.1, 0.5, 0.9]),
    "quantiles of vectors": dict(
        objective="reg:quantileerror", quantile_alpha=[0.25, 0.75], **VECTORS
    ),
    "percentages": dict(objective="reg:mape"),
    "many leaves": dict(objective="reg:absoluteerror", max_depth=0, max_leaves=300),
}


@pytest.mark.parametrize(("name", "n_machines"), each_on(3, RENEWED, median=[2, 5]))
def test_leaves_that_are_quantiles_of_the_rows_of_all_machines(monkeypatch, name, n_machines):
    X, y = make_rows()
    y = y.round(2 if name == "median" else 6) + 50  # many residuals are equal
    weight = None
    if name in ("quantiles", "many leaves"):  # sums of such weights depend on their order
        weight = np.random.default_rng(0).choice([0.1, 0.2, 0.3, 1e-9, 1e3], N_ROWS)
    model = XGBRegressorLite(n_estimators=3, random_state=0, **RENEWED[name])
    group = ThreadGroup(n_machines, 2 if n_machines == 2 else 1)
    one, other, _ = fit_both(monkeypatch, model, X, y, group, sample_weight=weight)
    assert_same_model(one, other)


DROPPING = dict(
    n_estimators=8, booster="dart", rate_drop=0.3, one_drop=True, random_state=0, max_depth=4
)
DROPPED = {
    "regression": XGBRegressorLite(**DROPPING, keep_pruned=True, gamma=1.0),
    "forests": XGBRegressorLite(**DROPPING, normalize_type="forest", num_parallel_tree=2),
    "classes": XGBClassifierLite(**DROPPING, sample_type="weighted"),
    "classes of vectors": XGBClassifierLite(**DROPPING, **VECTORS),
    "median": XGBRegressorLite(**DROPPING, objective="reg:absoluteerror"),
}


@pytest.mark.parametrize(("name", "n_machines"), each_on(5, DROPPED, regression=[1, 2, 3]))
def test_rounds_are_dropped(monkeypatch, name, n_machines):
    y = classes_of(Y, 3) if "classes" in name else Y
    # calls: each round one, and two more where rounds are dropped, from the second round on
    group = ThreadGroup(n_machines, lose_at=[4, 8, 12] if n_machines == 5 else [])
    given = dict(categories=[1], X_val=X[:500], y_val=y[:500])
    one, other, _ = fit_both(monkeypatch, DROPPED[name], X, y, group, **given)
    assert_same_model(one, other)
    assert one.evals_result_ == other.evals_result_
    assert (len(group.names) < n_machines) == (n_machines == 5)


LINEAR = dict(n_estimators=4, linear_tree=True, random_state=0)
LINES = {
    "numbers": XGBRegressorLite(**LINEAR, linear_lambda=0.1, max_delta_step=0.9, max_depth=9),
    "infinite values": XGBRegressorLite(**LINEAR, sampling_method="gradient_based", subsample=0.3),
    "single precision": XGBRegressorLite(**LINEAR, grow_policy="lossguide", min_child_weight=30.0),
    "parallel trees": XGBRegressorLite(**LINEAR, num_parallel_tree=3, subsample=0.5),
    "classes": XGBClassifierLite(**LINEAR, subsample=0.6),
    "targets": XGBRegressorLite(**LINEAR),
}


@pytest.mark.parametrize(("name", "n_machines"), each_on(3, LINES, numbers=[1, 2, 5]))
def test_linear_leaves(monkeypatch, name, n_machines):
    X, y = make_rows()
    if name == "infinite values":
        X[::19, 0], X[::23, 1], X[5, 2], X[:, 3] = np.inf, -np.inf, 1e300, X[:, 3] * 1e-305
    elif name == "single precision":
        X = X.astype(np.float32)
    elif name == "classes":
        y = classes_of(y, 3)
    elif name == "targets":
        y = np.column_stack([y, np.where(X[:, 1] > 5, y**2, np.nan)])
    weight = np.random.default_rng(0).exponential(size=N_ROWS)
    group = ThreadGroup(n_machines, n_threads=2 - n_machines % 2, lose_at=[2])
    given = dict(sample_weight=weight, X_val=X[:500], y_val=y[:500])
    one, other, rounds = fit_both(monkeypatch, LINES[name], X, y, group, **given)
    assert len(one.model_.linear.terms) > 30
    assert_same_model(one, other)
    assert one.evals_result_ == other.evals_result_
    assert ("leaves" in rounds.traffic) == (n_machines > 2)  # of those left


@njit
def row_function(y_true, y_pred):
    difference = y_pred - y_true
    return 1e-30 * difference * (2.0 if difference > 0 else 1.0), 2e-30


def array_function(y_true, y_pred, sample_weight):
    return sample_weight * 1e9 * (y_pred - y_true), 1e9 * sample_weight


class LogLosses(Loss):
    link = "log"

    def gradients(self, y, raw_score):
        return raw_score - np.log(y), np.ones_like(y)


OF_USERS = {"rows": row_function, "arrays": array_function, "class": LogLosses()}


@pytest.mark.parametrize(("name", "n_machines"), each_on(3, OF_USERS, arrays=[2, 5]))
def test_losses_of_users(monkeypatch, name, n_machines):
    model = XGBRegressorLite(
        objective=OF_USERS[name], n_estimators=4, subsample=0.9, random_state=0
    )
    weight = np.random.default_rng(0).exponential(size=N_ROWS)
    group = ThreadGroup(n_machines, lose_at=[1])
    one, other, rounds = fit_both(monkeypatch, model, X, Y + 20, group, sample_weight=weight)
    assert_same_model(one, other)
    assert ("derivatives" in rounds.traffic) == (n_machines > 2)  # of those left


def test_there_is_room_for_some_of_the_parallel_trees_of_a_round(monkeypatch):
    arguments = dict(categories=[1], X_val=X[:500], y_val=Y[:500])
    monkeypatch.setattr("sklboost.boosting.rounds._NODES_PER_CALL", 300)
    model = XGBRegressorLite(
        n_estimators=2, num_parallel_tree=5, subsample=0.5, random_state=0, keep_pruned=True
    )
    one, other, rounds = fit_both(monkeypatch, model, X, Y, ThreadGroup(2), **arguments)
    assert len(rounds.grown.n_pruned) == 2
    assert_same_model(one, other)
    assert one.evals_result_ == other.evals_result_
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_one_block_of_rows_is_on_one_machine(monkeypatch):
    X, y = make_rows(3000)
    model = XGBRegressorLite(n_estimators=5, subsample=0.5, random_state=0)
    one, other, rounds = fit_both(monkeypatch, model, X, y, ThreadGroup(3))
    assert_same_model(one, other)
    assert rounds.traffic == {}


@pytest.mark.parametrize("lose_at", [(), (0, 2)])
def test_the_training_loss_is_that_of_all_rows(monkeypatch, lose_at):
    class Losses(TrainingCallback):
        def __init__(self):
            self.values = []

        def before_training(self, training):
            self.values.append(training.training_loss())

        def after_iteration(self, training, epoch, evals_log):
            self.values.append(training.training_loss())
            return False

    B = bin_features(X)
    here, there = Losses(), Losses()
    XGBRegressorLite(n_estimators=3, callbacks=[here]).fit(B, Y)
    on_machines(monkeypatch, ThreadGroup(3, lose_at=lose_at), B)
    XGBRegressorLite(n_estimators=3, callbacks=[there]).fit(B, Y)
    assert here.values == there.values
    assert here.values[3] < here.values[0]


def test_a_training_that_is_over_starts_no_machines(monkeypatch):
    class Keeper(TrainingCallback):
        def before_training(self, training):
            self.training = training

    keeper, group = Keeper(), ThreadGroup(2)
    on_machines(monkeypatch, group, bin_features(X))
    XGBRegressorLite(n_estimators=2, callbacks=[keeper]).fit(bin_features(X), Y)
    with pytest.raises(RuntimeError, match="the training is over"):
        keeper.training.training_loss()
    assert group._members == []


def test_lost_machines_are_replaced(monkeypatch):
    model = XGBRegressorLite(n_estimators=6, subsample=0.7, random_state=0, verbose=0)
    group = ThreadGroup(4, lose_at=[1, 2, 4])
    every_round = dict(X_val=X[:100], y_val=Y[:100])
    one, other, _ = fit_both(monkeypatch, model, X, Y, group, **every_round)
    assert len(group.names) < 4
    assert_same_model(one, other)
    assert one.evals_result_ == other.evals_result_


def test_messages_do_not_grow_with_rows(monkeypatch):
    counts = []
    for n_rows in (N_ROWS, 3 * N_ROWS):
        X, y = make_rows(n_rows)
        model = XGBRegressorLite(n_estimators=4, max_depth=4)
        _, _, rounds = fit_both(monkeypatch, model, X, y, ThreadGroup(2))
        counts.append({name: n for name, (n, _) in rounds.traffic.items()})
    assert counts[0] == counts[1] == {"blocks": 2, "scales": 8, "histograms": 32, "splits": 32}


@pytest.mark.parametrize("linear_tree", [False, True])
def test_a_failed_exchange_ends_the_training(monkeypatch, linear_tree):
    B = bin_features(X)
    group = ThreadGroup(2)
    on_machines(monkeypatch, group, B, X)
    begun = group.start

    def start_and_stop(make, arguments):
        begun(make, arguments)
        group._peers[0].stop()

    monkeypatch.setattr(group, "start", start_and_stop)
    model = XGBRegressorLite(n_estimators=5, linear_tree=linear_tree)
    with pytest.raises((StoppedError, LostPeerError)):
        model.fit(X if linear_tree else B, Y)


def test_all_that_may_be_large_is_sent_as_arrays(monkeypatch):
    class WatchingGroup(ThreadGroup):
        def start(self, make, arguments):
            for pickled_work, n_threads, blocks, (arrays, _) in arguments.values():
                assert n_threads == 1
                sent = (pickled_work, blocks, *arrays)
                assert all(isinstance(array, np.ndarray) for array in sent)
            super().start(make, arguments)

    model = XGBRegressorLite(n_estimators=1)
    assert_same_model(*fit_both(monkeypatch, model, X, Y, WatchingGroup(2))[:2])


@pytest.mark.parametrize(
    "error", [LostWorkersError([], "lost"), ConnectionError("lost the scheduler")]
)
def test_a_finished_model_is_kept_where_its_traffic_is_not_told(monkeypatch, error):
    class SilentGroup(ThreadGroup):
        def traffic(self):
            raise error

    model = XGBRegressorLite(n_estimators=2)
    one, other, rounds = fit_both(monkeypatch, model, X, Y, SilentGroup(2))
    assert_same_model(one, other)
    assert rounds.traffic == {}


@pytest.mark.parametrize("fails", [False, True])
def test_memory_is_free_when_machines_are_no_more(fails):
    peers = thread_peers(2)[0]
    rows = np.arange(2 * BLOCK_ROWS) % 9.0
    with ThreadTeam(1) as team:
        matrix = training_bins(team, rows[:, np.newaxis], np.empty(0), 9)[0]
    peers._incoming[1].put(np.ones(2, dtype=np.uint8))  # which blocks the other has
    exchange = Exchange(peers, matrix, np.array([0]), len(rows))
    alive = weakref.ref(exchange)
    gc.disable()
    try:
        if fails:
            exchange._exchange(SPLITS)  # of no tree
            with pytest.raises(AttributeError):
                exchange.raise_error()
        del exchange
        assert alive() is None
    finally:
        gc.enable()


@pytest.mark.interpreted
def test_kernels_that_are_not_compiled(monkeypatch):
    X, y = make_rows(4200, n_features=2)
    model = XGBRegressorLite(n_estimators=1, max_depth=2)
    assert_same_model(*fit_both(monkeypatch, model, X, y, ThreadGroup(2))[:2])
