"""scikit-learn's callbacks: they are told of every round and may stop, alone and in its tools."""

import pickle
import re

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklboost import Checkpoint, XGBClassifierLite, XGBRegressorLite


@pytest.fixture(scope="module")
def data():
    return load_diabetes(return_X_y=True)


def small(**parameters):
    return XGBRegressorLite(**(dict(n_estimators=4, max_depth=2) | parameters))


class Recorder:
    """Keeps what it is told; may stop training or fail at a round."""

    max_propagation_depth = None

    def __init__(self, stop_at=None, fail_at=None, error=RuntimeError):
        self.stop_at = stop_at
        self.fail_at = fail_at
        self.error = error
        self.told = []
        self.contexts = []
        self.given = []
        self.fitted = []

    def setup(self, estimator, context):
        self.told.append("setup")

    def on_fit_task_begin(self, estimator, context, *, X, y, metadata, fitted_estimator):
        assert fitted_estimator is None
        self._note("begin", context)
        self.given.append((X, y, metadata))

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        self._note("end", context)
        self.given.append((X, y, metadata))
        self.fitted.append(fitted_estimator)
        if context.task_name == "round":
            if context.task_id == self.fail_at:
                raise self.error
            return context.task_id == self.stop_at

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def _note(self, event, context):
        self.told.append(f"{event} {context.task_name} {context.task_id}")
        self.contexts.append(context)


def told_of(n_rounds):
    rounds = [f"{event} round {i}" for i in range(n_rounds) for event in ("begin", "end")]
    return ["setup", "begin fit 0", *rounds, "end fit 0", "teardown"]


def callback_attributes(model):
    return [name for name in vars(model) if name.startswith("_") and "callback" in name]


# --- what is told --------------------------------------------------------------------------------


def test_told_of_the_fit_and_of_every_round(data):
    recorder = Recorder()
    small().set_callbacks(recorder).fit(*data)
    assert recorder.told == told_of(4)
    fit, *rounds = recorder.contexts[:-1]
    assert fit is recorder.contexts[-1]
    assert (fit.max_subtasks, fit.estimator_name) == (4, "XGBRegressorLite")
    assert all(context.parent is fit and context.max_subtasks == 0 for context in rounds)


def test_given_what_fit_was_given(data):
    X, y = data
    recorder = Recorder()
    small().set_callbacks(recorder).fit(X, y)
    assert all(given_X is X and given_y is y for given_X, given_y, _ in recorder.given)
    assert [given[2] for given in recorder.given] == 10 * [{}]
    weight = np.ones(len(y))
    recorder = Recorder()
    small().set_callbacks(recorder).fit(X, y, sample_weight=weight)
    assert all(given[2]["sample_weight"] is weight for given in recorder.given)


@pytest.mark.parametrize("estimator", [XGBRegressorLite, XGBClassifierLite])
def test_the_estimator_of_a_round_is_as_if_fitted_so_far(data, estimator):
    X, y = data
    y = np.where(y > 140, "high", "low") if estimator is XGBClassifierLite else y
    recorder = Recorder()
    model = estimator(n_estimators=4, max_depth=2).set_callbacks(recorder).fit(X, y)
    *rounds, whole = recorder.fitted
    for staged, fitted in zip(model.staged_predict(X), rounds, strict=True):
        assert_array_equal(fitted.predict(X), staged)
        assert fitted.feature_importances_.sum() == pytest.approx(1.0)
    assert_array_equal(whole.predict(X), model.predict(X))


def test_told_of_the_new_rounds_of_a_continued_model(data):
    recorder = Recorder()
    first = small().fit(*data)
    model = small(n_estimators=3).set_callbacks(recorder).fit(*data, init_model=first)
    assert recorder.told == told_of(3)
    assert recorder.contexts[0].max_subtasks == 3
    assert model.model_.n_rounds == 7
    assert recorder.fitted[0].model_.n_rounds == 5


@pytest.mark.parametrize("stop_at", [0, 2])
def test_stops_when_told_to(data, stop_at):
    recorder = Recorder(stop_at=stop_at)
    model = small().set_callbacks(recorder).fit(*data)
    assert recorder.told == told_of(stop_at + 1)
    assert model.model_.n_rounds == stop_at + 1


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_torn_down_after_errors_with_the_earlier_model_whole(data, error):
    X, y = data
    model = small().fit(X, y)
    before = model.predict(X)
    recorder = Recorder(fail_at=0, error=error)
    model.set_callbacks(recorder).set_params(n_estimators=9)
    names = set(vars(model))
    if error is KeyboardInterrupt:
        model.fit(X, y)  # one round is finished: it is kept
        assert recorder.told == told_of(1)
    else:
        with pytest.raises(error):
            model.fit(X, y)
        assert recorder.told == told_of(1)[:-2] + ["teardown"]
        assert_array_equal(model.predict(X), before)
    assert set(vars(model)) == names


def test_torn_down_after_bad_parameters(data):
    recorder = Recorder()
    model = small(n_estimators="many").set_callbacks(recorder)
    with pytest.raises(ValueError, match="n_estimators"):
        model.fit(*data)
    assert recorder.told == ["setup", "teardown"]
    assert callback_attributes(model) == ["_skl_callbacks"]


# --- what else there is --------------------------------------------------------------------------


def test_own_callbacks_and_those_of_scikit_learn(data, tmp_path):
    class NotPickled(Recorder):  # a local class has no name to be found by
        pass

    recorder = NotPickled()
    callbacks = [Checkpoint(tmp_path, interval=2)]
    model = small(callbacks=callbacks).set_callbacks(recorder).fit(*data)
    saved = joblib.load(tmp_path / "model_4.joblib")
    assert_array_equal(saved.predict(data[0]), model.predict(data[0]))
    assert callback_attributes(saved) == []
    assert recorder.told == told_of(4)


def test_clones_and_pickles_keep_them(data):
    model = small().set_callbacks(ScoringMonitor(scoring="r2"))
    assert callback_attributes(clone(model)) == ["_skl_callbacks"]
    copy = pickle.loads(pickle.dumps(model.fit(*data)))
    assert_array_equal(copy.predict(data[0]), model.predict(data[0]))


# --- scikit-learn's callbacks and tools ----------------------------------------------------------


def pipeline():
    return make_pipeline(StandardScaler(), small())


def search(model, **grid):
    return GridSearchCV(model, grid, cv=2)


@pytest.mark.parametrize(
    ("model", "bars"),
    [
        (small(), ["XGBRegressorLite - fit"]),
        (
            search(pipeline(), xgbregressorlite__max_depth=[1, 2]),
            ["GridSearchCV - fit", r"Pipeline - fit #\d", r"XGBRegressorLite - fit #\d"],
        ),
    ],
    ids=["alone", "search of pipelines"],
)
def test_progress_bars(data, capsys, monkeypatch, model, bars):
    monkeypatch.setenv("COLUMNS", "200")
    model.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(*data)
    shown = capsys.readouterr().out
    for bar in bars:
        assert re.search(rf"{bar}.*100%", shown), shown


def scores(monitor):
    return [row["r2"] for row in monitor.get_logs().data]


def test_scores_of_every_round(data):
    X, y = data
    monitor = ScoringMonitor(scoring="r2")
    model = small().set_callbacks(monitor).fit(X, y)
    staged = [r2_score(y, prediction) for prediction in model.staged_predict(X)]
    # the last two are of the last round and of the whole fit, or the other way round
    assert_allclose(sorted(scores(monitor)), sorted([*staged, staged[-1]]))
    weight = np.linspace(0.0, 2.0, len(y))
    model.fit(X, y, sample_weight=weight)
    whole = r2_score(y, model.predict(X), sample_weight=weight)
    assert scores(monitor)[-1] == pytest.approx(whole)
    monitor = ScoringMonitor(scoring="r2")
    search(small().set_callbacks(monitor), max_depth=[1, 2]).fit(X, y)
    # two candidates, two folds and the final fit: four rounds and a whole each
    assert len(scores(monitor)) == 5 * 5
