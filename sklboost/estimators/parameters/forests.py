"""The parameters of random forests: those of boosters, some with other defaults and rules."""

from dataclasses import dataclass
from typing import Any

from sklboost.estimators.parameters.groups import (
    ClassifierParameters,
    Parameters,
    without_class_losses,
    without_regression_losses,
)
from sklboost.estimators.parameters.rules import Rule, redeclared, unused


def _only(value: Any, why: str = "a forest is one round") -> dict[str, Any]:
    """Default, rule and text of a parameter that can have one value only."""
    shown = '"gbtree"' if value == "gbtree" else repr(value)
    rule = Rule(shown, f"{value!r}: {why}", lambda given: given is value or given == value)
    return {"default": value, "rule": rule, "text": f"Must have its default: {why}."}


# Of what is between rounds, and of when to stop.
_OF_ROUNDS = (
    *("rate_drop", "skip_drop", "one_drop", "sample_type", "normalize_type"),
    *("validation_fraction", "refit"),
)


@dataclass(kw_only=True, eq=False, repr=False)
@without_class_losses
@unused(Parameters, "a forest is one round", *_OF_ROUNDS)
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
@without_regression_losses
class ForestClassifierParameters(ForestParameters, ClassifierParameters):
    """The parameters of random forests that classify."""

    focal_gamma: float = redeclared(Parameters, "focal_gamma")
