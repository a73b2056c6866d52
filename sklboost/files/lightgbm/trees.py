"""The trees of a text model of LightGBM.

A tree of n leaves has the splits 0 to n - 2, parents before their children; a child c >= 0 is a
split, c < 0 the leaf ~c. As nodes, leaves come behind the splits.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from sklboost.data.encoding import MOST_CATEGORIES
from sklboost.files.foreign import ForeignTree, with_equal_left
from sklboost.files.gradient_sums import add_up
from sklboost.files.sections import Section

# decision_type: bit 0, the split is on categories; bit 1, missing values go left; bits 2 and 3,
# what counts as missing. For NONE, NaN is 0; for ZERO both are missing.
_BY_CATEGORY, _DEFAULT_LEFT = 1, 2
_NONE, _ZERO, _NAN = 0, 1, 2
_MOST_LEAVES = 2**30


def read_trees(sections: Sequence[Section], n_features: int) -> tuple[list[ForeignTree], float]:
    """Return the trees, and which value is missing beside NaN (NaN: none).

    Values are LightGBM's, categories its integers, and sums of gradients NaN.

    Raises
    ------
    ModelFileError
        If an array has another length than the tree, or numbers in it are out of range; if zero is
        missing for one split and a number for another.
    """
    is_missing = any(map(_tells_zero_from_numbers, sections))
    trees = [_read_tree(section, n_features, is_missing) for section in sections]
    return trees, 0.0 if is_missing else np.nan


def _tells_zero_from_numbers(section: Section) -> bool:
    """Whether a split sends zero, which is missing, another way than its threshold would."""
    decisions = section["decision_type"].integers(0, 4 * _NAN + 3)
    thresholds = section["threshold"].numbers(len(decisions), finite=False)
    is_zero = (decisions >> 2 == _ZERO) & (decisions & _BY_CATEGORY == 0)
    return bool((is_zero & ((decisions & _DEFAULT_LEFT > 0) != (thresholds >= 0.0))).any())


def _read_tree(section: Section, n_features: int, zero_is_missing: bool) -> ForeignTree:
    n_leaves = int(section["num_leaves"].integers(1, _MOST_LEAVES, 1)[0])
    n_splits = n_leaves - 1
    decisions = section["decision_type"].integers(0, 4 * _NAN + 3, n_splits)
    thresholds = section["threshold"].numbers(n_splits, finite=False)
    by_category = decisions & _BY_CATEGORY > 0
    default_left = decisions & _DEFAULT_LEFT > 0
    zero_left = thresholds >= 0.0
    if zero_is_missing:
        is_number = ~by_category & (decisions >> 2 == _NAN) & (default_left != zero_left)
        if is_number.any():
            section["decision_type"].fail(
                f"split {is_number.argmax()} takes zero for a number and others for a missing "
                "value: one model cannot do both here"
            )
    default_left = np.where(decisions >> 2 == _NONE, zero_left, default_left) & ~by_category
    nodes = np.full((3, n_splits + n_leaves), -1)
    for row, key in enumerate(("left_child", "right_child")):
        child = section[key].integers(-n_leaves, n_splits - 1, n_splits)
        nodes[row, :n_splits] = np.where(child >= 0, child, n_splits + ~child)
        if (nodes[row, :n_splits] <= np.arange(n_splits)).any():
            section[key].fail("a child comes before its parent")
    nodes[2, :n_splits] = section["split_feature"].integers(0, n_features - 1, n_splits)
    left, right, feature = nodes
    of_leaf = np.zeros(n_leaves)
    inner = section["internal_value"].numbers(n_splits)
    linear, shifts = _read_linear(section, n_leaves, n_features)
    tree = ForeignTree(
        left=left,
        right=right,
        feature=feature,
        threshold=np.append(thresholds, of_leaf),
        default_left=np.append(default_left, of_leaf > 0),
        value=np.append(inner, section["leaf_value"].numbers(n_leaves))[:, np.newaxis],
        gain=np.append(np.maximum(section["split_gain"].numbers(n_splits), 0.0), of_leaf),
        cover=add_up(left, right, _covers(section, n_leaves)),
        gradient=np.full(n_splits + n_leaves, np.nan),
        categories=_read_categories(section, by_category, thresholds),
        linear=linear,
        shifts=shifts,
        learning_rate=float(section["shrinkage"].numbers(1)[0]),
    )
    return with_equal_left(tree)


def _covers(section: Section, n_leaves: int) -> np.ndarray:
    """Return the sums of hessians of the leaves; else the numbers of rows, else 1."""
    for key in ("leaf_weight", "leaf_count"):
        known = section.get(key)
        if known is not None and len(known) == n_leaves:
            covers = known.numbers()
            if (covers > 0.0).all():
                return covers
    return np.ones(n_leaves)


def _read_categories(
    section: Section, by_category: np.ndarray, thresholds: np.ndarray
) -> dict[int, np.ndarray]:
    """Return the categories that go left at splits on them, by split."""
    splits = np.flatnonzero(by_category)
    n_sets = int(section["num_cat"].integers(len(splits), len(splits), 1)[0])
    if n_sets == 0:
        return {}
    # each set once: a short file could have a large one for all of its splits
    numbers = thresholds[splits]
    if not np.array_equal(np.sort(numbers), np.arange(n_sets)):
        section["threshold"].fail(
            f"the splits by category must have the sets 0 to {n_sets - 1}, each of them once"
        )
    words = section["cat_threshold"].integers(0, 2**32 - 1)
    starts = section["cat_boundaries"].integers(0, len(words), n_sets + 1)
    if starts[0] != 0 or starts[-1] != len(words) or (np.diff(starts) < 0).any():
        section["cat_boundaries"].fail("does not divide cat_threshold")
    found = {}
    for split, number in zip(splits.tolist(), numbers.astype(int).tolist(), strict=True):
        chosen = words[starts[number] : starts[number + 1]].astype("<u4")
        # before its bits take 8 bytes each
        if int(np.bitwise_count(chosen).sum()) > MOST_CATEGORIES:
            section["cat_threshold"].fail(
                f"split {split}: more than {MOST_CATEGORIES} categories are not supported"
            )
        found[split] = np.flatnonzero(np.unpackbits(chosen.view(np.uint8), bitorder="little"))
    return found


def _read_linear(
    section: Section, n_leaves: int, n_features: int
) -> tuple[dict[int, tuple[list[int], list[float]]], dict[int, float]]:
    """Return the terms of linear leaves, and what is added to their values beside these."""
    is_linear = section.get("is_linear")
    if is_linear is None or is_linear.integers(0, 1, 1)[0] == 0:
        return {}, {}
    counts = section["num_features"].integers(0, n_features, n_leaves)
    features = section["leaf_features"].integers(0, n_features - 1, int(counts.sum()))
    slopes = section["leaf_coeff"].numbers(len(features))
    shifts = section["leaf_const"].numbers(n_leaves) - section["leaf_value"].numbers(n_leaves)
    starts = np.append(0, np.cumsum(counts)).tolist()
    terms = {
        n_leaves - 1 + leaf: (features[start:stop].tolist(), slopes[start:stop].tolist())
        for leaf, (start, stop) in enumerate(pairwise(starts))
        if start < stop
    }
    return terms, dict(enumerate(shifts.tolist(), start=n_leaves - 1))
