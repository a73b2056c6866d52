"""Whether derivatives are what they are said to be: comparison with finite differences.

In: a loss, targets, raw scores, and the loss of each row as a function of them. Out: nothing, or an
error that names the row that is off most.
"""

from collections.abc import Callable

import numpy as np

from sklboost.objectives.derivative_checks import ask_derivatives
from sklboost.objectives.loss import Loss
from sklboost.objectives.losses.rows import RowLoss

# Of a raw score, or of 1: with central differences the error of the formula, a square of it, and
# that of rounding, a part of 1e-16 by it, are then about the same.
_STEP = 1e-5
_ROUNDING = 1e-15
_NO_WEIGHT = np.empty(0)

# From raw scores, shape (n_outputs, n_samples), to a number for each output and row, or each row.
_OfScores = Callable[[np.ndarray], np.ndarray]


def compare_derivatives(
    loss: Loss, y: np.ndarray, raw_score: np.ndarray, values: _OfScores | None, tolerance: float
) -> None:
    """Compare gradient and hessian with central differences, in float64.

    Parameters
    ----------
    loss : Loss
    y : ndarray of float64, shape (n_targets, n_samples)
    raw_score : ndarray of float64, shape (n_outputs, n_samples)
    values : callable or None
        Gives the loss of each row for such raw scores. None: only the hessian is compared.
    tolerance : float
        In parts of the derivative, or of the root of their mean square if that is larger.

    Raises
    ------
    AssertionError
        If a derivative is off.
    """

    def derivatives(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        both = np.empty_like(scores), np.empty_like(scores)
        ask_derivatives(loss, y, scores, _NO_WEIGHT, both)
        return both

    gradient, hessian = derivatives(raw_score)
    if values is not None:
        numeric, error = _differences(values, raw_score)
        off = _excess(gradient - numeric, gradient, numeric, tolerance, error)
        _report(loss, "gradient", (y, raw_score), (gradient, numeric, off))
    numeric, error = _differences(lambda scores: derivatives(scores)[0], raw_score)
    difference = hessian - numeric
    if loss.hessian_is_bound:
        difference = np.minimum(difference, 0.0)
    off = _excess(difference, hessian, numeric, tolerance, error)
    _report(loss, "hessian", (y, raw_score), (hessian, numeric, off))


def values_by_rows(loss: Loss, y: np.ndarray) -> _OfScores | None:
    """Give the function that computes the loss of each row, None for a loss without value."""
    if type(loss).value is Loss.value:
        return None
    n_summed = np.ones(y.shape[1])
    if isinstance(loss, RowLoss):  # these give the mean over all outputs with a known target
        n_summed = np.count_nonzero(~np.isnan(y), axis=0) * (loss.n_outputs / len(y))

    def values(raw_score: np.ndarray) -> np.ndarray:
        rows = [slice(row, row + 1) for row in range(y.shape[1])]
        means = [loss.value(y[:, row], raw_score[:, row], _NO_WEIGHT) for row in rows]
        return n_summed * np.array(means)

    return values


def _differences(function: _OfScores, raw_score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give central differences in each output's own raw score, and how wrong rounding makes them.

    Rows do not depend on one another, so all of them are moved at once.
    """
    slopes, errors = np.empty((2, *raw_score.shape))
    for output, own in enumerate(raw_score):
        step = _STEP * np.maximum(1.0, np.abs(own))
        up, down = raw_score.copy(), raw_score.copy()
        up[output] += step
        down[output] -= step
        after, before = (np.atleast_2d(function(scores)) for scores in (up, down))
        place = output if len(after) > 1 else 0
        length = up[output] - down[output]  # not quite two steps: it is rounded, too
        slopes[output] = (after[place] - before[place]) / length
        errors[output] = _ROUNDING * (np.abs(after[place]) + np.abs(before[place])) / length
    return slopes, errors


def _excess(
    difference: np.ndarray,
    analytic: np.ndarray,
    numeric: np.ndarray,
    tolerance: float,
    error: np.ndarray,
) -> np.ndarray:
    """Give the differences in units of what is let pass; above 1 is off."""
    usual = np.sqrt(np.mean(np.square(numeric)))
    size = np.maximum(np.maximum(np.abs(analytic), np.abs(numeric)), usual)
    allowed = tolerance * size + error
    return np.abs(difference) / np.where(allowed > 0.0, allowed, 1.0)


def _report(
    loss: Loss,
    kind: str,
    rows: tuple[np.ndarray, np.ndarray],
    found: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """Raise AssertionError if a row is off; NaN of a target that is not known is not."""
    (y, raw_score), (analytic, numeric, off) = rows, found
    n_off = int(np.count_nonzero((off > 1.0).any(axis=0)))
    if n_off == 0:
        return
    output, row = np.unravel_index(np.nanargmax(off), off.shape)
    of_output = f" of output {output}" if len(raw_score) > 1 else ""
    of_what = "the loss" if kind == "gradient" else "the gradient"
    rule = "at least " if kind == "hessian" and loss.hessian_is_bound else ""
    raise AssertionError(
        f"the {kind}{of_output} of {loss.name} is off in {n_off} of {y.shape[1]} rows, "
        f"most in row {row} (y_true={y[output % len(y), row]:g}, "
        f"y_pred={raw_score[output, row]:g}): it is {analytic[output, row]:.6g}, and should be "
        f"{rule}{numeric[output, row]:.6g} by finite differences of {of_what}"
    )
