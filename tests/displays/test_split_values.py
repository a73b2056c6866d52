import numpy as np
import pandas as pd
import pytest
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
    by_number = SplitValuesDisplay.from_estimator(regressor, 2, bins=7)
    assert_allclose(by_number.counts_, counts)


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
    assert display.ax_.get_xlabel() == "threshold of lasts in hours"
    assert display.ax_.get_xlim()[1] < 60


def displayed(values, **settings):
    """Fit trees on one column, draw its thresholds, and return the display and those thresholds."""
    X = pd.DataFrame({"column": values})
    model = small(XGBRegressorLite, n_estimators=20, max_depth=3)
    display = SplitValuesDisplay.from_estimator(
        model.fit(X, np.arange(len(X)) % 7 + np.arange(len(X)) / 50), "column", **settings
    )
    display.figure_.canvas.draw()  # nothing is wrong with ticks either
    assert display.counts_.sum() == model.get_score()["column"]
    return display, display.values


ROWS = np.arange(400)
FAR = {
    "integers": (10**17 + ROWS, "+100,000,000,000,000,000"),
    "negative": (-(10**17) - ROWS, "-100,000,000,000,001,000"),
    "beyond what floats tell apart": (2**53 + ROWS, "+9,007,199,254,740,000"),
    "unsigned": (np.uint64(2**64 - 1) - ROWS.astype(np.uint64), "+18,446,744,073,709,551,000"),
    "floats close together": (1e9 + ROWS * 2.0**-23, "+1,000,000,000"),
    "spans of time": (pd.to_timedelta(10**17 + ROWS, "ns"), "+100,000,000,000,000,000"),
}


@pytest.mark.parametrize("name", FAR)
def test_what_is_far_from_0_is_counted_from_an_offset_that_is_shown(name):
    values, offset = FAR[name]
    display, thresholds = displayed(values, bins=8)
    ax = display.ax_
    assert ax.xaxis.get_offset_text().get_text() == offset
    origin = int(offset.replace(",", ""))
    numbers = thresholds.astype(np.int64) if thresholds.dtype.kind == "m" else thresholds
    exact = [float(number - origin) for number in numbers.tolist()]  # Python's integers
    counts, edges = np.histogram(exact, 8)
    assert counts.tolist() == display.counts_.tolist() == [bar.get_height() for bar in ax.patches]
    assert_allclose([bar.get_x() for bar in ax.patches], edges[:-1], rtol=1e-12, atol=1e-15)
    labels = [float(text.get_text().replace(",", "")) for text in ax.get_xticklabels()]
    assert_allclose(labels, ax.get_xticks(), rtol=1e-6, atol=1e-15)
    low, high = ax.get_xlim()
    assert (high - low) < 1.2 * (edges[-1] - edges[0])


CLOSE_TIMES = {
    "nanoseconds": pd.Timestamp("2020-01-01T00:00:00.123456789") + pd.to_timedelta(ROWS, "ns"),
    "beyond the calendar": np.datetime64("30000-01-01", "s") + ROWS.astype("timedelta64[s]"),
    "before it": np.datetime64("-4000-01-01", "s") + (86_400_000 * ROWS).astype("timedelta64[s]"),
}


@pytest.mark.parametrize("name", CLOSE_TIMES)
def test_times_that_no_axis_of_dates_can_show_are_counted_from_the_first(name):
    display, thresholds = displayed(CLOSE_TIMES[name])
    unit = {"D": "days"}.get(unit := np.datetime_data(thresholds.dtype)[0], unit)
    words = f"threshold of column in {unit} after {thresholds.min()}"
    assert display.ax_.get_xlabel() == words
    span = (thresholds.max() - thresholds.min()).astype(np.int64)
    bars = display.ax_.patches
    assert (bars[0].get_x(), bars[-1].get_x() + bars[-1].get_width()) == (0.0, pytest.approx(span))


def test_bars_of_whole_days_are_as_wide_as_each_other():
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(ROWS % 4, "D")
    display, _ = displayed(days, bins=12)
    widths = [bar.get_width() for bar in display.ax_.patches]
    assert_allclose(widths, 2 / 12)  # of days: thresholds are 2 to 4 January
    assert "2020-Jan" in display.ax_.xaxis.get_offset_text().get_text()


@pytest.mark.parametrize(
    ("pair", "origin"),
    [
        ((10**17, 10**17 + 1), 10**17 + 1),
        ((1e17, 1e17 + 16), 0),
        ((-1.0, 1.0), 0),
        ((1e-30, 2e-30), 0),
    ],
)
def test_equal_thresholds_are_one_bar_around_them(pair, origin):
    X = pd.DataFrame({"column": np.array(pair * 20)})
    model = small(XGBRegressorLite, max_depth=1).fit(X, [0.0, 1.0] * 20)
    display = SplitValuesDisplay.from_estimator(model, "column")
    display.figure_.canvas.draw()
    (bar,) = display.ax_.patches
    threshold = display.values.tolist()[0] - origin
    assert bar.get_x() < threshold < bar.get_x() + bar.get_width()
    assert display.counts_.tolist() == [8]


def test_values_far_from_most_make_no_millions_of_bars():
    random = np.random.default_rng(0)
    display, _ = displayed(np.exp(10 * random.normal(size=400)))
    assert len(display.counts_) == 100


def test_one_split():
    model = small(XGBRegressorLite, n_estimators=1, max_depth=1)
    ax = plot_split_values(model.fit([[0.0], [1.0], [2.0]], [0.0, 0.0, 9.0]), "f0")
    assert ax.get_title() == "1 split on f0"


def test_errors(regressor):
    with pytest.raises(
        ValueError, match=r"^feature has 'bmy', but X has no such feature; did you mean 'bmi'\?"
    ):
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
