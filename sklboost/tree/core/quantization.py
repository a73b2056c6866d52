"""Gradients as integers: the only file that knows the bits of a packed sum.

In: the gradient and hessian of every row (float32) and its weight. Out: one int64 a row with the
quantised gradient in the high 32 bits (signed) and the quantised hessian in the low 32 (unsigned).

The one idea: sums of integers do not depend on the order of the terms. However the rows are divided
among threads, a histogram has the same bits, and a sibling is exactly parent minus child. One
addition serves both sums.
"""

import math
from typing import NamedTuple

import numpy as np

from sklboost.engine.compiling import inlined, kernel, late
from sklboost.engine.hashing import mix_bits
from sklboost.engine.parallel import barrier, share

_GRADIENT_LIMIT = 2.0**31
_HESSIAN_LIMIT = 2.0**32
# Rows are added up in blocks of this fixed size, and the blocks in order, so that the scale does
# not depend on which thread added which block.
_BLOCK = 4096
# Within a block, row i is added to sum i % 64: sums that do not wait for one another.
_LANES = 64
# Up to this total weight an average gradient has 18 bits or more: rounding to nearest is then
# unbiased enough, and a row of weight 2 gives exactly what the row twice gives.
FEW_ROWS = 4096.0
_LOW16 = np.uint64(0xFFFF)
# Of several outputs, so many lie side by side: one vector instruction adds them to a histogram.
LANES = 4
_LINE = 8  # int64 of a cache line


class Derivatives(NamedTuple):
    """What a loss gives for each row, not yet multiplied by the weight.

    Attributes
    ----------
    gradient, hessian : ndarray of float32, shape (n_outputs, n_samples)
        Filled anew before each round. A tree is grown on one output's or, if its leaves have a
        value for each output, on all.
    weight : ndarray of float64, shape (n_samples,) or (0,)
        In units of `unit`. Empty: every row has weight 1.
    unit : float
        A power of two, 1 unless the weights are large. Without it large weights would leave the
        integers few steps, since a row's gradient is rounded before it is multiplied.
    slack : float
        How much rounding can add to the sum of all rows, in steps: the sum of `weight`, plus 1 for
        each row whose weight is not a whole number (it is rounded twice).
    """

    gradient: np.ndarray
    hessian: np.ndarray
    weight: np.ndarray
    unit: float
    slack: float


class Gradients(NamedTuple):
    """Quantised gradients: float = integer * step.

    Attributes
    ----------
    packed : ndarray of int64, shape (n_outputs, n_samples)
    bundles : ndarray of int64, shape (n_bundles, n_samples * n_lanes)
        The same once more, as histograms are built from it. One output: `packed` itself, with one
        lane. Several: four lanes a row, which are outputs 4 b to 4 b + 3 in bundle b, or 0 where
        there is no such output::

            row 0: 0 1 2 3 | row 1: 0 1 2 3 | ...        row 0: 4 - - - | row 1: 4 - - - | ...
    steps : ndarray of float64, shape (n_outputs, 2)
        Of the gradient and of the hessian, powers of two.
    block_sums : ndarray of float64, shape (2, n_blocks, n_lanes)
        Scratch: sums of ``|g| w`` and ``h w`` over fixed sets of rows.
    """

    packed: np.ndarray
    bundles: np.ndarray
    steps: np.ndarray
    block_sums: np.ndarray


def aligned_zeros(shape: tuple[int, ...]) -> np.ndarray:
    """Make an array of int64 that begins where a cache line begins.

    So no bundle of lanes lies on two lines; scattered ones would take more than twice the time.
    """
    n_numbers = math.prod(shape)
    memory = np.zeros(n_numbers + _LINE, dtype=np.int64)
    start = -memory.ctypes.data // memory.itemsize % _LINE
    return memory[start : start + n_numbers].reshape(shape)


def allocate_gradients(n_outputs: int, n_samples: int) -> Gradients:
    """Make room for the gradients that one tree is grown on."""
    n_blocks = -(-n_samples // _BLOCK)
    packed = np.empty((n_outputs, n_samples), dtype=np.int64)
    n_bundles = -(-n_outputs // LANES)
    return Gradients(
        packed,
        packed if n_outputs == 1 else aligned_zeros((n_bundles, n_samples * LANES)),
        np.ones((n_outputs, 2)),
        np.empty((2, n_blocks, _LANES)),
    )


def weigh(gradient: np.ndarray, hessian: np.ndarray, weight: np.ndarray) -> Derivatives:
    """Put a loss's two arrays together with the weights of the rows (empty: all 1)."""
    unit, slack = 1.0, float(gradient.shape[-1])
    if len(weight) > 0:
        mean_weight = weight.sum() / max(len(weight), FEW_ROWS)
        unit = 2.0 ** max(0.0, np.ceil(np.log2(mean_weight)))
        weight = weight / unit
        slack = float(weight.sum() + np.count_nonzero(weight != np.floor(weight)))
    return Derivatives(gradient, hessian, weight, unit, slack)


@inlined
def pack(gradient, hessian):
    """Put a whole-number gradient and hessian (float64) into one int64."""
    return (np.int64(gradient) << 32) + np.int64(hessian)


@inlined
def gradient_of(packed):
    """Give the integer gradient of a packed value or sum."""
    return packed >> 32


@inlined
def hessian_of(packed):
    """Give the integer hessian of a packed value or sum."""
    return packed & 0xFFFFFFFF


@inlined
def unpack(packed, steps):
    """Give gradient and hessian of a packed value or sum as float64, in the unit of the loss.

    `steps` is a tuple, so that a loop holds both in registers.
    """
    return gradient_of(packed) * steps[0], hessian_of(packed) * steps[1]


@inlined
def steps_of(steps, output):
    """Give the steps of one output as :func:`unpack` wants them."""
    return steps[output, 0], steps[output, 1]


@inlined
def round_magnitude(value, uniform):
    """Round `value` to a whole number: away from 0 with the probability of its fraction.

    `uniform` in (0, 1) decides; 0.5 rounds to nearest. Opposite values give opposite results.
    """
    return math.copysign(math.floor(abs(value) + uniform), value)


@inlined
def _largest_scale(total, limit):
    """Give the largest power of two with ``total * scale <= limit``."""
    if total <= 0.0:
        return 1.0
    _, exponent = math.frexp(limit / total)
    return math.ldexp(1.0, exponent - 1)


@kernel
def _add_block(derivatives, rows, gradient_sums, hessian_sums):
    """Fill the sums of ``|g| w`` and ``h w`` of rows ``[start, stop)``, one for each lane."""
    gradient_sums[:] = 0.0
    hessian_sums[:] = 0.0
    for first in range(rows[0], rows[1], _LANES):
        last = min(first + _LANES, rows[1])
        gradient, hessian = derivatives.gradient[first:last], derivatives.hessian[first:last]
        if len(derivatives.weight) == 0:
            for lane in range(len(gradient)):
                gradient_sums[lane] += abs(np.float64(gradient[lane]))
                hessian_sums[lane] += np.float64(hessian[lane])
        else:
            weight = derivatives.weight[first:last]
            for lane in range(len(gradient)):
                gradient_sums[lane] += abs(np.float64(gradient[lane])) * weight[lane]
                hessian_sums[lane] += np.float64(hessian[lane]) * weight[lane]


@inlined
def _round(value, bits, randomness):
    """Round to a whole number by 16 random bits; to the nearest one if `randomness` is 0, not 1."""
    uniform = (np.float64(bits) + 0.5) / 65536.0
    return round_magnitude(value, 0.5 + randomness * (uniform - 0.5))


@kernel
def _quantize_rows(derivatives, key, gradients, floor, rows):
    """Fill ``gradients.packed`` for rows ``[start, stop)``; hessians are at least `floor`."""
    start, stop = rows
    # Slices, and nearest rounding by the same formula as random: so the loop has neither a test for
    # negative indices nor a branch, and becomes vector instructions.
    gradient, hessian = derivatives.gradient[start:stop], derivatives.hessian[start:stop]
    packed = gradients.packed[start:stop]
    gradient_scale = derivatives.unit / gradients.steps[0]
    hessian_scale = derivatives.unit / gradients.steps[1]
    randomness = 1.0 if derivatives.slack > FEW_ROWS else 0.0
    weighted = len(derivatives.weight) > 0
    # A row never counts for nothing: a bin of the histogram is empty if and only if it has no rows,
    # and no child has a hessian of 0. The slack has room for that one step. The exception is a row
    # whose target is not known: both are 0, and for this tree it is as if it were not there; unless
    # the tree has other outputs, for which it is.
    for position in range(0 if weighted else len(packed)):
        bits = mix_bits((np.uint64(start + position) & np.uint64(0xFFFFFFFF)) ^ key)
        least = 1.0 if (gradient[position] != 0.0) | (hessian[position] != 0.0) else floor
        row_hessian = _round(hessian[position] * hessian_scale, bits >> np.uint64(16), randomness)
        packed[position] = pack(
            _round(gradient[position] * gradient_scale, bits & _LOW16, randomness),
            max(row_hessian, least),
        )
    weight = derivatives.weight[start:stop]
    for position in range(len(weight)):
        bits = mix_bits((np.uint64(start + position) & np.uint64(0xFFFFFFFF)) ^ key)
        row_gradient = _round(gradient[position] * gradient_scale, bits & _LOW16, randomness)
        row_hessian = _round(hessian[position] * hessian_scale, bits >> np.uint64(16), randomness)
        least = 1.0 if (gradient[position] != 0.0) | (hessian[position] != 0.0) else floor
        # a whole weight leaves a whole number, which this second rounding does not change
        bits = mix_bits(bits ^ np.uint64(0x9E3779B9)) & _LOW16
        packed[position] = pack(
            _round(row_gradient * weight[position], bits, randomness),
            max(_round(max(row_hessian, least) * weight[position], bits, randomness), least),
        )


@kernel
def _set_steps(derivatives, gradients):
    """Set the steps from the sums over all blocks, added in order."""
    sums = gradients.block_sums
    gradient_total, hessian_total = 0.0, 0.0
    for block in range(sums.shape[1]):
        for lane in range(_LANES):
            gradient_total += sums[0, block, lane]
            hessian_total += sums[1, block, lane]
    slack = derivatives.slack + 1.0
    gradient_scale = _largest_scale(gradient_total, _GRADIENT_LIMIT - slack)
    hessian_scale = _largest_scale(hessian_total, _HESSIAN_LIMIT - slack)
    gradients.steps[0] = derivatives.unit / gradient_scale
    gradients.steps[1] = derivatives.unit / hessian_scale


@kernel
def quantize(team, derivatives, key, gradients):
    """Fill `gradients` from `derivatives`, output by output; every member of the team calls it.

    The steps are the smallest powers of two for which no sum over any set of rows can leave its 32
    bits. Rounding is stochastic (unbiased) for many rows, to nearest for few.

    Parameters
    ----------
    team : Team
    derivatives : Derivatives
    key : uint64
        Below 2^32; seed and round mixed: what the random roundings of this tree depend on.
    gradients : Gradients
        Filled.
    """
    floor = 1.0 if len(gradients.packed) > 1 else 0.0
    for output in range(len(gradients.packed)):
        own = Derivatives(
            derivatives.gradient[output],
            derivatives.hessian[output],
            derivatives.weight,
            derivatives.unit,
            derivatives.slack,
        )
        filled = Gradients(
            gradients.packed[output],
            gradients.bundles,
            gradients.steps[output],
            gradients.block_sums,
        )
        # errors of the outputs must not add up: each has roundings of its own
        _quantize_output(team, own, key ^ mix_bits(np.uint64(output)), filled, floor)
    if len(gradients.packed) > 1:
        _lay_side_by_side(gradients, share(team, gradients.packed.shape[1]))
        barrier(team)


@late()
def _lay_side_by_side(gradients, rows):
    """Fill ``gradients.bundles`` for rows ``[start, stop)``, several outputs given."""
    for index in range(len(gradients.bundles)):
        bundle, packed = gradients.bundles[index], gradients.packed[LANES * index :]
        n_lanes = np.uint64(min(LANES, len(packed)))
        for row in range(rows[0], rows[1]):
            for lane in range(n_lanes):
                bundle[np.uint64(row * LANES) + lane] = packed[lane, np.uint64(row)]


@kernel
def _quantize_output(team, derivatives, key, gradients, floor):
    """Quantise the derivatives of one output; ends when all rows are done."""
    n_blocks, n_samples = gradients.block_sums.shape[1], len(gradients.packed)
    start, stop = share(team, n_blocks)
    sums = gradients.block_sums
    for block in range(start, stop):
        rows = (block * _BLOCK, min((block + 1) * _BLOCK, n_samples))
        _add_block(derivatives, rows, sums[0, block], sums[1, block])
    barrier(team)
    if team.rank == 0:
        _set_steps(derivatives, gradients)
    barrier(team)
    start, stop = min(start * _BLOCK, n_samples), min(stop * _BLOCK, n_samples)
    _quantize_rows(derivatives, key, gradients, floor, (start, stop))
    barrier(team)
