"""Fitted estimators of ours with the trees of another library."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sklboost.boosting.settings import tree_params
from sklboost.estimators.fit.result import FitResult
from sklboost.estimators.fit.training_settings import TREE_PARAMETERS
from sklboost.estimators.input.feature_names import FittedFeatures
from sklboost.estimators.input.target_kinds import (
    ClassTargets,
    LabelTargets,
    RegressionTargets,
    Targets,
)
from sklboost.estimators.parameters.boosting import (
    BoostingParameters,
    LossParameters,
    rounds_and_trees,
)
from sklboost.estimators.parameters.rules import check_parameters, names_of
from sklboost.estimators.predict.fitted_model import TrainedModel
from sklboost.files.errors import ModelFileError
from sklboost.files.foreign import ForeignTree, build_model
from sklboost.files.meaning import Meaning

# What predictions and their derivations depend on.
_NEEDED = {
    *names_of(LossParameters),
    *names_of(BoostingParameters),
    *("multi_strategy", "missing", "reg_lambda", "reg_alpha"),
}


def make_estimator(
    kinds: Mapping[bool, type],
    trees: Sequence[ForeignTree],
    places: Sequence[str],
    meaning: Meaning,
) -> Any:
    """Return a fitted estimator with trees of another library.

    Parameters
    ----------
    kinds : mapping of bool to type
        The class of regressors (False) and of classifiers (True).
    trees : sequence of ForeignTree
    places : sequence of str
        Where the trees are, for errors.
    meaning : Meaning

    Raises
    ------
    ModelFileError
        If links of a tree are wrong, or a parameter that the model needs is out of range.
    """
    kind = kinds[meaning.task != "regression"]
    given = {**meaning.parameters, "objective": meaning.objective, "missing": meaning.missing}
    estimator = kind(**_allowed(kind, given))
    targets = _targets(meaning)
    settings = {name: getattr(estimator, name) for name in TREE_PARAMETERS}
    n_parallel_trees = rounds_and_trees(estimator, estimator._is_forest)[1]
    settings["learning_rate"] /= n_parallel_trees  # which share it
    params = tree_params(**settings, num_parallel_tree=n_parallel_trees)
    model = build_model(trees, places, meaning.base_score, meaning.n_features, params)
    estimator.set_params(n_estimators=estimator._n_estimators_of(model))
    names = meaning.feature_names
    trained = TrainedModel(
        model=model,
        features=FittedFeatures(
            estimator_name=kind.__name__,
            n_features=meaning.n_features,
            names=None if names is None else np.array(names, dtype=object),
            encodings=meaning.encodings,
            binning_digest=None,
            missing=meaning.missing,
        ),
        targets=targets,
        loss=targets.make_loss(estimator),
        shift=np.zeros(model.n_outputs),
        has_margin=False,
        n_dart_rounds=model.n_rounds if estimator.booster == "dart" else 0,
    )
    result = FitResult(
        trained=trained,
        evals_result={},
        first_round=0,
        split_seed=None,
        before_refit=None,
        stop_reason="",
        best_iteration=meaning.best_iteration,
        best_score=None,
        report=None,
    )
    estimator._set_fitted(result.attributes, model)
    return estimator


def _allowed(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters without those of the training alone that our rules do not allow."""
    allowed = {}
    for name, value in given.items():
        try:
            check_parameters(kind, {name: value})
        except ValueError as error:
            if name in _NEEDED:
                raise ModelFileError(f"the parameters of the model: {error}") from None
        else:
            allowed[name] = value
    return allowed


def _targets(meaning: Meaning) -> Targets:
    if meaning.task == "regression":
        return RegressionTargets(meaning.n_targets)
    assert meaning.classes is not None
    if meaning.task == "multilabel":
        return LabelTargets(meaning.classes, np.dtype(np.int64))
    return ClassTargets(meaning.classes, np.ones(len(meaning.classes)), False)
