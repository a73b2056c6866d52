"""Statistics of categories by the target: what ``max_ctr_complexity=1`` adds to the search.

A column of many categories is searched as numbers: what the targets of each category are on
average, moved towards the mean of all, and how many rows it has. The value of a row never depends
on its own target. The rows are divided into parts at random, and a row has the statistic of the
rows of the other parts, as in :class:`sklearn.preprocessing.TargetEncoder`; a new row has that of
all. So trees learn from training rows how far such a mean can be relied on.

The model needs nothing of it. For new rows a category has one value, and ``value < threshold`` is
a set of categories: the split becomes one on the column itself. It is written into the trees as
soon as they are grown.

Source: Micci-Barreca (2001), "A preprocessing scheme for high-cardinality categorical attributes";
Prokhorenkova et al. (2018), "CatBoost: unbiased boosting with categorical features", section 3, on
why a row's own target must be left out.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from sklboost.boosting.rounds import (
    NODES_PER_CALL,
    Calls,
    Rounds,
    TreeGrower,
    allocate_grown,
    plan_calls,
)
from sklboost.boosting.settings import BoostingTask
from sklboost.data.binning import apply_cuts, lay_out_cells
from sklboost.data.cuts import find_cuts
from sklboost.data.raw_values import read_only
from sklboost.engine.model import Trees
from sklboost.engine.parallel import ThreadTeam
from sklboost.engine.structs import BinCuts, FeatureRules, TrainingBins, TreeParams
from sklboost.tree.predict.category_bits import (
    all_listed_categories,
    bits_of_categories,
    most_words,
)
from sklboost.tree.predict.trees import write_trees

# Columns of fewer categories are searched well as they are. With 10 the loss on ames_housing, whose
# columns have 28 at most, is 2.2 to 2.8 % higher.
FEWEST_CATEGORIES = 30
# Parts of the rows. With 3, 10 and 20 the loss is the same within what splits of the data vary by.
_N_PARTS = 5
# With the bins of most columns of numbers: a byte.
_MOST_BINS = 256


class Statistic(NamedTuple):
    """What a categorical feature is as numbers."""

    feature: int
    of_rows: np.ndarray  # float64, shape (n_samples,): for the training
    # float64, shape (n_categories + 1,): of each category, and of missing values and of categories
    # that no row of the training has
    of_categories: np.ndarray


def make_grower(team: ThreadTeam, task: BoostingTask, limits: tuple[int, int]) -> TreeGrower:
    """Return what grows trees on the features and on the statistics of their categories."""
    features = np.flatnonzero(task.matrix.n_categories >= FEWEST_CATEGORIES).tolist()
    if not features:
        return Rounds(team, task, limits)
    return RoundsWithStatistics(team, task, limits, statistics_of(team, task, features))


class RoundsWithStatistics:
    """Grows trees on more columns than the features, and makes them trees of the features."""

    seconds_per_call = Rounds.seconds_per_call

    def __init__(
        self,
        team: ThreadTeam,
        task: BoostingTask,
        limits: tuple[int, int],
        statistics: list[Statistic],
    ):
        self.team = team
        # what is searched: features as they are, then statistics of others
        self._features = np.flatnonzero(task.matrix.n_categories < FEWEST_CATEGORIES)
        self._statistics = statistics
        matrix, cuts = _bins_of(team, task, self._features, statistics)
        owners = [*self._features.tolist(), *(own.feature for own in statistics)]
        rules = _rules_of(task.rules, owners)
        of_all = task._replace(matrix=matrix, cuts=cuts, rules=rules)
        self._rounds = Rounds(team, of_all, limits)
        self.n_threads, self.traffic = self._rounds.n_threads, self._rounds.traffic
        calls = _plan_wide_calls(task, limits, self._rounds)
        self.n_at_once = calls.n_at_once
        self.grown = allocate_grown(calls, task.n_tree_outputs, calls.n_trees)

    def grow(self, start: int, stop: int, params: TreeParams) -> Iterator[Trees]:
        """Do the rounds ``[start, stop)``, at most `n_at_once`; yield copies of their trees."""
        for trees in self._rounds.grow(start, stop, params):
            own = on_features(trees, self._features, self._statistics)
            if trees.unpruned is not None:
                before = on_features(trees.unpruned, self._features, self._statistics)
                own = own._replace(unpruned=before)
            write_trees(own, self.grown)
            yield own

    def raw_score(self) -> np.ndarray:
        """Return the raw scores of the rows, shape (n_outputs, n_samples)."""
        return self._rounds.raw_score()

    def close(self) -> None:
        """Free what is not memory of this process: nothing."""


def _plan_wide_calls(task: BoostingTask, limits: tuple[int, int], rounds: Rounds) -> Calls:
    """Plan calls whose trees have room for sets of all categories."""
    n_categories = int(task.matrix.n_categories.max())
    calls = plan_calls(task, limits, rounds.team.size)
    n_words = most_words(n_categories, n_categories)
    most = max(1, NODES_PER_CALL // (calls.capacity * n_words * task.n_outputs))
    n_at_once = min(rounds.n_at_once, most)
    n_trees = len(rounds.grown.n_pruned)  # parallel trees of a round come as they are grown
    if task.params.num_parallel_tree == 1:
        n_trees = n_at_once * task.trees_per_round
    return calls._replace(n_at_once=n_at_once, n_trees=n_trees, n_words=n_words)


# --- the statistics


def statistics_of(team: ThreadTeam, task: BoostingTask, features: list[int]) -> list[Statistic]:
    """Return the statistics of some categorical features: means for each output, and a count."""
    rounds = Rounds(team, task, (1, 1))
    gradients, hessians = rounds.first_derivatives()
    weight = task.weight if len(task.weight) > 0 else np.ones(gradients.shape[1])
    # a generator whose numbers stay the same in all versions of NumPy
    part = np.random.RandomState(task.sampling_seed % 2**32).randint(_N_PARTS, size=len(weight))
    found = []
    for feature in features:
        codes = task.matrix.columns[task.matrix.places[feature].column].astype(np.int64)
        n_categories = int(task.matrix.n_categories[feature])
        for gradient, hessian in zip(gradients, hessians, strict=True):
            sums = (weight * gradient, weight * hessian)
            smooth = task.params.cat_smooth
            of_rows, of_all = cross_fit_means(codes, n_categories + 1, sums, part, smooth)
            found.append(Statistic(feature, of_rows, of_all))
        counts = np.bincount(codes, weight, minlength=n_categories + 1)
        found.append(Statistic(feature, counts[codes], counts))
    return found


def cross_fit_means(
    codes: np.ndarray,
    n_codes: int,
    sums: tuple[np.ndarray, np.ndarray],
    part: np.ndarray,
    cat_smooth: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return ``(G + k m) / (H + k)`` for each row and for each code.

    G and H are sums over the code's rows, for a row over those of them in other parts; ``m`` is
    ``G / H`` of all rows. `sums` are the gradients and hessians of the rows. Everything is added up
    row by row in their order, so that it does not depend on the machine.
    """
    gradient, hessian = sums
    least = float(np.finfo(np.float32).tiny)
    zeros = np.zeros(len(codes), dtype=np.int64)
    total, total_hessian = (float(np.bincount(zeros, of_rows)[0]) for of_rows in sums)
    mean = total / max(total_hessian, least)
    spread = np.bincount(zeros, gradient * gradient / np.maximum(hessian, least))[0]
    cells = np.bincount(codes * _N_PARTS + part, minlength=n_codes * _N_PARTS)
    of_cells = [
        np.bincount(codes * _N_PARTS + part, of_rows, minlength=len(cells)).reshape(-1, _N_PARTS)
        for of_rows in sums
    ]
    of_codes = [np.zeros(n_codes), np.zeros(n_codes)]
    for number in range(_N_PARTS):  # in this order
        for whole, cell in zip(of_codes, of_cells, strict=True):
            whole += cell[:, number]
    counts = np.bincount(codes, minlength=n_codes)
    k = _smoothing(of_codes, counts, (spread, total, max(total_hessian, least)), cat_smooth)
    rest = [whole[:, np.newaxis] - cell for whole, cell in zip(of_codes, of_cells, strict=True)]
    of_parts = (rest[0] + k * mean) / np.maximum(rest[1] + k, least)
    of_all = (of_codes[0] + k * mean) / np.maximum(of_codes[1] + k, least)
    return of_parts[codes, part], of_all


def _smoothing(
    of_codes: list[np.ndarray],
    counts: np.ndarray,
    of_all: tuple[float, float, float],
    cat_smooth: float,
) -> float:
    """Return ``k``: the noise over the variance of categories, by an analysis of variance.

    At least `cat_smooth`, and so much that a mean has some rows if nothing is noise.
    """
    known = counts > 0
    gradient, hessian = of_codes[0][known], of_codes[1][known]
    spread, total, total_hessian = of_all
    n_rows, n_known = float(counts.sum()), float(known.sum())
    ones = np.zeros(len(gradient), dtype=np.int64)
    least = float(np.finfo(np.float32).tiny)
    similarity = np.bincount(ones, gradient * gradient / np.maximum(hessian, least))[0]
    squares = np.bincount(ones, hessian * hessian)[0]
    between = max(similarity - total * total / total_hessian, 0.0)
    within = max(spread - similarity, 0.0)
    # one row more, as spread as all are: where each category has one, nothing is known of `within`
    noise = (within + (within + between) / max(n_rows - 1.0, 1.0)) / (n_rows - n_known + 1.0)
    excess = max(between - (n_known - 1.0) * noise, 0.0)
    room = noise * (total_hessian - squares / total_hessian)
    # of one row: hessians may be far below 1
    floor = max(cat_smooth, total_hessian / n_rows)
    most = 1e6 * total_hessian
    return float(min(max(room / excess if excess * most > room else most, floor), max(most, floor)))


# --- their columns


def _bins_of(
    team: ThreadTeam, task: BoostingTask, features: np.ndarray, statistics: list[Statistic]
) -> tuple[TrainingBins, BinCuts]:
    """Return the bins of some features and behind them those of statistics, and their cuts."""
    matrix, cuts = task.matrix, task.cuts
    values = np.column_stack([own.of_rows for own in statistics])
    own_cuts, has_missing = find_cuts(team, values, task.weight, _MOST_BINS)
    added = apply_cuts(team, values, own_cuts, has_missing)
    starts, n_cuts = cuts.starts, np.diff(cuts.starts)
    is_cut = np.repeat(np.isin(np.arange(len(n_cuts)), features), n_cuts)
    is_bin = np.repeat(np.isin(np.arange(len(n_cuts)), features), n_cuts + 1)
    counts = np.concatenate([n_cuts[features], np.diff(own_cuts.starts)])
    joined = BinCuts(
        np.concatenate([cuts.cuts[is_cut], own_cuts.cuts]),
        np.concatenate([starts[:1], np.cumsum(counts)]),
        np.concatenate([cuts.lower[is_bin], own_cuts.lower]),
        np.concatenate([cuts.upper[is_bin], own_cuts.upper]),
        np.concatenate([cuts.n_categories[features], own_cuts.n_categories]),
    )
    bins = lay_out_cells(
        read_only(np.ascontiguousarray(np.hstack([matrix.rows[:, features], added.rows]))),
        read_only(np.ascontiguousarray(np.vstack([matrix.columns[features], added.columns]))),
        joined,
        np.concatenate([matrix.has_missing[features], has_missing]),
    )
    return bins, joined


def _rules_of(rules: FeatureRules, owners: list[int]) -> FeatureRules:
    """Return rules for columns that belong to these features: the same as for the features."""
    return rules._replace(
        **{
            name: own[owners] if len(own) > 0 else own
            for name, own in rules._asdict().items()
            if name != "most_together"
        }
    )


def on_features(trees: Trees, features: np.ndarray, statistics: list[Statistic]) -> Trees:
    """Turn splits on columns into splits on features, and on the categories of features."""
    nodes: Any = trees.nodes.copy()
    column = nodes.feature - len(features)
    counts, codes = all_listed_categories(trees.bits)
    counts = counts if len(counts) > 0 else np.zeros(len(nodes), dtype=np.int64)
    listed = np.split(codes, np.cumsum(counts)[:-1])
    owners = np.concatenate([features, [own.feature for own in statistics]])
    nodes.feature[:] = owners[nodes.feature]
    for node in np.flatnonzero((column >= 0) & (nodes.left >= 0)):
        statistic = statistics[column[node]]
        goes_left = statistic.of_categories < nodes.threshold[node]
        listed[node] = np.flatnonzero(goes_left[:-1])
        counts[node] = len(listed[node])
        nodes.default_left[node] = goes_left[-1]
        nodes.threshold[node] = np.nan
    bits = bits_of_categories(counts, np.concatenate(listed), is_used=True)
    return trees._replace(nodes=nodes, bits=bits)
