import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.dates import num2date
from numpy.testing import assert_allclose

from sklboost import XGBRegressorLite
from sklboost.displays import SplitValuesDisplay, plot_split_values
from tests.small_models import small


def test_bars_count_the_thresholds(regressor):
    display = SplitValuesDisplay.from_estimator(regressor, "bmi", bins=7)
    frame = regressor.trees_to_dataframe()
    thresholds = frame["Split"][frame["Feature"] == "bmi"]
    counts, edges = np.histogram(thresholds, 7)
    bars = display.ax_.patches
    assert_allclose([bar.get_height() for bar in bars], counts)
    assert_allclose(display.counts_, counts)
    assert_allclose([bar.get_x() for bar in bars], edges[:-1])
    assert_allclose([bar.get_width() for bar in bars], np.diff(edges))
    assert display.ax_.get_title() == f"{len(thresholds)} splits on bmi"


def test_a_feature_by_its_number(regressor):
    by_name, by_number = (SplitValuesDisplay.from_estimator(regressor, own) for own in ("bmi", 2))
    assert_allclose(by_name.counts_, by_number.counts_)


def test_times_have_an_axis_of_times():
    when = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(100), "D")
    model = small(XGBRegressorLite).fit(pd.DataFrame({"when": when}), np.arange(100.0))
    display = SplitValuesDisplay.from_estimator(model, "when")
    left, right = (num2date(x) for x in display.ax_.get_xlim())
    assert (left.year, right.year) == (2019, 2020) or (left.year, right.year) == (2020, 2020)
    assert right.month in (4, 5)
    assert display.counts_.sum() == model.get_score()["when"]


def test_spans_of_time_name_their_unit():
    X = pd.DataFrame({"lasts": pd.to_timedelta(np.arange(50), unit="h")})
    display = SplitValuesDisplay.from_estimator(small(XGBRegressorLite).fit(X, np.arange(50.0)), 0)
    assert display.ax_.get_xlabel() == "threshold of lasts in h"
    assert display.ax_.get_xlim()[1] < 60


def test_one_split():
    model = small(XGBRegressorLite, n_estimators=1, max_depth=1)
    ax = plot_split_values(model.fit([[0.0], [1.0], [2.0]], [0.0, 0.0, 9.0]), "f0")
    assert ax.get_title() == "1 split on f0"


def test_axes_of_the_user(regressor):
    _, ax = plt.subplots()
    assert plot_split_values(regressor, "s5", ax=ax) is ax


def test_errors(regressor):
    with pytest.raises(ValueError, match=r"^feature has 'bmy', but X has no such feature: 'bmi'\?"):
        plot_split_values(regressor, "bmy")
    with pytest.raises(ValueError, match=r"^bins=0: it must be None or an integer >= 1$"):
        plot_split_values(regressor, "bmi", bins=0)
    X = pd.DataFrame(
        {
            "kind": pd.Categorical(list("abcd") * 10),
            "constant": np.zeros(40),
            "gaps": np.where(np.arange(40) % 3 == 0, np.nan, 1.0),
        }
    )
    y = (X["kind"] == "a") + 2.0 * X["gaps"].isna()
    model = small(XGBRegressorLite).fit(X, y)
    assert model.get_score()["gaps"] > 0
    with pytest.raises(ValueError, match=r"^feature='kind': it is a category, so its splits"):
        plot_split_values(model, "kind")
    for feature in ("constant", "gaps"):  # "gaps" is missing or not, which is no threshold
        with pytest.raises(ValueError, match=rf"^feature='{feature}': no tree has a threshold"):
            plot_split_values(model, feature)
