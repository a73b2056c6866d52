"""The metric of validation data, round by round."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from sklboost.displays.figures import (
    GREY,
    SERIES,
    Display,
    function_of,
    hide_frame,
    literal,
    short_number,
)
from sklboost.estimators.predict.fitted_model import fitted_model


@dataclass(eq=False, repr=False)
class LearningCurveDisplay(Display):
    """A metric after each round of boosting, for each validation set.

    Not to be confused with scikit-learn's class of the same name, which draws a score against the
    number of training rows. It is made by :meth:`from_estimator`.

    Parameters
    ----------
    curves : dict of str to sequence of float
        By the name of the set.
    metric : str
    best_iteration : int, optional
        The round that is marked.
    first_round : int
        The round of the first value.

    Attributes
    ----------
    lines_ : list of matplotlib.lines.Line2D
        One for each set.
    best_ : matplotlib.lines.Line2D or None
        The mark of the best round.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklboost import XGBRegressorLite
    >>> from sklboost.displays import LearningCurveDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = XGBRegressorLite(n_estimators=100, max_depth=3, early_stopping_rounds=5)
    >>> model = model.fit(X[:300], y[:300], eval_set=[(X[:300], y[:300]), (X[300:], y[300:])])
    >>> names = ["training", "validation"]
    >>> display = LearningCurveDisplay.from_estimator(model, names=names)
    >>> len(display.lines_), display.best_iteration == model.best_iteration_
    (2, True)
    """

    curves: Mapping[str, Sequence[float]]
    metric: str
    best_iteration: int | None = None
    first_round: int = 0

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        metric: str | None = None,
        names: Sequence[str] | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw the validation results of a fitted estimator, round by round.

        Parameters
        ----------
        estimator : XGBRegressorLite or XGBClassifierLite
            Fitted with validation data. With ``eval_set=[(X, y), (X_val, y_val)]`` the training
            has a curve, too.
        metric : str, optional
            Which of `eval_metric`. None: the last, which early stopping watches.
        names : sequence of str, optional
            Of the sets, in their order. None: "validation_0" and so on.

        Raises
        ------
        ValueError
            If there was no validation data, if there is no such metric, or not as many names as
            sets; the text says what there is.
        """
        state = fitted_model(estimator).state
        results = state["evals_result_"]
        if not results:
            raise ValueError(
                "the estimator was fitted without validation data, so it has no learning curve: "
                "pass eval_set=[(X, y), (X_val, y_val)] to fit, or set early_stopping_rounds"
            )
        known = list(next(iter(results.values())))
        metric = known[-1] if metric is None else metric
        if metric not in known:
            raise ValueError(f"metric={metric!r}: the estimator has {', '.join(map(repr, known))}")
        names = list(results) if names is None else list(names)
        if len(names) != len(results):
            raise ValueError(
                f"names={names!r}: there are {len(results)} sets of rows, {', '.join(results)}: "
                "give a name to each"
            )
        values = [of_metric[metric] for of_metric in results.values()]
        best = state.get("best_iteration_") if metric == known[-1] else None
        curves = dict(zip(names, values, strict=True))
        return cls(curves, metric, best, state["_first_round"]).plot(ax)

    def _draw(self, ax: Any) -> None:
        self.lines_: list[Any] = []
        self.best_: Any = None
        for place, (name, values) in enumerate(self.curves.items()):
            rounds = self.first_round + np.arange(len(values))
            style = dict(color=SERIES[place % len(SERIES)], linewidth=1.8)
            if len(values) == 1:
                style |= dict(marker=".")  # a line of one point is not seen
            self.lines_ += ax.plot(rounds, values, label=literal(name), **style)
        if self.best_iteration is not None:
            best = self.best_iteration
            value = list(self.curves.values())[-1][best - self.first_round]
            ax.axvline(best, color=GREY, linestyle="--", linewidth=1, zorder=0)
            label = f"best: round {best}, {short_number(value, 4)}"
            style = dict(color=self.lines_[-1].get_color(), markeredgecolor="black")
            (self.best_,) = ax.plot([best], [value], "o", label=label, **style)
        ax.set_xlabel("boosting round")
        ax.set_ylabel(literal(self.metric))
        ax.xaxis.get_major_locator().set_params(integer=True)
        hide_frame(ax)
        ax.grid(alpha=0.25)
        ax.legend(frameon=True)


plot_learning_curve = function_of("plot_learning_curve", LearningCurveDisplay.from_estimator)
