import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklboost import XGBRegressorLite
from sklboost.displays import DerivationDisplay, plot_derivation
from tests.small_models import small


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


@pytest.fixture
def worked():
    """Return the example of three rows: residuals -10.5, 6.5 and 7.5 of squared error."""
    return DerivationDisplay(-3.5, 3.0, [0, 4, 40]).plot()


def test_worked_example(worked):
    assert_allclose(worked.outputs_, [1.1667, 0.5, 0.081395], rtol=1e-4)
    assert_allclose(worked.similarities_, [4.0833, 1.75, 0.28488], rtol=1e-4)
    assert legend(worked) == [
        "λ = 0: output 1.167, similarity 4.083",
        "λ = 4: output 0.5, similarity 1.75",
        "λ = 40: output 0.0814, similarity 0.2849",
    ]
    assert worked.ax_.get_title() == "G = -3.5, H = 3"


def test_parabolas_are_the_loss_of_the_three_rows(worked):
    """Total losses of the example: 104.375 at output 0, 109.375 at -1, 102.375 at 1."""
    w, objective = worked.lines_[0].get_data()
    residuals = np.array([-10.5, 6.5, 7.5])
    loss = 0.5 * ((residuals - w[:, np.newaxis]) ** 2).sum(axis=1)
    assert_allclose(objective, loss - 104.375, atol=1e-9)
    for line, reg_lambda in zip(worked.lines_, (0, 4, 40), strict=True):
        assert_allclose(line.get_ydata(), loss - 104.375 + reg_lambda * w**2 / 2, atol=1e-9)


def test_the_marks_are_at_the_minima(worked):
    marks = [line for line in worked.ax_.lines if line.get_marker() == "o"]
    for line, mark, w, similarity in zip(
        worked.lines_, marks, worked.outputs_, worked.similarities_, strict=True
    ):
        assert mark.get_xdata() == [w]
        assert mark.get_ydata() == [-similarity / 2]
        assert min(line.get_ydata()) >= -similarity / 2 - 1e-12
        assert line.get_xdata()[0] < w < line.get_xdata()[-1]
    bottom, top = worked.ax_.get_ylim()
    assert bottom < -4.0833 / 2 < 0 < top < 10  # not as high as the steepest parabola goes


def test_a_node_of_a_model(regressor):
    frame = regressor.trees_to_dataframe().query("Tree == 2 and Node == 3").iloc[0]
    display = DerivationDisplay.from_estimator(regressor, 2, 3, reg_lambdas=[1.0])
    assert_allclose(display.outputs_, frame["Output"])
    assert_allclose(display.similarities_, frame["Similarity"])
    assert display.hessian == frame["Cover"]
    assert display.ax_.get_title().startswith("tree 2, node 3: G = ")
    assert len(legend(display)) == 1  # the node's output is the minimum


def test_lambdas_of_its_own(regressor):
    display = DerivationDisplay.from_estimator(regressor)
    none, own, halved = (settings.reg_lambda for settings in display.settings)
    assert (none, own) == (0.0, 1.0)
    display = DerivationDisplay.from_estimator(regressor, 0, 1)
    assert display.outputs_[2] == pytest.approx(display.outputs_[1] / 2)
    assert halved > own


def test_an_output_that_is_no_minimum_is_shown():
    X = np.arange(20.0).reshape(-1, 1)
    model = small(XGBRegressorLite, path_smooth=5.0).fit(X, X[:, 0])
    display = DerivationDisplay.from_estimator(model, 0, 1)
    output = model.trees_to_dataframe()["Output"][1]
    assert legend(display)[-1] == f"the node's output: {output:.4g}"


def test_alpha_and_a_largest_step():
    display = DerivationDisplay(-3.5, 3.0, [0.0], reg_alpha=0.5, max_delta_step=0.8).plot()
    assert_allclose(display.outputs_, [0.8])  # 3 / 3 = 1 without the limit
    w, objective = display.lines_[0].get_data()
    assert w.max() == 0.8
    assert_allclose(objective, -3.5 * w + 1.5 * w**2 + 0.5 * np.abs(w), atol=1e-12)
    assert "|w|" in display.ax_.get_ylabel()


def test_nothing_to_gain():
    display = DerivationDisplay(0.0, 3.0, [1.0]).plot()
    assert_allclose(display.outputs_, [0.0])
    assert display.lines_[0].get_xdata()[[0, -1]].tolist() == [-1.0, 1.0]


def test_an_output_of_a_tree_with_several():
    X = np.arange(20.0).reshape(-1, 1)
    y = np.column_stack([X[:, 0], -2 * X[:, 0]])
    model = small(XGBRegressorLite, multi_strategy="multi_output_tree").fit(X, y)
    first, second = (DerivationDisplay.from_estimator(model, 0, 1, output=own) for own in (0, 1))
    assert second.gradient == pytest.approx(-2 * first.gradient)
    assert second.ax_.get_title().startswith("tree 0 (round 0, target 1), node 1: G = ")


def test_errors(regressor):
    with pytest.raises(ValueError, match=r"^tree=99: the model has the trees 0 to "):
        plot_derivation(regressor, 99)
    with pytest.raises(ValueError, match=r"^node=-1: tree 0 has the nodes 0 to "):
        plot_derivation(regressor, 0, -1)
    with pytest.raises(ValueError, match=r"^output=2: trees have values for outputs 0$"):
        plot_derivation(regressor, output=2)
    with pytest.raises(ValueError, match=r"^reg_lambdas has -1: each must be a finite number >= 0"):
        plot_derivation(regressor, reg_lambdas=[0, -1])
