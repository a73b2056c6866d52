"""Expectiles: least squares in which errors to one side cost more.

Loss of level a: ``a (y - p)^2`` where y > p, else ``(1 - a) (y - p)^2``. Level 1/2 is the squared
error. An expectile is to the mean what a quantile is to the median: it answers how high a value is
of which the expected excess and the expected shortfall are as ``1 - a`` to a. Source: Newey &
Powell (1987), "Asymmetric least squares estimation and testing".

Several levels in one model have an output each; a row's predictions are put in order, as those of
quantiles: this loss, too, can only become smaller by it.
"""

from sklboost.engine.compiling import inlined
from sklboost.objectives.losses.quantiles import OrderedAlphas


class ExpectileError(OrderedAlphas):
    """The loss of expectiles; one output for each level, from the lowest to the highest."""

    name = "reg:expectileerror"
    parameter = "expectile_alpha"

    @staticmethod
    @inlined
    def derivatives(y, p, alpha):
        """Give twice the residual times ``a`` below the target, ``1 - a`` above it, and these."""
        hessian = 2.0 * (alpha if y > p else 1.0 - alpha)
        return hessian * (p - y), hessian

    @staticmethod
    @inlined
    def row_value(y, p, alpha):
        """Give the weighted square of the distance."""
        return (alpha if y > p else 1.0 - alpha) * (y - p) ** 2
