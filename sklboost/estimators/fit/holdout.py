"""Which rows are held out of the training, to find the round at which to stop.

"Random" means by a hash of each row's content, not of its number, so that the order of the rows
does not matter. Equal rows are held out independently: if all copies of a row were held out
together and there are few distinct ones, training and validation would have different targets for
the same features. Whole groups are held out by a hash of their label.
"""

import hashlib
import math
from typing import Any

import numpy as np

from sklboost.data.row_hashes import hash_rows, tell_copies_apart
from sklboost.estimators.input.rows import Rows

# Shares such as 0.07 * 100 are a little more than 7 in floating point, and so may be sums of many
# weights; that must not cost a row.
_ROUNDING = 1e-9


def hold_out(rows: Rows, *, fraction: float, how: str, stratified: bool, seed: int) -> np.ndarray:
    """Choose the rows to hold out; bool, shape (n_samples,).

    Random: in the order of their hashes, rows are taken until they have the fraction of the weight;
    so many of each class if stratified. The last row, of each class, is never taken.
    Groups likewise, whole and not stratified. By time: the last rows, as many as make up the
    fraction of the rows.

    Parameters
    ----------
    rows : Rows
        With targets as the loss has them, and the user's weights: a row is held out whole, with its
        weight, whatever that is. Groups are told apart by their ``repr``.
    fraction : float
        Between 0 and 1.
    how : {"random", "time"}
    stratified : bool
    seed : int
        Decides which rows are chosen at random.

    Raises
    ------
    ValueError
        If one side would have no rows, or a class none in the training; for groups that do not fit.
    """
    y, weight, n_rows = rows.y, rows.weight, len(rows.y)
    if len(rows.groups) > 0 and how == "time":
        raise ValueError(
            'groups were given, and validation_split="time" holds out the last rows whatever their '
            'group: leave one of them out (validation_split="random" is the default)'
        )
    if len(rows.groups) > 0:
        mask = _first_share(_ranks_of_groups(rows.groups, seed), weight, fraction)
    elif how == "time":
        n_held_out = min(math.ceil(fraction * n_rows * (1.0 - _ROUNDING)), n_rows - 1)
        mask = np.arange(n_rows) >= n_rows - n_held_out
    else:
        hashes = hash_rows(rows.X, y, seed)
        tell_copies_apart(hashes, weight)
        mask = np.zeros(n_rows, dtype=bool)
        for part in _classes(y) if stratified else [np.arange(n_rows)]:
            weights = weight[part] if len(weight) else weight
            mask[part] = _first_share(hashes[part], weights, fraction)
    if not mask.any():
        raise ValueError(
            f"n_samples={n_rows}: too few rows to hold out a share of {fraction:g} for "
            f"early stopping and keep one{' of each class' if stratified else ''} for training; "
            "pass X_val and y_val, or early_stopping_rounds=None"
        )
    return mask


def _first_share(keys: np.ndarray, weight: np.ndarray, fraction: float) -> np.ndarray:
    """Take rows by increasing key, equal keys together, until they have the fraction of the weight.

    The rows of the largest key are never taken.
    """
    order = np.argsort(keys)
    ordered = keys[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    weights = np.add.reduceat(weight[order] if len(weight) else np.ones(len(order)), starts)
    until = weights.cumsum()
    is_taken = until - weights < fraction * until[-1] * (1.0 - _ROUNDING)
    is_taken[-1] = False
    mask = np.empty(len(keys), dtype=bool)
    mask[order] = np.repeat(is_taken, np.diff(starts, append=len(keys)))
    return mask


def _ranks_of_groups(labels: np.ndarray, seed: int) -> np.ndarray:
    """Return for each row the place of its group in a random order."""
    codes: dict[Any, int] = {}
    row_codes = np.array([codes.setdefault(label, len(codes)) for label in labels.tolist()])
    for label in codes:
        if label is None or label != label:
            raise ValueError(f"groups contains {label!r}: every row needs the label of its group")
    if len(codes) < 2:
        raise ValueError(
            f"groups has one label only, {next(iter(codes))!r}: groups are held out whole, so "
            "there must be at least 2; pass X_val and y_val, or leave groups out"
        )
    hashes = [_hash_of_label(label, seed) for label in codes]
    ranks = np.empty(len(codes), dtype=np.intp)
    ranks[sorted(range(len(codes)), key=hashes.__getitem__)] = np.arange(len(codes))
    return ranks[row_codes]


def _hash_of_label(label: Any, seed: int) -> bytes:
    # not hash(), which differs from one Python process to the next
    return hashlib.blake2b(f"{seed} {label!r}".encode(), digest_size=16).digest()


def _classes(y: np.ndarray) -> list[np.ndarray]:
    """Return the rows of each class."""
    order = np.argsort(y, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(y[order])) + 1)
