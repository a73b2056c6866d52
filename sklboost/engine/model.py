"""A finished model as arrays: its nodes, and the forms in which prediction reads them.

Trees lie one after the other in flat arrays, which kernels read and which are saved as they are.
"""

from typing import Any, NamedTuple

import numpy as np

from sklboost.engine.cached import cached_property
from sklboost.engine.packing import PackedOnce
from sklboost.engine.structs import TreeParams

# One node of a finished tree. Wide fields first, so that nothing is padded between.
# In a vector tree value and gradient are of the first output, and the cover is the mean of
# all outputs'. The threshold is float64: float64 features are compared without rounding. int32
# links are enough for 2^30 rows, each in a leaf of its own.
NODE_DTYPE = np.dtype(
    [
        # x < threshold goes left; NaN for a leaf, and where a set of categories does (CategoryBits)
        ("threshold", np.float64),
        ("value", np.float64),  # leaf value: learning rate times leaf weight
        ("gain", np.float64),  # of its split, 0 for a leaf
        ("gradient", np.float64),  # G: sum of gradients of its rows
        ("cover", np.float64),  # H: sum of hessians of its rows
        ("feature", np.int32),
        ("left", np.int32),  # child nodes, counted from the tree's root; -1 for a leaf
        ("right", np.int32),
        ("default_left", np.int32),  # 1: missing values go left
    ],
    align=True,
)


# One output of a node of a vector tree, whose leaves have a value for each output.
OUTPUT_DTYPE = np.dtype(
    [
        ("value", np.float64),  # as in NODE_DTYPE
        ("gradient", np.float64),
        ("hessian", np.float64),  # sum of hessians of its rows
    ],
    align=True,
)


# One node in the form that prediction walks through. A leaf leads to itself: NaN is above nothing,
# and a missing value stays on the "left". So every row can take the same number of steps, without a
# branch.
ROUTE_DTYPE = np.dtype(
    [
        ("threshold", np.float64),  # x >= threshold goes to left + 1; NaN for a leaf
        ("left", np.int32),  # counted from the first tree's root; the leaf itself for a leaf
        ("feature", np.int32),
        ("default_left", np.int32),
        ("has_categories", np.int32),  # 1: a set of categories stands in for the threshold
    ],
    align=True,
)


# Prediction takes splits above this depth for 512 rows at once, see TreeTops.
TOP_DEPTH = 6
N_LANDINGS = 2**TOP_DEPTH  # 64, which `descend` is made for
ALL_ROWS = np.uint64(0xFFFFFFFFFFFFFFFF)  # as the bits of a word

# One split above TOP_DEPTH.
TOP_SPLIT_DTYPE = np.dtype(
    [
        ("missing_right", np.uint64),  # all bits 1: missing values go right; else 0
        ("column", np.int32),  # of the block of rows: TreeTops.features[column] is the feature
        ("node", np.int32),  # among the nodes of all trees, if it has a set of categories; else -1
        ("place", np.int32),  # the first of the tree's landings on its right
        # 1: the rows are bins, and the threshold lies within the bin that it is compared with
        ("cuts_bin", np.int32),
    ],
    align=True,
)


class CategoryBits(NamedTuple):
    """The categories that go left, as bits, in the order of the nodes of all trees.

    All others go right, also those that no row of the node has. Words of 0 are left out, see
    ``tree/predict/category_bits.py``.
    """

    # int64, shape (n_nodes_of_all_trees + 1,) or (0,): node k has the words ``starts[k]`` to
    # ``starts[k + 1]``, excluded. Empty: no tree is split on categories.
    starts: np.ndarray
    # uint16, shape (n_words,): the numbers w of the words, increasing within a node
    numbers: np.ndarray
    # uint64, shape (n_words,): bit b of word number w: whether category ``64 w + b`` goes left
    words: np.ndarray
    # ``(1,)``, or ``()`` if no tree is split on categories: a length that the compiler knows
    in_use: tuple[int, ...]


NO_BITS = CategoryBits(
    np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint16), np.empty(0, dtype=np.uint64), ()
)


class TreeTops(NamedTuple):
    """The splits of all trees above TOP_DEPTH, for many rows at once."""

    splits: np.recarray  # tree after tree, parents before their children
    # float64 and of float32, shape (n_splits,): x >= threshold goes right; rounded up, so that this
    # holds for float32 values alike
    thresholds: np.ndarray
    thresholds32: np.ndarray
    # int64, shape (n_trees + 1,): tree t has ``splits[starts[t]:starts[t + 1]]``
    starts: np.ndarray
    # int32, shape (n_trees, N_LANDINGS): the nodes that rows come to, from left to right, as
    # numbers of ``Model.routes``. A leaf that is not as deep as TOP_DEPTH has all the landings that
    # a tree below it would have.
    landings: np.ndarray
    # float64, shape (n_trees, n_tree_outputs, N_LANDINGS): the values of these nodes
    values: np.ndarray
    features: np.ndarray  # int64, shape (n_columns,): the features of these splits
    bits: CategoryBits  # of all nodes, those further down included


# One feature of a linear leaf.
LINEAR_TERM_DTYPE = np.dtype(
    [
        ("slope", np.float64),  # learning rate included
        ("centre", np.float64),  # mean of its rows, weighted by their hessians
        ("feature", np.int64),
    ],
    align=True,
)


class LinearLeaves(NamedTuple):
    """The linear terms of leaves, in the order of the nodes of all trees.

    A row in node k gets, in addition to ``nodes[k].value``::

        shifts[k] + sum of slope * (x[feature] - centre)

    over the terms of k, but no less and no more than its limits; or nothing, if one of these x is
    missing or infinite.
    """

    # int64, shape (n_nodes_of_all_trees + 1,): node k has ``terms[starts[k]:starts[k + 1]]``
    starts: np.ndarray
    # float64, shape (n_nodes_of_all_trees,): 0 unless some of the leaf's rows have missing or
    # infinite values
    shifts: np.ndarray
    # float64, shape (n_nodes_of_all_trees, 2): the least and the most that a training row gets
    limits: np.ndarray
    terms: np.recarray  # LINEAR_TERM_DTYPE, shape (n_terms,)


class Trees(NamedTuple):
    """Finished trees, one after the other."""

    # NODE_DTYPE, shape (n_nodes_of_all_trees,): the links of a node count from its tree's root
    nodes: np.ndarray
    # int64, shape (n_trees + 1,): tree t owns ``nodes[starts[t]:starts[t + 1]]``
    starts: np.ndarray
    n_pruned: np.ndarray  # int64, shape (n_trees,): splits that pruning removed from each tree
    params: np.ndarray  # PARAMS_DTYPE, shape (n_trees,): the settings each tree was grown with
    # OUTPUT_DTYPE, shape (n_nodes_of_all_trees, n_tree_outputs or 0): of vector trees; others have
    # all they need in `nodes`
    outputs: np.ndarray
    bits: CategoryBits  # of the splits on categories
    linear: LinearLeaves | None = None  # None: all leaves are constant
    # the same trees before pruning, with nodes in the order of growth. None: not kept.
    unpruned: "Trees | None" = None


class _PathFields(NamedTuple):
    """The fields of :class:`Paths`."""

    tree_starts: np.ndarray
    depths: np.ndarray
    routes: np.recarray
    values: np.ndarray
    bits: CategoryBits


class Paths(_PathFields, PackedOnce):
    """The fields of a :class:`Model` that take a row down its trees one step after the other.

    Where kernels are compiled, to pass one a whole model takes longer than to predict a row.
    """


class _ModelFields(NamedTuple):
    """The fields of :class:`Model`; instances of a subclass have room for the packed words."""

    nodes: np.recarray
    tree_starts: np.ndarray
    routes: np.recarray
    values: np.ndarray
    tops: TreeTops
    depths: np.ndarray
    n_pruned: np.ndarray
    base_score: np.ndarray
    params: np.recarray
    n_features: int
    outputs: np.recarray
    linear: LinearLeaves | None = None
    unpruned: Trees | None = None


class Model(_ModelFields, PackedOnce):
    """Everything that prediction and inspection need.

    Attributes
    ----------
    nodes, n_pruned, params, outputs, linear, unpruned
        As in :class:`Trees`.
    tree_starts : ndarray of int64, shape (n_trees + 1,)
        Tree t owns ``nodes[tree_starts[t]:tree_starts[t + 1]]`` and adds to output
        ``t % n_outputs``, a vector tree to all of them.
    routes : recarray of ROUTE_DTYPE, shape (n_nodes_of_all_trees,)
        The same nodes for prediction.
    values : ndarray of float64, shape (n_tree_outputs, n_nodes_of_all_trees)
        Their values.
    tops : TreeTops
        Their splits above TOP_DEPTH once more.
    depths : ndarray of int64, shape (n_trees,)
        Most splits on the way to a leaf of each tree.
    base_score : ndarray of float64, shape (n_outputs,)
        Raw score before the first tree.
    n_features : int
        Number of features of the training data.
    """

    _constant: "Model"

    @cached_property
    def paths(self) -> Paths:
        """What takes a few rows down the trees."""
        return Paths(self.tree_starts, self.depths, self.routes, self.values, self.tops.bits)

    @cached_property
    def rankings(self) -> dict[str, Any]:
        """Its thresholds as earlier predictions have sorted them, by the dtype of the rows."""
        return {}

    @property
    def constant(self) -> "Model":
        """The same model without linear leaves and unpruned trees: what kernels take."""
        if self.linear is None and self.unpruned is None:
            return self  # not kept: a model that refers to itself is freed late
        if not hasattr(self, "_constant"):
            self._constant = self._replace(linear=None, unpruned=None)
        return self._constant

    def params_of(self, tree: int) -> TreeParams:
        """Return the settings of one tree."""
        return TreeParams(*self.params[tree].item())

    @property
    def n_trees(self) -> int:
        """Number of trees: rounds times the trees of a round."""
        return len(self.tree_starts) - 1

    @property
    def n_outputs(self) -> int:
        """Number of raw scores per row."""
        return len(self.base_score)

    @cached_property
    def trees_per_round(self) -> int:
        """Number of trees of a round, the same in all rounds."""
        return self.params_of(0).trees_per_round(self.n_outputs)

    @property
    def n_rounds(self) -> int:
        """Number of boosting rounds."""
        return self.n_trees // self.trees_per_round
