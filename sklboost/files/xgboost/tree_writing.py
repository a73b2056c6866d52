"""Trees of ours in XGBoost's schema."""

from typing import Any

import numpy as np

from sklboost.data.encoding import Encoding
from sklboost.data.ranks import rounded_up
from sklboost.engine.model import Model
from sklboost.files.errors import NotExpressibleError
from sklboost.files.xgboost.categories import written_codes
from sklboost.tree.predict.category_bits import all_listed_categories

_LARGEST = np.finfo(np.float32).max
_NO_PARENT = np.iinfo(np.int32).max
_NO_THRESHOLD = np.float32(1e-45)  # what XGBoost has where there is none


class TreeWriter:
    """Makes XGBoost's trees of those of a model.

    XGBoost sends the listed categories right, and all others left, also those that no row of the
    training has. Here these go where missing values go; so the categories that are listed there
    are those of the other side.
    """

    def __init__(self, model: Model, encodings: tuple[Encoding, ...] | None):
        self.model = model
        self.n_outputs = model.outputs.shape[1]  # 0: trees have one
        self.encodings = encodings or ()
        self.written_codes = [
            written_codes(own) if own.kind == "category" else None for own in self.encodings
        ]
        counts, self.codes = all_listed_categories(model.tops.bits)
        self.code_starts = np.append(0, np.cumsum(counts))

    def tree(self, tree: int, shift: np.ndarray) -> dict[str, Any]:
        """Return a tree; `shift` is added to the values of its leaves, one for each output."""
        start, stop = self.model.tree_starts[tree : tree + 2]
        nodes = self.model.nodes[start:stop].view(np.recarray)
        listed, swapped = self._categories(start, nodes)
        # the right child has to be the one after the left: those that change sides change places
        order, moved = np.arange(len(nodes)), nodes.left[swapped]
        order[moved], order[moved + 1] = moved + 1, moved
        nodes, swapped = nodes[order].view(np.recarray), swapped[order]
        is_leaf = nodes.left < 0
        by_category = ~is_leaf & np.isnan(nodes.threshold)
        codes = [listed[node] for node in order[by_category].tolist()]
        sizes = np.array(list(map(len, codes)), dtype=np.int64)
        rate = self.model.params_of(tree).learning_rate
        return {
            **self._leaves(nodes, self.model.values[:, start + order].T, rate, shift),
            "categories": np.concatenate([np.empty(0, np.int32), *codes], dtype=np.int32),
            "categories_nodes": np.flatnonzero(by_category).astype(np.int32),
            "categories_segments": np.cumsum(sizes) - sizes,
            "categories_sizes": sizes,
            "default_left": ((nodes.default_left == 1) ^ swapped).astype(np.uint8) * ~is_leaf,
            "left_children": nodes.left,
            "loss_changes": _clipped(nodes.gain),
            "parents": _parents(nodes.left),
            "split_indices": np.where(is_leaf, 0, nodes.feature).astype(np.int32),
            "split_type": by_category.astype(np.uint8),
            "sum_hessian": _clipped(nodes.cover * max(self.n_outputs, 1)),
            "tree_param": {
                "num_deleted": "0",
                "num_feature": str(self.model.n_features),
                "num_nodes": str(len(nodes)),
                "size_leaf_vector": str(max(self.n_outputs, 1)),
            },
        }

    def _categories(
        self, start: int, nodes: np.recarray
    ) -> tuple[dict[int, np.ndarray], np.ndarray]:
        """Return the categories to list, by node, and where children change sides."""
        listed, swapped = {}, np.zeros(len(nodes), dtype=bool)
        for node in np.flatnonzero((nodes.left >= 0) & np.isnan(nodes.threshold)).tolist():
            first, last = self.code_starts[start + node : start + node + 2]
            encoding, codes = self.encodings[nodes.feature[node]], self.codes[first:last]
            # of codes that are no category all go right
            swapped[node] = encoding.is_coded or nodes.default_left[node] == 0
            if not swapped[node]:
                codes = np.setdiff1d(encoding.codes, codes)
            numbers = self.written_codes[nodes.feature[node]]
            assert numbers is not None
            listed[node] = numbers[codes].astype(np.int32)
        return listed, swapped

    def _leaves(
        self, nodes: np.recarray, values: np.ndarray, rate: float, shift: np.ndarray
    ) -> dict[str, Any]:
        """Return thresholds, leaf values and right children, which have places in common."""
        is_leaf = nodes.left < 0
        with np.errstate(over="ignore"):
            leaf_values = (values[is_leaf] + shift).astype(np.float32)
        if not np.isfinite(leaf_values).all():
            raise NotExpressibleError("XGBoost", "leaf values beyond float32")
        weights = _clipped(values / (rate or 1.0))  # of splits without learning rate
        weights[is_leaf] = leaf_values
        has_threshold = ~(is_leaf | np.isnan(nodes.threshold))
        thresholds = np.full(len(nodes), _NO_THRESHOLD)
        # JSON has no infinity, which divides missing values from all others: the largest float32
        # does the same for every value but itself
        rounded = rounded_up(nodes.threshold[has_threshold])
        thresholds[has_threshold] = np.clip(rounded, -_LARGEST, _LARGEST)
        right = np.where(is_leaf, -1, nodes.left + 1)
        table = {"base_weights": weights.ravel()}
        if self.n_outputs == 0:
            thresholds[is_leaf] = leaf_values[:, 0]
        else:
            right[is_leaf] = np.arange(len(leaf_values))
            table["leaf_weights"] = leaf_values.ravel()
        return {**table, "split_conditions": thresholds, "right_children": right.astype(np.int32)}


def _clipped(numbers: np.ndarray) -> np.ndarray:
    """Return numbers that only inform as float32: what is beyond its range is its largest."""
    return np.clip(numbers, -_LARGEST, _LARGEST).astype(np.float32)


def _parents(left: np.ndarray) -> np.ndarray:
    parents = np.full(len(left), _NO_PARENT, dtype=np.int32)
    splits = np.flatnonzero(left >= 0)
    parents[left[splits]] = parents[left[splits] + 1] = splits
    return parents
