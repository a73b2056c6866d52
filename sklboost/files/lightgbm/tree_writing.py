"""Trees of ours as sections of a text model of LightGBM."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from sklboost.engine.model import LinearLeaves, Model
from sklboost.files.lightgbm.written_categories import WrittenCategories
from sklboost.files.sections import NotExpressibleError
from sklboost.tree.predict.category_bits import listed_categories

_WORD = 32  # bits
_BY_CATEGORY, _DEFAULT_LEFT, _ZERO, _NAN = 1, 2, 4, 8


class TreeWriter:
    """Makes LightGBM's trees of those of a model.

    LightGBM sends missing and unknown categories right. Where they go left here, the sides change,
    and the set has the other known categories.
    """

    def __init__(self, model: Model, categories: WrittenCategories, missing: float):
        if not (np.isnan(missing) or missing == 0.0):
            raise NotExpressibleError(
                "LightGBM", f"missing={missing}, a number other than 0 that counts as missing"
            )
        if model.linear is not None:
            has_terms = np.diff(model.linear.starts) > 0
            if np.isfinite(model.linear.limits[has_terms]).any():
                raise NotExpressibleError("LightGBM", "limits of linear leaves, as those here have")
        self.model, self.categories, self.missing = model, categories, missing
        self.missing_type = _NAN if np.isnan(missing) else _ZERO

    def trees(self, base_score: np.ndarray) -> Iterator[str]:
        """Yield the trees, vector trees output by output; the first ones have the base score."""
        n_tree_outputs = len(self.model.values)
        for number in range(self.model.n_trees * n_tree_outputs):
            tree, output = divmod(number, n_tree_outputs)
            added = float(base_score[number]) if number < len(base_score) else None
            fields = self._fields(tree, output, added)
            yield "\n".join(f"{name}={_text(values)}" for name, values in fields.items())

    def _fields(self, tree: int, output: int, added: float | None) -> dict[str, Any]:
        """Return the fields of a tree; `added` are added to its leaves, and then its rate is 1."""
        start, stop = self.model.tree_starts[tree : tree + 2].tolist()
        nodes = self.model.nodes[start:stop].view(np.recarray)
        value = self.model.values[output, start:stop] + (added or 0.0)
        leaves, splits = np.flatnonzero(nodes.left < 0), np.flatnonzero(nodes.left >= 0)
        rows = np.maximum(np.rint(nodes.cover), 1.0).astype(np.int64)
        rate = self.model.params_of(tree).learning_rate if added is None else 1.0
        return {
            "num_leaves": len(leaves),
            **self._split_fields(start, nodes, splits),
            "leaf_value": value[leaves],
            "leaf_weight": nodes.cover[leaves],
            "leaf_count": rows[leaves],
            "internal_value": value[splits],
            "internal_weight": nodes.cover[splits],
            "internal_count": rows[splits],
            **_linear_fields(self.model.linear, value[leaves], start + leaves),
            "shrinkage": rate,
        }

    def _split_fields(self, start: int, nodes: np.recarray, splits: np.ndarray) -> dict[str, Any]:
        places = np.empty(len(nodes), dtype=np.int64)  # of splits and leaves, each by themselves
        places[splits] = np.arange(len(splits))
        places[nodes.left < 0] = ~np.arange(len(nodes) - len(splits))
        left, right = places[nodes.left[splits]], places[nodes.right[splits]]
        goes_left = nodes.default_left[splits] == 1
        limits = nodes.threshold[splits]
        by_category = np.isnan(limits)
        sets = [self._set(start, nodes, split) for split in splits[by_category].tolist()]
        # x < t is x <= the number below; nothing is below or equal to NaN
        thresholds = np.where(limits == -np.inf, np.nan, np.nextafter(limits, -np.inf))
        thresholds[by_category] = np.arange(len(sets))
        swapped = by_category & goes_left
        decisions = self.missing_type + _DEFAULT_LEFT * goes_left
        fields: dict[str, Any] = {
            "num_cat": len(sets),
            "split_feature": nodes.feature[splits],
            "split_gain": nodes.gain[splits],
            "threshold": thresholds,
            "decision_type": np.where(by_category, _BY_CATEGORY, decisions),
            "left_child": np.where(swapped, right, left),
            "right_child": np.where(swapped, left, right),
        }
        if sets:
            fields["cat_boundaries"] = np.append(0, np.cumsum([len(words) for words in sets]))
            fields["cat_threshold"] = np.concatenate(sets)
        return fields

    def _set(self, start: int, nodes: np.recarray, split: int) -> np.ndarray:
        """Return the categories that are to go left at a split, as bits in words."""
        feature = nodes.feature[split]
        integers, codes = self.categories.integers[feature], self.categories.codes[feature]
        assert integers is not None
        assert codes is not None
        listed = listed_categories(self.model.tops.bits, start + split)
        goes_left = nodes.default_left[split] == 1
        other = self.categories.others[feature]
        if other is not None and (other in listed) != goes_left:
            raise NotExpressibleError(
                "LightGBM",
                f"other sides for missing and for unknown categories, as feature {feature} has at "
                "a split",
            )
        chosen = integers[np.isin(codes, listed) != goes_left]
        chosen = chosen[chosen != self.missing]  # which goes right
        bits = np.zeros(_WORD * (int(chosen.max(initial=0)) // _WORD + 1), dtype=np.uint8)
        bits[chosen] = 1
        return np.packbits(bits, bitorder="little").view("<u4")


def _linear_fields(
    linear: LinearLeaves | None, value: np.ndarray, leaves: np.ndarray
) -> dict[str, Any]:
    """Return what leaves have beside their values; LightGBM's constants are where all is 0."""
    if linear is None:
        return {"is_linear": 0}
    terms = [linear.terms[linear.starts[leaf] : linear.starts[leaf + 1]] for leaf in leaves]
    centres = np.array([(of_leaf["slope"] * of_leaf["centre"]).sum() for of_leaf in terms])
    return {
        "is_linear": 1,
        "leaf_const": value + linear.shifts[leaves] - centres,
        "num_features": [len(of_leaf) for of_leaf in terms],
        "leaf_features": [feature for of_leaf in terms for feature in of_leaf["feature"].tolist()],
        "leaf_coeff": [slope for of_leaf in terms for slope in of_leaf["slope"].tolist()],
    }


def _text(values: Any) -> str:
    """Return numbers with as many digits as they have."""
    listed: Iterable[Any] = values.tolist() if isinstance(values, np.ndarray) else values
    return " ".join(map(repr, listed if isinstance(listed, list) else [listed]))
