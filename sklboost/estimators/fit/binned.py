"""The rows of a fit as bins, here or on the workers of a cluster."""

from typing import NamedTuple

import numpy as np

from sklboost.boosting.rounds import Rounds
from sklboost.boosting.training import MakeGrower
from sklboost.data.binning import LEAST_SHARED_VALUES
from sklboost.data.features import RemoteFeatures
from sklboost.data.shared_bins import shared_bins
from sklboost.engine.parallel import ThreadTeam
from sklboost.engine.structs import BinCuts, TrainingBins
from sklboost.estimators.input.rows import Rows
from sklboost.estimators.parameters.groups import Parameters


class Binned(NamedTuple):
    """The bins of the rows of a fit, and what grows trees on them."""

    matrix: TrainingBins  # on a cluster without the bins of the rows, which are all 0 here
    cuts: BinCuts
    make_rounds: MakeGrower = Rounds  # as :class:`~sklboost.boosting.training.Training` takes it
    # bool, shape (n_features,), or None: whether all rows have the same bin. None: the matrix
    # tells.
    is_constant: np.ndarray | None = None


def bin_rows(team: ThreadTeam, rows: Rows, parameters: Parameters) -> Binned:
    """Bin the rows of a fit."""
    X, max_bin = rows.X, parameters.max_bin
    if not isinstance(X, RemoteFeatures):
        team = team if X.size >= LEAST_SHARED_VALUES else ThreadTeam(1)
        return Binned(*shared_bins(team, X, rows.weight, max_bin))
    from sklboost.distributed.fitting import bin_on_cluster

    return Binned(*bin_on_cluster(X, rows.weight, max_bin, parameters.n_jobs))
