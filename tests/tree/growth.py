"""What the tests of this room share: data ready for the kernels, and growth that can be watched."""

from typing import NamedTuple

import numpy as np

from sklboost.boosting.settings import feature_rules, tree_params
from sklboost.data.features import training_bins
from sklboost.engine.elementary import hash_key
from sklboost.engine.model import (
    NO_BITS,
    NODE_DTYPE,
    OUTPUT_DTYPE,
    Trees,
)
from sklboost.engine.parallel import (
    ThreadTeam,
    assemble,
    barrier,
    begin_step,
    end_step,
    reset_tasks,
    share,
)
from sklboost.engine.structs import PARAMS_DTYPE, records
from sklboost.tree.core.frontier import ROOT, plan_builds, split_next_nodes, start_tree, weigh_leaf
from sklboost.tree.core.growing import (
    TreeInputs,
    TreeKeys,
    finish_tree,
    grow_tree,
    sum_root,
)
from sklboost.tree.core.histogram import build_histograms
from sklboost.tree.core.machines import PIECE_ROWS
from sklboost.tree.core.partition import add_values, own_all_rows, route_rows, rows_of_blocks
from sklboost.tree.core.pruning import close_gaps
from sklboost.tree.core.quantization import add_up, quantize, weigh
from sklboost.tree.core.splitting import SplitInputs, choose_splits, find_splits
from sklboost.tree.core.workspace import (
    COUNTS_DTYPE,
    GROWING_OUTPUT_DTYPE,
    GROWTH_DTYPE,
    SPLIT_DTYPE,
    GrowingTree,
    allocate_workspace,
)
from sklboost.tree.options.column_sampling import (
    allocate_bins,
    allocate_column_sample,
    list_node_features,
)
from sklboost.tree.options.renewal import allocate_renewal
from sklboost.tree.options.row_sampling import allocate_row_sample
from sklboost.tree.options.several_outputs import allocate_shared_roots
from sklboost.tree.options.shared_columns import single_columns

NO_WEIGHT = np.empty(0)
NO_CATEGORIES = np.empty((0, 0), dtype=np.uint16)  # of a tree without categories

GROWTH = {
    "depthwise": dict(max_depth=4),
    "depthwise, 9 leaves": dict(max_depth=0, max_leaves=9),
    "depthwise, no limit": dict(max_depth=0),
    "lossguide": dict(grow_policy="lossguide", max_depth=4),
    "lossguide, 9 leaves": dict(grow_policy="lossguide", max_depth=0, max_leaves=9),
    "lossguide, no limit": dict(grow_policy="lossguide", max_depth=0),
    "symmetric": dict(grow_policy="symmetric", max_depth=6),
    "full": dict(max_depth=4, pruning="full"),
}


def run(function, *arguments, n_threads=1):
    """Run a team kernel.

    It is called when the team is assembled, as the kernels of a tree are in a fit. Helpers that are
    awake would find out by themselves after 5,000 looks, 20 seconds on a machine with other work.
    """

    def run_assembled(team, *arguments):
        if assemble(team):
            function(team, *arguments)

    with ThreadTeam(n_threads) as team:
        assert team.size == n_threads
        team.run(run_assembled, *arguments)


def params(**changes):
    """Return the estimators' defaults, but without lambda, least cover and learning rate."""
    plain = dict(learning_rate=1.0, max_depth=6, max_leaves=0, grow_policy="depthwise")
    plain |= dict(reg_lambda=0.0, reg_alpha=0.0, gamma=0.0, min_child_weight=0.0)
    plain |= dict(min_child_samples=0)
    plain |= dict(subsample=1.0, sampling_method="uniform", path_smooth=0.0, extra_trees=False)
    plain |= dict(ccp_alpha=0.0, num_parallel_tree=1)
    plain |= dict(max_cat_to_onehot=4, max_cat_threshold=64, cat_smooth=0.0)
    plain |= dict(colsample_bytree=1.0, colsample_bylevel=1.0, colsample_bynode=1.0)
    plain |= dict(linear_tree=False, linear_lambda=0.0, multi_strategy="one_output_per_tree")
    return tree_params(**(plain | dict(max_delta_step=0.0, pruning="post") | changes))


def as_trees(tables, settings):
    """Put tables of nodes together as trees of the same settings, of which nothing was pruned."""
    return Trees(
        np.concatenate(tables, dtype=NODE_DTYPE).view(np.recarray),
        np.cumsum([0, *map(len, tables)]),
        np.zeros(len(tables), dtype=np.int64),
        np.full(len(tables), np.array(tuple(settings), PARAMS_DTYPE)).view(np.recarray),
        records((sum(map(len, tables)), 0), OUTPUT_DTYPE),
        NO_BITS,
    )


def binned(X, max_bin=256, n_threads=1):
    with ThreadTeam(n_threads) as team:
        matrix, _ = training_bins(team, np.asarray(X), NO_WEIGHT, max_bin)
        return matrix


def make_data(seed, n_rows, n_features=3, n_values=7):
    """Return X with few values, so with ties, and missing ones; gradients; hessians."""
    random = np.random.default_rng(seed)
    X = random.integers(0, n_values, (n_rows, n_features)).astype(float)
    X[random.random(X.shape) < 0.15] = np.nan
    gradient = (np.nan_to_num(X[:, 0]) - 3 + random.normal(size=n_rows)).astype(np.float32)
    return X, gradient, random.uniform(0.1, 1.0, n_rows).astype(np.float32)


class Grown(NamedTuple):
    """A tree: its nodes, the raw scores it added, the workspace it grew in, what was drawn.

    And what its nodes have of each output.
    """

    nodes: np.ndarray
    raw_score: np.ndarray
    workspace: tuple
    inputs: TreeInputs
    outputs: np.ndarray


def tree_keys(seed, round_=0):
    """Return the keys of the first tree of a round."""
    rounding, rows = (np.uint64(hash_key(seed, round_, output)) for output in (0, -1))
    return TreeKeys(rounding, rows, np.int64(hash_key(seed, round_, -2)))


def grow(
    matrix,
    gradient,
    hessian,
    settings,
    *,
    n_threads=1,
    key=0,
    workspace=None,
    rules=None,
    weight=NO_WEIGHT,
):
    """Grow one tree as boosting does; of several outputs if gradients are 2-D."""
    shape = gradient.shape
    # as fits have them: another layout would be a version of every kernel
    gradient, hessian = map(np.ascontiguousarray, np.atleast_2d(gradient, hessian))
    n_outputs, n_rows = gradient.shape
    bins, copy = allocate_bins(matrix, settings, n_outputs, are_on_disk=False)
    workspace = workspace or allocate_workspace(
        matrix, settings, n_outputs, n_threads, n_built=bins.rows.shape[1]
    )
    raw_score = np.zeros((n_outputs, n_rows))
    no_renewal = allocate_renewal(np.empty(0), n_rows, 0, n_threads)
    derivatives = weigh(gradient, hessian, weight, n_threads)
    n_features = len(matrix.places)
    inputs = TreeInputs(
        tree_keys(key),
        workspace.gradients,
        allocate_row_sample(n_rows, settings, n_threads),
        allocate_column_sample(rules or feature_rules(n_features), n_features, n_threads, copy),
        bins,
        allocate_shared_roots(matrix, n_threads, 1),
        np.int64(-1),
    )
    run(add_up_own, derivatives, workspace.partition, n_threads=n_threads)
    run(grow_tree, matrix, derivatives, inputs, settings, workspace, n_threads=n_threads)
    run(
        *(finish_tree, matrix, derivatives, inputs.columns.rules, settings, workspace),
        no_renewal,
        n_threads=n_threads,
    )
    n_blocks = len(workspace.partition.start)
    run(add_values, matrix, workspace, n_blocks, raw_score, n_threads=n_threads)
    close_gaps(workspace.tree)
    n_nodes = workspace.tree.counts[0].n_nodes
    nodes, outputs = workspace.tree.nodes[:n_nodes].copy(), workspace.tree.outputs[:n_nodes].copy()
    return Grown(nodes, raw_score.reshape(shape), workspace, inputs, outputs)


def add_up_own(team, derivatives, partition):
    """Add up the derivatives of this member's rows."""
    start, stop = rows_of_blocks(partition, share(team, partition.n_counted))
    for first in range(start, stop, PIECE_ROWS):
        add_up(team, derivatives, (first, min(first + PIECE_ROWS, stop)))


def quantize_together(team, derivatives, key, gradients, machines):
    """Add up and quantise the derivatives, each member its share of the rows."""
    n_rows = gradients.packed.shape[1]
    rows = [min(n_rows, PIECE_ROWS * end) for end in share(team, -(-n_rows // PIECE_ROWS))]
    for first in range(*rows, PIECE_ROWS):
        add_up(team, derivatives, (first, min(first + PIECE_ROWS, rows[1])))
    barrier(team)
    quantize(team, derivatives, key, gradients, machines, tuple(rows))


# For what reads no gradients of rows, as the split of a node does.
NOT_PACKED = np.empty((1, 0), dtype=np.int64)


def make_search(matrix, scales, settings, rules=None, n_threads=1, packed=NOT_PACKED):
    """Return what growing a tree reads."""
    n_features = len(matrix.places)
    columns = allocate_column_sample(rules or feature_rules(n_features), n_features, n_threads)
    derivatives = weigh(*np.empty((2, 1, 0), np.float32), NO_WEIGHT, n_threads)
    return SplitInputs(matrix, derivatives, packed, scales, settings, columns)


def growing_tree(nodes):
    """Return a tree of these nodes as kernels know it while it grows; none has bounds."""
    n_nodes, none = len(nodes), np.empty(0, dtype=np.int64)
    tree = GrowingTree(
        nodes=nodes,
        growth=np.zeros(n_nodes, GROWTH_DTYPE).view(np.recarray),
        splits=np.zeros(n_nodes, SPLIT_DTYPE).view(np.recarray),
        categories=NO_CATEGORIES,
        outputs=np.zeros((n_nodes, 1), GROWING_OUTPUT_DTYPE).view(np.recarray),
        sums=np.empty((n_nodes, 2, 1), dtype=np.int64),
        counts=np.zeros(1, COUNTS_DTYPE).view(np.recarray),
        open_nodes=none,
        open_gains=np.empty(0),
        frontier=none,
        searched=none,
        values=np.empty((1, n_nodes)),
    )
    tree.counts[0].n_nodes, tree.counts[0].n_leaves = n_nodes, (n_nodes + 1) // 2
    tree.outputs.lower, tree.outputs.upper = -np.inf, np.inf
    return tree


def features_of_node(sample, settings, node, depth):
    """List the features that a node may be split on, as far as it takes its depth alone."""
    tree = growing_tree(records(node + 1, NODE_DTYPE))
    tree.growth[node].depth = depth
    n_features = list_node_features(np.int64(node), 0, tree, settings, sample)
    return list(sample.of_node[0, :n_features])


def assert_same_tree(one, other):
    """Compare bit by bit, but for the sign of NaN."""
    assert len(one.nodes) == len(other.nodes)
    for name in NODE_DTYPE.names:
        np.testing.assert_array_equal(one.nodes[name], other.nodes[name], err_msg=name)
    np.testing.assert_array_equal(one.raw_score, other.raw_score)


def watch_growth(matrix, gradient, hessian, settings, check, n_threads=1):
    """Grow a tree step by step, as grow_tree does; call ``check(search, packed, workspace)``.

    It is called after every time that histograms were built.
    """
    gradient, hessian = np.atleast_2d(gradient, hessian)
    workspace = allocate_workspace(matrix, settings, len(gradient), n_threads)
    bins = single_columns(matrix.rows)
    run(
        quantize_together,
        weigh(gradient, hessian, NO_WEIGHT, 1),
        np.uint64(hash_key(0, 0, 0)),
        workspace.gradients,
        workspace.machines,
    )
    packed, scales = workspace.gradients.packed, workspace.gradients.scales
    search = make_search(matrix, scales, settings, n_threads=n_threads, packed=packed)
    counts = workspace.tree.counts[0]

    def grow_and_check(team):
        own_all_rows(team, workspace.partition)
        if team.rank == 0:
            reset_tasks(team)
            start_tree(team, search, workspace)
        barrier(team)
        build_histograms(team, bins, workspace.gradients, workspace)
        if begin_step(team, np.int64(0)) == 1:
            sum_root(matrix, workspace)
            weigh_leaf(ROOT, search, workspace.tree)
            check(search, packed, workspace)
            end_step(team)
        find_splits(team, search, workspace)
        while True:
            if begin_step(team, np.int64(0)) == 1:
                choose_splits(search, workspace)
                reset_tasks(team)
                split_next_nodes(search, workspace)
                end_step(team)
            if counts.n_frontier == 0:
                return
            route_rows(team, matrix, workspace)
            if begin_step(team, np.int64(0)) == 1:
                plan_builds(team, search, workspace)
                end_step(team)
            build_histograms(team, bins, workspace.gradients, workspace)
            if begin_step(team, np.int64(0)) == 1:
                check(search, packed, workspace)
                end_step(team)
            find_splits(team, search, workspace)

    run(grow_and_check, n_threads=n_threads)
    return workspace


def follow(nodes, row):
    """Return the leaf that raw values lead to, in plain Python."""
    node = 0
    while (split := nodes[node])["left"] >= 0:
        value = row[split["feature"]]
        left = split["default_left"] if np.isnan(value) else value < split["threshold"]
        node = split["left"] if left else split["right"]
    return node


def rows_by_splits(matrix, workspace):
    """Return the rows of every node so far, by following its splits in plain Python."""
    tree = workspace.tree
    rows = {0: np.arange(len(matrix.rows))}
    for node in range(tree.counts[0].n_nodes):
        if (left := tree.nodes[node].left) < 0:
            continue
        split = tree.splits[node]
        bins = matrix.columns[split.feature][rows[node]].astype(int)
        goes_left = bins < split.bin
        if matrix.has_missing[split.feature]:
            n_cells = np.diff(matrix.cell_starts)[split.feature]
            goes_left[bins == n_cells - 1] = split.default_left == 1
        rows[left], rows[tree.nodes[node].right] = rows[node][goes_left], rows[node][~goes_left]
    return rows


def rows_in_partition(node, workspace):
    """Return the rows that the row partition says a node owns, in its order."""
    partition = workspace.partition
    own = partition.lists[workspace.tree.growth[node].depth % 2]
    ranges = zip(partition.start[:, node], partition.stop[:, node], strict=True)
    return np.concatenate([own[start:stop] for start, stop in ranges])


def plain_histogram(matrix, packed, rows):
    """Return a histogram the slow way."""
    histogram = np.zeros(matrix.cell_starts[-1], dtype=np.int64)
    for feature, start in enumerate(matrix.cell_starts[:-1]):
        np.add.at(histogram, start + matrix.rows[rows, feature].astype(int), packed[rows])
    return histogram


def make_nodes(*nodes):
    """Make records of nodes; what is not given is that of a leaf of value 0."""
    table = records(len(nodes), NODE_DTYPE)
    leaf = dict(threshold=np.nan, value=0.0, gain=0.0, gradient=0.0, cover=1.0)
    leaf |= dict(feature=-1, left=-1, right=-1, default_left=0)
    for record, node in zip(table, nodes, strict=True):
        for name, value in (leaf | node).items():
            setattr(record, name, value)
    return table
