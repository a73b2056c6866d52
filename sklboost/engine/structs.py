"""The records and groups that several rooms use: settings, cut points and bins.

Groups of arrays are NamedTuples; the state of single items is NumPy records, made by
:func:`records` so that ``item.field`` works compiled and interpreted.
"""

import ctypes
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, get_type_hints

import numpy as np

LINE_BYTES = 64  # of the cache


def records(shape: int | tuple[int, ...], dtype: np.dtype) -> np.recarray:
    """Return an array of records whose fields are attributes; no memory before it is written."""
    return np.empty(shape, dtype=dtype).view(np.recarray)


class RemoteColumn(ABC):
    """Values of each of many rows that are elsewhere, on a cluster; NumPy knows it as an array.

    Of shape (n_rows,), or (n_rows, n_columns) or the transpose, of which a number takes one column.
    Elementwise functions of columns and single numbers make another column, and so do sums of the
    values of each row. The smallest and largest value and sums of rows are found where the column
    is. All else that NumPy does brings the values here, and so do some of its rows, unless a column
    says which.

    A sum of floats depends on how the rows are divided, unless all are multiples of a number that
    is large enough for the sum to be exact.
    """

    dtype: np.dtype
    T: Any  # the transpose

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def astype(self, dtype: Any) -> "RemoteColumn":
        """Return the values in another type."""

    @abstractmethod
    def each(self, function: Callable[..., Any], *others: Any, **settings: Any) -> list[Any]:
        """Return ``function(values, *values_of_others, **settings)`` of each part of the rows.

        They are in order, and there is none of parts without rows. The function can be imported
        where the rows are.
        """

    @abstractmethod
    def apply(self, function: Callable[..., Any], *others: Any, **settings: Any) -> "RemoteColumn":
        """Return what a function makes of the values, and those of others, for as many rows."""

    @abstractmethod
    def apply_by_value(self, function: Callable[..., Any], *others: Any) -> "RemoteColumn":
        """Do as :meth:`apply`, but with all rows of the same value in one call, in order.

        The values are unsigned integers, and the function returns float64.
        """

    @abstractmethod
    def look_up(self, tables: Sequence[np.ndarray]) -> "RemoteColumn":
        """Return the entries at these places in a table; each part that has rows has its own."""

    @abstractmethod
    def __getitem__(self, rows: Any) -> Any:
        """Return the values of some rows: a column, if increasing row numbers or a mask are one."""

    @abstractmethod
    def flatnonzero(self) -> "RemoteColumn":
        """Return the numbers of the rows whose value is not 0, int64, increasing."""

    @abstractmethod
    def persist(self) -> "RemoteColumn":
        """Compute the column once and for all, and return it: it is kept where its rows are."""

    @abstractmethod
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray: ...

    @abstractmethod
    def __array_ufunc__(
        self, function: np.ufunc, method: str, *inputs: Any, **settings: Any
    ) -> Any: ...


def aligned_zeros(shape: tuple[int, ...], dtype: type | np.dtype = np.int64) -> np.ndarray:
    """Make an array of zeros that begins where a cache line begins.

    So what is loaded as one vector never lies on two lines, which would take about twice the time.
    """
    dtype = np.dtype(dtype)
    memory = np.zeros(math.prod(shape) * dtype.itemsize + LINE_BYTES, dtype=np.uint8)
    # a third of the time that `memory.ctypes.data` takes
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory.data))
    return np.ndarray(shape, dtype, memory, -address % LINE_BYTES)


class TreeParams(NamedTuple):
    """Read-only settings of a tree, cast once by :func:`sklboost.boosting.settings.tree_params`.

    Parameters of the estimators, except the pruning modes: ``grow_gain`` is the least gain with
    which a split is grown, ``prune_gain`` the least with which pruning keeps it.
    """

    learning_rate: float
    reg_lambda: float
    reg_alpha: float
    min_child_weight: float
    min_child_samples: int  # least number of rows in a child; 0: rows are not counted
    max_delta_step: float  # infinite: no limit
    grow_gain: float
    prune_gain: float
    ccp_alpha: float  # least gain of a branch, per split and unit of the root's cover
    subsample: float  # of the rows, for each parallel tree
    colsample_bytree: float
    colsample_bylevel: float
    colsample_bynode: float
    gradient_based: int  # 1: rows of large gradients are likelier to be drawn
    path_smooth: float  # 0: a leaf weight does not depend on the parent's
    extra_trees: int  # 1: one random threshold for each feature of a node
    max_depth: int  # at least 1; a large number: no limit
    max_leaves: int  # likewise
    best_first: int  # 1: lossguide, 0: depthwise or symmetric
    symmetric: int  # 1: all nodes of a depth have one split in common
    linear_tree: int  # 1: its leaves are linear
    linear_lambda: float
    multi_output: int  # 1: trees have a value for each output in their leaves
    num_parallel_tree: int  # trees that a round adds to each output
    max_cat_to_onehot: int  # features of fewer categories are split one against the others
    max_cat_threshold: int  # most categories in the set of a split
    cat_smooth: float  # least cover that counts against a category's; 0: no smoothing

    def n_tree_outputs(self, n_outputs: int) -> int:
        """Return the number of outputs that one tree has values for."""
        return n_outputs if self.multi_output == 1 else 1

    def trees_per_round(self, n_outputs: int) -> int:
        """Return the number of trees that a round adds."""
        return self.num_parallel_tree * n_outputs // self.n_tree_outputs(n_outputs)


class FeatureRules(NamedTuple):
    """Constraints and weights of single features, the same for all trees of a fit."""

    # int64, shape (n_features,) or (0,): 1: leaf weights do not fall where the feature rises, -1:
    # they do not rise, 0: free. Empty: all are free.
    signs: np.ndarray
    # uint64, shape (n_features, n_words) or (0, 0): as sets of bits, the groups that each feature
    # belongs to; the features of a path belong to one group. A feature of no group is alone on its
    # paths. Empty: no such rule.
    groups: np.ndarray
    most_together: int  # most different features on a path
    # float64, shape (n_features,) or (0,): positive, in proportion to how likely each feature is
    # drawn; empty: all alike
    weights: np.ndarray


# The settings of one tree of a model, as a record with the fields of TreeParams.
PARAMS_DTYPE = np.dtype(
    [
        (name, np.int64 if kind is int else np.float64)
        for name, kind in get_type_hints(TreeParams).items()
    ],
    align=True,
)


class BinCuts(NamedTuple):
    """How raw values become bins: bin ``b`` of a feature holds ``cuts[b-1] <= x < cuts[b]``."""

    cuts: np.ndarray  # float64, shape (n_cuts_of_all_features,): increasing within a feature
    # int64, shape (n_features + 1,): feature f owns ``cuts[starts[f]:starts[f + 1]]``, and one bin
    # more than that
    starts: np.ndarray
    # float64, shape (n_cuts_of_all_features + n_features,): smallest and largest value seen in each
    # bin (equal where a bin is one distinct value); feature f's begin at ``starts[f] + f``
    lower: np.ndarray
    upper: np.ndarray
    # int64, shape (n_features,): 0 for a feature of numbers. k for categories: the values are the
    # codes 0 to k - 1, each a bin of its own, with that number.
    n_categories: np.ndarray


# Where the bins of a feature are in the training data.
PLACE_DTYPE = np.dtype(
    [
        ("column", np.int64),
        ("first_cell", np.int64),  # of the histogram
        ("zero_bin", np.int64),  # where a value of 0 belongs, whether there is one or not
        # 1: other features share the column. A row then has the bin of 0 where the column holds no
        # other bin of the feature. That bin has no cell: its sum is the node's less all others'.
        ("is_shared", np.int64),
    ],
    align=True,
)


class TrainingBins(NamedTuple):
    """The training data as bins, in two layouts, and where each feature's histogram lies.

    A column is a feature, or a bundle of sparse features (see ``data/binning.py``).
    """

    # uint8 or uint16, read-only, shape (n_samples, n_columns), C order: read when histograms are
    # built: one row's bins share a cache line
    rows: np.ndarray
    # the same dtype, read-only, shape (n_columns, n_samples), C order: read when rows are routed:
    # one column's bins of neighbouring rows share a cache line
    columns: np.ndarray
    # int64, shape (n_columns + 1,): column c's histogram cells are ``cell_starts[c]`` to
    # ``cell_starts[c + 1]``, excluded
    cell_starts: np.ndarray
    places: np.recarray
    # int64, shape (n_features + 1,): feature f has ``bin_starts[f + 1] - bin_starts[f]`` bins, that
    # of missing values included
    bin_starts: np.ndarray
    # int64, shape (n_features,): 1 where the last bin of a feature is of its missing values
    has_missing: np.ndarray
    # float64: as in :class:`BinCuts`, and NaN for missing values; feature f's begin at
    # ``bin_starts[f]``
    lower: np.ndarray
    upper: np.ndarray
    n_categories: np.ndarray  # int64, shape (n_features,): as in :class:`BinCuts`


class BuiltColumns(NamedTuple):
    """Columns that the rows of a node are added up in, and where their sums belong."""

    rows: np.ndarray  # uint8 or uint16, read-only, shape (n_samples, n_built)
    n_columns: np.int64  # the first so many are built
    # int64, shape (n_built + 1,): column b is made of ``members[b]`` to ``members[b + 1]``,
    # excluded, of `cells`: of one, unless it is a joint column
    members: np.ndarray
    # int64, shape (2, n_members): where the cells of each begin and end in a histogram
    cells: np.ndarray
