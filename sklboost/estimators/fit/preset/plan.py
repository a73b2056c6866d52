"""What the preset "auto" starts from, and the stages of candidates that it compares.

A stage tries values of a parameter on top of the best settings so far. Every choice has a reason
that holds for any data; ``benchmarks/accuracy.py`` measures what it is worth.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sklboost.estimators.fit.reading import FitRequest, FitTask

# They decide on the size of trees, too.
_LEAVES = ("max_leaves", "grow_policy")


class Choice(NamedTuple):
    """The value of a parameter, and why it was chosen."""

    value: Any
    why: str


def values_of(chosen: Mapping[str, Choice]) -> dict[str, Any]:
    """Return the values alone."""
    return {name: choice.value for name, choice in chosen.items()}


class Stage(NamedTuple):
    """Values of a parameter that are compared."""

    parameter: str
    values: Sequence[Any]  # the stages before are gone through with the first one
    why: str
    # parameters that decide on the same: if one of them is set, there is no such stage
    rivals: tuple[str, ...] = ()


class Plan(NamedTuple):
    """What is chosen without trials, and what by trials, in this order."""

    start: Mapping[str, Choice]
    stages: Sequence[Stage]


_SEED = Choice(0, "the same data give the same model")
_FOREST = Plan(
    start={
        "n_estimators": Choice(300, "more trees are never worse, and from here on hardly better"),
        "subsample": Choice(0.632, "so many different rows are in a bootstrap sample"),
        "random_state": _SEED,
    },
    stages=[
        Stage("max_depth", (12, 6, 20), "deep trees vary more, but their mean less", _LEAVES),
        Stage("colsample_bynode", (0.8, 0.33), "fewer features may make trees more different"),
    ],
)


def plan_for(request: FitRequest, data: FitTask) -> Plan:
    """Return the plan for boosting on such data, or for a forest."""
    if request.is_forest:
        return _FOREST
    start = {
        "subsample": Choice(0.7, "trees of different rows vary, and their sum varies less"),
        "random_state": _SEED,
    }
    # the cover of rows that are predicted well may be far below their number
    covers = [1.0, 8.0] if data.loss.hessian_is_one else [1.0, 0.1, 8.0]
    weight = data.rows.weight
    unit = float(weight.mean()) if len(weight) > 0 else 1.0
    if unit != 1.0:
        covers = [unit * cover for cover in covers]
        start["reg_lambda"] = Choice(unit, "the mean weight of a row")
    stages = [
        Stage("extra_trees", (False, True), "random thresholds may follow the noise less"),
        Stage("max_depth", (6, 4, 8), "a tree of depth d can join d features", _LEAVES),
        Stage("min_child_weight", covers, "leaves of little cover may follow single rows"),
        Stage("colsample_bylevel", (0.9, 0.4), "fewer features may make trees more different"),
    ]
    return Plan(start, stages)
