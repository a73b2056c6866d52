"""Models of ours in XGBoost's schema."""

import json
from typing import Any

import numpy as np

from sklboost.data.binning import rounded_up
from sklboost.data.encoding import MOST_CATEGORIES, Encoding
from sklboost.engine.model import Model
from sklboost.files.foreign import ModelInfo
from sklboost.files.sections import NotExpressibleError
from sklboost.files.xgboost_reading import CUT_OFF, INT64, LOG, LOG_ODDS, SHARED
from sklboost.tree.predict.category_bits import all_listed_categories

_LARGEST = np.finfo(np.float32).max
_NO_PARENT = np.iinfo(np.int32).max
_NO_THRESHOLD = np.float32(1e-45)  # what XGBoost has where there is none
# XGBoost's estimators go by the schema of the version that a file names.
_OLD_VERSION, _NEW_VERSION = [2, 1, 0], [3, 2, 0]
_NO_NAME_HAS = "[]<"  # XGBoost's text dumps give these a meaning
_LEAST = float(np.finfo(np.float32).tiny)
_KINDS = {"regression": "regressor", "ranking": "ranker", "survival": "regressor"}


def learner_document(model: Model, info: ModelInfo) -> dict[str, Any]:
    """Return the keys ``learner`` and ``version`` of XGBoost's model files.

    XGBoost then predicts the same for every float32 row, up to the rounding of its sums, which are
    float32. Thresholds are rounded up to float32; dart's trees have their weights in their leaves.
    The version is 2.1, unless the model needs what came later. NotExpressibleError if XGBoost has
    no way to say what the model is.
    """
    _check(model, info)
    sign = SHARED[info.task][info.objective].sign
    base_score, rest = _base_score(info._replace(base_score=sign * info.base_score))
    is_old = len(set(base_score)) == 1 and model.params_of(0).multi_output == 0
    text = ",".join(f"{score:.9g}" for score in base_score[: 1 if is_old else None])
    categories = write_categories(info.encodings)
    is_old = is_old and categories is None
    kind = _KINDS.get(info.task, "classifier")
    attributes = {"scikit_learn": json.dumps({"_estimator_type": kind})}
    if info.best_iteration == model.n_rounds - 1:
        attributes["best_iteration"] = str(info.best_iteration)
    types = ["float"] * info.n_features if info.feature_names is not None else []
    if info.encodings is not None:
        types = ["c" if encoding.kind == "category" else "float" for encoding in info.encodings]
    learner = {
        "attributes": attributes,
        "feature_names": info.feature_names or [],
        "feature_types": types,
        "gradient_booster": {
            "model": _trees(model, info, rest, sign, categories),
            "name": "gbtree",
        },
        "learner_model_param": {
            "base_score": text if is_old else f"[{text}]",
            "boost_from_average": "1",
            "num_class": str(model.n_outputs if info.task == "multiclass" else 0),
            "num_feature": str(model.n_features),
            "num_target": str(1 if info.task == "multiclass" else model.n_outputs),
        },
        "objective": _objective(model, info),
    }
    return {"learner": learner, "version": _OLD_VERSION if is_old else _NEW_VERSION}


def _check(model: Model, info: ModelInfo) -> None:
    """Raise NotExpressibleError for a model that XGBoost cannot have."""
    if info.objective == "":
        raise NotExpressibleError("a loss of your own")
    if info.objective not in SHARED.get(info.task, ()):
        raise NotExpressibleError(f"{info.chosen_by}={info.objective!r} with the same predictions")
    if len(info.parameters.get("quantile_alpha", ())) > 1:
        raise NotExpressibleError(
            "several values of quantile_alpha whose predictions are put in order"
        )
    if model.linear is not None:
        raise NotExpressibleError("linear leaves")
    if not np.isnan(info.missing):
        raise NotExpressibleError(
            f"missing={info.missing}, a number that counts as missing, in its files"
        )
    labels = [] if info.classes is None or info.task == "multilabel" else info.classes.tolist()
    if len(labels) == 1:
        raise NotExpressibleError(f"a single class, {labels[0]!r}")
    if labels != list(range(len(labels))):
        shown = ", ".join(map(repr, labels[:3])) + ", ..." * (len(labels) > 3)
        raise NotExpressibleError(f"labels {shown}: its classes are 0, 1, 2, ...")
    names = info.feature_names or []
    wrong = [name for name in names if any(mark in name for mark in _NO_NAME_HAS)]
    if wrong:
        raise NotExpressibleError(
            f"the feature name {wrong[0]!r}: XGBoost's have none of {_NO_NAME_HAS}"
        )
    if len(set(names)) < len(names):
        raise NotExpressibleError("two features of the same name")


def _base_score(info: ModelInfo) -> tuple[np.ndarray, np.ndarray]:
    """Return the base score as XGBoost has it, and what its rounding leaves of the raw scores.

    XGBoost's is a prediction in float32: a probability close to 1 has lost the digits that count.
    """
    raw = info.base_score
    if info.objective in LOG:
        largest = float(np.finfo(np.float32).max)
        score = np.exp(np.clip(raw, np.log(_LEAST), np.log(largest) - 1.0)).astype(np.float32)
        return score, raw - np.log(score.astype(np.float64))
    if info.objective in LOG_ODDS:
        chance = np.clip(1.0 / (1.0 + np.exp(-np.clip(raw, -50.0, 50.0))), 1e-5, 1.0 - 1e-5)
        score = chance.astype(np.float32)
        chance = score.astype(np.float64)
        return score, raw - (np.log(chance) - np.log1p(-chance))
    score = raw.astype(np.float32)
    return score, raw - score


def _objective(model: Model, info: ModelInfo) -> dict[str, Any]:
    name, shared = info.objective, SHARED[info.task][info.objective]
    if not shared.section:
        return {"name": name}
    parameters = dict(shared.written)
    for own in shared.parameters:
        value = info.parameters[own]
        text = value if isinstance(value, str) else f"{value[0]:.9g}"
        parameters[own] = f"[{text}]" if shared.is_list else text
    if info.task == "multiclass":
        parameters["num_class"] = str(model.n_outputs)
    return {"name": name, shared.section: parameters}


def _trees(
    model: Model, info: ModelInfo, rest: np.ndarray, sign: float, categories: dict[str, Any] | None
) -> dict[str, Any]:
    """Return the section of the trees; `rest` is added to the leaves of the first round."""
    writer = TreeWriter(model, info.encodings, sign)
    settings = model.params_of(0)
    n_parallel, per_round = settings.num_parallel_tree, model.trees_per_round
    n_groups = per_round // n_parallel
    # XGBoost has all parallel trees of an output, then all of the next
    order = np.arange(model.n_trees).reshape(-1, n_parallel, n_groups).swapaxes(1, 2).ravel()
    added = rest.reshape(n_groups, -1)  # a row for each tree of the first n_groups
    trees = []
    for number, tree in enumerate(order.tolist()):
        shift = added[tree] if tree < n_groups else np.zeros(added.shape[1])
        trees.append({**writer.tree(tree, shift), "id": number})
    return {
        "cats": categories or {"enc": [], "feature_segments": [], "sorted_idx": []},
        "gbtree_model_param": {
            "num_parallel_tree": str(n_parallel),
            "num_trees": str(model.n_trees),
        },
        "iteration_indptr": list(range(0, model.n_trees + 1, per_round)),
        "tree_info": (order % n_groups).tolist(),
        "trees": trees,
    }


class TreeWriter:
    """Makes XGBoost's trees of the trees of a model.

    XGBoost sends the listed categories right, and all others left, also those that no row of the
    training has. Here these go where missing values go; so the categories
    listed there are the ones that go left here.
    """

    def __init__(self, model: Model, encodings: tuple[Encoding, ...] | None, sign: float):
        self.model = model
        self.sign = sign  # of XGBoost's raw scores by ours
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
        # the right child has to be the one after the left: children that change sides change places
        order, moved = np.arange(len(nodes)), nodes.left[swapped]
        order[moved], order[moved + 1] = moved + 1, moved
        nodes, swapped = nodes[order].view(np.recarray), swapped[order]
        is_leaf = nodes.left < 0
        by_category = ~is_leaf & np.isnan(nodes.threshold)
        codes = [listed[node] for node in order[by_category].tolist()]
        sizes = np.array(list(map(len, codes)), dtype=np.int64)
        rate = self.model.params_of(tree).learning_rate
        splits = np.flatnonzero(~is_leaf)
        parents = np.full(len(nodes), _NO_PARENT, dtype=np.int32)
        parents[nodes.left[splits]] = parents[nodes.left[splits] + 1] = splits
        return {
            **self._leaves(nodes, self.sign * self.model.values[:, start + order].T, rate, shift),
            "categories": np.concatenate([np.empty(0, np.int32), *codes], dtype=np.int32),
            "categories_nodes": np.flatnonzero(by_category).astype(np.int32),
            "categories_segments": np.cumsum(sizes) - sizes,
            "categories_sizes": sizes,
            "default_left": ((nodes.default_left == 1) ^ swapped).astype(np.uint8) * ~is_leaf,
            "left_children": nodes.left,
            "loss_changes": _clipped(nodes.gain),
            "parents": parents,
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
            if len(codes) == 0:
                raise NotExpressibleError(
                    "a split of known categories from missing ones, as max_ctr_complexity=1 makes"
                )
        return listed, swapped

    def _leaves(
        self, nodes: np.recarray, values: np.ndarray, rate: float, shift: np.ndarray
    ) -> dict[str, Any]:
        """Return thresholds, leaf values and right children, which have places in common."""
        is_leaf = nodes.left < 0
        with np.errstate(over="ignore"):
            leaf_values = (values[is_leaf] + shift).astype(np.float32)
        if not np.isfinite(leaf_values).all():
            raise NotExpressibleError("leaf values beyond float32")
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


# --- categories, stored as xgboost_reading.py describes them


def write_categories(encodings: tuple[Encoding, ...] | None) -> dict[str, Any] | None:
    """Return the section ``cats``; None if there are no values to be stored.

    NotExpressibleError for features that XGBoost cannot read.
    """
    columns = [_stored_values(encoding) for encoding in encodings or ()]
    if all(values is None for values in columns):
        return None
    entries = [_entry(values) for values in columns]
    # the places of the values of each feature in increasing order
    orders = [
        np.array(sorted(range(len(values)), key=values.__getitem__))
        for values in columns
        if values is not None
    ]
    sizes = [0 if values is None else len(values) for values in columns]
    return {
        "enc": entries,
        "feature_segments": np.append(0, np.cumsum(sizes)).astype(np.int32),
        "sorted_idx": np.concatenate(orders).astype(np.int32),
    }


def _stored_values(encoding: Encoding) -> list[Any] | None:
    """Return the categories by XGBoost's codes; None for numbers, and for codes of the user's."""
    if encoding.kind != "category" or encoding.is_coded:
        if not (encoding.is_plain or encoding.is_coded):
            raise NotExpressibleError(f"features of the kind {encoding.unit or 'large integer'}")
        return None
    order = np.argsort(encoding.codes, kind="stable").tolist()
    values = [encoding.listed_categories[place] for place in order]
    if len(values) > encoding.n_categories:
        raise NotExpressibleError(
            f"feature with {len(values)} categories of {encoding.n_categories} codes"
        )
    if not values:  # its own frames cannot have such columns either
        raise NotExpressibleError(
            "category features without a category, all values of which are missing"
        )
    if encoding.are_integers_below(MOST_CATEGORIES):
        return list(range(int(max(values)) + 1))
    if encoding.is_declared and encoding.categories.dtype.kind in "iuf":
        largest = MOST_CATEGORIES - 1
        raise NotExpressibleError(
            f"categories in columns of numbers but integers from 0 to {largest}"
        )
    if not (encoding.is_of_text or encoding.categories.dtype.kind == "i"):
        raise NotExpressibleError(f"categories such as {values[0]!r}: they are text or integers")
    for value in values:
        if isinstance(value, str) and not value.isascii():
            raise NotExpressibleError(f"categories such as {value!r}: {CUT_OFF}")
    return values


def written_codes(encoding: Encoding) -> np.ndarray:
    """Return XGBoost's code for each code of a category whose values can be stored."""
    if not encoding.are_integers_below(MOST_CATEGORIES):
        return np.arange(encoding.n_categories)
    return encoding.categories[np.argsort(encoding.codes, kind="stable")].astype(np.int64)


def _entry(values: list[Any] | None) -> dict[str, Any]:
    if values is None:
        return {"offsets": np.empty(0, dtype=np.int32), "values": np.empty(0, dtype=np.int8)}
    if not isinstance(values[0], str):
        return {"type": INT64, "values": np.array(values, dtype=np.int64)}
    words = [value.encode("ascii") for value in values]
    return {
        "offsets": np.append(0, np.cumsum([len(word) for word in words])).astype(np.int32),
        "values": np.frombuffer(b"".join(words), dtype=np.int8),
    }
