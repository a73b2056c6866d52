"""SHAP values and interaction values of rows in any form, block by block.

Kernels have rows side by side in the last axis, users have them in the first. A block of rows is
transposed while it is small.
"""

from collections.abc import Iterator

import numpy as np

from sklboost.data.features import Features, raw_blocks
from sklboost.data.raw_values import array_of
from sklboost.engine.model import Model
from sklboost.engine.parallel import ThreadTeam
from sklboost.engine.thread_counts import n_threads_for
from sklboost.inspection.shap.edges import Edges, lay_out_edges
from sklboost.inspection.shap.factors import N_PLACES, N_ROW_TABLES, quadrature
from sklboost.inspection.shap.tree_shap import LANES, Contributions, ShapScratch, explain_rows

# Rows times edges times points that are done in the time it takes to start a thread.
_STEPS_PER_THREAD = 1_000_000
# The factors of a tree's edges are computed once for so many rows, which takes as long as 50 rows.
_BLOCK_ROWS = 8 * LANES
# Background rows whose states a thread keeps at a time.
_BACKGROUND_ROWS = 256
# Results before they are transposed: 64 MB.
_WAITING_VALUES = 2**23


@np.errstate(all="ignore")
def add_contributions(
    model: Model,
    X: Features,
    trees: tuple[int, int],
    background: Features | None,
    n_jobs: int | None,
    out: np.ndarray,
) -> None:
    """Add the SHAP values of trees ``[start, stop)``.

    Parameters
    ----------
    model : Model
        With constant leaves.
    X : ndarray of float32 or float64, Table, SparseTable or BinnedMatrix; (n_samples, n_features)
    trees : tuple of int
    background : the same, shape (n_backgrounds, n_features), or None
        Rows whose values take the place of those of unknown features; their results are averaged.
        None: at a split on an unknown feature rows go both ways, in proportion to the cover.
    n_jobs : int or None
    out : ndarray of float64, shape (n_samples, n_outputs, n_features)
        Added to in place; the same bits for any number of threads.
    """
    edges = lay_out_edges(model)
    for rows, added in _explained(model, edges, X, trees, background, n_jobs, pairs=False):
        out[rows, :, edges.features] += added.single.transpose(2, 0, 1)


@np.errstate(all="ignore")
def add_interactions(
    model: Model,
    X: Features,
    trees: tuple[int, int],
    background: Features | None,
    n_jobs: int | None,
    out: np.ndarray,
) -> None:
    """Add the SHAP interaction values of trees ``[start, stop)``.

    Parameters
    ----------
    model, X, trees, background, n_jobs
        As for :func:`add_contributions`.
    out : ndarray of float64, shape (n_samples, n_outputs, n_features, n_features)
        Added to in place: to (i, k) and (k, i) half of their interaction, and to (i, i) the SHAP
        value of i less its halves.
    """
    edges = lay_out_edges(model)
    for rows, added in _explained(model, edges, X, trees, background, n_jobs, pairs=True):
        halves = (added.pairs + added.pairs.swapaxes(1, 2)) / 2.0
        for column, feature in enumerate(edges.features):
            # the diagonal is 0 before
            halves[:, column, column] = added.single[:, column] - halves[:, column].sum(axis=1)
            out[rows, :, feature, edges.features] += halves[:, column].transpose(2, 0, 1)


def _explained(
    model: Model,
    edges: Edges,
    X: Features,
    trees: tuple[int, int],
    background: Features | None,
    n_jobs: int | None,
    pairs: bool,
) -> Iterator[tuple[slice, Contributions]]:
    """Yield ranges of rows and what the features that occur add to their raw scores."""
    n_backgrounds, n_columns = 0 if background is None else len(background), len(edges.features)
    points = quadrature(int(edges.edges.n_different.max()), max(1, n_backgrounds))
    n_edges = int(edges.starts[trees[1]] - edges.starts[trees[0]])
    work = len(X) * n_edges * len(points) * max(1, n_backgrounds)
    n_values = model.n_outputs * n_columns * (1 + n_columns * pairs)
    n_rows = max(1, min(len(X), _WAITING_VALUES // max(1, n_values)))
    with ThreadTeam(n_threads_for(n_jobs, work, _STEPS_PER_THREAD)) as team:
        others = _backgrounds(team, edges, background)
        scratch = _allocate_scratch(team.size, edges, points, n_rows, others)
        for rows, columns in _blocks(team, edges, X, n_rows):
            single = np.zeros((model.n_outputs, n_columns, columns.shape[1]))
            shape = (model.n_outputs, n_columns, n_columns, columns.shape[1])
            both = Contributions(single, np.zeros(shape if pairs else (0, 0, 0, 0)))
            for other in others:
                team.run(explain_rows, edges, trees, columns, (other, points), scratch, both)
            yield rows, both


def _blocks(
    team: ThreadTeam, edges: Edges, X: Features, n_rows: int
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield ranges of rows and the values of the features that occur, (n_columns, n_rows)."""
    for rows, raw in raw_blocks(team, X):
        values = array_of(raw)
        for start in range(0, len(values), n_rows):
            block = values[start : start + n_rows, edges.features]
            first = rows.start + start
            columns = np.ascontiguousarray(block.T, dtype=np.float64)
            yield slice(first, first + len(block)), columns


def _backgrounds(team: ThreadTeam, edges: Edges, background: Features | None) -> list[np.ndarray]:
    """Return the columns of the background rows in blocks; without any, one block of no rows."""
    if background is None:
        return [np.empty((len(edges.features), 0))]
    return [columns for _, columns in _blocks(team, edges, background, _BACKGROUND_ROWS)]


def _allocate_scratch(
    n_threads: int, edges: Edges, points: np.ndarray, n_rows: int, others: list[np.ndarray]
) -> ShapScratch:
    n_nodes = int(np.diff(edges.starts).max())
    n_depths = int(edges.edges.depth.max()) + 1
    n_backgrounds = max(columns.shape[1] for columns in others)
    n_tables = n_nodes if n_backgrounds == 0 else N_ROW_TABLES
    # two blocks a thread, if that leaves some rows for each
    n_block_rows = min(_BLOCK_ROWS, max(LANES, -(-n_rows // (2 * n_threads))))
    lanes = (len(points), min(LANES, n_rows))
    return ShapScratch(
        states=np.empty((n_threads, n_nodes, min(n_block_rows, n_rows)), dtype=np.uint8),
        background=np.empty((n_threads, n_nodes, n_backgrounds), dtype=np.uint8),
        tables=np.empty((n_threads, n_tables, len(points), N_PLACES)),
        products=np.empty((n_threads, n_depths, *lanes)),
        sums=np.zeros((n_threads, n_depths, len(edges.values), *lanes)),
        path=np.empty((n_threads, 2, n_depths), dtype=np.int64),
    )
