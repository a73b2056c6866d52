"""The parameters of the estimators put together: boosters, classifiers, random forests."""

from dataclasses import dataclass
from typing import Any

from sklboost.estimators.parameters.boosting import (
    BoostingParameters,
    ClassParameters,
    LossParameters,
)
from sklboost.estimators.parameters.features import FeatureParameters
from sklboost.estimators.parameters.rules import Rule, redeclared
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


def _only(value: Any, why: str = "a forest is one round") -> dict[str, Any]:
    """Default, rule and text of a parameter that can have one value only."""
    shown = '"gbtree"' if value == "gbtree" else repr(value)
    rule = Rule(shown, f"{value!r}: {why}", lambda given: given is value or given == value)
    return {"default": value, "rule": rule, "text": f"Must have its default: {why}."}


@dataclass(kw_only=True, eq=False, repr=False)
class ForestParameters(Parameters):
    """The parameters of random forests: other defaults, and nothing that needs several rounds."""

    n_estimators: int | None = redeclared(Parameters, "n_estimators", text="Number of trees.")
    learning_rate: float | None = redeclared(Parameters, "learning_rate", default=1.0)
    num_parallel_tree: int | None = redeclared(
        Parameters, "num_parallel_tree", **_only(1, "n_estimators is the number of trees")
    )
    booster: str | None = redeclared(Parameters, "booster", **_only("gbtree"))
    reg_lambda: float | None = redeclared(Parameters, "reg_lambda", default=1e-5)
    subsample: float | None = redeclared(Parameters, "subsample", default=0.8)
    colsample_bynode: float | None = redeclared(Parameters, "colsample_bynode", default=0.8)
    early_stopping_rounds: None = redeclared(Parameters, "early_stopping_rounds", **_only(None))
    callbacks: None = redeclared(Parameters, "callbacks", **_only(None))
    warm_start: bool = redeclared(Parameters, "warm_start", **_only(False))


@dataclass(kw_only=True, eq=False, repr=False)
class ForestClassifierParameters(ForestParameters, ClassifierParameters):
    """The parameters of random forests that classify."""
