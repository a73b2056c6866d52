"""YetiRank: pairs of neighbours in orders of a query's documents that are drawn at random.

An order has, at each position, one of the documents that are left, with chances in proportion to
``e^score``: the law of Plackett and Luce, which sorting by score plus Gumbel noise follows. Of
neighbours at positions k and k + 1, let s be the score of the more relevant document less that of
the other. The loss of a query is the mean over all orders of

    ``sum over k of w_k log(1 + e^-s)``

where w_k says what exchanging the two is worth, and is a constant to the derivatives. With gains g,
the best DCG of the query D, relevances l, and r relevant documents above k of R in the query:

=========  =====================================================
mode       ``w_k``
=========  =====================================================
ndcg       ``|g - g'| / D * (1 / log2(k + 1) - 1 / log2(k + 2))``
map        ``|l - l'| / R * (1 / k - 1 / (k + 1)) * (1 + r)``
mrr        ``|l - l'| * (1 / k - 1 / (k + 1))`` if r = 0, else 0
classic    ``|l - l'| * (1 - decay) * decay^(k - 1)``
=========  =====================================================

The first three are by how much the metric changes; for "mrr" l is 1 for each relevant document. In
the last, a user stops at position k with the probability ``(1 - decay) decay^(k - 1)``. In each
round some orders are drawn, and the mean is over these. Hessians have the factor 2, as those of
other pairs.

Sources: Gulin, Kuralenok & Pavlov (2011), "Winning the Transfer Learning Track of Yahoo!'s Learning
to Rank Challenge with YetiRank"; for metrics Lyzhin, Ustimenko, Gulin & Prokhorenkova (2023),
"Which Tricks Are Important for Learning to Rank?".
"""

from typing import Any, NamedTuple

import numpy as np

from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.elementary import TWO_32, exp_of_negative, hash_key, log, mix_bits
from sklboost.engine.parallel import ThreadTeam, assemble, share
from sklboost.objectives.blocks import LEAST_HESSIAN
from sklboost.objectives.domains import refuse_first
from sklboost.objectives.loss import FillDerivatives
from sklboost.objectives.losses.ranking import (
    OF_DRAWS,
    Queries,
    RankingLoss,
    discounts_of,
    list_documents,
    read_queries,
    spread,
)

# Documents of an order are counted up to a multiple of 16, so up to so many are added.
_PADDING = 15
# How the worth of a pair grows with each relevant document above it; it is 0 at least.
_GROWTH = {"map": 1.0, "mrr": -1.0}


class Neighbours(NamedTuple):
    """What neighbours are worth, and how many orders are drawn."""

    queries: Queries
    # float64, shape (n_samples,): of each document, in the order of ``queries.rows``; a pair is
    # worth the difference of the two
    values: np.ndarray
    # float64, shape (n_pairs,): times this, by the position of the upper one; no pair is below
    steps: np.ndarray
    growth: float  # of the worth with each relevant document above: 0, 1 or -1
    n_orders: int


class YetiRank(RankingLoss):
    """Neighbours in random orders, weighed by what exchanging them changes."""

    name = "rank:yeti"

    @property
    def reads_powers(self) -> bool:  # type: ignore[override]
        """Whether gains are powers of 2."""
        return self.settings.yeti_mode == "ndcg"

    def check_targets(self, y: np.ndarray, name: str) -> None:
        """Raise ValueError for relevances that the mode has no meaning for."""
        super().check_targets(y, name)
        if self.settings.yeti_mode == "map":
            why = (
                "yeti_mode='map' needs relevances of 0 and 1; choose yeti_mode='ndcg', or give "
                "(y > 0).astype(int), say"
            )
            refuse_first((y.T[0] != 0.0) & (y.T[0] != 1.0), y.T[0], name, why)

    def prepare(
        self, team: ThreadTeam, y: np.ndarray, weight: np.ndarray, seed: int, n_before: Any = None
    ) -> FillDerivatives:
        queries = read_queries(y, n_before)
        neighbours = self._neighbours(queries)
        longest = int(queries.sizes.max(initial=0)) + _PADDING
        numbers = np.ones((team.size, 6, longest))
        places = np.zeros((team.size, 3, longest), np.uint64)  # all are indices

        def fill(
            round_: int, raw_score: np.ndarray, gradient: np.ndarray, hessian: np.ndarray
        ) -> None:
            key, both = np.int64(hash_key(seed, round_, OF_DRAWS)), (gradient[0], hessian[0])
            team.run(fill_by_neighbours, key, neighbours, raw_score[0], both, (numbers, places))

        return fill

    def _neighbours(self, queries: Queries) -> Neighbours:
        """Return what pairs are worth by the mode."""
        settings, mode, values = self.settings, self.settings.yeti_mode, queries.labels
        n_pairs = max(int(queries.sizes.max(initial=0)) - 1, 0)
        factors = 1.0 / np.arange(1.0, n_pairs + 2.0)
        if mode == "ndcg":
            values, factors = list_documents(queries, settings).gains, discounts_of(n_pairs + 1)
        elif mode == "classic":
            factors = settings.yeti_decay ** np.arange(n_pairs + 1.0)
        elif mode == "mrr":
            values = (values > 0.0).astype(np.float64)
        else:
            n_relevant = np.add.reduceat(values, queries.starts[:-1])
            values = values / np.maximum(spread(n_relevant, queries), 1.0)
        n_pairs = min(n_pairs, settings.n_pairs) if settings.takes_top else n_pairs
        return Neighbours(
            queries=queries,
            values=values,
            steps=(factors[:-1] - factors[1:])[:n_pairs],
            growth=_GROWTH.get(mode, 0.0),
            n_orders=settings.yeti_permutations,
        )


@kernel
def fill_by_neighbours(team, round_key, neighbours, raw_score, derivatives, scratch):
    """Fill gradient and hessian, float32, of this member's queries; the key is of the draws."""
    if not assemble(team):
        return
    starts = neighbours.queries.starts
    begin, end = share(team, len(raw_score))
    own = (scratch[0][team.rank], scratch[1][team.rank])
    for query in range(len(starts) - 1):
        if begin <= starts[query] < end:
            documents = (starts[query], starts[query + 1])
            key = (round_key, neighbours.queries.n_before[query])
            fill_query(key, neighbours, documents, raw_score, derivatives, own)


@kernel
def fill_query(query_key, neighbours, documents, raw_score, derivatives, scratch):
    """Fill the derivatives of the documents of a query.

    Raw scores more than 700 below the best one count as that far below.
    """
    start, stop = documents
    rows, values = neighbours.queries.rows[start:stop], neighbours.values[start:stop]
    (numbers, places), n_documents = scratch, stop - start
    powers, gradients, hessians = numbers[0], numbers[1], numbers[2]
    n_ranks = min(n_documents, len(neighbours.steps) + 1)
    order = places[0, : n_ranks + 1]
    highest, total = raw_score[rows[0]], 0.0
    for place in range(n_documents):
        powers[place] = raw_score[rows[place]]
        highest = max(highest, powers[place])
    for place in range(n_documents):
        powers[place] = exp_of_negative(powers[place] - highest)
        gradients[place], hessians[place] = 0.0, 0.0
    for place in range(n_documents):  # a sum in order, which is not made of vectors
        total += powers[place]
    for rank in range(n_ranks):
        order[rank] = rank  # see `draw_order`
    limit = 1.5 * n_ranks / total if n_ranks < n_documents else np.inf
    for drawn in range(neighbours.n_orders):
        key = hash_key(np.int64(query_key[0]), np.int64(query_key[1]), np.int64(drawn))
        limit = draw_order(key, n_documents, limit, numbers, (places[1:], order))
        add_neighbours(neighbours, values, order[:n_ranks], numbers)
    for place in range(n_documents):
        derivatives[0][rows[place]] = gradients[place] / neighbours.n_orders
        derivatives[1][rows[place]] = max(hessians[place] / neighbours.n_orders, LEAST_HESSIAN)


@inlined
def draw_order(key, n_documents, limit, numbers, found):
    """Fill the first places of a drawn order, `found[1]`; return a limit for the next one.

    Document i comes at a time of exponential law and rate ``e^score``, so each is the next one with
    chances in proportion to the rates of those that are still to come. Only those that may come
    before `limit` have their times computed, which takes longer than to draw the bits. Each of
    these is put where the number of those before it says, or, if it is late, behind the last rank.
    If two come at one time, one place stays as it is, which is a document's, too.
    """
    places, order = found
    early, ranks = places[0], places[1]
    powers, bits, rates, times = numbers[0], numbers[3], numbers[4], numbers[5]
    n_ranks = len(order) - 1
    for place in range(n_documents):
        bits[place] = np.float64(np.uint32(mix_bits(np.uint64(place) ^ key)))
    n_early, n_found, n_padded, growth = 0, 0, 0, 1.0
    while n_found < n_ranks:
        limit *= growth if limit < 1e290 else np.inf  # the largest times are 2e305
        growth *= 2.0
        for place in range(n_documents):
            # (1 - x / 8)^8 is less than e^-x, the chance to come later, and soon computed
            chance = max(1.0 - 0.125 * limit * powers[place], 0.0)
            chance *= chance
            chance *= chance
            rates[place] = chance * chance * TWO_32 - 1.0
        n_early, n_found = 0, 0
        for place in range(n_documents):
            early[n_early] = place
            n_early += bits[place] >= rates[place]
        # as many as fill vectors; those behind the last one never come
        n_padded = (n_early + _PADDING) // (_PADDING + 1) * (_PADDING + 1)
        for index in range(n_padded):
            times[index], rates[index] = bits[early[index]], powers[early[index]]
        for index in range(n_padded):
            time = -log((times[index] + 0.5) / TWO_32) * (1.0 / rates[index])
            time = time if index < n_early else np.inf
            n_found += time <= limit
            times[index] = time
            ranks[index] = 0
    for other in range(0, n_early, 4):
        a, b, c, d = times[other], times[other + 1], times[other + 2], times[other + 3]
        for index in range(n_padded):
            time = times[index]
            n_before = np.int64(a < time) + np.int64(b < time)
            n_before += np.int64(c < time) + np.int64(d < time)
            ranks[index] += np.uint64(n_before)
    for index in range(n_early):
        order[min(ranks[index], np.uint64(n_ranks))] = early[index]
    return limit


@inlined
def add_neighbours(neighbours, values, order, numbers):
    """Add the pairs of an order to the sums of its documents.

    `numbers` are ``e^score``, the sums of gradients and those of hessians.
    """
    powers, gradients, hessians = numbers[0], numbers[1], numbers[2]
    upper, n_relevant, last_pull, last_curve = order[0], 0.0, 0.0, 0.0
    for rank in range(len(order) - 1):
        lower = order[rank + 1]
        difference = values[upper] - values[lower]
        worth = difference * neighbours.steps[rank]
        worth *= max(0.0, 1.0 + neighbours.growth * n_relevant)
        n_relevant += 1.0 if values[upper] > 0.0 else 0.0
        power, other = powers[upper], powers[lower]
        inverse = 1.0 / (power + other)
        pull = worth * ((other if difference > 0.0 else power) * inverse)
        curve = 2.0 * abs(worth) * (power * inverse) * (other * inverse)
        gradients[upper] += last_pull - pull
        hessians[upper] += last_curve + curve
        upper, last_pull, last_curve = lower, pull, curve
    gradients[upper] += last_pull
    hessians[upper] += last_curve
