import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from sklboost import Loss, XGBClassifierLite, XGBRegressorLite
from sklboost.engine.backend import BACKEND, Backend
from sklboost.estimators.predict import fitted_model as module
from sklboost.estimators.predict.fitted_model import fitted_model, is_of_package, trained_model
from tests.custom_losses import compiled
from tests.small_models import small

pytestmark = pytest.mark.interpreted

X = np.arange(24.0).reshape(12, 2)


@pytest.mark.parametrize(
    ("estimator", "y", "names"),
    [
        (XGBRegressorLite, np.arange(12.0), [""]),
        (XGBRegressorLite, np.column_stack([X[:, 0], X[:, 1]]), ["target 0", "target 1"]),
        (XGBClassifierLite, np.arange(12) % 2, ["class 1"]),
        (XGBClassifierLite, np.array(list("abc" * 4)), ["class 'a'", "class 'b'", "class 'c'"]),
        (XGBClassifierLite, np.eye(12)[:, :2].astype(int), ["label 0", "label 1"]),
    ],
)
def test_names_of_outputs(estimator, y, names):
    fitted = fitted_model(small(estimator).fit(X, y))
    assert fitted.output_names == names
    assert fitted.feature_names == ["f0", "f1"]
    assert fitted.categories == []
    assert fitted.model.n_outputs == len(names)


def test_functions_of_the_package():
    assert is_of_package(Loss().start)
    for function in (len, "text".upper, np.exp, small):  # some have no module, or None
        assert not is_of_package(function)


def test_trees_of_rounds():
    model = XGBClassifierLite(n_estimators=4, max_depth=1).fit(X, np.arange(12) % 3)
    fitted = fitted_model(model)
    for given, rounds in ((None, (0, 4)), ((0, 0), (0, 4)), ((1, 0), (1, 4)), ((1, 3), (1, 3))):
        assert fitted.trees(given) == tuple(3 * round_ for round_ in rounds)
    with pytest.raises(ValueError, match=r"iteration_range=\(2, 5\): .* first < last <= 4"):
        fitted.trees((2, 5))


def test_changes_of_the_model_and_of_names_count():
    frame = pd.DataFrame(X, columns=["a", "b"])
    model, other = (XGBRegressorLite(n_estimators=n).fit(frame, X[:, 0]) for n in (2, 3))
    assert trained_model(vars(model)) is vars(model)["_trained"]
    model.model_ = other.model_
    assert fitted_model(model).trees(None) == (0, 3)
    other.feature_names_in_ = np.array(["b", "a"], dtype=object)
    assert fitted_model(other).feature_names == ["b", "a"]


def test_features_by_name():
    frame = pd.DataFrame({"size": X[:, 0], "kind": pd.Categorical(list("ab" * 6))})
    fitted = fitted_model(small(XGBRegressorLite).fit(frame, X[:, 0]))
    assert fitted.feature_names == fitted.names.features == ["size", "kind"]
    assert fitted.categories == [[], [["a"], ["b"]]]
    assert [encoding.n_categories for encoding in fitted.encodings] == [0, 2]


def test_errors():
    with pytest.raises(TypeError, match=r"LinearRegression\(\) is no estimator of sklboost"):
        fitted_model(LinearRegression())
    with pytest.raises(NotFittedError):
        fitted_model(XGBRegressorLite())


def test_each_thread_changes_a_share_of_the_raw_scores(monkeypatch):
    fitted = fitted_model(small(XGBClassifierLite).fit(X, np.arange(12) % 3))
    raw_score = np.random.default_rng(0).normal(size=(3, 1001))
    expected, seen = fitted.predictions(raw_score), []

    def transposed(part):
        seen.append(part.shape[1])
        return part.T.copy()

    transposed.__module__ = "sklboost.tests"  # a user's function is called once
    monkeypatch.setattr(module, "_CHANGED_PER_THREAD", 10)
    monkeypatch.setattr(module, "n_threads_for", lambda *_: 3)
    np.testing.assert_array_equal(fitted.predictions(raw_score, transposed), raw_score.T)
    shares = [1001] if BACKEND is Backend.INTERPRETER else [333, 334, 334]
    assert sorted(seen) == [1, *shares]
    np.testing.assert_array_equal(fitted.predictions(raw_score), expected)
    seen.clear()
    fitted.predictions(raw_score[:1], transposed)  # a number for a number
    assert seen == [1, 1001]


def test_predictions_of_a_users_loss_are_made_in_one_call(monkeypatch):
    class Centred(Loss):
        link, n_outputs = "other", 2
        row_derivatives = compiled(lambda y_true, raw_score: (raw_score - y_true, 1.0))

        def predictions(self, raw_score):
            return (raw_score.T - raw_score.mean(axis=1)).copy()

    model = small(XGBRegressorLite, objective=Centred()).fit(X, np.eye(12)[:, :2])
    expected = model.predict(X)
    monkeypatch.setattr(module, "_CHANGED_PER_THREAD", 1)
    monkeypatch.setattr(module, "n_threads_for", lambda *_: 3)
    np.testing.assert_array_equal(model.predict(X), expected)
