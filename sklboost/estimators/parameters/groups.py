"""The parameters put together: those of all estimators, and those of classifiers."""

from dataclasses import dataclass

from sklboost.estimators.parameters.boosting import BoostingParameters
from sklboost.estimators.parameters.classes import ClassParameters
from sklboost.estimators.parameters.features import FeatureParameters
from sklboost.estimators.parameters.inspection import InspectionParameters
from sklboost.estimators.parameters.losses import LossParameters
from sklboost.estimators.parameters.sampling import SamplingParameters
from sklboost.estimators.parameters.training import TrainingParameters
from sklboost.estimators.parameters.trees import TreeParameters


# of the bases the last comes first in the constructor
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
    """The parameters that all estimators have."""


@dataclass(kw_only=True, eq=False, repr=False)
class ClassifierParameters(ClassParameters, Parameters):
    """Those of classifiers."""
