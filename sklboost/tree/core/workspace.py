"""The memory of a growing tree: allocated once a fit, reused for every tree.

Kernels neither allocate nor free. What they write lies here:

- :class:`GrowingTree`, the nodes and which of them is split next (``frontier``),
- :class:`RowPartition`, which rows a node owns (``partition``),
- :class:`HistogramPool`, the histograms of the nodes still to be split (``histogram``),
- :class:`SearchScratch`, what split search writes on the way (``splitting``), and
  :class:`SpecialScratch`, what it writes for features that are not plain (``options/scanning``).
"""

from typing import NamedTuple

import numpy as np

from sklboost.data.raw_values import BLOCK_ROWS, IN_MEMORY, RowArrays
from sklboost.engine.model import NODE_DTYPE, OUTPUT_DTYPE
from sklboost.engine.parallel import FAR_APART
from sklboost.engine.structs import TrainingBins, TreeParams, aligned_zeros, records
from sklboost.tree.core.gain_limits import BLOCK_BINS, Blocks
from sklboost.tree.core.machines import Machines, one_machine
from sklboost.tree.core.quantization import Gradients, allocate_gradients

# Room for histograms kept for sibling subtraction; the others are built again, with the same bits.
_POOL_BYTES = 256 * 2**20
# Accumulators for histograms that several threads fill together, before they are added up.
SHARED_BYTES = 64 * 2**20
# The search of a symmetric tree takes so many features together.
FEATURES_AT_ONCE = 32
# Cells of a feature in an accumulator where bins are one byte. Not 256: the first cells of all
# features would then compete for the same few places in the cache.
NARROW_CELLS = 264
# Shares of rows are cut once more, so that a thread held up elsewhere leaves work for the others;
# and again where blocks would then still have so many rows: a million rows take 0.92 of the time of
# 16 threads that way, 100,000 as long as before.
_BLOCKS_PER_THREAD = 2
_LARGE_BLOCK = 15_000
# Of rows on disk there are more, small blocks, so many at most times the nodes that a tree can
# have: of each block and node it is noted which rows are meant.
_MOST_ENTRIES = 2**21

OWN, LEFT = 0, 1  # places in ``GrowingTree.sums``

# What is known of a node only while the tree grows. Whole numbers are int64 everywhere here: a
# kernel called with int32 in one place and int64 in another would be compiled twice.
GROWTH_DTYPE = np.dtype(
    [
        ("n_rows", np.int64),  # without those that sampling left out
        ("parent", np.int64),  # -1 for the root
        ("depth", np.int64),  # 0 for the root
        ("similarity", np.float64),  # as a leaf, of all outputs together
        ("slot", np.int64),  # its histogram in the pool, -1: none
        ("owns_rows", np.int64),  # 1: the row partition lists its rows; 0: its children's, or none
        ("final", np.int64),  # its number after pruning, or of the leaf that swallowed it
        ("worth", np.float64),  # what its branch gains beyond ccp_alpha for each split
    ],
    align=True,
)

# What is known of a node and one output while the tree grows.
GROWING_OUTPUT_DTYPE = np.dtype(
    [
        *((name, OUTPUT_DTYPE[name]) for name in OUTPUT_DTYPE.names or ()),
        ("weight", np.float64),  # its leaf weight, should it be a leaf
        ("lower", np.float64),  # least leaf weight that monotone constraints allow; -inf: any
        ("upper", np.float64),  # the largest
        ("spread", np.float64),  # sum of g^2 / h of its rows, for categories; -1: not found yet
        ("total_weight", np.float64),  # of its rows; -1: not found yet
    ],
    align=True,
)

# The best split found for a node. One on categories lists those that go left.
SPLIT_DTYPE = np.dtype(
    [
        ("gain", np.float64),  # -inf: no allowed split
        ("left_sum", np.int64),  # packed sum of the left child, of the first output
        ("feature", np.int64),
        ("bin", np.int64),  # bin < this goes left
        ("below", np.int64),  # last occupied bin on the left, -1: only missing values there
        ("default_left", np.int64),
        ("n_listed", np.int64),  # categories; 0: the feature has numbers
    ],
    align=True,
)

# A histogram to be built from rows. If `sibling` is not -1, that node's slot holds the parent's
# histogram and becomes the sibling's by subtraction.
BUILD_DTYPE = np.dtype(
    [
        ("node", np.int64),
        ("sibling", np.int64),
        ("strip", np.int64),  # whose outputs; 0 in a tree of one
    ],
    align=True,
)

COUNTS_DTYPE = np.dtype(
    [
        ("n_nodes", np.int64),
        ("n_leaves", np.int64),
        ("n_pruned", np.int64),  # splits that pruning removed
        ("first_open", np.int64),  # GrowingTree.open_nodes[first_open:stop_open] are open
        ("stop_open", np.int64),
        ("n_frontier", np.int64),  # used places of GrowingTree.frontier
        ("n_searched", np.int64),  # of GrowingTree.searched
        ("n_chunks", np.int64),  # of features, into which a search for a split is cut
        ("n_builds", np.int64),  # used places of HistogramPool.builds
        ("n_shared", np.int64),  # of these, the first so many are built by several threads
        ("n_build_chunks", np.int64),  # of columns, into which each of the other builds is cut
        ("n_free", np.int64),  # used places of HistogramPool.free_slots
        ("n_common", np.int64),  # splits that a symmetric tree has made: its depth so far
    ],
    align=True,
)


class GrowingTree(NamedTuple):
    """The nodes of a tree and the state of its growth."""

    nodes: np.recarray
    growth: np.recarray
    splits: np.recarray
    categories: np.ndarray  # uint16, shape (capacity, most_listed): those that the splits list
    outputs: np.recarray  # what the nodes have of each output that the tree is grown for
    # int64, shape (capacity, 2, n_sums): packed sum of the rows of a node, and of those that its
    # best split sends left: of each output and then, where rows are counted, their number
    sums: np.ndarray
    counts: np.recarray
    # int64, shape (capacity,): ``open_nodes[first_open:stop_open]`` have a split that has not been
    # made yet: a queue, or best first a heap
    open_nodes: np.ndarray
    open_gains: np.ndarray  # float64, shape (capacity,): the gains of these splits
    frontier: np.ndarray  # int64, shape (capacity,): the nodes being split now
    # int64, shape (capacity,): their children whose best split is being looked for
    searched: np.ndarray
    # float64, shape (n_outputs, capacity): what is added for the rows of a node in the end
    values: np.ndarray


class RowPartition(NamedTuple):
    """Which rows each node owns, block by block.

    The rows are cut into fixed blocks; within block b, node k owns
    ``lists[depth % 2, start[b, k]:stop[b, k]]``. Splitting a node writes its children's rows into
    the same range of the other list, left ones from the front, right ones from the back::

        lists[0]  | node k, block 0      | node k, block 1      |
        lists[1]  | left -->  <-- right  | left -->  <-- right  |

    so blocks are independent, nothing is copied back, and a node's rows stay sorted, up or down.

    Where rows are sampled there are twice the blocks. Those from `n_counted` on have the rows that
    were left out: they are routed with the others, get their leaf values, and count for nothing
    else::

        lists[0]  | block 0 --> <-- block n_counted | block 1 --> <-- block n_counted + 1 |
    """

    # uint32, shape (2, n_samples). Rounds keep the derivatives here where they are not needed once
    # they are quantised.
    lists: np.ndarray
    # int64, shape (n_blocks, capacity): of no rows at first, should a kernel that cannot be
    # compiled write nothing
    start: np.ndarray
    stop: np.ndarray
    n_counted: int  # the first so many blocks have the rows from which the tree is grown
    # uint8, shape (n_threads, n_bins): scratch: whether each bin of the column of a split's feature
    # goes left
    sides: np.ndarray


class HistogramPool(NamedTuple):
    """Histograms: one int64 a cell, the packed sum of the gradients of the rows in it.

    In trees of several outputs a cell has four, side by side, as in ``Gradients.strips``.
    """

    histograms: np.ndarray  # int64, shape (n_slots, n_strips, n_cells * n_lanes)
    # int64, shape (n_columns + 1,): column c has the numbers ``starts[c]`` to ``starts[c + 1]``,
    # excluded, of a histogram
    starts: np.ndarray
    # int64, shapes (n_columns,), (1,): the first so many columns are built, in order
    columns: np.ndarray
    n_columns: np.ndarray
    # int64, shapes (n_built + 1,), (2, n_built): as in ``BuiltColumns``, each column having one
    # member
    members: np.ndarray
    cells: np.ndarray
    free_slots: np.ndarray  # int64, shape (n_slots,): a stack of ``counts.n_free`` numbers
    builds: np.recarray
    # int64, shape (n_threads, 1 + n_shared, n_built * width): where rows are added up, all columns
    # being given the same room. Number 0 is for a histogram that one thread builds alone, the
    # others are its parts of those that several build. All 0 between two builds.
    accumulators: np.ndarray
    # int64, shape (n_threads, 1 + n_shared): 0 where nothing has been added
    accumulator_used: np.ndarray
    # 1: all histograms are built block by block of the rows, which are then read once, from a disk;
    # 0: only large ones, if there are several threads
    in_order: int


class SearchScratch(NamedTuple):
    """Scratch of split search."""

    candidates: np.recarray  # best split of each task
    # the first of each row: the best split so far of the task that a thread is at
    best: np.recarray
    # int64, shape (n_threads, n_places): packed sum of the occupied bins before each, or of all
    # bins before each of a block; for symmetric trees there are places for more blocks
    sums: np.ndarray
    # float64, shape (n_threads, 2, n_places): gain of a split before each of them, with missing
    # values right and left
    gains: np.ndarray
    blocks: Blocks


class SpecialScratch(NamedTuple):
    """Scratch of split search for features and trees that a plain fit does not have."""

    bins: np.ndarray  # int64, shape (n_threads, n_bins): the occupied bins of a feature
    # int64, shape (n_threads, n_bins): a feature's part of the histogram of one output, where it
    # has to be copied
    cells: np.ndarray
    # int64, shape (n_threads, n_sums, n_bins + 1): as in SearchScratch, for all outputs after the
    # first
    sums: np.ndarray
    # float64, shape (n_threads, 2, n_bins + 1): for each place, of the outputs after the first: the
    # sum of the similarities of both sides, and the sum of the left sides' hessians. All 0 where
    # there is one output.
    of_others: np.ndarray
    # float64, shape (n_threads, n_bins + 1): by which the categories of a feature are sorted
    keys: np.ndarray
    # float64, shape (n_threads, 2 * BLOCK_BINS * n_common): gains of all nodes of a depth together;
    # n_common, the most blocks of features taken together, is 0 unless trees are symmetric
    common_gains: np.ndarray
    common_known: np.ndarray  # float64: a member's best of them so far is the first of its row
    common_limits: np.ndarray  # float64, shape (n_limited,): the most that they can be in a block
    # int64, shape (n_threads, n_common + 1, 2): feature and number of the blocks to be searched
    common_blocks: np.ndarray
    # uint16, shape (n_tasks, most_listed): those that ``SearchScratch.candidates`` list
    categories: np.ndarray


class Workspace(NamedTuple):
    """All the memory a tree grows in."""

    tree: GrowingTree
    partition: RowPartition
    pool: HistogramPool
    scratch: SearchScratch
    special: SpecialScratch
    gradients: Gradients
    machines: Machines


def max_nodes(n_samples: int, params: TreeParams) -> int:
    """Return the largest number of nodes a tree can have."""
    return int(2 * min(n_samples, params.max_leaves, 2 ** min(params.max_depth, 62)) - 1)


def allocate_workspace(
    matrix: TrainingBins,
    params: TreeParams,
    n_outputs: int,
    n_threads: int,
    machines: Machines | None = None,
    arrays: RowArrays = IN_MEMORY,
    n_built: int | None = None,
) -> Workspace:
    """Make room for trees on this data, of so many outputs each, grown by a team of `n_threads`.

    `machines` is None on one machine, `n_built` where histograms are built of all columns. `arrays`
    makes the arrays that have something for each row: in memory or on a disk.
    """
    n_samples, n_sums = len(matrix.rows), n_outputs + int(params.min_child_samples > 0)
    machines = machines or one_machine(n_samples, matrix.rows.shape[1])
    gradients = allocate_gradients(n_outputs, n_samples, n_sums, arrays)
    capacity = max_nodes(machines.n_samples, params) + 2
    n_bins, n_cells = (int(np.diff(a).max()) for a in (matrix.bin_starts, matrix.cell_starts))
    n_tasks, n_built = capacity + 8 * n_threads, n_built or len(matrix.columns)
    most_listed = min(params.max_cat_threshold, int(matrix.n_categories.max()))
    is_copied = n_outputs > 1 or bool(matrix.places.is_shared.any())
    in_order = arrays.are_on_disk  # rows on a disk are read once for all nodes of a depth

    n_counted = 1 if n_threads == 1 else _BLOCKS_PER_THREAD * n_threads
    if n_threads > 1 and n_samples >= 2 * n_counted * _LARGE_BLOCK:
        n_counted *= 2
    if in_order:
        n_counted = max(n_counted, min(-(-n_samples // BLOCK_ROWS), _MOST_ENTRIES // capacity))
    n_blocks = 2 * n_counted if params.subsample < 1.0 else n_counted

    n_strips, n_lanes = len(gradients.strips), gradients.strips.shape[1] // n_samples
    starts = matrix.cell_starts * n_lanes
    # the most slots ever of use is one for each leaf that may still be split
    n_slots = capacity // 2 + 1
    if params.symmetric == 0:  # else all nodes of a depth are searched at once
        n_slots = max(3, min(n_slots, _POOL_BYTES // (8 * int(starts[-1]) * n_strips)))
    width = NARROW_CELLS * n_lanes if matrix.rows.itemsize == 1 else int(np.diff(starts).max())
    part_bytes = 8 * n_built * width * n_strips
    most_shared = capacity if in_order else 2 * n_threads
    n_shared = n_strips * max(1, min(most_shared, SHARED_BYTES // (part_bytes * n_threads)))
    n_limits = -(-n_bins // BLOCK_BINS)  # blocks of a feature's bins
    n_common = n_limits * min(len(matrix.places), FEATURES_AT_ONCE) * params.symmetric
    n_limited = n_limits * len(matrix.places) * params.symmetric
    n_places = max(n_bins + BLOCK_BINS, 2 * BLOCK_BINS * n_common)
    return Workspace(
        tree=GrowingTree(
            nodes=records(capacity, NODE_DTYPE),
            growth=records(capacity, GROWTH_DTYPE),
            # zeros: read as numbers even if the kernel that fills them could not be compiled
            splits=np.zeros(capacity, dtype=SPLIT_DTYPE).view(np.recarray),
            categories=np.zeros((capacity, most_listed), dtype=np.uint16),
            outputs=records((capacity, n_outputs), GROWING_OUTPUT_DTYPE),
            sums=np.empty((capacity, 2, n_sums), dtype=np.int64),
            counts=records(1, COUNTS_DTYPE),
            open_nodes=np.empty(capacity, dtype=np.int64),
            open_gains=np.empty(capacity),
            frontier=np.empty(capacity, dtype=np.int64),
            searched=np.empty(capacity, dtype=np.int64),
            values=np.empty((n_outputs, capacity)),
        ),
        partition=RowPartition(
            lists=arrays.empty((2, n_samples), np.uint32),
            start=np.zeros((n_blocks, capacity), dtype=np.int64),
            stop=np.zeros((n_blocks, capacity), dtype=np.int64),
            n_counted=n_counted,
            sides=np.empty((n_threads, n_cells + 8 * FAR_APART), dtype=np.uint8),
        ),
        pool=HistogramPool(
            histograms=aligned_zeros((n_slots, n_strips, int(starts[-1]))),
            starts=starts,
            columns=np.arange(len(starts) - 1),
            n_columns=np.array([len(starts) - 1]),
            members=np.arange(n_built + 1),
            cells=np.array([starts[:-1], starts[1:]])[:, :n_built].copy(),
            free_slots=np.empty(n_slots, dtype=np.int64),
            builds=records(capacity * n_strips, BUILD_DTYPE),
            accumulators=aligned_zeros((n_threads, 1 + n_shared, n_built * width)),
            accumulator_used=np.zeros((n_threads, 1 + n_shared), dtype=np.int64),
            in_order=int(in_order),
        ),
        scratch=SearchScratch(
            candidates=records(n_tasks, SPLIT_DTYPE),
            best=records((n_threads, FAR_APART), SPLIT_DTYPE),
            sums=np.empty((n_threads, n_places), dtype=np.int64),
            gains=np.empty((n_threads, 2, n_places)),
            blocks=Blocks(
                # twice the room: threads write on cache lines of their own
                last=np.empty((n_threads, 2 * BLOCK_BINS), dtype=np.int64),
                sums=np.empty((n_threads, n_limits + 1), dtype=np.int64),
                positive_sums=np.empty((n_threads, n_limits), dtype=np.int64),
                limits=np.empty((n_threads, 2, n_limits)),
            ),
        ),
        special=SpecialScratch(
            bins=np.empty((n_threads, n_bins), dtype=np.int64),
            cells=np.empty((n_threads, n_bins if is_copied else 0), dtype=np.int64),
            sums=np.empty((n_threads, n_sums, n_bins + 1), dtype=np.int64),
            of_others=np.zeros((n_threads, 2, n_bins + 1)),
            keys=np.empty((n_threads, n_bins + 1)),
            common_gains=np.empty((n_threads, 2 * BLOCK_BINS * n_common)),
            common_known=np.empty((n_threads, FAR_APART)),
            common_limits=np.empty(n_limited),
            common_blocks=np.empty((n_threads, n_common + 1, 2), dtype=np.int64),
            categories=np.empty((n_tasks, most_listed), dtype=np.uint16),
        ),
        gradients=gradients,
        machines=machines,
    )
