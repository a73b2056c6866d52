"""All metrics, by XGBoost's names.

To add one that is a mean of a loss of a row: a formula, see
:mod:`sklboost.objectives.metrics.formulas`, and a line in :data:`METRICS`. Any other: a function
``(y, prediction, weight) -> float`` and a line.
"""

from typing import NamedTuple

from sklboost.objectives.means import MeanLoss
from sklboost.objectives.metric import Function, Metric, mean_metric
from sklboost.objectives.metrics import formulas, ranking
from sklboost.objectives.metrics.formulas import Formula
from sklboost.objectives.metrics.parameters import (
    EXPECTILE_ALPHA,
    FAIR_C,
    HUBER_DELTA,
    HUBER_SLOPE,
    QUANTILE_ALPHA,
    THRESHOLD,
    VARIANCE_POWER,
    VARIANCE_POWER_BETWEEN,
    Parameter,
)
from sklboost.objectives.metrics.r2 import r2
from sklboost.objectives.metrics.scales import MEAN, PROBABILITY

# The scale of the predictions that users see.
SCALES = {
    "regression": MEAN,
    "binary": PROBABILITY,
    "multiclass": PROBABILITY,
    "multilabel": PROBABILITY,
}

TASK_WORDS = {
    "regression": "regression",
    "binary": "two classes",
    "multiclass": "more than two classes",
    "multilabel": "several labels",
}


class Entry(NamedTuple):
    """A metric, or a family of metrics with a parameter.

    Attributes
    ----------
    name : str
        XGBoost's, without parameter.
    of : Formula or callable
        The loss whose mean it is: the smaller the better. Or of what is no mean the function, as in
        :class:`~sklboost.objectives.metric.Metric`: the greater the better.
    is_root : bool
        Whether it is the root of the mean.
    parameter : Parameter or None
        Which the formula has; ``name@value`` gives a value.
    """

    name: str
    of: Formula | Function
    is_root: bool = False
    parameter: Parameter | None = None

    @property
    def needs_value(self) -> bool:
        """Whether there is no metric without a value behind the name."""
        return self.parameter is not None and not self.parameter.key

    @property
    def title(self) -> str:
        """The name, with the parameter if it needs a value."""
        if self.parameter is None or not self.needs_value:
            return self.name
        return f"{self.name}@{self.parameter.symbol}"

    @property
    def greater_is_better(self) -> bool:
        """The direction."""
        return not isinstance(self.of, Formula)

    def metric(self, name: str, task: str, parameters: tuple[float, ...]) -> Metric:
        """Make the metric of this name; `parameters` as in ``MeanLoss``."""
        if not isinstance(self.of, Formula):
            return Metric(name, True, self.of)
        return mean_metric(name, MeanLoss(self.of, self.is_root, parameters, SCALES[task]))


_ERROR = Entry("error", formulas.WRONG_SIDE)
_ERROR_AT = Entry("error", formulas.WRONG_SIDE_OF_PROBABILITY, parameter=THRESHOLD)
_BINARY = (
    Entry("logloss", formulas.LOG_LOSS),
    _ERROR,
    _ERROR_AT,
    Entry("auc", ranking.auc),
    Entry("aucpr", ranking.aucpr),
    Entry("brier", formulas.SQUARED_PROBABILITY_ERROR),
    Entry("kullback_leibler", formulas.DIVERGENCE),
)
# The first of each task is its default.
METRICS: dict[str, tuple[Entry, ...]] = {
    "regression": (
        Entry("rmse", formulas.SQUARED_ERROR, is_root=True),
        Entry("mse", formulas.SQUARED_ERROR),
        Entry("rmsle", formulas.SQUARED_LOG_ERROR, is_root=True),
        Entry("mae", formulas.ABSOLUTE_ERROR),
        Entry("mape", formulas.PERCENTAGE_ERROR),
        Entry("mphe", formulas.PSEUDO_HUBER_ERROR, parameter=HUBER_SLOPE),
        Entry("huber", formulas.HUBER_ERROR, parameter=HUBER_DELTA),
        Entry("fair", formulas.FAIR_ERROR, parameter=FAIR_C),
        Entry("logcosh", formulas.LOG_COSH_ERROR),
        Entry("quantile", formulas.PINBALL_ERROR, parameter=QUANTILE_ALPHA),
        Entry("expectile", formulas.EXPECTILE_ERROR, parameter=EXPECTILE_ALPHA),
        Entry("poisson-nloglik", formulas.POISSON),
        Entry("poisson-deviance", formulas.POISSON_DEVIANCE),
        Entry("gamma-nloglik", formulas.GAMMA),
        Entry("gamma-deviance", formulas.GAMMA_DEVIANCE),
        Entry("tweedie-nloglik", formulas.TWEEDIE, parameter=VARIANCE_POWER),
        Entry("tweedie-deviance", formulas.TWEEDIE_DEVIANCE, parameter=VARIANCE_POWER_BETWEEN),
        # of targets that are probabilities
        Entry("logloss", formulas.LOG_LOSS),
        Entry("kullback_leibler", formulas.DIVERGENCE),
        Entry("r2", r2),
    ),
    "binary": _BINARY,
    "multiclass": (
        Entry("mlogloss", formulas.SOFTMAX),
        Entry("merror", formulas.CLASS_ERROR),
        Entry("auc", ranking.multiclass_auc),
        Entry("auc_mu", ranking.auc_mu),
        Entry("brier", formulas.SQUARED_CLASS_ERROR),
    ),
    "multilabel": _BINARY,
}
