"""Losses of rankings: each document's derivatives depend on the scores of its whole query.

Rounds ask for them once, before the trees (:meth:`Loss.prepare`), and not block by block as they
ask the losses of rows: a query needs scratch as long as itself, whose rows may lie anywhere, and
the ratios of positions are sums over all queries that are known after a round only. Early stopping
comes back to Python after each round anyway, since metrics of rankings are computed there.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from sklboost.engine.hashing import hash_key
from sklboost.engine.parallel import ThreadTeam
from sklboost.objectives.domains import NOT_NEGATIVE, check_domain, refuse_first
from sklboost.objectives.loss import FillDerivatives, Loss
from sklboost.objectives.losses.lambdas import (
    N_NUMBERS,
    OF_NDCG,
    OF_PAIRS,
    OF_PRECISION,
    LambdaRules,
    Listing,
    Positions,
    fill_lambdas,
)
from sklboost.objectives.losses.xendcg import fill_cross_entropy
from sklboost.objectives.queries import Queries, read_queries, spread

# Gains 2^label - 1 beyond are no whole numbers of 32 bits; XGBoost has the same limit.
MOST_RELEVANT = 31
# Documents of the top that pairs begin with, pairs that are drawn, and positions that are looked
# at if pairs are drawn: XGBoost's.
_TOP, _DRAWN, _POSITIONS = 32, 1, 32
_OF_DRAWS = np.int64(-3)  # in the place of an output in a key


class RankingSettings(NamedTuple):
    """The estimator's parameters that losses of rankings read, by the same names."""

    lambdarank_pair_method: str = "topk"
    lambdarank_num_pair_per_sample: int | None = None
    lambdarank_normalization: bool = True
    lambdarank_score_normalization: bool = True
    lambdarank_unbiased: bool = False
    lambdarank_bias_norm: float = 1.0
    ndcg_exp_gain: bool = True

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

    @property
    def exponent(self) -> float:
        """Of the ratios of positions; negative: they are not estimated."""
        return 1.0 / (1.0 + self.lambdarank_bias_norm) if self.lambdarank_unbiased else -1.0


def settings_of(parameters: Mapping[str, Any]) -> RankingSettings:
    """Return the settings among the parameters of an estimator; defaults for what is not there."""
    known = {name: parameters[name] for name in RankingSettings._fields if name in parameters}
    return RankingSettings(**known)


def gains_of(labels: np.ndarray, is_exponential: bool) -> np.ndarray:
    """Return what documents of these relevances add to a DCG at the first position."""
    return np.exp2(labels) - 1.0 if is_exponential else labels


def discounts_of(n_positions: int) -> np.ndarray:
    """Return the factors ``1 / log2(1 + position)`` of a DCG, positions from 1."""
    discounts: np.ndarray = 1.0 / np.log2(np.arange(n_positions) + 2.0)
    return discounts


class RankingLoss(Loss):
    """What losses of rankings have in common.

    Parameters
    ----------
    settings : RankingSettings
    """

    n_targets = 2  # relevances, and the numbers of queries
    can_repeat = False  # a document twice makes the query longer

    def __init__(self, settings: RankingSettings):
        self.settings = settings

    @property
    def of_metrics(self) -> dict[str, Any]:
        """The parameters that metrics read."""
        return self.settings._asdict()

    def gradients(self, y: np.ndarray, raw_score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of the first round; `y` has relevances and query numbers."""
        both = np.empty((2, *raw_score.shape), np.float32)
        with ThreadTeam(1) as team:
            fill = self.prepare(team, y, np.empty(0), 0)
            assert fill is not None
            fill(0, raw_score, both[0], both[1])
        return both[0].astype(np.float64), both[1].astype(np.float64)

    def check_targets(self, y: np.ndarray, name: str) -> None:
        """Raise ValueError unless relevances are such as the loss reads, shape (n_samples, 2)."""
        labels = y[:, 0]
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
        self, team: ThreadTeam, y: np.ndarray, weight: np.ndarray, seed: int
    ) -> FillDerivatives:
        """Return what fills the derivatives of a round."""
        queries, settings = read_queries(y), self.settings
        rules = LambdaRules(
            metric=self.metric,
            takes_top=int(settings.takes_top),
            n_pairs=settings.n_pairs,
            is_normalized=int(settings.lambdarank_normalization),
            divides_by_difference=int(settings.lambdarank_score_normalization),
            exponent=settings.exponent,
        )
        listing = _list_documents(queries, settings)
        longest = len(listing.discounts)
        positions = _positions(queries, weight, settings, longest)
        orders = np.empty((team.size, 3, longest), np.int64)
        numbers = np.empty((team.size, N_NUMBERS, longest))

        def fill(
            round_: int, raw_score: np.ndarray, gradient: np.ndarray, hessian: np.ndarray
        ) -> None:
            outcome = (gradient[0], hessian[0], orders, numbers)
            key = np.int64(hash_key(seed, round_, _OF_DRAWS))
            team.run(fill_lambdas, key, listing, rules, positions, raw_score[0], outcome)

        return fill


class LambdaRankPrecision(LambdaRank):
    """Pairs of documents, weighed by what exchanging the two changes in the average precision."""

    name = "rank:map"
    metric = OF_PRECISION
    reads_powers = False

    def check_targets(self, y: np.ndarray, name: str) -> None:
        """Raise ValueError unless relevances are 0 or 1."""
        labels = y[:, 0]
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
        self, team: ThreadTeam, y: np.ndarray, weight: np.ndarray, seed: int
    ) -> FillDerivatives:
        """Return what fills the derivatives of a round."""
        queries = read_queries(y)
        is_exponential = self.settings.ndcg_exp_gain
        gains = gains_of(queries.labels, is_exponential) + 1.0
        scratch = np.empty((team.size, 4, int(queries.sizes.max(initial=0))))

        def fill(
            round_: int, raw_score: np.ndarray, gradient: np.ndarray, hessian: np.ndarray
        ) -> None:
            both = (gradient[0], hessian[0])
            key = np.int64(hash_key(seed, round_, _OF_DRAWS))
            team.run(fill_cross_entropy, key, queries, gains, raw_score[0], both, scratch)

        return fill


def _list_documents(queries: Queries, settings: RankingSettings) -> Listing:
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


def _positions(
    queries: Queries, weight: np.ndarray, settings: RankingSettings, longest: int
) -> Positions:
    """Return what is known of positions before the first round: that they are all alike."""
    if not settings.lambdarank_unbiased:
        return Positions(np.empty((2, 0)), np.empty((2, 0)), np.empty(0))
    n_positions = settings.n_pairs if settings.takes_top else _POSITIONS
    first = queries.rows[queries.starts[:-1]]
    of_queries = weight[first] if len(weight) else np.ones(len(first))
    ratios = np.ones((2, min(n_positions, longest)))
    return Positions(ratios, np.zeros((2, len(queries.rows))), of_queries)
