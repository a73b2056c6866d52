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
from sklboost.estimators.input.rows import Rows

# Shares such as 0.07 * 100 are a little more than 7 in floating point, and so may be sums of many
# weights; that must not cost a row.
_ROUNDING = 1e-9


def hold_out(
    rows: Rows,
    *,
    fraction: float,
    how: str,
    parts: np.ndarray | None,
    seed: int,
    needs: Iterable[np.ndarray] = (),
) -> np.ndarray:
    """Choose the rows to hold out, a mask: those with a place below the fraction.

    Places are those of :func:`order_to_hold_out`. Of random rows, one of each number of the `needs`
    is left: the last in that order.
    """
    places = order_to_hold_out(rows, how=how, parts=parts, seed=seed)
    mask = places < fraction * (1.0 - _ROUNDING)
    for numbers in needs if how == "random" and len(rows.groups) == 0 else ():
        for number in lost_numbers(numbers, mask):
            those = np.flatnonzero(numbers == number)
            mask[those[np.argmax(places[those])]] = False
    if not mask.any() and len(rows.groups) > 0:
        (label,) = set(rows.groups.tolist())
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


def lost_numbers(numbers: np.ndarray, held_out: np.ndarray) -> np.ndarray:
    """Return the numbers, from 0 on, all of whose rows are held out; NaN is none."""
    is_known = ~np.isnan(numbers)
    known = numbers[is_known].astype(np.intp)
    n_left = np.bincount(known[~held_out[is_known]], minlength=known.max(initial=-1) + 1)
    lost: np.ndarray = np.flatnonzero((np.bincount(known) > 0) & (n_left == 0))
    return lost


def divide(
    rows: Rows, n_folds: int, *, how: str, parts: np.ndarray | None, seed: int
) -> Iterator[np.ndarray]:
    """Yield for each fold which rows it holds out; bool, shape (n_samples,).

    Every row is held out once, except the last ones of :func:`order_to_hold_out`.
    """
    places = order_to_hold_out(rows, how=how, parts=parts, seed=seed)
    folds = np.floor(places * (n_folds * (1.0 + _ROUNDING)))
    yield from (folds == fold for fold in range(n_folds))


def order_to_hold_out(rows: Rows, *, how: str, parts: np.ndarray | None, seed: int) -> np.ndarray:
    """Return the place of each row among those to hold out, from 0 to 1; shape (n_samples,).

    It is the share of the weight before it: at random in the order of the hashes, of each part by
    itself, or of groups, whose rows have one place; by time the share of the rows behind it. The
    place of the last one, of each part, is infinite: it is never held out.
    """
    y, weight, n_rows = rows.y, rows.weight, len(rows.y)
    if len(rows.groups) > 0 and how == "time":
        raise ValueError(
            'groups, or queries, were given, and validation_split="time" holds out the last rows '
            'whatever their group: leave one of them out (validation_split="random" is the default)'
        )
    if len(rows.groups) > 0:
        return _shares_before(_ranks_of_groups(rows.groups, seed), weight)
    if how == "time":
        return _shares_before(np.arange(n_rows)[::-1], np.empty(0))
    hashes = hash_rows(rows.X, y, seed)
    tell_copies_apart(hashes, weight)
    places = np.empty(n_rows)
    rows_of_parts = [np.arange(n_rows)]
    if parts is not None:
        order = np.argsort(parts, kind="stable")
        rows_of_parts = np.split(order, np.flatnonzero(np.diff(parts[order])) + 1)
    for part in rows_of_parts:
        places[part] = _shares_before(hashes[part], weight[part] if len(weight) else weight)
    return places


def _shares_before(keys: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return for each row the share of the weight of rows of smaller keys; last ones: infinite."""
    order = np.argsort(keys)
    ordered = keys[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    weights = np.add.reduceat(weight[order] if len(weight) else np.ones(len(order)), starts)
    until = weights.cumsum()
    shares = (until - weights) / until[-1]
    shares[-1] = np.inf
    places = np.empty(len(keys))
    places[order] = np.repeat(shares, np.diff(starts, append=len(keys)))
    return places


def _ranks_of_groups(labels: np.ndarray, seed: int) -> np.ndarray:
    """Return for each row the place of its group in a random order."""
    codes: dict[Any, int] = {}
    row_codes = np.array([codes.setdefault(label, len(codes)) for label in labels.tolist()])
    hashes = [_hash_of_label(label, seed) for label in codes]
    ranks = np.empty(len(codes), dtype=np.intp)
    ranks[sorted(range(len(codes)), key=hashes.__getitem__)] = np.arange(len(codes))
    return ranks[row_codes]


def _hash_of_label(label: Any, seed: int) -> bytes:
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, Real | Decimal) and label % 1 == 0:
        label = int(label)  # type: ignore[arg-type]  # 0 and 0.0 are one label
    # not hash(), which differs from one Python process to the next
    return hashlib.blake2b(f"{seed} {label!r}".encode(), digest_size=16).digest()
