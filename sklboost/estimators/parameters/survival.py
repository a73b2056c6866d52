"""The parameters of survival models: those of boosters, and of their losses."""

from collections.abc import Sequence
from dataclasses import dataclass

from sklboost.estimators.parameters.groups import (
    Parameters,
    without_class_losses,
    without_regression_losses,
)
from sklboost.estimators.parameters.rules import Rule, number, one_of, parameter, redeclared


@dataclass(kw_only=True, eq=False, repr=False)
@without_class_losses
@without_regression_losses
class SurvivalParameters(Parameters):
    """The parameters of survival models."""

    objective: str | None = redeclared(
        Parameters,
        "objective",
        rule=Rule(
            "str",
            "None, 'survival:cox' or 'survival:aft'",
            lambda value: value is None or isinstance(value, str),
        ),
        text="""
        The loss, by XGBoost's name. None, as "survival:cox": the partial likelihood of Cox's model
        of proportional hazards. "survival:aft": the likelihood of accelerated failure times, for
        which times may be known by lower and upper bounds only.
        """,
    )
    base_score: float | Sequence[float] | None = redeclared(
        Parameters,
        "base_score",
        text="""
        Prediction before the first tree. None: the best constant. For "survival:aft" a time, as in
        XGBoost; for "survival:cox" a risk score, which all predictions are shifted by.
        """,
    )
    ties: str = parameter(
        "breslow",
        one_of("breslow", "efron"),
        """
        For "survival:cox": how events at one time share the rows at risk. "efron" is nearer to the
        truth where there are many; with "breslow", as in scikit-survival, sample weight 2 is
        equivalent to the row twice also for those.
        """,
    )
    aft_loss_distribution: str = parameter(
        "normal",
        one_of("normal", "logistic", "extreme"),
        """
        For "survival:aft": the distribution of the logarithms of times around their locations.
        """,
    )
    aft_loss_distribution_scale: float = parameter(
        1.0,
        number(0, excluded=True),
        'For "survival:aft": the scale of this distribution.',
    )
