"""Targets of which a whole distribution is learnt."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from sklboost.estimators.input.target_kinds import RegressionTargets, Targets
from sklboost.estimators.parameters.distributions import DistributionParameters
from sklboost.estimators.parameters.groups import Parameters
from sklboost.objectives.distributions import find_distribution
from sklboost.objectives.loss import Loss


@dataclass(frozen=True, eq=False)
class DistributionTargets(RegressionTargets):
    """Numbers, one a row, each drawn from a distribution of its own.

    Attributes
    ----------
    distribution : str
    spread : float
        The unit of locations and scales in raw scores.
    """

    distribution: str
    spread: float

    @classmethod
    def learn(cls, y: np.ndarray, weight: np.ndarray, parameters: DistributionParameters) -> Self:
        """Find the unit for targets of rows of positive weight, shape (n_samples,)."""
        if y.ndim == 2:
            raise ValueError(
                f"y has {y.shape[1]} columns, and a distribution is one of a single target: fit an "
                "estimator for each, as sklearn.multioutput.MultiOutputRegressor does"
            )
        loss, name = find_distribution(parameters.distribution), parameters.distribution
        targets = RegressionTargets(1).encode(y, "y").astype(np.float64)
        loss().check_targets(targets, "y")
        return cls(1, name, loss.spread_of(targets, weight))

    def continuing(self, before: Targets, name: str) -> Targets:
        """Return the targets of the model that is continued; its trees are in its unit."""
        assert isinstance(before, DistributionTargets)
        if before.distribution != self.distribution:
            raise ValueError(
                f"distribution={self.distribution!r}, but {name} was fitted with "
                f"{before.distribution!r}: continue with the same"
            )
        return before

    def make_loss(self, parameters: Parameters) -> Loss:
        """Return the loss of the distribution."""
        return self.loss

    @property
    def loss(self) -> Loss:
        """The loss, which the targets alone decide."""
        return find_distribution(self.distribution)(self.spread)
