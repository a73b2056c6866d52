"""Start values: means and quantiles of targets, and the constant of least loss.

Sums do not depend on the order of the rows, nor on how threads and machines divide them: each part
of the rows, a block here or what a machine has, is asked for its own.
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
_DIGIT_BITS, _N_DIGITS = np.uint64(8), 2**8  # of the key of a float64
_SIGN = np.uint64(1 << 63)
# What weights that are whole numbers come to is below 2^52, so that float64 holds their sums.
_QUANTILE_BITS = 52
_PRECISION = 2.0**-52  # relative, of an alpha and of its product with a weight
_MOST_STEPS = 200
# Of a raw score, relative to the mean gradient of single rows over their mean hessian.
_TOLERANCE = 1e-12
# Of a mean gradient, relative to the mean of its absolute values: rounding of the gradients alone.
_ROUNDING = 1e-15


# --- means and quantiles


def of_parts(function: Callable[..., Any], *columns: Column, **settings: Any) -> list[Any]:
    """Return ``function(*columns, **settings)`` of each part of the rows, in order.

    A part is a block of rows, of the last axis, or what is in one place elsewhere.
    """
    first, *others = columns
    if isinstance(first, RemoteColumn):
        return first.each(function, *others, **settings)
    return [
        function(*(each[..., i : i + _SUMMED_AT_ONCE] for each in columns), **settings)
        for i in range(0, first.shape[-1], _SUMMED_AT_ONCE)
    ]


def exact_sums(
    function: Callable[..., Any], *columns: Column, n_values: int | None = None, **settings: Any
) -> np.ndarray:
    """Add up float64 values so that their order does not matter, as whole numbers of a fine step.

    They are the rows of ``function(*columns, **settings)``, shape (n_sums, n_values), or n_samples
    where that is None; it is computed for a part at a time. The step is 2^-61 of a bound on the
    sum, the largest value times their number: a value as large as the largest keeps 52 bits of 500
    values and 41 bits of a million.
    """
    given = {"rows_of": function, "settings": settings}
    extremes = np.array(of_parts(find_extremes, *columns, **given))
    highest, lowest = extremes[:, 0].max(axis=0), extremes[:, 1].min(axis=0)
    largest = np.maximum(highest, -lowest)  # of NumPy, where NaN is one
    n_values = columns[0].shape[-1] if n_values is None else n_values
    shifts = 61 - np.frexp(largest * n_values)[1].astype(np.int64)
    totals = np.sum(of_parts(add_whole_numbers, *columns, shifts=shifts, **given), axis=0)
    with np.errstate(invalid="ignore"):
        infinite = highest + lowest  # or NaN
    sums: np.ndarray = np.ldexp(totals.astype(np.float64), -shifts)
    return np.where(np.isfinite(largest), sums, infinite)


def find_extremes(
    *columns: np.ndarray, rows_of: Callable[..., Any], settings: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest and the smallest value in each row of what a function returns."""
    rows = rows_of(*columns, **settings)
    return rows.max(axis=1, initial=-np.inf), rows.min(axis=1, initial=np.inf)


@np.errstate(invalid="ignore")
def add_whole_numbers(
    *columns: np.ndarray,
    shifts: np.ndarray,
    rows_of: Callable[..., Any],
    settings: dict[str, Any],
) -> np.ndarray:
    """Return the sum of each row of what a function returns, times 2 to the `shifts`, as int64."""
    pairs = zip(rows_of(*columns, **settings), shifts.tolist(), strict=True)
    return np.array([whole_numbers(row, shift).astype(np.int64).sum() for row, shift in pairs])


def whole_numbers(values: Column, shift: int) -> Column:
    """Return values times 2 to the `shift`, rounded."""
    # in two factors, since one alone may be out of range; a product is faster than np.ldexp
    factor, rest = math.ldexp(1.0, shift // 2), math.ldexp(1.0, shift - shift // 2)
    return np.rint(values * factor * rest)


def exact_sum(values: Column, weight: Column = NO_WEIGHT, change: Change | None = None) -> float:
    """Add up values, times weights if there are any, as :func:`exact_sums` does.

    `change` is applied to the values before.
    """
    if len(values) == 0:
        return 0.0
    if change is not None and isinstance(values, RemoteColumn):
        values, change = change(values), None
    weights = [weight] if len(weight) else []
    return float(exact_sums(weigh, values, *weights, change=change)[0])


def weigh(
    values: np.ndarray, weight: np.ndarray | None = None, change: Change | None = None
) -> np.ndarray:
    """Return values, perhaps changed before, times weights, shape (1, n_values)."""
    changed = values if change is None else change(values)
    weighed: np.ndarray = changed if weight is None else changed * weight
    return weighed[np.newaxis]


def weighted_mean(values: Column, weight: Column, change: Change | None = None) -> float:
    """Return the mean of values, perhaps changed before, the same for every order of the rows."""
    total = exact_sum(weight) if len(weight) else len(values)
    return exact_sum(values, weight, change) / total


@np.errstate(all="ignore")
def mean_over_targets(values: Column, y: Column, weight: Column) -> float:
    """Return the mean of values, shape (n_outputs, n_samples), of rows whose target is known.

    The target of output o is ``o % n_targets``; NaN is not known.
    """
    n_known = int(np.sum(of_parts(count_known, values, y)))
    columns = [values, y, weight] if len(weight) else [values, y]
    total, *mass = exact_sums(known_products, *columns, n_values=n_known)
    return float(total / (mass[0] if mass else n_known))


def are_known(values: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return which values are of a known target, shape (n_outputs, n_samples)."""
    targets, n_outputs = np.atleast_2d(y), len(np.atleast_2d(values))
    return np.tile(~np.isnan(targets), (n_outputs // len(targets), 1))


def count_known(values: np.ndarray, y: np.ndarray) -> int:
    """Return how many values are of a known target."""
    return int(np.count_nonzero(are_known(values, y)))


def known_products(
    values: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None
) -> np.ndarray:
    """Return the values of known targets, one row, or their products with weights, and these."""
    is_known = are_known(values, y)
    known = np.atleast_2d(values)[is_known]
    if weight is None:
        return np.array([known])
    weights = np.broadcast_to(weight, is_known.shape)[is_known]
    return np.array([known * weights, weights])


def class_sums(codes: Column, weight: Column, n_classes: int) -> np.ndarray:
    """Add up the weights of the rows of each class, as :func:`exact_sum` does; float64.

    `codes` are 0 to n_classes - 1, of any dtype; weights of shape (0,) are all 1.
    """
    settings = {"n_classes": n_classes}
    if len(weight) == 0:
        counts = of_parts(count_classes, codes, **settings)
        return np.array(np.sum(counts, axis=0, dtype=np.float64))
    largest = np.max(of_parts(largest_of_classes, codes, weight, **settings), axis=0)
    shifts = 61 - np.frexp(largest * len(codes))[1].astype(np.int64)
    totals = np.sum(of_parts(add_classes, codes, weight, **settings, shifts=shifts), axis=0)
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


def each_target(y: Column, weight: Column) -> Iterator[tuple[Any, Any]]:
    """Yield for each target its known values, shape (n_samples,), and the weights of these rows."""
    for target in y if y.ndim > 1 else ():
        if np.isnan(target.min(initial=np.inf)):  # looked for without an array of all rows
            is_known = ~np.isnan(target)
            yield target[is_known], weight[is_known] if len(weight) else weight
        else:
            yield target, weight
    if y.ndim == 1:  # a column of one target, which all rows have
        yield y, weight


def known_means(y: Column, weight: Column, change: Change | None = None) -> np.ndarray:
    """Return the mean of the known values of each target, changed before; shape (n_targets,)."""
    means = []
    for values, weights in each_target(y, weight):
        if len(weights) == 0 and values.min(initial=np.inf) in _CLASSES:
            counts = np.array([float((values == class_).sum()) for class_ in _CLASSES])
            if counts.sum() == len(values):  # classes, which are sooner counted than added up
                values, weights = np.array(_CLASSES), counts
        means.append(weighted_mean(values, weights, change))
    return np.array(means)


def weighted_quantile(values: Column, weight: Column, alpha: float) -> float:
    """Return the quantile of one alpha, see :func:`weighted_quantiles`."""
    return float(weighted_quantiles(values, weight, np.array([alpha]))[0])


def weighted_quantiles(values: Column, weight: Column, alphas: np.ndarray) -> np.ndarray:
    """Return for each alpha the smallest value at which the weights exceed their share `alpha`.

    Where they come to exactly that at some value, the mean of this value and the next; as leaves
    are renewed. Weights of shape (0,) are all 1. Others are rounded to whole numbers, whose sums do
    not depend on the order of the rows.
    """
    n_weights, whole = len(weight), whole_weights(weight)
    total = float(whole.sum()) if n_weights > 0 else float(len(values))
    share = alphas * total
    # each weight may be rounded by 1/2, and yet a tie stays one
    rounding = 0.5 * n_weights + _PRECISION * share if n_weights > 0 else 0.0
    bounds = np.ceil(share - rounding), np.floor(share + rounding) + 1.0
    wanted = np.clip(np.concatenate(bounds), min(1.0, total), total)
    found = first_values(values, whole, wanted)
    quantiles: np.ndarray = 0.5 * found[: len(alphas)] + 0.5 * found[len(alphas) :]
    return quantiles


def whole_weights(weight: Column) -> Column:
    """Return weights as whole numbers, whose sums are exact; of shape (0,) they are all 1."""
    if len(weight) == 0:
        return weight
    return whole_numbers(weight, _QUANTILE_BITS - math.frexp(exact_sum(weight))[1])


def first_values(values: Column, weight: Column, wanted: np.ndarray) -> np.ndarray:
    """Return the smallest values up to which the weights come to each of what is `wanted`.

    Weights are whole numbers; of shape (0,) they are all 1.
    """
    if isinstance(values, RemoteColumn):
        return find_by_digits(values, weight, wanted)
    ordered, order = order_floats(values)
    so_far = np.cumsum(weight[order] if len(weight) > 0 else np.ones(len(order)))
    return ordered[np.minimum(np.searchsorted(so_far, wanted), len(ordered) - 1)]


def find_by_digits(values: RemoteColumn, weight: Column, wanted: np.ndarray) -> np.ndarray:
    """Return the same as :func:`first_values`, of columns.

    As for leaves among machines, the key of a value, a whole number in the order of floats, is
    found from its first digit on.
    """
    weights = [weight] if len(weight) else []
    wanted, keys = wanted.copy(), np.zeros(len(wanted), dtype=np.uint64)
    for lowest in range(56, -1, -8):
        known, places = np.unique(keys, return_inverse=True)
        sums = values.each(add_digits, *weights, keys=known, lowest=np.uint64(lowest))
        so_far = np.sum(sums, axis=0).cumsum(axis=1)[places]
        digits = (so_far < wanted[:, np.newaxis]).sum(axis=1)
        for place in np.flatnonzero(digits).tolist():
            wanted[place] -= so_far[place, digits[place] - 1]
        keys = (keys << _DIGIT_BITS) | digits.astype(np.uint64)
    return np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float64)


def add_digits(
    values: np.ndarray, weight: np.ndarray | None = None, *, keys: np.ndarray, lowest: np.uint64
) -> np.ndarray:
    """Add up the weights of values by the next digit of their keys, after each of some `keys`.

    `lowest` is the lowest bit of the digit; the result has shape (n_keys, 256).
    """
    numbers = (values + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    numbers = np.where(numbers & _SIGN, ~numbers, numbers | _SIGN) >> lowest
    sums = np.empty((len(keys), _N_DIGITS))
    for key, of_key in zip(keys, sums, strict=True):
        rows = np.flatnonzero(numbers >> _DIGIT_BITS == key)
        digits = (numbers[rows] - (key << _DIGIT_BITS)).astype(np.intp)
        of_rows = None if weight is None else weight[rows]
        of_key[:] = np.bincount(digits, of_rows, minlength=_N_DIGITS)
    return sums


# --- losses without a formula for their best constant


def find_constants(
    loss: "Loss", y: Column, weight: Column, guess: np.ndarray | None = None
) -> np.ndarray:
    """Find the raw score of each output at which its mean gradient is 0; shape (n_outputs,).

    Newton's method, kept between the largest score known to be too small and the smallest known to
    be too large: what would leave this range, or come from a step without end, is the middle of it
    instead. Where the hessian is only a bound of the second derivative, the slope of the secant
    through the last two points tells more, and makes the steps as long as they should be.

    The mean gradient of the loss must rise with the raw score. `y` has shape (n_targets,
    n_samples), and NaN is not known, or is a column; `guess` is where to begin, if not at 0.
    """
    columns = [y, weight] if len(weight) else [y]
    total = exact_sum(weight) if len(weight) else y.shape[-1]

    def mean_derivatives(score: np.ndarray) -> np.ndarray:
        """Return mean gradients, hessians and absolute gradients, shape (3, n_outputs)."""
        sums = exact_sums(derivatives_at, *columns, loss=loss, score=score)
        means: np.ndarray = (sums / total).reshape(3, -1)
        return means

    score = np.zeros(loss.n_outputs) if guess is None else np.asarray(guess, dtype=np.float64)
    low, high = np.full(loss.n_outputs, -np.inf), np.full(loss.n_outputs, np.inf)
    slope, curvature, size = mean_derivatives(score)
    for _ in range(_MOST_STEPS):
        low, high = np.where(slope <= 0.0, score, low), np.where(slope >= 0.0, score, high)
        # at most doubled: far from its minimum a loss can be almost flat
        limit = 1.0 + np.abs(score)
        # in the unit of the scores, perhaps that of targets: how far rows are from their minima
        tolerance = _TOLERANCE * np.fmin(limit, size / curvature)
        following = score - np.clip(slope / curvature, -limit, limit)
        middle = 0.5 * (np.maximum(low, score - limit) + np.minimum(high, score + limit))
        # a step that rounding leaves nothing of is one to where the score is already
        is_step = ((following > low) & (following < high)) | (following == score)
        following = np.where(is_step, following, middle)
        following = np.where(slope == 0.0, score, following)
        # where the loss is flat, what is left of the slope is rounding, and a large step a guess
        is_flat = np.abs(slope) <= _ROUNDING * size
        is_guess = is_flat & (np.abs(following - score) > tolerance)
        following = np.where(is_guess, score, following)
        moved = following - score
        if (np.abs(moved) <= tolerance).all():
            return following
        previous_slope, score = slope, following
        slope, curvature, size = mean_derivatives(score)
        rise = np.where(moved == 0.0, 0.0, slope - previous_slope)
        secant = rise / np.where(moved == 0.0, 1.0, moved)
        is_rise = (secant > 0.0) & (np.abs(rise) > _ROUNDING * size)
        curvature = np.where(is_rise, np.minimum(secant, curvature), curvature)
    return score


def derivatives_at(
    y: np.ndarray, weight: np.ndarray | None = None, *, loss: "Loss", score: np.ndarray
) -> np.ndarray:
    """Return gradients, hessians and absolute gradients, times weights, of all outputs.

    They are below one another; all rows have the same raw score.
    """
    gradient, hessian = loss.gradients(*all_at(y, score))
    derivatives = np.concatenate([gradient, hessian, np.abs(gradient)])
    return derivatives if weight is None else derivatives * weight


def all_at(y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return targets, shape (n_targets, n_samples), and as many times the same raw scores."""
    targets = np.ascontiguousarray(np.atleast_2d(y))
    return targets, np.repeat(score, targets.shape[1]).reshape(len(score), -1)


def hessian_at(y: np.ndarray, *, loss: "Loss", score: np.ndarray) -> np.ndarray:
    """Return the hessian of each target, of a loss that has one output for each."""
    derivatives = derivatives_at(y, loss=loss, score=score)
    return derivatives[len(score) : 2 * len(score)].reshape(y.shape)
