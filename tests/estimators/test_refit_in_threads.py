"""An estimator that is fitted in one thread and asked in others: one model or the other, whole."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost import TrainingCallback, XGBClassifierLite, XGBRegressorLite

N_FITS = 40


def data(n_classes, n_features=4):
    random = np.random.default_rng(n_classes)
    X = random.normal(size=(200, n_features))
    return X, random.permutation(np.arange(200) % n_classes)


QUESTIONS = {
    "predict_proba": lambda model, X: model.predict_proba(X),
    "predict": lambda model, X: model.predict(X),
    "decision_function": lambda model, X: model.decision_function(X),
    "stages": lambda model, X: list(model.staged_predict_proba(X))[-1],
    "labels of stages": lambda model, X: list(model.staged_predict(X))[-1],
    "apply": lambda model, X: model.apply(X),
    "shap_values": lambda model, X: model.shap_values(X),
    "score": lambda model, X: np.array(sorted(model.get_score().items())),
    "table": lambda model, X: model.trees_to_dataframe()[["Tree", "Gain", "Cover"]].to_numpy(),
}


def ask_while_fitting(model, sets, ask):
    """Fit on each set in turn while other threads ask; return the answers and the errors."""
    answers, errors, is_done = [], [], threading.Event()

    def work():
        while not is_done.is_set():
            try:
                answers.append(ask(model))
            except Exception as error:
                errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for number in range(N_FITS):
            model.fit(*sets[(number + 1) % len(sets)])
    finally:
        is_done.set()
        for thread in threads:
            thread.join()
    return answers, errors


def test_answers_are_those_of_one_model():
    sets, X = [data(2), data(4)], data(2)[0][:20]
    model = XGBClassifierLite(n_estimators=3, max_depth=2, n_jobs=1, random_state=0)

    def ask(own):
        return {name: question(own, X) for name, question in QUESTIONS.items()}

    expected = [ask(model.fit(*given)) for given in (sets[1], sets[0])]
    answers, errors = ask_while_fitting(model, sets, ask)
    assert errors == []
    assert len(answers) > N_FITS // 2
    for answer in answers:
        for name, found in answer.items():  # each by one of the two models
            assert any(np.array_equal(found, one[name]) for one in expected), name


def test_other_features():
    sets = [data(3), data(3, 6)]
    model = XGBClassifierLite(n_estimators=3, max_depth=2, n_jobs=1).fit(*sets[0])
    answers, errors = ask_while_fitting(model, sets, lambda own: own.predict_proba(sets[0][0]))
    assert len(answers) + len(errors) > 0
    for error in errors:  # the other model's, which is right
        assert (
            str(error)
            == "X has 4 features, but XGBClassifierLite is expecting 6 features as input."
        )


def test_attributes_are_never_gone(tmp_path):
    X, y = data(5)
    valid = dict(X_val=X[:50], y_val=y[:50])
    model = XGBRegressorLite(n_estimators=3, max_depth=2, n_jobs=1, early_stopping_rounds=2)
    page = tmp_path / "page.html"

    def ask(own):
        own.to_html(page)
        return own.n_features_in_, own.model_.n_features, len(own.evals_result_)

    sets = [(X, y, None), (X[:100], y[:100], np.ones(100))]
    model.fit(*sets[0], **valid)
    answers, errors = ask_while_fitting(model, sets, ask)
    assert errors == []
    assert set(answers) == {(4, 4, 1)}


@pytest.mark.parametrize(
    ("kind", "moment"),
    [
        (KeyboardInterrupt, "before_training"),
        (KeyboardInterrupt, "before_iteration"),
        (MemoryError, "before_iteration"),
        (MemoryError, "after_training"),
    ],
)
def test_a_fit_that_fails_loses_nothing(kind, moment):
    class Fail(TrainingCallback):
        pass

    def fail(*_):
        raise kind("stop")

    setattr(Fail, moment, fail)
    (X, y), others = data(3), data(4, 6)
    model = XGBClassifierLite(n_estimators=3, max_depth=2).fit(X, y)
    model.note_ = "of the user"
    model.set_params(callbacks=[Fail()])
    before, state = model.predict_proba(X), dict(vars(model))
    with pytest.raises(kind):
        model.fit(*others)
    assert vars(model) == state
    assert_array_equal(model.predict_proba(X), before)
