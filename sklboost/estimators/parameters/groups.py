"""The parameters of the estimators put together: of boosters, and of those that classify."""

from dataclasses import dataclass

from sklboost.estimators.parameters.boosting import (
    BoostingParameters,
    ClassParameters,
    LossParameters,
)
from sklboost.estimators.parameters.features import FeatureParameters
from sklboost.estimators.parameters.training import InspectionParameters, TrainingParameters
from sklboost.estimators.parameters.trees import SamplingParameters, TreeParameters


# Of the bases the last comes first in the constructor. They have none of their own: it takes Python
# a millisecond to make one.
@dataclass(kw_only=True, eq=False, repr=False)
class Parameters(
    InspectionParameters,
    TrainingParameters,
    FeatureParameters,
    SamplingParameters,
    TreeParameters,
    LossParameters,
    BoostingParameters,
):
    """The parameters of all estimators."""


@dataclass(kw_only=True, eq=False, repr=False)
class RegressorParameters(Parameters):
    """The parameters of regressors."""


@dataclass(kw_only=True, eq=False, repr=False)
class ClassifierParameters(ClassParameters, Parameters):
    """The parameters of classifiers."""
