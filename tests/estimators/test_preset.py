"""``preset="auto"``: parameters at their defaults are chosen from the data, the others stay."""

import gc
import io
import pickle
import re
import threading
import time
import weakref
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklboost import (
    EarlyStopping,
    TrainingCallback,
    XGBClassifierLite,
    XGBDistributionLite,
    XGBRankerLite,
    XGBRegressorLite,
    XGBRFClassifierLite,
    XGBRFRegressorLite,
    XGBSurvivalLite,
    bin_features,
    load_model,
    survival_targets,
)
from sklboost.estimators.fit import preset as trials
from sklboost.estimators.fit.preset import Outcome, Trials, _steps
from sklboost.estimators.fit.reading import Clock, read_task
from sklboost.estimators.input.rows import FitArguments

ESTIMATORS = [XGBRegressorLite, XGBClassifierLite, XGBRFRegressorLite, XGBRFClassifierLite]
# A fit of a few rounds; its trials are of as many as it takes.
QUICK = dict(preset="auto", n_estimators=8)
# Left to trials: thresholds only.
ONE_STAGE = dict(max_depth=3, min_child_weight=2.0, colsample_bylevel=0.5, grow_policy="depthwise")


def not_promised(estimator):
    """Rows are held out whole, with their weight: there, weight 2 is not the row twice."""
    if isinstance(estimator, XGBRFClassifierLite):  # the same depth is best either way
        return {}
    check = "check_sample_weight_equivalence_on_{}_data"
    return {check.format(kind): "rows are held out" for kind in ("dense", "sparse")}


FEW_ROUNDS = dict(preset="auto", n_estimators=5, learning_rate=0.4)


@parametrize_with_checks(
    [XGBRegressorLite(**FEW_ROUNDS, **ONE_STAGE)], expected_failed_checks=not_promised
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [estimator(**FEW_ROUNDS) for estimator in ESTIMATORS], expected_failed_checks=not_promised
)
def test_scikit_learn_checks_of_all_estimators_and_stages(estimator, check):
    check(estimator)


def data_of(estimator):
    is_regressor = issubclass(estimator, XGBRegressorLite)
    X, y = (load_diabetes if is_regressor else load_iris)(return_X_y=True)
    return X[::2], y[::2]


def predictions(model, X):
    return (model.predict_proba if hasattr(model, "predict_proba") else model.predict)(X)


# --- what is chosen


@pytest.mark.parametrize("estimator", [XGBRegressorLite, XGBRFClassifierLite])
def test_the_chosen_parameters_fit_the_same_model(estimator):
    X, y = data_of(estimator)
    chosen = estimator(preset="auto", n_jobs=2).fit(X, y)
    plain = estimator().set_params(**chosen.chosen_params_, preset=None).fit(X, y)
    assert not hasattr(plain, "chosen_params_")
    assert_array_equal(predictions(chosen, X), predictions(plain, X))
    assert_array_equal(chosen.model_.nodes.gain, plain.model_.nodes.gain)
    again = estimator(preset="auto", n_jobs=1).fit(X, y)
    assert again.chosen_params_ == chosen.chosen_params_
    assert_array_equal(predictions(chosen, X), predictions(again, X))


def test_the_seed_of_the_user_is_that_of_the_model():
    X, y = data_of(XGBRegressorLite)
    model = XGBRegressorLite(**QUICK, **ONE_STAGE, random_state=5).fit(X, y)
    assert "random_state" not in model.chosen_params_
    plain = clone(model).set_params(**model.chosen_params_, preset=None).fit(X, y)
    assert_array_equal(model.predict(X), plain.predict(X))
    # a RandomState gives the fit what it would give it without a preset
    first, second = (clone(model).set_params(random_state=np.random.RandomState(5)) for _ in "ab")
    first.fit(X, y)
    second.set_params(**first.chosen_params_, preset=None).fit(X, y)
    assert_array_equal(first.predict(X), second.predict(X))


def test_what_is_set_stays():
    X, y = data_of(XGBRegressorLite)
    given = dict(learning_rate=0.2, max_depth=2, subsample=0.5, reg_lambda=3.0, n_estimators=7)
    model = XGBRegressorLite(preset="auto", **given).fit(X, y)
    assert not set(given) & set(model.chosen_params_)
    assert {name: getattr(model, name) for name in given} == given
    assert model.n_estimators_ == 7
    assert {"extra_trees", "colsample_bylevel"} <= set(model.chosen_params_)
    assert model.get_params()["extra_trees"] is False  # parameters are the user's
    for limit in ({"max_leaves": 7}, {"grow_policy": "lossguide"}):
        limited = XGBRegressorLite(**QUICK, **limit).fit(X, y)
        assert "max_depth" not in limited.chosen_params_


@pytest.mark.parametrize(
    "given",
    [
        lambda: XGBRegressorLite(preset="auto", max_depth=6),
        lambda: XGBRegressorLite(preset="auto").set_params(max_depth=6),
        lambda: clone(XGBRegressorLite(preset="auto", max_depth=6)),
        lambda: pickle.loads(pickle.dumps(XGBRegressorLite(preset="auto", max_depth=6))),
        lambda: clone(XGBRegressorLite(preset="auto")).set_params(max_depth=6),  # a grid does it
        lambda: Deep(preset="auto"),
    ],
)
def test_what_is_set_to_its_default_stays(given):
    assert "max_depth" not in free_of(given())


@pytest.mark.parametrize(
    "not_given",
    [
        lambda: XGBRegressorLite(preset="auto", eta=0.3),
        lambda: XGBRegressorLite(preset="auto", max_depth=None),
        lambda: XGBRegressorLite(preset="auto", max_depth=6).set_params(max_depth=None),
        lambda: clone(XGBRegressorLite(preset="auto")),
        # all parameters are no choice of the user
        lambda: XGBRegressorLite(**XGBRegressorLite(preset="auto").get_params()),
        lambda: XGBRegressorLite().set_params(**XGBRegressorLite(preset="auto").get_params()),
    ],
)
def test_what_is_not_set_is_free(not_given):
    free = free_of(not_given())
    assert "max_depth" in free
    assert ("learning_rate" in free) != (not_given()._given == ("learning_rate", "preset"))


class Deep(XGBRegressorLite):
    """Its depth is that of its author, and equals the default."""

    def __init__(self, preset=None):
        super().__init__(preset=preset, max_depth=6)


def free_of(model):
    """Return the parameters that a preset chooses from, found without trials."""
    free = []

    def choose(task):
        free.extend(task.free)
        raise InterruptedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trials, "choose", choose)
        with pytest.raises(InterruptedError):
            model.fit([[0.0], [1.0]], [0.0, 1.0])
    return free


def test_a_grid_sets_a_default_in_every_candidate():
    X, y = data_of(XGBRegressorLite)
    settings = dict(n_estimators=3, learning_rate=0.5, min_child_weight=1.0, extra_trees=False)
    settings["grow_policy"] = "depthwise"
    model = XGBRegressorLite(preset="auto", colsample_bylevel=1.0, **settings)
    search = GridSearchCV(model, {"max_depth": [6]}, cv=2).fit(X, y).best_estimator_
    assert set(search.chosen_params_) == {"subsample", "random_state"}


def test_one_of_rounds_and_rate_follows_from_the_other():
    X, y = data_of(XGBRegressorLite)
    both = XGBRegressorLite(preset="auto", **ONE_STAGE).fit(X, y).chosen_params_
    way = both["n_estimators"] * both["learning_rate"]
    rate = XGBRegressorLite(preset="auto", n_estimators=200, **ONE_STAGE).fit(X, y).chosen_params_
    assert rate["learning_rate"] == pytest.approx(min(0.3, way / 200))
    rounds = XGBRegressorLite(preset="auto", learning_rate=0.1, **ONE_STAGE).fit(X, y)
    assert rounds.chosen_params_["n_estimators"] == pytest.approx(way / 0.1)
    assert rounds.n_estimators_ == rounds.chosen_params_["n_estimators"]
    # few rounds have no longer steps than by default
    few = XGBRegressorLite(preset="auto", n_estimators=1, **ONE_STAGE).fit(X, y)
    assert few.chosen_params_["learning_rate"] == 0.3


def test_reasons():
    X, y = data_of(XGBRegressorLite)
    chosen = XGBRegressorLite(**QUICK).fit(X, y).chosen_params_
    assert set(chosen.reasons) == set(chosen)
    lines = str(chosen).splitlines()
    assert [line.split("=")[0] for line in lines] == list(chosen)
    (depth,) = (line for line in lines if line.startswith("max_depth="))
    others = {4, 6, 8} - {chosen["max_depth"]}
    assert "rmse" in depth
    assert all(f"with {other}" in depth for other in others)


def test_it_is_better_than_the_defaults():
    X, y = load_diabetes(return_X_y=True)
    scoring = "neg_root_mean_squared_error"
    loss, before = (
        -cross_val_score(XGBRegressorLite(preset=preset), X, y, cv=3, scoring=scoring).mean()
        for preset in ("auto", None)
    )
    assert loss < 0.9 * before


# --- what trials look at


def test_callbacks_follow_the_fit_alone():
    class Note(TrainingCallback):
        def before_training(self, training):
            trainings.append(training)

    X, y = data_of(XGBRegressorLite)
    trainings = []
    XGBRegressorLite(**QUICK, callbacks=[Note()]).fit(X, y)
    assert len(trainings) == 1


def test_validation_data_judge_instead_of_parts_of_the_rows():
    X, y = load_diabetes(return_X_y=True)
    X_train, X_val, y_train, y_val = train_test_split(X, y, random_state=0)
    settings = dict(learning_rate=0.1, **ONE_STAGE)
    model = XGBRegressorLite(preset="auto", **settings).fit(
        X_train, y_train, X_val=X_val, y_val=y_val
    )
    # as many rounds as are best there
    (curve,) = model.evals_result_["validation_0"].values()
    assert len(curve) == model.n_estimators_ == 1 + int(np.argmin(curve))


def test_the_last_metric_judges():
    X, y = load_breast_cancer(return_X_y=True)
    model = XGBClassifierLite(**QUICK, **ONE_STAGE, eval_metric=["logloss", "auc"]).fit(X, y)
    reason = model.chosen_params_.reasons["extra_trees"]
    assert reason.startswith("auc 0.99")
    # the greater one is better; it had to be so on each of the first parts that judged both
    other = re.search(r", (0\.\d+|behind after .*?) with (True|False): ", reason)
    assert other is not None
    assert other[2] != str(model.chosen_params_["extra_trees"])
    if not other[1].startswith("behind"):
        assert float(other[1]) < float(reason[4:].split(",")[0])


@pytest.mark.parametrize("estimator", [XGBRegressorLite, XGBClassifierLite])
def test_what_is_behind_is_not_trained_on_the_other_parts(estimator, monkeypatch):
    trained = {}  # by settings: the loss after each round, of each part in turn
    lost = set()  # those that ended on the first part

    def noted(self, attempt, *others):
        training, n_leaves, losses = train(self, attempt, *others)
        rounds = ("early_stopping_rounds", "n_estimators")
        key = str({name: value for name, value in attempt.settings.items() if name not in rounds})
        trained.setdefault(key, []).append(losses)
        lost.update([key] if attempt.n_lost > 0 else [])
        return training, n_leaves, losses

    train = Trials._train
    monkeypatch.setattr(Trials, "_train", noted)
    X, y = data_of(estimator)
    chosen = estimator(**QUICK).fit(X, y).chosen_params_
    best, *others = trained.values()
    assert len(best) == 5
    for key, losses in list(trained.items())[1:]:
        is_worse = [new.min() > old.min() for new, old in zip(losses, best, strict=False)]
        n_alike = is_worse.index(False) if False in is_worse else 5
        assert len(losses) == (1 if key in lost else 2 if n_alike >= 2 else 5)
        assert key not in lost or is_worse == [True]
        if len(losses) == 5 and np.mean(losses, axis=0).min() < np.mean(best, axis=0).min():
            best = losses
    assert min(map(len, others)) <= 2
    (key,) = (key for key, losses in trained.items() if losses is best)
    names = ["extra_trees", "max_depth", "colsample_bylevel", "grow_policy"]
    names += ["min_child_weight"] if is_classifier(estimator()) else []  # else rows
    assert set(chosen) == {*names, "subsample", "random_state", "learning_rate"}
    assert all(f"'{name}': {chosen[name]!r}" in key for name in names)


@pytest.mark.parametrize(
    ("exponent", "offset", "n_rounds"),
    [
        (1.0, 0.0, 1000),  # reaches it soon
        (0.75, 0.05, 1000),  # reaches it in the end: a doubling gains 0.59 of the one before
        (1.0, 0.5, 60),  # reaches 0.5
        (0.0, 0.0, 60),  # gains nothing
    ],
)
def test_a_race_ends_when_the_gains_cannot_reach_the_best(exponent, offset, n_rounds):
    losses = offset + np.arange(1.0, 1001.0) ** -exponent
    best = np.array([1.0] * 50 + [0.06] * 100)  # which gains nothing from 51 on
    log = {"validation_0": {"other": np.ones(1000), "gain": -losses}}  # ahead of the callback
    training = SimpleNamespace(
        n_estimators=1000, greater_is_better=lambda name: True, losses=losses
    )

    def attempt(best):
        attempt = trials.Attempt(0, {}, lambda training: None, lambda name: True)
        attempt.training = training
        attempt.race(best)
        return attempt

    race = attempt(best)
    done = (r + 1 for r in range(1000) if race.after_iteration(training, r, log))
    assert next(done, 1000) == n_rounds
    assert (race.n_lost > 0) == (n_rounds < 1000) == (losses.min() > 0.06)
    assert_array_equal(race.curve(), losses[:n_rounds])
    # the same if the best is known at some time later, or at the end
    for when in (55, 215, 1000):
        race = attempt(None)
        done = []
        for r in range(1000):
            if r == when:
                race.race(best)
            done.append(race.after_iteration(training, r, log))
        assert (True in done) == (n_rounds < 1000 > when)
        race.race(best)
        assert_array_equal(race.curve(), losses[:n_rounds])
    # one that has done all its rounds is compared as any other, on all folds
    race, training.n_estimators = attempt(np.array([0.06])), 60
    assert not any(race.after_iteration(training, r, log) for r in range(60))
    assert race.n_lost == 0


@pytest.mark.parametrize(
    # of 1 / n^2, rounds 191 to 240 gain 1.03e-5, 201 to 250 0.9e-5; of 1 / n, the last ones 5e-5
    ("exponent", "fold", "metric", "n_rounds"),
    [
        (2.0, 0, "logloss", 250),
        (1.0, 0, "logloss", 1000),
        (0.0, 0, "logloss", 1000),
        (2.0, 1, "logloss", 1000),  # the first fold says how many
        (2.0, 0, "rmse", 1000),
    ],
)
def test_a_trial_ends_when_it_hardly_gains(exponent, fold, metric, n_rounds):
    log = {"validation_0": {metric: np.arange(1.0, 1001.0) ** -exponent}}
    training = SimpleNamespace(n_estimators=1000, greater_is_better=lambda name: False)
    attempt = trials.Attempt(fold, {}, lambda training: None, lambda name: name == "logloss")
    ends = (r + 1 for r in range(1000) if attempt.after_iteration(training, r, log))
    assert next(ends, 1000) == n_rounds


def flags():
    return np.random.default_rng(0).integers(0, 2, (300, 4)).astype(np.float64)


def test_nothing_is_compared_of_classes_that_are_told_apart_wholly(monkeypatch):
    X = flags()
    y = ["yes" if both else "no" for both in X[:, 0] != X[:, 1]]
    shown = []
    monkeypatch.setattr(
        trials.SearchProgress, "close", lambda progress: shown.append(vars(progress))
    )

    def fit(**settings):
        # leaves with next to no cover leave next to nothing of the loss
        settings = dict(min_child_weight=0.01, reg_lambda=0.1) | settings
        return XGBClassifierLite(preset="auto", **settings).fit(X, y)

    chosen = fit().chosen_params_
    why = chosen.reasons["max_depth"]
    left = r"logloss 0\.0\d+ is less than a thousandth of that after one round"
    assert re.fullmatch(f"not compared with others: {left}", why)
    names = ("max_depth", "colsample_bylevel", "grow_policy")
    assert [chosen[name] for name in names] == [6, 0.9, "depthwise"]
    assert [chosen.reasons[name] for name in names] == [why] * 3
    assert chosen["learning_rate"] == 0.1
    assert chosen.reasons["learning_rate"] == why.replace("compared with others", "smaller")
    assert shown[0]["_n_done"] == shown[0]["n_trainings"] == 5
    # a start of the user's is no measure, nor are other metrics
    for settings in (dict(base_score=0.9), dict(eval_metric="error")):
        reasons = fit(**settings).chosen_params_.reasons
        assert not reasons["max_depth"].startswith("not compared")
        assert reasons["learning_rate"] == "smaller steps are better, but slower"


def test_trials_are_freed_before_the_fit(monkeypatch):
    made, alive = [], []
    init, choose = Trials.__init__, trials.choose

    def noted(self, *arguments):
        made.append(weakref.ref(self))
        init(self, *arguments)

    def chosen(task):
        found = choose(task)
        alive.extend(each() for each in made)
        return found

    monkeypatch.setattr(Trials, "__init__", noted)
    monkeypatch.setattr(trials, "choose", chosen)
    gc.disable()
    try:
        XGBRegressorLite(**QUICK, **ONE_STAGE).fit(*data_of(XGBRegressorLite))
    finally:
        gc.enable()
    assert alive == [None]


def test_numbers_are_compared_however_well_they_are_learnt():
    X = flags()
    reasons = XGBRegressorLite(**QUICK).fit(X, 2.0 * X[:, 0] + X[:, 1]).chosen_params_.reasons
    assert not any(why.startswith("not compared") for why in reasons.values())


def test_thresholds_are_no_question_for_flags():
    X, y = flags(), np.random.default_rng(1).normal(size=300)
    settings = QUICK | ONE_STAGE
    assert "extra_trees" not in XGBRegressorLite(**settings).fit(X, y).chosen_params_
    # missing values or not is a second one
    X[0, 3] = np.nan
    assert "extra_trees" in XGBRegressorLite(**settings).fit(X, y).chosen_params_


def small_and_large():
    """Yield settings and data: of few rows and many folds, of many rows, and of classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 4))
    y = np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=len(X))
    yield XGBRegressorLite(), *load_diabetes(return_X_y=True)
    yield XGBRegressorLite(learning_rate=0.3, max_depth=4), X, y
    yield XGBClassifierLite(learning_rate=0.3), X[:400], y[:400] > 0.0
    yield XGBRFRegressorLite(), X[:300], y[:300]


def test_trials_side_by_side_choose_the_same(monkeypatch):
    """Also if the guesses at the best one are wrong, so that trials are for nothing."""
    run, judge = Trials._run, Trials.judge
    beside, given_up, judged, work, early = [], [], [], [], []

    def noted(self, team, attempt):
        early.append(attempt.number == 0 and not (judged[-1].items() <= attempt.settings.items()))
        run(self, team, attempt)
        beside.append(threading.current_thread() is not threading.main_thread())
        given_up.append(attempt.is_given_up)

    def noted_judge(self, settings, *expected):
        judged.append(settings)
        outcome = judge(self, settings, *expected)
        work.append((self.work, outcome.n_leaves, outcome.n_rounds))
        return outcome

    monkeypatch.setattr(Trials, "_run", noted)
    monkeypatch.setattr(Trials, "judge", noted_judge)
    monkeypatch.setattr(trials, "VALUES_PER_THREAD", 1)
    for model, X, y in small_and_large():
        found = []
        for n_jobs in (1, 2, 5):
            del beside[:], work[:], early[:]
            model.set_params(preset="auto", n_jobs=n_jobs).fit(X, y)
            chosen = model.chosen_params_
            found.append((dict(chosen), chosen.reasons, model.model_.nodes.tobytes(), [*work]))
            assert max(beside) == max(early) == (n_jobs > 1)
        assert found[0] == found[1] == found[2]
    assert True in given_up


@pytest.mark.parametrize(
    "settings",
    [{"eval_metric": "own"}, {"eval_metric": "explained_variance"}, {"max_time": 1000.0}],
)
def test_functions_of_others_are_called_by_one_thread(settings, monkeypatch):
    monkeypatch.setattr(trials, "VALUES_PER_THREAD", 1)
    callers, run = set(), Trials._run

    def noted(self, *arguments):
        callers.add(threading.current_thread())
        run(self, *arguments)

    def spread(y_true, y_pred):
        callers.add(threading.current_thread())
        return float(np.abs(y_true - y_pred).max())

    monkeypatch.setattr(Trials, "_run", noted)
    if settings.get("eval_metric") == "own":
        settings = {"eval_metric": ["rmse", spread]}
    X, y = data_of(XGBRegressorLite)
    XGBRegressorLite(**QUICK, **ONE_STAGE, n_jobs=4, **settings).fit(X, y)
    assert callers == {threading.main_thread()}


def test_what_ends_one_trial_ends_those_beside_it(monkeypatch):
    X, y = data_of(XGBRegressorLite)
    threads, turns, attempts, run = set(threading.enumerate()), [], [], Trials._run

    def noted(self, team, attempt):
        attempts.append(attempt)
        run(self, team, attempt)

    def race(self, best):
        turns.append(self)
        if len(turns) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Trials, "_run", noted)
    monkeypatch.setattr(trials.Attempt, "race", race)
    monkeypatch.setattr(trials, "VALUES_PER_THREAD", 1)
    with pytest.raises(KeyboardInterrupt):
        XGBRegressorLite(**QUICK, n_jobs=4).fit(X, y)
    assert set(threading.enumerate()) <= threads
    assert len(turns) == 3
    assert all(attempt.is_given_up for attempt in attempts if attempt not in turns[:2])


def test_what_failed_beside_others_is_trained_alone(monkeypatch):
    run, n_failed = Trials._run, []

    def run_alone(self, team, attempt):
        if threading.current_thread() is not threading.main_thread():
            n_failed.append(attempt)
            raise MemoryError
        run(self, team, attempt)

    monkeypatch.setattr(trials, "VALUES_PER_THREAD", 1)
    X, y = data_of(XGBRegressorLite)
    expected = XGBRegressorLite(**QUICK, **ONE_STAGE, n_jobs=1).fit(X, y)
    monkeypatch.setattr(Trials, "_run", run_alone)
    model = XGBRegressorLite(**QUICK, **ONE_STAGE, n_jobs=3).fit(X, y)
    assert len(n_failed) > 0
    assert model.chosen_params_.reasons == expected.chosen_params_.reasons
    assert_array_equal(model.predict(X), expected.predict(X))


@pytest.mark.parametrize(("n_classes", "are_compared"), [(3, True), (2, False)])
def test_small_trees_are_compared_for_three_classes_or_more(n_classes, are_compared):
    X, y = load_iris(return_X_y=True)
    rows = y >= 3 - n_classes  # the last two overlap
    model = XGBClassifierLite(**QUICK, extra_trees=False, min_child_weight=1.0)
    chosen = model.fit(X[rows], y[rows]).chosen_params_
    text = f"{chosen['max_depth']} is chosen, {chosen.reasons['max_depth']}"
    assert bool(re.search(r"^2 is|with 2\b|, 2\)", text)) == are_compared


def test_a_trial_that_cannot_win_ends_early_where_one_part_judges():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 4))
    y = np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=1000)
    settings = dict(preset="auto", learning_rate=0.1, n_estimators=300, n_jobs=1)
    model = XGBRegressorLite(**settings).fit(X[:700], y[:700], X_val=X[700:], y_val=y[700:])
    reasons = " ".join(model.chosen_params_.reasons.values())
    behind = [int(n) for n in re.findall(r"behind after (\d+) rounds with", reasons)]
    assert behind
    assert all(60 <= n < 300 and n % 10 == 0 for n in behind)
    assert "trainings" not in reasons


def test_symmetric_trees_are_compared_where_there_can_be_any():
    X_all, y = load_diabetes(return_X_y=True)
    others = dict(extra_trees=False, min_child_weight=2.0, colsample_bylevel=0.5, learning_rate=0.3)

    def chosen(X=X_all, **settings):
        return XGBRegressorLite(**QUICK, **others, **settings).fit(X, y).chosen_params_

    free = chosen()
    assert "with symmetric" in free.reasons["grow_policy"] or free["grow_policy"] == "symmetric"
    assert "grow_policy" in chosen(max_depth=3)
    text = pd.DataFrame({"age": X_all[:, 0], "sex": np.where(X_all[:, 1] > 0.0, "a", "b")})
    for none in (
        chosen(max_depth=17),
        chosen(max_leaves=8),
        chosen(interaction_constraints=[[0, 1]]),
        chosen(text),
        chosen(np.tile(X_all, 21)),  # 210 features
    ):
        assert "grow_policy" not in none


def test_the_same_choice_in_every_form_of_the_same_rows():
    X, y = load_breast_cancer(return_X_y=True)
    X = np.where(np.median(X, axis=0) < X, np.round(X, 1), 0.0)[:300]
    y = y[:300]
    model = XGBClassifierLite(**QUICK, **ONE_STAGE).fit(X, y)
    order = np.random.default_rng(0).permutation(len(y))
    for other in (clone(model).fit(csr_array(X), y), clone(model).fit(X[order], y[order])):
        assert other.chosen_params_ == model.chosen_params_
        assert_array_equal(predictions(other, X), predictions(model, X))


def parts_of(X, y, **given):
    """Return what trials train on and judge by: the tasks of the folds."""
    settings = {name: given.pop(name) for name in ("validation_split",) if name in given}
    model = XGBRegressorLite(**settings)
    return trials._parts(read_task(model, X, y, FitArguments(**given)))


@pytest.mark.parametrize(
    ("n_rows", "n_folds"), [(100, 5), (4_000, 5), (4_001, 3), (10_000, 3), (10_001, 1)]
)
def test_folds(n_rows, n_folds):
    X = np.arange(float(n_rows))[:, np.newaxis]
    parts = parts_of(X, np.sin(X[:, 0]))
    assert len(parts) == n_folds
    judged = np.concatenate([part.validation["validation_0"].y for part in parts])
    assert len(np.unique(judged)) == len(judged)  # each row once at most
    assert len(judged) == pytest.approx(n_rows * n_folds / 5, abs=5)
    for part in parts:
        held_out = part.validation["validation_0"]
        assert sorted([*part.rows.y, *held_out.y]) == sorted(np.sin(X[:, 0]))
        assert held_out.X.binning is part.rows.X.binning is parts[0].rows.X.binning


def test_groups_are_held_out_whole():
    X, y = np.arange(200.0)[:, np.newaxis], np.arange(200.0)
    parts = parts_of(X, y, groups=np.arange(200) // 10)
    assert len(parts) == 5
    for part in parts:
        kept, held_out = part.rows.y // 10, part.validation["validation_0"].y // 10
        assert not set(kept) & set(held_out)


def test_by_time_the_last_rows_are_held_out():
    X, y = np.arange(200.0)[:, np.newaxis], np.arange(200.0)
    (part,) = parts_of(X, y, validation_split="time")
    assert sorted(part.validation["validation_0"].y) == list(range(160, 200))


def test_rows_of_large_weight_do_not_judge_themselves():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.integers(2, size=300)
    for settings, weight in (
        (dict(class_weight={0: 2.0, 1: 2.0}), None),
        (dict(scale_pos_weight=9.0), None),
        (dict(scale_pos_weight=9.0, calibrated_prior=True), None),
        ({}, np.full(300, 9.0)),
    ):
        model = XGBClassifierLite(preset="auto", **ONE_STAGE, **settings)
        chosen = model.fit(X, y, sample_weight=weight).chosen_params_
        assert chosen["n_estimators"] < 100  # nothing can be learnt


def test_small_weights_count_as_rows():
    X, y = data_of(XGBRegressorLite)
    model = XGBRegressorLite(preset="auto").fit(X, y, sample_weight=np.full(len(y), 1 / len(y)))
    plain = XGBRegressorLite(preset="auto").fit(X, y)
    assert model.chosen_params_["min_child_weight"] == pytest.approx(1 / len(y))
    assert model.chosen_params_["reg_lambda"] == pytest.approx(1 / len(y))
    assert model.score(X, y) == pytest.approx(plain.score(X, y), abs=0.1)


def signed(y_true, y_pred):
    return y_pred - y_true, np.ones_like(y_true)


def with_categories(X):
    frame = pd.DataFrame(X[:, :3], columns=list("abc"))
    return frame.assign(d=pd.Categorical(np.where(X[:, 3] > 0, "high", "low")))


def with_gaps(y):
    return np.column_stack([y, np.where(np.arange(len(y)) % 7 == 0, np.nan, y)])


PARAMETERS = [
    dict(booster="dart", rate_drop=0.2),
    dict(early_stopping_rounds=5, refit=True),
    dict(callbacks=[EarlyStopping(5)]),
    dict(objective="reg:quantileerror", quantile_alpha=[0.2, 0.8]),
    dict(objective="reg:absoluteerror", eval_metric="mape"),
    dict(objective=signed, base_score=150.0),
    dict(monotone_constraints={0: 1}, grow_policy="lossguide"),
    dict(linear_tree=True),
]
DATA = [
    lambda X, y: dict(X=X, y=y, sample_weight=1.0 + X[:, 0] - X[:, 0].min()),
    lambda X, y: dict(X=X, y=y, base_margin=100.0 + X[:, 0]),
    lambda X, y: dict(X=X, y=with_gaps(y)),
    lambda X, y: dict(X=bin_features(X), y=y),
    lambda X, y: dict(X=with_categories(X), y=y),
]


@pytest.mark.parametrize(
    ("settings", "made_of"),
    [*((own, lambda X, y: dict(X=X, y=y)) for own in PARAMETERS), *(({}, own) for own in DATA)],
)
def test_the_same_bits_with_other_parameters_and_data(settings, made_of):
    given = made_of(*data_of(XGBRegressorLite))
    model = XGBRegressorLite(preset="auto", learning_rate=0.3, **(ONE_STAGE | settings))
    model.fit(**given)
    assert {"n_estimators", "extra_trees"} <= set(model.chosen_params_)
    plain = clone(model).set_params(**model.chosen_params_, preset=None).fit(**given)
    assert_array_equal(model.model_.nodes.gain, plain.model_.nodes.gain)


def test_early_stopping_of_the_user_has_no_say_in_trials():
    X, y = data_of(XGBRegressorLite)
    plain, stopped = (
        XGBRegressorLite(preset="auto", **ONE_STAGE, **settings).fit(X, y)
        for settings in ({}, {"early_stopping_rounds": 1})
    )
    assert stopped.chosen_params_ == plain.chosen_params_
    assert stopped.n_estimators_ < plain.n_estimators_


def test_an_error_in_a_trial_says_where():
    X, y = data_of(XGBRegressorLite)

    def of_all_rows(y_true, y_pred):
        return y_pred - y, np.ones_like(y_true)

    with pytest.raises(ValueError, match=r"broadcast|shape") as caught:
        XGBRegressorLite(preset="auto", objective=of_all_rows).fit(X, y)
    assert any("in a trial of preset='auto', on 17" in note for note in caught.value.__notes__)


def test_ctrl_c_in_a_trial_leaves_the_model_as_it_was(monkeypatch):
    X, y = data_of(XGBRegressorLite)
    model = XGBRegressorLite(n_estimators=2).fit(X, y)
    before = model.predict(X)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Trials, "judge", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(preset="auto").fit(X, y)
    assert_array_equal(model.predict(X), before)


# --- steps


def test_steps_grow_with_the_raw_scores_and_shrink_with_the_time():
    # 2 s in steps as large as those of the trials, 1 s to score them, and a reserve
    found = dict(n_rounds=100, share=1.0, n_leaves=64.0, seconds=2.0, seconds_to_judge=1.0)
    outcome = Outcome("rmse", 1.0, 1.0, **found)
    X, y = data_of(XGBRegressorLite)

    def steps(n_scores=1, max_time=None, outcome=outcome, in_work=np.inf, **settings):
        model = XGBRegressorLite(max_time=max_time, **settings)
        task = read_task(model, X, y, FitArguments())
        free = {"n_estimators", "learning_rate"} - settings.keys()
        task = task._replace(free=free, clock=Clock())
        return list(_steps(task, outcome, n_scores, in_work).values())

    def finer(*arguments, **settings):
        (n_rounds, why), (rate, _) = steps(*arguments, **settings)
        assert n_rounds * rate == pytest.approx(100 * 0.1, rel=0.02)
        assert why == "rmse is best after 100 rounds of learning rate 0.1"
        return n_rounds / 100

    sizes = [1, 12_000, 12_001, 50_000, 50_001, 500_000, 500_001]
    assert [finer(n) for n in sizes] == [8, 8, 4, 4, 2, 2, 1]
    assert [finer(1, max_time) for max_time in (100.0, 8.2, 4.1)] == [8, 2.4, 1.2]
    # with larger steps there is the time for as long a way, but not with any
    assert finer(1, 2.1) == pytest.approx(0.6, abs=0.02)
    assert finer(1, 0.1) == pytest.approx(1 / 3, abs=0.02)
    # early stopping scores rows, and a fit on all rows follows
    assert finer(1, 8.2, early_stopping_rounds=5) == 1.6
    assert finer(1, 12.2, early_stopping_rounds=5) == 2.4
    assert finer(1, 12.2, early_stopping_rounds=5, refit=True) == 1.4
    # as many rounds as there is work left for, but not fewer than with the steps of the trials
    limits = [900.0, 399.0, 100.0, -5.0]
    assert [finer(1, in_work=in_work) for in_work in limits] == [8, 3.9, 1, 1]
    assert finer(12_001, in_work=900.0) == 4
    # nor are there smaller steps where hardly anything is left to gain
    near = outcome._replace(has_converged=True)
    why = "not smaller: rmse 1 is less than a thousandth of that after one round"
    assert steps(outcome=near)[1] == (0.1, why)
    assert steps(outcome=near, max_time=0.1)[1].why == "for want of time"
    # a trial on 80 % of the rows needs 100 rounds, all of them 125; few rows cannot tell
    for n_rows, n_rounds in [(999, 100), (1000, 125)]:
        task = read_task(
            XGBRegressorLite(), X[:1].repeat(n_rows, 0), y[:1].repeat(n_rows), FitArguments()
        )
        chosen = _steps(task._replace(free={"n_estimators"}), outcome._replace(share=0.8), 1)
        assert chosen["n_estimators"].value == n_rounds
    # of 400 rounds there is time for 60
    ((rate, _),) = steps(1, 2.0, n_estimators=400)
    assert rate == pytest.approx(0.1 * 100 / 60, rel=0.01)


def test_smaller_steps_are_limited_by_work_unless_max_time_is_given(monkeypatch):
    X, y = load_diabetes(return_X_y=True)

    def finer(n_rounds_of_work, **settings):
        monkeypatch.setattr(trials, "_ROUNDS_OF_WORK", n_rounds_of_work)
        model = XGBRegressorLite(preset="auto", **ONE_STAGE, **settings).fit(X, y)
        return 0.1 / model.chosen_params_["learning_rate"]

    # the fit has half of the work of the trials, which is more than it needs here
    assert finer(0) == 8
    monkeypatch.setattr(trials, "_LEAST_OF_FIT", 0.0)
    found = [finer(n_rounds) for n_rounds in (0, 150, 170, 300)]
    assert found[0] == 1
    assert 1 < found[1] < found[2] < 8
    assert found[3] == 8
    assert finer(0, max_time=1e6) == 8
    # five trees a round have five times the work, in the trials as well
    assert finer(300, num_parallel_tree=5) == 1


# --- where there is nothing to compare


def test_few_rows_and_one_class():
    X, y = np.arange(10.0)[:, np.newaxis], np.arange(10.0)
    model = XGBRegressorLite(preset="auto").fit(X, y)
    assert model.n_estimators_ == 100  # the default
    assert set(model.chosen_params_) == {"subsample", "random_state"}
    assert XGBClassifierLite(preset="auto").fit(X, np.zeros(10)).predict(X).tolist() == [0.0] * 10


def test_parts_without_a_class_are_left_out():
    X = np.arange(60.0)[:, np.newaxis]
    y = np.r_[np.zeros(57), np.ones(3)]
    model = XGBClassifierLite(**QUICK, **ONE_STAGE, eval_metric="auc").fit(X, y)
    assert "auc" in model.chosen_params_.reasons["extra_trees"]
    # no part has both classes
    model = XGBClassifierLite(**QUICK, **ONE_STAGE).fit(X, y, groups=y)
    assert set(model.chosen_params_) == {"subsample", "random_state"}


def test_a_loss_that_is_infinite_is_no_verdict():
    X = np.arange(90.0)[:, np.newaxis]
    y = np.arange(90) // 30
    model = XGBClassifierLite(**QUICK, **ONE_STAGE).fit(X, y, groups=y)
    assert set(model.chosen_params_) == {"subsample", "random_state"}


@pytest.mark.filterwarnings("ignore:no tree has a split:UserWarning")  # of one event
def test_parts_that_cannot_be_trained_on_or_judged_are_left_out():
    settings = {**QUICK, **ONE_STAGE}
    rain, one_event = np.zeros(60), np.arange(60) == 7
    rain[7] = 3.0
    events = one_event | (np.arange(60) == 11)
    for seed in range(5):
        X = np.random.default_rng(seed).normal(size=(60, 2))
        model = XGBDistributionLite(distribution="zero_inflated_gamma", **settings).fit(X, rain)
        assert model.chosen_params_.reasons["extra_trees"].startswith("nll ")
        y = survival_targets(events, X[:, 0] - X[:, 0].min() + 1.0)
        XGBSurvivalLite(eval_metric="cindex", **settings).fit(X, y)
        XGBSurvivalLite(**settings).fit(X, survival_targets(one_event, np.arange(1.0, 61.0)))
        model = XGBRegressorLite(**settings).fit(X, rain, groups=np.zeros(60))
        assert set(model.chosen_params_) == {"subsample", "random_state"}  # there is one group
        XGBRankerLite(**settings).fit(X, rain, qid=np.zeros(60))
        classes = (rain > 0) + 2 * events
        XGBClassifierLite(eval_metric="roc_auc_ovr", **settings).fit(X, classes)


def test_metrics_that_fail():
    X, y = np.arange(60.0)[:, np.newaxis], np.sin(np.arange(60.0))
    model = XGBRegressorLite(**QUICK, **ONE_STAGE)

    def correlation(estimator, X, y):  # is not defined for the constant that comes first
        return np.corrcoef(estimator.predict(X), y)[0, 1]

    model.set_params(eval_metric=correlation).fit(X, y)
    assert model.chosen_params_.reasons["extra_trees"].startswith("correlation 0.")
    # of all rows: the error
    with pytest.raises(ValueError, match=r"^rmsle of a target of -2 in row 3: it needs"):
        model.set_params(eval_metric="rmsle").fit(X, np.where(np.arange(60) == 3, -2.0, y))

    def of_all_rows(y_true, y_pred):
        return np.mean(np.abs(y - y_pred))

    with pytest.warns(UserWarning, match="compares nothing, since eval_metric cannot be computed"):
        model.set_params(eval_metric=of_all_rows).fit(X, y)
    assert set(model.chosen_params_) == {"subsample", "random_state"}

    def log_of_spread(y_true, y_pred):  # at first all predictions are about the same
        spread = np.ptp(y_pred)
        return -np.log(spread) if spread > 0.01 else np.inf

    with pytest.warns(UserWarning, match="nothing, since the metric is inf before the first round"):
        model.set_params(eval_metric=log_of_spread).fit(X, y)
    assert set(model.chosen_params_) == {"subsample", "random_state"}


@pytest.fixture
def pass_seconds(monkeypatch):
    """Return a function that advances the package's clock, which otherwise nearly stands still."""
    now = [0.0]

    def clock():
        now[0] += 1e-9
        return now[0]

    def pass_seconds(seconds):
        now[0] += seconds
        return now[0]

    monkeypatch.setattr(time, "perf_counter", clock)
    return pass_seconds


def test_more_time_is_no_worse(pass_seconds):
    X, noise = np.random.default_rng(0).normal(size=(2, 800, 8))
    y = np.digitize(X[:, 0] + noise[:, 0], np.linspace(-2, 2, 5))

    def loss(y_true, y_pred):
        pass_seconds(1.0)  # a round takes a second
        return -np.log(y_pred[np.arange(len(y_true)), y_true]).mean()

    # in trials of some rounds, of the first fold, some folds, all folds, two settings and more
    times, losses, compared = [30, 100, 300, 600, 1200, 10_000], [], []
    for max_time in times:
        model = XGBClassifierLite(preset="auto", max_time=max_time, eval_metric=loss, n_jobs=1)
        start, chosen = pass_seconds(0.0), model.fit(X[:400], y[:400]).chosen_params_
        assert pass_seconds(0.0) - start <= 0.5 * max_time + 20  # the probes, and a round
        assert chosen["learning_rate"] <= 0.1
        reasons = chosen.reasons
        assert ("as many as there was time for" in reasons["n_estimators"]) == (max_time <= 100)
        names = ("extra_trees", "max_depth", "min_child_weight", "colsample_bylevel")
        compared.append(sum("no time" not in reasons[name] for name in names))
        losses.append(log_loss(y[400:], model.predict_proba(X[400:]), labels=range(6)))
    assert compared[:2] == [0, 0]
    assert sorted(compared) == compared
    assert compared[-1] == 4
    shares = np.bincount(y[:400], minlength=6) / 400
    assert max(losses) < -np.log(shares[y[400:]]).mean()
    assert max(np.diff(losses)) < 0.01


@pytest.mark.parametrize("max_time", [1.5, 40.0, 400.0, 4000.0])
def test_max_time_bounds_all_of_it(max_time, pass_seconds):
    X, y = load_diabetes(return_X_y=True)

    def squared_error(y_true, y_pred):
        pass_seconds(1.0)  # a round of a trial and of the fit take a second
        return y_pred - y_true, np.ones_like(y_true)

    settings = dict(objective=squared_error, base_score=y.mean(), n_jobs=1)
    model = XGBRegressorLite(preset="auto", max_time=max_time, **settings).fit(X, y)
    assert model.fit_report_.seconds["total"] < 1.1 * max_time + 5
    assert ("no time" in model.chosen_params_.reasons["max_depth"]) == (max_time < 1000)
    assert model.score(X, y) > 0.1  # after a round, too


def test_what_does_not_go_with_a_preset():
    X, y = data_of(XGBRegressorLite)
    model = XGBRegressorLite(**QUICK, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"cannot continue the model of warm_start=True: set_par"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="cannot continue init_model"):
        XGBRegressorLite(**QUICK).fit(X, y, init_model=model)
    with pytest.raises(ValueError, match=r"preset='best': it must be None or 'auto'"):
        XGBRegressorLite(preset="best").fit(X, y)
    with pytest.raises(ValueError, match="preset='auto': a pruning path belongs to a tree of gi"):
        XGBRegressorLite(preset="auto").cost_complexity_pruning_path(X, y)


# --- around it


def test_the_choice_is_kept_in_files_and_pickles():
    X, y = data_of(XGBRegressorLite)
    model = XGBRegressorLite(**QUICK).fit(X, y)
    file = io.BytesIO()
    model.save_model(file, raw_format="json")
    for copy in (pickle.loads(pickle.dumps(model)), load_model(file.getvalue())):
        assert copy.chosen_params_ == model.chosen_params_
        assert str(copy.chosen_params_) == str(model.chosen_params_)
        assert copy.preset == "auto"
    model.set_params(preset=None).fit(X, y)
    assert not hasattr(model, "chosen_params_")


def test_verbose_shows_each_choice(caplog):
    X, y = data_of(XGBRegressorLite)
    model = XGBRegressorLite(**QUICK, verbose=2).fit(X, y)
    texts = [record.getMessage() for record in caplog.records]
    # how far it is, which a fast machine does not tell
    head, *shown = [text for text in texts if not text.startswith("choosing parameters: ")]
    assert head == "6 settings to compare, with 5 training(s) each"
    names = ("extra_trees", "max_depth", "colsample_bylevel", "grow_policy")
    assert [line.split("=")[0] for line in shown[:5]] == [*names, "learning_rate"]
    assert len(shown) == 5 + model.n_estimators_


def test_many_rows_are_compared_on_a_sample_and_rounds_are_counted_on_all(monkeypatch):
    sizes, judge = [], Trials.judge

    def noted(self, *settings):
        sizes.append(len(self._folds[0].task.rows.y))
        return judge(self, *settings)

    monkeypatch.setattr(Trials, "judge", noted)
    monkeypatch.setattr(trials, "_MOST_COMPARED", 200)
    X, y = load_breast_cancer(return_X_y=True)
    y = y + 0
    y[0] = 2  # the only row of its class is in every part that is trained on
    model = XGBClassifierLite(preset="auto", n_estimators=3, **ONE_STAGE).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2]
    *compared, counted = sizes
    assert len(compared) == 3
    assert max(compared) < 200 < 400 < counted < len(y)


def test_rounds_are_scaled_where_no_work_is_left_for_counting_them(monkeypatch):
    monkeypatch.setattr(trials, "_MOST_COMPARED", 500)
    monkeypatch.setattr(trials, "_LEAST_OF_FIT", 0.0)
    X = np.random.default_rng(0).normal(size=(1_500, 2))
    y = X[:, 0] * X[:, 1]

    def chosen(n_rows, n_rounds_of_work, **settings):
        monkeypatch.setattr(trials, "_ROUNDS_OF_WORK", n_rounds_of_work)
        model = XGBRegressorLite(preset="auto", **ONE_STAGE, **settings).fit(X[:n_rows], y[:n_rows])
        return model.chosen_params_

    few, many, all_rows = chosen(1_000, 0), chosen(1_000, 10_000), chosen(1_500, 0)
    assert few["learning_rate"] == 0.1
    assert "rounds of learning rate 0.1 on 40% of the rows" in few.reasons["n_estimators"]
    # work is left, or the sample says too little
    assert "on 80% of the rows" in many.reasons["n_estimators"]
    assert "on 80% of the rows" in all_rows.reasons["n_estimators"]
    in_time = chosen(1_000, 0, max_time=1e6)
    assert in_time == chosen(1_000, 1e9)
    given = chosen(1_000, 0, n_estimators=50)
    assert "on 80% of the rows" in given.reasons["learning_rate"]
