"""Libraries at their defaults, and variants of the preset "auto": what was tried on the way to it.

A variant that parameters do not give puts something else in the place of a part of the preset.
"""

import contextlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from sklboost.estimators.fit import preset as auto
from sklboost.estimators.fit import preset as plan

OURS, PRESET = "sklboost", "sklboost, preset"
PEERS = ("xgboost", "lightgbm", "hist_gb", "catboost")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Variant(NamedTuple):
    """A library and what differs from its defaults."""

    library: str
    parameters: Mapping[str, Any] = _NOTHING
    of_regression: Mapping[str, Any] = _NOTHING  # parameters that only one kind of task has
    of_classes: Mapping[str, Any] = _NOTHING
    replaced: Mapping[str, Any] = _NOTHING  # names in the module `auto` and what they stand for

    def parameters_for(self, task):
        """Return the parameters of a regression, or of a binary or multiclass task."""
        of_task = self.of_regression if task == "regression" else self.of_classes
        return {**self.parameters, **of_task}

    def in_place(self):
        """Return a context in which the preset is that of the variant."""
        if not self.replaced:
            return contextlib.nullcontext()
        return mock.patch.multiple(auto, **self.replaced)


def _preset(parameters=_NOTHING, **replaced):
    return Variant(OURS, {"preset": "auto", **parameters}, replaced=replaced)


def _first_stages(n_stages):
    """Return a plan of which only the first stages compare values; others take their first."""

    def plan_for(task):
        full = plan.plan_for(task)
        rest = [stage._replace(values=stage.values[:1]) for stage in full.stages[n_stages:]]
        return full._replace(stages=[*full.stages[:n_stages], *rest])

    return plan_for


def _more_values(parameter, *values):
    """Return the plan with more values of one parameter."""

    def extended(stage):
        more = values if stage.parameter == parameter else ()
        return stage._replace(values=(*stage.values, *more))

    def plan_for(task):
        full = plan.plan_for(task)
        return full._replace(stages=[extended(stage) for stage in full.stages])

    return plan_for


def _steps(finer):
    """Return how much smaller than in the trials steps are, whatever the size of the data."""
    return ((np.inf, finer),)


LIBRARIES = {
    "xgboost": Variant("xgboost"),
    "lightgbm": Variant("lightgbm", {"verbosity": -1}),
    "hist_gb": Variant("hist_gb"),
    "catboost": Variant("catboost", {"allow_writing_files": False, "logging_level": "Silent"}),
    OURS: Variant(OURS),
    PRESET: _preset(),
}
TRIED = {
    "rounds": _preset(plan_for=_first_stages(0)),
    "rounds, thresholds": _preset(plan_for=_first_stages(1)),
    "rounds, thresholds, depth": _preset(plan_for=_first_stages(2)),
    "rounds, thresholds, depth, cover": _preset(plan_for=_first_stages(3)),
    PRESET: _preset(),
    "steps as large as those of the trials": _preset(_FINER_STEPS=_steps(1)),
    "steps half as large": _preset(_FINER_STEPS=_steps(2)),
    "steps an eighth as large": _preset(_FINER_STEPS=_steps(8)),
    "four trees a round, large steps": _preset(  # in the trials one, so that they cost the same
        {"num_parallel_tree": 4},
        _FINER_STEPS=_steps(1),
        _OF_TRIALS={**auto._OF_TRIALS, "num_parallel_tree": 1},
    ),
    "also depths 2 and 10": _preset(plan_for=_more_values("max_depth", 2, 10)),
    # Holzmüller et al. 2024, "Better by default", tuned on 118 data sets
    "the settings of Holzmüller et al.": Variant(
        OURS,
        dict(n_estimators=1000, reg_lambda=0.0, early_stopping_rounds=100, refit=True),
        dict(learning_rate=0.05, max_depth=9, min_child_weight=2.0, subsample=0.7),
        dict(
            learning_rate=0.08,
            max_depth=6,
            min_child_weight=5e-6,
            subsample=0.65,
            colsample_bylevel=0.9,
        ),
    ),
}
