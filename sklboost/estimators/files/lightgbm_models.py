"""LightGBM's models as fitted estimators of ours."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sklboost.estimators.files.foreign_models import make_estimator
from sklboost.files.documents import read_bytes
from sklboost.files.errors import ModelFileError
from sklboost.files.lightgbm.reading import read_lightgbm


def estimator_of(theirs: Any, kinds: Mapping[bool, type]) -> Any:
    """Return the estimator of a Booster, an LGBMModel or a text model; `kinds` are its classes."""
    # known by their methods, so that lightgbm need not be installed
    booster = theirs.booster_ if hasattr(theirs, "booster_") else theirs
    if hasattr(booster, "model_to_string"):
        # the rounds that it predicts with: those up to the best one, if that is known
        data, name = booster.model_to_string().encode("utf-8"), f"the {type(theirs).__name__}"
    elif isinstance(theirs, str) and theirs.startswith("tree\n"):
        data, name = theirs.encode("utf-8"), "the text model"
    else:
        data, name = read_bytes(theirs, "LightGBM")
    trees, places, meaning = read_lightgbm(data, name)
    if meaning.classes is not None and hasattr(theirs, "classes_"):
        classes = np.asarray(theirs.classes_)
        if len(classes) != len(meaning.classes):
            raise ModelFileError(
                f"{name}: trained on {len(classes)} class(es), with {len(meaning.classes)} in its "
                "objective: its probabilities are not those of classes"
            )
        meaning = meaning._replace(classes=classes)
    taken = {}
    if booster is not theirs:
        taken = {"n_jobs": theirs.n_jobs, "random_state": theirs.random_state}
    best = getattr(booster, "best_iteration", 0)
    return make_estimator(
        kinds,
        trees,
        places,
        meaning._replace(
            parameters={**meaning.parameters, **taken},
            best_iteration=best - 1 if best > 0 else None,
        ),
    )
