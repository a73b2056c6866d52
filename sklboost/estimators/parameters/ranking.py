"""The parameters of rankers, with XGBoost's names and defaults."""

from dataclasses import dataclass

from sklboost.estimators.parameters.boosting import LambdaParameters
from sklboost.estimators.parameters.groups import (
    Parameters,
    without_class_losses,
    without_regression_losses,
)
from sklboost.estimators.parameters.rules import Rule, redeclared


@dataclass(kw_only=True, eq=False, repr=False)
@without_class_losses
@without_regression_losses
class RankerParameters(LambdaParameters, Parameters):
    """The parameters of rankers."""

    objective: str | None = redeclared(
        Parameters,
        "objective",
        rule=Rule(
            "str",
            "None or a name: 'rank:ndcg', 'rank:map', 'rank:pairwise' or 'rank:xendcg'",
            lambda value: value is None or isinstance(value, str),
        ),
        text="""
        The loss, by XGBoost's name or LightGBM's. None, as "rank:ndcg": pairs of documents, weighed
        by what exchanging them changes in the NDCG. "rank:map": in the average precision.
        "rank:pairwise": all pairs alike. "rank:xendcg": the cross entropy of whole lists.
        """,
    )
