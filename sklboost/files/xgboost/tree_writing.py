"""Trees of ours in XGBoost's schema."""

from typing import Any

import numpy as np

from sklboost.data.encoding import Encoding
from sklboost.engine.model import Model
from sklboost.files.errors import NotExpressibleError
from sklboost.tree.predict.category_bits import all_listed_categories

_LARGEST = np.finfo(np.float32).max
_NO_PARENT = np.iinfo(np.int32).max
_LEAF_THRESHOLD = np.float32(1e-45)  # what XGBoost has where there is none


class TreeWriter:
    """Makes XGBoost's trees of those of a model.

    XGBoost sends the listed categories right, and all others left, also those that no row of the
    training has. Here these go where missing values go; so the categories that are listed there
    are those of the other side.
    """

    def __init__(self, model: Model, encodings: tuple[Encoding, ...] | None):
        self.model = model
        self.n_outputs = model.outputs.shape[1]  # 0: trees have one
        self.n_categories = [  # 0 where others than those that are known go right as well
            0 if encoding.is_coded else encoding.n_categories for encoding in encodings or ()
        ]
        counts, self.codes = all_listed_categories(model.tops.bits)
        self.code_starts = np.append(0, np.cumsum(counts))

    def tree(self, tree: int, shift: np.ndarray) -> dict[str, Any]:
        """Return a tree; `shift` is added to the values of its leaves, one for each output."""
        start, stop = self.model.tree_starts[tree : tree + 2]
        nodes = self.model.nodes[start:stop].view(np.recarray)
        is_leaf = nodes.left < 0
        by_category = ~is_leaf & np.isnan(nodes.threshold)
        listed, swapped = self._categories(start, nodes, np.flatnonzero(by_category).tolist())
        left = np.where(swapped, nodes.right, nodes.left).astype(np.int32)
        right = np.where(swapped, nodes.left, nodes.right).astype(np.int32)
        sizes = np.array([len(codes) for codes in listed], dtype=np.int64)
        thresholds = _round_up(np.where(is_leaf | by_category, 0.0, nodes.threshold))
        thresholds[is_leaf | by_category] = _LEAF_THRESHOLD
        return {
            **self._values(tree, start, stop, shift, left, right, thresholds),
            "categories": np.concatenate([np.empty(0, np.int32), *listed], dtype=np.int32),
            "categories_nodes": np.flatnonzero(by_category).astype(np.int32),
            "categories_segments": np.cumsum(sizes) - sizes,
            "categories_sizes": sizes,
            "default_left": ((nodes.default_left == 1) ^ swapped).astype(np.uint8) * ~is_leaf,
            "left_children": left,
            "loss_changes": nodes.gain.astype(np.float32),
            "parents": _parents(left, right),
            "split_indices": np.where(is_leaf, 0, nodes.feature).astype(np.int32),
            "split_type": by_category.astype(np.uint8),
            "sum_hessian": (nodes.cover * max(self.n_outputs, 1)).astype(np.float32),
            "tree_param": {
                "num_deleted": "0",
                "num_feature": str(self.model.n_features),
                "num_nodes": str(len(nodes)),
                "size_leaf_vector": str(max(self.n_outputs, 1)),
            },
        }

    def _categories(
        self, start: int, nodes: np.recarray, positions: list[int]
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Return the categories to list at each of some nodes, and where the sides change."""
        listed, swapped = [], np.zeros(len(nodes), dtype=bool)
        for position in positions:
            first, last = self.code_starts[start + position : start + position + 2]
            codes, feature = self.codes[first:last], nodes.feature[position]
            n_known = self.n_categories[feature]
            if n_known > 0 and nodes.default_left[position] == 1:
                codes = np.setdiff1d(np.arange(n_known), codes)
            else:
                swapped[position] = True
            listed.append(codes.astype(np.int32))
        return listed, swapped

    def _values(
        self,
        tree: int,
        start: int,
        stop: int,
        shift: np.ndarray,
        left: np.ndarray,
        right: np.ndarray,
        thresholds: np.ndarray,
    ) -> dict[str, Any]:
        """Return leaf values, thresholds and weights; XGBoost's weights have no learning rate."""
        values = self.model.values[:, start:stop].T
        is_leaf = left < 0
        rate = self.model.params_of(tree).learning_rate or 1.0
        weights = values / rate
        values = (values + shift).astype(np.float32)
        if not np.isfinite(values[is_leaf]).all():
            raise NotExpressibleError("XGBoost", "a leaf value beyond float32")
        if self.n_outputs == 0:
            weights[is_leaf] = values[is_leaf]
            thresholds = np.where(is_leaf, values[:, 0], thresholds)
            right = np.where(is_leaf, -1, right)
            more = {}
        else:
            right = np.where(is_leaf, np.cumsum(is_leaf) - 1, right)
            more = {"leaf_weights": values[is_leaf].ravel()}
        return {
            "base_weights": weights.astype(np.float32).ravel(),
            "right_children": right.astype(np.int32),
            "split_conditions": thresholds,
            **more,
        }


def _round_up(thresholds: np.ndarray) -> np.ndarray:
    """Return the smallest float32 that are not below: every float32 value goes the same way.

    JSON has no infinity, which divides missing values from all others: the largest float32 does the
    same, but to itself.
    """
    with np.errstate(over="ignore"):
        rounded = thresholds.astype(np.float32)
    rounded = np.where(rounded < thresholds, np.nextafter(rounded, np.float32(np.inf)), rounded)
    return np.clip(rounded, -_LARGEST, _LARGEST)


def _parents(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    parents = np.full(len(left), _NO_PARENT, dtype=np.int32)
    splits = np.flatnonzero(left >= 0)
    parents[left[splits]] = parents[right[splits]] = splits
    return parents
