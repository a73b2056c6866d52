"""What targets mean, and the loss, as sections of a model file."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sklboost.estimators.input.distribution_targets import DistributionTargets
from sklboost.estimators.input.target_kinds import (
    ClassTargets,
    LabelTargets,
    RegressionTargets,
    Targets,
)
from sklboost.estimators.parameters.boosting import LossParameters
from sklboost.estimators.parameters.rules import check_parameters
from sklboost.files.sections import Section, plain_number
from sklboost.files.values import (
    NotStorableError,
    check_keys,
    read_dtype,
    read_value,
    value_document,
)
from sklboost.objectives.distributions import DISTRIBUTIONS
from sklboost.objectives.loss import Loss, RowLoss
from sklboost.objectives.registry import OBJECTIVES

_POSITIVE = (np.nextafter(0.0, 1.0), np.finfo(np.float64).max)


def targets_document(targets: Targets) -> dict[str, Any]:
    """Return the document of what targets mean."""
    if isinstance(targets, DistributionTargets):
        spread = plain_number(targets.spread)
        return {"kind": "distribution", "distribution": targets.distribution, "spread": spread}
    if isinstance(targets, RegressionTargets):
        return {"kind": "numbers", "n_targets": targets.n_targets}
    if isinstance(targets, LabelTargets):
        return {"kind": "labels", "n_labels": targets.size, "dtype": targets.dtype.str}
    if targets.task == "ranking":
        return {"kind": "relevances"}
    if not isinstance(targets, ClassTargets):
        from sklboost.estimators.files.survival import survival_document

        return survival_document(targets)
    return {
        "kind": "classes",
        "classes": value_document(targets.classes),
        "multipliers": targets.multipliers,
        "is_calibrated": targets.is_calibrated,
    }


def read_targets(section: Section, n_outputs: int) -> Targets:
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
        from sklboost.estimators.files.survival import read_survival_targets

        return read_survival_targets(section)
    if kind == "numbers":
        return RegressionTargets(section["n_targets"].integer(1, n_outputs))
    if kind == "labels":
        dtype = read_dtype(section["dtype"])
        if dtype.kind not in "biuf":
            section["dtype"].fail("labels are numbers")
        return LabelTargets(np.arange(section["n_labels"].integer(1, n_outputs)), dtype)
    return _read_classes(section)


def _read_classes(section: Section) -> ClassTargets:
    classes = read_value(section["classes"])
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) == 0:
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


def loss_document(loss: Loss, targets: Targets) -> dict[str, Any]:
    """Return the document of a loss.

    Raises
    ------
    NotStorableError
        If it is one that a user has written.
    """
    name = loss.parameter if isinstance(loss, RowLoss) else ""
    # of each target the same values, those of all targets side by side
    parameters = {name: loss.parameters[:: targets.size].tolist()} if name else {**loss.made_of}
    document = {"objective": loss.name, "parameters": parameters}
    made = _make(loss.name, targets, parameters)
    if type(made) is not type(loss):
        raise NotStorableError(
            f"objective={loss.name}: the model was trained with a loss of your own, which is code, "
            "and no model file holds code; keep the model with pickle or cloudpickle"
        )
    return document


def read_loss(section: Section, targets: Targets, n_outputs: int) -> Loss:
    """Return the loss of a section; there are `n_outputs` raw scores per row."""
    name, given = section["objective"].text(), section["parameters"]
    parameters = {key: read_value(value) for key, value in given.items()}
    lists = {
        key: given[key].numbers().tolist()
        for key, value in parameters.items()
        if not isinstance(value, str)
    }
    parameters |= lists
    most = max([1, *map(len, lists.values())])
    if most * targets.size > n_outputs:
        given.fail(f"{most} values for each of {targets.size} targets are not {n_outputs} outputs")
    group: type = LossParameters
    if targets.task == "survival":
        from sklboost.estimators.parameters.survival import SurvivalParameters

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
