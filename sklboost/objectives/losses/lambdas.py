"""Gradients of pairs of documents: LambdaMART for NDCG and average precision, RankNet.

A pair are two documents of a query with different relevances. With s the difference of their raw
scores, the one of higher relevance less the other, the probability that the model ranks them right
is ``p = 1 / (1 + e^-s)``, and the higher one has, with a weight w of the pair,

    gradient -(1 - p) w        hessian 2 p (1 - p) w

and the lower one the opposite gradient and the same hessian. w is what exchanging the two in the
present ranking changes in the metric, divided by ``0.01 + abs(s)`` if scores are normalised. Burges
(2010), "From RankNet to LambdaRank to LambdaMART: An Overview", sections 3 and 4; the divisors, the
factor 2, and which pairs are taken are XGBoost's. Positions at which users see documents can be
taken into account by dividing w by how likely they are clicked there, see
:func:`update_positions`.

Each member of the team does the queries that begin in its share of the rows; the sums of a document
are float64, in an order that only its query decides.
"""

from typing import NamedTuple

import numpy as np

from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.elementary import exp, exp_of_negative, log
from sklboost.engine.hashing import hash_key, mix_bits
from sklboost.engine.parallel import assemble, barrier, share
from sklboost.objectives.blocks import LEAST_HESSIAN
from sklboost.objectives.queries import Queries, sort_documents

# What `LambdaRules.metric` can be.
OF_NDCG, OF_PRECISION, OF_PAIRS = 0, 1, 2
# Added to differences of scores, so that equal ones can divide; and what a product of two
# probabilities is at least. Both as in XGBoost.
_LEAST_DIFFERENCE, _LEAST_VARIANCE = 0.01, 1e-16
_INVERSE_2_TO_32 = 2.0**-32
_INVERSE_LOG_2 = 1.4426950408889634


class LambdaRules(NamedTuple):
    """Which pairs are taken, and what they weigh."""

    # whose change weighs a pair: ``OF_NDCG``, ``OF_PRECISION``, or ``OF_PAIRS``: all weigh 1
    metric: int
    # 1: pairs of each of the first `n_pairs` documents of the ranking with all below it. 0: of each
    # document with `n_pairs` that are drawn among those of other relevance.
    takes_top: int
    n_pairs: int
    # 1: sums of a query grow with their logarithm, or are divided by `n_pairs` if pairs are drawn
    is_normalized: int
    divides_by_difference: int  # 1: w is divided by the difference of scores
    exponent: float  # of the ratios of positions; negative: positions are not looked at


class Listing(NamedTuple):
    """What is known of the documents before there are scores, in the order of ``queries.rows``."""

    queries: Queries
    # float64, shape (n_samples,): what each document adds to its query's NDCG at the first position
    gains: np.ndarray
    discounts: np.ndarray  # float64, shape (longest query,): factor of that at each position
    # int64, shape (n_samples,) or (0,): places of the documents in their query, from the most
    # relevant to the least
    by_label: np.ndarray
    # int64, shape (2, n_samples) or (2, 0): where in that order the documents begin, and end, that
    # are as relevant as this one
    equals: np.ndarray


class Positions(NamedTuple):
    """How positions bias clicks, and losses to estimate that from; without rows if not asked."""

    # float64, shape (2, n_positions): t+ and t-: how likely a relevant document is clicked at a
    # position, and an irrelevant one not, relative to the first position
    ratios: np.ndarray
    # float64, shape (2, n_samples): of pairs: by the document of higher relevance divided by the t-
    # of the other, by that of lower relevance divided by the t+ of the other
    losses: np.ndarray
    weight: np.ndarray  # float64, shape (n_queries,)


class Ranking(NamedTuple):
    """A query's documents in the order of their scores, and what their pairs add up to."""

    # int64, shape (3, longest query): place in the query of each rank; scratch; rank of each place
    order: np.ndarray
    # float64, shape (N_NUMBERS, longest query): of each rank, see the functions below
    numbers: np.ndarray


N_NUMBERS = 13
_SCORE, _POWER, _LABEL, _GAIN, _DISCOUNT, _GRADIENT, _HESSIAN, _SIZE = range(8)
_WEIGHT, _PULL, _CURVE, _RELEVANT, _PRECISION = range(8, N_NUMBERS)
_LOWEST = -300.0


@kernel
def fill_lambdas(team, round_key, listing, rules, positions, raw_score, outcome):
    """Fill gradient and hessian of all documents, float32, and bring the positions' ratios on.

    `outcome` is ``(gradient, hessian, order, numbers)``: the first two of shape (n_samples,), the
    others those of a :class:`Ranking` for each member. Every member of the team calls it.
    """
    if not assemble(team):
        return
    gradient, hessian, orders, numbers = outcome
    starts = listing.queries.starts
    begin, end = share(team, len(listing.queries.rows))
    ranking = Ranking(orders[team.rank], numbers[team.rank])
    for query in range(len(starts) - 1):
        start, stop = starts[query], starts[query + 1]
        if begin <= start < end:
            rank_query(listing, rules, (start, stop), raw_score, ranking)
            add_query(round_key, listing, rules, positions, (start, stop), ranking)
            factor = normalizing_factor(rules, ranking.numbers[_SIZE, : stop - start])
            for rank in range(stop - start):
                row = listing.queries.rows[start + ranking.order[0, rank]]
                gradient[row] = factor * ranking.numbers[_GRADIENT, rank]
                hessian[row] = max(factor * ranking.numbers[_HESSIAN, rank], LEAST_HESSIAN)
    barrier(team)
    if team.rank == 0 and rules.exponent >= 0.0:
        update_positions(listing.queries.starts, rules.exponent, positions)


@inlined
def normalizing_factor(rules, sizes):
    """Return what a query's derivatives are multiplied by.

    `sizes` add up to the absolute gradients of all pairs, which have two documents each.
    """
    if rules.is_normalized == 0:
        return 1.0
    if rules.takes_top == 0:
        return 1.0 / rules.n_pairs
    total = 0.0
    for rank in range(len(sizes)):
        total += 2.0 * sizes[rank]
    return log(1.0 + total) * _INVERSE_LOG_2 / total if total > 0.0 else 1.0


@kernel
def rank_query(listing, rules, documents, raw_score, ranking):
    """Fill the ranking of a query, and set the sums of its documents to 0."""
    start, stop = documents
    n_documents = stop - start
    numbers, order = ranking.numbers, ranking.order
    rows, labels = listing.queries.rows[start:stop], listing.queries.labels[start:stop]
    scores, places = numbers[_SCORE, :n_documents], order[0, :n_documents]
    for place in range(n_documents):
        scores[place], places[place] = raw_score[rows[place]], place
    sort_documents(scores, places, numbers[_PULL, :n_documents], order[1, :n_documents])
    gains, powers = listing.gains[start:stop], numbers[_POWER, :n_documents]
    for rank in range(n_documents):
        place = places[rank]
        order[2, place] = rank
        numbers[_LABEL, rank] = labels[place]
        numbers[_GAIN, rank] = gains[place]
    for rank in range(n_documents):
        numbers[_DISCOUNT, rank] = listing.discounts[rank]
        numbers[_GRADIENT, rank] = 0.0
        numbers[_HESSIAN, rank] = 0.0
        numbers[_SIZE, rank] = 0.0
    for rank in range(n_documents):
        powers[rank] = exp_of_negative(max(scores[rank] - scores[0], _LOWEST))
    if rules.metric == OF_PRECISION:
        n_relevant, precisions = 0.0, 0.0
        for rank in range(n_documents):
            # up to the rank itself, and the precisions at relevant documents before it
            n_relevant += numbers[_LABEL, rank]
            numbers[_RELEVANT, rank] = n_relevant
            numbers[_PRECISION, rank] = precisions
            precisions += numbers[_LABEL, rank] / (rank + 1.0)


@kernel
def add_query(round_key, listing, rules, positions, documents, ranking):
    """Add the pairs of a query to the sums of its documents."""
    start, stop = documents
    n_documents = stop - start
    if rules.exponent >= 0.0:
        positions.losses[:, start:stop] = 0.0
    if rules.takes_top == 1:
        for rank in range(min(n_documents - 1, rules.n_pairs)):
            pairs = (rank, rank + 1, n_documents)
            add_pairs(rules, positions, documents, pairs, ranking)
        return
    for place in range(n_documents):
        first, last = listing.equals[0, start + place], listing.equals[1, start + place]
        n_others = n_documents - (last - first)
        key = hash_key(np.int64(round_key), np.int64(start), np.int64(place))
        for _ in range(rules.n_pairs if n_others > 0 else 0):
            key = mix_bits(key ^ np.uint64(0x9E3779B9))
            drawn = np.int64(np.float64(key) * _INVERSE_2_TO_32 * n_others)
            drawn += (last - first) if drawn >= first else np.int64(0)
            one, other = ranking.order[2, place], ranking.order[2, listing.by_label[start + drawn]]
            upper, lower = min(one, other), max(one, other)
            add_pairs(rules, positions, documents, (upper, lower, lower + 1), ranking)


@kernel
def add_pairs(rules, positions, documents, pairs, ranking):
    """Add the pairs of a rank with those from `start` to `stop`, all below it.

    `pairs` is ``(rank, start, stop)``.
    """
    rank, start, stop = pairs
    numbers = ranking.numbers
    pulls, curves = numbers[_PULL, start:stop], numbers[_CURVE, start:stop]
    weigh_pairs(rules, documents, pairs, numbers)
    fill_pulls(rules, documents, pairs, numbers)
    if rules.exponent >= 0.0:
        correct_positions(positions, documents, pairs, ranking)
    gradients, hessians = numbers[_GRADIENT, start:stop], numbers[_HESSIAN, start:stop]
    sizes = numbers[_SIZE, start:stop]
    for index in range(len(pulls)):
        gradients[index] += pulls[index]
        sizes[index] += abs(pulls[index])
    for index in range(len(curves)):
        hessians[index] += curves[index]
    pull, curve = add_up(pulls, curves)
    numbers[_GRADIENT, rank] -= pull
    numbers[_HESSIAN, rank] += curve


@inlined
def weigh_pairs(rules, documents, pairs, numbers):
    """Fill what exchanging each pair would change in the metric; negative: the lower is better.

    0 for documents of the same relevance.
    """
    rank, start, stop = pairs
    weights = numbers[_WEIGHT, start:stop]
    if rules.metric == OF_NDCG:
        gains, discounts = numbers[_GAIN, start:stop], numbers[_DISCOUNT, start:stop]
        gain, discount = numbers[_GAIN, rank], numbers[_DISCOUNT, rank]
        for index in range(len(weights)):
            weights[index] = (gain - gains[index]) * (discount - discounts[index])
        return
    label, labels = numbers[_LABEL, rank], numbers[_LABEL, start:stop]
    for index in range(len(weights)):
        weights[index] = (1.0 if label > labels[index] else 0.0) - (
            1.0 if label < labels[index] else 0.0
        )
    if rules.metric == OF_PRECISION:
        # the precisions at the two ranks and at relevant documents between them
        last = documents[1] - documents[0] - 1
        factor = 1.0 / max(numbers[_RELEVANT, last], 1.0)
        n_relevant = numbers[_RELEVANT, rank]
        above = numbers[_PRECISION, rank] + label / (rank + 1.0)
        relevant, precisions = numbers[_RELEVANT, start:stop], numbers[_PRECISION, start:stop]
        # a document that comes up finds itself and those before; one that goes down, one less
        at_rank = (n_relevant + 1.0 - label) / (rank + 1.0)
        for index in range(len(weights)):
            own = relevant[index] / (start + index + 1.0)
            between = precisions[index] - above
            weights[index] *= factor * abs(at_rank - own + between)


@inlined
def fill_pulls(rules, documents, pairs, numbers):
    """Fill the gradient of the lower document of each pair, and the hessian of both.

    The probability of the upper one is ``e / (e + f)``, with e and f the exponentials of the scores
    less the best one: so one division does for a pair. Where such exponentials could be too small
    for that, they are of the scores less the upper one of the pair, and at least e^-300.
    """
    rank, start, stop = pairs
    scores, powers = numbers[_SCORE, start:stop], numbers[_POWER, start:stop]
    weights = numbers[_WEIGHT, start:stop]
    pulls, curves = numbers[_PULL, start:stop], numbers[_CURVE, start:stop]
    score, power = numbers[_SCORE, rank], numbers[_POWER, rank]
    last = documents[1] - documents[0] - 1
    if numbers[_SCORE, last] - numbers[_SCORE, 0] < _LOWEST:
        power = 1.0
        for index in range(len(powers)):
            powers[index] = exp_of_negative(max(scores[index] - score, _LOWEST))
    divides = rules.divides_by_difference == 1 and numbers[_SCORE, 0] != numbers[_SCORE, last]
    slope, least = (1.0, _LEAST_DIFFERENCE) if divides else (0.0, 1.0)
    for index in range(len(pulls)):
        divisor = (score - scores[index]) * slope + least
        inverse = 1.0 / ((power + powers[index]) * divisor)
        weight = weights[index] * inverse
        pulls[index] = weight * (powers[index] if weight > 0.0 else power)
        # of the sum of the two powers
        inverse *= divisor
        product = max(power * inverse * (powers[index] * inverse), _LEAST_VARIANCE)
        curves[index] = abs(weight) * (power + powers[index]) * (2.0 * product)


@inlined
def add_up(pulls, curves):
    """Return the sums of pulls and of curves; partial sums need not wait for one another."""
    p0 = p1 = p2 = p3 = c0 = c1 = c2 = c3 = 0.0
    n_quads = len(pulls) // 4 * 4
    for index in range(0, n_quads, 4):
        p0 += pulls[index]
        p1 += pulls[index + 1]
        p2 += pulls[index + 2]
        p3 += pulls[index + 3]
        c0 += curves[index]
        c1 += curves[index + 1]
        c2 += curves[index + 2]
        c3 += curves[index + 3]
    for index in range(n_quads, len(pulls)):
        p0 += pulls[index]
        c0 += curves[index]
    return p0 + p1 + (p2 + p3), c0 + c1 + (c2 + c3)


# --- positions


@kernel
def correct_positions(positions, documents, pairs, ranking):
    """Divide pairs by the ratios of their positions, and add their losses to their documents.

    The position of a document is its place in the query. Pairs with a position beyond those that
    are looked at, or with one that is never clicked, stay as they are.
    """
    rank, start, stop = pairs
    numbers, n_positions = ranking.numbers, positions.ratios.shape[1]
    for lower in range(start, stop):
        is_above = numbers[_LABEL, rank] > numbers[_LABEL, lower]
        high, low = (rank, lower) if is_above else (lower, rank)
        one, other = ranking.order[0, high], ranking.order[0, low]
        if numbers[_PULL, lower] == 0.0 or max(one, other) >= n_positions:
            continue
        difference = numbers[_SCORE, high] - numbers[_SCORE, low]
        odds = exp(min(max(-difference, _LOWEST), -_LOWEST))  # those of the pull
        weight = abs(numbers[_PULL, lower]) * (1.0 + odds) / odds
        loss = weight * (log(1.0 + odds) if odds < 1e15 else -difference)
        plus, minus = positions.ratios[0, one], positions.ratios[1, other]
        if minus >= _LEAST_VARIANCE:
            positions.losses[0, documents[0] + one] += loss / minus
        if plus >= _LEAST_VARIANCE:
            positions.losses[1, documents[0] + other] += loss / plus
        if min(plus, minus) >= _LEAST_VARIANCE:
            numbers[_PULL, lower] /= plus * minus
            numbers[_CURVE, lower] /= plus * minus


@kernel
def update_positions(starts, exponent, positions):
    """Set the ratios to those of the losses at each position, to a power of at most 1.

    ``t+_i = (L_i / L_0)^exponent`` with L the sums of all queries, and t- likewise: Hu, Wang, Peng
    & Li (2019), "Unbiased LambdaMART", equations 30 and 31.
    """
    for side in range(2):
        first = 0.0
        for position in range(positions.ratios.shape[1]):
            total = 0.0
            for query in range(len(starts) - 1):
                if starts[query] + position < starts[query + 1]:
                    loss = positions.losses[side, starts[query] + position]
                    total += positions.weight[query] * loss
            first = total if position == 0 else first
            if first >= _LEAST_VARIANCE:
                ratio = total / first
                is_positive = ratio > 1e-300
                positions.ratios[side, position] = (
                    exp(exponent * log(ratio)) if is_positive else 0.0
                )
