"""The entrance to this room from a fit: features on a cluster become bins and rounds there."""

from functools import partial
from typing import Any

import numpy as np

from sklboost.boosting.training import MakeGrower
from sklboost.data.binning import lay_out_cells
from sklboost.distributed.crew import Crew, LostWorkersError
from sklboost.distributed.training import ClusterRounds
from sklboost.engine.structs import BinCuts, TrainingBins


def bin_on_cluster(
    X: Any, weight: np.ndarray, max_bin: int, n_jobs: int | None
) -> tuple[TrainingBins, BinCuts, MakeGrower, np.ndarray]:
    """Choose the bins of features on a cluster.

    Parameters
    ----------
    X : ClusterFeatures
    weight : ndarray of float64, shape (n_samples,) or (0,)
    max_bin : int
    n_jobs : int or None
        Of this process.

    Returns
    -------
    matrix : TrainingBins
        Of bins that are all 0 and take no memory: those of the rows are made on the cluster.
    cuts : BinCuts
    make_rounds : callable
        Makes the rounds that are done there.
    is_constant : ndarray of bool, shape (n_features,)
        Whether all rows have the same bin.
    """
    bins = X.binned(weight, max_bin, n_jobs)
    no_bins: Any = np.broadcast_to(bins.dtype.type(0), X.shape)
    matrix = lay_out_cells(no_bins, no_bins.T, bins.cuts, bins.has_missing)
    make_rounds = partial(ClusterRounds, Crew(X.client), bins, LostWorkersError)
    return matrix, bins.cuts, make_rounds, bins.is_constant
