"""What a loss is, and the sums that start values need.

A loss knows nothing of trees: it turns targets and raw scores into gradients and hessians.
"""

from typing import Any

import numpy as np

# Losses of several outputs go through the rows in blocks that stay in the first-level cache.
BLOCK_ROWS = 256


class Loss:
    """A loss: one file, or a page of one, says all about it.

    Arrays have a row a target or output and a column a sample: targets `y` of shape (n_targets,
    n_samples), or (n_samples,) for one; raw scores of shape (n_outputs, n_samples). Weights of
    shape (0,) are all 1.

    Attributes
    ----------
    name : str
        The objective, as XGBoost calls it.
    n_outputs : int
        Raw scores per row, so trees per round.
    parameters : ndarray of float64, shape (n_outputs,)
        A number for each output, such as the level of a quantile.
    block : Kernel or None
        Fills gradients and hessians of a range of rows, see :mod:`sklboost.losses.gradients`. None:
        :meth:`gradients` is asked once a round.
    link : str
        What raw scores are: ``"identity"``, predictions; ``"log"``, their logarithms; ``"logit"``,
        log-odds; ``"softmax"``, logarithms of class probabilities but for a constant; ``"other"``.
    largest_step : float
        The most that a leaf weight may be, in absolute value: a limit for losses whose parabola is
        soon far from the loss itself. Infinite: none.
    hessian_is_bound : bool
        Whether what is given for the hessian is not the second derivative but at least as much,
        because that is 0 or less in places or falls so fast that Newton's steps would have no end.
    renewal : ndarray of float64, shape (n_outputs,) or (0,)
        Where the hessian says nothing, leaf weights are renewed after the tree is grown: the
        quantile of this level of ``y - raw score`` in each leaf, rows weighted with hessians.
        Empty: they are not.
    """

    name = ""
    n_outputs = 1
    parameters = np.zeros(1)
    block: Any = None
    link = "identity"
    largest_step = np.inf
    hessian_is_bound = False
    renewal = np.empty(0)

    def gradients(self, y: np.ndarray, raw_score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Give gradient and hessian, shape (n_outputs, n_samples), of rows of weight 1."""
        raise NotImplementedError(f"{type(self).__name__} needs a method gradients(y, raw_score)")

    def value(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        """Give the mean loss."""
        raise NotImplementedError(
            f"{type(self).__name__} needs a method value(y, raw_score, weight)"
        )

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Give the constant raw scores of least loss, shape (n_outputs,); 0 if not known."""
        return np.zeros(self.n_outputs)

    def unit(self, y: np.ndarray, weight: np.ndarray) -> float:
        """Give the hessian of a typical row, where it depends on the unit of the targets; else 1.

        Whatever is compared with sums of hessians or derived from them (`reg_lambda`, `reg_alpha`,
        `gamma`, `min_child_weight`) is counted in it, as if the loss were divided by it.
        """
        return 1.0

    def raw_of(self, prediction: float) -> np.ndarray:
        """Give the raw scores, shape (n_outputs,), that stand for this prediction.

        Raises
        ------
        ValueError
            If the loss has no such prediction.
        """
        return np.full(self.n_outputs, prediction)

    def predictions(self, raw_score: np.ndarray) -> np.ndarray:
        """Give predictions, shape (n_samples,) or (n_samples, n_outputs)."""
        return by_rows(raw_score)

    def explain_fault(self, fault: int) -> None:
        """Raise ValueError for what a block said that was not as it should be."""
        raise ValueError(f"the derivatives of {self.name} are no numbers in row {fault}")

    def check_targets(self, y: np.ndarray, name: str) -> None:
        """Raise ValueError for the first target that the loss is not defined for.

        Parameters
        ----------
        y : ndarray of float64, shape (n_samples,) or (n_samples, n_targets)
            NaN among several targets is one that is not known.
        name : str
            Of the argument, for the error.
        """


class ClassLoss(Loss):
    """A loss of class probabilities."""

    def probabilities(self, raw_score: np.ndarray) -> np.ndarray:
        """Give the probabilities of the classes, shape (n_samples, n_classes)."""
        raise NotImplementedError(f"{type(self).__name__} needs a method probabilities(raw_score)")


def by_rows(raw_score: np.ndarray) -> np.ndarray:
    """Give a copy of the raw scores in the shape that users know."""
    return raw_score[0].copy() if len(raw_score) == 1 else raw_score.T.copy()


def exact_sum(values: np.ndarray) -> float:
    """Add float64 values so that their order does not matter, as whole numbers of a fine step.

    The step is 2^-61 of a bound on the sum, the largest value times their number: a value as large
    as the largest keeps 52 bits of 500 values and 41 bits of a million.
    """
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    _, exponent = np.frexp(largest * len(values))
    shift = 61 - int(exponent)
    return float(np.ldexp(float(np.rint(np.ldexp(values, shift)).astype(np.int64).sum()), -shift))


def weighted_mean(values: np.ndarray, weight: np.ndarray) -> float:
    """Give the mean, the same for every order of the rows; no weights: all 1."""
    if len(weight) == 0:
        return exact_sum(values) / len(values)
    return exact_sum(values * weight) / exact_sum(weight)
