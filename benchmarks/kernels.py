"""Micro-benchmarks: nanoseconds of one update, row, cell or value of each kernel, one thread.

`python -m benchmarks.kernels` measures them, and the phases of a whole fit (`phases.py`).
"""

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from sklboost.boosting.settings import feature_rules, tree_params
from sklboost.data.binning import apply_cuts
from sklboost.data.cuts import find_cuts
from sklboost.data.features import training_bins
from sklboost.data.raw_values import raw_matrix
from sklboost.engine.elementary import hash_key
from sklboost.engine.parallel import ThreadTeam
from sklboost.engine.structs import BuiltColumns
from sklboost.estimators.fit.reading import TREE_PARAMETERS
from sklboost.objectives.gradients import (
    allocate_scratch,
    compile_loss,
    fill_gradients,
    targets_of,
)
from sklboost.objectives.losses.classes import LogLoss
from sklboost.tree.core.frontier import ROOT, start_leaf, weigh_leaf
from sklboost.tree.core.histogram import add_rows, flush_accumulator
from sklboost.tree.core.partition import add_values, divide_rows
from sklboost.tree.core.pruning import name_final_leaves
from sklboost.tree.core.quantization import quantize, weigh
from sklboost.tree.core.splitting import SplitInputs, find_splits
from sklboost.tree.core.workspace import OWN, allocate_workspace
from sklboost.tree.options.column_sampling import allocate_bins, allocate_column_sample
from sklboost.tree.predict.prediction import add_constant_leaves
from sklboost.tree.predict.walking import prepare_walk

from . import measure, peers
from .aims import OURS
from .fits import describe, load_float32
from .phases import NO_WEIGHT, Stopwatch, grow_by_phase
from .turns import take_turns

SMALL_NODES = 64  # the rows of a "small node" are one in so many, as at depth 6
NEARLY_EMPTY_ROWS = 30  # of a node with many empty bins
SEARCHES = 32  # one node is searched so often in a call: one search takes microseconds


class Kernel(NamedTuple):
    """One kernel at work: `run` does `n_items` of what `unit` says."""

    name: str
    unit: str
    n_items: int
    run: Callable[[], object]


def measure_kernels(workload, options):
    """Yield a record for each run of each kernel; the kernels take turns."""
    dataset, settings = load_float32(workload.dataset), workload.settings
    facts = {"kind": "kernel", "workload": workload.name, "settings": settings._asdict()}
    facts |= describe(dataset) | {"threads": 1}
    with ThreadTeam(1) as team:
        kernels = [
            *training_kernels(team, dataset, settings),
            *prediction_kernels(team, dataset, settings),
        ]
        by_name = {kernel.name: kernel for kernel in kernels}
        for kernel in kernels:
            kernel.run()  # compiles

        def time_kernel(name, repeat):
            start = time.perf_counter()
            by_name[name].run()
            seconds = time.perf_counter() - start
            return {"nanoseconds": 1e9 * seconds / by_name[name].n_items}

        for turn in take_turns(options._replace(libraries=list(by_name)), time_kernel):
            name = turn["library"]
            yield {**facts, **turn, "library": OURS, "kernel": name, "unit": by_name[name].unit}


class Stage(NamedTuple):
    """All that training kernels read and write, gradients of the first round included."""

    team: ThreadTeam
    matrix: tuple
    params: tuple
    derivatives: tuple
    workspace: tuple


def set_stage(team, dataset, settings):
    """Bin the train rows of a data set of two classes and quantise the first round's gradients."""
    parameters = peers.make_estimator(OURS, settings, dataset.task, 1).get_params()
    own = {name: parameters[name] for name in TREE_PARAMETERS}
    params = tree_params(**own, num_parallel_tree=1)
    matrix, _ = training_bins(team, dataset.X_train, NO_WEIGHT, settings.max_bin)
    y = dataset.y_train.astype(np.float64)
    gradient, hessian = np.empty((2, 1, len(y)), dtype=np.float32)
    to_derive = (np.zeros((1, len(y))), gradient, hessian, allocate_scratch(team.size))
    team.run(
        fill_gradients, compile_loss(LogLoss(), team.size), targets_of(y[np.newaxis]), *to_derive
    )
    derivatives = weigh(gradient, hessian, NO_WEIGHT)
    workspace = allocate_workspace(matrix, params, 1, team.size)
    key, (gradients, machines) = np.uint64(hash_key(0, 0, 0)), workspace[-2:]
    team.run(quantize, derivatives, key, gradients, machines)
    return Stage(team, matrix, params, derivatives, workspace)


def training_kernels(team, dataset, settings):
    """Yield the kernels of a fit."""
    stage = set_stage(team, dataset, settings)
    n_rows, n_features = stage.matrix.rows.shape
    to_cut = (team, dataset.X_train, NO_WEIGHT, settings.max_bin)
    to_bin = (team, dataset.X_train, *find_cuts(*to_cut))
    yield Kernel("cut points", "value", n_rows * n_features, partial(find_cuts, *to_cut))
    yield Kernel("binning", "value", n_rows * n_features, partial(apply_cuts, *to_bin))

    y, raw_score = dataset.y_train.astype(np.float64), np.zeros((1, n_rows))
    gradient, hessian = np.empty((2, 1, n_rows), dtype=np.float32)
    scratch, loss = allocate_scratch(team.size), compile_loss(LogLoss(), team.size)
    to_derive = (loss, targets_of(y[np.newaxis]), raw_score, gradient, hessian, scratch)
    to_quantize = (
        quantize,
        stage.derivatives,
        np.uint64(hash_key(0, 0, 0)),
        stage.workspace.gradients,
        stage.workspace.machines,
    )
    yield Kernel("log loss gradients", "row", n_rows, partial(team.run, fill_gradients, *to_derive))
    yield Kernel("quantising", "row", n_rows, partial(team.run, *to_quantize))

    in_order, small_nodes = np.arange(n_rows, dtype=np.uint32), rows_of_small_nodes(n_rows)
    few = in_order[:: max(1, n_rows // NEARLY_EMPTY_ROWS)]
    yield histogram_kernel(stage, "histogram, all rows", [in_order])
    yield histogram_kernel(stage, "histogram, small nodes", small_nodes)
    yield routing_kernel(stage, "routing, all rows", [in_order])
    yield routing_kernel(stage, "routing, small nodes", small_nodes)
    yield search_kernel(stage, "split search, all bins", in_order)
    yield search_kernel(stage, f"split search, {len(few)} rows", few)
    yield leaf_value_kernel(set_stage(team, dataset, settings))


def rows_of_small_nodes(n_rows):
    """Return a sorted list of rows for each small node, scattered over all of the data."""
    node = np.random.default_rng(0).integers(SMALL_NODES, size=n_rows)
    return [np.flatnonzero(node == number).astype(np.uint32) for number in range(SMALL_NODES)]


def histogram_kernel(stage, name, row_lists):
    """Return the kernel that adds up the rows of nodes; all features are to fit one block."""
    n_features = stage.matrix.rows.shape[1]
    accumulator = stage.workspace.pool.accumulators[0, 0].copy()
    packed = stage.workspace.gradients.packed[0]

    def run():
        for row_list in row_lists:
            add_rows(stage.matrix.rows, packed, row_list, (0, n_features), accumulator)

    return Kernel(name, "update", sum(map(len, row_lists)) * n_features, run)


def routing_kernel(stage, name, row_lists):
    """Return the kernel that divides the rows of nodes by the middle bin of a feature."""
    half = int(stage.matrix.cell_starts[1]) // 2
    sides = (np.arange(stage.matrix.cell_starts[1]) < half).astype(np.uint8)
    targets = [np.empty_like(row_list) for row_list in row_lists]

    def run():
        for row_list, target in zip(row_lists, targets, strict=True):
            divide_rows(stage.matrix.columns[0], row_list, sides, target)

    return Kernel(name, "row", sum(map(len, row_lists)), run)


def search_kernel(stage, name, row_list):
    """Return the kernel that finds the best split of a node of these rows."""
    workspace = allocate_workspace(stage.matrix, stage.params, 1, 1)
    packed = stage.workspace.gradients.packed[0]
    n_features, n_cells = stage.matrix.rows.shape[1], int(stage.matrix.cell_starts[-1])
    tree, histogram = workspace.tree, workspace.pool.histograms[0, 0]
    features, accumulator = (0, n_features), workspace.pool.accumulators[0, 0]
    add_rows(stage.matrix.rows, packed, row_list, features, accumulator)
    pool = workspace.pool
    built = BuiltColumns(stage.matrix.rows, n_features, pool.members, pool.cells)
    flush_accumulator(built, features, accumulator, histogram, 0)
    tree.sums[0, OWN, 0] = packed[row_list].sum()
    n_searches = min(SEARCHES, len(tree.searched))  # shallow trees have no room for more
    tree.counts[0].n_chunks, tree.counts[0].n_searched = 1, n_searches
    tree.searched[:n_searches] = 0
    columns = allocate_column_sample(feature_rules(n_features), n_features, 1)
    gradients = stage.workspace.gradients
    of_tree = (stage.derivatives, gradients.packed, gradients.scales)
    search = SplitInputs(stage.matrix, *of_tree, stage.params, columns)
    start_leaf(ROOT, -1, tree)
    weigh_leaf(ROOT, search, tree)
    tree.growth[0].slot, tree.growth[0].n_rows = 0, len(row_list)
    find = partial(stage.team.run, find_splits, search, workspace)
    return Kernel(name, "cell", n_searches * n_cells, find)


def leaf_value_kernel(stage):
    """Return the kernel that adds the leaf values of a grown tree to the raw scores."""
    bins, _ = allocate_bins(stage.matrix, stage.params, 1, are_on_disk=False)
    grow_by_phase(
        Stopwatch(stage.team),
        *(stage.matrix, bins, stage.derivatives, stage.params, stage.workspace),
    )
    name_final_leaves(stage.workspace.tree)
    n_rows = stage.matrix.rows.shape[0]
    n_blocks = stage.workspace.partition.n_counted
    arguments = (add_values, stage.matrix, stage.workspace, n_blocks, np.zeros((1, n_rows)))
    return Kernel("leaf values", "row", n_rows, partial(stage.team.run, *arguments))


def prediction_kernels(team, dataset, settings):
    """Yield the kernel of prediction, with the rows of the test part."""
    model = measure.fit(OURS, dataset, settings, 1).model_
    raw = raw_matrix(dataset.X_test)
    raw_score, n_items = np.zeros((1, raw.n_samples)), raw.n_samples * model.n_trees
    walk = prepare_walk(model, raw, 1)
    arguments = (add_constant_leaves, model.constant, raw, (0, model.n_trees), walk, raw_score)
    yield Kernel("prediction", "row and tree", n_items, partial(team.run, *arguments))


if __name__ == "__main__":
    from .run import main

    main(["kernels", "phases"])
