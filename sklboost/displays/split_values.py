"""A histogram of the thresholds at which trees cut a feature.

Thresholds of ids and of times can be so close together, and so far from 0, that floats cannot tell
them apart, nor can matplotlib. So they are counted from an origin nearby, exactly; where the axis
is drawn like that, too, its label says from where values are counted.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from sklboost.data.encoding import instant_text, zone_of
from sklboost.displays.figures import BLUE, Display, function_of, hide_frame, literal, short
from sklboost.estimators.input.feature_names import FeaturePlaces
from sklboost.estimators.parameters.rules import check_value, integer, optional
from sklboost.estimators.predict.fitted_model import fitted_model

_MOST_LETTERS = 60
_MOST_BARS = 100
# Of the size of the numbers: what spans less is not drawn well in float64.
_LEAST_SPAN = 1e-9
_UNITS = {"D": "days", "h": "hours", "m": "minutes", "s": "seconds", "ms": "ms", "us": "µs"}


@dataclass(eq=False, repr=False)
class SplitValuesDisplay(Display):
    """A histogram of the thresholds that trees compare a feature with.

    Where it is high, the prediction changes often with the feature. It is made by
    :meth:`from_estimator`.

    Parameters
    ----------
    values : ndarray of float, int or datetime64, shape (n_splits,)
        The thresholds of all trees.
    feature_name : str
    bins : int, optional
        Number of bars. None: by the number of thresholds and how they lie, at most 100.
    timezone : str, default=""
        The time zone in which times, which `values` has in UTC, are shown.

    Attributes
    ----------
    counts_ : ndarray of float, shape (n_bins,)
        Splits in each bar.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklboost import XGBRegressorLite
    >>> from sklboost.displays import SplitValuesDisplay
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = XGBRegressorLite(n_estimators=20, max_depth=3).fit(X, y)
    >>> display = SplitValuesDisplay.from_estimator(model, "bmi", bins=10)
    >>> int(display.counts_.sum()) == model.get_score("weight")["bmi"]
    True
    """

    values: np.ndarray
    feature_name: str
    bins: int | None = None
    timezone: str = ""

    @classmethod
    def from_estimator(
        cls, estimator: Any, feature: str | int, *, bins: int | None = None, ax: Any = None
    ) -> Self:
        """Draw a histogram of the thresholds that trees compare a feature with.

        Parameters
        ----------
        estimator : XGBRegressorLite or XGBClassifierLite
        feature : str or int
            Its name, or its number, counted from 0; where columns are named by numbers, its name.

        Raises
        ------
        ValueError
            If there is no such feature, if it is a category or if no tree is split on it; if `bins`
            is out of range.
        """
        fitted = fitted_model(estimator)
        number = FeaturePlaces(fitted.features.keys).number_of(feature, "feature")
        check_value("bins", bins, optional(integer(1)))
        encoding = fitted.names.encoding(number)
        if encoding.kind == "category":
            raise ValueError(
                f"feature={feature!r}: it is a category, so its splits have sets of categories and "
                "no thresholds; plot_tree and trees_to_dataframe show the sets"
            )
        nodes = fitted.model.nodes
        thresholds = nodes.threshold[(nodes.left >= 0) & (nodes.feature == number)]
        # an infinite one only tells missing values from all others
        thresholds = thresholds[np.isfinite(thresholds)]
        if len(thresholds) == 0:
            used = ", ".join(map(repr, estimator.get_score()))
            raise ValueError(
                f"feature={feature!r}: no tree has a threshold of it; trees are split on "
                f"{used or 'nothing'}"
            )
        values = encoding.originals(thresholds)
        return cls(values, fitted.feature_names[number], bins, encoding.timezone).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 7.0, 4.0

    def _draw(self, ax: Any) -> None:
        scale, distances = _scale_of(self.values, self.timezone)
        edges = _edges(distances, self.bins, scale.unit)
        self.counts_, _ = np.histogram(distances, edges)
        drawn = scale.start + scale.step * edges
        style = dict(align="edge", color=BLUE, edgecolor="white", linewidth=0.6)
        ax.bar(drawn[:-1], self.counts_, np.diff(drawn), **style)
        if scale.is_calendar:
            from matplotlib.dates import ConciseDateFormatter

            # dates at the axis, and what they have in common at its end
            zone = zone_of(self.timezone) if self.timezone else None
            ax.xaxis_date(zone)
            ax.xaxis.set_major_formatter(ConciseDateFormatter(ax.xaxis.get_major_locator(), zone))
        if scale.offset:
            ax.xaxis.set_major_formatter(lambda number, _: f"{number:,.10g}")
            ax.xaxis.get_major_formatter().set_offset_string(scale.offset)
        if len(self.counts_) == 1:
            ax.margins(x=1.0)
        name = literal(short(self.feature_name, _MOST_LETTERS))
        n_splits = len(self.values)
        ax.set_xlabel(f"threshold of {name}{scale.words}")
        ax.set_ylabel("number of splits")
        ax.set_title(f"{n_splits} split{'s' * (n_splits > 1)} on {name}", fontsize=11)
        ax.yaxis.get_major_locator().set_params(integer=True)
        hide_frame(ax)


class _Scale(NamedTuple):
    """How distances from the origin are drawn: at ``start + step * distance``."""

    start: float = 0.0
    step: float = 1.0
    unit: float = 1.0  # width of the bar of a single threshold
    words: str = ""  # the unit of the axis, with a preposition
    offset: str = ""  # what the numbers at the axis are counted from
    is_calendar: bool = False  # whether the axis is one of dates


def _scale_of(values: np.ndarray, timezone: str) -> tuple[_Scale, np.ndarray]:
    """Choose the origin and how to draw distances from it; return these as float64, too."""
    kind, code = values.dtype.kind, ""
    # integers of any size, as Python has them, or floats
    numbers = (values.astype(np.int64) if kind in "mM" else values).tolist()
    low, high = min(numbers), max(numbers)
    width = 1.0 if kind != "f" else 0.1 * abs(low) or 1.0
    span = (high - low) or width
    is_far = span < _LEAST_SPAN * max(abs(low), abs(high))
    if kind in "mM":
        code = np.datetime_data(values.dtype)[0]
    step = 1.0
    for coarse in _UNITS if kind == "m" and not is_far else ():
        half = int(np.array(1, f"m8[{coarse}]") / np.array(2, values.dtype))
        if half > 0 and not any(number % half for number in numbers):
            # thresholds are halves of what their feature is counted in
            code, width, step = coarse, 2.0 * half, 0.5 / half
            break
    words, origin = f" in {_UNITS.get(code, code)}" if code else "", low
    if kind == "M":
        years = np.array([values.min(), values.max()]).astype("datetime64[Y]").astype(int) + 1970
        if is_far or years[0] < 2 or years[1] > 9990:  # beyond what calendars have
            scale = _Scale(words=f"{words} after {instant_text(values.min(), timezone)}")
        else:
            one = np.ones(1, values.dtype.str.replace("M8", "m8"))  # of the unit
            days = float((one / np.timedelta64(1, "D"))[0])
            scale = _Scale(start=low * days, step=days, is_calendar=True)
    elif is_far:
        step = 10 ** math.ceil(math.log10(span))
        origin = low // step * step
        origin = int(origin) if origin == int(origin) else origin
        scale = _Scale(unit=width, words=words, offset=f"{origin:+,}")
    else:
        scale = _Scale(step * low, step, width, words)
    return scale, np.array([number - origin for number in numbers], dtype=np.float64)


def _edges(distances: np.ndarray, n_bars: int | None, unit: float) -> np.ndarray:
    """Edges of bars that are equally wide."""
    low, high, n_values = distances.min(), distances.max(), len(distances)
    if low == high:
        low, high = low - unit / 2, high + unit / 2
        n_bars = n_bars or 1
    if n_bars is None:
        # the rules of Sturges and of Freedman and Diaconis, as NumPy's "auto"
        quarter, three_quarters = np.quantile(distances, [0.25, 0.75])
        width = 2.0 * (three_quarters - quarter) / np.cbrt(n_values)
        n_bars = int(np.log2(n_values)) + 1
        if width > 0.0:
            n_bars = int(np.clip((high - low) / width, n_bars, _MOST_BARS))
    return np.linspace(low, high, n_bars + 1)


plot_split_values = function_of("plot_split_values", SplitValuesDisplay.from_estimator)
