"""Losses of rankings: each document's derivatives depend on the scores of its whole query.

Targets are two rows: relevances, and the number of each document's query. Rows need not be sorted:
:func:`read_queries` lists them query by query.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.elementary import TWO_32, exp, exp_of_negative, hash_key, log, mix_bits
from sklboost.engine.parallel import ThreadTeam, assemble, barrier, share
from sklboost.objectives.blocks import LEAST_HESSIAN
from sklboost.objectives.domains import NOT_NEGATIVE, check_domain, refuse_first
from sklboost.objectives.loss import FillDerivatives, Loss, first_derivatives

# Gains 2^label - 1 beyond are no whole numbers of 32 bits; XGBoost has the same limit.
MOST_RELEVANT = 31
# Documents of the top that pairs begin with, pairs that are drawn, and positions that are looked
# at if pairs are drawn: XGBoost's.
_TOP, _DRAWN, _POSITIONS = 32, 1, 32
OF_DRAWS = np.int64(-3)  # in the place of an output in a key
# What `LambdaRules.metric` can be.
OF_NDCG, OF_PRECISION, OF_PAIRS = 0, 1, 2
# Added to differences of scores, so that equal ones can divide; and what a product of two
# probabilities is at least. Both as in XGBoost.
_LEAST_DIFFERENCE, _LEAST_VARIANCE = 0.01, 1e-16
_INVERSE_LOG_2 = 1.4426950408889634
# Numbers of a rank in `RankedQuery.numbers`.
N_NUMBERS = 13
_SCORE, _POWER, _LABEL, _GAIN, _DISCOUNT, _GRADIENT, _HESSIAN, _SIZE = range(8)
_WEIGHT, _PULL, _CURVE, _RELEVANT, _PRECISION = range(8, N_NUMBERS)
# What differences of raw scores are at least: e^-300 can still be divided by.
_LOWEST = -300.0
# Orders of the approximation that `fill_query` adds up.
_ORDERS = 3
# What 1 - p is at least, where one document has all the probability.
_LEAST_REST = 1e-15
# Documents that are sorted by counting.
_STRETCH = 128


class RankingSettings(NamedTuple):
    """The estimator's parameters that losses of rankings read, by the same names."""

    lambdarank_pair_method: str = "topk"
    lambdarank_num_pair_per_sample: int | None = None
    lambdarank_normalization: bool = True
    lambdarank_score_normalization: bool = True
    lambdarank_unbiased: bool = False
    lambdarank_bias_norm: float = 1.0
    ndcg_exp_gain: bool = True
    yeti_mode: str = "ndcg"
    yeti_permutations: int = 5
    yeti_decay: float = 0.85

    @property
    def takes_top(self) -> bool:
        """Whether pairs begin with the top of the ranking."""
        return self.lambdarank_pair_method == "topk"

    @property
    def n_pairs(self) -> int:
        """Documents of the top, or pairs that are drawn for each document."""
        if self.lambdarank_num_pair_per_sample is None:
            return _TOP if self.takes_top else _DRAWN
        return int(self.lambdarank_num_pair_per_sample)


def settings_of(parameters: Mapping[str, Any]) -> RankingSettings:
    """Return the settings among the parameters of an estimator; others have their defaults."""
    known = {name: parameters[name] for name in RankingSettings._fields if name in parameters}
    return RankingSettings(**known)


class RankingLoss(Loss):
    """Base of the losses of rankings."""

    n_targets = 2  # relevances, and the numbers of queries
    group_row = 1
    can_repeat = False  # a document twice makes the query longer

    def __init__(self, settings: RankingSettings):
        self.settings = settings

    @property
    def of_metrics(self) -> dict[str, Any]:
        """The parameters that metrics read."""
        return self.settings._asdict()

    def gradients(self, y: np.ndarray, raw_score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        both = first_derivatives(self, y, raw_score, np.empty(0))
        return both[0], both[1]

    def check_targets(self, y: np.ndarray, name: str) -> None:
        labels = y.T[0]
        check_domain(labels, NOT_NEGATIVE, name, self.name)
        if not self.settings.ndcg_exp_gain or not self.reads_powers:
            return
        is_wrong = (labels != np.floor(labels)) | (labels > MOST_RELEVANT)
        why = (
            f"objective={self.name!r} needs whole numbers from 0 to {MOST_RELEVANT}, for gains of "
            "2^relevance - 1; set ndcg_exp_gain=False for gains that are the relevances themselves"
        )
        refuse_first(is_wrong, labels, name, why)

    reads_powers = True  # 2^relevance


class LambdaRank(RankingLoss):
    """Pairs of documents, weighed by what exchanging the two changes in the NDCG."""

    name = "rank:ndcg"
    metric = OF_NDCG

    def prepare(
        self, team: ThreadTeam, y: np.ndarray, weight: np.ndarray, seed: int, n_before: Any = None
    ) -> FillDerivatives:
        settings, queries = self.settings, read_queries(y, n_before)
        exponent = 1.0 / (1.0 + settings.lambdarank_bias_norm)
        rules = LambdaRules(
            metric=self.metric,
            takes_top=int(settings.takes_top),
            n_pairs=settings.n_pairs,
            is_normalized=int(settings.lambdarank_normalization),
            divides_by_difference=int(settings.lambdarank_score_normalization),
            exponent=exponent if settings.lambdarank_unbiased else -1.0,
        )
        listing = list_documents(queries, settings)
        longest = len(listing.discounts)
        positions = _positions(queries, weight, settings, longest)
        orders = np.empty((team.size, 3, longest), np.int64)
        numbers = np.empty((team.size, N_NUMBERS, longest))

        def fill(
            round_: int, raw_score: np.ndarray, gradient: np.ndarray, hessian: np.ndarray
        ) -> None:
            outcome = (gradient[0], hessian[0], orders, numbers)
            key = np.int64(hash_key(seed, round_, OF_DRAWS))
            team.run(fill_lambdas, key, listing, rules, positions, raw_score[0], outcome)

        return fill


class LambdaRankPrecision(LambdaRank):
    """Pairs of documents, weighed by what exchanging the two changes in the average precision."""

    name = "rank:map"
    metric = OF_PRECISION
    reads_powers = False

    def check_targets(self, y: np.ndarray, name: str) -> None:
        labels = y.T[0]
        why = (
            f"objective={self.name!r} needs relevances of 0 and 1; choose 'rank:ndcg', or give "
            "(y > 0).astype(int), say"
        )
        refuse_first((labels != 0.0) & (labels != 1.0), labels, name, why)


class RankNet(LambdaRank):
    """Pairs of documents, which all weigh the same."""

    name = "rank:pairwise"
    metric = OF_PAIRS
    reads_powers = False


class CrossEntropyNDCG(RankingLoss):
    """The cross entropy of the scores' softmax and drawn gains, over the list of a query."""

    name = "rank:xendcg"

    def prepare(
        self, team: ThreadTeam, y: np.ndarray, weight: np.ndarray, seed: int, n_before: Any = None
    ) -> FillDerivatives:
        is_exponential, queries = self.settings.ndcg_exp_gain, read_queries(y, n_before)
        gains = gains_of(queries.labels, is_exponential) + 1.0
        scratch = np.empty((team.size, 4, int(queries.sizes.max(initial=0))))

        def fill(
            round_: int, raw_score: np.ndarray, gradient: np.ndarray, hessian: np.ndarray
        ) -> None:
            both = (gradient[0], hessian[0])
            key = np.int64(hash_key(seed, round_, OF_DRAWS))
            team.run(fill_cross_entropy, key, queries, gains, raw_score[0], both, scratch)

        return fill


# --- queries


class Queries(NamedTuple):
    """The documents of all queries, one query after the other."""

    # int64, shape (n_samples,): the row of each document; within a query in the order of the rows
    rows: np.ndarray
    starts: np.ndarray  # int64, shape (n_queries + 1,): where the documents of each query begin
    labels: np.ndarray  # float64, shape (n_samples,): relevance of each document
    # int64, shape (n_queries,): how many documents of all machines come before each query; its
    # random numbers are drawn by that
    n_before: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """Documents of each query."""
        sizes: np.ndarray = np.diff(self.starts)
        return sizes


def read_queries(y: np.ndarray, n_before: np.ndarray | None = None) -> Queries:
    """Return the queries of encoded targets, shape (2, n_samples): relevances, query numbers.

    `n_before` is that of the queries, if there are others on other machines.
    """
    rows = np.argsort(y[1], kind="stable").astype(np.int64)
    labels = np.ascontiguousarray(y[0][rows], np.float64)
    starts = starts_of_queries(y[1][rows])
    return Queries(rows, starts, labels, starts[:-1].copy() if n_before is None else n_before)


def starts_of_queries(numbers: np.ndarray) -> np.ndarray:
    """Return where each query begins in sorted numbers, and where the last one ends."""
    return np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1], True]).astype(np.int64)


def spread(of_queries: np.ndarray, queries: Queries) -> np.ndarray:
    """Return a number of each query for each of its documents."""
    spread_out: np.ndarray = np.repeat(of_queries, queries.sizes)
    return spread_out


def gains_of(labels: np.ndarray, is_exponential: bool) -> np.ndarray:
    """Return what documents of these relevances add to a DCG at the first position."""
    return np.exp2(labels) - 1.0 if is_exponential else labels


def discounts_of(n_positions: int) -> np.ndarray:
    """Return the factors ``1 / log2(1 + position)`` of a DCG, positions from 1."""
    discounts: np.ndarray = 1.0 / np.log2(np.arange(n_positions) + 2.0)
    return discounts


# --- pairs


class LambdaRules(NamedTuple):
    """Which pairs are taken, and what they weigh."""

    # whose change weighs a pair: ``OF_NDCG``, ``OF_PRECISION``, or ``OF_PAIRS``: all weigh 1
    metric: int
    # 1: pairs of each of the first `n_pairs` documents of the ranking with all below it. 0: of each
    # document with `n_pairs` that are drawn among documents of other relevance.
    takes_top: int
    n_pairs: int
    # 1: sums of a query grow with their logarithm, or are divided by `n_pairs` if pairs are drawn
    is_normalized: int
    divides_by_difference: int  # 1: w is divided by the difference of scores
    exponent: float  # of the ratios of positions; negative: positions are not looked at


class Listing(NamedTuple):
    """Numbers of the documents that need no scores, in the order of ``queries.rows``."""

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


def list_documents(queries: Queries, settings: RankingSettings) -> Listing:
    """Return what does not depend on scores: gains by the best DCG, and who is like whom."""
    gains, sizes = gains_of(queries.labels, settings.ndcg_exp_gain), queries.sizes
    discounts = discounts_of(int(sizes.max(initial=0)))
    starts = queries.starts[:-1]
    numbers = spread(np.arange(len(sizes)), queries)
    # the places of the documents in their query, from the most relevant to the least
    by_label = np.lexsort((-queries.labels, numbers))
    places = np.arange(len(gains)) - spread(starts, queries)
    cut = settings.n_pairs if settings.takes_top else len(gains)
    best = np.where(places < cut, gains[by_label] * discounts[places], 0.0)
    best = np.add.reduceat(best, starts)
    inverse = np.divide(1.0, best, out=np.zeros_like(best), where=best > 0.0)
    equals = np.empty((2, 0), np.int64)
    if not settings.takes_top:
        ordered = queries.labels[by_label]
        begins = np.flatnonzero(
            np.r_[True, (ordered[1:] != ordered[:-1]) | (numbers[1:] != numbers[:-1])]
        )
        lengths = np.diff(begins, append=len(gains))
        equals = np.empty((2, len(gains)), np.int64)
        equals[0, by_label] = np.repeat(begins, lengths)
        equals[1, by_label] = np.repeat(begins + lengths, lengths)
        equals -= spread(starts, queries)
        by_label = by_label - spread(starts, queries)
    else:
        by_label = by_label[:0]
    return Listing(
        queries=queries,
        gains=gains * spread(inverse, queries),
        discounts=discounts,
        by_label=by_label.astype(np.int64),
        equals=equals,
    )


class Positions(NamedTuple):
    """How positions bias clicks, and losses to estimate that from; without rows if not asked."""

    # float64, shape (2, n_positions): t+ and t-: how likely a relevant document is clicked at a
    # position, and an irrelevant one not, relative to the first position
    ratios: np.ndarray
    # float64, shape (2, n_samples): losses of pairs: at the document of higher relevance divided by
    # the t- of the other, at the document of lower relevance divided by the t+ of the other
    losses: np.ndarray
    weight: np.ndarray  # float64, shape (n_queries,)


def _positions(
    queries: Queries, weight: np.ndarray, settings: RankingSettings, longest: int
) -> Positions:
    """Return the positions before the first round, when all are taken to be alike."""
    if not settings.lambdarank_unbiased:
        return Positions(np.empty((2, 0)), np.empty((2, 0)), np.empty(0))
    n_positions = settings.n_pairs if settings.takes_top else _POSITIONS
    first = queries.rows[queries.starts[:-1]]
    of_queries = weight[first] if len(weight) else np.ones(len(first))
    ratios = np.ones((2, min(n_positions, longest)))
    return Positions(ratios, np.zeros((2, len(queries.rows))), of_queries)


class RankedQuery(NamedTuple):
    """A query's documents in the order of their scores, and what their pairs add up to."""

    # int64, shape (3, longest query): place in the query of each rank; scratch; rank of each place
    order: np.ndarray
    # float64, shape (N_NUMBERS, longest query): of each rank, see the functions below
    numbers: np.ndarray


@kernel
def fill_lambdas(team, round_key, listing, rules, positions, raw_score, outcome):
    """Fill gradient and hessian of all documents, float32, and bring the positions' ratios on."""
    if not assemble(team):
        return
    gradient, hessian, orders, numbers = outcome
    starts = listing.queries.starts
    begin, end = share(team, len(listing.queries.rows))
    ranking = RankedQuery(orders[team.rank], numbers[team.rank])
    for query in range(len(starts) - 1):
        start, stop = starts[query], starts[query + 1]
        if begin <= start < end:
            rank_query(listing, rules, (start, stop), raw_score, ranking)
            key = (round_key, listing.queries.n_before[query])
            add_query(key, listing, rules, positions, (start, stop), ranking)
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
    """Return the factor of a query's derivatives.

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
def add_query(query_key, listing, rules, positions, documents, ranking):
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
        key = hash_key(np.int64(query_key[0]), np.int64(query_key[1]), np.int64(place))
        for _ in range(rules.n_pairs if n_others > 0 else 0):
            key = mix_bits(key ^ np.uint64(0x9E3779B9))
            drawn = np.int64(np.float64(key) / TWO_32 * n_others)
            drawn += (last - first) if drawn >= first else np.int64(0)
            one, other = ranking.order[2, place], ranking.order[2, listing.by_label[start + drawn]]
            upper, lower = min(one, other), max(one, other)
            add_pairs(rules, positions, documents, (upper, lower, lower + 1), ranking)


@kernel
def add_pairs(rules, positions, documents, pairs, ranking):
    """Add `pairs`, ``(rank, start, stop)``: of a rank with those from start to stop, below it."""
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
        odds = exp(min(max(-difference, _LOWEST), -_LOWEST))  # as in the pull
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
    """Set the ratios to the losses' at each position, to a power of at most 1.

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


# --- cross entropy


@kernel
def fill_cross_entropy(team, round_key, queries, gains, raw_score, derivatives, scratch):
    """Fill gradient and hessian, float32, of this member's queries; the key is of the draws."""
    if not assemble(team):
        return
    begin, end = share(team, len(queries.rows))
    for query in range(len(queries.starts) - 1):
        start, stop = queries.starts[query], queries.starts[query + 1]
        if begin <= start < end:
            rows, own_gains = queries.rows[start:stop], gains[start:stop]
            key = hash_key(np.int64(round_key), queries.n_before[query], np.int64(0))
            fill_query(key, rows, own_gains, raw_score, derivatives, scratch[team.rank])


@kernel
def fill_query(key, rows, gains, raw_score, derivatives, scratch):
    """Fill the derivatives of the documents of a query."""
    gradient, hessian = derivatives
    n_documents = len(rows)
    probabilities, terms = scratch[0, :n_documents], scratch[1, :n_documents]
    sums, rests = scratch[2, :n_documents], scratch[3, :n_documents]
    highest = raw_score[rows[0]]
    for index in range(n_documents):
        sums[index] = raw_score[rows[index]]
        highest = max(highest, sums[index])
        key = mix_bits(key ^ np.uint64(0x9E3779B9))
        terms[index] = gains[index] - np.float64(key) / TWO_32
    for index in range(n_documents):
        probabilities[index] = exp_of_negative(sums[index] - highest)
    total, total_gain = 0.0, 0.0
    for index in range(n_documents):
        total += probabilities[index]
        total_gain += terms[index]
    for index in range(n_documents):
        probabilities[index] /= total
        rests[index] = max(1.0 - probabilities[index], _LEAST_REST)
        terms[index] = probabilities[index] - terms[index] / total_gain
        sums[index] = 0.0
    for order in range(_ORDERS if n_documents > 1 else 0):
        of_all = 0.0
        for index in range(n_documents):
            sums[index] += terms[index]
            terms[index] /= rests[index]
            of_all += terms[index]
        for index in range(n_documents if order + 1 < _ORDERS else 0):
            terms[index] = probabilities[index] * (of_all - terms[index])
    for index in range(n_documents):
        gradient[rows[index]] = sums[index]
        hessian[rows[index]] = max(probabilities[index] * rests[index], LEAST_HESSIAN)


# --- sorting


@kernel
def sort_documents(scores, places, other_scores, other_places):
    """Sort the scores of a query's documents from high to low, and their places with them.

    Equal scores keep their order. In stretches of `_STRETCH` documents each is put where the number
    of those before it says; to count them takes no jumps that a processor could mispredict, so it
    is faster than to sort that few. Then the stretches are merged. The last two arrays are scratch
    of the same length.
    """
    n_documents = len(scores)
    for start in range(0, n_documents, _STRETCH):
        stretch = scores[start : start + _STRETCH]
        for index in range(len(stretch)):
            place = start + _count_before(stretch, index)
            other_scores[place], other_places[place] = stretch[index], places[start + index]
    width, is_in_scratch = _STRETCH, True
    while width < n_documents:
        if is_in_scratch:
            _merge(other_scores, other_places, width, scores, places)
        else:
            _merge(scores, places, width, other_scores, other_places)
        width, is_in_scratch = 2 * width, not is_in_scratch
    if is_in_scratch:
        for index in range(n_documents):
            scores[index], places[index] = other_scores[index], other_places[index]


@inlined
def _count_before(scores, index):
    """Count the scores that come before one of them: higher ones, and equal ones in front."""
    score, count = scores[index], 0
    earlier, later = scores[:index], scores[index + 1 :]
    for other in range(len(earlier)):
        count += earlier[other] >= score
    for other in range(len(later)):
        count += later[other] > score
    return count


@inlined
def _merge(scores, places, width, merged_scores, merged_places):
    """Merge stretches of `width` sorted documents, two at a time."""
    n_documents = len(scores)
    for start in range(0, n_documents, 2 * width):
        middle, stop = min(start + width, n_documents), min(start + 2 * width, n_documents)
        left, right = start, middle
        for index in range(start, stop):
            takes_left = right == stop or (left < middle and scores[left] >= scores[right])
            source = left if takes_left else right
            merged_scores[index], merged_places[index] = scores[source], places[source]
            left, right = left + takes_left, right + (not takes_left)
