"""Fitted estimators of ours with the trees of another library."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from sklboost.boosting.settings import STRATEGIES, tree_params
from sklboost.estimators.fit.fitting import fit_attributes
from sklboost.estimators.fit.reading import TREE_PARAMETERS
from sklboost.estimators.input.feature_names import FittedFeatures
from sklboost.estimators.input.queries import RankingTargets
from sklboost.estimators.input.survival_targets import SurvivalTargets
from sklboost.estimators.input.targets import ClassTargets, LabelTargets, RegressionTargets, Targets
from sklboost.estimators.parameters.boosters import (
    ClassifierParameters,
    Parameters,
    rounds_and_trees,
)
from sklboost.estimators.parameters.kinds import ForestParameters
from sklboost.estimators.parameters.rules import check_parameters, names_of
from sklboost.estimators.predict.fitted_model import FittedModel, TrainedModel
from sklboost.files.documents import parse_document, read_bytes, write_ubjson
from sklboost.files.foreign import ForeignTree, ModelInfo, build_model
from sklboost.files.lightgbm import read_lightgbm
from sklboost.files.sections import DocumentSection, ModelFileError
from sklboost.files.xgboost_reading import NOTHING_KNOWN, Known, read_model
from sklboost.files.xgboost_writing import learner_document
from sklboost.objectives.loss import RowLoss
from sklboost.objectives.registry import is_built_in


def model_info(fitted: FittedModel) -> ModelInfo:
    """Return what the features and raw scores of a fitted estimator mean.

    Parameters are read off the model: the estimator's may have changed since.
    """
    model, loss, targets = fitted.model, fitted.loss, fitted.targets
    settings = model.params_of(0)
    known: dict[str, Any] = {
        "learning_rate": settings.learning_rate * settings.num_parallel_tree,
        "reg_lambda": settings.reg_lambda,
        "reg_alpha": settings.reg_alpha,
        "num_parallel_tree": settings.num_parallel_tree,
        "multi_strategy": STRATEGIES[settings.multi_output],
        "booster": "dart" if fitted.n_dart_rounds > 0 else "gbtree",
    }
    known |= loss.made_of
    if isinstance(loss, RowLoss) and loss.parameter:
        known[loss.parameter] = loss.parameters[:: targets.size].tolist()
    return ModelInfo(
        task=targets.task,
        objective=loss.name if is_built_in(loss) else "",
        base_score=model.base_score + fitted.shift,
        n_targets=targets.size if targets.task == "regression" else 1,
        n_features=model.n_features,
        feature_names=None if fitted.features.names is None else fitted.feature_names,
        encodings=fitted.encodings,
        classes=targets.classes,
        missing=fitted.features.missing,
        parameters=known,
        best_iteration=fitted.state.get("best_iteration_"),
        chosen_by=loss.chosen_by,
    )


# Parameters on which predictions and their derivations depend.
_NEEDED = {
    *names_of(Parameters, "preset", "focal_gamma"),
    *("multi_strategy", "missing", "reg_lambda", "reg_alpha"),
}


_NAMES = {"regression": "Regressor", "ranking": "Ranker", "survival": "Survival"}


def make_estimator(
    kind_of: Callable[[str], type],
    trees: Sequence[ForeignTree],
    places: Sequence[str],
    info: ModelInfo,
    forest: str = "",
) -> Any:
    """Return a fitted estimator with trees of another library.

    `kind_of` gives the class of estimators of a name; `forest` is "RF" for one of a random forest.
    """
    name = f"XGB{forest}{_NAMES.get(info.task, 'Classifier')}Lite"
    kind: Any = kind_of(name)
    targets = _targets(info)
    if type(targets) not in kind._kind.kinds():
        raise TypeError(
            f"it is a model with objective={info.objective!r}, for {name}, not for "
            f"{kind.__name__}: "
            f"call sklboost.load_model, or {name}.load_model"
        )
    parameters = dict(info.parameters)
    if issubclass(kind, ForestParameters):  # which have one round
        parameters["n_estimators"] = parameters.pop("num_parallel_tree")
    given = {**parameters, "objective": info.objective, "missing": info.missing}
    estimator = kind(**_allowed(kind, given))
    settings = {name: getattr(estimator, name) for name in TREE_PARAMETERS}
    n_parallel_trees = rounds_and_trees(estimator, estimator._is_forest)[1]
    settings["learning_rate"] /= n_parallel_trees  # which share it
    params = tree_params(**settings, num_parallel_tree=n_parallel_trees)
    model = build_model(trees, places, info.base_score, info.n_features, params)
    names = info.feature_names
    trained = TrainedModel(
        model=model,
        features=FittedFeatures(
            estimator_name=kind.__name__,
            n_features=info.n_features,
            names=None if names is None else np.array(names, dtype=object),
            encodings=info.encodings,
            binning_digest=None,
            missing=info.missing,
        ),
        targets=targets,
        loss=targets.make_loss(estimator),
        shift=np.zeros(model.n_outputs),
        has_margin=False,
        n_dart_rounds=model.n_rounds if estimator.booster == "dart" else 0,
    )
    estimator._set_fitted(fit_attributes(trained, best_iteration=info.best_iteration))
    return estimator.set_params(n_estimators=estimator.n_estimators_)


def _allowed(kind: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters; those for training alone that our rules do not allow are left out."""
    allowed = {}
    for name, value in given.items():
        if name not in kind._get_param_names():
            continue
        try:
            check_parameters(kind, {name: value})
        except ValueError as error:
            if name in _NEEDED:
                raise ModelFileError(f"the parameters of the model: {error}") from None
        else:
            allowed[name] = value
    return allowed


def _targets(info: ModelInfo) -> Targets:
    if info.task == "regression":
        return RegressionTargets(info.n_targets)
    if info.task == "ranking":
        return RankingTargets()
    if info.task == "survival":  # XGBoost keeps neither the times nor the baseline hazards
        return SurvivalTargets(np.empty(0), np.empty(0))
    assert info.classes is not None
    if info.task == "multilabel":
        return LabelTargets(info.classes, np.dtype(np.int64))
    return ClassTargets(info.classes, np.ones(len(info.classes)), False)


def estimator_of_lightgbm(theirs: Any, kind_of: Callable[[str], type]) -> Any:
    """Return the estimator of a Booster, an LGBMModel or a text model of LightGBM's."""
    # known by their methods, so that lightgbm need not be installed
    booster = theirs.booster_ if hasattr(theirs, "booster_") else theirs
    if hasattr(booster, "model_to_string"):
        # the rounds that it predicts with: up to the best one, if that is known
        data, name = booster.model_to_string().encode("utf-8"), f"the {type(theirs).__name__}"
    elif isinstance(theirs, str) and theirs.startswith("tree\n"):
        data, name = theirs.encode("utf-8"), "the text model"
    else:
        data, name = read_bytes(theirs, "LightGBM")
    trees, places, info = read_lightgbm(data, name)
    if info.classes is not None and hasattr(theirs, "classes_"):
        classes = np.asarray(theirs.classes_)
        if len(classes) != len(info.classes):
            raise ModelFileError(
                f"{name}: trained on {len(classes)} class(es), with {len(info.classes)} in its "
                "objective: its probabilities do not belong to classes"
            )
        info = info._replace(classes=classes)
    taken = {}
    if booster is not theirs:
        taken = {"n_jobs": theirs.n_jobs, "random_state": theirs.random_state}
    best = getattr(booster, "best_iteration", 0)
    return make_estimator(
        kind_of,
        trees,
        places,
        info._replace(
            parameters={**info.parameters, **taken},
            best_iteration=best - 1 if best > 0 else None,
        ),
    )


# They mean the same in both libraries, and only training reads them, or nothing in the model says.
_PARAMETERS = (
    *("learning_rate", "reg_lambda", "reg_alpha", "gamma", "min_child_weight", "max_delta_step"),
    *("max_depth", "max_leaves", "max_bin", "grow_policy", "subsample", "sampling_method"),
    *("colsample_bytree", "colsample_bylevel", "colsample_bynode"),
    *("max_cat_to_onehot", "max_cat_threshold", "monotone_constraints", "interaction_constraints"),
    *("rate_drop", "skip_drop", "one_drop", "sample_type", "normalize_type"),
    *("scale_pos_weight", "importance_type", "early_stopping_rounds", "random_state"),
    *("lambdarank_pair_method", "lambdarank_num_pair_per_sample", "lambdarank_normalization"),
    *("lambdarank_score_normalization", "lambdarank_unbiased", "lambdarank_bias_norm"),
    "ndcg_exp_gain",
)


def estimator_of_xgboost(theirs: Any, kind_of: Callable[[str], type]) -> Any:
    """Return the estimator of a model of XGBoost's, in memory or in a file."""
    known, forest = NOTHING_KNOWN, ""
    booster = theirs
    if hasattr(theirs, "get_booster"):
        booster = theirs.get_booster()
        forest = "RF" if type(theirs).__name__.startswith("XGBRF") else ""
        known = _known_of(theirs)
    if hasattr(booster, "save_raw"):
        data, name = bytes(booster.save_raw("ubj")), type(theirs).__name__
        config = DocumentSection(json.loads(booster.save_config()), "configuration")
        known = known._replace(settings=[*known.settings, *_settings_of(config)])
    else:
        data, name = read_bytes(theirs, "XGBoost")
    document = DocumentSection(parse_document(data, name, is_whole=True), name)
    return read_xgboost(document, kind_of, known, forest)


def read_xgboost(
    document: DocumentSection,
    kind_of: Callable[[str], type],
    known: Known = NOTHING_KNOWN,
    forest: str = "",
) -> Any:
    """Return the estimator of a document of XGBoost's; arguments as of :func:`make_estimator`."""
    kind = kind_of("XGBRegressorLite")
    if kind is kind_of("XGBClassifierLite"):  # the caller knows it
        known = known._replace(is_classifier=issubclass(kind, ClassifierParameters))
    return make_estimator(kind_of, *read_model(document, known), forest)


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


def _settings_of(config: DocumentSection) -> list[tuple[float, float]]:
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


def xgboost_document(fitted: FittedModel) -> dict[str, Any]:
    """Return what XGBoost reads of a fitted estimator of ours; NotExpressibleError if it cannot."""
    return learner_document(fitted.model, model_info(fitted))


def booster_of(fitted: FittedModel) -> Any:
    """Return XGBoost's Booster of a fitted estimator of ours."""
    data = write_ubjson(xgboost_document(fitted))
    try:
        import xgboost
    except ImportError as error:
        raise ImportError("to_xgboost needs XGBoost: pip install xgboost") from error
    booster = xgboost.Booster()
    booster.load_model(bytearray(data))
    return booster
