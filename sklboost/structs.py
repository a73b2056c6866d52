"""The records and groups that several rooms pass on, and nothing else.

Groups of arrays are NamedTuples (flat, free in compiled loops); per-item state is NumPy records,
made by :func:`records` so that ``item.field`` works compiled and interpreted alike.
"""

from typing import NamedTuple, get_type_hints

import numpy as np


def records(shape: int | tuple[int, ...], dtype: np.dtype) -> np.recarray:
    """Make an uninitialised array of records whose fields are attributes.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the array. Large ones cost no memory before they are written.
    dtype : dtype
        One of the record types of this package.
    """
    return np.empty(shape, dtype=dtype).view(np.recarray)


# One node of a finished tree, saved as it is. Wide fields first, so that nothing is padded between.
# In a vector tree value and gradient are those of the first output, and the cover is the mean of
# all outputs'.
# float64 threshold: float64 features are compared without rounding. int32 links: enough for 2^30
# rows, each a leaf of its own.
NODE_DTYPE = np.dtype(
    [
        # x < threshold goes left; NaN for a leaf, and where a set of levels does (see LevelBits)
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


# What a node of a vector tree, whose leaves have a value for each output, has of one of them.
OUTPUT_DTYPE = np.dtype(
    [
        ("value", np.float64),  # as in NODE_DTYPE
        ("gradient", np.float64),
        ("hessian", np.float64),  # sum of hessians of its rows
    ],
    align=True,
)


# One node as prediction walks through it. A leaf leads to itself: NaN is above nothing, and a
# missing value stays on the "left". So every row can take the same number of steps, without a
# branch.
ROUTE_DTYPE = np.dtype(
    [
        ("threshold", np.float64),  # x >= threshold goes to left + 1; NaN for a leaf
        ("left", np.int32),  # counted from the first tree's root; the leaf itself for a leaf
        ("feature", np.int32),
        ("default_left", np.int32),
        ("has_levels", np.int32),  # 1: a set of levels stands in for the threshold
    ],
    align=True,
)


# Prediction takes the first so many levels of a tree for 64 rows at once, see TreeTops.
TOP_LEVELS = 6
ALL_ROWS = np.uint64(0xFFFFFFFFFFFFFFFF)  # as the bits of a word

# One split of the first levels.
TOP_SPLIT_DTYPE = np.dtype(
    [
        ("missing_right", np.uint64),  # all bits 1: missing values go right; else 0
        ("column", np.int32),  # of the block of rows: TreeTops.features[column] is the feature
        ("place", np.int32),  # 1 for the root; the children of p are 2 p and 2 p + 1
        ("node", np.int32),  # the node among those of all trees, if it has a set of levels; else -1
        ("level", np.int16),  # 0 for the root
        # 1: the rows are bins, and the threshold lies within the bin that it is compared with
        ("cuts_bin", np.int16),
    ],
    align=True,
)


class LevelBits(NamedTuple):
    """The levels of categories that go left, as bits, in the order of the nodes of all trees.

    All other levels go right: also those that no row of the node has.

    Attributes
    ----------
    starts : ndarray of int64, shape (n_nodes_of_all_trees + 1,) or (0,)
        Node k has ``words[starts[k]:starts[k + 1]]``, as many as its largest level needs. Empty: no
        tree is split on categories.
    words : ndarray of uint64, shape (n_words,)
        Bit b of word w says that level ``64 w + b`` goes left.
    in_use : tuple of int
        ``(1,)``, or ``()`` if no tree is split on categories: a length that the compiler knows.
    """

    starts: np.ndarray
    words: np.ndarray
    in_use: tuple[int, ...]


NO_BITS = LevelBits(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64), ())


class TreeTops(NamedTuple):
    """The first levels of all trees, for many rows at once.

    Attributes
    ----------
    splits : recarray of TOP_SPLIT_DTYPE, shape (n_splits,)
        Tree after tree, parents before their children.
    thresholds, thresholds32 : ndarray of float64 and of float32, shape (n_splits,)
        x >= threshold goes right; rounded up, so that this holds for float32 values alike.
    starts : ndarray of int64, shape (n_trees + 1,)
        Tree t has ``splits[starts[t]:starts[t + 1]]``.
    landings : ndarray of int32, shape (n_trees, 2**TOP_LEVELS)
        The node that a row has come to, as a number of ``Model.routes``, by its decisions read as
        binary digits, the first one highest, right being 1; after a leaf the digits are 0.
    values : ndarray of float64, shape (n_trees, n_tree_outputs, 2**TOP_LEVELS)
        The values of these nodes.
    features : ndarray of int64, shape (n_columns,)
        The features that occur.
    bits : LevelBits
        Of all nodes, those further down included.
    """

    splits: np.recarray
    thresholds: np.ndarray
    thresholds32: np.ndarray
    starts: np.ndarray
    landings: np.ndarray
    values: np.ndarray
    features: np.ndarray
    bits: LevelBits


class TreeParams(NamedTuple):
    """Read-only settings of a tree, cast once by :func:`tree_params`.

    The pruning modes are data, not branches: ``grow_gain`` is the least gain with which a split is
    grown, ``prune_gain`` the least with which pruning leaves it.
    """

    learning_rate: float
    reg_lambda: float
    reg_alpha: float
    min_child_weight: float
    max_delta_step: float  # infinite: no limit
    grow_gain: float
    prune_gain: float
    ccp_alpha: float  # least gain of a branch, per split and unit of the root's cover
    subsample: float  # of the rows, for each turn of a round
    colsample_bytree: float
    colsample_bylevel: float
    colsample_bynode: float
    gradient_based: int  # 1: rows of large gradients are likelier to be drawn
    path_smooth: float  # 0: a leaf does not lean on its parent
    extra_trees: int  # 1: one random threshold for each feature of a node
    max_depth: int  # at least 1; a large number: no limit
    max_leaves: int  # likewise
    best_first: int  # 1: lossguide, 0: depthwise
    linear_tree: int  # 1: its leaves are linear
    linear_lambda: float
    multi_output: int  # 1: trees have a value for each output in their leaves
    num_parallel_tree: int  # trees that a round adds to each output
    max_cat_to_onehot: int  # features of fewer levels are split one level against the others
    max_cat_threshold: int  # levels that a split can list
    cat_smooth: float  # added to H when levels are put in order

    def n_tree_outputs(self, n_outputs: int) -> int:
        """Give the number of outputs that one tree has values for."""
        return n_outputs if self.multi_output == 1 else 1

    def trees_per_round(self, n_outputs: int) -> int:
        """Give the number of trees that a round adds."""
        return self.num_parallel_tree * n_outputs // self.n_tree_outputs(n_outputs)


class FeatureRules(NamedTuple):
    """What the user has laid down for single features, the same for all trees of a fit.

    Attributes
    ----------
    signs : ndarray of int64, shape (n_features,)
        1: leaf weights do not fall where the feature rises, -1: they do not rise, 0: free.
    groups : ndarray of uint64, shape (n_features, n_words) or (0, 0)
        As sets of bits, the groups that each feature belongs to; the features of a path belong to
        one group. A feature of no group is alone on its paths. Empty: no such rule.
    most_together : int
        Different features that a path may have.
    weights : ndarray of float64, shape (n_features,) or (0,)
        How likely each is drawn, positive; empty: all alike.
    """

    signs: np.ndarray
    groups: np.ndarray
    most_together: int
    weights: np.ndarray


# The settings of one tree of a model, as a record with the fields of TreeParams.
PARAMS_DTYPE = np.dtype(
    [
        (name, np.int64 if kind is int else np.float64)
        for name, kind in get_type_hints(TreeParams).items()
    ],
    align=True,
)


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
    """What linear leaves add to their values, in the order of the nodes of all trees.

    A row in node k gets, beside ``nodes[k].value``::

        shifts[k] + sum of slope * (x[feature] - centre)

    over the terms of k, but no less and no more than its limits; or nothing, if one of these x is
    missing or infinite.

    Attributes
    ----------
    starts : ndarray of int64, shape (n_nodes_of_all_trees + 1,)
        Node k has ``terms[starts[k]:starts[k + 1]]``.
    shifts : ndarray of float64, shape (n_nodes_of_all_trees,)
        0 unless some of the leaf's rows have missing or infinite values.
    limits : ndarray of float64, shape (n_nodes_of_all_trees, 2)
        The least and the most that one of the leaf's own rows gets.
    terms : recarray of LINEAR_TERM_DTYPE, shape (n_terms,)
    """

    starts: np.ndarray
    shifts: np.ndarray
    limits: np.ndarray
    terms: np.recarray


class Trees(NamedTuple):
    """Finished trees, one after the other.

    Attributes
    ----------
    nodes : ndarray of NODE_DTYPE, shape (n_nodes_of_all_trees,)
        The links of a node count from its tree's root.
    starts : ndarray of int64, shape (n_trees + 1,)
        Tree t owns ``nodes[starts[t]:starts[t + 1]]``.
    n_pruned : ndarray of int64, shape (n_trees,)
        Splits that pruning removed from each tree.
    params : ndarray of PARAMS_DTYPE, shape (n_trees,)
        The settings each tree was grown with.
    outputs : ndarray of OUTPUT_DTYPE, shape (n_nodes_of_all_trees, n_tree_outputs or 0)
        Of vector trees; others have all they need in `nodes`.
    bits : LevelBits
        Of the splits on categories.
    linear : LinearLeaves or None
        None: all leaves are constant.
    """

    nodes: np.ndarray
    starts: np.ndarray
    n_pruned: np.ndarray
    params: np.ndarray
    outputs: np.ndarray
    bits: LevelBits
    linear: LinearLeaves | None = None


class BinCuts(NamedTuple):
    """How raw values become bins: bin ``b`` of a feature holds ``cuts[b-1] <= x < cuts[b]``.

    Attributes
    ----------
    cuts : ndarray of float64, shape (n_cuts_of_all_features,)
        Increasing within a feature.
    starts : ndarray of int64, shape (n_features + 1,)
        Feature f owns ``cuts[starts[f]:starts[f + 1]]``, and one bin more than that.
    lower, upper : ndarray of float64, shape (n_cuts_of_all_features + n_features,)
        Smallest and largest value seen in each bin (equal where a bin is one distinct value);
        feature f's begin at ``starts[f] + f``.
    n_levels : ndarray of int64, shape (n_features,)
        0 for a feature of numbers. k for categories: the values are the codes 0 to k - 1, each a
        bin of its own, with that number.
    """

    cuts: np.ndarray
    starts: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    n_levels: np.ndarray


# Where the bins of a feature are in the training data.
PLACE_DTYPE = np.dtype(
    [
        ("column", np.int64),
        ("first_cell", np.int64),  # of the histogram
        ("zero_bin", np.int64),  # where a value of 0 belongs, whether there is one or not
        # 1: other features share the column. Rows then have the bin of 0 where the column has no
        # other bin of the feature. It has no cell: it has what the node has less what these have.
        ("is_shared", np.int64),
    ],
    align=True,
)


class TrainingBins(NamedTuple):
    """The training data as bins, in two layouts, and where each feature's histogram lies.

    A column is a feature, or a bundle of sparse features (see ``data/bundling.py``).

    Attributes
    ----------
    rows : ndarray of uint8 or uint16, read-only, shape (n_samples, n_columns), C order
        Read when histograms are built: one row's bins share a cache line.
    columns : ndarray of the same dtype, shape (n_columns, n_samples), C order
        Read when rows are routed: one column's bins of neighbouring rows share a cache line.
    cell_starts : ndarray of int64, shape (n_columns + 1,)
        Column c's histogram cells are ``cell_starts[c]`` to ``cell_starts[c + 1]``, excluded.
    places : recarray of PLACE_DTYPE, shape (n_features,)
    bin_starts : ndarray of int64, shape (n_features + 1,)
        Feature f has ``bin_starts[f + 1] - bin_starts[f]`` bins, that of missing values included.
    has_missing : ndarray of int64, shape (n_features,)
        1 where the last bin of a feature is that of its missing values.
    lower, upper : ndarray of float64
        As in :class:`BinCuts`, and NaN for missing values; feature f's begin at ``bin_starts[f]``.
    n_levels : ndarray of int64, shape (n_features,)
        As in :class:`BinCuts`.
    """

    rows: np.ndarray
    columns: np.ndarray
    cell_starts: np.ndarray
    places: np.recarray
    bin_starts: np.ndarray
    has_missing: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    n_levels: np.ndarray


class Model(NamedTuple):
    """Everything that prediction and inspection need.

    Attributes
    ----------
    nodes : recarray of NODE_DTYPE, shape (n_nodes_of_all_trees,)
        Tree after tree; the links of a node count from its tree's root.
    tree_starts : ndarray of int64, shape (n_trees + 1,)
        Tree t owns ``nodes[tree_starts[t]:tree_starts[t + 1]]`` and adds to output
        ``t % n_outputs``, a vector tree to all of them.
    routes : recarray of ROUTE_DTYPE, shape (n_nodes_of_all_trees,)
        The same nodes for prediction.
    values : ndarray of float64, shape (n_tree_outputs, n_nodes_of_all_trees)
        Their values.
    tops : TreeTops
        The first levels once more.
    depths : ndarray of int64, shape (n_trees,)
        Most splits on the way to a leaf of each tree.
    n_pruned : ndarray of int64, shape (n_trees,)
        Splits that pruning removed from each tree.
    base_score : ndarray of float64, shape (n_outputs,)
        Raw score before the first tree.
    params : recarray of PARAMS_DTYPE, shape (n_trees,)
        The settings each tree was grown with.
    n_features : int
        Number of columns of the training data.
    outputs : recarray of OUTPUT_DTYPE, shape (n_nodes_of_all_trees, n_tree_outputs or 0)
        What nodes of vector trees have of each output.
    linear : LinearLeaves or None
        None: all leaves are constant.
    """

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

    @property
    def constant(self) -> "Model":
        """The same with constant leaves: what kernels take, apart from its linear leaves."""
        return self if self.linear is None else self._replace(linear=None)

    def params_of(self, tree: int) -> TreeParams:
        """Give the settings of one tree."""
        return TreeParams(*self.params[tree].item())

    @property
    def n_trees(self) -> int:
        """Number of trees: rounds times the trees of a round."""
        return len(self.tree_starts) - 1

    @property
    def n_outputs(self) -> int:
        """Number of raw scores per row: the classes for softmax, else 1."""
        return len(self.base_score)

    @property
    def trees_per_round(self) -> int:
        """Trees that a round has, the same in all rounds."""
        return self.params_of(0).trees_per_round(self.n_outputs)

    @property
    def n_rounds(self) -> int:
        """Number of boosting rounds."""
        return self.n_trees // self.trees_per_round
