"""Callbacks written for XGBoost, the real ones of the installed version."""

import joblib
import pytest
import xgboost
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import sklboost
from sklboost import XGBClassifierLite, load_model

X, Y = load_breast_cancer(return_X_y=True)
X, X_VAL, Y, Y_VAL = train_test_split(X[:, :6], Y, random_state=0)
EVAL_SET = [(X, Y), (X_VAL, Y_VAL)]
SMALL = dict(n_estimators=8, max_depth=2)


class PrunedError(Exception):
    """What ends a trial."""


class Pruning(xgboost.callback.TrainingCallback):
    """Ends a trial as Optuna's callback does, which asks in the same way for a Booster."""

    def before_training(self, model):
        self.is_cv = not isinstance(model, xgboost.Booster)
        return model

    def after_iteration(self, model, epoch, evals_log):
        assert isinstance(evals_log["validation_1"]["logloss"], list)
        if not self.is_cv and epoch == 3:
            raise PrunedError(evals_log["validation_1"]["logloss"][-1])
        return False

    def after_training(self, model):
        raise AssertionError("XGBoost does not call it after an error")


def test_an_error_leaves_fit_and_the_estimator_as_it_was():
    model = XGBClassifierLite(**SMALL).fit(X, Y)
    before, state = model.predict_proba(X), set(vars(model))
    model.set_params(callbacks=[Pruning()])
    with pytest.raises(PrunedError):
        model.fit(X, Y, eval_set=EVAL_SET)
    assert_array_equal(model.predict_proba(X), before)
    assert set(vars(model)) == state


class Notes(xgboost.callback.TrainingCallback):
    """Stops at a round, and keeps what the model says there and before."""

    def __init__(self):
        self.rounds = []

    def before_training(self, model):
        self.first = model.num_boosted_rounds()
        return model

    def after_iteration(self, model, epoch, evals_log):
        self.rounds.append((epoch, model.num_boosted_rounds(), model.num_features()))
        model.set_attr(half=str(epoch / 2), best_iteration=str(epoch), best_score="0.5")
        self.margin = model.predict(xgboost.DMatrix(X), output_margin=True)
        self.n_first = len(model[:1].get_dump())
        return epoch == 2

    def after_training(self, model):
        self.attributes = model.attributes()
        self.best = (model.best_iteration, model.best_score, model.attr("half"), model.attr("no"))
        return model


def test_the_same_is_seen_as_in_xgboost():
    """Rounds, attributes and predictions so far, also while a model is continued."""
    seen, margins = [], []
    for kind in (xgboost.XGBClassifier, XGBClassifierLite):
        first = kind(**SMALL).fit(X, Y)
        notes = [Notes(), Notes()]
        kind(callbacks=notes[:1], **SMALL).fit(X, Y)
        other = first.get_booster() if kind is xgboost.XGBClassifier else first
        kind(callbacks=notes[1:], **SMALL).fit(X, Y, xgb_model=other)
        seen.append(notes)
    for theirs, ours in zip(*seen, strict=True):
        expected, found = vars(theirs), vars(ours)
        margins.append(found.pop("margin"))
        del expected["margin"]  # some cuts differ
        assert found == expected
    fitted = XGBClassifierLite(**SMALL).fit(X, Y)
    so_far = fitted.predict(X, output_margin=True, iteration_range=(0, 3))
    assert_allclose(margins[0], so_far, rtol=1e-5)


def test_early_stopping_of_xgboost_is_the_own():
    """It holds rows out, serves several fits, and knows that more of a metric is better."""
    theirs = xgboost.callback.EarlyStopping(rounds=3, metric_name="auc", save_best=True)
    ours = sklboost.EarlyStopping(3, metric_name="auc")
    models = [
        XGBClassifierLite(eval_metric=["auc", "logloss"], callbacks=[stop]).fit(X, Y)
        for stop in (theirs, theirs, ours)
    ]
    assert {model.best_iteration_ for model in models} == {models[2].best_iteration_}
    assert models[0].best_score_ == models[2].best_score_ > 0.9

    class Own(xgboost.callback.EarlyStopping):
        pass

    model = XGBClassifierLite(callbacks=[Own(rounds=3)]).fit(X, Y, eval_set=EVAL_SET)
    like = XGBClassifierLite(early_stopping_rounds=3).fit(X, Y, eval_set=EVAL_SET)
    assert model.best_iteration_ == like.best_iteration_
    assert_array_equal(model.predict_proba(X), like.predict_proba(X))


def test_learning_rates_of_xgboost():
    """They are set after each round, for the next one."""
    schedule = xgboost.callback.LearningRateScheduler([0.1, 0.05, 0.01])
    own = sklboost.LearningRateScheduler([0.3, 0.1, 0.05])
    theirs, ours = (
        XGBClassifierLite(n_estimators=3, callbacks=[callback]).fit(X, Y).predict_proba(X)
        for callback in (schedule, own)
    )
    assert_array_equal(theirs, ours)


def test_lines_and_files_of_xgboost(tmp_path, capsys):
    monitor = xgboost.callback.EvaluationMonitor(period=3)
    files, pickles = (
        xgboost.callback.TrainingCheckPoint(tmp_path, name=name, as_pickle=name == "p", interval=3)
        for name in "fp"
    )
    model = XGBClassifierLite(callbacks=[monitor, files, pickles], **SMALL)
    model.fit(X, Y, eval_set=EVAL_SET)
    first, *others = capsys.readouterr().out.splitlines()
    value = model.evals_result_["validation_1"]["logloss"][0]
    assert first.endswith(f"\tvalidation_1-logloss:{value:.5f}")
    assert [line.split("]")[0] for line in others if line] == ["[3", "[6", "[7"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("f_3.ubj", "f_6.ubj"),
        *("p_3.pkl", "p_6.pkl"),
    ]
    expected = list(model.staged_predict_proba(X))[3]
    assert_array_equal(load_model(tmp_path / "f_3.ubj").predict_proba(X), expected)
    assert_array_equal(joblib.load(tmp_path / "p_3.pkl").predict_proba(X), expected)
    theirs = xgboost.Booster(model_file=tmp_path / "f_3.ubj").predict(xgboost.DMatrix(X))
    assert_allclose(theirs, expected[:, 1], rtol=1e-5)


class Methods:
    """Inherits from nothing; does one thing with the model after each round."""

    def __init__(self, act):
        self.act = act

    def before_training(self, model):
        return model

    after_training = before_training

    def before_iteration(self, model, epoch, evals_log):
        return False

    def after_iteration(self, model, epoch, evals_log):
        return self.act(model)


def test_an_object_with_the_methods_may_stop():
    model = XGBClassifierLite(callbacks=[Methods(lambda model: True)], **SMALL).fit(X, Y)
    assert model.n_estimators_ == 1
    act = Methods(lambda model: model.set_param({"eta": 0.01}))
    model = XGBClassifierLite(callbacks=[act], n_estimators=2).fit(X, Y)
    assert list(model.model_.params["learning_rate"]) == pytest.approx([0.3, 0.01])


def test_metrics_are_one_object_that_grows():
    """As in XGBoost: it takes no longer in a late round, and what a callback removes is gone."""

    class Keeps(xgboost.callback.TrainingCallback):
        def __init__(self):
            self.logs, self.lengths = [], []

        def after_iteration(self, model, epoch, evals_log):
            values = evals_log["validation_1"]["logloss"]
            self.lengths.append(len(values))
            self.logs.append(evals_log)
            if epoch == 4:
                del values[:3]
            return False

    seen = []
    for kind in (xgboost.XGBClassifier, XGBClassifierLite):
        keeps = Keeps()
        kind(callbacks=[keeps], **SMALL).fit(X, Y, eval_set=EVAL_SET)
        assert all(log is keeps.logs[0] for log in keeps.logs)
        seen.append(keeps.lengths)
    assert seen[0] == seen[1] == [1, 2, 3, 4, 5, 3, 4, 5]


def test_metrics_may_be_changed_by_a_callback():
    class Clears(Methods):
        def before_iteration(self, model, epoch, evals_log):
            return self.after_iteration(model, epoch, evals_log)

        def after_iteration(self, model, epoch, evals_log):
            for of_metric in evals_log.values():
                for values in of_metric.values():
                    values.clear()
            evals_log.clear()
            return False

    fits = [
        XGBClassifierLite(callbacks=own, early_stopping_rounds=2, **SMALL).fit(X, Y)
        for own in (None, [Clears(None)])
    ]
    assert fits[0].evals_result_ == fits[1].evals_result_ != {}


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda model: model.update(None, 1), AttributeError, "no 'update': it has attr, .*set_p"),
        (lambda model: model.nothing, AttributeError, "no 'nothing': it has attr"),
        (lambda model: model.best_score, AttributeError, "before a callback has set it"),
        (lambda model: model.set_param("gamma", 3), ValueError, r"'gamma', 3\): a callback"),
        (lambda model: model.set_attr(a=1), ValueError, r"set_attr\(a=1\): it must be a string"),
    ],
)
def test_what_the_model_has_not(act, error, message):
    with pytest.raises(error, match=message):
        XGBClassifierLite(callbacks=[Methods(act)], **SMALL).fit(X, Y)


def test_callbacks_of_lightgbm_are_refused_with_what_to_take():
    lightgbm = pytest.importorskip("lightgbm")
    for callback, remedy in (
        (lightgbm.early_stopping(3), "set early_stopping_rounds, or take sklboost.EarlyStopping"),
        (lightgbm.log_evaluation(), "set verbose"),
        (lightgbm.record_evaluation({}), "evals_result_"),
        (lightgbm.reset_parameter(learning_rate=[0.1]), "take sklboost.LearningRateScheduler"),
    ):
        with pytest.raises(ValueError, match=f"a callback of LightGBM, .*: .*{remedy}"):
            XGBClassifierLite(callbacks=[callback]).fit(X, Y)
    with pytest.raises(ValueError, match=r"no functions.*before_training, before_iteration"):
        XGBClassifierLite(callbacks=[lambda env: None]).fit(X, Y)
