"""Whole fitted estimators as documents, and back: what ``sklboost`` is the key of in a model file.

``docs/reference/model_file.md`` describes it for readers.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from sklboost.engine.model import Model
from sklboost.estimators.files.targets import (
    loss_document,
    read_loss,
    read_targets,
    targets_document,
)
from sklboost.estimators.fit.result import ChosenParams, FitReport, FitResult
from sklboost.estimators.fit.training_settings import drops_rounds
from sklboost.estimators.input.feature_names import FittedFeatures
from sklboost.estimators.parameters.rules import as_read, check_parameters
from sklboost.estimators.predict.fitted_model import TrainedModel, trained_model
from sklboost.files.encodings import encoding_document, read_encoding
from sklboost.files.sections import Section, plain_number
from sklboost.files.trees import SCORES, read_trees, trees_document
from sklboost.files.values import NotStorableError, check_keys, read_value, value_document
from sklboost.objectives.registry import make_loss
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
    """Return the document of a fitted estimator of a class, with its parameters.

    Raises
    ------
    ValueError
        If a parameter breaks its rule, or holds what no file can: code above all.
    """
    _check_parameters(kind, parameters)
    return {
        **_VERSIONS,
        "estimator": kind_of(kind),
        "parameters": {name: _parameter(name, value) for name, value in parameters.items()},
        **_fit_document(attributes),
    }


def fit_document(attributes: Mapping[str, Any], *, has_loss: bool) -> dict[str, Any]:
    """Return the document of the attributes of a fit, without the loss if `has_loss` is False.

    Raises
    ------
    ValueError
        If they hold what no file can.
    """
    return {**_VERSIONS, **_fit_document(attributes, has_loss)}


def _fit_document(state: Mapping[str, Any], has_loss: bool = True) -> dict[str, Any]:
    trained = trained_model(state)
    return {
        "features": _features_document(trained.features),
        "targets": targets_document(trained.targets),
        "loss": loss_document(trained.loss, trained.targets) if has_loss else None,
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


def _parameter(name: str, value: Any) -> Any:
    try:
        return value_document(value)
    except NotStorableError as error:
        raise NotStorableError(
            f"{name}={value!r}: {error}; set_params({name}=...) to a plain value before, or keep "
            "the model with pickle or cloudpickle"
        ) from None


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
        "report": None if report is None else _report_document(report),
    }
    if chosen is not None:
        document["chosen_params"] = [
            {"name": name, "value": _parameter(name, value), "reason": chosen.reasons[name]}
            for name, value in chosen.items()
        ]
    if before_refit is not None:
        document["before_refit"] = {
            "base_score": before_refit.base_score,
            "trees": trees_document(trees_of(before_refit)),
        }
    return document


# --- from documents


def read_kind(section: Section) -> str:
    """Return the name of the estimator's class, if this version of the package can read it."""
    _check_version(section)
    return section["estimator"].text(KINDS)


def _check_version(section: Section) -> None:
    version = section["format_version"].integer(1, _MOST)
    if version > FORMAT_VERSION:
        section.fail(
            f"the file has format version {version}, and sklboost {__version__} reads those up to "
            f"{FORMAT_VERSION}: install a newer sklboost"
        )


def read_estimator(section: Section, estimator_class: Any, source: str) -> Any:
    """Return the fitted estimator of a section.

    Parameters
    ----------
    section : Section
    estimator_class : type
        One of ours, or a class that inherits from one.
    source : str
        Name of the file.

    Raises
    ------
    ModelFileError
        If anything in it is not as :func:`estimator_document` writes it.
    TypeError
        If the file has an estimator of another class.
    """
    name = read_kind(section)
    if name != kind_of(estimator_class):
        raise TypeError(
            f"{source} holds a fitted {name}, no {estimator_class.__name__}: call "
            f"sklboost.load_model, or {name}.load_model"
        )
    estimator = estimator_class(**_read_parameters(section["parameters"], estimator_class))
    result = read_fit(section, estimator_class.__name__)
    if section["model"].get("n_dart_rounds") is None and drops_rounds(estimator):
        result.trained.n_dart_rounds = result.trained.model.n_rounds  # not in earlier files
    if type(result.trained.targets) not in estimator_class._kind.kinds():
        section["targets"].fail(f"are none of {name}")
    estimator._set_fitted(result.attributes, result.trained.model)
    return estimator


def read_fit(section: Section, estimator_name: str, own_loss: Any = None) -> FitResult:
    """Return the fit of a section.

    Parameters
    ----------
    section : Section
    estimator_name : str
        Class of the estimator.
    own_loss : callable, Loss or None
        The `objective` of a section without a loss.

    Raises
    ------
    ModelFileError
        If anything in it is not as :func:`fit_document` writes it.
    """
    _check_version(section)
    return _read_training(section["training"], _read_trained(section, estimator_name, own_loss))


def _read_parameters(section: Section, kind: Any) -> dict[str, Any]:
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


def _read_trained(section: Section, estimator_name: str, own_loss: Any) -> TrainedModel:
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


def _read_features(section: Section, estimator_name: str) -> FittedFeatures:
    n_features = section["n_features"].integer(1, _MOST_FEATURES)
    names, encodings = section["names"], section["encodings"]
    digest = section["binning_digest"]
    for listed in (names, encodings):
        if not listed.is_null and len(listed) != n_features:
            listed.fail(f"must have {n_features} elements, and has {len(listed)}")
    read_names = None if names.is_null else _objects([read_value(name) for name in names])
    if read_names is not None:
        check_keys(names, read_names.tolist())
    return FittedFeatures(
        estimator_name=estimator_name,
        n_features=n_features,
        names=read_names,
        encodings=None if encodings.is_null else tuple(map(read_encoding, encodings)),
        binning_digest=None if digest.is_null else digest.text(),
        missing=section["missing"].number(),
    )


def _objects(values: list[Any]) -> np.ndarray:
    return np.fromiter(values, dtype=object, count=len(values))


def _read_model(section: Section, features: FittedFeatures, n_outputs: int) -> Model:
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


def _read_training(section: Section, trained: TrainedModel) -> FitResult:
    before_refit, report = section["before_refit"], section["report"]
    chosen = section.get("chosen_params")
    read_before = functools.partial(
        _read_model, features=trained.features, n_outputs=trained.model.n_outputs
    )
    return FitResult(
        trained=trained,
        evals_result={
            name: {
                metric: values.numbers(finite=False).tolist() for metric, values in of_set.items()
            }
            for name, of_set in section["metrics"].items()
        },
        first_round=section["first_round"].integer(0, _MOST),
        split_seed=_read_count(section["split_seed"]),
        before_refit=None if before_refit.is_null else read_before(before_refit),
        stop_reason=_read_optional(section["stop_reason"], str),
        best_iteration=_read_count(section["best_iteration"]),
        best_score=_read_optional(section["best_score"], float),
        report=None if report.is_null else _read_report(report),
        chosen=None if chosen is None else _read_chosen(chosen),
    )


def _read_chosen(section: Section) -> ChosenParams:
    return ChosenParams(
        {choice["name"].text(): read_value(choice["value"]) for choice in section},
        {choice["name"].text(): choice["reason"].text() for choice in section},
    )


def _read_count(section: Section) -> int | None:
    return None if section.is_null else section.integer(0, _MOST)


def _read_optional(section: Section, kind: type) -> Any:
    value = read_value(section)
    if value is not None and type(value) is not kind:
        section.fail(f"must be a value of type {kind.__name__}, or null")
    return value


def _report_document(report: FitReport) -> dict[str, Any]:
    document = dataclasses.asdict(report)
    traffic = document.pop("traffic")
    if traffic:
        document["traffic"] = {phase: list(counts) for phase, counts in traffic.items()}
    return document


def _read_report(section: Section) -> FitReport:
    traffic = section.get("traffic")
    counts = {
        field.name: section[field.name].integer(0, _MOST)
        for field in dataclasses.fields(FitReport)
        if field.type is int
    }
    return FitReport(
        seconds={phase: spent.finite_number() for phase, spent in section["seconds"].items()},
        constant_features=[name.text() for name in section["constant_features"]],
        traffic={} if traffic is None else dict(map(_read_sent, traffic.items())),
        **counts,
    )


def _read_sent(phase_and_counts: tuple[str, Section]) -> tuple[str, tuple[int, int]]:
    phase, counts = phase_and_counts
    messages, size = counts.integers(0, _MOST, 2).tolist()
    return phase, (messages, size)
