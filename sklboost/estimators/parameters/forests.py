"""The parameters of random forests: other defaults, and what does not apply to a single round."""

from dataclasses import dataclass
from typing import Any

from sklboost.estimators.parameters.about import redeclared
from sklboost.estimators.parameters.groups import ClassifierParameters, Parameters
from sklboost.estimators.parameters.rules import Rule


def _only(value: Any, why: str = "a forest is one round") -> dict[str, Any]:
    """Give default, rule and text of a parameter that can have one value only."""
    shown = '"gbtree"' if value == "gbtree" else repr(value)
    rule = Rule(shown, f"{value!r}: {why}", lambda given: given is value or given == value)
    return {"default": value, "rule": rule, "text": f"Nothing else: {why}."}


@dataclass(kw_only=True, eq=False, repr=False)
class ForestParameters(Parameters):
    """Those of all forests."""

    n_estimators: int = redeclared(Parameters, "n_estimators", text="Number of trees.")
    learning_rate: float = redeclared(Parameters, "learning_rate", default=1.0)
    num_parallel_tree: int = redeclared(
        Parameters, "num_parallel_tree", **_only(1, "n_estimators is the number of trees")
    )
    booster: str = redeclared(Parameters, "booster", **_only("gbtree"))
    reg_lambda: float = redeclared(Parameters, "reg_lambda", default=1e-5)
    subsample: float = redeclared(
        Parameters,
        "subsample",
        default=0.8,
        text="""
        Part of the rows that a tree is grown from, drawn anew for each tree: greater than 0, at
        most 1. Each row is drawn or not by itself, so the number varies a little. Weight 2 is the
        row twice here, too, if the weights are whole and their sum is at most 4,096; else a row is
        drawn whole, whatever its weight.
        """,
    )
    colsample_bynode: float = redeclared(Parameters, "colsample_bynode", default=0.8)
    early_stopping_rounds: None = redeclared(Parameters, "early_stopping_rounds", **_only(None))
    callbacks: None = redeclared(Parameters, "callbacks", **_only(None))
    warm_start: bool = redeclared(Parameters, "warm_start", **_only(False))


@dataclass(kw_only=True, eq=False, repr=False)
class ForestClassifierParameters(ForestParameters, ClassifierParameters):
    """Those of forests that classify."""
