"""Where the time of a fit goes: the engine's kernels, the phases of a fit, and its floor.

- **Kernels**: nanoseconds of one update, row, cell or value of each kernel, on one thread.
- **Phases**: a fit calls one kernel a tree, so nothing can be timed inside it. Here the phases of
  `sklboost/tree/core/growing.py` are run in the same order by the same team, and the trees are
  compared with a plain fit's, bit by bit: if the order there changes and this one does not, it says
  so. Calling each phase from Python adds some tens of microseconds, nothing on a large data set.
- **The floor**: the histogram updates alone, at the speed measured beside the fit. Every row is
  added to the root's histogram and, of each pair of siblings below, only the smaller is built: at
  most half the rows a level. rows x features x (1 + depth / 2) x trees x seconds of an update.

Run `python -m benchmarks.kernels`; it writes `kernels.jsonl` and `.md`.
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
from sklboost.engine.compiling import kernel
from sklboost.engine.elementary import hash_key
from sklboost.engine.parallel import ThreadTeam, assemble, barrier, share
from sklboost.engine.structs import BuiltColumns
from sklboost.estimators.fit.reading import TREE_PARAMETERS
from sklboost.objectives.loss import (
    compile_loss,
    fill_gradients,
    targets_of,
)
from sklboost.objectives.losses.classes import LogLoss
from sklboost.tree.core.frontier import (
    ROOT,
    plan_builds,
    split_next_nodes,
    start_leaf,
    start_tree,
    weigh_leaf,
)
from sklboost.tree.core.growing import sum_root
from sklboost.tree.core.histogram import add_rows, build_histograms, flush_accumulator
from sklboost.tree.core.machines import PIECE_ROWS
from sklboost.tree.core.partition import (
    add_values,
    divide_rows,
    own_all_rows,
    route_rows,
    rows_of_blocks,
)
from sklboost.tree.core.pruning import close_gaps, name_final_leaves, prune
from sklboost.tree.core.quantization import add_up, quantize, weigh
from sklboost.tree.core.splitting import SplitInputs, choose_splits, find_splits
from sklboost.tree.core.workspace import OWN, allocate_workspace
from sklboost.tree.options.column_sampling import allocate_bins, allocate_column_sample
from sklboost.tree.predict.prediction import add_constant_leaves
from sklboost.tree.predict.walking import prepare_walk

from . import datasets, peers, runner
from .runner import OURS
from .speed import circumstances, judge_limit, spread, workloads_of

NO_WEIGHT = np.empty(0)


def main(arguments=None):
    """Measure kernels, phases and floor of one data set, then write the tables."""
    parser = runner.parser("benchmarks.kernels", __doc__)
    add = parser.add_argument
    add("kinds", nargs="*", default=list(KINDS), help=f"of {', '.join(KINDS)}", metavar="kind")
    add("--dataset", default="binary-1000000x28", help="of two classes")
    add("--trees", type=int, default=100)
    add("--threads", type=int, nargs="+", default=[2, 1])
    add("--repeats", type=int, default=5)
    options = parser.parse_args(arguments)
    shown = ("kind", "threads", "kernel", "nanoseconds", "fit_seconds", "floor_ratio")
    runner.write_results("kernels", _records(options), shown, write_table, options)


def _records(options):
    dataset = datasets.load(options.dataset).as_float32()
    settings = peers.Settings(n_estimators=options.trees)
    turns = runner.Options([OURS], options.repeats, 60.0)
    facts = {"workload": options.dataset, "settings": settings._asdict(), **dataset.facts}
    for kind in options.kinds:
        for n_threads in (1,) if kind == "kernel" else options.threads:
            for record in KINDS[kind](dataset, settings, n_threads, turns):
                yield {"kind": kind, **facts, "threads": n_threads, **record}


# --- phases ---------------------------------------------------------------------------------------


def measure_phases(dataset, settings, n_threads, turns):
    """Yield a record for each fit that was taken apart, and the seconds of a plain one beside."""
    compare_with_fit(dataset, settings._replace(n_estimators=2), n_threads, OURS)  # compiles
    return runner.take_turns(turns, partial(compare_with_fit, dataset, settings, n_threads))


def compare_with_fit(dataset, settings, n_threads, library, repeat=0):
    """Fit, then fit by phase; return the seconds of both.

    Raises
    ------
    RuntimeError
        If the two did not grow the same trees: the order of the phases here is out of date.
    """
    model = peers.make_estimator(library, settings, dataset.task, n_threads)
    model.set_params(random_state=None)  # the seed is 0 then
    start = time.perf_counter()
    model.fit(dataset.X_train, dataset.y_train)
    fit_seconds = time.perf_counter() - start
    watch, trees = fit_by_phase(dataset, model.get_params(), n_threads)
    nodes = np.concatenate(trees)
    same = len(nodes) == len(model.model_.nodes)
    if not (same and np.array_equal(nodes["value"], model.model_.nodes.value)):
        raise RuntimeError(
            "the fit by phase and the plain fit have different trees: "
            "bring benchmarks/kernels.py up to date with sklboost/tree/core/growing.py"
        )
    return {"fit_seconds": fit_seconds, "phase_seconds": watch.seconds}


class Stopwatch:
    """Seconds by phase of what a team runs."""

    def __init__(self, team):
        self.team = team
        self.seconds = {}

    def run(self, phase, kernel, *arguments):
        """Have every member of the team call ``kernel(team, *arguments)``."""
        return self.time(phase, self.team.run, call_together, kernel, *arguments)

    def time(self, phase, function, *arguments):
        """Call a function that needs no team, or brings its own."""
        start = time.perf_counter()
        result = function(*arguments)
        elapsed = time.perf_counter() - start
        self.seconds[phase] = self.seconds.get(phase, 0.0) + elapsed
        return result


def call_together(team, kernel, *arguments):
    """Assemble the team, as the kernel of a whole fit does, and call one part of that fit."""
    if assemble(team):
        kernel(team, *arguments)


@kernel
def fill_own_gradients(team, loss, targets, raw_score, gradient, hessian):
    """Fill gradient and hessian of this member's share of the rows."""
    start, stop = share(team, raw_score.shape[1])
    for first in range(start, stop, PIECE_ROWS):
        rows = (first, min(first + PIECE_ROWS, stop))
        fill_gradients(team, loss, targets, raw_score, gradient, hessian, rows)


@kernel
def quantize_own_rows(team, partition, derivatives, key, gradients, machines):
    """Add up the derivatives and quantise them, each member its rows."""
    rows = rows_of_blocks(partition, share(team, partition.n_counted))
    for first in range(rows[0], rows[1], PIECE_ROWS):
        add_up(team, derivatives, (first, min(first + PIECE_ROWS, rows[1])))
    barrier(team)
    quantize(team, derivatives, key, gradients, machines, rows)


def fit_by_phase(dataset, parameters, n_threads):
    """Train on two classes as an estimator with these parameters and seed 0 does.

    Returns
    -------
    watch : Stopwatch
    trees : list of ndarray of NODE_DTYPE
    """
    own = {name: parameters[name] for name in TREE_PARAMETERS}
    params = tree_params(**own, num_parallel_tree=1)
    with ThreadTeam(n_threads) as team:
        watch = Stopwatch(team)
        matrix = bin_by_phase(watch, dataset.X_train, parameters["max_bin"])
        y, loss = dataset.y_train.astype(np.float64), LogLoss()
        raw_score = np.full((1, len(y)), loss.start(y, NO_WEIGHT))
        gradient, hessian = np.empty((2, 1, len(y)), dtype=np.float32)
        derivatives = weigh(gradient, hessian, NO_WEIGHT, team.size)
        workspace = watch.time("planning", allocate_workspace, matrix, params, 1, team.size)
        join = partial(allocate_bins, matrix, params, 1, are_on_disk=False)
        bins, _ = watch.time("planning", join)
        compiled, trees = compile_loss(loss, team.size), []
        for round_ in range(parameters["n_estimators"]):
            to_derive = (compiled, targets_of(y[np.newaxis]), raw_score, gradient, hessian)
            watch.run("gradients", fill_own_gradients, *to_derive)
            key = np.uint64(hash_key(0, round_, 0))
            to_quantize = (derivatives, key, workspace.gradients, workspace.machines)
            watch.run("quantising", quantize_own_rows, workspace.partition, *to_quantize)
            grow_by_phase(watch, matrix, bins, derivatives, params, workspace)
            finish_by_phase(watch, matrix, params, workspace, raw_score)
            trees.append(workspace.tree.nodes[: workspace.tree.counts[0].n_nodes].copy())
    return watch, trees


def bin_by_phase(watch, X, max_bin):
    """Return the binned matrix."""
    cuts, has_missing = watch.time("cut points", find_cuts, watch.team, X, NO_WEIGHT, max_bin)
    return watch.time("binning", apply_cuts, watch.team, X, cuts, has_missing)


def grow_by_phase(watch, matrix, bins, derivatives, params, workspace):
    """Grow a tree on the quantised gradients, as `grow_tree` does."""
    n_features, gradients = matrix.rows.shape[1], workspace.gradients
    columns = allocate_column_sample(feature_rules(n_features), n_features, watch.team.size)
    search = SplitInputs(matrix, derivatives, gradients.packed, gradients.scales, params, columns)
    watch.run("routing", own_all_rows, workspace.partition)
    watch.run("planning", on_first_member(start_tree), search, workspace)
    watch.run("root histogram", build_histograms, bins, gradients, workspace)
    watch.time("planning", sum_root, matrix, workspace)
    watch.time("planning", weigh_leaf, ROOT, search, workspace.tree)
    watch.run("split search", find_splits, search, workspace)
    while True:
        watch.time("planning", choose_splits, search, workspace)
        watch.time("planning", split_next_nodes, search, workspace)
        if workspace.tree.counts[0].n_frontier == 0:
            return
        watch.run("routing", route_rows, matrix, workspace)
        watch.run("planning", on_first_member(plan_builds), search, workspace)
        watch.run("other histograms", build_histograms, bins, gradients, workspace)
        watch.run("split search", find_splits, search, workspace)


def finish_by_phase(watch, matrix, params, workspace, raw_score):
    """Prune the tree and add its leaf values to the raw scores."""
    tree = workspace.tree
    watch.time("planning", prune, tree, params)
    watch.time("planning", name_final_leaves, tree)
    n_blocks = workspace.partition.start.shape[0]
    watch.run("leaf values", add_values, matrix, workspace, n_blocks, raw_score)
    watch.time("planning", close_gaps, tree)


def on_first_member(kernel):
    """Return a function for the whole team that runs `kernel` on its first member alone."""

    def run(team, *arguments):
        if team.rank == 0:
            kernel(team, *arguments)

    return run


# --- kernels --------------------------------------------------------------------------------------

SMALL_NODES = 64  # the rows of a "small node" are one in so many, as at depth 6
NEARLY_EMPTY_ROWS = 30  # of a node with many empty bins
SEARCHES = 32  # one node is searched so often in a call: one search takes microseconds


class Kernel(NamedTuple):
    """One kernel at work: `run` does `n_items` of what `unit` says."""

    name: str
    unit: str
    n_items: int
    run: Callable[[], object]


def measure_kernels(dataset, settings, n_threads, turns):
    """Yield a record for each run of each kernel; the kernels take turns."""
    with ThreadTeam(n_threads) as team:
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

        for turn in runner.take_turns(turns._replace(libraries=list(by_name)), time_kernel):
            name = turn["library"]
            yield {**turn, "library": OURS, "kernel": name, "unit": by_name[name].unit}


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
    to_derive = (np.zeros((1, len(y))), gradient, hessian)
    loss = compile_loss(LogLoss(), team.size)
    team.run(fill_own_gradients, loss, targets_of(y[np.newaxis]), *to_derive)
    derivatives = weigh(gradient, hessian, NO_WEIGHT, team.size)
    workspace = allocate_workspace(matrix, params, 1, team.size)
    key, (gradients, machines) = np.uint64(hash_key(0, 0, 0)), workspace[-2:]
    team.run(quantize_own_rows, workspace.partition, derivatives, key, gradients, machines)
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
    loss = compile_loss(LogLoss(), team.size)
    to_derive = (loss, targets_of(y[np.newaxis]), raw_score, gradient, hessian)
    to_quantize = (
        quantize_own_rows,
        stage.workspace.partition,
        stage.derivatives,
        np.uint64(hash_key(0, 0, 0)),
        stage.workspace.gradients,
        stage.workspace.machines,
    )
    yield Kernel(
        "log loss gradients", "row", n_rows, partial(team.run, fill_own_gradients, *to_derive)
    )
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
    model = peers.fit(OURS, dataset, settings, 1).model_
    raw = raw_matrix(dataset.X_test)
    raw_score, n_items = np.zeros((1, raw.n_samples)), raw.n_samples * model.n_trees
    walk = prepare_walk(model, raw, 1)
    arguments = (add_constant_leaves, model.constant, raw, (0, model.n_trees), walk, raw_score)
    yield Kernel("prediction", "row and tree", n_items, partial(team.run, *arguments))


# --- the floor ------------------------------------------------------------------------------------

UPDATE_RUNS = 5  # of the histogram kernel before each fit; their median counts


def measure_floor(dataset, settings, n_threads, turns):
    """Yield a record for each fit: its seconds, those of one update, the floor made of them."""
    with ThreadTeam(1) as team:
        all_rows = np.arange(len(dataset.X_train), dtype=np.uint32)
        kernel = histogram_kernel(set_stage(team, dataset, settings), "updates", [all_rows])
    kernel.run()  # compiles
    peers.warm_up(OURS, dataset, settings, n_threads)

    def compare(library, repeat):
        seconds = []
        for _ in range(UPDATE_RUNS):
            start = time.perf_counter()
            kernel.run()
            seconds.append(time.perf_counter() - start)
        update = float(np.median(seconds)) / kernel.n_items
        fit = peers.fit_and_predict(library, dataset, settings, n_threads, repeat)["fit_seconds"]
        depth, n_trees = settings.max_depth, settings.n_estimators
        floor = dataset.X_train.size * (1 + depth / 2) * n_trees * update / n_threads
        return {
            "update_nanoseconds": 1e9 * update,
            "fit_seconds": fit,
            "floor_seconds": floor,
            "floor_ratio": fit / floor,
        }

    return runner.take_turns(turns, compare)


# --- tables ---------------------------------------------------------------------------------------

KINDS = {"kernel": measure_kernels, "phases": measure_phases, "floor": measure_floor}
MAX_FLOOR_RATIO = 1.6  # a whole fit / its histogram updates


def write_table(records):
    """Return the lines of the page `kernels.md`."""
    kinds = {kind: own for (kind,), own in runner.grouped(records, "kind").items()}
    lines = ["# Kernels, phases and floor of a fit\n", f"{records[-1]['workload']}.\n"]
    if "kernel" in kinds:
        rows = [["kernel", "per", "nanoseconds, one thread"]]
        for (name,), own in runner.grouped(kinds["kernel"], "kernel").items():
            rows.append([name, own[0]["unit"], spread([each["nanoseconds"] for each in own])])
        lines += ["## Kernels\n", *runner.markdown(rows, 2), "", *circumstances(kinds["kernel"])]
    if "phases" in kinds:
        rows, columns = [["phase"]], []
        for (_, n_threads), own in workloads_of(kinds["phases"]):
            phases = own[0]["phase_seconds"]
            medians = {
                name: np.median([each["phase_seconds"][name] for each in own]) for name in phases
            }
            medians["together"] = sum(medians.values())
            total = medians["together"]
            medians["a plain fit"] = np.median([each["fit_seconds"] for each in own])
            columns.append({name: f"{s:.3g}" for name, s in medians.items()})
            columns.append({name: f"{100 * s / total:.0f} %" for name, s in medians.items()})
            rows[0] += [f"seconds, {n_threads} thread(s)", "share"]
        rows += [[name, *(column[name] for column in columns)] for name in columns[0]]
        lines += ["## Phases, called one by one\n", *runner.markdown(rows), ""]
        lines += circumstances(kinds["phases"])
    if "floor" in kinds:
        rows = [["workload", "threads", "one update, ns", "floor, s", "fit, s", "fit / floor"]]
        for where, own in workloads_of(kinds["floor"]):
            keys = ("update_nanoseconds", "floor_seconds", "fit_seconds")
            ratio = np.median([each["floor_ratio"] for each in own])
            figures = [spread([each[key] for each in own]) for key in keys]
            rows.append([*where, *figures, judge_limit(ratio, MAX_FLOOR_RATIO)])
        lines += [
            "## The floor\n",
            "The histogram updates alone: rows x features x (1 + depth / 2) x trees x the time of "
            "one update, measured beside the fit on one thread / threads.\n",
            *runner.markdown(rows),
            "",
            *circumstances(kinds["floor"]),
        ]
    return [*lines, runner.origin(records, "kernels")]


if __name__ == "__main__":
    runner.start(main)
