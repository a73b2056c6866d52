"""Growing one tree: the only file that orders the kernels of a tree.

All growth policies are one loop: choose the nodes to be split now (all of one depth, the one of
largest gain, or all that a common split divides), divide their rows, build their children's
histograms, find the children's best splits. Then the tree is pruned, and its leaf values are added
to the raw scores of the rows.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sklboost.engine.compiling import kernel
from sklboost.engine.parallel import barrier, begin_step, end_step, reset_tasks, share
from sklboost.tree.core import options
from sklboost.tree.core.frontier import ROOT, plan_builds, split_next_nodes, start_tree, weigh_leaf
from sklboost.tree.core.histogram import build_histograms
from sklboost.tree.core.machines import HISTOGRAMS, SPLITS, exchange, exchange_together
from sklboost.tree.core.partition import own_all_rows, route_rows, rows_of_blocks
from sklboost.tree.core.pruning import name_final_leaves, prune, prune_weakest_links
from sklboost.tree.core.quantization import Gradients, quantize, sum_cells
from sklboost.tree.core.splitting import SplitInputs, choose_splits, find_splits
from sklboost.tree.core.workspace import OWN

if TYPE_CHECKING:
    from sklboost.tree.options.column_sampling import ColumnSample
    from sklboost.tree.options.row_sampling import RowSample
    from sklboost.tree.options.several_outputs import SharedRoots
    from sklboost.tree.options.shared_columns import HistogramBins


class TreeKeys(NamedTuple):
    """Keys of the hashes that decide all that is random in a tree; each below 2^32."""

    rounding: np.uint64  # of gradients
    rows: np.uint64  # the same for all trees of a round
    features: np.int64


class TreeInputs(NamedTuple):
    """The inputs that each tree has of its own: gradients, rows and features that are drawn."""

    keys: TreeKeys
    gradients: Gradients  # the derivatives once they are quantised
    rows: "RowSample"
    columns: "ColumnSample"
    bins: "HistogramBins"  # what histograms are built from
    roots: "SharedRoots"  # where the root histograms of several trees are built together
    lane: np.int64  # of the tree in these; -1: it adds up its root's rows itself


@kernel
def grow_tree(team, matrix, derivatives, inputs, params, workspace):
    """Grow one tree on the derivatives; every member of the team calls it.

    The tree is in ``workspace.tree.nodes[:counts.n_nodes]``, and `outputs`, for the first member of
    the team to read. Derivatives are modified in place if rows are drawn by gradients.
    """
    gradients, counts = inputs.gradients, workspace.tree.counts[0]
    keys, columns, machines = inputs.keys, inputs.columns, workspace.machines
    partition = workspace.partition
    by_caller = np.int64(machines.size > 1)  # serial steps: with other machines they call Python
    if params.subsample < 1.0:
        options.draw_rows(team, derivatives, keys.rows, params, inputs.rows, workspace)
    if inputs.lane < 0:  # else that was done when roots were built together
        rows = rows_of_blocks(partition, share(team, partition.n_counted))
        quantize(team, derivatives, keys.rounding, gradients, machines, rows)
    if params.subsample == 1.0:
        # only now: the lists may lie where the derivatives were, of the same rows
        own_all_rows(team, partition)
    search = SplitInputs(matrix, derivatives, gradients.packed, gradients.scales, params, columns)
    if team.rank == 0:
        reset_tasks(team)
        columns.key[0] = keys.features
        start_tree(team, search, workspace)
    barrier(team)
    if params.colsample_bytree < 1.0:
        options.draw_columns(team, matrix, inputs, params, workspace)
    if inputs.lane < 0:
        build_histograms(team, inputs.bins, gradients, workspace)
    else:
        options.take_root(team, inputs.roots, inputs.lane, workspace)
    if begin_step(team, by_caller) == 1:
        sum_root(matrix, workspace)
        exchange(machines, HISTOGRAMS)
        weigh_leaf(ROOT, search, workspace.tree)
        if workspace.tree.nodes[ROOT].cover == 0.0:
            # a sample may have no rows: a leaf that adds nothing, whatever lambda is
            counts.n_searched = 0
        end_step(team)
    find_splits(team, search, workspace)
    while True:
        if begin_step(team, by_caller) == 1:
            choose_splits(search, workspace)
            exchange(machines, SPLITS)
            reset_tasks(team)
            split_next_nodes(search, workspace)
            end_step(team)
        if counts.n_frontier == 0 or machines.failed[0] == 1:
            break
        route_rows(team, matrix, workspace)
        if begin_step(team, by_caller) == 1:
            plan_builds(team, search, workspace)
            end_step(team)
        build_histograms(team, inputs.bins, gradients, workspace)
        exchange_together(team, machines, HISTOGRAMS)
        find_splits(team, search, workspace)


@kernel
def sum_root(matrix, workspace):
    """Fill the root's sums: the cells of any one column that was built hold all rows."""
    tree, column = workspace.tree, workspace.pool.columns[0]
    start, stop = matrix.cell_starts[column], matrix.cell_starts[column + 1]
    histogram = workspace.pool.histograms[tree.growth[ROOT].slot]
    for output in range(tree.sums.shape[2]):
        tree.sums[ROOT, OWN, output] = sum_cells(matrix, histogram, output, start, stop)


@kernel
def finish_tree(team, matrix, derivatives, rules, params, workspace, renewal):
    """Prune the tree that was grown on the derivatives; every member of the team calls it.

    Then ``tree.values`` says what is to be added to the raw scores, and ``growth.final`` what is
    left of the tree.
    """
    if team.rank == 0:
        prune(workspace.tree, params)
        if params.ccp_alpha > 0.0:
            prune_weakest_links(workspace.tree, params)
        name_final_leaves(workspace.tree)
    barrier(team)
    if renewal.leaf.shape[1] > 0:
        options.renew_leaves(team, matrix, derivatives, renewal, rules, params, workspace)
