"""What a loss is, and the sums that start values need.

A loss knows nothing of trees: it turns targets and raw scores into gradients and hessians.
"""

from typing import Any

import numpy as np

from sklboost.engine.compiling import is_compiled_by_user
from sklboost.objectives.blocks import users_block
from sklboost.objectives.links import predictions_of, raw_score_of

# Values that are added up at a time: what is computed on the way stays small beside many rows.
_SUMMED_AT_ONCE = 2**16


class Loss:
    """A loss: what its gradients are, and what its raw scores mean.

    To write one, inherit from this class, override what differs, and give an instance as
    ``objective``: at least :meth:`gradients`, or `row_derivatives`. Arrays have a row a target or
    output and a column a sample: targets `y` of shape (n_targets, n_samples), in which NaN is one
    that is not known; for a classifier, the positions of the labels in ``classes_``. Raw scores
    have shape (n_outputs, n_samples). Weights of shape (0,) are all 1.

    Attributes
    ----------
    name : str
        The objective, as XGBoost calls it; of a class without one, the name of the class.
    n_outputs : int
        Raw scores per row, so trees per round. For two classes 1, for more one each.
    row_derivatives : function compiled with numba, or None
        ``row_derivatives(y_true, y_pred) -> (gradient, hessian)`` of the numbers of one row and
        output. Training then runs in compiled code only, many rounds a call.
    takes_weight : bool
        Whether :meth:`gradients` has a third parameter, the weights, and multiplies by them.
    parameters : ndarray of float64, shape (n_outputs,)
        A number for each output, such as the level of a quantile.
    block : Kernel or None
        Fills gradients and hessians of a range of rows, see
        ``sklboost/objectives/gradients.py``; made from `row_derivatives`. None:
        :meth:`gradients` is asked once a round.
    link : str
        What raw scores are: ``"identity"``, predictions; ``"log"``, their logarithms; ``"logit"``,
        log-odds; ``"softmax"``, logarithms of class probabilities but for a constant; ``"other"``:
        :meth:`predictions` and :meth:`raw_of` say.
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

    See Also
    --------
    check_loss : Compares the derivatives with finite differences.

    Examples
    --------
    Half the squared error of logarithms; predictions are always positive:

    >>> import numpy as np
    >>> from sklboost import Loss, XGBRegressorLite, check_loss
    >>> class SquaredErrorOfLogarithms(Loss):
    ...     link = "log"
    ...
    ...     def gradients(self, y, raw_score):
    ...         return raw_score - np.log(y), np.ones_like(raw_score)
    ...
    ...     def value(self, y, raw_score, weight):
    ...         return np.mean((raw_score - np.log(y)) ** 2) / 2
    >>> check_loss(SquaredErrorOfLogarithms(), y=[1.0, 10.0, 100.0])
    >>> model = XGBRegressorLite(objective=SquaredErrorOfLogarithms(), min_child_weight=0)
    >>> model.fit([[0], [1], [2]], [1.0, 10.0, 100.0]).predict([[2]]).round()
    array([100.])
    """

    name = ""
    n_outputs = 1
    row_derivatives: Any = None
    takes_weight = False
    parameters = np.zeros(1)
    block: Any = None
    link = "identity"
    largest_step = np.inf
    hessian_is_bound = False
    renewal = np.empty(0)

    def __init_subclass__(cls) -> None:
        """Name a class that has no name, and make the block of a compiled function of rows."""
        if "name" not in vars(cls):
            cls.name = cls.__name__
        if "row_derivatives" in vars(cls):
            function = getattr(vars(cls)["row_derivatives"], "__func__", cls.row_derivatives)
            if not is_compiled_by_user(function):
                raise TypeError(
                    f"{cls.__name__}.row_derivatives={function!r}: compile it with numba.njit, or "
                    "write a method gradients(y, raw_score)"
                )
            # without self, whether it was written as a static method or not
            cls.row_derivatives = staticmethod(function)
            cls.block = staticmethod(users_block(function))

    def gradients(self, y: np.ndarray, raw_score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Give gradient and hessian of rows of weight 1.

        Parameters
        ----------
        y : ndarray of float64, shape (n_targets, n_samples)
        raw_score : ndarray of float64, shape (n_outputs, n_samples)

        Returns
        -------
        tuple of ndarray, each of shape (n_outputs, n_samples)
        """
        if self.row_derivatives is None:
            raise NotImplementedError(
                f"{type(self).__name__} needs a method gradients(y, raw_score)"
            )
        both = np.empty((2, *raw_score.shape))
        for output, scores in enumerate(raw_score):
            for row, score in enumerate(scores):
                target = y[output % len(y), row]
                both[:, output, row] = self.row_derivatives(float(target), float(score))
        return both[0], both[1]

    def value(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        """Give the mean loss, which is shown where there is nothing else to show.

        Parameters
        ----------
        y : ndarray of float64, shape (n_targets, n_samples)
        raw_score : ndarray of float64, shape (n_outputs, n_samples)
        weight : ndarray of float64, shape (n_samples,) or (0,)

        Returns
        -------
        float
        """
        raise NotImplementedError(
            f"{self.name} has no value: write a method value(y, raw_score, weight)"
        )

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Give the constant raw scores of least loss; 0 if not known.

        Parameters
        ----------
        y : ndarray of float64, shape (n_targets, n_samples)
        weight : ndarray of float64, shape (n_samples,) or (0,)

        Returns
        -------
        ndarray of float64, shape (n_outputs,)
        """
        return np.zeros(self.n_outputs)

    def unit(self, y: np.ndarray, weight: np.ndarray) -> float:
        """Give the hessian of a typical row, where it depends on the unit of the targets; else 1.

        Whatever is compared with sums of hessians or derived from them (`reg_lambda`, `reg_alpha`,
        `gamma`, `min_child_weight`) is counted in it, as if the loss were divided by it.

        Parameters
        ----------
        y : ndarray of float64, shape (n_targets, n_samples)
        weight : ndarray of float64, shape (n_samples,) or (0,)

        Returns
        -------
        float
        """
        return 1.0

    def raw_of(self, prediction: float) -> np.ndarray:
        """Give the raw scores that stand for a prediction, as `base_score` is.

        Parameters
        ----------
        prediction : float

        Returns
        -------
        ndarray of float64, shape (n_outputs,)

        Raises
        ------
        ValueError
            If the loss has no such prediction.
        """
        return np.full(self.n_outputs, raw_score_of(self.link, prediction, self.name))

    def predictions(self, raw_score: np.ndarray) -> np.ndarray:
        """Give the predictions that raw scores stand for.

        Parameters
        ----------
        raw_score : ndarray of float64, shape (n_outputs, n_samples)

        Returns
        -------
        ndarray of float64, shape (n_samples,) or (n_samples, n_outputs)
        """
        return by_rows(predictions_of(self.link, raw_score))

    def probabilities(self, raw_score: np.ndarray) -> np.ndarray:
        """Give the probabilities of the classes, by the link ``"logit"`` or ``"softmax"``.

        Parameters
        ----------
        raw_score : ndarray of float64, shape (n_outputs, n_samples)

        Returns
        -------
        ndarray of float64, shape (n_samples, n_classes)
        """
        if self.link == "logit":
            raw_score = np.concatenate([-raw_score[:1], raw_score[:1]])
        return by_rows(predictions_of(self.link, raw_score))

    def check_targets(self, y: np.ndarray, name: str) -> None:
        """Raise ValueError for the first target that the loss is not defined for.

        Parameters
        ----------
        y : ndarray of float64, shape (n_samples,) or (n_samples, n_targets)
            NaN among several targets is one that is not known.
        name : str
            Of the argument, for the error.
        """


def by_rows(raw_score: np.ndarray) -> np.ndarray:
    """Give a copy of the raw scores in the shape that users know."""
    return raw_score[0].copy() if len(raw_score) == 1 else raw_score.T.copy()


def exact_sum(values: np.ndarray) -> float:
    """Add float64 values so that their order does not matter, as whole numbers of a fine step.

    The step is 2^-61 of a bound on the sum, the largest value times their number: a value as large
    as the largest keeps 52 bits of 500 values and 41 bits of a million.
    """
    if len(values) == 0:
        return 0.0
    largest = max(float(values.max()), -float(values.min()))
    if largest == 0.0:
        return 0.0
    _, exponent = np.frexp(largest * len(values))
    shift, total = 61 - int(exponent), 0
    for first in range(0, len(values), _SUMMED_AT_ONCE):
        some = np.ldexp(values[first : first + _SUMMED_AT_ONCE], shift)
        total += int(np.rint(some).astype(np.int64).sum())
    return float(np.ldexp(float(total), -shift))


def weighted_mean(values: np.ndarray, weight: np.ndarray) -> float:
    """Give the mean, the same for every order of the rows; no weights: all 1."""
    if len(weight) == 0:
        return exact_sum(values) / len(values)
    return exact_sum(values * weight) / exact_sum(weight)
