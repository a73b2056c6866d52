"""Where the trees cut a feature: a histogram of its thresholds."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from sklboost.data.encoding import Encoding
from sklboost.displays.figures import BLUE, Display, check_value, hide_frame, literal, short
from sklboost.displays.tree_nodes import threshold_values
from sklboost.estimators.input.feature_rules import number_of
from sklboost.estimators.parameters.rules import integer
from sklboost.estimators.predict.fitted_model import fitted_model

_MOST_LETTERS = 60


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
    bins : int or str
        As in :func:`numpy.histogram_bin_edges`.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    counts_ : ndarray of float, shape (n_bins,)
        Splits in each bar.

    See Also
    --------
    plot_split_values : A function that draws the same and returns the axes.

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
    bins: int | str = "auto"

    @classmethod
    def from_estimator(
        cls, estimator: Any, feature: str | int, *, bins: int | None = None, ax: Any = None
    ) -> Self:
        """Draw the thresholds of a feature in a fitted estimator.

        Parameters
        ----------
        estimator : XGBRegressorLite or XGBClassifierLite
        feature : str or int
            Its name or number.
        bins : int, optional
            Number of bars. None: by the number of thresholds and how they lie.
        ax : matplotlib.axes.Axes, optional
            None: a new figure.

        Returns
        -------
        SplitValuesDisplay

        Raises
        ------
        ValueError
            If there is no such feature, if it is a category or if no tree is split on it; if `bins`
            is out of range.
        ImportError
            If matplotlib is not installed.
        """
        fitted = fitted_model(estimator)
        number = number_of(feature, "feature", fitted.feature_names)
        check_value("bins", bins, integer(1))
        encoding = Encoding() if fitted.encodings is None else fitted.encodings[number]
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
        values = threshold_values(thresholds, encoding)
        return cls(values, fitted.feature_names[number], bins or "auto").plot(ax)

    def _size(self) -> tuple[float, float]:
        return 7.0, 4.0

    def _draw(self, ax: Any) -> None:
        numbers, kind = self.values.astype(np.float64), self.values.dtype.kind
        edges = np.histogram_bin_edges(numbers, self.bins)
        self.counts_, _ = np.histogram(numbers, edges)
        # times are drawn in whole units, as calendars have them
        drawn = edges.round().astype(np.int64).astype(self.values.dtype) if kind == "M" else edges
        style = dict(align="edge", color=BLUE, edgecolor="white", linewidth=0.6)
        ax.bar(drawn[:-1], self.counts_, np.diff(drawn), **style)
        unit = f" in {np.datetime_data(self.values.dtype)[0]}" if kind == "m" else ""
        name = literal(short(self.feature_name, _MOST_LETTERS))
        n_splits = len(self.values)
        ax.set_xlabel(f"threshold of {name}{unit}")
        ax.set_ylabel("splits")
        ax.set_title(f"{n_splits} split{'s' * (n_splits > 1)} on {name}", fontsize=11)
        ax.yaxis.get_major_locator().set_params(integer=True)
        hide_frame(ax)


def plot_split_values(estimator: Any, feature: str | int, **settings: Any) -> Any:
    """Draw a histogram of the thresholds that trees compare a feature with.

    Parameters
    ----------
    estimator : XGBRegressorLite or XGBClassifierLite
    feature : str or int
        Its name or number.
    **settings : dict
        `bins`, `ax`: see :meth:`SplitValuesDisplay.from_estimator`.

    Returns
    -------
    matplotlib.axes.Axes
    """
    return SplitValuesDisplay.from_estimator(estimator, feature, **settings).ax_
