"""The parameters of the estimators put together: of boosters, and of those that classify."""

from dataclasses import dataclass

from sklboost.estimators.parameters.boosting import (
    BoostingParameters,
    ClassParameters,
    LossParameters,
)
from sklboost.estimators.parameters.features import FeatureParameters
from sklboost.estimators.parameters.rules import unused
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


# Decorators of groups for tasks that have none of the losses of these parameters.
without_class_losses = unused(Parameters, "it is a parameter of classifiers", "focal_gamma")
without_regression_losses = unused(
    Parameters,
    "it is a parameter of regressors",
    *("quantile_alpha", "expectile_alpha", "huber_slope", "fair_c", "tweedie_variance_power"),
)


@dataclass(kw_only=True, eq=False, repr=False)
@without_class_losses
class RegressorParameters(Parameters):
    """The parameters of regressors."""


@dataclass(kw_only=True, eq=False, repr=False)
@without_regression_losses
class ClassifierParameters(ClassParameters, Parameters):
    """The parameters of classifiers."""
