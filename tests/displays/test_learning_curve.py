import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.displays import LearningCurveDisplay, plot_learning_curve
from tests.small_models import small

X = np.random.default_rng(0).normal(size=(80, 3))


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_a_line_for_each_set_and_the_best_round(regressor):
    display = LearningCurveDisplay.from_estimator(regressor)
    results = regressor.evals_result_
    assert len(results["validation_1"]["rmse"]) > regressor.best_iteration_ + 1
    for line, own in zip(display.lines_, results.values(), strict=True):
        assert_array_equal(line.get_ydata(), own["rmse"])
        assert_array_equal(line.get_xdata(), np.arange(len(own["rmse"])))
    assert display.best_.get_xdata() == [regressor.best_iteration_]
    assert display.best_.get_ydata() == [regressor.best_score_]
    best = f"best: round {regressor.best_iteration_}, {regressor.best_score_:.4g}"
    assert legend(display) == ["validation_0", "validation_1", best]
    assert display.ax_.get_ylabel() == "rmse"
    assert len(display.ax_.lines) == 4  # two sets, the best round and the line through it
    display = LearningCurveDisplay.from_estimator(regressor, names=["training", "validation"])
    assert legend(display)[:2] == ["training", "validation"]


def test_metrics():
    y = (X[:, 0] > 0).astype(int)
    model = small(XGBClassifierLite, eval_metric=["error", "logloss"], early_stopping_rounds=3)
    model.fit(X, y)
    results = model.evals_result_["validation_0"]
    last, first = (
        LearningCurveDisplay.from_estimator(model, metric=own) for own in (None, "error")
    )
    assert_array_equal(last.lines_[0].get_ydata(), results["logloss"])
    assert_array_equal(first.lines_[0].get_ydata(), results["error"])
    assert first.best_ is None  # the other metric chose the round


def test_without_early_stopping_no_round_is_marked():
    model = small(XGBRegressorLite).fit(X, X[:, 0], eval_set=[(X, X[:, 0])])
    display = LearningCurveDisplay.from_estimator(model)
    assert display.best_ is None
    assert len(display.lines_[0].get_ydata()) == 8


def test_rounds_of_a_continued_model_go_on():
    first = small(XGBRegressorLite).fit(X, X[:, 0])
    model = small(XGBRegressorLite, early_stopping_rounds=5, learning_rate=0.01)
    model.fit(X, X[:, 0], X_val=X, y_val=X[:, 0], init_model=first)
    display = LearningCurveDisplay.from_estimator(model)
    assert display.lines_[0].get_xdata()[0] == 8
    assert display.best_.get_xdata() == [model.best_iteration_]
    assert display.best_.get_ydata() == [model.best_score_]


def test_one_round_is_a_point():
    model = small(XGBRegressorLite, n_estimators=1).fit(X, X[:, 0], X_val=X, y_val=X[:, 0])
    assert LearningCurveDisplay.from_estimator(model).lines_[0].get_marker() == "."


def test_errors(regressor):
    with pytest.raises(ValueError, match=r"without validation data.*pass eval_set="):
        plot_learning_curve(small(XGBRegressorLite).fit(X, X[:, 0]))
    with pytest.raises(ValueError, match=r"^metric='mae': the estimator has 'rmse'$"):
        plot_learning_curve(regressor, metric="mae")
    with pytest.raises(ValueError, match=r"^names=\['a'\]: there are 2 sets of rows, validation_0"):
        plot_learning_curve(regressor, names=["a"])
