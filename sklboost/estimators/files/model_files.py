"""Model files: an estimator of ours as a document, and the same for XGBoost if it can express it.

The document is the section ``sklboost`` of the file.
"""

import dataclasses
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from sklboost.engine.model import Model
from sklboost.estimators.fit.fitting import ChosenParams, FitReport, fit_attributes
from sklboost.estimators.fit.reading import drops_rounds
from sklboost.estimators.input.feature_names import FittedFeatures
from sklboost.estimators.input.survival_targets import SurvivalTargets
from sklboost.estimators.input.targets import (
    ClassTargets,
    DistributionTargets,
    LabelTargets,
    RegressionTargets,
    Targets,
)
from sklboost.estimators.input.user_warnings import warn_user
from sklboost.estimators.parameters.boosters import Parameters
from sklboost.estimators.parameters.rules import as_read, check_parameters, check_value, one_of
from sklboost.estimators.predict.fitted_model import FittedModel, TrainedModel, trained_model
from sklboost.files.documents import (
    OUR_KEY,
    file_type,
    join_document,
    parse_document,
    read_bytes,
    read_ubjson,
    write_bytes,
    write_ubjson,
)
from sklboost.files.sections import DocumentSection, NotExpressibleError, plain_number
from sklboost.files.stored_trees import SCORES, read_trees, trees_document
from sklboost.files.values import (
    NotStorableError,
    check_keys,
    encoding_document,
    read_dtype,
    read_encoding,
    read_value,
    read_vector,
    value_document,
)
from sklboost.objectives.custom import (
    LINKS_OF_TASKS,
    FunctionLoss,
    StoredLoss,
    StoredScores,
    check_loss_fits,
)
from sklboost.objectives.loss import Loss, RowLoss
from sklboost.objectives.registry import DISTRIBUTIONS, OBJECTIVES, is_built_in, make_loss
from sklboost.tree.predict.assembly import assemble_model
from sklboost.tree.predict.trees import trees_of
from sklboost.version import __version__

# Raised by one when an older version of the package could not read a file, or would misread it.
FORMAT_VERSION = 1
# The classes that files name.
KINDS = (
    *("XGBRegressorLite", "XGBClassifierLite", "XGBRFRegressorLite", "XGBRFClassifierLite"),
    *("XGBDistributionLite", "XGBRankerLite", "XGBSurvivalLite"),
)
_VERSIONS = {"format_version": FORMAT_VERSION, "package_version": __version__}
# A small file may say that there are so many, and what shows them makes a name for each.
_MOST_FEATURES = 2**20
_MOST = 2**53  # counts, which JSON readers of other languages hold as floats


def kind_of(estimator_class: type) -> str:
    """Return the class of this package that an estimator is of, or inherits from first."""
    return next(kind.__name__ for kind in estimator_class.__mro__ if kind.__name__ in KINDS)


def estimator_document(
    kind: type, parameters: Mapping[str, Any], attributes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the document of a fitted estimator of a class.

    Parameters that hold what no file can, code above all, are left out: predictions follow from the
    attributes of the fit alone. ValueError if a parameter breaks its rule.
    """
    _check_parameters(kind, parameters)
    stored = {}
    for name, value in parameters.items():
        with suppress(NotStorableError):
            stored[name] = value_document(value)
    fit = fit_document(attributes)
    return {**_VERSIONS, "estimator": kind_of(kind), "parameters": stored, **fit}


def fit_document(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of the attributes of a fit; ValueError for what no file can hold."""
    trained = trained_model(state)
    return {
        **_VERSIONS,
        "features": _features_document(trained.features),
        "targets": targets_document(trained.targets),
        "loss": loss_document(trained.loss, trained.targets),
        "model": {
            "base_score": trained.model.base_score,
            "shift": trained.shift,
            "has_margin": trained.has_margin,
            "n_dart_rounds": trained.n_dart_rounds,
            "trees": trees_document(trees_of(trained.model)),
        },
        "training": _training_document(state),
    }


def _check_parameters(kind: type, parameters: Mapping[str, Any]) -> None:
    """Check parameters as fits read them: None may stand for a default, text for constraints."""
    read = {name: as_read(kind, name, value) for name, value in parameters.items()}
    check_parameters(kind, read)


def _features_document(features: FittedFeatures) -> dict[str, Any]:
    names, encodings = features.names, features.encodings
    if features.n_features > _MOST_FEATURES:
        raise NotStorableError(
            f"the model has {features.n_features:,} features, and a file {_MOST_FEATURES:,} at "
            "most; keep the model with pickle"
        )
    return {
        "n_features": features.n_features,
        "names": None if names is None else [value_document(name) for name in names.tolist()],
        "encodings": None if encodings is None else _encodings(features),
        "binning_digest": features.binning_digest,
        "missing": plain_number(float(features.missing)),
    }


def _encodings(features: FittedFeatures) -> list[dict[str, Any]]:
    documents = []
    for name, encoding in zip(features.listed_names, features.encodings or (), strict=True):
        try:
            documents.append(encoding_document(encoding))
        except NotStorableError as error:
            raise NotStorableError(
                f"categories of the feature {name!r}: {error}; turn them into text, or keep the "
                "model with pickle"
            ) from None
    return documents


def _training_document(state: Mapping[str, Any]) -> dict[str, Any]:
    report, before_refit = state.get("fit_report_"), state.get("_before_refit")
    chosen = state.get("chosen_params_")
    document = {
        "metrics": {
            name: {metric: np.array(values) for metric, values in of_set.items()}
            for name, of_set in state["evals_result_"].items()
        },
        "first_round": state["_first_round"],
        "split_seed": value_document(state.get("_split_seed")),
        "before_refit": None,
        "stop_reason": state.get("stop_reason_"),
        "best_iteration": value_document(state.get("best_iteration_")),
        "best_score": value_document(state.get("best_score_")),
        "report": None,
    }
    if report is not None:
        document["report"] = dataclasses.asdict(report)
        if traffic := document["report"].pop("traffic"):
            document["report"]["traffic"] = {phase: [*counts] for phase, counts in traffic.items()}
    if chosen is not None:
        document["chosen_params"] = [
            {"name": name, "value": value_document(value), "reason": chosen.reasons[name]}
            for name, value in chosen.items()
        ]
    if before_refit is not None:
        document["before_refit"] = {
            "base_score": before_refit.base_score,
            "trees": trees_document(trees_of(before_refit)),
        }
    return document


# --- from documents


def read_kind(section: DocumentSection) -> str:
    """Return the name of the estimator's class, if this version of the package can read it."""
    _check_version(section)
    return section["estimator"].text(KINDS)


def _check_version(section: DocumentSection) -> None:
    version = section["format_version"].integer(1, _MOST)
    if version > FORMAT_VERSION:
        section.fail(
            f"the file has format version {version}, and sklboost {__version__} reads files up to "
            f"{FORMAT_VERSION}: install a newer sklboost"
        )


def read_estimator(section: DocumentSection, estimator_class: Any, source: str) -> Any:
    """Return the fitted estimator of a section, of one of our classes or one that inherits from it.

    `source` is the name of the file.
    """
    name = read_kind(section)
    if name != kind_of(estimator_class):
        raise TypeError(
            f"{source} holds a fitted {name}, no {estimator_class.__name__}: call "
            f"sklboost.load_model, or {name}.load_model"
        )
    estimator = estimator_class(**_read_parameters(section["parameters"], estimator_class))
    attributes = read_fit(section, estimator_class.__name__)
    trained = attributes["_trained"]
    if section["model"].get("n_dart_rounds") is None and drops_rounds(estimator):
        trained.n_dart_rounds = trained.model.n_rounds  # not in earlier files
    if type(trained.targets) not in estimator_class._kind.kinds():
        section["targets"].fail(f"are none of {name}")
    estimator._set_fitted(attributes)
    return estimator


def read_fit(section: DocumentSection, estimator_name: str, own_loss: Any = None) -> dict[str, Any]:
    """Return the attributes of the fit of a section, as :func:`fit_document` writes them.

    `own_loss` is the user's `objective`, if there is one; the section has only its link.
    """
    _check_version(section)
    return _read_training(section["training"], _read_trained(section, estimator_name, own_loss))


def _read_parameters(section: DocumentSection, kind: Any) -> dict[str, Any]:
    # an earlier version took some that have no effect, and wrote them
    without_effect = {own.name for own in dataclasses.fields(kind) if not own.init}
    given = {name: value for name, value in section.items() if name not in without_effect}
    unknown = sorted(set(given) - set(kind._get_param_names()))
    if unknown:
        section.fail(
            f"{kind.__name__} has no parameters {unknown}; is the file of a newer version?"
        )
    values = {name: read_value(value) for name, value in given.items()}
    try:
        _check_parameters(kind, values)
    except (ValueError, TypeError) as error:
        section.fail(str(error))
    return values


def _read_trained(section: DocumentSection, estimator_name: str, own_loss: Any) -> TrainedModel:
    features = _read_features(section["features"], estimator_name)
    # whatever is said elsewhere, no more is allocated than there are numbers here
    n_outputs = len(section["model"]["base_score"])
    if n_outputs == 0:
        section["model"]["base_score"].fail("must have a number for each output")
    targets = read_targets(section["targets"], n_outputs)
    if own_loss is None:
        loss = read_loss(section["loss"], targets, n_outputs)
    elif isinstance(own_loss, str):
        section.fail(f"the loss is {own_loss!r}, and not one of the user's")
    else:
        loss = make_loss(own_loss, targets.task, targets.size, {})
        if loss.n_outputs != n_outputs:
            section.fail(f"the user's loss has {loss.n_outputs} outputs, the file {n_outputs}")
    model = _read_model(section["model"], features, n_outputs)
    n_dart = section["model"].get("n_dart_rounds")
    return TrainedModel(
        model=model,
        features=features,
        targets=targets,
        loss=loss,
        shift=section["model"]["shift"].numbers(n_outputs, limits=SCORES),
        has_margin=section["model"]["has_margin"].flag(),
        n_dart_rounds=0 if n_dart is None else n_dart.integer(0, _MOST),
    )


def _read_features(section: DocumentSection, estimator_name: str) -> FittedFeatures:
    n_features = section["n_features"].integer(1, _MOST_FEATURES)
    names, encodings = section["names"], section["encodings"]
    digest = section["binning_digest"]
    for listed in (names, encodings):
        if not listed.is_null and len(listed) != n_features:
            listed.fail(f"must have {n_features} elements, and has {len(listed)}")
    read_names = None
    if not names.is_null:
        values = [read_value(name) for name in names]
        check_keys(names, values)
        read_names = np.fromiter(values, dtype=object, count=len(values))
    return FittedFeatures(
        estimator_name=estimator_name,
        n_features=n_features,
        names=read_names,
        encodings=None if encodings.is_null else tuple(map(read_encoding, encodings)),
        binning_digest=None if digest.is_null else digest.text(),
        missing=section["missing"].number(),
    )


def _read_model(section: DocumentSection, features: FittedFeatures, n_outputs: int) -> Model:
    encodings = features.encodings
    n_categories = (
        # without memory: a few bytes of a file may say that there are very many features
        np.broadcast_to(np.int64(0), features.n_features)
        if encodings is None
        else np.array([encoding.n_categories for encoding in encodings])
    )
    trees = read_trees(section["trees"], n_categories, n_outputs)
    base_score = section["base_score"].numbers(n_outputs, limits=SCORES)
    return assemble_model(trees, np.array(base_score), features.n_features)


def _read_training(section: DocumentSection, trained: TrainedModel) -> dict[str, Any]:
    before_refit, report = section["before_refit"], section["report"]
    chosen = None
    if (choices := section.get("chosen_params")) is not None:
        chosen = ChosenParams(
            {choice["name"].text(): read_value(choice["value"]) for choice in choices},
            {choice["name"].text(): choice["reason"].text() for choice in choices},
        )
    model_before = None
    if not before_refit.is_null:
        model_before = _read_model(before_refit, trained.features, trained.model.n_outputs)
    return fit_attributes(
        trained,
        evals_result={
            name: {
                metric: values.numbers(finite=False).tolist() for metric, values in of_set.items()
            }
            for name, of_set in section["metrics"].items()
        },
        first_round=section["first_round"].integer(0, _MOST),
        split_seed=_read_count(section["split_seed"]),
        before_refit=model_before,
        stop_reason=_read_optional(section["stop_reason"], str),
        best_iteration=_read_count(section["best_iteration"]),
        best_score=_read_optional(section["best_score"], float),
        report=None if report.is_null else _read_report(report),
        chosen=chosen,
    )


def _read_count(section: DocumentSection) -> int | None:
    return None if section.is_null else section.integer(0, _MOST)


def _read_optional(section: DocumentSection, kind: type) -> Any:
    value = read_value(section)
    if value is not None and type(value) is not kind:
        section.fail(f"must be a value of type {kind.__name__}, or null")
    return value


def _read_report(section: DocumentSection) -> FitReport:
    traffic = section.get("traffic")
    sent = {} if traffic is None else dict(traffic.items())
    counts = {
        field.name: section[field.name].integer(0, _MOST)
        for field in dataclasses.fields(FitReport)
        if field.type is int
    }
    return FitReport(
        seconds={phase: spent.finite_number() for phase, spent in section["seconds"].items()},
        constant_features=[name.text() for name in section["constant_features"]],
        traffic={phase: tuple(of.integers(0, _MOST, 2).tolist()) for phase, of in sent.items()},
        **counts,
    )


# --- targets

_NOT_NEGATIVE = (0.0, np.finfo(np.float64).max)
_POSITIVE = (np.nextafter(0.0, 1.0), np.finfo(np.float64).max)


def targets_document(targets: Targets) -> dict[str, Any]:
    """Return the document of what targets mean."""
    if isinstance(targets, DistributionTargets):
        spread = plain_number(targets.spread)
        return {"kind": "distribution", "distribution": targets.distribution, "spread": spread}
    if isinstance(targets, RegressionTargets):
        return {"kind": "numbers", "n_targets": targets.size}
    if isinstance(targets, LabelTargets):
        return {"kind": "labels", "n_labels": targets.size, "dtype": targets.dtype.str}
    if targets.task == "ranking":
        return {"kind": "relevances"}
    if isinstance(targets, ClassTargets):
        return {
            "kind": "classes",
            "classes": value_document(targets.classes),
            "multipliers": targets.multipliers,
            "is_calibrated": targets.is_calibrated,
        }
    assert isinstance(targets, SurvivalTargets)
    return {
        "kind": "survival",
        "strata": value_document(targets.strata),
        "times": targets.times,
        "hazards": targets.hazards.ravel(),
        "centres": targets.centres,
    }


def read_targets(section: DocumentSection, n_outputs: int) -> Targets:
    """Return what the targets of a section mean; there are `n_outputs` raw scores per row."""
    kinds = ("numbers", "classes", "labels", "distribution", "relevances", "survival")
    kind = section["kind"].text(kinds)
    if kind == "relevances":
        from sklboost.estimators.input.queries import RankingTargets  # other models do without

        return RankingTargets()
    if kind == "distribution":
        spread = section["spread"].finite_number()
        if spread <= 0.0:
            section["spread"].fail("must be above 0")
        return DistributionTargets(1, section["distribution"].text(DISTRIBUTIONS), spread)
    if kind == "survival":
        return _read_survival_targets(section)
    if kind == "numbers":
        return RegressionTargets(section["n_targets"].integer(1, n_outputs))
    if kind == "labels":
        dtype = read_dtype(section["dtype"])
        if dtype.kind not in "biuf":
            section["dtype"].fail("labels are numbers")
        return LabelTargets(np.arange(section["n_labels"].integer(1, n_outputs)), dtype)
    return _read_classes(section)


def _read_classes(section: DocumentSection) -> ClassTargets:
    classes = read_vector(section["classes"])
    if len(classes) == 0:
        section["classes"].fail("must be an array of one dimension that is not empty")
    check_keys(section["classes"], classes.tolist())
    try:
        is_increasing = bool((classes[:-1] < classes[1:]).all())
    except (TypeError, ValueError):  # such as text and numbers
        is_increasing = False
    if not is_increasing:
        section["classes"].fail("must be sorted, each class once")
    multipliers = section["multipliers"].numbers(len(classes), limits=_POSITIVE)
    return ClassTargets(classes, multipliers, section["is_calibrated"].flag())


def _read_survival_targets(section: DocumentSection) -> SurvivalTargets:
    """Return what the survival times of a section mean."""
    strata = read_vector(section["strata"])
    check_keys(section["strata"], strata.tolist())
    if len(set(strata.tolist())) < len(strata):
        section["strata"].fail("a stratum occurs twice")
    times = section["times"].numbers(limits=_NOT_NEGATIVE)
    if not (times[:-1] < times[1:]).all():
        section["times"].fail("must be sorted, each time once")
    centres = section["centres"].numbers(limits=SCORES)
    if len(centres) not in (0, max(1, len(strata))):
        section["centres"].fail("must be empty, or have a number for each stratum")
    n_hazards = len(centres) * len(times)
    hazards = section["hazards"].numbers(n_hazards, limits=_NOT_NEGATIVE)
    hazards = hazards.reshape(len(centres), len(times))
    if not (hazards[:, :-1] <= hazards[:, 1:]).all():
        section["hazards"].fail("must not fall with time")
    return SurvivalTargets(strata, times, hazards, np.array(centres))


# --- losses


def loss_document(loss: Loss, targets: Targets) -> dict[str, Any]:
    """Return the document of a loss; of one that a user has written, what its raw scores are."""
    if not is_built_in(loss):
        return {
            "objective": loss.name,
            "parameters": {},
            "own": {
                "link": loss.link,
                "numbers": np.array(loss.parameters, dtype=np.float64).ravel(),
                "output_names": list(loss.output_names),
            },
        }
    name = loss.parameter if isinstance(loss, RowLoss) else ""
    # each target has the same values, and all targets are side by side
    parameters = {name: loss.parameters[:: targets.size].tolist()} if name else {**loss.made_of}
    return {"objective": loss.name, "parameters": parameters}


def read_loss(section: DocumentSection, targets: Targets, n_outputs: int) -> Loss:
    """Return the loss of a section; there are `n_outputs` raw scores per row."""
    name, given = section["objective"].text(), section["parameters"]
    if (own := section.get("own")) is not None:
        return _read_own_loss(own, name, targets, n_outputs)
    parameters = {key: read_value(value) for key, value in given.items()}
    lists = {
        key: given[key].numbers().tolist()
        for key, value in parameters.items()
        if not isinstance(value, str)
    }
    for key, values in lists.items():
        if not values:
            given[key].fail("must have a number, and has none")
    parameters |= lists
    most = max([1, *map(len, lists.values())])
    if most * targets.size > n_outputs:
        given.fail(f"{most} values for each of {targets.size} targets are not {n_outputs} outputs")
    group: type = Parameters
    if targets.task == "survival":
        from sklboost.estimators.parameters.kinds import SurvivalParameters

        group = SurvivalParameters
    try:
        for key, values in parameters.items():
            for value in [values] if isinstance(values, str) else values:
                check_parameters(group, {key: value})
    except ValueError as error:
        given.fail(str(error))
    loss = _make(name, targets, parameters)
    known = [loss.parameter] if isinstance(loss, RowLoss) and loss.parameter else []
    if loss is None or sorted(parameters) != sorted([*known, *loss.made_of]):
        section.fail(f"there is no objective {name!r} with {sorted(parameters)} for these targets")
    if loss.n_outputs != n_outputs:
        section.fail(f"{name!r} has {loss.n_outputs} raw scores per row, the file {n_outputs}")
    return loss


def _read_own_loss(section: DocumentSection, name: str, targets: Targets, n_outputs: int) -> Loss:
    """Return what a section says of a loss that the user wrote."""
    if isinstance(targets, DistributionTargets) or targets.task not in LINKS_OF_TASKS:
        section.fail("for these targets there are no losses of the user's")
    names = [output.text() for output in section["output_names"]]
    if len(names) not in (0, n_outputs):
        section["output_names"].fail(f"must have {n_outputs} elements, and has {len(names)}")
    link = section["link"].text((*LINKS_OF_TASKS[targets.task], "other"))
    kind = StoredScores if link == "other" else StoredLoss
    loss = kind(name, link, n_outputs, section["numbers"].numbers(), tuple(names))
    try:
        check_loss_fits(loss, targets.task, targets.size)
    except ValueError as error:
        section.fail(str(error))
    return loss


def _make(name: str, targets: Targets, parameters: Mapping[str, Any]) -> Loss | None:
    """Return the loss of this very name; None if there is none, or its parameters are others."""
    if isinstance(targets, DistributionTargets):
        return targets.loss if targets.distribution == name and not parameters else None
    for objective in OBJECTIVES[targets.task]:
        if objective.name == name:
            try:
                return objective.make(targets.size, parameters)
            except KeyError:
                return None
    return None


FORMATS = ("auto", "xgboost", "sklboost")


def save(
    kind: type,
    parameters: Mapping[str, Any],
    fitted: FittedModel,
    target: Any,
    formats: tuple[str, str | None],  # the arguments `format` and `raw_format` of the method
) -> None:
    """Write a fitted estimator of a class to a path or file object."""
    format_, raw_format = formats
    check_value("format", format_, one_of(*FORMATS))
    raw_format = file_type(target, raw_format)
    section, others = estimator_document(kind, parameters, fitted.state), {}
    if format_ != "sklboost":
        from sklboost.estimators.files.foreign_models import xgboost_document  # not for loading

        try:
            others = xgboost_document(fitted)
        except NotExpressibleError as error:
            if format_ == "xgboost":
                error.args = (f"{error}; save_model(path) keeps the model for sklboost alone",)
                raise
            section["not_for_xgboost"] = str(error)
            logging.getLogger("sklboost").info("the model file is for sklboost alone: %s", error)
    data = join_document(section, others, raw_format)
    if left_out := [name for name in parameters if name not in section["parameters"]]:
        is_opaque = fitted.loss.link == "other" and not is_built_in(fitted.loss)
        predicts = "raw scores only (output_margin=True)" if is_opaque else "the same"
        warn_user(
            f"left out of the model file: {', '.join(left_out)}, since files hold neither code "
            f"nor objects of such classes. A loaded model predicts {predicts}; before another fit "
            "give it what is left out by set_params, or keep the model with pickle"
        )
    write_bytes(target, data)


def load(source: Any, kind_of: Callable[[str], type]) -> Any:
    """Return the fitted estimator in a path, file object or bytes.

    `kind_of` gives the class of estimators of a name.
    """
    data, name = read_bytes(source)
    document = DocumentSection(parse_document(data, name), name)
    if (ours := document.get(OUR_KEY)) is not None:
        return read_estimator(ours, kind_of(read_kind(ours)), name)
    from sklboost.estimators.files.foreign_models import read_xgboost

    return read_xgboost(document, kind_of)


def model_to_continue(source: Any, kind: type) -> Any:
    """Return a model that `fit` is given, of whatever library or in a file, as one of a class.

    Anything else, fitted estimators of ours above all, is returned as it is.
    """
    from sklboost.estimators.files.foreign_models import estimator_of_lightgbm, estimator_of_xgboost

    def kind_of(name: str) -> type:
        return kind

    if hasattr(source, "get_booster") or hasattr(source, "save_raw"):
        return estimator_of_xgboost(source, kind_of)
    if hasattr(source, "booster_") or hasattr(source, "model_to_string"):
        return estimator_of_lightgbm(source, kind_of)
    if isinstance(source, str | bytes | bytearray | os.PathLike) or hasattr(source, "read"):
        return load(source, kind_of)
    return source


# --- in files of skops


@np.errstate(all="ignore")
def plain_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a fit as skops can keep them: a document, and the user's loss."""
    trained = trained_model(attributes)
    is_known = is_built_in(trained.loss) or isinstance(trained.loss, StoredLoss)
    own = None if is_known else trained.loss
    return {
        "document": write_ubjson(fit_document(attributes)),
        "estimator_name": trained.features.estimator_name,
        "own_loss": own.function if isinstance(own, FunctionLoss) else own,
    }


@np.errstate(all="ignore")
def read_attributes(document: bytes, estimator_name: str, own_loss: Any) -> dict[str, Any]:
    """Return the attributes of a fit from what :func:`plain_attributes` made of them."""
    section = DocumentSection(read_ubjson(document, "the fit"), "the fit")
    return read_fit(section, estimator_name, own_loss)
