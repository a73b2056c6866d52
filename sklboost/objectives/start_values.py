"""Start values: means and quantiles of targets, and the constant of least loss.

Sums do not depend on the order of the rows, nor on how threads and machines divide them. Means are
found where the rows are; quantiles, and constants without a formula, of rows that are brought here.
"""

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from sklboost.engine.sorting import order_floats
from sklboost.engine.structs import RemoteColumn

if TYPE_CHECKING:
    from sklboost.objectives.loss import Loss

Column = Any  # an array, or a RemoteColumn
Change = Callable[[Any], Any]

# Values that are added up at a time: what is computed on the way takes little memory.
_SUMMED_AT_ONCE = 2**16
NO_WEIGHT = np.empty(0)
_CLASSES = (0.0, 1.0)
_MOST_STEPS = 200
# Of a raw score, relative to its size or to 1.
_TOLERANCE = 1e-12
# Of a mean gradient, relative to the mean of its absolute values: rounding of the gradients alone.
_ROUNDING = 1e-15


# --- means and quantiles


def exact_sum(values: Column, weight: Column = NO_WEIGHT, change: Change | None = None) -> float:
    """Add float64 values so that their order does not matter, as whole numbers of a fine step.

    If there are weights, values times weights; `change` is applied to the values before. The step
    is 2^-61 of a bound on the sum, the largest value times their number: a value as large
    as the largest keeps 52 bits of 500 values and 41 bits of a million.
    """
    if len(values) == 0:
        return 0.0

    n_at_once = len(values) if isinstance(values, RemoteColumn) else _SUMMED_AT_ONCE

    def blocks() -> Iterator[Any]:
        for first in range(0, len(values), n_at_once):
            rows = slice(first, first + n_at_once)
            some = values[rows] if change is None else change(values[rows])
            yield some * weight[rows] if len(weight) else some

    # NumPy's maximum, of which NaN is one
    largest = float(np.max([max(some.max(), -some.min()) for some in blocks()]))
    if largest == 0.0:
        return 0.0
    if not np.isfinite(largest):
        with np.errstate(invalid="ignore"):
            return float(sum(some.sum() for some in blocks()))  # NaN, or infinite
    _, exponent = np.frexp(largest * len(values))
    shift, total = 61 - int(exponent), 0
    # in two factors, since one alone may be out of range; a product is faster than np.ldexp
    factor, rest = math.ldexp(1.0, shift // 2), math.ldexp(1.0, shift - shift // 2)
    for some in blocks():
        total += int(np.rint(some * factor * rest).astype(np.int64).sum())
    return float(np.ldexp(float(total), -shift))


def weighted_mean(values: Column, weight: Column, change: Change | None = None) -> float:
    """Return the mean of values, perhaps changed before, the same for every order of the rows."""
    total = exact_sum(weight) if len(weight) else len(values)
    return exact_sum(values, weight, change) / total


@np.errstate(all="ignore")
def mean_over_targets(values: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    """Return the mean of values, shape (n_outputs, n_samples), of rows whose target is known.

    The target of output o is ``o % n_targets``; NaN is not known.
    """
    targets = np.atleast_2d(y)
    is_known = ~np.isnan(targets)[np.arange(len(values)) % len(targets)]
    weights = np.broadcast_to(weight if len(weight) else 1.0, values.shape)
    return weighted_mean(values[is_known], weights[is_known])


def class_sums(codes: Column, weight: Column, n_classes: int) -> np.ndarray:
    """Add up the weights of the rows of each class, as :func:`exact_sum` does; float64.

    `codes` are 0 to n_classes - 1, of any dtype; weights of shape (0,) are all 1.
    """

    def parts(function: Callable[..., np.ndarray], **settings: Any) -> list[np.ndarray]:
        weights = [weight] if len(weight) else []
        if isinstance(codes, RemoteColumn):
            return codes.each(function, *weights, n_classes=n_classes, **settings)
        blocks = (slice(i, i + _SUMMED_AT_ONCE) for i in range(0, len(codes), _SUMMED_AT_ONCE))
        return [
            function(codes[rows], *(each[rows] for each in weights), n_classes, **settings)
            for rows in blocks
        ]

    if len(weight) == 0:
        return np.array(np.sum(parts(count_classes), axis=0, dtype=np.float64))
    largest = np.max(parts(largest_of_classes), axis=0)
    shifts = 61 - np.frexp(largest * len(codes))[1].astype(np.int64)
    totals = np.sum(parts(add_classes, shifts=shifts), axis=0)
    return np.array(np.ldexp(totals.astype(np.float64), -shifts))


def count_classes(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the number of rows of each class."""
    return np.bincount(codes.astype(np.intp), minlength=n_classes)


def largest_of_classes(codes: np.ndarray, weight: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the largest weight in each class; 0 without rows."""
    largest = np.zeros(n_classes)
    np.maximum.at(largest, codes.astype(np.intp), weight)
    return largest


def add_classes(
    codes: np.ndarray, weight: np.ndarray, n_classes: int, shifts: np.ndarray
) -> np.ndarray:
    """Return the sum of the weights of each class, times 2 to the `shifts`, as whole numbers."""
    classes, totals = codes.astype(np.intp), np.zeros(n_classes, dtype=np.int64)
    factors = np.ldexp(1.0, shifts // 2), np.ldexp(1.0, shifts - shifts // 2)
    scaled = weight * factors[0][classes] * factors[1][classes]
    np.add.at(totals, classes, np.rint(scaled).astype(np.int64))
    return totals


def class_shares(codes: Column, weight: Column, n_classes: int) -> np.ndarray:
    """Return the share of each class in the weights of the rows."""
    total = exact_sum(weight) if len(weight) else len(codes)
    return class_sums(codes, weight, n_classes) / total


def known_means(y: Column, weight: Column, change: Change | None = None) -> np.ndarray:
    """Return the mean of the known values of each target, changed before; shape (n_targets,)."""
    means = []
    for target in y if y.ndim > 1 else [y]:
        values: Any = target
        weights, least = weight, target.min(initial=np.inf)
        if np.isnan(least):
            is_known = ~np.isnan(target)
            values, weights = target[is_known], weight[is_known] if len(weight) else weight
            least = values.min(initial=np.inf)
        if len(weights) == 0 and least in _CLASSES:
            counts = np.array([float((values == class_).sum()) for class_ in _CLASSES])
            if counts.sum() == len(values):  # classes, which are sooner counted than added up
                values, weights = np.array(_CLASSES), counts
        means.append(weighted_mean(values, weights, change))
    return np.array(means)


def weighted_quantile(values: np.ndarray, weight: np.ndarray, alpha: float) -> float:
    """Return the smallest value up to which the weights come to more than their share `alpha`.

    Where they come to exactly that, the mean of this value and the next; as leaves are renewed.
    Values that are NaN are left out; weights of shape (0,) are all 1.
    """
    is_known = ~np.isnan(values)
    ordered, order = order_floats(values[is_known])
    weights = np.asarray(weight)[is_known][order] if len(weight) else np.ones(len(ordered))
    so_far = np.cumsum(weights)
    # all weights times a factor are rounded, and yet a tie stays one
    wanted, rounding = alpha * so_far[-1], len(weight) * np.spacing(so_far[-1])
    first = min(int(np.searchsorted(so_far, wanted - rounding, side="left")), len(ordered) - 1)
    last = min(int(np.searchsorted(so_far, wanted + rounding, side="right")), len(ordered) - 1)
    return float(0.5 * ordered[first] + 0.5 * ordered[last])


# --- losses without a formula for their best constant


def find_constants(
    loss: "Loss", y: np.ndarray, weight: np.ndarray, guess: np.ndarray | None = None
) -> np.ndarray:
    """Find the raw score of each output at which its mean gradient is 0; shape (n_outputs,).

    Newton's method, kept between the largest score known to be too small and the smallest known to
    be too large: what would leave this range, or come from a step without end, is the middle of it
    instead. Where the hessian is only a bound of the second derivative, the slope of the secant
    through the last two points tells more, and makes the steps as long as they should be.

    The mean gradient of the loss must rise with the raw score. `y` has shape (n_targets,
    n_samples), and NaN is not known; `guess` is where to begin, if not at 0.
    """
    weight = np.asarray(weight)
    score = np.zeros(loss.n_outputs) if guess is None else np.asarray(guess, dtype=np.float64)
    low, high = np.full(loss.n_outputs, -np.inf), np.full(loss.n_outputs, np.inf)
    slope, curvature, is_flat = _mean_gradients(loss, y, weight, score)
    for _ in range(_MOST_STEPS):
        low, high = np.where(slope <= 0.0, score, low), np.where(slope >= 0.0, score, high)
        # at most doubled: far from its minimum a loss can be almost flat
        limit = 1.0 + np.abs(score)
        following = score - np.clip(slope / curvature, -limit, limit)
        middle = 0.5 * (np.maximum(low, score - limit) + np.minimum(high, score + limit))
        following = np.where((following > low) & (following < high), following, middle)
        following = np.where(slope == 0.0, score, following)
        # where the loss is flat, what is left of the slope is rounding, and a large step a guess
        is_guess = is_flat & (np.abs(following - score) > _TOLERANCE * limit)
        following = np.where(is_guess, score, following)
        moved = following - score
        if (np.abs(moved) <= _TOLERANCE * (1.0 + np.abs(score))).all():
            return following
        previous_slope, score = slope, following
        slope, curvature, is_flat = _mean_gradients(loss, y, weight, score)
        rise = np.where(moved == 0.0, 0.0, slope - previous_slope)
        secant = rise / np.where(moved == 0.0, 1.0, moved)
        curvature = np.where(secant > 0.0, np.minimum(secant, curvature), curvature)
    return score


def _mean_gradients(
    loss: "Loss", y: np.ndarray, weight: np.ndarray, score: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean gradients and hessians, and which of the former are nothing but rounding."""
    raw_score = np.repeat(score, y.shape[1]).reshape(len(score), -1)
    gradient, hessian = loss.gradients(y, raw_score)
    slope, curvature, size = np.array(
        [[weighted_mean(row, weight) for row in of] for of in (gradient, hessian, np.abs(gradient))]
    )
    return slope, curvature, np.abs(slope) <= _ROUNDING * size
