"""Importances on validation rows, in models that were trained with shadows of the features.

A shadow is a feature whose rows are in another order. It has the feature's values and no
information, so the importance that a model gives it is due to chance. All shadows share one order:
they depend on one another as the features do.

Source: Kursa & Rudnicki (2010), "Feature Selection with the Boruta Package". Permutation
importance: Breiman (2001), "Random Forests".
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.utils import check_array

from sklboost.data.frames import adapter_for
from sklboost.data.frames.adapter import ArrangedColumns, Arrangement, FrameAdapter
from sklboost.data.frames.numpy_arrays import ArrayTable
from sklboost.estimators.input.feature_names import (
    by_feature,
    column_names,
    feature_keys,
    name_text,
    order_of_fit,
    read_categories,
    read_groups,
)
from sklboost.estimators.input.features import FEATURE_CHECKS, UnknownCategoryWarning
from sklboost.estimators.input.rows import row_values
from sklboost.estimators.parameters.boosters import Parameters, seeds
from sklboost.estimators.parameters.rules import check_value, integer, one_of, value_of
from sklboost.inspection.importances import ValidationImportances


class Sample(NamedTuple):
    """Rows with their targets, and weights if there are any."""

    X: FrameAdapter
    y: Any
    weight: Any

    @property
    def weights(self) -> dict[str, Any]:
        """The weights as a keyword, for functions that may not know it."""
        return {} if self.weight is None else {"sample_weight": self.weight}

    def arranged(self, arrangement: Arrangement) -> ArrangedColumns:
        """The features, some of them several times or shuffled."""
        return ArrangedColumns(self.X, arrangement)


def shadowed_importances(
    estimator: Any,
    training: tuple[Any, Any, Any],
    validation: tuple[Any, Any, Any],
    *,
    method: str,
    scoring: Any,
    n_repeats: int,
    random_state: Any,
) -> ValidationImportances:
    """Train on features and shadows, measure both on the validation rows, `n_repeats` times."""
    check_value("method", method, one_of("permutation", "shap"))
    check_value("n_repeats", n_repeats, integer(1))
    named = column_names(training[0])
    names = None if named is None else named.tolist()
    fitted, held_out = (
        Sample(
            _columns(X, names, f"X{suffix}"),
            estimator._kind.read(y, f"y{suffix}"),
            None if weight is None else row_values(weight, f"sample_weight{suffix}", "weights"),
        )
        for suffix, (X, y, weight) in (("", training), ("_val", validation))
    )
    n_features = fitted.X.n_columns
    if held_out.X.n_columns != n_features:
        raise ValueError(
            f"X_val has {held_out.X.n_columns} features, but X has {n_features}: pass the same "
            "columns"
        )
    keys = feature_keys(names, n_features)
    changed = _with_shadows(estimator, keys)
    random = np.random.default_rng(seeds(random_state, True)[1])
    measured = []
    with warnings.catch_warnings():
        # the same for every prediction: there is one a feature
        warnings.simplefilter("ignore", UnknownCategoryWarning)
        for _ in range(n_repeats):
            model = clone(estimator)
            for name, value in changed.items():
                setattr(model, name, value)  # subclasses need not have all parameters
            model.fit(fitted.arranged(_shadowed(fitted.X, random)), fitted.y, **fitted.weights)
            arrangement = _shadowed(held_out.X, random)
            if method == "shap":
                measured.append(_shap_importances(model, held_out, arrangement))
            else:
                score = check_scoring(model, scoring)
                measured.append(
                    _permutation_importances(model, score, held_out, arrangement, random)
                )
    features, shadows = np.split(np.array(measured).T, 2)
    return ValidationImportances(list(map(name_text, keys)), features, shadows, method)


def _columns(X: Any, names: list[Any] | None, argument: str) -> FrameAdapter:
    """Read a table column by column, in the order of the training's names."""
    columns = adapter_for(X)
    if columns is None:
        dense = {**FEATURE_CHECKS, "accept_sparse": False}
        return ArrayTable(check_array(X, input_name=argument, **dense))
    order = None if names is None else order_of_fit(X, names)
    return columns if order is None else ArrangedColumns(columns, [(i, None) for i in order])


def _shadowed(X: FrameAdapter, random: np.random.Generator) -> list[tuple[int, np.ndarray | None]]:
    """Arrange all columns as they are, then all of them shuffled: one order for these."""
    order = random.permutation(X.n_rows)
    columns = range(X.n_columns)
    return [*((i, None) for i in columns), *((i, order) for i in columns)]


def _with_shadows(parameters: Parameters, names: list[Any]) -> dict[str, Any]:
    """Parameters to change, so that shadows are constrained like their features."""
    n_features = len(names)
    changed: dict[str, Any] = {"warm_start": False}
    for name, default in (("monotone_constraints", 0), ("feature_weights", 1.0)):
        value = value_of(parameters, name)
        if value is not None:
            changed[name] = 2 * by_feature(name, value, names, default)
    groups = read_groups(value_of(parameters, "interaction_constraints"), names)
    if isinstance(groups, list):
        changed["interaction_constraints"] = [
            *groups,
            *([i + n_features for i in group] for group in groups),
        ]
    declared = parameters.categorical_features
    if not (declared is None or isinstance(declared, str)):
        numbers = sorted(read_categories(declared, names))
        changed["categorical_features"] = numbers + [i + n_features for i in numbers]
    return changed


def _permutation_importances(
    model: Any,
    score: Callable[..., float],
    rows: Sample,
    arrangement: Arrangement,
    random: np.random.Generator,
) -> np.ndarray:
    """How much the score falls when the values of each feature are shuffled."""
    best = score(model, rows.arranged(arrangement), rows.y, **rows.weights)
    importances = np.zeros(len(arrangement))
    trees = model.model_
    read = np.unique(trees.nodes.feature[trees.nodes.left >= 0])
    if trees.linear is not None:
        read = np.union1d(read, trees.linear.terms["feature"])
    for feature in read.tolist():  # shuffling another feature changes nothing
        number, order = arrangement[feature]
        shuffled = list(arrangement)
        shuffle = random.permutation(rows.X.n_rows)
        shuffled[feature] = (number, shuffle if order is None else order[shuffle])
        changed = score(model, rows.arranged(shuffled), rows.y, **rows.weights)
        importances[feature] = best - changed
    return importances


def _shap_importances(model: Any, rows: Sample, arrangement: Arrangement) -> np.ndarray:
    """Mean absolute SHAP value of each feature, summed over outputs."""
    values = np.abs(model.shap_values(rows.arranged(arrangement)))
    means = np.average(values, axis=0, weights=rows.weight)
    return means.reshape(len(arrangement), -1).sum(axis=1)
