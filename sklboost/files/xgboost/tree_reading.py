"""Trees in XGBoost's schema as trees that ours are made of."""

from typing import NamedTuple

import numpy as np

from sklboost.data.encoding import MOST_CATEGORIES
from sklboost.files.foreign import ForeignTree
from sklboost.files.sections import Section

_MOST = 2**31 - 1
_MOST_NODES = 2**30


class XGBoostTree(NamedTuple):
    """A tree as it is in the file."""

    place: str  # for errors
    # int64, shape (n_nodes,)
    left: np.ndarray
    right: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray  # float64, shape (n_nodes,)
    default_left: np.ndarray  # bool, shape (n_nodes,)
    # float64, shape (n_nodes, n_tree_outputs): of inner nodes without the learning rate, of leaves
    # with it; before leaves are renewed
    weights: np.ndarray
    # float64, shape (n_nodes, n_tree_outputs): the same, with the values that leaves add to raw
    # scores
    values: np.ndarray
    # float64, shape (n_nodes,)
    cover: np.ndarray
    gain: np.ndarray
    listed: dict[int, np.ndarray]  # dict of int to ndarray of int64: the categories that go right

    def foreign(self, factor: float, rate: float, reg_lambda: float) -> ForeignTree:
        """Return the tree with its leaves multiplied by a factor, the weight of dart's rounds.

        XGBoost sends listed categories right and all others left: children change sides.
        `rate` is the learning rate in the weights of leaves, and NaN for `reg_lambda` means that
        sums of gradients are not known.
        """
        left, right, default_left = self.left.copy(), self.right.copy(), self.default_left.copy()
        by_category = list(self.listed)
        left[by_category], right[by_category] = right[by_category], left[by_category]
        default_left[by_category] = ~default_left[by_category]
        is_leaf = self.left < 0
        return ForeignTree(
            left=left,
            right=right,
            feature=self.feature,
            threshold=boundaries(self.threshold),
            default_left=default_left,
            value=factor * np.where(is_leaf[:, np.newaxis], self.values, rate * self.values),
            gain=np.maximum(self.gain, 0.0),
            cover=self.cover,
            gradient=-self.bare_weights(rate) * (self.cover[:, np.newaxis] + reg_lambda),
            categories=self.listed,
            learning_rate=factor * rate,
        )

    def bare_weights(self, rate: float) -> np.ndarray:
        """Return the weights without the learning rate."""
        is_leaf = (self.left < 0)[:, np.newaxis]
        return np.where(is_leaf, self.weights / rate, self.weights)


def read_tree(section: Section, n_outputs: int) -> XGBoostTree:
    """Return a tree of the file; `n_outputs` is that of its leaves."""
    left = section["left_children"].integers(-1, _MOST)
    n_nodes = len(left)
    if not 0 < n_nodes <= _MOST_NODES:
        section.fail("has no nodes")
    right = section["right_children"].integers(-1, _MOST, n_nodes)
    is_leaf = left < 0
    threshold = _float32(section["split_conditions"], n_nodes, finite=False)
    weights = _float32(section["base_weights"], n_nodes * n_outputs).reshape(n_nodes, n_outputs)
    values = weights.copy()
    if n_outputs == 1:
        values[is_leaf, 0] = threshold[is_leaf]
    elif (of_leaves := section.get("leaf_weights")) is not None:  # since XGBoost 3.2
        table = _float32(of_leaves, int(is_leaf.sum()) * n_outputs).reshape(-1, n_outputs)
        places = right[is_leaf]
        if ((places < 0) | (places >= len(table))).any():
            of_leaves.fail("has no values for some leaves")
        values[is_leaf] = table[places]
    unknown = np.zeros(n_nodes)  # XGBoost 2 does not store them for trees of several outputs
    covers, gains = section.get("sum_hessian"), section.get("loss_changes")
    if covers is not None and (covers.numbers(n_nodes) < 0.0).any():
        covers.fail("a sum of hessians is below 0")
    return XGBoostTree(
        place=section.place,
        left=left,
        right=np.where(is_leaf, -1, right),
        feature=section["split_indices"].integers(0, _MOST, n_nodes),
        threshold=threshold,
        default_left=section["default_left"].integers(0, 1, n_nodes) == 1,
        weights=weights,
        values=values,
        cover=unknown if covers is None else _float32(covers, n_nodes) / n_outputs,
        gain=unknown if gains is None else _float32(gains, n_nodes),
        listed=_listed_categories(section, is_leaf),
    )


@np.errstate(over="ignore")
def _float32(section: Section, size: int, *, finite: bool = True) -> np.ndarray:
    """Return numbers as XGBoost reads them: JSON may have more digits, or fewer, than float32."""
    numbers = section.numbers(size, finite=finite)
    rounded = numbers.astype(np.float32).astype(np.float64)
    return rounded if np.isfinite(rounded).all() or not finite else numbers


def _listed_categories(section: Section, is_leaf: np.ndarray) -> dict[int, np.ndarray]:
    """Return the categories of each split on a category."""
    n_nodes = len(is_leaf)
    by_category = np.flatnonzero((section["split_type"].integers(0, 1, n_nodes) == 1) & ~is_leaf)
    if len(by_category) == 0:
        return {}
    codes = section["categories"].integers(0, _MOST)
    nodes = section["categories_nodes"].integers(0, n_nodes - 1)
    starts = section["categories_segments"].integers(0, len(codes), len(nodes))
    sizes = section["categories_sizes"].integers(0, len(codes), len(nodes))
    if (starts + sizes > len(codes)).any() or sizes.sum() > len(codes):
        section["categories_sizes"].fail(f"more than the {len(codes)} categories there are")
    listed = {
        node: np.unique(codes[start : start + size])
        for node, start, size in zip(nodes.tolist(), starts.tolist(), sizes.tolist(), strict=True)
    }
    if set(by_category.tolist()) != set(listed):
        section["categories_nodes"].fail("are others than the splits on categories")
    if any(len(of_node) > 0 and of_node[-1] >= MOST_CATEGORIES for of_node in listed.values()):
        section["categories"].fail(f"a category above {MOST_CATEGORIES - 1} is not supported")
    return listed


def boundaries(thresholds: np.ndarray) -> np.ndarray:
    """Return the float64 below which a value, rounded to float32, is below a float32 threshold.

    That is halfway from the threshold to the float32 below it, or the next float64 where a value
    just there is rounded down, to an even last digit.
    """
    with np.errstate(over="ignore"):  # in JSON numbers may be longer
        above = thresholds.astype(np.float32)
        below = np.nextafter(above, np.float32(-np.inf))
    # as if float32 went on beyond its range: there infinity stands for 2^128
    ends = np.clip(above.astype(np.float64), -(2.0**128), 2.0**128)
    halfway = 0.5 * (ends + np.clip(below.astype(np.float64), -(2.0**128), 2.0**128))
    goes_down = below.view(np.int32) % 2 == 0
    halfway = np.where(goes_down, np.nextafter(halfway, np.inf), halfway)
    return np.where(above == -np.inf, -np.inf, halfway)
