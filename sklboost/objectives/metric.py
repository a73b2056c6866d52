"""What a metric is: targets and predictions become one number. It knows nothing of trees.

Most metrics are means of a loss of a row: these have one formula, for the predictions that users
see and for the raw scores of every round alike.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from sklboost.objectives.blocks import Formula
from sklboost.objectives.domains import Domain, check_metric_domain, no_rows
from sklboost.objectives.links import IDENTITY, PREDICTIONS, PROBABILITY, change_of_scale
from sklboost.objectives.loss import Loss, lacking
from sklboost.objectives.means import MeanLoss, mean_of_rows

# function(y, prediction, weight) -> value, see Metric.
Function = Callable[[np.ndarray, np.ndarray, np.ndarray], float]


class Metric(NamedTuple):
    """A metric of predictions."""

    name: str
    greater_is_better: bool
    # ``function(y, prediction, weight) -> float``. `y` is float64, shape (n_samples,) or
    # (n_samples, n_targets): targets, NaN where not known, or numbers of classes. `prediction` is
    # float64: shape (n_samples,) or (n_samples, n_outputs) for regression and several labels,
    # (n_samples,) with the probability of class 1 for two classes, (n_samples, n_classes) for more.
    # `weight` is float64, shape (n_samples,) or (0,): all 1. It only reads them, and raises a
    # ValueError for what is outside its domain.
    function: Function
    # what it is the mean of, if it is one; of the predictions that users see
    mean_loss: MeanLoss | None = None

    def check_targets(self, y: np.ndarray) -> None:
        """Raise ValueError for the first target that the metric is not defined for."""
        if self.mean_loss is not None:
            domain = self.mean_loss.formula.targets
            check_metric_domain(self.name, "target", y, domain, "leave these rows out")

    def mean_loss_of(self, link: str) -> MeanLoss | None:
        """Return the mean that the metric is of raw scores with this link, if it is one."""
        if self.mean_loss is None or link not in PREDICTIONS:
            return None
        change = change_of_scale(link, self.mean_loss.formula.reads)
        return None if change is None else self.mean_loss._replace(scale=link)


class RoundMetric(NamedTuple):
    """A metric as the rounds of boosting use it: of raw scores.

    Where there is a mean of losses, :mod:`sklboost.objectives.means` computes the same value inside
    the team's own kernel. `value` need then only be called where that is NaN: it raises the error.
    """

    name: str
    greater_is_better: bool
    mean_loss: MeanLoss | None  # of raw scores
    # ``value(y, raw_score, weight) -> float``, with `y` and `weight` as in :class:`Metric` and
    # `raw_score` float64 of shape (n_outputs, n_samples). It only reads them.
    value: Function


def mean_metric(name: str, mean_loss: MeanLoss) -> Metric:
    """Make a metric of the mean of a loss of predictions: the smaller the better."""
    change = change_of_scale(mean_loss.scale, mean_loss.formula.reads)
    assert change is not None  # of all metrics of the registry

    def function(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
        metric.check_targets(y)
        check_metric_domain(name, "prediction", prediction, change.domain, change.remedy)
        return mean_of_rows(mean_loss, as_rows(y), as_rows(prediction), weight)

    metric = Metric(name, False, function, mean_loss)
    return metric


def as_rows(columns: np.ndarray) -> np.ndarray:
    """Return targets or predictions as a new array, an output a row, as kernels want them."""
    return np.array(np.atleast_2d(columns.T), dtype=np.float64, order="C")


class Parameter(NamedTuple):
    """A parameter of a metric: ``name@value``, or the training loss's, or a default."""

    symbol: str  # what it is called in ``name@symbol``
    key: str  # the estimators' parameter that is its default; empty: a value must be given
    default: float | None  # where the training loss has none; None: then a value must be given
    domain: Domain  # its words say what the parameter is

    def read(self, name: str, text: str) -> tuple[float, ...]:
        """Return the value behind the @ of a metric's name; ValueError if it is out of range."""
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not self.domain.has(value):
            example = f"{name.partition('@')[0]}@{self._example}"
            raise ValueError(
                f"eval_metric={name!r}: after the @ there must be {self.domain.words}, such as "
                f"{example}"
            )
        return (value,)

    def choose(self, name: str, parameters: Mapping[str, Any]) -> tuple[float, ...]:
        """Return the training loss's value, or values, one an output; else the default.

        ValueError if there is neither, or the loss's is out of range.
        """
        values = np.atleast_1d(parameters.get(self.key, self.default))
        if values[0] is None:
            raise ValueError(
                f"eval_metric={name!r} needs {self.domain.words}, and the loss has none: give "
                f"{name}@{self._example}"
            )
        for value in values:
            if not self.domain.has(value):
                raise ValueError(
                    f"eval_metric={name!r} cannot be taken with {self.key}={value:g}: it needs "
                    f"{self.domain.words}; give {name}@{self._example}"
                )
        return tuple(values.astype(float).tolist())

    @property
    def _example(self) -> str:
        """A value that is possible."""
        if self.default is not None:
            return f"{self.default:g}"
        return "0.3" if self.domain.has_ends else "0.9"


class LossOfRows(NamedTuple):
    """The value of a loss that is none of single rows; its raw scores are what is predicted."""

    # ``make(1, parameters) -> Loss``, as of an Objective
    make: Callable[[int, Mapping[str, Any]], Loss]

    def function(self, name: str, parameters: Mapping[str, Any]) -> Function:
        """Return the function of a Metric, which refuses rows that the loss is not defined for."""
        loss = self.make(1, parameters)

        def value(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
            loss.check_targets(y, "y of a metric")
            found = loss.value(as_rows(y), as_rows(prediction), weight)
            if math.isnan(found) and (need := lacking(loss, y)):
                raise no_rows(name, f"{'an' if need[0] in 'aeiou' else 'a'} {need}")
            return found

        return value


class MetricEntry(NamedTuple):
    """A metric that can be named, or a family of metrics with a parameter."""

    name: str  # XGBoost's, without parameter
    # the loss whose mean it is, or that it is: the smaller the better. Or, of what is no loss, the
    # function, as in :class:`Metric`: the greater the better.
    of: Formula | LossOfRows | Function
    # other libraries' names of it. A metric is called by the name it was asked for.
    aliases: tuple[str, ...] = ()
    objective: str = ""  # the objective of this loss, if there is one
    factor: float = 1.0  # that the mean is multiplied by
    is_root: bool = False  # whether the metric is the root of that
    parameter: Parameter | None = None  # which the formula has; ``name@value`` gives a value
    # A parameter that the training loss must have: the raw scores of others mean something else
    needs: str = ""

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
        return not isinstance(self.of, Formula | LossOfRows)

    def has_name(self, name: str) -> bool:
        """Whether it can be asked for by this name."""
        family, at, _ = name.partition("@")
        is_possible = self.parameter is not None if at else not self.needs_value
        return is_possible and family in (self.name, *self.aliases)

    def default_name(self, parameters: Mapping[str, Any]) -> str:
        """Return the name of the metric that nobody asked for; `parameters` as in `metric`."""
        return self.name

    def metric(self, name: str, task: str, parameters: Mapping[str, Any]) -> Metric:
        """Make the metric of this name; `parameters` are those of the objective."""
        if self.needs and parameters and self.needs not in parameters:
            raise ValueError(
                f"eval_metric={name!r} is for the raw scores of {self.objective!r}: choose this "
                "objective, or another eval_metric"
            )
        if isinstance(self.of, LossOfRows):
            return Metric(name, False, self.of.function(name, parameters))
        if not isinstance(self.of, Formula):
            return Metric(name, True, self.of)
        _, at, text = name.partition("@")
        values: tuple[float, ...] = (0.0,)
        if self.parameter is not None:
            read, choose = self.parameter.read, self.parameter.choose
            values = read(name, text) if at else choose(name, parameters)
        scale = IDENTITY if task == "regression" else PROBABILITY
        return mean_metric(name, MeanLoss(self.of, values, scale, self.factor, self.is_root))
