"""The parameters of survival models: those of boosters, and of their losses."""

from dataclasses import dataclass

from sklboost.estimators.parameters.groups import Parameters
from sklboost.estimators.parameters.rules import Rule, one_of, parameter, redeclared


@dataclass(kw_only=True, eq=False, repr=False)
class SurvivalParameters(Parameters):
    """The parameters of survival models."""

    objective: str | None = redeclared(
        Parameters,
        "objective",
        rule=Rule(
            "str",
            "None or a name: 'survival:cox'",
            lambda value: value is None or isinstance(value, str),
        ),
        text="""
        The loss, by XGBoost's name. None, as "survival:cox": the partial likelihood of Cox's model
        of proportional hazards.
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
