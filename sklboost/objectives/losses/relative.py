"""Losses of relative errors: the squared log error and the absolute percentage error."""

import numpy as np

from sklboost.engine.compiling import inlined
from sklboost.engine.elementary import log_of_one_plus
from sklboost.objectives.domains import ABOVE_MINUS_1, check_base_score, refuse_first
from sklboost.objectives.loss import RowLoss, by_rows
from sklboost.objectives.start_values import known_means, mean_over_targets, weighted_quantile

_LARGEST = 700.0  # of raw scores: beyond, e^z leaves the range of numbers
# As scikit-learn: stands for a target of 0, which only the metric has.
_LEAST_SIZE = float(np.finfo(np.float64).eps)


class SquaredLogError(RowLoss):
    """Half the squared error of logarithms, ``(log(1 + p) - log(1 + y))^2 / 2``: errors as factors.

    In ``z = log(1 + p)`` it is the squared error of ``log(1 + y)``: gradient ``z - log(1 + y)``,
    hessian 1, best constant the mean. XGBoost has the prediction itself for its raw score, in which
    the loss is not convex, so that it has to replace negative second derivatives by some number.
    """

    name = "reg:squaredlogerror"
    hessian_is_one = True
    link = "other"
    targets = ABOVE_MINUS_1

    @staticmethod
    @inlined
    def derivatives(y, z, parameter):
        """Return ``z - log(1 + y)`` and 1."""
        return z - log_of_one_plus(y), 1.0

    @staticmethod
    @inlined
    def row_value(y, z, parameter):
        """Return ``(z - log(1 + y))^2 / 2``."""
        return 0.5 * (z - log_of_one_plus(y)) ** 2

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the means of ``log(1 + y)``."""
        return known_means(np.log1p(y), weight)

    def raw_of(self, prediction: float) -> np.ndarray:
        """Return ``log(1 + p)``."""
        check_base_score(prediction, self.name, ABOVE_MINUS_1)
        return np.full(self.n_outputs, np.log1p(prediction))

    @np.errstate(all="ignore")
    def predictions(self, raw_score: np.ndarray) -> np.ndarray:
        """Return ``e^z - 1``, shape (n_samples,) or (n_samples, n_outputs)."""
        return by_rows(np.expm1(np.minimum(raw_score, _LARGEST)))


class AbsolutePercentageError(RowLoss):
    """The absolute error over the size of the target, ``|y - p| / |y|``.

    It is the absolute error of rows that weigh ``u = 1 / |y|``, so the best constant and the best
    leaf are weighted medians: gradient ``u sign(p - y)``; u stands for the hessian while a tree is
    grown, and leaves are renewed. Small targets weigh most. LightGBM divides by ``max(1, |y|)``
    instead, which is another loss for targets below 1; here a target of 0, for which there is no
    percentage, is an error.
    """

    name = "reg:mape"
    hessian_is_bound = True

    def __init__(self, n_targets: int = 1):
        super().__init__(n_targets)
        self.renewal = np.full(self.n_outputs, 0.5)

    @staticmethod
    @inlined
    def derivatives(y, p, parameter):
        """Return the sign of ``p - y`` over ``|y|``; ``1 / |y|`` for the hessian."""
        share = 1.0 / abs(y)
        return share * ((1.0 if p > y else 0.0) - (1.0 if p < y else 0.0)), share

    @staticmethod
    @inlined
    def row_value(y, p, parameter):
        """Return ``|y - p| / |y|``, with 2e-16 in the place of y = 0."""
        return abs(y - p) / max(abs(y), _LEAST_SIZE)

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the medians of the targets, weighted with ``1 / |y|``."""
        targets = np.atleast_2d(y)
        shares = (weight if len(weight) else 1.0) / np.abs(targets)
        pairs = zip(targets, shares, strict=True)
        return np.array([weighted_quantile(target, share, 0.5) for target, share in pairs])

    def unit(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        """Return the mean of ``1 / |y|``."""
        return mean_over_targets(1.0 / np.abs(np.atleast_2d(y)), y, weight)

    def check_targets(self, y: np.ndarray, name: str) -> None:
        """Raise ValueError for a target of 0."""
        why = (
            f"objective={self.name!r} divides by the targets; leave such rows out, or choose "
            "'reg:absoluteerror' with a sample_weight of 1 / |y|, bounded"
        )
        refuse_first(y == 0.0, y, name, why)
