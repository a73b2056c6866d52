"""XGBoost's models as estimators of ours: from files, boosters and its scikit-learn estimators."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from sklboost.estimators.files.foreign_models import make_estimator
from sklboost.estimators.files.meanings import meaning_of
from sklboost.estimators.parameters.forests import ForestParameters
from sklboost.estimators.parameters.groups import ClassifierParameters
from sklboost.estimators.predict.fitted_model import FittedModel
from sklboost.files.documents import parse_document, read_bytes
from sklboost.files.sections import Section
from sklboost.files.ubjson import write_ubjson
from sklboost.files.xgboost.reading import NOTHING_KNOWN, Known, read_model
from sklboost.files.xgboost.writing import learner_document

# Those that mean the same in both libraries, and only training reads, or nothing in the model says.
_PARAMETERS = (
    *("learning_rate", "reg_lambda", "reg_alpha", "gamma", "min_child_weight", "max_delta_step"),
    *("max_depth", "max_leaves", "max_bin", "grow_policy", "subsample", "sampling_method"),
    *("colsample_bytree", "colsample_bylevel", "colsample_bynode"),
    *("max_cat_to_onehot", "max_cat_threshold", "monotone_constraints", "interaction_constraints"),
    *("rate_drop", "skip_drop", "one_drop", "sample_type", "normalize_type"),
    *("scale_pos_weight", "importance_type", "early_stopping_rounds", "random_state"),
)


def estimator_of_xgboost(theirs: Any, kind_of: Callable[[str], type]) -> Any:
    """Return the estimator of a model of XGBoost's, in memory or in a file.

    `kind_of` gives the class of estimators of a name.
    """
    known, forest = NOTHING_KNOWN, ""
    booster = theirs
    if hasattr(theirs, "get_booster"):
        booster = theirs.get_booster()
        forest = "RF" if type(theirs).__name__.startswith("XGBRF") else ""
        known = _known_of(theirs)
    if hasattr(booster, "save_raw"):
        data, name = bytes(booster.save_raw("ubj")), type(theirs).__name__
        config = Section(json.loads(booster.save_config()), "configuration")
        known = known._replace(settings=[*known.settings, *_settings_of(config)])
    else:
        data, name = read_bytes(theirs, "XGBoost")
    return read_xgboost(
        Section(parse_document(data, name, is_whole=True), name),
        {
            False: kind_of(f"XGB{forest}RegressorLite"),
            True: kind_of(f"XGB{forest}ClassifierLite"),
        },
        known,
    )


def read_xgboost(
    document: Section, kinds: Mapping[bool, type], known: Known = NOTHING_KNOWN
) -> Any:
    """Return the estimator of a document of XGBoost's.

    `kinds` are the classes of regressors (False) and of classifiers (True).
    """
    if kinds[False] is kinds[True]:
        known = known._replace(is_classifier=issubclass(kinds[True], ClassifierParameters))
    trees, places, meaning = read_model(document, known)
    parameters = dict(meaning.parameters)
    if issubclass(kinds[meaning.task != "regression"], ForestParameters):
        # which have one round, and other rules for these
        parameters["n_estimators"] = parameters.pop("num_parallel_tree")
        for name in ("booster", "early_stopping_rounds"):
            parameters.pop(name, None)
    return make_estimator(kinds, trees, places, meaning._replace(parameters=parameters))


def _known_of(theirs: Any) -> Known:
    """Return what one of XGBoost's estimators says of its model."""
    given = {name: value for name, value in theirs.get_params().items() if value is not None}
    # as text XGBoost has constraints for its own parser
    parameters = {
        name: value
        for name in _PARAMETERS
        if (value := given.get(name)) is not None
        and not (isinstance(value, str) and name.endswith("_constraints"))
    }
    settings = []
    if {"learning_rate", "reg_lambda"} <= set(parameters):
        rate = parameters["learning_rate"] / given.get("num_parallel_tree", 1)
        settings.append((rate, parameters["reg_lambda"]))
    missing = given.get("missing", np.nan)
    return Known(
        is_classifier=is_classifier(theirs),
        missing=float(missing),
        settings=settings,
        parameters=parameters,
    )


def _settings_of(config: Section) -> list[tuple[float, float]]:
    """Return the learning rate of leaves, and lambda, of a booster's configuration."""
    booster = config["learner"]["gradient_booster"]
    if (within_dart := booster.get("gbtree")) is not None:
        booster = within_dart
    trained, shape = booster.get("tree_train_param"), booster.get("gbtree_model_param")
    if trained is None or shape is None:
        return []
    numbers = [trained["learning_rate"], trained["reg_lambda"], shape["num_parallel_tree"]]
    rate, reg_lambda, n_parallel = (float(number.text()) for number in numbers)
    rate, reg_lambda = (float(str(np.float32(number))) for number in (rate, reg_lambda))
    return [(rate / max(n_parallel, 1.0), reg_lambda)]


def booster_of(fitted: FittedModel) -> Any:
    """Return XGBoost's Booster of a fitted estimator of ours."""
    data = write_ubjson(learner_document(fitted.model, meaning_of(fitted)))
    try:
        import xgboost
    except ImportError as error:
        raise ImportError("to_xgboost needs XGBoost: pip install xgboost") from error
    booster = xgboost.Booster()
    booster.load_model(bytearray(data))
    return booster
