"""Losses that are a formula for one raw score of one row, which is most of them.

In: two formulas, the loss itself and its derivatives, in plain arithmetic. Out: all that boosting
asks of a loss. What such a loss adds is its formulas, its link and which targets it takes.
"""

from collections.abc import Callable

import numpy as np

from sklboost.engine.compiling import made_kernel
from sklboost.objectives.blocks import derivatives_by_block, gradient_block
from sklboost.objectives.loss import Loss, weighted_mean
from sklboost.objectives.start_values import find_constants


def value_block(formula: Callable, name: str | None) -> Callable:
    """Make a kernel that fills the loss of every row from the formula of one."""

    def fill_values(y, raw_score, parameters, values):
        for output in range(raw_score.shape[0]):
            target, score = y[output % y.shape[0]], raw_score[output]
            for row in range(len(target)):
                values[output, row] = formula(target[row], score[row], parameters[output])

    return made_kernel(fill_values, name)


class RowLoss(Loss):
    """A loss whose outputs each depend on their own raw score only.

    A subclass has `derivatives` and `row_value`, kernels of ``(target, raw_score, parameter)``.
    `derivatives` is an inlined one: only within the loop over rows does it become vector
    instructions, ten times faster for those with two e^x (Tweedie, focal).
    With several targets there is an output, or several of different parameters, for each.

    Parameters
    ----------
    n_targets : int
    parameters : tuple of float
        One for each output of a target.
    """

    parameter = ""  # of the estimator, of which there can be several values: an output for each
    derivatives: Callable
    row_value: Callable
    _fill_values: Callable

    def __init_subclass__(cls) -> None:
        """Make the kernels of a loss that has formulas of its own."""
        name = f"{cls.__module__}.{cls.__qualname__}"
        if "derivatives" in vars(cls):
            cls.block = staticmethod(gradient_block(cls.derivatives, name))
        if "row_value" in vars(cls):
            cls._fill_values = staticmethod(value_block(cls.row_value, name))

    def __init__(self, n_targets: int = 1, parameters: tuple[float, ...] = (0.0,)):
        self.n_outputs = n_targets * len(parameters)
        # output o has target o % n_targets
        self.parameters = np.repeat(np.array(parameters, dtype=np.float64), n_targets)

    def gradients(self, y: np.ndarray, raw_score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Give gradient and hessian of each output."""
        return derivatives_by_block(self.block, self.parameters, y, raw_score)

    def value(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        """Give the mean loss of the known targets, over all outputs."""
        values = np.empty(raw_score.shape)
        self._fill_values(np.atleast_2d(y), raw_score, self.parameters, values)
        is_known = ~np.isnan(values)
        weights = np.broadcast_to(weight if len(weight) else 1.0, values.shape)
        return weighted_mean(values[is_known], weights[is_known])

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Give the constants at which the mean gradients are 0, by Newton's method."""
        return find_constants(self, np.atleast_2d(y), weight)
