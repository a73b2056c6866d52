"""Split search on what is not a feature of numbers in a column of its own, for one free output."""

import numpy as np

from sklboost.engine.compiling import inlined, late
from sklboost.engine.elementary import TWO_32, hash_key, mix_bits
from sklboost.engine.instructions import trailing_zeros
from sklboost.tree.core.gain_limits import may_improve
from sklboost.tree.core.quantization import sum_cells
from sklboost.tree.core.splitting import choose_place, fill_gains
from sklboost.tree.core.workspace import LEFT, OWN
from sklboost.tree.options.categories import (
    forbid_places,
    is_one_hot,
    list_left_categories,
    order_categories,
    set_apart,
    shrink_sums,
    sum_categories,
)
from sklboost.tree.options.constrained_weights import add_other_outputs, fill_constrained_gains
from sklboost.tree.options.several_outputs import list_sums
from sklboost.tree.options.shared_columns import copy_cells, missing_cell_of, sum_below

# Listing few occupied bins pays where a node has less than a quarter as many rows as bins.
_FEW = 4
_BIT = np.uint64(1) << np.arange(64, dtype=np.uint64)


@inlined
def list_occupied(cells, n_rows, bins, sums):
    """List the occupied bins of a feature and the sum of all before each; return how many.

    `cells` are the feature's part of a histogram, the missing bin left out; `n_rows` is the node's.
    """
    if _FEW * n_rows < len(cells):
        return list_few(cells, bins, sums)
    return list_many(cells, bins, sums)


@inlined
def list_many(cells, bins, sums):
    """Do what :func:`list_occupied` does, bin by bin."""
    n_occupied = np.uint64(0)
    before = np.int64(0)
    for bin_ in range(len(cells)):
        content = cells[np.uint64(bin_)]
        # written always, kept if the bin is occupied: no branch to mispredict
        bins[n_occupied] = bin_
        sums[n_occupied] = before
        before += content
        n_occupied += np.uint64(content != 0)
    return np.int64(n_occupied)


@inlined
def list_few(cells, bins, sums):
    """Do what :func:`list_occupied` does, faster where few bins are occupied.

    Eight cells are compared at once, then only the occupied ones are visited.
    """
    n_occupied = np.uint64(0)
    before = np.int64(0)
    for first in range(0, len(cells), 64):
        bits = occupied_bits(cells[first : min(first + 64, len(cells))])
        while bits != np.uint64(0):
            bin_ = np.uint64(first) + trailing_zeros(bits)
            bins[n_occupied] = np.int64(bin_)
            sums[n_occupied] = before
            before += cells[bin_]
            n_occupied += np.uint64(1)
            bits &= bits - np.uint64(1)
    return np.int64(n_occupied)


@inlined
def occupied_bits(cells):
    """Return 64 bits, of which bit i is 1 if cell i is occupied."""
    bits = np.uint64(0)
    for bin_ in range(len(cells)):
        bits |= _BIT[bin_] if cells[bin_] != 0 else np.uint64(0)
    return bits


# Of a row of weight 1, so that weights may have fractions.
_ONE = np.int64(2**20)


def row_counts(weight: np.ndarray, least: int) -> np.ndarray:
    """Return the counts of rows of these weights, int64.

    `least` is the least count of a child: more than that need not be told apart, and sums cannot
    become too large.
    """
    # up: rows whose weights add up to the least in all but rounding are enough
    counts: np.ndarray = np.ceil(np.minimum(weight, least) * _ONE).astype(np.int64)
    return counts


@late()
def fill_counts(gradients, rows):
    """Copy the counts of rows ``[start, stop)`` to the strips.

    A row whose target is not known counts for nothing in the tree of that target.
    """
    n_outputs, n_samples = gradients.packed.shape
    n_lanes = gradients.strips.shape[1] // n_samples
    strip, lane = gradients.strips[n_outputs // n_lanes], n_outputs % n_lanes
    for row in range(rows[0], rows[1]):
        is_seen = gradients.packed[0, row] != 0
        strip[np.uint64(row * n_lanes + lane)] = gradients.counts[row] if is_seen else 0


@late("boolean")
def has_rows_for_two(node, params, tree):
    """Whether a node has rows enough for two children."""
    counts = tree.sums[node, OWN]
    return counts[len(counts) - 1] >= 2 * params.min_child_samples * _ONE


@late()
def forbid_few_rows(search, workspace, task, places, missing_cell):
    """Set the gains to -inf of splits that leave fewer rows than `min_child_samples` on a side.

    Of the places ``[first, stop)`` of a feature whose sums are listed; the rows of `missing_cell`
    go left, too, unless it is -1.
    """
    tree, (first, stop) = workspace.tree, places
    output = tree.sums.shape[2] - 1
    least, total = search.params.min_child_samples * _ONE, tree.sums[task.node, OWN, output]
    counts, left_start = workspace.special.sums[task.rank, output, first:stop], np.int64(0)
    if missing_cell >= 0:
        histogram = workspace.pool.histograms[tree.growth[task.node].slot]
        left_start = sum_cells(search.matrix, histogram, output, missing_cell, missing_cell + 1)
    gains = task.gains[np.int64(missing_cell >= 0)]
    for position in range(len(counts)):
        left = left_start + counts[np.uint64(position)]
        if min(left, total - left) < least:
            gains[np.uint64(position)] = -np.inf


# In a key: what is drawn are thresholds, not features.
_THRESHOLDS = np.int64(3)


@late()
def scan_special_feature(search, workspace, task, feature, best):
    """Replace `best` if a split of `feature` has a larger gain.

    The thread's rows of ``scratch`` and ``special`` are overwritten. If `best` becomes a split on
    categories, they are listed in ``special.categories``, at the task's number.
    """
    matrix, place, n_outputs = search.matrix, search.matrix.places[feature], len(search.scales)
    start, stop = place.first_cell, place.first_cell + n_numbers(matrix, feature) - place.is_shared
    cells, missing = cells_of(search, workspace, task, feature)
    n_rows, special = workspace.tree.growth[task.node].n_rows, workspace.special
    n_occupied = list_occupied(cells, n_rows, special.bins[task.rank], task.sums)
    if n_occupied < 2 and missing == 0:
        return
    bins, n_places = special.bins[task.rank, :n_occupied], np.int64(n_occupied)
    if matrix.n_categories[feature] > 0:
        n_places = list_category_places(search, workspace, task, feature, (start, stop), bins)
    places = (np.int64(0), n_places)  # the first one, and one after the last
    if search.params.extra_trees == 1:
        first = draw_place(search, task.node, feature, np.int64(missing == 0), n_places)
        places = (first, min(first + 1, n_places))
    sums = task.sums[places[0] : places[1]]
    # limits are known for one output alone
    if n_outputs == 1 and not may_improve(task.limits, sums, missing, best.gain):
        return
    if workspace.tree.sums.shape[2] > 1:
        list_other_sums(search, workspace, task, feature, (start, stop), bins)
    for default_left in range(2 if missing != 0 else 1):
        missing_cell = stop if default_left == 1 else np.int64(-1)
        fill_special_gains(search, workspace, task, feature, places, missing_cell)
        if matrix.n_categories[feature] > 0 and not is_one_hot(search, feature):
            forbid_places(search, (places[0], n_occupied), task.gains[default_left])
    position = choose_place(task, sums, missing, best)
    if position >= 0:
        best.feature, best.n_listed = feature, 0
        describe_split(search, workspace, task, places[0] + position, bins, missing, best)


@inlined
def n_numbers(matrix, feature):
    """Return the number of bins of a feature without the one of missing values."""
    n_bins = matrix.bin_starts[feature + 1] - matrix.bin_starts[feature]
    return n_bins - matrix.has_missing[feature]


@inlined
def cells_of(search, workspace, task, feature):
    """Return the first output's sums of a feature's bins in a node, and of missing values."""
    matrix, at = search.matrix, search.matrix.places[feature]
    n_bins, n_lanes = n_numbers(matrix, feature), len(task.histogram) // matrix.cell_starts[-1]
    stop, missing = at.first_cell + n_bins - at.is_shared, np.int64(0)
    if matrix.has_missing[feature] == 1:
        missing = task.histogram[stop * n_lanes]
    cells = task.histogram[at.first_cell : stop]
    if at.is_shared == 1 or len(search.scales) > 1:
        histogram = workspace.pool.histograms[workspace.tree.growth[task.node].slot]
        copied = workspace.special.cells[task.rank]
        copy_cells(matrix, histogram, feature, np.int64(0), task.total, copied)
        cells = copied[:n_bins]
    return cells, missing


@inlined
def list_category_places(search, workspace, task, feature, cells, bins):
    """Put categories in the order of the scan, with the sums before; return how many places."""
    histogram = workspace.pool.histograms[workspace.tree.growth[task.node].slot]
    keys, sums = workspace.special.keys[task.rank], task.sums
    n_places = order_categories(search, feature, histogram, cells, bins, sums, keys)
    if not is_one_hot(search, feature):
        shrink_sums(search, workspace, task.node, np.int64(0), feature, bins, sums)
    return n_places


@inlined
def draw_place(search, node, feature, first, stop):
    """Draw one of the places ``[first, stop)`` at which a feature may be split in a node."""
    key = hash_key(search.columns.key[0], _THRESHOLDS, node)
    bits = mix_bits(np.uint64(feature) ^ key)
    return first + np.int64(np.float64(bits) / TWO_32 * (stop - first))


@late()
def list_other_sums(search, workspace, task, feature, cells, bins):
    """Fill ``special.sums`` of all outputs but the first, for the feature in these cells."""
    matrix, scratch = search.matrix, workspace.special
    histogram = workspace.pool.histograms[workspace.tree.growth[task.node].slot]
    n_lanes = histogram.shape[1] // matrix.cell_starts[-1]
    one_hot = matrix.n_categories[feature] > 0 and is_one_hot(search, feature)
    for output in range(1, workspace.tree.sums.shape[2]):
        sums = scratch.sums[task.rank, output]
        if matrix.places[feature].is_shared == 1:
            copied, total = scratch.cells[task.rank], workspace.tree.sums[task.node, OWN, output]
            copy_cells(matrix, histogram, feature, output, total, copied)
            list_sums(copied, np.int64(1), np.int64(0), bins, sums)
            continue
        numbers = histogram[output // n_lanes, cells[0] * n_lanes : cells[1] * n_lanes]
        list_sums(numbers, n_lanes, output % n_lanes, bins, sums)
        if one_hot:
            total = sum_cells(matrix, histogram, output, cells[0], cells[1])
            set_apart(sums, len(bins), total)
        elif matrix.n_categories[feature] > 0 and output < workspace.tree.outputs.shape[1]:
            # counts of rows, behind the outputs, have no noise
            shrink_sums(search, workspace, task.node, output, feature, bins, sums)


@inlined
def fill_special_gains(search, workspace, task, feature, places, missing_cell):
    """Fill the gains of splits at these places; the rows of `missing_cell` left unless it is -1."""
    first, stop = places
    sums, rules, sign = task.sums[first:stop], search.columns.rules, np.int64(0)
    default_left, left_start = 0, np.int64(0)
    if missing_cell >= 0:
        default_left = 1
        n_lanes = len(task.histogram) // search.matrix.cell_starts[-1]
        left_start = task.histogram[missing_cell * n_lanes]
    gains = task.gains[default_left]
    if len(rules.signs) > 0:
        sign = rules.signs[feature]
    n_outputs, is_free = len(search.scales), len(rules.signs) == 0
    if n_outputs > 1:
        add_other_outputs(search, workspace, task, sign, missing_cell, places)
    if n_outputs == 1 and is_free and search.params.path_smooth == 0.0:
        fill_gains(search, task, sums, left_start, gains)
    else:
        fill_constrained_gains(search, workspace, task, (sign, left_start), sums, gains)
    if search.params.min_child_samples > 0:
        forbid_few_rows(search, workspace, task, places, missing_cell)


@inlined
def describe_split(search, workspace, task, place, bins, missing, best):
    """Fill in the bins or categories of `best`, which has all else of a split at `place`."""
    if search.matrix.n_categories[best.feature] == 0:
        best.bin = bins[place]
        best.below = bins[place - 1] if place > 0 else -1
        return
    one_hot, categories = is_one_hot(search, best.feature), workspace.special.categories
    list_left_categories(best, place, one_hot, bins, missing, categories[task.number])


@late()
def copy_split(node, target, tree):
    """Move a node's best split and the categories that it lists to `target`, unless it is a leaf.

    What nodes are is already at their new places.
    """
    if tree.nodes[target].left < 0:
        return
    tree.splits[target] = tree.splits[node]
    for index in range(tree.splits[node].n_listed):
        tree.categories[target, index] = tree.categories[node, index]


@late()
def complete_split(node, task, matrix, workspace):
    """Store the categories that a node's best split lists, and the left sums.

    Of numbers, the first output's is known from the scan.
    """
    tree, split = workspace.tree, workspace.tree.splits[node]
    for index in range(split.n_listed):
        tree.categories[node, index] = workspace.special.categories[task, index]
    histogram = workspace.pool.histograms[tree.growth[node].slot]
    first = 0 if split.n_listed > 0 else 1
    for output in range(first, tree.sums.shape[2] if split.gain > -np.inf else 0):
        if matrix.n_categories[split.feature] > 0:
            categories = tree.categories[node, : split.n_listed]
            left_sum = sum_categories(matrix, histogram, output, split.feature, categories)
        else:
            total = tree.sums[node, OWN, output]
            left_sum = sum_below(matrix, histogram, output, total, split.feature, split.bin)
        if split.default_left == 1:
            cell = missing_cell_of(matrix, split.feature)
            left_sum += sum_cells(matrix, histogram, output, cell, cell + 1)
        tree.sums[node, LEFT, output] = left_sum
