"""Importances of features as bars."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np

from sklboost.displays.figures import (
    BLUE,
    DARK,
    GREY,
    Display,
    draws_like,
    hide_frame,
    literal,
    short_names,
    short_number,
)
from sklboost.estimators.parameters.rules import check_value, integer, optional, value_of
from sklboost.estimators.predict.fitted_model import fitted_model
from sklboost.inspection.importances import ValidationImportances

_BAR, _FRAME, _WIDTH = 0.26, 1.2, 7.0  # inches
_MOST_LETTERS, _LABEL = 40, 10.0  # of names, and their size in points
_WORDS = {
    "weight": "number of splits",
    "gain": "average gain of a split",
    "total_gain": "total gain of the splits",
    "cover": "average cover of a split",
    "total_cover": "total cover of the splits",
    "permutation": "decrease of the score when the feature is shuffled",
    "shap": "mean |SHAP value|",
}


@dataclass(eq=False, repr=False)
class ImportanceDisplay(Display):
    """Importances of features as bars, the largest at the top.

    It is made by :meth:`from_estimator` or :meth:`from_validation`.

    Parameters
    ----------
    importances : ndarray of float, shape (n_features,)
    feature_names : sequence of str
    label : str
        What is measured.
    deviations : ndarray of float, shape (n_features,), optional
        Drawn as a line through the end of each bar.
    baseline : float, optional
        A vertical line; bars that do not reach beyond it are grey.
    show_values : bool, default=True
        Whether bars are labelled with their numbers.
    values_format : str, default=""
        Their format, such as "{v:.2f}". Empty: four digits.
    bar_style : dict, optional
        Passed on to ``barh`` of matplotlib.

    Attributes
    ----------
    bars_ : matplotlib.container.BarContainer
        From the smallest to the largest, upwards.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklboost import XGBRegressorLite
    >>> from sklboost.displays import ImportanceDisplay
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = XGBRegressorLite(n_estimators=20, max_depth=3).fit(X, y)
    >>> display = ImportanceDisplay.from_estimator(model, max_num_features=3)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['bp', 'bmi', 's5']
    """

    importances: np.ndarray
    feature_names: Sequence[str]
    label: str
    _: KW_ONLY
    deviations: np.ndarray | None = None
    baseline: float | None = None
    show_values: bool = True
    values_format: str = ""
    bar_style: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        importance_type: str | None = None,
        max_num_features: int | None = None,
        show_values: bool = True,
        values_format: str = "",
        ax: Any = None,
        **bar_style: Any,
    ) -> Self:
        """Draw the importances from the splits of a fitted estimator.

        Parameters
        ----------
        estimator : XGBRegressorLite or XGBClassifierLite
        importance_type : {"gain", "total_gain", "cover", "total_cover", "weight"}, optional
            None: the parameter of the estimator. Scores are its ``get_score``: not scaled.
        max_num_features : int, optional
            Draw the most important ones. None: all that trees are split on.
        ax : matplotlib.axes.Axes, optional
            None: a new figure, as high as it must be.
        **bar_style : dict
            Passed on to ``barh`` of matplotlib: `height`, from 0 to 1, `color`, ...

        Raises
        ------
        ValueError
            If an argument is out of range, or if no tree has a split.
        """
        fitted_model(estimator)
        kind = importance_type or value_of(estimator, "importance_type")
        scores = estimator.get_score(kind)
        if not scores:
            raise ValueError(
                "no tree has a split, so no feature has an importance: there is nothing to draw"
            )
        values = np.array(list(scores.values()))
        chosen = _largest(values, max_num_features)
        names = list(scores)
        return cls(
            values[chosen],
            [names[i] for i in chosen],
            _WORDS[kind],
            show_values=show_values,
            values_format=values_format,
            bar_style=bar_style,
        ).plot(ax)

    @classmethod
    def from_validation(
        cls,
        importances: ValidationImportances,
        *,
        max_num_features: int | None = None,
        show_values: bool = True,
        values_format: str = "",
        ax: Any = None,
        **bar_style: Any,
    ) -> Self:
        """Draw importances on validation rows, and the best of the shadows.

        Parameters
        ----------
        importances : ValidationImportances
            The result of ``estimator.validation_importances``.
        max_num_features : int, optional
            Draw the most important ones. None: all.

        Raises
        ------
        ValueError
            If `max_num_features` is out of range.
        """
        means = importances.importances_mean
        chosen = _largest(means, max_num_features)
        return cls(
            means[chosen],
            [importances.feature_names[i] for i in chosen],
            _WORDS[importances.method],
            deviations=importances.importances_std[chosen],
            baseline=float(importances.baseline.max()),
            show_values=show_values,
            values_format=values_format,
            bar_style=bar_style,
        ).plot(ax)

    def _size(self) -> tuple[float, float]:
        return _WIDTH, _FRAME + _BAR * len(self.importances)

    def _draw(self, ax: Any) -> None:
        n_bars = len(self.importances)
        order = np.argsort(self.importances, kind="stable")
        values, baseline = self.importances[order], self.baseline
        names = [literal(name) for name in short_names(self.feature_names, _MOST_LETTERS)]
        is_above = values > (-np.inf if baseline is None else baseline)
        colours = np.where(is_above, BLUE, GREY).tolist()
        style = {"height": 0.7, "color": colours, **self.bar_style}
        self.bars_: Any = ax.barh(range(n_bars), values, **style)
        if self.deviations is not None:
            # a line through the end of each bar; numbers stand at the side, out of its way
            deviations, places = self.deviations[order], range(n_bars)
            ax.errorbar(values, places, xerr=deviations, fmt="none", ecolor=DARK)
            text = dict(transform=ax.get_yaxis_transform(), va="center", fontsize=8)
            for place, value, deviation in zip(places, values, deviations, strict=True):
                if self.show_values:
                    shown = f"{self._number(value, 3)} ± {self._number(deviation, 2)}"
                    ax.text(1.01, place, shown, **text)
        elif self.show_values:
            ax.bar_label(self.bars_, [self._number(v, 4) for v in values], padding=3, size=8)
            ax.margins(x=0.12)  # for these numbers
        height = ax.get_window_extent().height / ax.figure.dpi / n_bars  # of a bar, in inches
        size = min(_LABEL, 72 * 0.8 * height)  # in axes of the user's there may be little room
        ax.set_yticks(range(n_bars), [names[i] for i in order], fontsize=size)
        ax.set_ylim(-0.7, n_bars - 0.3)
        ax.set_xlabel(self.label)
        hide_frame(ax)
        if baseline is not None:
            label = "best shadow (reached by chance)"
            ax.axvline(baseline, color=DARK, linestyle="--", linewidth=1, label=label)
            ax.legend(loc="lower right", frameon=True)

    def _number(self, value: float, precision: int) -> str:
        if self.values_format:
            return self.values_format.format(v=value)
        return short_number(value, precision)


_TITLE, _XLABEL, _YLABEL = "Feature importance", "Importance score", "Features"  # XGBoost's


@draws_like(ImportanceDisplay.from_estimator)
def plot_importance(
    estimator: Any,
    *,
    importance_type: str | None = "weight",
    max_num_features: int | None = None,
    show_values: bool = True,
    values_format: str = "",
    ax: Any = None,
    title: str | None = _TITLE,
    xlabel: str | None = _XLABEL,
    ylabel: str | None = _YLABEL,
    xlim: tuple[float, float] | None = None,
    ylim: tuple[float, float] | None = None,
    grid: bool = True,
    fmap: str = "",
    **bar_style: Any,
) -> Any:
    """Draw importances from splits, or from ``estimator.validation_importances``.

    Names, defaults and texts are as in ``xgboost.plot_importance``: the numbers of splits, unless
    `importance_type` is another one. Bars are thicker, and numbers are rounded.

    Parameters
    ----------
    title, xlabel, ylabel : str, optional
        Texts of the axes. None: there is none, but `xlabel` says what is measured, as it does of
        validation importances unless it is set.
    xlim, ylim : tuple of float, optional
        Limits of the axes.
    grid : bool, default=True
        Whether the axes have a grid.
    fmap : str, default=""
        XGBoost's file of feature names, which is not read: a fit to a frame knows the names.
    """
    if fmap:
        raise ValueError(
            f"fmap={fmap!r}: no file of feature names is read; fit the model to a frame, whose "
            "columns have names"
        )
    for name, limits in (("xlim", xlim), ("ylim", ylim)):
        if limits is not None and np.shape(limits) != (2,):
            raise ValueError(f"{name}={limits!r}: it must be None or a pair of numbers")
    settings: dict[str, Any] = dict(
        max_num_features=max_num_features,
        show_values=show_values,
        values_format=values_format,
        ax=ax,
        **bar_style,
    )
    if not isinstance(estimator, ValidationImportances):
        settings["importance_type"] = importance_type
        axes = ImportanceDisplay.from_estimator(estimator, **settings).ax_
    elif importance_type in (None, "weight"):
        xlabel = None if xlabel == _XLABEL else xlabel
        axes = ImportanceDisplay.from_validation(estimator, **settings).ax_
    else:
        raise ValueError(
            f"importance_type={importance_type!r}: validation importances are of one type, "
            f"{estimator.method!r}; leave importance_type out"
        )
    texts = dict(title=title, xlabel=xlabel, ylabel=ylabel, xlim=xlim, ylim=ylim)
    axes.set(**{name: value for name, value in texts.items() if value is not None})
    if grid:
        axes.set_axisbelow(True)
        axes.grid(True)
    return axes


def _largest(values: np.ndarray, max_num_features: int | None) -> np.ndarray:
    """Places of the largest values, in their order."""
    check_value("max_num_features", max_num_features, optional(integer(1)))
    if max_num_features is None:
        return np.arange(len(values))
    return np.sort(np.argsort(-values, kind="stable")[:max_num_features])
