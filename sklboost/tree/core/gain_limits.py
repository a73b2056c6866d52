"""Limits of gains: how much the best split within a block of bins can gain, at most.

A feature's bins are taken in blocks of eight. If the limit of a block is not above the best gain
found so far, the block is passed over, as most are. In the others every split is compared with a
limit of its own first, and gains are computed where one of these is above the best gain.

A limit needs three sums of a block: those of all bins before it and before the next, and that of
its bins with positive gradients. Wherever in the block the node is split, the left side's gradient
is at least that before the block plus all negative ones, and at most that plus all positive ones;
its hessian is between those at both ends. With D = H + 2 lambda, L = H_left + lambda and
R = D - L, the similarities of the two sides are together

    G_left^2 / L + (G - G_left)^2 / R  =  (G_left - L G / D)^2 D / (L R)  +  G^2 / D

whose square is largest at an end of the range of G_left - L G / D, and whose D / (L R), which is
1 / L + 1 / R, is largest at an end of that of L.
"""

from typing import NamedTuple

import numpy as np

from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.instructions import sum_eight
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
    # int64, shape (n_blocks,): that of each block's cells whose gradient is not negative
    positive_sums: np.ndarray
    # float64, shape (2, n_blocks): of each block, with missing values right and left
    limits: np.ndarray


def allocate_blocks(n_threads: int, n_bins: int) -> Blocks:
    """Make room for the blocks of so many bins, for each thread."""
    n_blocks = -(-n_bins // BLOCK_BINS)
    return Blocks(
        # twice the room: threads write on cache lines of their own
        np.empty((n_threads, 2 * BLOCK_BINS), dtype=np.int64),
        np.empty((n_threads, n_blocks + 1), dtype=np.int64),
        np.empty((n_threads, n_blocks), dtype=np.int64),
        np.empty((n_threads, 2, n_blocks)),
    )


@inlined
def blocks_of(blocks, rank):
    """Return those of one thread."""
    return Blocks(
        blocks.last[rank], blocks.sums[rank], blocks.positive_sums[rank], blocks.limits[rank]
    )


@inlined
def sum_blocks(cells, blocks):
    """Fill all of `blocks` but the limits; return the number of blocks.

    `cells` are a feature's part of a histogram, the missing bin left out.
    """
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


class LimitTerms(NamedTuple):
    """What the limits of a node's gains have in common, with room for rounding errors.

    Hessians and lambda are in integer units.
    """

    divisor: float  # ``D = H + 2 lambda``
    slope: float  # ``G / D``
    # rounded down to a multiple of 2^-20. Below 2^31, D, L and R are then exact: where R is small,
    # a rounding error of D would be large beside it. From 2^31 on R is never that small.
    reg_lambda: float
    # of a left side that is allowed
    least_hessian: float
    most_hessian: float
    unit: float  # of a similarity
    # ``G^2 / D`` minus the node's similarity, not in integer units; infinite if the numbers are too
    # large or too small for limits
    rest: float


@inlined
def limit_terms(search, total, similarity):
    """Return the terms of a node's limits, from its packed sum and its similarity as a leaf."""
    params, (gradient_unit, hessian_unit) = search.params, scales_of(search.scales, 0)
    unit = gradient_unit / hessian_unit * gradient_unit
    # a smaller lambda makes no limit smaller: the node's similarity has the true one
    reg_lambda = min(params.reg_lambda / hessian_unit, 2.0 * _SAFE[1])
    reg_lambda = np.floor(reg_lambda * _FINE) / _FINE
    # no row has a hessian of less than 1
    least_hessian = max(params.min_child_weight / hessian_unit, 1.0)
    gradient, hessian = units_of(total)
    divisor = max(hessian, 1.0) + 2.0 * reg_lambda
    slope = gradient / divisor
    rest = gradient * slope * unit
    rest += _ROUNDING * (rest + abs(similarity)) - similarity
    least_unit, most_unit = min(unit, hessian_unit), max(unit, hessian_unit, reg_lambda)
    if least_unit < _SAFE[0] or most_unit > _SAFE[1] or not abs(rest) < np.inf:
        rest = np.inf
    most_hessian, unit = hessian - least_hessian, unit * (1.0 + _ROUNDING)
    return LimitTerms(divisor, slope, reg_lambda, least_hessian, most_hessian, unit, rest)


@kernel
def fill_limits(terms, blocks, left_start, limits):
    """Fill `limits` with the most that a split within each block can gain; -inf: none is allowed.

    Where alpha or `max_delta_step` holds the leaf weights back, gains are lower still.

    Parameters
    ----------
    terms : LimitTerms
    blocks : Blocks
        With their sums.
    left_start : int
        Packed sum of the missing values if they go left, otherwise 0.
    limits : ndarray of float64, shape (n_blocks,)
        A part of ``blocks.limits``.
    """
    if terms.rest == np.inf:
        limits[:] = np.inf
        return
    divisor, slope, positive_sums = terms.divisor, terms.slope, blocks.positive_sums
    sums, ends = blocks.sums, blocks.sums[1:]
    for block in range(len(limits)):
        index = np.uint64(block)
        start_gradient, start_hessian = units_of(left_start + sums[index])
        end_gradient, end_hessian = units_of(left_start + ends[index])
        positive, _ = units_of(positive_sums[index])
        least = max(start_hessian, terms.least_hessian)
        most = min(end_hessian, terms.most_hessian)
        is_allowed = least <= most
        least += terms.reg_lambda
        most += terms.reg_lambda
        # at least 1 where a split is allowed
        product = max(min(least * (divisor - least), most * (divisor - most)), 1.0)
        highest = start_gradient + positive - min(slope * least, slope * most)
        lowest = end_gradient - positive - max(slope * least, slope * most)
        limit = max(highest**2, lowest**2) * divisor / product * terms.unit + terms.rest
        limits[index] = limit if is_allowed else -np.inf


@inlined
def may_improve(terms, sums, missing, best_gain):
    """Whether a split with `sums` on the left, with missing values or not, may have a better gain.

    The limits of single splits, multiplied out: without divisions this takes a quarter of the time
    of the gains.
    """
    if best_gain == -np.inf or terms.rest == np.inf:
        return True
    divisor, slope, reg_lambda = terms.divisor, terms.slope, terms.reg_lambda
    least_hessian, most_hessian = terms.least_hessian, terms.most_hessian
    wanted = (best_gain - terms.rest) / (divisor * terms.unit)
    n_better = 0
    for default_left in range(2 if missing != 0 else 1):
        left_start = missing * default_left
        for position in range(len(sums)):
            gradient, hessian = units_of(left_start + sums[np.uint64(position)])
            left = hessian + reg_lambda
            is_better = (gradient - slope * left) ** 2 > wanted * (left * (divisor - left))
            n_better += is_better & (hessian >= least_hessian) & (hessian <= most_hessian)
    return n_better > 0
