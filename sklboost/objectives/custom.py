"""Losses that users bring, functions and subclasses of Loss, and the checks of their derivatives.

Rounds call gradients in Python through :func:`ask_derivatives`; errors name the first row on whose
derivatives no tree can be grown. :func:`compare_derivatives` takes finite differences, for
``check_loss``.
"""

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

import numpy as np

from sklboost.engine.cached import cached_property
from sklboost.engine.compiling import is_compiled_by_user, kernel, returns_two_numbers
from sklboost.objectives.blocks import (
    LARGEST,
    LEAST_HESSIAN,
    NO_FAULT,
    are_usable,
    limited,
    users_block,
)
from sklboost.objectives.domains import LINKS, LOG_ODDS, SOFTMAX
from sklboost.objectives.loss import Loss, RowLoss, by_rows

# Links that a user's loss may have by itself; a function has the first, the default objective's.
LINKS_OF_TASKS: dict[str, tuple[str, ...]] = {
    "regression": LINKS,
    "binary": (LOG_ODDS,),
    "multilabel": (LOG_ODDS,),
    "multiclass": (SOFTMAX,),
}
_RULES = {
    "gradient": "gradients must be finite numbers: look for a logarithm of 0 or a division by it",
    "hessian": "hessians must be finite numbers >= 0: where the second derivative is negative, "
    "return a bound above it, or a small positive number",
}
_NO_WEIGHT = np.empty(0)
# Largest derivatives within these are in the unit 1, so that no unit changes with the rounds of an
# ordinary training: the least hessian is 1e-10 of them or less. Powers of two and their inverses.
_ORDINARY = (2.0**-20, 2.0**100)
_EXPONENTS_OF_UNITS = (-1000, 1000)
# A user's compiled function is asked in Python for so many rows, before the first round.
_SAMPLED_ROWS = 64
# Of a raw score, or of 1: with central differences the error of the formula, a square of it, and
# the error of rounding, a part of 1e-16 by it, are then about the same.
_STEP = 1e-5
_ROUNDING = 1e-15

# From raw scores, shape (n_outputs, n_samples), to a number for each output and row, or each row.
OfScores = Callable[[np.ndarray], np.ndarray]


class AllRows(NamedTuple):
    """What the rows of a machine are among all that are trained on."""

    numbers: np.ndarray  # int64, shape (n_samples,): of the rows
    n_everywhere: int
    # returns the elementwise maximum of an array of float64 over all machines, which all call it
    largest: Callable[[np.ndarray], np.ndarray]


class FunctionLoss(Loss):
    """The loss of a function ``(y_true, y_pred[, sample_weight]) -> (gradient, hessian)``.

    The function gets copies in the shapes that users know. One that numba has compiled for the two
    numbers of a row is the `row_derivatives`. Nothing is known of its values, so training starts
    from 0.
    """

    def __init__(self, function: Callable[..., Any], task: str, n_outputs: int):
        self._arguments = (function, task, n_outputs)
        self.function = function
        self.name = name_of(function)
        self.n_outputs = n_outputs
        self.link = LINKS_OF_TASKS[task][0]
        self.takes_weight = _takes_weight(self.name, function)
        may_be_of_rows = task != "multiclass" and not self.takes_weight
        if may_be_of_rows and is_compiled_by_user(function) and returns_two_numbers(function):
            self.row_derivatives = function

    def __reduce__(self) -> tuple[Any, ...]:
        # compiled code cannot be saved
        return type(self), self._arguments

    @cached_property
    def block(self) -> Any:
        """Compiled loop around a function of rows, None for a function of arrays."""
        return None if self.row_derivatives is None else users_block(self.function)

    def gradients(
        self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return what the function returns, shape (n_outputs, n_samples)."""
        if self.row_derivatives is not None:
            return super().gradients(y, raw_score)
        truth, prediction = by_rows(y), by_rows(raw_score)
        weights = {}
        if self.takes_weight and weight is not None and len(weight) > 0:
            weights = {"sample_weight": weight.copy()}
        elif self.takes_weight:
            parameter = inspect.signature(self.function).parameters["sample_weight"]
            if parameter.default is parameter.empty:
                weights = {"sample_weight": np.ones(len(truth))}
        shape = prediction.shape
        both = read_pair(self.name, self.function(truth, prediction, **weights), shape)
        gradient, hessian = (np.atleast_2d(array.T) for array in both)
        return gradient, hessian


def _takes_weight(name: str, function: Callable[..., Any]) -> bool:
    """Whether a function has a parameter `sample_weight`; TypeError if it cannot be called."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # some functions written in C have no signature
        return False
    takes_weight = "sample_weight" in signature.parameters
    try:
        signature.bind(None, None, **({"sample_weight": None} if takes_weight else {}))
    except TypeError as error:
        raise TypeError(
            f"objective={name} has the parameters {signature}: they must be (y_true, y_pred) or "
            f"(y_true, y_pred, sample_weight), by this name ({error})"
        ) from error
    return takes_weight


def check_loss_fits(loss: Loss, task: str, n_outputs: int) -> None:
    """Raise ValueError if a user's loss does not have the outputs and the link of a task.

    For regression `n_outputs` is the number of targets, each of which may have several.
    """
    is_regression = task == "regression"
    if loss.n_outputs % n_outputs != 0 or (not is_regression and loss.n_outputs != n_outputs):
        raise ValueError(
            f"objective={loss.name} has n_outputs={loss.n_outputs}: y needs {n_outputs} (one for "
            "regression and two classes, one for each target, label, or class of more)"
        )
    method = "probabilities" if task in ("binary", "multiclass") else "predictions"
    has_method = getattr(type(loss), method) is not getattr(Loss, method)
    links = LINKS_OF_TASKS[task]
    if has_method and loss.link != "other":
        raise ValueError(
            f"objective={loss.name} has a method {method} of its own and link={loss.link!r}, by "
            "which metrics would read raw scores otherwise: set link='other'"
        )
    if not has_method and loss.link not in links:
        raise ValueError(
            f"objective={loss.name} has link={loss.link!r}: set it to "
            f"{' or '.join(map(repr, links))}, or write a method {method}(raw_score)"
        )


class StoredLoss(Loss):
    """A user's loss as a model file has it: the meaning of its raw scores, and none of its code."""

    def __init__(
        self, name: str, link: str, n_outputs: int, parameters: np.ndarray, names: tuple[str, ...]
    ):
        self.name, self.link, self.n_outputs = name, link, n_outputs
        self.parameters = parameters
        self.output_names = names  # type: ignore[misc]

    def gradients(self, y: np.ndarray, raw_score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Raise ValueError."""
        self._refuse("derivatives are", "fit with it again, or keep the model with pickle")

    def _refuse(self, what: str, remedy: str) -> NoReturn:
        raise ValueError(
            f"objective={self.name} was a loss of the user's, and its {what} code, which no model "
            f"file holds: {remedy}"
        )


class StoredScores(StoredLoss):
    """The same of a loss that has the link "other": nobody knows what its raw scores mean."""

    def predictions(self, raw_score: np.ndarray) -> np.ndarray:
        """Raise ValueError."""
        remedy = "predict(X, output_margin=True) returns the raw scores that it made them of"
        self._refuse("predictions are", remedy)

    probabilities = predictions


def name_of(function: Any) -> str:
    """Return the name of a function, for errors."""
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)


# --- derivatives that Python asks for


def ask_derivatives(
    loss: Loss,
    y: np.ndarray,
    raw_score: np.ndarray,
    weight: np.ndarray,
    derivatives: tuple[np.ndarray, np.ndarray],
    units: np.ndarray,
    rows: AllRows,
) -> None:
    """Fill gradient and hessian of the rows, not weighted; both (n_outputs, n_samples), any float.

    They are in `units`, shape (n_outputs, 2), which are chosen and filled, too.
    """
    extra = (weight,) if loss.takes_weight else ()
    given = read_pair(loss.name, loss.gradients(y, raw_score, *extra), raw_score.shape)
    included = weight if loss.takes_weight else _NO_WEIGHT
    _find_largest(y, given, included, units)
    units[:] = rows.largest(units)
    lacks_hessians = units[:, 0].any() and not units[:, 1].any()
    _set_units(units)
    fault = _take_derivatives(y, given, included, derivatives, units)
    if fault == NO_FAULT and lacks_hessians:
        raise ValueError(_no_hessians(loss))
    if fault != NO_FAULT:
        gradient, hessian = given
        for place in _places(y, raw_score, [fault]):
            output = place.output
            _check_place(loss, place, (gradient[output, fault], hessian[output, fault]))


def read_pair(name: str, result: Any, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return gradient and hessian as float64 if they are two arrays of numbers of this shape."""
    if not isinstance(result, tuple | list) or len(result) != 2:
        got = f"{type(result).__name__} of {len(result)}" if hasattr(result, "__len__") else result
        raise TypeError(
            f"objective={name} returned {got}: it must return two arrays, (gradient, hessian)"
        )
    gradient, hessian = (
        _read_array(name, kind, values, shape) for kind, values in zip(_RULES, result, strict=True)
    )
    return gradient, hessian


def _read_array(name: str, kind: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError:  # lists of different lengths
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"objective={name} returned a {kind} that is {type(values).__name__} of dtype "
            f"{array.dtype}: it must be an array of real numbers"
        )
    if array.shape != shape:
        raise ValueError(
            f"objective={name} returned a {kind} of shape {array.shape}: it must have the shape of "
            f"the raw scores, {shape}"
        )
    return np.require(array, np.float64, ["C", "W"])  # as the kernel was compiled for


def sample_units(
    loss: Loss, y: np.ndarray, raw_score: np.ndarray, units: np.ndarray, rows: AllRows
) -> None:
    """Choose `units` by the derivatives that a user's compiled function has in some of the rows.

    What it gives is multiplied as it comes, so it must be known before, as it is at the first
    round. All rows are looked at if the derivatives of those are 0, or far from 1: others may then
    be far from them, and would be out of range in their unit.
    """
    for step in (max(1, rows.n_everywhere // _SAMPLED_ROWS), 1):
        units[:] = 0.0
        for place in _places(y, raw_score, np.flatnonzero(rows.numbers % step == 0).tolist()):
            with suppress(FaultyRowError):  # training comes to that row, or to one before it
                both = np.abs(_derivatives(loss, place))
                is_usable = np.isfinite(both) & np.isfinite(place.y_true)
                units[place.output] = np.maximum(units[place.output], np.where(is_usable, both, 0))
        units[:] = rows.largest(units)
        if _are_ordinary(units).all():
            break
    _set_units(units)


@np.errstate(all="ignore")
def _set_units(units: np.ndarray) -> None:
    """Replace the largest derivatives by the units that suit them, powers of two.

    float32 holds numbers near 1 best, and :data:`LEAST_HESSIAN` must be far below them. The unit is
    1 where that is so anyway.
    """
    exponents = np.clip(np.frexp(units)[1], *_EXPONENTS_OF_UNITS)
    units[:] = np.where(_are_ordinary(units) | (units == 0.0), 1.0, np.ldexp(1.0, exponents))


def _are_ordinary(largest: np.ndarray) -> np.ndarray:
    return (largest >= _ORDINARY[0]) & (largest <= _ORDINARY[1])


@kernel
def _find_largest(y, given, weight, largest):
    """Fill the largest finite gradient and hessian of each output, divided by included weights."""
    largest[:] = 0.0
    for output in range(given[0].shape[0]):
        target = y[output % y.shape[0]]
        first, second = given[0][output], given[1][output]
        for row in range(len(target)):
            unit = weight[row] if len(weight) > 0 else 1.0
            g, h = abs(first[row] / unit), abs(second[row] / unit)
            is_known = target[row] == target[row]
            if is_known and g > largest[output, 0] and g < math.inf:
                largest[output, 0] = g
            if is_known and h > largest[output, 1] and h < math.inf:
                largest[output, 1] = h


@kernel
def _take_derivatives(y, given, weight, derivatives, units):
    """Fill derivatives with what a loss gave, checked, and divided by the weights it includes.

    They are multiplied by the weights later; so weight 2 is the row twice here, too. Returns the
    first row whose derivatives are not usable, or ``NO_FAULT``.
    """
    fault = NO_FAULT
    for output in range(given[0].shape[0]):
        target = y[output % y.shape[0]]
        first, second = given[0][output], given[1][output]
        gradient, hessian = derivatives[0][output], derivatives[1][output]
        for row in range(len(target)):
            is_known = target[row] == target[row]
            if is_known and not are_usable(first[row], second[row]):
                fault = row if fault == NO_FAULT else min(fault, row)
            unit = weight[row] if len(weight) > 0 else 1.0
            g, h = first[row] / unit / units[output, 0], second[row] / unit / units[output, 1]
            gradient[row] = limited(g, -LARGEST) if is_known else 0.0
            hessian[row] = limited(h, LEAST_HESSIAN) if is_known else 0.0
    return fault


# --- the row at fault


class FaultyRowError(ValueError):
    """A row, by its number among those trained on, whose derivatives no tree can be grown on.

    `before` and `after` are the text around it.
    """

    def __init__(self, before: str, row: int, after: str):
        super().__init__(before, row, after)
        self.row = row
        self.where = f"row {row}"  # as the user knows it
        self.round_: int | None = None  # None: not in a training

    def __str__(self) -> str:
        before, _, after = self.args
        when = "" if self.round_ is None else f" in round {self.round_}"
        return f"{before} {self.where}{when}{after}"


def explain_fault(loss: Loss, y: np.ndarray, raw_score: np.ndarray) -> None:
    """Raise FaultyRowError for the first row without usable derivatives by a user's function."""
    for place in _places(y, raw_score):
        both = _derivatives(loss, place)
        if not np.isnan(place.y_true):
            _check_place(loss, place, both)
    raise ValueError(f"objective={loss.name} gave derivatives that could not be used; now it does")


def check_hessians(loss: Loss, y: np.ndarray, raw_score: np.ndarray, rows: AllRows) -> None:
    """Raise ValueError if a user's compiled function gives hessians of 0 only."""
    found = np.zeros(2)  # whether there is a gradient, a hessian
    for place in _places(y, raw_score):
        found = np.maximum(found, np.not_equal(_derivatives(loss, place), 0.0))
        if found[1] > 0.0:  # of the first row, as a rule
            break
    is_moving, has_hessians = rows.largest(found)
    if is_moving and not has_hessians:
        raise ValueError(_no_hessians(loss))


def check_is_of_rows(loss: Loss, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> None:
    """Raise FaultyRowError if the derivatives of half the rows are others without the other half.

    Where several machines have some of the rows each, a function of arrays has to be one of rows.
    """
    extra, some = ((weight,), (weight[::2],)) if loss.takes_weight else ((), ())
    whole = read_pair(loss.name, loss.gradients(y, raw_score, *extra), raw_score.shape)
    y, raw_score = y[:, ::2].copy(), raw_score[:, ::2].copy()
    alone = read_pair(loss.name, loss.gradients(y, raw_score, *some), raw_score.shape)
    for kind, of_all, of_some in zip(_RULES, whole, alone, strict=True):
        differs = ~np.isclose(of_all[:, ::2], of_some, rtol=1e-9, atol=0.0, equal_nan=True)
        differs &= ~np.isnan(y[np.arange(len(raw_score)) % len(y)])
        for output, row in np.argwhere(differs)[:1]:
            raise FaultyRowError(
                f"objective={loss.name}: the {kind} for",
                2 * int(row),
                f" is {of_all[output, 2 * row]:g} among all rows of a worker, and "
                f"{of_some[output, row]:g} among half of them. Each worker of a cluster has some "
                "of the rows, so a loss must derive each row by itself: write it so, or pass "
                "X.compute()",
            )


class _Place(NamedTuple):
    """An output of a row."""

    row: int
    output: int
    y_true: float
    y_pred: float
    has_others: bool  # whether there are other outputs

    @property
    def of_output(self) -> str:
        return f" of output {self.output}" if self.has_others else ""

    @property
    def numbers(self) -> str:
        return f"(y_true={self.y_true:g}, y_pred={self.y_pred:g})"


def _place(y: np.ndarray, raw_score: np.ndarray, output: int, row: int) -> _Place:
    target, score = float(y[output % len(y), row]), float(raw_score[output, row])
    return _Place(row, output, target, score, len(raw_score) > 1)


def _places(
    y: np.ndarray, raw_score: np.ndarray, rows: Iterable[int] | None = None
) -> Iterator[_Place]:
    """Yield the places of some rows, None: all; all outputs of a row before the next."""
    for row in range(raw_score.shape[1]) if rows is None else rows:
        for output in range(len(raw_score)):
            yield _place(y, raw_score, output, row)


def _derivatives(loss: Loss, place: _Place) -> tuple[float, float]:
    """Call a user's compiled function of rows."""
    try:
        both: tuple[float, float] = loss.row_derivatives(place.y_true, place.y_pred)
    except Exception as error:
        before = f"objective={loss.name} raised {type(error).__name__}: {error}, for"
        raise FaultyRowError(before, place.row, f" {place.numbers}") from error
    return both


def _check_place(loss: Loss, place: _Place, both: tuple[float, float]) -> None:
    """Raise FaultyRowError if a tree cannot be grown on the derivatives."""
    for kind, value in zip(_RULES, both, strict=True):
        if not np.isfinite(value) or (kind == "hessian" and value < 0.0):
            before = f"objective={loss.name}: the {kind}{place.of_output} for"
            after = f" is {value:g} {place.numbers}: {_RULES[kind]}"
            raise FaultyRowError(before, place.row, after)


def _no_hessians(loss: Loss) -> str:
    return (
        f"objective={loss.name}: all hessians are 0, so leaf weights, -G / (H + lambda), mean "
        "nothing. Where the second derivative is 0, as for the absolute error, return 1 for every "
        "row: each leaf then takes a step along the mean gradient"
    )


# --- finite differences


def compare_derivatives(
    loss: Loss, y: np.ndarray, raw_score: np.ndarray, values: OfScores | None, tolerance: float
) -> None:
    """Compare gradient and hessian with central differences, in float64.

    `values` returns the loss of each row for raw scores; None: only the hessian is compared.
    """

    def derivatives(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        both, units = np.empty((2, *scores.shape)), np.empty((len(scores), 2))
        rows = AllRows(np.arange(scores.shape[1]), scores.shape[1], np.asarray)
        ask_derivatives(loss, y, scores, _NO_WEIGHT, (both[0], both[1]), units, rows)
        both *= units.T[:, :, np.newaxis]
        return both[0], both[1]

    functions: dict[str, OfScores | None] = {
        "gradient": values,
        "hessian": lambda scores: derivatives(scores)[0],
    }
    found = zip(functions.items(), derivatives(raw_score), strict=True)
    for (kind, function), analytic in found:
        if function is None:
            continue
        numeric, error = _differences(function, raw_score)
        difference = analytic - numeric
        if kind == "hessian" and loss.hessian_is_bound:
            difference = np.minimum(difference, 0.0)
        usual = np.sqrt(np.mean(np.square(numeric)))
        size = np.maximum(np.maximum(np.abs(analytic), np.abs(numeric)), usual)
        allowed = tolerance * size + error
        off = np.abs(difference) / np.where(allowed > 0.0, allowed, 1.0)
        n_off = int(np.count_nonzero((off > 1.0).any(axis=0)))
        if n_off > 0:  # NaN, of targets that are not known, is not
            output, row = np.unravel_index(np.nanargmax(off), off.shape)
            place = _place(y, raw_score, int(output), int(row))
            of_what = "the loss" if kind == "gradient" else "the gradient"
            rule = "at least " if kind == "hessian" and loss.hessian_is_bound else ""
            raise AssertionError(
                f"the {kind}{place.of_output} of {loss.name} is off in {n_off} of {y.shape[1]} "
                f"rows, most in row {row} {place.numbers}: it is {analytic[output, row]:.6g}, and "
                f"should be {rule}{numeric[output, row]:.6g} by finite differences of {of_what}"
            )


def values_by_rows(loss: Loss, y: np.ndarray) -> OfScores | None:
    """Return the function that computes the loss of each row, None for a loss without value."""
    if type(loss).value is Loss.value:
        return None

    def values(raw_score: np.ndarray) -> np.ndarray:
        if isinstance(loss, RowLoss):
            sums: np.ndarray = np.nansum(loss.row_values(y, raw_score), axis=0)
            return sums
        rows = [slice(row, row + 1) for row in range(y.shape[1])]
        return np.array([loss.value(y[:, row], raw_score[:, row], _NO_WEIGHT) for row in rows])

    return values


def _differences(function: OfScores, raw_score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return central differences in each output's own raw score, and how wrong rounding makes them.

    Rows do not depend on one another, so all of them are moved at once.
    """
    slopes, errors = np.empty((2, *raw_score.shape))
    for output, scores in enumerate(raw_score):
        step = _STEP * np.maximum(1.0, np.abs(scores))
        up, down = raw_score.copy(), raw_score.copy()
        up[output] += step
        down[output] -= step
        after, before = (np.atleast_2d(function(moved)) for moved in (up, down))
        place = output if len(after) > 1 else 0
        length = up[output] - down[output]  # not quite two steps: it is rounded, too
        slopes[output] = (after[place] - before[place]) / length
        errors[output] = _ROUNDING * (np.abs(after[place]) + np.abs(before[place])) / length
    return slopes, errors
