"""What the user laid down for single features, from names to numbers.

In: parameters that speak of features by name or number, and the names of the training data. Out:
one number a feature, in their order. Errors name the feature that does not exist.
"""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sklboost.boosting.settings import feature_rules
from sklboost.engine.structs import FeatureRules
from sklboost.estimators.parameters.features import FeatureParameters
from sklboost.estimators.parameters.rules import check_parameters, is_integer


def read_feature_rules(estimator: Any) -> FeatureRules:
    """Read the parameters of an estimator that knows its features."""
    names = estimator._feature_names()
    signs, weights = estimator.monotone_constraints, estimator.feature_weights
    if signs is not None:
        signs = by_feature("monotone_constraints", signs, names, 0)
        _check_ordered(signs, estimator)
    return feature_rules(
        len(names),
        signs=signs,
        groups=read_groups(estimator.interaction_constraints, names),
        weights=None if weights is None else by_feature("feature_weights", weights, names, 1.0),
    )


def read_signs(estimator: Any, constraints: Any) -> dict[int, int]:
    """Give the features that are to be monotone by number, 1: rising, -1: falling.

    Parameters
    ----------
    estimator : BaseBooster
        Fitted.
    constraints : dict or sequence, or None
        None: those of the estimator.

    Raises
    ------
    ValueError
        If they are no monotone constraints, or none, or if a category has one.
    """
    if constraints is None:
        constraints = estimator.monotone_constraints
    constraints = {} if constraints is None else constraints
    check_parameters(FeatureParameters, {"monotone_constraints": constraints})
    signs = by_feature("monotone_constraints", constraints, estimator._feature_names(), 0)
    _check_ordered(signs, estimator)
    asked = {number: int(sign) for number, sign in enumerate(signs) if sign != 0}
    if not asked:
        raise ValueError(
            "no feature is constrained, so there is nothing to prove: name the features and their "
            "signs, such as verify_monotone({'age': 1})"
        )
    return asked


def read_categories(value: Any, names: Sequence[Any]) -> set[int]:
    """Give the numbers of the features that the user declares to be categories.

    Parameters
    ----------
    value : None, "from_dtype", or array-like
        Names or numbers of features, or a mask with a bool for each.
    names : sequence
        Of the features.

    Raises
    ------
    ValueError
        If there is no such feature, or a mask has another length.
    """
    if value is None or isinstance(value, str):
        return set()
    listed = list(value)
    if listed and all(isinstance(own, bool | np.bool_) for own in listed):
        if len(listed) != len(names):
            raise ValueError(
                f"categorical_features is a mask of {len(listed)}, but X has {len(names)} features"
            )
        return {number for number, own in enumerate(listed) if own}
    return {number_of(key, "categorical_features", names) for key in listed}


def by_feature(parameter: str, value: Any, names: Sequence[str], default: Any) -> list:
    """Give one value for each feature.

    Parameters
    ----------
    parameter : str
        For the errors.
    value : dict or sequence
        A dict gives values by name or number; the features it leaves out have `default`.
    names : sequence of str
        Of the features.
    default : object

    Raises
    ------
    ValueError
        If there is no such feature, or if a sequence has not one value for each.
    """
    if not isinstance(value, Mapping):
        values = list(value)
        if len(values) != len(names):
            raise ValueError(
                f"{parameter} has {len(values)} values, but X has {len(names)} features: give one "
                "for each, or a dict by name"
            )
        return values
    values = [default] * len(names)
    given: dict[int, Any] = {}
    for key, own in value.items():
        number = number_of(key, parameter, names)
        if number in given:
            raise ValueError(
                f"{parameter} has feature {number} twice, as {given[number]!r} and as {key!r}"
            )
        given[number] = key
        values[number] = own
    return values


def _check_ordered(signs: Sequence[int], estimator: Any) -> None:
    """Raise ValueError if a category has a monotone constraint."""
    triples = zip(estimator._feature_names(), signs, estimator._encodings or (), strict=False)
    bound = [name for name, sign, own in triples if sign != 0 and own.kind == "category"]
    if bound:
        raise ValueError(
            f"monotone_constraints has {bound}, but categories have no order: leave them out, or "
            "turn them into numbers"
        )


def read_groups(value: Any, names: Sequence[str]) -> list[list[int]] | str | None:
    """Give interaction constraints by the numbers of the features; words as they are.

    Raises
    ------
    ValueError
        If there is no such feature.
    """
    if value is None or isinstance(value, str):
        return value
    parameter = "interaction_constraints"
    return [[number_of(key, parameter, names) for key in group] for group in value]


def number_of(key: Any, parameter: str, names: Sequence[Any]) -> int:
    """Give the number of the feature that `key`, of that parameter, names or is.

    Raises
    ------
    ValueError
        If there is no such feature, or if there are several.
    """
    if is_integer(key):
        if 0 <= key < len(names):
            return int(key)
        raise ValueError(
            f"{parameter} has feature {key}, but X has the features 0 to {len(names) - 1}"
        )
    if not isinstance(key, str):
        raise ValueError(f"{parameter} has {key!r}: it must be the name or number of a feature")
    if key not in names:
        nearest = difflib.get_close_matches(key, names, n=1, cutoff=0.0)[0]
        raise ValueError(f"{parameter} has {key!r}, but X has no such feature: {nearest!r}?")
    if names.count(key) > 1:
        raise ValueError(f"{parameter} has {key!r}, which several features are called: use numbers")
    return names.index(key)
