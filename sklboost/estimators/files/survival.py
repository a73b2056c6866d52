"""What survival times mean, as a section of a model file."""

from typing import Any

import numpy as np

from sklboost.estimators.input.survival_kind import SurvivalTargets
from sklboost.estimators.input.target_kinds import Targets
from sklboost.files.sections import Section
from sklboost.files.trees import SCORES
from sklboost.files.values import check_keys, read_value, value_document

_NOT_NEGATIVE = (0.0, np.finfo(np.float64).max)


def survival_document(targets: Targets) -> dict[str, Any]:
    """Return the document of survival times: strata and baseline hazards."""
    assert isinstance(targets, SurvivalTargets)
    return {
        "kind": "survival",
        "strata": value_document(targets.strata),
        "times": targets.times,
        "hazards": targets.hazards.ravel(),
        "centres": targets.centres,
    }


def read_survival_targets(section: Section) -> SurvivalTargets:
    """Return what the survival times of a section mean."""
    strata = read_value(section["strata"])
    if not isinstance(strata, np.ndarray) or strata.ndim != 1:
        section["strata"].fail("must be an array of one dimension")
    check_keys(section["strata"], strata.tolist())
    if len(set(strata.tolist())) < len(strata):
        section["strata"].fail("a stratum occurs twice")
    times = section["times"].numbers(limits=_NOT_NEGATIVE)
    if len(times) == 0 or not (times[:-1] < times[1:]).all():
        section["times"].fail("must be sorted, each time once, and not empty")
    centres = section["centres"].numbers(limits=SCORES)
    if len(centres) not in (0, max(1, len(strata))):
        section["centres"].fail("must be empty, or have a number for each stratum")
    n_hazards = len(centres) * len(times)
    hazards = section["hazards"].numbers(n_hazards, limits=_NOT_NEGATIVE)
    hazards = hazards.reshape(len(centres), len(times))
    if not (hazards[:, :-1] <= hazards[:, 1:]).all():
        section["hazards"].fail("must not fall with time")
    return SurvivalTargets(strata, times, hazards, np.array(centres))
