"""The parameters of rankers, with XGBoost's names and defaults."""

from dataclasses import dataclass

from sklboost.estimators.parameters.boosting import LambdaParameters
from sklboost.estimators.parameters.groups import Parameters


@dataclass(kw_only=True, eq=False, repr=False)
class RankerParameters(LambdaParameters, Parameters):
    """The parameters of rankers."""
