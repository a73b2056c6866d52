"""Passing over bins that cannot hold a better split: nothing here changes which split is found.

A feature's bins are taken in blocks of eight. A block has a limit, the most that a split in it can
gain. If that is not above the best gain so far, the block is passed over, as most are
(:func:`limit_gains`). In the others every split is compared with a limit of its own first, and
gains are computed where one of these is above the best gain (:func:`may_improve`).

A limit needs three sums of a block: of all bins before it, of all bins before the next, and of its
bins with positive gradients. Wherever in the block the node is split, the left side's gradient is
at least the sum before the block plus all negative ones, and at most that sum plus all positive
ones; its hessian is between the sums at both ends. What such a side can gain is in
:mod:`~sklboost.tree.core.formulas`; here is the room for rounding.
"""

from typing import NamedTuple

import numpy as np

from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.instructions import sum_eight
from sklboost.tree.core.formulas import Sides, has_excess, largest_excess, sides_of
from sklboost.tree.core.quantization import scales_of, units_of

# So many bins are a block: as many as `sum_eight` adds. Of blocks of 16, more than twice as many
# would have to be searched.
BLOCK_BINS = 8
# Far more than rounding can change a sum of two similarities, relative to it.
_ROUNDING = 1e-9
# Products of three such numbers are normal ones.
_SAFE = (2.0**-300, 2.0**300)
# Whole multiples of 1 / _FINE below 2^33 are exact, and so are their differences.
_FINE = 2.0**20


class Blocks(NamedTuple):
    """The blocks of the feature that a thread searches, or, with one axis more, of all threads."""

    # int64, shape (2 * BLOCK_BINS,): the cells of the last block if that is cut short, and zeros
    # behind them
    last: np.ndarray
    # int64, shape (n_blocks + 1,): packed sum of all cells before each block, and of all
    sums: np.ndarray
    # int64, shape (n_blocks,): of each block's cells whose gradient is not negative
    positive_sums: np.ndarray
    # float64, shape (2, n_blocks): of each block; the second row is scratch
    limits: np.ndarray


class GainLimits(NamedTuple):
    """Terms that the limits of all gains of a node share, with room for rounding errors.

    Hessians and lambda are in integer units.
    """

    sides: Sides
    # of a left side that is allowed
    least_hessian: float
    most_hessian: float
    unit: float  # of a similarity
    # ``G^2 / D`` minus the node's similarity, not in integer units; infinite if the numbers are too
    # large or too small for limits
    rest: float
    blocks: Blocks  # the thread's


@inlined
def limits_of_node(search, total, similarity, blocks, rank):
    """Return what limits of a node need, from its packed sum and its similarity as a leaf."""
    params, (gradient_unit, hessian_unit) = search.params, scales_of(search.scales, 0)
    unit = gradient_unit / hessian_unit * gradient_unit
    # Down to a multiple of 2^-20: below 2^31, D, L and R are then exact. Where R is small, a
    # rounding error of D would be large compared with it; from 2^31 on R is never that small. A
    # smaller lambda makes no limit smaller: the node's similarity has the true one.
    reg_lambda = min(params.reg_lambda / hessian_unit, 2.0 * _SAFE[1])
    reg_lambda = np.floor(reg_lambda * _FINE) / _FINE
    # no row has a hessian of less than 1
    least_hessian = max(params.min_child_weight / hessian_unit, 1.0)
    gradient, hessian = units_of(total)
    sides = sides_of(gradient, max(hessian, 1.0), reg_lambda)
    rest = gradient * sides.slope * unit
    rest += _ROUNDING * (rest + abs(similarity)) - similarity
    least_unit, most_unit = min(unit, hessian_unit), max(unit, hessian_unit, reg_lambda)
    if least_unit < _SAFE[0] or most_unit > _SAFE[1] or not abs(rest) < np.inf:
        rest = np.inf
    return GainLimits(
        sides,
        least_hessian,
        hessian - least_hessian,
        unit * (1.0 + _ROUNDING),
        rest,
        Blocks(
            blocks.last[rank], blocks.sums[rank], blocks.positive_sums[rank], blocks.limits[rank]
        ),
    )


@inlined
def limit_gains(limits, cells, missing):
    """Fill the thread's blocks: sums, and the most that a split can gain; return how many.

    `cells` are a feature's part of a histogram without the bin of missing values, which is
    `missing`. A split may have these on either side.
    """
    blocks = limits.blocks
    n_blocks = sum_blocks(cells, blocks)
    of_blocks, with_missing_left = blocks.limits[0, :n_blocks], blocks.limits[1, :n_blocks]
    fill_limits(limits, np.int64(0), of_blocks)
    if missing != 0:
        fill_limits(limits, missing, with_missing_left)
        for block in range(n_blocks):
            index = np.uint64(block)
            of_blocks[index] = max(of_blocks[index], with_missing_left[index])
    return n_blocks


@inlined
def sum_blocks(cells, blocks):
    """Fill all of `blocks` but the limits; return the number of blocks."""
    n_whole = len(cells) // BLOCK_BINS
    n_blocks, n_left = n_whole, len(cells) - n_whole * BLOCK_BINS
    if n_left > 0:
        n_blocks += 1
        blocks.last[:] = 0
        for place in range(n_left):
            blocks.last[place] = cells[n_whole * BLOCK_BINS + place]
    before = np.int64(0)
    for block in range(n_whole):
        index = np.uint64(block)
        total, positive = sum_eight(cells, index * np.uint64(BLOCK_BINS))
        blocks.sums[index], blocks.positive_sums[index] = before, positive
        before += total
    if n_left > 0:
        total, positive = sum_eight(blocks.last, np.uint64(0))
        blocks.sums[n_whole], blocks.positive_sums[n_whole] = before, positive
        before += total
    blocks.sums[n_blocks] = before
    return n_blocks


@kernel
def fill_limits(limits, left_start, of_blocks):
    """Fill `of_blocks` with the most that a split in each block can gain; -inf: none is allowed.

    `left_start` is the packed sum of the missing values if they go left, otherwise 0.
    """
    if limits.rest == np.inf:
        of_blocks[:] = np.inf
        return
    sides, positive_sums = limits.sides, limits.blocks.positive_sums
    sums, ends = limits.blocks.sums, limits.blocks.sums[1:]
    for block in range(len(of_blocks)):
        index = np.uint64(block)
        start_gradient, start_hessian = units_of(left_start + sums[index])
        end_gradient, end_hessian = units_of(left_start + ends[index])
        positive, _ = units_of(positive_sums[index])
        gradients = (end_gradient - positive, start_gradient + positive)
        least = max(start_hessian, limits.least_hessian)
        most = min(end_hessian, limits.most_hessian)
        limit = largest_excess(gradients, (least, most), sides) * limits.unit + limits.rest
        # both are computed: with a branch this would not become vector instructions
        of_blocks[index] = limit if least <= most else -np.inf


@inlined
def may_improve(limits, sums, missing, best_gain):
    """Whether a split with `sums` on the left, with missing values or not, may have a better gain.

    It counts, and does not stop at the first: a loop of vector instructions is faster than that.
    """
    if best_gain == -np.inf or limits.rest == np.inf:
        return True
    sides, least_hessian, most_hessian = limits.sides, limits.least_hessian, limits.most_hessian
    wanted = (best_gain - limits.rest) / (sides.divisor * limits.unit)
    n_better = 0
    for default_left in range(2 if missing != 0 else 1):
        left_start = missing * default_left
        for position in range(len(sums)):
            gradient, hessian = units_of(left_start + sums[np.uint64(position)])
            is_better = has_excess(gradient, hessian, wanted, sides)
            n_better += is_better & (hessian >= least_hessian) & (hessian <= most_hessian)
    return n_better > 0
