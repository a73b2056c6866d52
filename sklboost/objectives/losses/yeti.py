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

from typing import NamedTuple

import numpy as np

from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.elementary import exp_of_negative, hash_key, log, mix_bits
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

_INVERSE_2_TO_32 = 2.0**-32
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
            refuse_first((y[:, 0] != 0.0) & (y[:, 0] != 1.0), y[:, 0], name, why)

    def prepare(
        self, team: ThreadTeam, y: np.ndarray, weight: np.ndarray, seed: int
    ) -> FillDerivatives:
        neighbours = self._neighbours(read_queries(y))
        longest = int(neighbours.queries.sizes.max(initial=0))
        numbers = np.empty((team.size, 7, longest))
        places = np.empty((team.size, 2, longest), np.int64)

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
            fill_query(round_key, neighbours, documents, raw_score, derivatives, own)


@kernel
def fill_query(round_key, neighbours, documents, raw_score, derivatives, scratch):
    """Fill the derivatives of the documents of a query.

    Raw scores more than 700 below the best one count as that far below.
    """
    start, stop = documents
    rows, values = neighbours.queries.rows[start:stop], neighbours.values[start:stop]
    (numbers, places), n_documents = scratch, stop - start
    powers, inverses = numbers[0, :n_documents], numbers[1, :n_documents]
    gradients, hessians = numbers[2, :n_documents], numbers[3, :n_documents]
    order = places[0, : min(n_documents, len(neighbours.steps) + 1)]
    highest, total = raw_score[rows[0]], 0.0
    for place in range(n_documents):
        powers[place] = raw_score[rows[place]]
        highest = max(highest, powers[place])
    for place in range(n_documents):
        powers[place] = exp_of_negative(powers[place] - highest)
        total += powers[place]
        inverses[place] = 1.0 / powers[place]
        gradients[place], hessians[place] = 0.0, 0.0
    for rank in range(len(order)):
        order[rank] = rank  # see `draw_order`
    limit = 1.5 * len(order) / total
    for drawn in range(neighbours.n_orders):
        key = hash_key(np.int64(round_key), np.int64(start), np.int64(drawn))
        limit = draw_order(key, inverses, limit, numbers[4:], (places[1], order))
        add_neighbours(neighbours, values, order, numbers)
    for place in range(n_documents):
        derivatives[0][rows[place]] = gradients[place] / neighbours.n_orders
        derivatives[1][rows[place]] = max(hessians[place] / neighbours.n_orders, LEAST_HESSIAN)


@inlined
def draw_order(key, inverses, limit, numbers, found):
    """Fill the first places of a drawn order, `found[1]`; return a limit for the next one.

    Document i comes at a time of exponential law and rate ``e^score``, so each is the next one with
    chances in proportion to the rates of those that are still to come. `inverses` are of the rates.
    Of the documents that come before `limit`, each is put where the number of those before it says.
    If two come at one time, one place stays as it is, which is a document's, too.
    """
    n_documents, (places, order) = len(inverses), found
    times, early, ranks = numbers[0, :n_documents], numbers[1], numbers[2]
    for place in range(n_documents):
        bits = np.float64(mix_bits(np.uint64(place) ^ key))
        times[place] = -log((bits + 0.5) * _INVERSE_2_TO_32) * inverses[place]
    n_early = 0
    while n_early < len(order) and limit < np.inf:  # scores that are NaN never come
        n_early = 0
        for place in range(n_documents):
            early[n_early], places[n_early] = times[place], place
            n_early += times[place] <= limit
        limit *= 4.0
    for index in range(n_early):
        ranks[index] = 0.0
    for other in range(n_early):
        time = early[other]
        for index in range(n_early):
            ranks[index] += 1.0 if time < early[index] else 0.0
    latest = 0.0
    for index in range(n_early):
        rank = np.int64(ranks[index])
        if rank < len(order):
            order[rank] = places[index]
            latest = max(latest, early[index])
    return 1.3 * latest  # so few documents are looked at in vain, and seldom all of them twice


@inlined
def add_neighbours(neighbours, values, order, numbers):
    """Add the pairs of an order to the sums of its documents.

    `numbers` are ``e^score``, something else, and the sums of gradients and of hessians.
    """
    powers, gradients, hessians = numbers[0], numbers[2], numbers[3]
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
