import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.boosting import rounds
from sklboost.boosting.rounds import boost
from sklboost.data.binning import bin_matrix
from sklboost.data.raw import raw_matrix
from sklboost.losses.gradients import allocate_scratch, fill_gradients
from sklboost.losses.log_loss import LogLoss
from sklboost.losses.softmax import Softmax
from sklboost.losses.squared_error import SquaredError
from sklboost.parallel import ThreadTeam
from sklboost.tree.prediction import add_trees, prepare_prediction
from tests.tree.growth import params

pytestmark = pytest.mark.interpreted

NO_WEIGHT = np.empty(0)
LOSSES = {"squared_error": SquaredError(), "log_loss": LogLoss(), "softmax": Softmax(3)}


def make_data(loss, n_rows=40):
    random = np.random.default_rng(0)
    X = random.integers(0, 8, (n_rows, 2)).astype(float)
    X[::9, 1] = np.nan
    signal = X[:, 0] - 4 + random.normal(size=n_rows)
    if isinstance(loss, SquaredError):
        return X, signal
    return X, np.digitize(signal, [0.0] if loss.n_outputs == 1 else [-1.5, 1.5]).astype(float)


def train(loss, X, y, weight=NO_WEIGHT, n_rounds=4, seed=0, watched=True, **changes):
    """Give the model and copies of the raw scores after each round."""
    stages = []

    def keep(round_, raw_score):
        stages.append((round_, raw_score.copy()))

    settings = params(**(dict(max_depth=2, reg_lambda=1.0, learning_rate=0.5) | changes))
    with ThreadTeam(1) as team:
        matrix = bin_matrix(team, raw_matrix(X), weight, 256)
        model = boost(
            *(team, matrix, y, weight, loss, settings),
            start=loss.start(y, weight),
            n_rounds=n_rounds,
            seed=seed,
            sampling_seed=seed,
            after_round=keep if watched else None,
        )
    return model, stages


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_rounds_lower_the_loss_and_are_reported(loss):
    X, y = make_data(loss)
    model, stages = train(loss, X, y)
    assert [round_ for round_, _ in stages] == [0, 1, 2, 3]
    raw = np.repeat(loss.start(y, NO_WEIGHT), len(y)).reshape(-1, len(y))
    values = [loss.value(y, raw, NO_WEIGHT)]
    values += [loss.value(y, stage, NO_WEIGHT) for _, stage in stages]
    assert (np.diff(values) < 0).all()
    assert (model.n_rounds, model.n_outputs) == (4, loss.n_outputs)
    assert model.n_trees == len(model.depths) == 4 * loss.n_outputs
    assert model.n_features == 2
    assert model.tree_starts[-1] == len(model.nodes) == len(model.routes)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_raw_scores_of_training_are_those_of_prediction(loss):
    X, y = make_data(loss)
    model, stages = train(loss, X, y, gamma=0.3)
    raw_score = np.repeat(model.base_score, len(X)).reshape(-1, len(X))
    with ThreadTeam(1) as team:
        for round_, stage in stages:
            trees = (round_ * loss.n_outputs, (round_ + 1) * loss.n_outputs)
            raw = raw_matrix(X)
            prepared = prepare_prediction(model, raw, 1)
            team.run(add_trees, model, raw, trees, prepared, raw_score)
            assert_array_equal(raw_score, stage)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_roots_hold_the_sums_of_all_rows(loss):
    X, y = make_data(loss)
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    model, stages = train(loss, X, y, weight)
    raw = np.repeat(model.base_score, len(X)).reshape(-1, len(X))
    roots = model.nodes[model.tree_starts[:-1]].reshape(4, loss.n_outputs)
    for round_, (_, stage) in enumerate(stages):
        gradient, hessian = np.empty((2, *raw.shape), dtype=np.float32)
        with ThreadTeam(1) as team:
            scratch = allocate_scratch(team.size)
        team.run(fill_gradients, loss.code, y, raw, gradient, hessian, scratch)
        assert_allclose(roots[round_]["gradient"], gradient @ weight, atol=1e-5)
        assert_allclose(roots[round_]["cover"], hessian @ weight, rtol=1e-6)
        raw = stage  # what the next round's gradients come from


def test_all_trees_of_a_round_see_the_same_raw_scores():
    loss = LOSSES["softmax"]
    X, y = make_data(loss)
    model, _ = train(loss, X, y, n_rounds=1)
    shares = np.bincount(y.astype(int)) / len(y)
    covers = model.nodes[model.tree_starts[:-1]]["cover"]
    assert_allclose(covers, 1.5 * len(y) * shares * (1 - shares), rtol=1e-6)


def test_every_tree_is_rounded_by_a_key_of_its_own():
    loss = LOSSES["squared_error"]
    X, y = make_data(loss, n_rows=5000)  # rounded at random
    sums = []
    for seed in (3, 4):
        # the steps are so short that every round has the same gradients
        model, _ = train(loss, X, y / 3, n_rounds=3, seed=seed, learning_rate=1e-30, max_depth=1)
        sums += list(model.nodes[model.tree_starts[:-1] + 1]["gradient"])
    assert_allclose(sums, sums[0], rtol=1e-3)
    assert len(set(sums)) == len(sums)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("n_rounds_per_call", [1, 3, 4, 100])
def test_rounds_in_one_call_are_those_one_by_one(loss, n_rounds_per_call, monkeypatch):
    X, y = make_data(loss)
    one_by_one, _ = train(loss, X, y, n_rounds=7)
    values = X.size * loss.n_outputs * n_rounds_per_call
    monkeypatch.setattr(rounds, "_VALUES_PER_CALL", values)
    at_once, stages = train(loss, X, y, n_rounds=7, watched=False)
    assert not stages
    for name in ("nodes", "tree_starts", "n_pruned", "depths"):
        assert getattr(at_once, name).tobytes() == getattr(one_by_one, name).tobytes()


def test_seed_changes_nothing_where_rounding_is_to_nearest():
    loss = LOSSES["squared_error"]
    X, y = make_data(loss)
    one, other = train(loss, X, y, seed=1), train(loss, X, y, seed=2)
    assert_array_equal(one[1][-1][1], other[1][-1][1])


def test_stumps_on_one_constant_feature_stay_at_the_mean():
    X, y = np.ones((6, 1)), np.arange(6.0)
    model, stages = train(LOSSES["squared_error"], X, y)
    assert list(model.depths) == [0] * 4
    assert_allclose(stages[-1][1], 2.5)


# --- the report, through the estimators ----------------------------------------------------------

LINE = re.compile(r"round (\d+) of (\d+): loss (\S+)")


def report(capsys):
    """Give (round, of, loss) for each line printed."""
    lines = capsys.readouterr().out.splitlines()
    return [LINE.fullmatch(line).groups() for line in lines]


@pytest.mark.parametrize(
    ("verbose", "rounds"), [(0, []), (1, "12345"), (2, "24"), (True, "12345"), (5, "5"), (9, [])]
)
def test_report_every_so_many_rounds(verbose, rounds, capsys):
    X, y = make_data(LOSSES["squared_error"])
    XGBRegressorLite(n_estimators=5, max_depth=2, n_jobs=1, verbose=verbose).fit(X, y)
    assert [(round_, of) for round_, of, _ in report(capsys)] == [(r, "5") for r in rounds]


@pytest.mark.parametrize("name", LOSSES)
def test_reported_loss_is_that_of_the_predictions(name, capsys):
    X, y = make_data(LOSSES[name])
    weight = np.random.default_rng(1).uniform(0, 2, len(y)).round()
    estimator = XGBRegressorLite if name == "squared_error" else XGBClassifierLite
    model = estimator(n_estimators=3, max_depth=2, n_jobs=1, verbose=3)
    model.fit(X, y, sample_weight=weight)
    ((_, _, loss),) = report(capsys)
    if name == "squared_error":
        each = (model.predict(X) - y) ** 2 / 2
    else:
        each = -np.log(model.predict_proba(X)[np.arange(len(y)), y.astype(int)])
    assert_allclose(float(loss), np.average(each, weights=weight), rtol=1e-5)
