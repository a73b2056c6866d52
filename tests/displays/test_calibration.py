import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from sklboost import XGBDistributionLite
from sklboost.displays import CalibrationDisplay, plot_calibration

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 2))
Y = X[:, 0] + RNG.normal(size=600)


def test_the_share_of_targets_in_each_interval():
    distribution = stats.norm(np.zeros(600), 1.0)
    display = CalibrationDisplay.from_predictions(Y, distribution, name="narrow")
    low, high = distribution.interval(0.7)
    assert_allclose(display.coverage_[70], ((low <= Y) & (high >= Y)).mean(), atol=0.002)
    assert_allclose(display.coverage_[[0, 100]], [0.0, 1.0])
    diagonal, line = display.ax_.get_lines()
    assert_allclose(line.get_ydata(), display.coverage_)
    assert_allclose(diagonal.get_xdata(), diagonal.get_ydata())
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["calibrated", "narrow"]


def test_the_histogram_of_distribution_functions():
    distribution = stats.norm(np.zeros(600), 1.0)
    display = CalibrationDisplay.from_predictions(Y, distribution, kind="pit", bins=5)
    counts, _ = np.histogram(distribution.cdf(Y), 5, range=(0.0, 1.0))
    assert_allclose(display.heights_, counts / 120.0)
    assert_allclose([bar.get_height() for bar in display.ax_.patches], display.heights_)


def test_counts_are_spread_over_their_steps():
    """By hand: 0 with probability 1/4 is between 0 and 1/4, 1 between 1/4 and 3/4."""
    distribution = stats.binom(2, np.full(4, 0.5))
    display = CalibrationDisplay.from_predictions([0, 1, 1, 2], distribution, kind="pit", bins=4)
    assert_allclose(display.heights_, 1.0)
    display = CalibrationDisplay.from_predictions([0, 0, 1, 1], distribution, kind="pit", bins=4)
    assert_allclose(display.heights_, [2.0, 1.0, 1.0, 0.0])
    assert_allclose(display.coverage_[50], 0.5)


def test_weights_are_rows_several_times():
    distribution = stats.norm(np.zeros(600), 1.0)
    weight = np.where(np.arange(600) < 100, 2.0, 1.0)
    twice = np.concatenate([Y[:100], Y])
    found = CalibrationDisplay.from_predictions(Y, distribution, sample_weight=weight)
    other = CalibrationDisplay.from_predictions(twice, stats.norm(np.zeros(700), 1.0))
    assert_allclose(found.coverage_, other.coverage_)


def test_a_model_is_calibrated_on_its_own_kind_of_data():
    y = np.where(X[:, 1] > 0.5, 0.0, RNG.poisson(np.exp(X[:, 0])))
    model = XGBDistributionLite(distribution="zero_inflated_poisson", n_estimators=20).fit(X, y)
    display = CalibrationDisplay.from_estimator(model, X, y)
    assert np.abs(display.coverage_ - np.linspace(0.0, 1.0, 101)).max() < 0.08
    assert plot_calibration(model, X, y, kind="pit").get_ylabel() == "density"


def test_errors():
    model = XGBDistributionLite(n_estimators=2).fit(X, Y)
    for wrong, words in (
        ({"kind": "cdf"}, "kind='cdf': it must be one of 'coverage', 'pit'"),
        ({"kind": None}, "kind=None: it must be one of 'coverage', 'pit'"),
        ({"bins": 0}, "bins=0: it must be an integer from 1 to 1000"),
        ({"bins": None}, "bins=None: it must be an integer from 1 to 1000"),
    ):
        with pytest.raises(ValueError, match=f"^{words}$"):
            plot_calibration(model, X, Y, **wrong)
    with pytest.raises(ValueError, match="inconsistent"):
        plot_calibration(model, X, Y[:-1])
    with pytest.raises(TypeError, match="predict_dist"):
        plot_calibration("model", X, Y)
