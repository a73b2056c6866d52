"""Statistics of categories by the target: what ``max_ctr_complexity=1`` adds to the search.

A column of many categories is searched as it is, and as numbers: what the targets of each category
are on average, moved towards the mean of all, and how many rows it has. The value of a row never
depends on its own target. The rows are divided into parts at random, and a row has the statistic of
the rows of the other parts, as in :class:`sklearn.preprocessing.TargetEncoder`; a new row has that
of all. So trees learn from training rows how far such a mean can be relied on.

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

from sklboost.boosting.rounds import Rounds, TreeGrower
from sklboost.boosting.settings import BoostingTask
from sklboost.data.binning import apply_cuts, lay_out_cells
from sklboost.data.cuts import find_cuts
from sklboost.data.raw_values import read_only
from sklboost.engine.model import Trees
from sklboost.engine.parallel import ThreadTeam
from sklboost.engine.structs import BinCuts, TreeParams
from sklboost.tree.predict.category_bits import all_listed_categories, bits_of_categories
from sklboost.tree.predict.trees import write_trees

# Columns of fewer categories are searched well as they are. With 10 the loss on ames_housing, whose
# columns have 28 at most, is 2.2 to 2.8 % higher.
FEWEST_CATEGORIES = 30
# Parts of the rows. With 3, 10 and 20 the loss is the same within what splits of the data vary by.
_N_PARTS = 5
# With the bins of most columns of numbers: a byte.
_MOST_BINS = 256
# Standard deviations that the variance between categories must be above what noise alone makes of
# it. Else their means are noise, too.
_FEWEST_DEVIATIONS = 2.0


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
    statistics = statistics_of(team, task, features) if features else []
    if not statistics:
        return Rounds(team, task, limits)
    return RoundsWithStatistics(team, task, limits, statistics)


class RoundsWithStatistics(Rounds):
    """Grows trees on more columns than the features, and makes them trees of the features."""

    lists_all = True

    def __init__(
        self,
        team: ThreadTeam,
        task: BoostingTask,
        limits: tuple[int, int],
        statistics: list[Statistic],
    ):
        self._n_features, self._statistics = len(task.matrix.places), statistics
        super().__init__(team, _with_columns(team, task, statistics), limits)

    def grow(self, start: int, stop: int, params: TreeParams) -> Iterator[Trees]:
        """Do the rounds ``[start, stop)``, at most `n_at_once`; yield copies of their trees."""
        for trees in super().grow(start, stop, params):
            own = self._on_features(trees)
            if trees.unpruned is not None:
                own = own._replace(unpruned=self._on_features(trees.unpruned))
            write_trees(own, self.grown)
            yield own

    def _on_features(self, trees: Trees) -> Trees:
        """Turn splits on statistics into splits on sets of categories."""
        nodes: Any = trees.nodes.copy()
        counts, codes = all_listed_categories(trees.bits)
        listed = np.split(codes, np.cumsum(counts)[:-1])
        for node in np.flatnonzero((nodes.feature >= self._n_features) & (nodes.left >= 0)):
            statistic = self._statistics[nodes.feature[node] - self._n_features]
            goes_left = statistic.of_categories < nodes.threshold[node]
            listed[node] = np.flatnonzero(goes_left[:-1])
            counts[node] = len(listed[node])
            nodes.feature[node] = statistic.feature
            nodes.default_left[node] = goes_left[-1]
            nodes.threshold[node] = np.nan
        bits = bits_of_categories(counts, np.concatenate(listed), is_used=True)
        return trees._replace(nodes=nodes, bits=bits)


def _with_columns(
    team: ThreadTeam, task: BoostingTask, statistics: list[Statistic]
) -> BoostingTask:
    """Return the task with the bins and cuts of statistics behind those of the features.

    A statistic has the constraints and the weight of its feature.
    """
    matrix, cuts = task.matrix, task.cuts
    values = np.column_stack([own.of_rows for own in statistics])
    added_cuts, has_missing = find_cuts(team, values, task.weight, _MOST_BINS)
    added = apply_cuts(team, values, added_cuts, has_missing)
    joined = BinCuts(*map(np.append, cuts, added_cuts))._replace(
        starts=np.append(cuts.starts, cuts.starts[-1] + added_cuts.starts[1:])
    )
    bins = lay_out_cells(
        read_only(np.hstack([matrix.rows, added.rows])),
        read_only(np.vstack([matrix.columns, added.columns])),
        joined,
        np.append(matrix.has_missing, has_missing),
    )
    owners = [*range(len(matrix.places)), *(own.feature for own in statistics)]
    rules = {
        name: own[owners]
        for name in ("signs", "groups", "weights")
        if len(own := getattr(task.rules, name)) > 0
    }
    return task._replace(matrix=bins, cuts=joined, rules=task.rules._replace(**rules))


# --- the statistics


def statistics_of(team: ThreadTeam, task: BoostingTask, features: list[int]) -> list[Statistic]:
    """Return the statistics of those categorical features whose means are more than noise.

    There is a mean for each output, and a count.
    """
    rounds = Rounds(team, task, (1, 1))
    gradients, hessians = rounds.first_derivatives()
    weight = task.weight if len(task.weight) > 0 else np.ones(gradients.shape[1])
    # a generator whose numbers stay the same in all versions of NumPy
    part = np.random.RandomState(task.sampling_seed % 2**32).randint(_N_PARTS, size=len(weight))
    found = []
    for feature in features:
        codes = task.matrix.columns[task.matrix.places[feature].column].astype(np.int64)
        n_codes = int(task.matrix.n_categories[feature]) + 1
        means = [
            cross_fit_means(codes, n_codes, sums, part, task.params.cat_smooth)
            for sums in zip(weight * gradients, weight * hessians, strict=True)
        ]
        found += [Statistic(feature, *own) for own in means if own is not None]
        if found and found[-1].feature == feature:
            counts = np.bincount(codes, weight, minlength=n_codes)
            found.append(Statistic(feature, counts[codes], counts))
    return found


def cross_fit_means(
    codes: np.ndarray,
    n_codes: int,
    sums: tuple[np.ndarray, np.ndarray],
    part: np.ndarray,
    cat_smooth: float,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return ``(G + k m) / (H + k)`` for each row and for each code; None if that is but noise.

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
    cells = codes * _N_PARTS + part
    of_codes = [np.bincount(codes, of_rows, minlength=n_codes) for of_rows in sums]
    of_cells = [np.bincount(cells, of_rows, minlength=n_codes * _N_PARTS) for of_rows in sums]
    counts = np.bincount(codes, minlength=n_codes)
    k = _smoothing(of_codes, counts, (spread, total, max(total_hessian, least)), cat_smooth)
    if k is None:
        return None
    rest = [whole[codes] - cell[cells] for whole, cell in zip(of_codes, of_cells, strict=True)]
    of_rows, of_all = ((G + k * mean) / np.maximum(H + k, least) for G, H in (rest, of_codes))
    return of_rows, of_all


def _smoothing(
    of_codes: list[np.ndarray],
    counts: np.ndarray,
    of_all: tuple[float, float, float],
    cat_smooth: float,
) -> float | None:
    """Return ``k``: the noise over the variance of categories, by an analysis of variance.

    At least `cat_smooth`, and so much that a mean has some rows if nothing is noise. None if noise
    alone may be as large as that variance.
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
    n_left, n_between = n_rows - n_known + 1.0, n_known - 1.0
    noise = (within + (within + between) / max(n_rows - 1.0, 1.0)) / n_left
    excess = between - n_between * noise
    # of noise alone, whose own variance is an estimate, too
    deviation = noise * np.sqrt(2.0 * n_between * (1.0 + n_between / n_left))
    if excess <= _FEWEST_DEVIATIONS * deviation:
        return None
    # of one row: hessians may be far below 1
    floor = max(cat_smooth, total_hessian / n_rows)
    return max(float(noise * (total_hessian - squares / total_hessian) / excess), floor)
