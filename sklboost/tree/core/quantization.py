"""Gradients as integers: the only file that knows the bits of a packed sum.

The gradient and the hessian of a row (float32), times its weight, become one int64: the quantised
gradient in the high 32 bits (signed), the quantised hessian in the low 32 (unsigned).

Sums of integers do not depend on the order of the terms. However the rows are divided among
threads, a histogram has the same bits, and a sibling is exactly parent minus child. One addition
serves both sums.
"""

import math
from typing import NamedTuple

import numpy as np

from sklboost.data.cuts import exact_step, exact_total
from sklboost.data.raw_values import IN_MEMORY, RowArrays, row_blocks
from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.elementary import float_of, low_bits, mix_bits, power_of_2_in
from sklboost.engine.parallel import FAR_APART
from sklboost.engine.structs import aligned_zeros
from sklboost.tree.core import options
from sklboost.tree.core.machines import BLOCK_ROWS, PIECE_ROWS

_GRADIENT_LIMIT = 2.0**31
_HESSIAN_LIMIT = 2.0**32
_SIGN = 0x80000000  # of a gradient of 32 bits
# Rows are added up in fixed pieces, the pieces of a block in order, and the blocks in order: then
# the scale does not depend on which thread, or machine, added which. Within a piece, row i is added
# to sum i % 32: sums that do not wait for one another.
_N_SUMS = 32
# Up to this total weight an average gradient has 18 bits or more: rounding to nearest is then
# unbiased enough, and a row of weight 2 gives exactly what the row twice gives.
FEW_ROWS = 4096.0
_LOW16, _LOW32 = np.uint64(0xFFFF), np.uint64(0xFFFFFFFF)
# What rounds by 16 bits: a factor of these, and what is added.
AT_RANDOM, TO_NEAREST = (2.0**-16, 2.0**-17), (0.0, 0.5)
# Of several outputs, so many lie side by side: one vector instruction adds them to a histogram.
LANES = 4


class Derivatives(NamedTuple):
    """The derivatives of a loss for each row, not yet multiplied by the weight."""

    # float32, shape (n_outputs, n_samples): filled anew before each round, in `units`. A tree is
    # grown on one output's or, if its leaves have a value for each output, on all.
    gradient: np.ndarray
    hessian: np.ndarray
    # float64, shape (n_samples,) or (0,): the weights divided by `weight_scale`. Empty: every row
    # has weight 1.
    weight: np.ndarray
    # A power of two, 1 unless the weights are large. Without it large weights would leave the
    # integers few values, since a row's gradient is rounded before it is multiplied.
    weight_scale: float
    # how much rounding can add to the sum of all rows, in integers: the sum of `weight`, plus 1 for
    # each row whose weight is not a whole number (it is rounded twice)
    rounding_room: float
    # float64, shape (n_outputs, 2): what 1 stands for in `gradient` and in `hessian`, powers of
    # two: not 1 where a user's loss gives numbers that are far from 1
    units: np.ndarray
    # float64, shape (n_outputs, 2, n_pieces): sums of ``|g| w`` and ``h w`` of each piece of rows
    sums: np.ndarray
    # float64, shape (n_outputs, 2, n_blocks): of several machines, these of each block of all
    totals: np.ndarray
    scratch: np.ndarray  # float64, shape (n_threads, 2, 32 or more)


class Gradients(NamedTuple):
    """Quantised gradients: value = integer * scale.

    Histograms are built from `strips`. In a tree of one output that is `packed` itself. Of several
    outputs each row has four lanes: outputs 4 s to 4 s + 3 in strip s, or 0 where there is no such
    output::

        row 0: 0 1 2 3 | row 1: 0 1 2 3 | ...        row 0: 4 - - - | row 1: 4 - - - | ...

    Where rows are counted, their counts come after the last output: in the next lane, or in a strip
    of their own.
    """

    packed: np.ndarray  # int64, shape (n_outputs, n_samples)
    strips: np.ndarray  # int64, shape (n_strips, n_samples * n_lanes)
    # float64, shape (n_outputs, 2): of the gradient and of the hessian, powers of two
    scales: np.ndarray
    # int64, shape (n_samples,) or (0,): how many rows each counts as, in a unit of
    # :mod:`sklboost.tree.options.scanning`. Empty: rows are not counted.
    counts: np.ndarray


def allocate_gradients(
    n_outputs: int, n_samples: int, n_sums: int, arrays: RowArrays = IN_MEMORY
) -> Gradients:
    """Make room for what one tree is grown on; there are `n_sums` sums of each node."""
    if n_outputs == 1:
        strips = arrays.empty((n_sums, n_samples), np.int64)
        packed = strips[:1]
    else:
        shape = (-(-n_sums // LANES), n_samples * LANES)
        # a file begins where a page begins, and a cache line, too
        strips = arrays.zeros(shape, np.int64) if arrays.are_on_disk else aligned_zeros(shape)
        packed = arrays.empty((n_outputs, n_samples), np.int64)
    counts = arrays.zeros((n_samples if n_sums > n_outputs else 0,), np.int64)
    return Gradients(packed, strips, np.ones((n_outputs, 2)), counts)


class WeightScale(NamedTuple):
    """The scale of the weights of all rows: two fields of :class:`Derivatives`."""

    weight_scale: float
    rounding_room: float


@np.errstate(all="ignore")
def scale_of_weights(weight: np.ndarray, n_samples: int) -> WeightScale:
    """Return the scale of the weights of all rows (empty: all 1), the same in any order."""
    if len(weight) == 0:
        return WeightScale(1.0, float(n_samples))
    total = exact_total(weight, exact_step(weight))
    scale = 2.0 ** max(0.0, np.ceil(np.log2(total / max(len(weight), FEW_ROWS))))
    n_fractions = 0
    is_here = isinstance(weight, np.ndarray)
    for rows in row_blocks(len(weight)) if is_here else [slice(len(weight))]:
        scaled = weight[rows] / scale
        n_fractions += int((scaled != np.floor(scaled)).sum())
    return WeightScale(scale, float(total / scale + n_fractions))


@np.errstate(all="ignore")
def weigh(
    gradient: np.ndarray,
    hessian: np.ndarray,
    weight: np.ndarray,
    n_threads: int,
    scale: WeightScale | None = None,
    n_everywhere: int = 0,
    arrays: RowArrays = IN_MEMORY,
) -> Derivatives:
    """Put a loss's two arrays together with the weights of the rows (empty: all 1).

    If there are more rows elsewhere, `scale` is that of the weights of all, `n_everywhere` rows.
    """
    n_outputs, n_samples = gradient.shape
    scale = scale or scale_of_weights(weight, n_samples)
    return Derivatives(
        gradient,
        hessian,
        np.divide(weight, scale.weight_scale, out=arrays.empty(weight.shape)),
        *scale,
        units=np.ones((n_outputs, 2)),
        sums=np.zeros((n_outputs, 2, -(-n_samples // PIECE_ROWS))),
        totals=np.zeros((n_outputs, 2, -(-n_everywhere // BLOCK_ROWS))),
        scratch=np.empty((n_threads, 2, _N_SUMS + FAR_APART)),
    )


@inlined
def derivatives_of(derivatives, first, stop):
    """Return the derivatives of the outputs ``[first, stop)``."""
    return Derivatives(
        derivatives.gradient[first:stop],
        derivatives.hessian[first:stop],
        derivatives.weight,
        derivatives.weight_scale,
        derivatives.rounding_room,
        derivatives.units[first:stop],
        derivatives.sums[first:stop],
        derivatives.totals[first:stop],
        derivatives.scratch,
    )


@inlined
def pack(gradient, hessian):
    """Put a whole-number gradient and hessian (float64) into one int64."""
    return (low_bits(gradient) << 32) + (low_bits(hessian) & 0xFFFFFFFF)


@inlined
def gradient_of(packed):
    """Return the integer gradient of a packed value or sum."""
    return packed >> 32


@inlined
def hessian_of(packed):
    """Return the integer hessian of a packed value or sum."""
    return packed & 0xFFFFFFFF


@inlined
def unpack(packed, scales):
    """Return gradient and hessian of a packed value or sum as float64.

    `scales` is a tuple, so that a loop holds both in registers.
    """
    gradient, hessian = units_of(packed)
    return gradient * scales[0], hessian * scales[1]


@inlined
def units_of(packed):
    """Return gradient and hessian of a packed value or sum, whole numbers as float64."""
    # the gradient as a number that is not negative, for which there are vector instructions
    gradient = float_of(((packed >> 32) & 0xFFFFFFFF) ^ _SIGN) - _GRADIENT_LIMIT
    return gradient, float_of(hessian_of(packed))


@inlined
def scales_of(scales, output):
    """Return the scales of one output as a tuple, as :func:`unpack` wants them."""
    return scales[output, 0], scales[output, 1]


@kernel
def sum_cells(matrix, histogram, output, start, stop):
    """Return the packed sum of the cells ``[start, stop)`` for one output.

    `histogram` is a node's, with all its strips: shape (n_strips, n_cells * n_lanes).
    """
    n_lanes = histogram.shape[1] // matrix.cell_starts[-1]
    numbers, lane = histogram[output // n_lanes], output % n_lanes
    total = np.int64(0)
    for cell in range(start, stop):
        total += numbers[np.uint64(cell * n_lanes + lane)]
    return total


@kernel
def add_up(team, derivatives, rows):
    """Fill the sums of the derivatives of rows ``[start, stop)``, a piece."""
    parts, piece = derivatives.scratch[team.rank], rows[0] // PIECE_ROWS
    gradient_sums, hessian_sums = parts[0], parts[1]
    for output in range(derivatives.sums.shape[0]):
        gradient_sums[:] = 0.0
        hessian_sums[:] = 0.0
        for first in range(rows[0], rows[1], _N_SUMS):
            last = min(first + _N_SUMS, rows[1])
            gradient = derivatives.gradient[output, first:last]
            hessian = derivatives.hessian[output, first:last]
            if len(derivatives.weight) == 0:
                for index in range(len(gradient)):
                    gradient_sums[index] += abs(np.float64(gradient[index]))
                    hessian_sums[index] += np.float64(hessian[index])
            else:
                weight = derivatives.weight[first:last]
                for index in range(len(gradient)):
                    gradient_sums[index] += abs(np.float64(gradient[index])) * weight[index]
                    hessian_sums[index] += np.float64(hessian[index]) * weight[index]
        for kind in range(2):
            total = 0.0
            for index in range(_N_SUMS):
                total += parts[kind, index]
            derivatives.sums[output, kind, piece] = total


@kernel
def scale_of(derivatives, output, kind, machines):
    """Return the scale of an output's gradients (kind 0) or hessians (1), all being added up."""
    sums, n_at_once = derivatives.sums[output, kind], BLOCK_ROWS // PIECE_ROWS
    if machines.size > 1:
        sums, n_at_once = derivatives.totals[output, kind], 1
    total = 0.0
    for first in range(0, len(sums), n_at_once):
        of_block = 0.0
        for index in range(first, min(first + n_at_once, len(sums))):
            of_block += sums[index]
        total += of_block
    limit = _GRADIENT_LIMIT if kind == 0 else _HESSIAN_LIMIT
    most = limit - (derivatives.rounding_room + 1.0)
    # the largest power of two for which the total stays within its bits
    factor = power_of_2_in(most / total) if total > 0.0 else 1.0
    return derivatives.weight_scale * derivatives.units[output, kind] / factor


@kernel
def quantize(team, derivatives, key, gradients, machines, rows):
    """Fill `gradients` of rows ``[start, stop)``, this member's; all rows have been added up.

    The scales are the smallest powers of two for which no sum over any set of rows can leave its 32
    bits. Rounding is stochastic (unbiased) for many rows, to nearest for few. `key`, below 2^32, is
    what the random roundings of this tree depend on.
    """
    for output in range(len(gradients.packed)):
        # each member for itself, which takes less time than to wait for one of them
        of_gradient = scale_of(derivatives, output, 0, machines)
        of_hessian = scale_of(derivatives, output, 1, machines)
        if team.rank == 0:
            gradients.scales[output, 0], gradients.scales[output, 1] = of_gradient, of_hessian
        # errors of the outputs must not add up: each has roundings of its own
        output_key = key ^ mix_bits(np.uint64(output))
        scales, start = (of_gradient, of_hessian), rows[0]
        while start < rows[1]:
            block = start // BLOCK_ROWS
            stop = min((block + 1) * BLOCK_ROWS, rows[1])
            first_number = machines.first_rows[block] + start - block * BLOCK_ROWS
            of_rows = ((start, stop), first_number)
            quantize_rows(derivatives, output, output_key, scales, gradients, of_rows)
            start = stop
    if len(gradients.packed) > 1:
        options.fill_strips(gradients, rows)
    if len(gradients.counts) > 0:
        options.fill_counts(gradients, rows)


@kernel
def quantize_rows(derivatives, output, key, scales, gradients, numbered):
    """Fill ``gradients.packed[output]`` for rows ``[start, stop)``, numbered from the first on."""
    (start, stop), first_number = numbered
    # slices: the loops then have no test for negative indices
    gradient = derivatives.gradient[output, start:stop]
    hessian = derivatives.hessian[output, start:stop]
    weight, packed = derivatives.weight[start:stop], gradients.packed[output, start:stop]
    units, weight_scale = scales_of(derivatives.units, output), derivatives.weight_scale
    factors = (weight_scale * units[0] / scales[0], weight_scale * units[1] / scales[1])
    rounding = AT_RANDOM if derivatives.rounding_room > FEW_ROWS else TO_NEAREST
    least_of_unknown = 1.0 if len(gradients.packed) > 1 else 0.0
    is_weighted = len(derivatives.weight) > 0
    for position in range(0 if is_weighted else len(packed)):
        # masked last, so that the compiler knows that 32 bits are all
        bits = mix_bits((np.uint64(first_number + position) ^ key) & _LOW32)
        of_row = (gradient[position], hessian[position])
        g, h, _ = round_row(of_row, factors, bits, rounding, least_of_unknown)
        packed[position] = pack(g, h)
    for position in range(len(weight)):
        bits = mix_bits((np.uint64(first_number + position) ^ key) & _LOW32)
        of_row = (gradient[position], hessian[position])
        g, h, least = round_row(of_row, factors, bits, rounding, least_of_unknown)
        # a whole weight leaves a whole number, which this second rounding does not change
        bits = mix_bits(bits ^ np.uint64(0x9E3779B9)) & _LOW16
        g = round_by_bits(g * weight[position], bits, rounding)
        h = round_by_bits(h * weight[position], bits, rounding)
        packed[position] = pack(g, max(h, least))


@inlined
def round_row(of_row, factors, bits, rounding, least_of_unknown):
    """Return the integers (as float64) of a row of weight 1, and the least that its hessian may be.

    A row never counts for nothing: a bin of the histogram is empty if and only if it has no rows,
    and no child has a hessian of 0. (`rounding_room` includes that.) The exception is a row whose
    target is not known: both derivatives are 0, and for this tree it is as if it were not there;
    unless the tree has other outputs, for which it is, and its hessian `least_of_unknown`.
    """
    gradient, hessian = of_row
    least = 1.0 if (gradient != 0.0) | (hessian != 0.0) else least_of_unknown
    row_gradient = round_by_bits(gradient * factors[0], bits & _LOW16, rounding)
    row_hessian = round_by_bits(hessian * factors[1], bits >> np.uint64(16), rounding)
    return row_gradient, max(row_hessian, least), least


@inlined
def round_by_bits(value, bits, rounding):
    """Round to a whole number by 16 random bits; or to the nearest one, as `rounding` says.

    Away from 0 with the probability of the fraction, so opposite values give opposite results. One
    formula for both: without a branch the loops that call this become vector instructions.
    """
    up = float_of(np.int64(bits)) * rounding[0] + rounding[1]
    return math.copysign(np.floor(abs(value) + up), value)
