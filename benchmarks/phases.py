"""Where the time of a fit goes: the same kernels, called one by one from Python, seconds by phase.

A fit calls one kernel a tree, so nothing can be timed inside it. Here the phases of
`sklboost/tree/core/growing.py` are run in the same order by the same team, and the trees are
compared with those of a plain fit, bit by bit: if the order there changes and this one does not, it
says so. Calling each phase from Python adds some tens of microseconds, nothing on a large data set.
"""

import time
from functools import partial

import numpy as np

from sklboost.boosting.settings import feature_rules, tree_params
from sklboost.data.binning import apply_cuts
from sklboost.data.cuts import find_cuts
from sklboost.engine.elementary import hash_key
from sklboost.engine.parallel import ThreadTeam, assemble
from sklboost.estimators.fit.reading import TREE_PARAMETERS
from sklboost.objectives.gradients import (
    allocate_scratch,
    compile_loss,
    fill_gradients,
    targets_of,
)
from sklboost.objectives.losses.classes import LogLoss
from sklboost.tree.core.frontier import ROOT, plan_builds, split_next_nodes, start_tree, weigh_leaf
from sklboost.tree.core.growing import sum_root
from sklboost.tree.core.histogram import build_histograms
from sklboost.tree.core.partition import add_values, own_all_rows, route_rows
from sklboost.tree.core.pruning import close_gaps, name_final_leaves, prune
from sklboost.tree.core.quantization import quantize, weigh
from sklboost.tree.core.splitting import SplitInputs, find_splits
from sklboost.tree.core.workspace import allocate_workspace
from sklboost.tree.options.column_sampling import allocate_bins, allocate_column_sample

from . import peers
from .aims import OURS
from .fits import describe, load_float32
from .turns import take_turns

NO_WEIGHT = np.empty(0)


def measure_phases(workload, options):
    """Yield a record for each fit that was taken apart, and the seconds of a plain one beside."""
    dataset, settings = load_float32(workload.dataset), workload.settings
    facts = {"kind": "phases", "workload": workload.name, "settings": settings._asdict()}
    options = options._replace(libraries=[OURS])
    for n_threads in workload.threads:
        compare_with_fit(dataset, settings._replace(n_estimators=2), n_threads, OURS)  # compiles
        for turn in take_turns(options, partial(compare_with_fit, dataset, settings, n_threads)):
            yield {**facts, **describe(dataset), "threads": n_threads, **turn}


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
            "bring benchmarks/phases.py up to date with sklboost/tree/core/growing.py"
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
        derivatives = weigh(gradient, hessian, NO_WEIGHT)
        workspace = watch.time("planning", allocate_workspace, matrix, params, 1, team.size)
        join = partial(allocate_bins, matrix, params, 1, are_on_disk=False)
        bins, _ = watch.time("planning", join)
        scratch, compiled, trees = allocate_scratch(team.size), compile_loss(loss, team.size), []
        for round_ in range(parameters["n_estimators"]):
            to_derive = (compiled, targets_of(y[np.newaxis]), raw_score, gradient, hessian, scratch)
            watch.run("gradients", fill_gradients, *to_derive)
            key = np.uint64(hash_key(0, round_, 0))
            to_quantize = (derivatives, key, workspace.gradients, workspace.machines)
            watch.run("quantising", quantize, *to_quantize)
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
    n_blocks = workspace.partition.n_counted
    watch.run("leaf values", add_values, matrix, workspace, n_blocks, raw_score)
    watch.time("planning", close_gaps, tree)


def on_first_member(kernel):
    """Return a function for the whole team that runs `kernel` on its first member alone."""

    def run(team, *arguments):
        if team.rank == 0:
            kernel(team, *arguments)

    return run
