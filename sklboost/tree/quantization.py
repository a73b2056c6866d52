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

from sklboost.compiling import kernel
from sklboost.hashing import mix_bits
from sklboost.parallel import barrier, share

_GRADIENT_LIMIT = 2.0**31
_HESSIAN_LIMIT = 2.0**32
# Rows are added up in blocks of this fixed size, and the blocks in order, so that the scale does
# not depend on which thread added which block.
_BLOCK = 4096
# Up to this many rows an average gradient has 18 bits or more: rounding to nearest is then unbiased
# enough, and a row of weight 2 gives exactly what the row twice gives.
_NEAREST_UP_TO = 4096.0


class Derivatives(NamedTuple):
    """What a loss gives for each row, not yet multiplied by the weight.

    Attributes
    ----------
    gradient, hessian : ndarray of float32, shape (n_samples,)
        Filled anew before each tree.
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
    packed : ndarray of int64, shape (n_samples,)
    steps : ndarray of float64, shape (2,)
        Of the gradient and of the hessian, powers of two.
    block_sums : ndarray of float64, shape (2, n_blocks)
        Scratch: sums of ``|g| w`` and ``h w`` over fixed blocks of rows.
    """

    packed: np.ndarray
    steps: np.ndarray
    block_sums: np.ndarray


def allocate_gradients(n_samples: int) -> Gradients:
    """Make room for the gradients of `n_samples` rows."""
    n_blocks = -(-n_samples // _BLOCK)
    return Gradients(
        np.empty(n_samples, dtype=np.int64),
        np.ones(2),
        np.empty((2, n_blocks)),
    )


def weigh(gradient: np.ndarray, hessian: np.ndarray, weight: np.ndarray) -> Derivatives:
    """Put a loss's two arrays together with the weights of the rows (empty: all 1)."""
    unit, slack = 1.0, float(len(gradient))
    if len(weight) > 0:
        mean_weight = weight.sum() / max(len(weight), _NEAREST_UP_TO)
        unit = 2.0 ** max(0.0, np.ceil(np.log2(mean_weight)))
        weight = weight / unit
        slack = float(weight.sum() + np.count_nonzero(weight != np.floor(weight)))
    return Derivatives(gradient, hessian, weight, unit, slack)


@kernel
def pack(gradient, hessian):
    """Put a whole-number gradient and hessian (float64) into one int64."""
    return (np.int64(gradient) << 32) + np.int64(hessian)


@kernel
def gradient_of(packed):
    """Give the integer gradient of a packed value or sum."""
    return packed >> 32


@kernel
def hessian_of(packed):
    """Give the integer hessian of a packed value or sum."""
    return packed & 0xFFFFFFFF


@kernel
def unpack(packed, steps):
    """Give gradient and hessian of a packed value or sum as float64, in the unit of the loss.

    `steps` is a tuple, so that a loop holds both in registers.
    """
    return gradient_of(packed) * steps[0], hessian_of(packed) * steps[1]


@kernel
def round_magnitude(value, uniform):
    """Round `value` to a whole number: away from 0 with the probability of its fraction.

    `uniform` in (0, 1) decides; 0.5 rounds to nearest. Opposite values give opposite results.
    """
    return math.copysign(math.floor(abs(value) + uniform), value)


@kernel
def _largest_scale(total, limit):
    """Give the largest power of two with ``total * scale <= limit``."""
    if total <= 0.0:
        return 1.0
    _, exponent = math.frexp(limit / total)
    return math.ldexp(1.0, exponent - 1)


@kernel
def _add_blocks(derivatives, block_sums, start, stop):
    """Fill the block sums `start` to `stop`, excluded."""
    n_samples = len(derivatives.gradient)
    weighted = len(derivatives.weight) > 0
    for block in range(start, stop):
        gradient_sum = 0.0
        hessian_sum = 0.0
        first, last = block * _BLOCK, min((block + 1) * _BLOCK, n_samples)
        for row in range(np.uint64(first), np.uint64(last)):
            weight = derivatives.weight[row] if weighted else 1.0
            gradient_sum += abs(np.float64(derivatives.gradient[row])) * weight
            hessian_sum += np.float64(derivatives.hessian[row]) * weight
        block_sums[0, block] = gradient_sum
        block_sums[1, block] = hessian_sum


@kernel
def _quantize_rows(derivatives, key, gradients, start, stop):
    """Fill ``gradients.packed`` for rows `start` to `stop`, excluded."""
    gradient_scale = derivatives.unit / gradients.steps[0]
    hessian_scale = derivatives.unit / gradients.steps[1]
    weighted = len(derivatives.weight) > 0
    at_random = derivatives.slack > _NEAREST_UP_TO
    low16 = np.uint64(0xFFFF)
    # unsigned rows: the compiler then leaves out the test for negative indices
    for row in range(np.uint64(start), np.uint64(stop)):
        for_gradient, for_hessian, for_weight = 0.5, 0.5, 0.5
        if at_random:
            bits = mix_bits((row & np.uint64(0xFFFFFFFF)) ^ key)
            for_gradient = (np.float64(bits & low16) + 0.5) / 65536.0
            for_hessian = (np.float64(bits >> np.uint64(16)) + 0.5) / 65536.0
        # A row never counts for nothing: a bin of the histogram is empty if and only if it has no
        # rows, and no child has a hessian of 0. The slack has room for that one step.
        gradient = round_magnitude(derivatives.gradient[row] * gradient_scale, for_gradient)
        hessian = round_magnitude(derivatives.hessian[row] * hessian_scale, for_hessian)
        hessian = max(hessian, 1.0)
        if weighted:
            if at_random:
                bits = mix_bits(bits ^ np.uint64(0x9E3779B9))
                for_weight = (np.float64(bits & low16) + 0.5) / 65536.0
            # a whole weight leaves a whole number, which this second rounding does not change
            gradient = round_magnitude(gradient * derivatives.weight[row], for_weight)
            hessian = round_magnitude(hessian * derivatives.weight[row], for_weight)
            hessian = max(hessian, 1.0)
        gradients.packed[row] = pack(gradient, hessian)


@kernel
def quantize(team, derivatives, key, gradients):
    """Fill `gradients` from `derivatives`; every member of the team calls it.

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
    n_blocks = gradients.block_sums.shape[1]
    start, stop = share(team, n_blocks)
    _add_blocks(derivatives, gradients.block_sums, start, stop)
    barrier(team)
    if team.rank == 0:
        gradient_total, hessian_total = 0.0, 0.0
        for block in range(n_blocks):
            gradient_total += gradients.block_sums[0, block]
            hessian_total += gradients.block_sums[1, block]
        slack = derivatives.slack + 1.0
        gradient_scale = _largest_scale(gradient_total, _GRADIENT_LIMIT - slack)
        hessian_scale = _largest_scale(hessian_total, _HESSIAN_LIMIT - slack)
        gradients.steps[0] = derivatives.unit / gradient_scale
        gradients.steps[1] = derivatives.unit / hessian_scale
    barrier(team)
    n_samples = len(gradients.packed)
    _quantize_rows(
        derivatives, key, gradients, min(start * _BLOCK, n_samples), min(stop * _BLOCK, n_samples)
    )
    barrier(team)
