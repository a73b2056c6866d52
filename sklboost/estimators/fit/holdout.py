"""Which rows are held out of a training, to judge it.

"Random" means by a hash of each row's content, not of its number, so that the order of the rows
does not matter. Equal rows are held out independently: if all copies of a row were held out
together and there are few distinct ones, training and validation would have different targets for
the same features. Whole groups are held out by a hash of their label.
"""

import hashlib
from collections.abc import Iterable, Iterator
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from sklboost.data.row_hashes import hash_rows, tell_copies_apart
from sklboost.engine.structs import RemoteColumn
from sklboost.estimators.input.queries import number_queries
from sklboost.estimators.input.rows import Rows
from sklboost.estimators.input.targets import apply, row_numbers
from sklboost.objectives.start_values import first_values, of_parts, whole_weights

# Shares such as 0.07 * 100 are a little more than 7 in floating point, and so may be products of
# weights; that must not cost a row.
_ROUNDING = 1e-9
# The places of part p begin at so many times p: hashes are below, and so are numbers of rows.
_PLACES_OF_PART = 2.0**32


def hold_out(
    rows: Rows,
    *,
    fraction: float,
    how: str,
    parts: Any,
    seed: int,
    needs: Iterable[Any] = (),
) -> Any:
    """Choose the rows to hold out, a mask, or a column: the first ones with this share of weight.

    The order is that of :func:`_places`. Of random rows, one of each number of the `needs` is left:
    the last in that order.
    """
    places, weight = _places(rows, how=how, parts=parts, seed=seed)
    mask: Any = _folds(places, weight, [fraction]) == 0
    for numbers in needs if how == "random" and len(rows.groups) == 0 else ():
        lost = lost_numbers(numbers, mask)
        if len(lost) > 0:
            last = np.max(of_parts(last_places, places, numbers, of=lost), axis=0)
            mask = mask & ~apply(is_among, places, numbers, of=lost, last=last)
    if not mask.any() and len(rows.groups) > 0:
        (label,) = number_queries(rows.groups, "groups").of_first_rows(rows.groups).tolist()
        raise ValueError(
            f"groups, or queries, have one label only, {label!r}: they are held out whole, so "
            "there must be at least 2; pass X_val and y_val, or leave groups out"
        )
    if not mask.any():
        raise ValueError(
            f"n_samples={len(mask)}: too few rows to hold out a share of {fraction:g} for "
            f"early stopping and keep one{'' if parts is None else ' of each class'} for training; "
            "pass X_val and y_val, or early_stopping_rounds=None"
        )
    return mask


def lost_numbers(numbers: Any, held_out: Any) -> np.ndarray:
    """Return the numbers, from 0 on, all of whose rows are held out; NaN is none."""
    numbers = numbers.astype(np.float64)
    n_numbers = 1 + int(np.fmax.reduce(numbers, initial=-1))
    n_rows, n_left = np.sum(of_parts(count_numbers, numbers, held_out, n_numbers=n_numbers), axis=0)
    lost: np.ndarray = np.flatnonzero((n_rows > 0) & (n_left == 0))
    return lost


def divide(rows: Rows, n_folds: int, *, how: str, parts: Any, seed: int) -> Iterator[Any]:
    """Yield for each fold which rows it holds out, a mask of shape (n_samples,), or a column.

    Every row is held out once, except the last ones of :func:`_places`.
    """
    shares = [fold / n_folds for fold in range(1, n_folds)]
    folds = _folds(*_places(rows, how=how, parts=parts, seed=seed), shares)
    yield from (folds == fold for fold in range(n_folds))


def sample(rows: Rows, share: float, *, how: str, parts: Any, seed: int) -> Rows:
    """Choose the rows that :func:`hold_out` would, and the last row of each part."""
    folds = _folds(*_places(rows, how=how, parts=parts, seed=seed), [share])
    return rows.take(folds <= 0)


def _places(rows: Rows, *, how: str, parts: Any, seed: int) -> tuple[Any, Any]:
    """Return the place of each row among those to hold out, float64, and its weight for that.

    At random it is the hash of the row, of each part by itself: those of part 1 begin at 2^32. By
    time it is how many rows are behind it, and of groups that of the label, whose rows have one
    place. Weights are whole numbers from 1 on, or of shape (0,): 1.
    """
    if len(rows.groups) > 0 and how == "time":
        raise ValueError(
            'groups, or queries, were given, and validation_split="time" holds out the last rows '
            'whatever their group: leave one of them out (validation_split="random" is the default)'
        )
    if len(rows.groups) > 0:
        places = _places_of_groups(rows.groups, seed)
        is_here = not isinstance(places, RemoteColumn)
        return places, _whole(np.asarray(rows.weight) if is_here else rows.weight)
    if how == "time":
        return len(rows.y) - 1.0 - row_numbers(rows.y), np.empty(0)
    hashes = hash_rows(rows.X, rows.y, seed)
    places = tell_copies_apart(hashes, rows.weight).astype(np.float64)
    return places if parts is None else places + _PLACES_OF_PART * parts, _whole(rows.weight)


def _whole(weight: Any) -> Any:
    return np.maximum(whole_weights(weight), 1.0)  # of very different weights some would be 0


def _folds(places: Any, weight: Any, shares: list[float]) -> Any:
    """Return how many of some shares of the weight of its part come before each row; int64.

    Those of the last place of each part have -1: they are never held out.
    """
    columns = [weight] if len(weight) else []
    n_parts = 1 + int(places.max() // _PLACES_OF_PART)
    each = np.array(of_parts(look_at_parts, places, *columns, n_parts=n_parts))
    totals, last = each[:, 0].sum(axis=0), each[:, 1].max(axis=0)
    before = totals.cumsum() - totals
    wanted = before + np.array(shares)[:, np.newaxis] * (1.0 - _ROUNDING) * totals
    bounds = first_values(places, weight, wanted.ravel()).reshape(wanted.shape)
    return apply(folds_of, places, bounds=bounds.T, last=last)


def _places_of_groups(labels: Any, seed: int) -> Any:
    """Return for each row the place of its group in a random order, float64."""
    queries = number_queries(labels, "groups")
    hashes = [_hash_of_label(label, seed) for label in queries.of_first_rows(labels).tolist()]
    ranks = np.empty(len(hashes))
    ranks[sorted(range(len(hashes)), key=hashes.__getitem__)] = np.arange(len(hashes))
    return queries.spread(ranks)


def _hash_of_label(label: Any, seed: int) -> bytes:
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, Real | Decimal) and label % 1 == 0:
        label = int(label)  # type: ignore[arg-type]  # 0 and 0.0 are one label
    # not hash(), which differs from one Python process to the next
    return hashlib.blake2b(f"{seed} {label!r}".encode(), digest_size=16).digest()


# --- of a part of the rows -----------------------------------------------------------------------


def folds_of(places: np.ndarray, bounds: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return how many bounds of its part each place is beyond; -1 for the last ones."""
    parts = (places // _PLACES_OF_PART).astype(np.intp)
    folds: np.ndarray = (places[:, np.newaxis] > bounds[parts]).sum(axis=1)
    return np.where(places < last[parts], folds, -1)


def look_at_parts(
    places: np.ndarray, weight: np.ndarray | None = None, *, n_parts: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of the weights in each part, and its last place; -1: it has no rows here."""
    parts, last = (places // _PLACES_OF_PART).astype(np.intp), np.full(n_parts, -1.0)
    np.maximum.at(last, parts, places)
    return np.bincount(parts, weight, minlength=n_parts), last


def count_numbers(numbers: np.ndarray, held_out: np.ndarray, *, n_numbers: int) -> np.ndarray:
    """Return how many rows have each number, and how many of them are not held out."""
    each = [numbers[~np.isnan(numbers) & chosen] for chosen in (np.True_, ~held_out)]
    return np.array([np.bincount(of.astype(np.intp), minlength=n_numbers) for of in each])


def last_places(places: np.ndarray, numbers: np.ndarray, *, of: np.ndarray) -> list[float]:
    """Return the last place of the rows of each of some numbers; -1: there are none here."""
    return [places[numbers == number].max(initial=-1.0) for number in of]


def is_among(
    places: np.ndarray, numbers: np.ndarray, *, of: np.ndarray, last: np.ndarray
) -> np.ndarray:
    """Return which rows have one of some numbers, and the last place of that."""
    known = zip(of, last, strict=True)
    return np.any([(numbers == number) & (places == place) for number, place in known], axis=0)
