"""Row sampling: which rows a tree is grown from.

No random numbers are drawn from a stream: whether a row is drawn follows from a hash of the round's
key and the row's, so it does not depend on the thread that asks. The rows left out go down the tree
with the others (see :class:`~sklboost.tree.core.workspace.RowPartition`), so that they get the
value of their leaf, but histograms and counts are without them.

Gradient-based sampling draws rows of large derivatives with larger probability, and divides the
derivatives of those drawn by it. Source: Ibragimov & Gusev (2019), "Minimal Variance Sampling in
Stochastic Gradient Boosting". The variance of a node's sums is least where a row's probability is
proportional to ``sqrt(g^2 + lambda h^2)``, and 1 where that would be more.
"""

import math
from typing import NamedTuple

import numpy as np

from sklboost.data.raw_values import IN_MEMORY, RowArrays, row_blocks
from sklboost.engine.compiling import inlined, kernel, late
from sklboost.engine.elementary import TWO_32, mix_bits, power_of_2
from sklboost.engine.parallel import barrier, share
from sklboost.engine.structs import TrainingBins, TreeParams
from sklboost.tree.core.machines import MAGNITUDES, PIECE_ROWS, TOTALS, exchange, exchange_together
from sklboost.tree.core.partition import rows_of_blocks
from sklboost.tree.core.quantization import FEW_ROWS, add_up

# The weight of the hessian, lambda; XGBoost has the same.
_HESSIAN_SHARE = 0.1
# Magnitudes are counted by the upper bits of a float32: 8 of the exponent and 5 of the fraction, so
# cells are at most 3 % wide. The sign is always 0.
_CELL_SHIFT = np.uint32(18)
_N_CELLS = 2**13
_CELLS_PER_OCTAVE = 32
_SMALLEST, _LARGEST = 2e-38, 3e38  # normal, finite float32 numbers
# 2^64 times the fraction of the golden ratio: odd, and its powers look random.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


class RowSample(NamedTuple):
    """Keys and probabilities by which rows are drawn, and scratch."""

    # uint32, shape (n_samples,) or (0,): see :func:`row_keys`. Empty: all rows are taken.
    keys: np.ndarray
    # float32, shape (n_samples,) or (1,): probability of each row, or of all. Gradient-based: first
    # each row's magnitude.
    chances: np.ndarray
    # int64, shape (n_threads, n_cells) or (n_threads, 0): gradient-based: how many magnitudes are
    # in each cell of the grid
    counts: np.ndarray
    limit: np.ndarray  # float64, shape (1,): the magnitude from which on rows are sure to be drawn


def allocate_row_sample(
    n_samples: int, params: TreeParams, n_threads: int, arrays: RowArrays = IN_MEMORY
) -> RowSample:
    """Allocate draws of rows, whose keys are their numbers until others are written."""
    is_sampled, by_gradient = params.subsample < 1.0, params.gradient_based == 1
    keys = arrays.empty((n_samples if is_sampled else 0,), np.uint32)
    for rows in row_blocks(len(keys)):
        keys[rows] = np.arange(rows.start, rows.stop)
    return RowSample(
        keys=keys,
        chances=arrays.full([params.subsample], n_samples if by_gradient else 1, np.float32)[0],
        counts=np.zeros((n_threads, _N_CELLS if by_gradient else 0), dtype=np.int64),
        limit=np.ones(1),
    )


@np.errstate(all="ignore")
def row_keys(matrix: TrainingBins, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the keys by which rows are drawn; uint32, shape (n_samples,).

    Of up to 4,096 rows the key is the place among all rows in the order of a hash of their content.
    So the order in which they come does not matter, and of equal rows each is drawn on its own; a
    weight that all rows have changes nothing. Of more rows it is the row's number.
    """
    n_samples = y.shape[1]
    keys = np.arange(n_samples, dtype=np.uint32)
    if n_samples > FEW_ROWS:
        return keys
    content, bits_of_cells = np.zeros(n_samples, dtype=np.uint64), _bits_of_cells(matrix)
    for column, bins in enumerate(matrix.columns):
        cells = slice(matrix.cell_starts[column], matrix.cell_starts[column + 1])
        content += bits_of_cells[cells][bins]  # modulo 2^64
    # -0.0 becomes 0.0, which equals it; NaN, for an unknown target, has many forms and becomes one
    numbers = [*np.where(np.isnan(y), np.nan, y + 0.0).view(np.uint64)]
    if len(weight) > 0 and (weight != weight[0]).any():
        numbers.append(weight.view(np.uint64))
    for number in numbers:
        content = content * _FACTOR + number
    keys[np.argsort(content, kind="stable")] = np.arange(n_samples)
    return keys


def _bits_of_cells(matrix: TrainingBins) -> np.ndarray:
    """Return random-looking bits of (feature, bin) for each histogram cell, uint64.

    They are 0 for the bins of 0, so that it does not matter which features share a column.
    """
    n_bins = np.diff(matrix.bin_starts)
    feature = np.repeat(np.arange(len(n_bins)), n_bins)
    bin_ = np.arange(len(feature)) - matrix.bin_starts[feature]
    place = matrix.places[feature].view(np.recarray)
    bits = ((feature + 1) * np.int64(2**32) + bin_).astype(np.uint64)
    for _ in range(3):
        bits = (bits ^ (bits >> np.uint64(29))) * _FACTOR  # modulo 2^64
    cells = place.first_cell + bin_ - (place.is_shared & (bin_ > place.zero_bin))
    is_other = bin_ != place.zero_bin
    bits_of_cells = np.zeros(matrix.cell_starts[-1], dtype=np.uint64)
    bits_of_cells[cells[is_other]] = bits[is_other]
    return bits_of_cells


@inlined
def is_drawn(row_key, key, chance):
    """Whether a row of this key and probability is drawn in the round of `key`."""
    return np.float64(mix_bits(np.uint64(row_key) ^ key)) < np.float64(chance) * TWO_32


@kernel
def draw_block(sample, key, start, target):
    """Write the rows from `start` on to `target`, drawn ones first; return how many those are.

    As in dividing a node, every row is written at both ends and only one end advances.
    """
    keys = sample.keys[start : start + len(target)]
    step = np.uint64(1 if len(sample.chances) == len(sample.keys) else 0)
    drawn, left_out = np.uint64(0), np.uint64(len(target))
    one = np.uint64(1)
    for position in range(len(target)):
        row = np.uint64(start + position)
        chance = sample.chances[row * step]
        advances = np.uint64(is_drawn(keys[np.uint64(position)], key, chance))
        target[drawn] = row
        target[left_out - one] = row
        drawn += advances
        left_out -= one - advances
    return np.int64(drawn)


@inlined
def magnitude_cell(magnitude_bits):
    """Return the cell of the grid for a magnitude, given as the bits of a float32."""
    return np.int64(magnitude_bits >> _CELL_SHIFT)


@inlined
def middle_of_cell(cell):
    """Return the magnitude in the middle of a cell of the grid."""
    fraction = (cell % _CELLS_PER_OCTAVE + 0.5) / _CELLS_PER_OCTAVE
    return (1.0 + fraction) * power_of_2(cell // _CELLS_PER_OCTAVE - 127)


@kernel
def measure_rows(derivatives, rows, chances, counts):
    """Fill `chances` with ``sqrt(g^2 + lambda h^2)``, weights included, and count them in the grid.

    For the rows ``[start, stop)``. Of several outputs all squares are added up.
    """
    start, stop = rows
    weight = derivatives.weight[start:stop]
    largest_unit = 0.0
    for unit in derivatives.units.flat:
        largest_unit = max(largest_unit, unit)
    chances[:] = 0.0
    for output in range(len(derivatives.gradient)):
        gradient = derivatives.gradient[output, start:stop]
        hessian = derivatives.hessian[output, start:stop]
        unit_of_g = derivatives.units[output, 0] / largest_unit
        unit_of_h = derivatives.units[output, 1] / largest_unit
        for position in range(len(chances)):
            g, h = gradient[position] * unit_of_g, hessian[position] * unit_of_h
            before = np.float64(chances[position])  # the length of the vector so far
            magnitude = math.sqrt(before * before + g * g + _HESSIAN_SHARE * h * h)
            chances[position] = min(max(magnitude, _SMALLEST), _LARGEST)
    for position in range(len(weight)):
        magnitude = np.float64(chances[position]) * weight[position]
        chances[position] = min(max(magnitude, _SMALLEST), _LARGEST)
    counts[:] = 0
    for bits in chances.view(np.uint32):
        counts[magnitude_cell(bits)] += 1


@kernel
def find_limit(counts, n_wanted):
    """Return the magnitude from which on rows are sure, so that about `n_wanted` are drawn.

    The limit L solves ``sum of min(1, magnitude / L) = n_wanted``. Going up the grid, the rows so
    far share what those above, which would be sure, leave over; that ends where the next ones are
    above their limit. `counts`, of shape (n_threads, n_cells), are whole numbers, so that it does
    not matter which thread counted which row.
    """
    total = 0.0  # of the magnitudes so far
    # one subtraction: what many lose to rounding depends on their order
    left_over = n_wanted - counts.sum()
    for cell in range(counts.shape[1]):
        n_rows = 0
        for rank in range(counts.shape[0]):
            n_rows += counts[rank, cell]
        middle = middle_of_cell(cell)
        if n_rows > 0 and left_over > 0.0 and total < middle * left_over:
            break
        total += n_rows * middle
        left_over += n_rows
    return total / left_over


@kernel
def compensate_rows(derivatives, rows, sample, key):
    """Turn magnitudes into probabilities and divide the derivatives of drawn rows by theirs.

    Those of the others become 0, so that they do not change the scales of quantisation.
    """
    start, stop = rows
    keys, chances = sample.keys[start:stop], sample.chances[start:stop]
    for position in range(len(chances)):
        chances[position] = min(1.0, chances[position] / sample.limit[0])
    for output in range(len(derivatives.gradient)):
        gradient = derivatives.gradient[output, start:stop]
        hessian = derivatives.hessian[output, start:stop]
        for position in range(len(keys)):
            chance = chances[position]
            factor = 1.0 / chance if is_drawn(keys[position], key, chance) else 0.0
            gradient[position] *= factor
            hessian[position] *= factor


@kernel
def choose_chances(team, derivatives, subsample, sample, workspace, key):
    """Set the probability of each row and compensate the drawn ones; ends when all are done."""
    partition, machines = workspace.partition, workspace.machines
    rows = rows_of_blocks(partition, share(team, partition.n_counted))
    chances, counts = sample.chances[rows[0] : rows[1]], sample.counts[team.rank]
    measure_rows(derivatives, rows, chances, counts)
    barrier(team)
    if team.rank == 0:
        exchange(machines, MAGNITUDES)
        sample.limit[0] = find_limit(sample.counts, subsample * machines.n_samples)
    barrier(team)
    compensate_rows(derivatives, rows, sample, key)
    for first in range(rows[0], rows[1], PIECE_ROWS):
        add_up(team, derivatives, (first, min(first + PIECE_ROWS, rows[1])))
    exchange_together(team, machines, TOTALS)


@late()
def draw_rows(team, derivatives, key, params, sample, workspace):
    """Put the drawn rows in the blocks of the root that count, the others in those that do not.

    Gradient-based sampling modifies the derivatives. `key` is the round's, below 2^32.
    """
    partition, n_counted = workspace.partition, workspace.partition.n_counted
    if params.gradient_based == 1:
        choose_chances(team, derivatives, params.subsample, sample, workspace, key)
    first_block, stop_block = share(team, n_counted)
    for block in range(first_block, stop_block):
        start, stop = rows_of_blocks(partition, (block, block + 1))
        n_drawn = draw_block(sample, key, start, partition.lists[0, start:stop])
        partition.start[block, 0] = start
        partition.stop[block, 0] = start + n_drawn
        partition.start[n_counted + block, 0] = start + n_drawn
        partition.stop[n_counted + block, 0] = stop
    barrier(team)
