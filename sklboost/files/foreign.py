"""Trees of other libraries as trees of ours, and what their numbers mean."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sklboost.data.encoding import MOST_CATEGORIES, Encoding, list_encoding
from sklboost.engine.model import (
    LINEAR_TERM_DTYPE,
    NODE_DTYPE,
    OUTPUT_DTYPE,
    LinearLeaves,
    Model,
    Trees,
)
from sklboost.engine.structs import PARAMS_DTYPE, TreeParams, records
from sklboost.files.sections import LARGEST_SCORE, ModelFileError
from sklboost.tree.predict.assembly import assemble_model
from sklboost.tree.predict.category_bits import bits_of_categories


class ModelInfo(NamedTuple):
    """The meaning of the features and raw scores of a model, of any library."""

    task: str
    objective: str  # as `objective` of our estimators; empty for a loss that the user wrote
    # float64, shape (n_outputs,): raw scores before the first tree, shifts after the training
    # included
    base_score: np.ndarray
    n_targets: int  # columns of y; 1 for classes
    n_features: int
    feature_names: list[str] | None = None
    # how the values of features become numbers; None: they are numbers
    encodings: tuple[Encoding, ...] | None = None
    # ndarray or None: labels of a classifier, in the order of its outputs
    classes: np.ndarray | None = None
    missing: float = np.nan  # A further value that counts as missing; NaN: none
    parameters: dict[str, Any] = {}  # noqa: RUF012, never modified
    best_iteration: int | None = None  # the round at which early stopping found the best metric
    chosen_by: str = "objective"  # the parameter of our estimators that names the objective


_NO_CODES = np.empty(0, dtype=np.int64)


class ForeignTree(NamedTuple):
    """One tree of another library; the root is node 0, other nodes have any order.

    Nodes that cannot be reached from the root are left out. Links need not be checked before.
    """

    # int64, shape (n_nodes,): child nodes; both -1 for a leaf
    left: np.ndarray
    right: np.ndarray
    feature: np.ndarray  # int64, shape (n_nodes,): below the number of features; of a leaf anything
    # float64, shape (n_nodes,): ``x < threshold`` goes left. Not read of leaves and of splits on
    # categories.
    threshold: np.ndarray
    # bool, shape (n_nodes,): whether missing values, and categories not seen in training, go left
    default_left: np.ndarray
    # float64, shape (n_nodes, n_tree_outputs): leaf values as they are added to the raw scores.
    # Those of inner nodes only inform.
    value: np.ndarray
    # float64, shape (n_nodes,): not negative and finite: importances, SHAP values and plots read
    # them
    gain: np.ndarray
    cover: np.ndarray
    # float64, shape (n_nodes,) or (n_nodes, n_tree_outputs): sum of gradients; NaN where it is not
    # known
    gradient: np.ndarray
    categories: dict[int, np.ndarray] = {}  # noqa: RUF012, never modified
    linear: dict[int, tuple[list[int], list[float]]] = {}  # noqa: RUF012
    shifts: dict[int, float] = {}  # noqa: RUF012
    # of this tree: leaf values are leaf weights times it. None: as for all trees.
    learning_rate: float | None = None


def encoding_of(categories: list[Any], place: str, *, is_declared: bool) -> Encoding:
    """Return the encoding of categories by code; `place` says where an error is."""
    try:
        return list_encoding(categories, is_declared=is_declared)
    except ValueError as error:
        raise ModelFileError(f"{place}: {error}") from None


def with_equal_left(tree: ForeignTree) -> ForeignTree:
    """Return the tree with ``x < threshold`` for one that sends ``x <= threshold`` left.

    The threshold becomes the next float64. After infinity there is none: such a split sends all
    values left, so its children change sides and the threshold becomes -infinity, which sends all
    values right. A threshold of NaN sends all values right, too.
    """
    next_ones = np.where(np.isnan(tree.threshold), -np.inf, np.nextafter(tree.threshold, np.inf))
    are_all = (tree.threshold == np.inf) & (tree.left >= 0)
    are_all[list(tree.categories)] = False
    return tree._replace(
        left=np.where(are_all, tree.right, tree.left),
        right=np.where(are_all, tree.left, tree.right),
        threshold=np.where(are_all, -np.inf, next_ones),
        default_left=tree.default_left ^ are_all,
    )


def build_model(
    trees: Sequence[ForeignTree],
    places: Sequence[str],
    base_score: np.ndarray,
    n_features: int,
    params: TreeParams,
) -> Model:
    """Return our model of the trees of another library; ModelFileError if they are no trees.

    Round after round, tree t adds to output ``t % n_outputs``, or to all of them. `places` say
    where the trees are, for errors.
    """
    orders = [_order(tree, place) for tree, place in zip(trees, places, strict=True)]
    for tree, order, place in zip(trees, orders, places, strict=True):
        _check_splits(tree, order, n_features, place)
    counts = np.array([len(order) for order in orders], dtype=np.int64)
    pairs = list(zip(trees, orders, strict=True))
    n_outputs = trees[0].value.shape[1] if params.multi_output == 1 else 0
    settings = records(len(trees), PARAMS_DTYPE)
    settings[:] = tuple(params)
    rates = [tree.learning_rate for tree in trees]
    settings.learning_rate = [params.learning_rate if rate is None else rate for rate in rates]
    listed = [tree.categories.get(node, _NO_CODES) for tree, order in pairs for node in order]
    n_listed, is_used = np.array(list(map(len, listed))), any(tree.categories for tree in trees)
    parts = Trees(
        np.concatenate([_nodes(tree, order) for tree, order in pairs], dtype=NODE_DTYPE),
        np.append(0, np.cumsum(counts)),
        np.zeros(len(trees), dtype=np.int64),
        settings,
        np.concatenate([_outputs(tree, order, n_outputs) for tree, order in pairs]),
        bits_of_categories(n_listed, np.concatenate(listed), is_used),
        _linear_leaves(pairs),
    )
    return assemble_model(parts, np.array(base_score, dtype=np.float64), n_features)


def _order(tree: ForeignTree, place: str) -> np.ndarray:
    """Return the nodes in our order: level by level, the right child behind the left one."""
    n_nodes = len(tree.left)
    level = np.zeros(1, dtype=np.int64)
    levels, n_found = [level], 1
    while True:
        splits = level[tree.left[level] >= 0]
        if len(splits) == 0:
            break
        level = np.column_stack([tree.left[splits], tree.right[splits]]).ravel()
        if level.min() < 0 or level.max() >= n_nodes:
            raise ModelFileError(f"{place}: a child node does not exist; there are {n_nodes} nodes")
        levels.append(level)
        n_found += len(level)
        if n_found > n_nodes:  # before the next level: a cycle has no end
            raise ModelFileError(f"{place}: a node has two parents")
    order = np.concatenate(levels)
    if np.bincount(order).max() > 1:
        raise ModelFileError(f"{place}: a node has two parents")
    if (tree.right[order[tree.left[order] < 0]] >= 0).any():
        raise ModelFileError(f"{place}: a node has one child")
    return order


def _check_splits(tree: ForeignTree, order: np.ndarray, n_features: int, place: str) -> None:
    splits = order[tree.left[order] >= 0]
    features = tree.feature[splits]
    if ((features < 0) | (features >= n_features)).any():
        raise ModelFileError(f"{place}: splits on a feature that does not exist ({n_features} do)")
    numeric = [node for node in splits.tolist() if node not in tree.categories]
    if np.isnan(tree.threshold[numeric]).any():
        raise ModelFileError(f"{place}: a threshold is NaN")
    sizes = [np.abs(part[order]).max() for part in (tree.value, tree.cover, tree.gain)]
    if not np.max(sizes) <= LARGEST_SCORE or tree.cover[order].min() < 0.0:
        raise ModelFileError(
            f"{place}: a leaf value, a cover or a gain is not finite or too large, or a cover is "
            "negative"
        )
    for codes in tree.categories.values():
        if len(codes) > 0 and (codes[0] < 0 or codes[-1] >= MOST_CATEGORIES):
            raise ModelFileError(f"{place}: a category is not from 0 to {MOST_CATEGORIES - 1}")
        if (np.diff(codes) <= 0).any():
            raise ModelFileError(f"{place}: the categories of a split do not increase")
    for used, slopes in tree.linear.values():
        if not all(0 <= feature < n_features for feature in used) or len(slopes) != len(used):
            raise ModelFileError(f"{place}: a linear leaf has terms of features that do not exist")
        if not np.isfinite(slopes).all():
            raise ModelFileError(f"{place}: a slope of a linear leaf is not finite")


def _nodes(tree: ForeignTree, order: np.ndarray) -> np.recarray:
    nodes = records(len(order), NODE_DTYPE)
    is_split = tree.left[order] >= 0
    left = 2 * np.cumsum(is_split) - 1
    nodes.left = np.where(is_split, left, -1)
    nodes.right = np.where(is_split, left + 1, -1)
    nodes.feature = np.where(is_split, tree.feature[order], -1)
    nodes.default_left = np.where(is_split, tree.default_left[order], 0)
    nodes.gain = np.where(is_split, tree.gain[order], 0.0)
    by_category = np.isin(order, list(tree.categories))
    nodes.threshold = np.where(is_split & ~by_category, tree.threshold[order], np.nan)
    nodes.value, nodes.cover = tree.value[order, 0], tree.cover[order]
    nodes.gradient = tree.gradient[order].reshape(len(order), -1)[:, 0]
    return nodes


def _outputs(tree: ForeignTree, order: np.ndarray, n_outputs: int) -> np.ndarray:
    """Return what a vector tree has for each output; hessians are taken to be alike."""
    outputs = np.empty((len(order), n_outputs), dtype=OUTPUT_DTYPE)
    if n_outputs > 0:
        outputs["value"] = tree.value[order]
        outputs["gradient"] = tree.gradient[order].reshape(len(order), -1)
        outputs["hessian"] = tree.cover[order, np.newaxis]
    return outputs


def _linear_leaves(pairs: Sequence[tuple[ForeignTree, np.ndarray]]) -> LinearLeaves | None:
    if not any(tree.linear or tree.shifts for tree, _ in pairs):
        return None
    nodes = [(tree, node) for tree, order in pairs for node in order.tolist()]
    of_nodes = [tree.linear.get(node, ([], [])) for tree, node in nodes]
    starts = np.append(0, np.cumsum([len(features) for features, _ in of_nodes], dtype=np.int64))
    terms = records(int(starts[-1]), LINEAR_TERM_DTYPE)
    terms.feature = [feature for features, _ in of_nodes for feature in features]
    terms.slope = [slope for _, slopes in of_nodes for slope in slopes]
    terms.centre = 0.0
    limits = np.tile([-np.inf, np.inf], (len(nodes), 1))
    shifts = np.array([tree.shifts.get(node, 0.0) for tree, node in nodes])
    return LinearLeaves(starts, shifts, limits, terms)


# Relative to the gain and to the similarities, of which it is a difference: other libraries round
# gradients to float32, and LightGBM writes gains with six digits.
_OF_GAIN, _OF_SIMILARITIES = 1e-3, 1e-5


def add_up(left: np.ndarray, right: np.ndarray, of_leaves: np.ndarray) -> np.ndarray:
    """Return sums of all nodes, whose children come behind them, from those of leaves."""
    sums = np.zeros(len(left))
    is_leaf = left < 0
    sums[is_leaf] = of_leaves
    for node in np.flatnonzero(~is_leaf)[::-1].tolist():
        sums[node] = sums[left[node]] + sums[right[node]]
    return sums


def with_gradients(tree: ForeignTree, reg_lambda: float) -> ForeignTree:
    """Return the tree with the sums of gradients from which its leaf values follow.

    Leaf weights are ``-G / (H + lambda)`` unless other parameters changed them, so G follows from
    the weights and H. It is kept only if the gains computed from G and H agree with the library's;
    then these gains and the values of inner nodes replace the library's, which may be rounded. Else
    the tree is returned as it is. It has one output, gains and its learning rate, and children come
    behind their parents.
    """
    rate, penalised = tree.learning_rate or np.nan, tree.cover + reg_lambda
    is_split = tree.left >= 0
    of_leaves = -(tree.value[:, 0] / rate * penalised)[~is_split]
    gradient = add_up(tree.left, tree.right, of_leaves)
    similarity = gradient**2 / penalised
    parts = similarity[tree.left] + similarity[tree.right]
    gain = np.where(is_split, parts - similarity, 0.0)
    room = _OF_GAIN * np.abs(tree.gain) + _OF_SIMILARITIES * (parts + similarity)
    if not (np.abs(gain - tree.gain) <= room)[is_split].all() or not is_split.any():
        return tree
    value = np.where(is_split, -rate * gradient / penalised, tree.value[:, 0])
    return tree._replace(gradient=gradient, gain=np.maximum(gain, 0.0), value=value[:, np.newaxis])
