"""Rounds of boosting: gradients of the loss, new trees, new raw scores."""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from sklboost.boosting.evaluation import Evaluation, ValidationSet
from sklboost.boosting.settings import BoostingTask
from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.features import row_arrays_of, value_array
from sklboost.data.raw_values import RawMatrix, raw_matrix, row_blocks
from sklboost.engine.compiling import inlined, kernel, late
from sklboost.engine.elementary import hash_key
from sklboost.engine.model import NODE_DTYPE, OUTPUT_DTYPE, LinearLeaves, Trees
from sklboost.engine.parallel import ThreadTeam, assemble, barrier, next_task, share
from sklboost.engine.structs import PARAMS_DTYPE, TrainingBins, TreeParams, records
from sklboost.objectives.blocks import NO_FAULT
from sklboost.objectives.custom import (
    AllRows,
    FaultyRowError,
    ask_derivatives,
    check_hessians,
    check_is_of_rows,
    explain_fault,
    sample_units,
)
from sklboost.objectives.loss import (
    CompiledLoss,
    TargetArrays,
    compile_loss,
    fill_gradients,
    targets_of,
)
from sklboost.tree.core.growing import TreeInputs, TreeKeys, finish_tree, grow_tree
from sklboost.tree.core.machines import PIECE_ROWS, TOTALS, exchange_together, row_numbers
from sklboost.tree.core.partition import ADD_COUNTER, add_values_of, rows_of_blocks
from sklboost.tree.core.pruning import close_gaps
from sklboost.tree.core.quantization import (
    FEW_ROWS,
    LANES,
    Derivatives,
    add_up,
    derivatives_of,
    quantize,
    weigh,
)
from sklboost.tree.core.workspace import RowPartition, Workspace, allocate_workspace, max_nodes
from sklboost.tree.options.column_sampling import (
    ColumnSample,
    allocate_bins,
    allocate_column_sample,
)
from sklboost.tree.options.renewal import Renewal, allocate_renewal, fill_residuals, renewal_of
from sklboost.tree.options.row_sampling import RowSample, allocate_row_sample, is_drawn, row_keys
from sklboost.tree.options.several_outputs import (
    SharedRoots,
    allocate_shared_roots,
    build_roots,
    gradients_of,
)
from sklboost.tree.options.shared_columns import HistogramBins
from sklboost.tree.predict.category_bits import allocate_bits, most_words, store_categories
from sklboost.tree.predict.trees import copy_trees, take_trees

# A call of a kernel takes as long as a tree of a few hundred rows, waking a team as long as one of
# ten thousand, and what Python does in between leaves the caches cold. So one call does many, a few
# hundredths of a second's work: 100,000 x 28 takes 0.93 of the time of a call a round.
_VALUES_PER_CALL = 40_000_000
_NODES_PER_CALL = 1_000_000
_ROUNDS_PER_CALL = 200


class TreeGrower(Protocol):
    """Grows the trees of a training, some rounds at a time.

    :class:`Rounds` does it in this process, ``distributed`` on the workers of a cluster.
    """

    team: ThreadTeam  # of this process
    n_at_once: int  # rounds worth doing in one call, within the limits
    seconds_per_call: float  # that a call should take: Ctrl-C and `max_time` act between two
    grown: Trees  # of the last call, from the front; the next call overwrites them
    n_threads: int  # that grow the trees, on all machines
    # messages and bytes that machines have sent, by what they were for; known when closed
    traffic: dict[str, tuple[int, int]]

    def grow(self, start: int, stop: int, params: TreeParams) -> Iterator[Trees]:
        """Do the rounds ``[start, stop)``, at most `n_at_once`; yield copies of their trees."""

    def add(self, make_trees: Callable[[], Trees]) -> None:
        """Add trees to the raw scores of the rows; the function makes the same at each call."""

    def raw_score(self) -> np.ndarray:
        """Return the raw scores of the rows, shape (n_outputs, n_samples)."""

    def close(self) -> None:
        """Free what is not memory of this process."""


class Calls(NamedTuple):
    """The size of one call."""

    n_parallel: int  # most parallel trees
    n_at_once: int  # most rounds
    n_trees: int  # most trees
    capacity: int  # most nodes of a tree
    n_words: int  # most words of a node's set of categories


def plan_calls(
    task: BoostingTask, limits: tuple[int, int], n_threads: int, *, lists_all: bool = False
) -> Calls:
    """Plan calls that grow enough to be worth a call, if there is room.

    `limits` are the fewest and the most rounds that may be done in one call. How many are done is
    decided by the time that they take. With `lists_all` the trees have room for sets of all
    categories.
    """
    params, (fewest, most) = task.params, limits
    n_samples = task.machines.n_samples if task.machines else len(task.matrix.rows)
    capacity = max_nodes(n_samples, params) + 2
    n_categories = int(task.matrix.n_categories.max())
    most_listed = n_categories if lists_all else min(params.max_cat_threshold, n_categories)
    n_words = most_words(n_categories, most_listed)
    if params.num_parallel_tree > 1:
        # rounds one by one, in as many calls as they take
        fewest, most = 1, params.num_parallel_tree
    if params.linear_tree == 1:
        fewest, most = 1, 1
    worth = n_threads * _VALUES_PER_CALL // (task.matrix.rows.size * task.n_outputs)
    room = _NODES_PER_CALL // (capacity * max(1, n_words) * task.n_outputs)
    n_parallel = max(1, min(max(worth, fewest), room, most, _ROUNDS_PER_CALL))
    return Calls(
        n_parallel=n_parallel,
        n_at_once=n_parallel if params.num_parallel_tree == 1 else 1,
        n_trees=n_parallel * (task.n_outputs // task.n_tree_outputs),
        capacity=capacity,
        n_words=n_words,
    )


def allocate_grown(calls: Calls, n_outputs: int, n_trees: int) -> Trees:
    """Make room for so many trees of so many outputs each."""
    n_nodes = n_trees * calls.capacity
    return Trees(
        nodes=records(n_nodes, NODE_DTYPE),
        starts=np.zeros(n_trees + 1, dtype=np.int64),
        n_pruned=np.zeros(n_trees, dtype=np.int64),
        params=records(n_trees, PARAMS_DTYPE),
        outputs=records((n_nodes, n_outputs if n_outputs > 1 else 0), OUTPUT_DTYPE),
        bits=allocate_bits(n_nodes, calls.n_words),
    )


# In the place of an output in a key, so that nothing is drawn by the hashes of the rounding: rows
# once for a parallel tree; features once for a tree, from here downwards.
_ROWS, _FEATURES = np.int64(-1), np.int64(-2)


class RoundState(NamedTuple):
    """All that the kernels of a round read and write, the same for all rounds."""

    matrix: TrainingBins
    loss: CompiledLoss
    targets: TargetArrays
    raw_score: np.ndarray  # float64, shape (n_outputs, n_samples): modified by each round
    derivatives: Derivatives  # of all outputs
    # as in :class:`BoostingTask`
    seed: int
    sampling_seed: int
    rows: RowSample
    columns: ColumnSample
    bins: HistogramBins  # as in ``TreeInputs``
    roots: SharedRoots
    renewal: Renewal  # of all outputs; empty: leaves are not renewed


@kernel
def boost_rounds(team, parallel_trees, state, params, workspace, grown, unpruned):
    """Grow the parallel trees ``[start, stop)``; every member of the team calls it.

    They are counted through all rounds. `grown` is filled from the front, except for the settings,
    and `unpruned` likewise with the trees before pruning, if it has room for nodes.
    """
    if not assemble(team):
        return
    first, stop = parallel_trees
    raw_score, n_tree_outputs, tree = state.raw_score, len(workspace.gradients.packed), 0
    begins = first % params.num_parallel_tree == 0
    if begins:  # not True, for which numba would make a version of its own
        update_rows(team, state, (0, 0), begins, workspace)
    for parallel_tree in range(first, stop):
        if parallel_tree % params.num_parallel_tree == 0:  # a round begins
            is_faulty = False
            for fault in state.loss.faults:  # every member sees the same
                is_faulty |= fault != NO_FAULT
            if is_faulty:
                if team.rank == 0:
                    state.loss.faulty_round[0] = parallel_tree // params.num_parallel_tree
                return
            if workspace.machines.size > 1:
                exchange_together(team, workspace.machines, TOTALS)
        for output in range(0, len(raw_score), n_tree_outputs):
            outputs = (output, output + n_tree_outputs)
            if state.roots.packed.shape[1] > 0 and output % LANES == 0:
                share_roots(team, parallel_tree, output, state, workspace)
            of_tree = derivatives_of(state.derivatives, outputs[0], outputs[1])
            inputs = inputs_of(state, parallel_tree, output, workspace)
            grow_tree(team, state.matrix, of_tree, inputs, params, workspace)
            if workspace.machines.failed[0] == 1:
                return
            if team.rank == 0 and len(unpruned.nodes) > 0:
                store_tree(workspace.tree, unpruned, tree)
            renewal, rules = renewal_of(state.renewal, outputs[0], outputs[1]), state.columns.rules
            finish_tree(team, state.matrix, of_tree, rules, params, workspace, renewal)
            is_last = parallel_tree + 1 < stop and outputs[1] == len(raw_score)
            begins = is_last and (parallel_tree + 1) % params.num_parallel_tree == 0
            update_rows(team, state, outputs, begins, workspace)
            if team.rank == 0:
                close_gaps(workspace.tree)
                store_tree(workspace.tree, grown, tree)
            tree += 1


@kernel
def update_rows(team, state, outputs, begins, workspace):
    """Add the values of the tree of the outputs ``[first, stop)`` to the raw scores, if any.

    If then a round `begins`, also fill the derivatives and add them up: all of it for one block of
    rows after the other, while it is in the cache. Ends when all are done.
    """
    partition, targets, raw_score = workspace.partition, state.targets, state.raw_score
    derivatives = state.derivatives
    gradient, hessian = derivatives.gradient, derivatives.hessian
    n_blocks = partition.start.shape[0]  # also the blocks of rows that were left out
    block = next_task(team, ADD_COUNTER, partition.n_counted)
    while block < partition.n_counted:
        if outputs[0] < outputs[1]:
            target, sides = raw_score[outputs[0] : outputs[1]], partition.sides[team.rank]
            add_values_of(state.matrix, workspace, (block, n_blocks), target, sides)
        start, stop = rows_of_blocks(partition, (block, block + 1))
        for first in range(start, stop if begins else start, PIECE_ROWS):
            piece = (first, min(first + PIECE_ROWS, stop))
            if state.loss.is_compiled == 1:
                fill_gradients(team, state.loss, targets, raw_score, gradient, hessian, piece)
            if state.renewal.leaf.shape[1] > 0:
                fill_residuals(targets.values, raw_score, state.renewal, piece)
            add_up(team, derivatives, piece)
        block = next_task(team, ADD_COUNTER, partition.n_counted)
    barrier(team)


@inlined
def inputs_of(state, parallel_tree, output, workspace):
    """Return what the tree of an output, or of all, is grown on besides its derivatives."""
    keys, roots, lane = tree_keys(state, parallel_tree, output), state.roots, np.int64(-1)
    # the last output may be alone in its four: then its tree builds its root itself
    if roots.packed.shape[1] > 0 and (output % LANES > 0 or output + 1 < len(state.raw_score)):
        lane = np.int64(output % LANES)
    gradients = gradients_of(roots, lane, workspace.gradients)
    return TreeInputs(keys, gradients, state.rows, state.columns, state.bins, roots, lane)


@inlined
def tree_keys(state, parallel_tree, output):
    """Return the keys of a tree's random choices."""
    return TreeKeys(
        hash_key(state.seed, parallel_tree, output),
        hash_key(state.sampling_seed, parallel_tree, _ROWS),
        np.int64(hash_key(state.sampling_seed, parallel_tree, _FEATURES - output)),
    )


@late()
def share_roots(team, parallel_tree, first, state, workspace):
    """Build the root histograms of the trees of up to four outputs from `first` on, unless one."""
    stop, partition = min(first + LANES, len(state.raw_score)), workspace.partition
    if stop - first == 1:
        return
    for output in range(first, stop):
        of_tree = derivatives_of(state.derivatives, output, output + 1)
        key = tree_keys(state, parallel_tree, output).rounding
        gradients = gradients_of(state.roots, output - first, workspace.gradients)
        rows = rows_of_blocks(partition, share(team, partition.n_counted))
        quantize(team, of_tree, key, gradients, workspace.machines, rows)
    build_roots(team, state.matrix, state.roots, workspace)


@kernel
def store_tree(growing, grown, tree):
    """Copy a tree behind those before it."""
    start, n_nodes = grown.starts[tree], growing.counts[0].n_nodes
    for node in range(n_nodes):
        grown.nodes[start + node] = growing.nodes[node]
        for output in range(grown.outputs.shape[1]):
            source, target = growing.outputs[node, output], grown.outputs[start + node, output]
            target.value, target.gradient = source.value, source.gradient
            target.hessian = source.hessian
    if len(grown.bits.starts) > 0:
        store_categories(growing, grown.bits, start)
    grown.starts[tree + 1] = start + n_nodes
    grown.n_pruned[tree] = growing.counts[0].n_pruned


@kernel
def leave_out(team, parallel_tree, state, hessian):
    """Set the hessians of the rows that were not drawn to 0, as gradient-based sampling does."""
    if not assemble(team):
        return
    key = hash_key(state.sampling_seed, parallel_tree, _ROWS)
    start, stop = share(team, hessian.shape[1])
    for row in range(start, stop):
        if not is_drawn(state.rows.keys[row], key, state.rows.chances[0]):
            hessian[:, row] = 0.0


@kernel
def fill_first_gradients(team, state):
    """Fill the derivatives before the first round, without growing a tree."""
    if assemble(team):
        gradient, hessian = state.derivatives.gradient, state.derivatives.hessian
        start, stop = share(team, gradient.shape[1])
        for first in range(start, stop, PIECE_ROWS):
            of_rows = (state.targets, state.raw_score, gradient, hessian)
            fill_gradients(team, state.loss, *of_rows, (first, min(first + PIECE_ROWS, stop)))


class Rounds:
    """Grows the trees of a training, some rounds at a time: a ``TreeGrower``.

    `limits` are the fewest and the most rounds that may be done in one call.
    """

    seconds_per_call = 0.1
    lists_all = False  # whether trees are given sets of more than `max_cat_threshold` categories

    def __init__(self, team: ThreadTeam, task: BoostingTask, limits: tuple[int, int]):
        self.team, self.n_threads = team, team.size
        self.traffic: dict[str, tuple[int, int]] = {}
        self._task = task = task._replace(y=np.ascontiguousarray(np.atleast_2d(task.y)))
        self._raw: RawMatrix | None = None
        self._added_to: Evaluation | None = None  # the rows, once trees were added to them
        prepare = task.prepare or task.loss.prepare
        self._fill = prepare(team, task.y, task.weight, task.sampling_seed)
        if task.params.linear_tree == 1 and not isinstance(task.X, BinnedMatrix):
            self._raw = raw_matrix(value_array(task.X))
        arrays = row_arrays_of(task.X)
        of_tree = (task.matrix, task.params, task.n_tree_outputs)
        bins, copy = allocate_bins(*of_tree, are_on_disk=arrays.are_on_disk)
        workspace = self.workspace = allocate_workspace(
            *of_tree, team.size, task.machines, arrays, bins.rows.shape[1]
        )
        if task.params.min_child_samples > 0:
            from sklboost.tree.options.scanning import row_counts

            weight, counts = task.sample_weight, workspace.gradients.counts
            for rows in row_blocks(len(counts)):
                of_rows = weight[rows] if len(weight) > 0 else np.ones(1)
                counts[rows] = row_counts(of_rows, task.params.min_child_samples)
        self.state = _make_state(team.size, task, workspace, bins, copy)
        calls = plan_calls(task, limits, team.size, lists_all=self.lists_all)
        self._n_parallel, self.n_at_once = calls.n_parallel, calls.n_at_once
        self.grown = allocate_grown(calls, task.n_tree_outputs, calls.n_trees)
        n_kept = calls.n_trees if task.keep_pruned else 0
        self._unpruned = allocate_grown(calls, task.n_tree_outputs, n_kept)
        if task.loss.block is None or task.loss.row_derivatives is not None:
            self._prepare_users_loss()

    def grow(self, start: int, stop: int, params: TreeParams) -> Iterator[Trees]:
        """Do the rounds ``[start, stop)``, at most `n_at_once`; yield a copy of each call's trees.

        One call of :func:`boost_rounds`, unless a round has so many parallel trees that it takes
        several. FaultyRowError if the loss gave derivatives that no tree can be grown on.
        """
        task, state, grown, unpruned = self._task, self.state, self.grown, self._unpruned
        first, last = start * params.num_parallel_tree, stop * params.num_parallel_tree
        state.loss.faulty_round[0] = start
        try:
            self._derive(start)
            for begin in range(first, last, self._n_parallel):
                end = min(begin + self._n_parallel, last)
                arguments = (state, params, self.workspace, grown, unpruned)
                self.team.run(boost_rounds, (begin, end), *arguments)
                if (state.loss.faults != NO_FAULT).any():
                    explain_fault(task.loss, task.y, state.raw_score)
                n_trees = (end - begin) * (task.n_outputs // task.n_tree_outputs)
                trees = _copy_first(grown, n_trees, params)
                if len(unpruned.nodes) > 0:
                    trees = trees._replace(unpruned=_copy_first(unpruned, n_trees, params))
                if self._raw is not None and self.workspace.machines.failed[0] == 0:
                    trees = trees._replace(linear=self._fit_lines(self._raw, trees, begin, params))
                yield trees
        except FaultyRowError as fault:
            fault.round_ = int(state.loss.faulty_round[0])
            raise

    def add(self, make_trees: Callable[[], Trees]) -> None:
        """Add trees to the raw scores of the rows."""
        if self._added_to is None:
            # no metrics, so no targets
            rows = ValidationSet("", self._task.X, np.empty(0), np.empty(0), self._task.raw_score)
            self._added_to = Evaluation(self.team, self._task, [rows], [], self.grown)
        trees = make_trees()
        self._added_to.read_from(trees)
        self._added_to.score(trees, 1)

    def close(self) -> None:
        """Free what is not memory of this process: nothing."""

    def raw_score(self) -> np.ndarray:
        """Return the raw scores of the rows, shape (n_outputs, n_samples)."""
        raw_score: np.ndarray = self._task.raw_score
        return raw_score

    def first_derivatives(self) -> tuple[np.ndarray, np.ndarray]:
        """Return gradients and hessians before the first round, float64, of all outputs."""
        state, units = self.state, self.state.derivatives.units
        self._derive(0)
        if state.loss.is_compiled == 1:
            self.team.run(fill_first_gradients, state)
        return units[:, :1] * state.derivatives.gradient, units[:, 1:] * state.derivatives.hessian

    def _prepare_users_loss(self) -> None:
        """Choose the units of a user's function of rows, or the rounds that check one of arrays."""
        task, state, machines = self._task, self.state, self.workspace.machines
        numbers = row_numbers(machines.first_rows, machines.n_samples)
        self._rows = AllRows(numbers, machines.n_samples, task.largest)
        # twice: at first all raw scores may be the same
        self._n_checks = 0 if task.machines is None else 2
        if task.loss.row_derivatives is not None:
            units = state.derivatives.units
            sample_units(task.loss, task.y, state.raw_score, units, self._rows)
            state.loss.parameters[:] = 1.0 / units.T.ravel()

    def _derive(self, round_: int) -> None:
        """Fill the derivatives of the next round if no block of the loss does."""
        task, state, units = self._task, self.state, self.state.derivatives.units
        derivatives = (state.derivatives.gradient, state.derivatives.hessian)
        if state.loss.is_compiled == 1:
            if task.loss.row_derivatives is not None:  # a user's
                check_hessians(task.loss, task.y, state.raw_score, self._rows)
        elif self._fill is not None:
            self._fill(round_, state.raw_score, *derivatives)
        else:
            of_rows = (task.y, state.raw_score, task.weight)
            if self._n_checks > 0:
                check_is_of_rows(task.loss, *of_rows)
                self._n_checks -= 1
            ask_derivatives(task.loss, *of_rows, derivatives, units, self._rows)

    def _fit_lines(
        self, raw: RawMatrix, trees: Trees, parallel_tree: int, params: TreeParams
    ) -> LinearLeaves:
        """Fit the linear leaves of one parallel tree and add them to the raw scores."""
        from sklboost.tree.options.linear_leaves import fit_linear_leaves

        state, derivatives, team = self.state, self.state.derivatives, self.team
        if params.subsample < 1.0 and params.gradient_based == 0:
            # a copy: the parallel trees of a round share the derivatives
            derivatives = derivatives._replace(hessian=derivatives.hessian.copy())
            team.run(leave_out, parallel_tree, state, derivatives.hessian)
        everywhere = self.workspace.machines.n_samples, self._task.of_leaves
        rows = (raw, derivatives, params, state.raw_score)
        return fit_linear_leaves(team, trees, *rows, *everywhere)


def _make_state(
    n_threads: int, task: BoostingTask, workspace: Workspace, bins: HistogramBins, copy: np.ndarray
) -> RoundState:
    params, n_samples, capacity = task.params, task.y.shape[1], len(workspace.tree.nodes)
    gradient, hessian = _allocate_derivatives(task, workspace.partition)
    arrays = row_arrays_of(task.X)
    everywhere = (task.weight_scale, task.machines.n_samples if task.machines else 0)
    derivatives = weigh(gradient, hessian, task.weight, n_threads, *everywhere, arrays)
    rows = allocate_row_sample(n_samples, params, n_threads, arrays)
    # several trees of a round may have the same rows in their roots, here and in memory
    are_several = task.n_outputs > task.n_tree_outputs == 1
    is_whole = bins.rows is task.matrix.rows and task.machines is None
    is_plain = params.subsample == 1.0 and params.min_child_samples == 0
    may_share = are_several and is_whole and is_plain and not arrays.are_on_disk
    if params.subsample < 1.0 and workspace.machines.n_samples > n_samples:
        machines = workspace.machines
        rows.keys[:] = row_numbers(machines.first_rows, machines.n_samples)
    elif params.subsample < 1.0 and n_samples <= FEW_ROWS:
        rows.keys[:] = row_keys(task.matrix, task.y.astype(np.float64), derivatives.weight)
    return RoundState(
        matrix=task.matrix,
        loss=compile_loss(task.loss, n_threads),
        targets=targets_of(task.y),
        raw_score=task.raw_score,
        derivatives=derivatives,
        seed=task.seed,
        sampling_seed=task.sampling_seed,
        rows=rows,
        columns=allocate_column_sample(task.rules, len(task.matrix.places), n_threads, copy),
        bins=bins,
        roots=allocate_shared_roots(task.matrix, n_threads, task.n_outputs if may_share else 1),
        renewal=allocate_renewal(
            *(task.loss.renewal, n_samples, capacity, n_threads, arrays), workspace.machines.size
        ),
    )


def _allocate_derivatives(task: BoostingTask, partition: RowPartition) -> np.ndarray:
    """Make room for gradients and hessians, float32, shape (2, n_outputs, n_samples).

    Where nobody reads them after the one tree of a round has quantised them, they lie where the
    lists of rows are, which are written after that.
    """
    params = task.params
    is_one_tree = task.n_outputs == 1 and params.num_parallel_tree == 1
    is_read_again = len(task.loss.renewal) > 0 or params.linear_tree == 1
    if is_one_tree and params.subsample == 1.0 and not is_read_again:
        return partition.lists.view(np.float32)[:, np.newaxis]
    return row_arrays_of(task.X).empty((2, *task.raw_score.shape), np.float32)


def _copy_first(trees: Trees, n_trees: int, params: TreeParams) -> Trees:
    """Copy the first `n_trees` trees, all of which were grown with these settings."""
    settings = np.full(n_trees, np.array(tuple(params), PARAMS_DTYPE))
    return copy_trees(take_trees(trees, 0, n_trees)._replace(params=settings))
