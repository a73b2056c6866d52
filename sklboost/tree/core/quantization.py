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

from sklboost.data.raw_values import IN_MEMORY, RowArrays, row_blocks
from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.elementary import float_of, low_bits, mix_bits, power_of_2_in
from sklboost.engine.parallel import barrier, share
from sklboost.engine.structs import aligned_zeros
from sklboost.tree.core import options
from sklboost.tree.core.machines import BLOCK_ROWS, TOTALS, Machines, exchange

_GRADIENT_LIMIT = 2.0**31
_HESSIAN_LIMIT = 2.0**32
_SIGN = 0x80000000  # of a gradient of 32 bits
# Rows are added up in fixed blocks, and the blocks in order, so that the scale does not depend on
# which thread, or machine, added which block. Within a block, row i is added to sum i % 64: sums
# that do not wait for one another.
_N_SUMS = 64
# Up to this total weight an average gradient has 18 bits or more: rounding to nearest is then
# unbiased enough, and a row of weight 2 gives exactly what the row twice gives.
FEW_ROWS = 4096.0
_LOW16, _LOW32 = np.uint64(0xFFFF), np.uint64(0xFFFFFFFF)
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
    # float64, shape (2, n_blocks, 64): scratch: sums of ``|g| w`` and ``h w`` over fixed sets of
    # rows
    block_sums: np.ndarray
    # float64, shape (2, n_blocks): their totals of each block; of several machines, of all blocks
    totals: np.ndarray


def allocate_gradients(
    n_outputs: int,
    n_samples: int,
    n_sums: int,
    machines: Machines | None = None,
    arrays: RowArrays = IN_MEMORY,
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
    block_sums = np.empty((2, -(-n_samples // BLOCK_ROWS), _N_SUMS))
    n_everywhere = n_samples if machines is None else machines.n_samples
    totals = np.empty((2, -(-n_everywhere // BLOCK_ROWS)))
    return Gradients(packed, strips, np.ones((n_outputs, 2)), counts, block_sums, totals)


class WeightScale(NamedTuple):
    """The scale of the weights of all rows: two fields of :class:`Derivatives`."""

    weight_scale: float
    rounding_room: float


@np.errstate(all="ignore")
def scale_of_weights(weight: np.ndarray, n_samples: int) -> WeightScale:
    """Return the scale of the weights of all rows (empty: all 1)."""
    if len(weight) == 0:
        return WeightScale(1.0, float(n_samples))
    total = weight.sum()
    scale = 2.0 ** max(0.0, np.ceil(np.log2(total / max(len(weight), FEW_ROWS))))
    n_fractions = 0
    for rows in row_blocks(len(weight)):
        scaled = weight[rows] / scale
        n_fractions += int(np.count_nonzero(scaled != np.floor(scaled)))
    return WeightScale(scale, float(total / scale + n_fractions))


@np.errstate(all="ignore")
def weigh(
    gradient: np.ndarray,
    hessian: np.ndarray,
    weight: np.ndarray,
    scale: WeightScale | None = None,
    arrays: RowArrays = IN_MEMORY,
) -> Derivatives:
    """Put a loss's two arrays together with the weights of the rows (empty: all 1).

    `scale` is given if there are more rows elsewhere: the scale of the weights of all.
    """
    scale = scale or scale_of_weights(weight, gradient.shape[-1])
    weight = np.divide(weight, scale.weight_scale, out=arrays.empty(weight.shape))
    units = np.ones((len(gradient), 2))
    return Derivatives(gradient, hessian, weight, *scale, units)


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
def quantize(team, derivatives, key, gradients, machines):
    """Fill `gradients` from `derivatives`, output by output; every member of the team calls it.

    The scales are the smallest powers of two for which no sum over any set of rows can leave its 32
    bits. Rounding is stochastic (unbiased) for many rows, to nearest for few. `key`, below 2^32, is
    what the random roundings of this tree depend on.
    """
    n_samples, sums = gradients.packed.shape[1], gradients.block_sums
    start, stop = share(team, sums.shape[1])
    for output in range(len(gradients.packed)):
        for block in range(start, stop):
            rows = (block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, n_samples))
            sum_block(derivatives, output, rows, sums[0, block], sums[1, block])
            for kind in range(2):
                total = 0.0
                for index in range(_N_SUMS):
                    total += sums[kind, block, index]
                gradients.totals[kind, block] = total
        barrier(team)
        if team.rank == 0:
            exchange(machines, TOTALS)
            set_scales(derivatives, output, gradients.totals, gradients.scales[output])
        barrier(team)
        # errors of the outputs must not add up: each has roundings of its own
        output_key = key ^ mix_bits(np.uint64(output))
        for block in range(start, stop):
            rows = (block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, n_samples))
            first_number = machines.first_rows[block]
            quantize_rows(derivatives, output, output_key, gradients, rows, first_number)
        barrier(team)
    if len(gradients.packed) > 1:
        options.fill_strips(team, gradients)
    if len(gradients.counts) > 0:
        options.fill_counts(team, gradients)


@kernel
def sum_block(derivatives, output, rows, gradient_sums, hessian_sums):
    """Fill 64 sums each of ``|g| w`` and ``h w`` of rows ``[start, stop)``."""
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


@kernel
def set_scales(derivatives, output, totals, scales):
    """Set the scales of an output from the totals of all blocks, added in order."""
    for kind in range(2):
        total = 0.0
        for block in range(totals.shape[1]):
            total += totals[kind, block]
        limit = _GRADIENT_LIMIT if kind == 0 else _HESSIAN_LIMIT
        most = limit - (derivatives.rounding_room + 1.0)
        # the largest power of two for which the total stays within its bits
        factor = power_of_2_in(most / total) if total > 0.0 else 1.0
        scales[kind] = derivatives.weight_scale * derivatives.units[output, kind] / factor


@kernel
def quantize_rows(derivatives, output, key, gradients, rows, first_number):
    """Fill ``gradients.packed[output]`` for rows ``[start, stop)``, numbered from the first on."""
    start, stop = rows
    # slices: the loops then have no test for negative indices
    gradient = derivatives.gradient[output, start:stop]
    hessian = derivatives.hessian[output, start:stop]
    weight, packed = derivatives.weight[start:stop], gradients.packed[output, start:stop]
    scales, weight_scale = scales_of(gradients.scales, output), derivatives.weight_scale
    units = scales_of(derivatives.units, output)
    factors = (weight_scale * units[0] / scales[0], weight_scale * units[1] / scales[1])
    randomness = 1.0 if derivatives.rounding_room > FEW_ROWS else 0.0
    rounding = (randomness, 1.0 if len(gradients.packed) > 1 else 0.0)
    is_weighted = len(derivatives.weight) > 0
    for position in range(0 if is_weighted else len(packed)):
        bits = mix_bits((np.uint64(first_number + position) & _LOW32) ^ key)
        g, h, _ = round_row(gradient[position], hessian[position], factors, bits, rounding)
        packed[position] = pack(g, h)
    for position in range(len(weight)):
        bits = mix_bits((np.uint64(first_number + position) & _LOW32) ^ key)
        g, h, least = round_row(gradient[position], hessian[position], factors, bits, rounding)
        # a whole weight leaves a whole number, which this second rounding does not change
        bits = mix_bits(bits ^ np.uint64(0x9E3779B9)) & _LOW16
        g = round_by_bits(g * weight[position], bits, randomness)
        h = round_by_bits(h * weight[position], bits, randomness)
        packed[position] = pack(g, max(h, least))


@inlined
def round_row(gradient, hessian, factors, bits, rounding):
    """Return the integers (as float64) of a row of weight 1, and the least that its hessian may be.

    A row never counts for nothing: a bin of the histogram is empty if and only if it has no rows,
    and no child has a hessian of 0. (`rounding_room` includes that.) The exception is a row whose
    target is not known: both derivatives are 0, and for this tree it is as if it were not there;
    unless the tree has other outputs, for which it is. `rounding` is how random it is, and the
    least hessian of such a row.
    """
    randomness, least_of_unknown = rounding
    least = 1.0 if (gradient != 0.0) | (hessian != 0.0) else least_of_unknown
    row_gradient = round_by_bits(gradient * factors[0], bits & _LOW16, randomness)
    row_hessian = round_by_bits(hessian * factors[1], bits >> np.uint64(16), randomness)
    return row_gradient, max(row_hessian, least), least


@inlined
def round_by_bits(value, bits, randomness):
    """Round to a whole number by 16 random bits; to the nearest one if `randomness` is 0, not 1.

    Away from 0 with the probability of the fraction, so opposite values give opposite results. One
    formula for both: without a branch the loops that call this become vector instructions.
    """
    uniform = (float_of(np.int64(bits)) + 0.5) / 65536.0
    return math.copysign(np.floor(abs(value) + (0.5 + randomness * (uniform - 0.5))), value)
