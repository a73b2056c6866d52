"""Parameters that speak of single features, by name or number, as numbers in the features' order.

A number is a name where columns are named by numbers, and else a position, counted from 0: which of
the two does not depend on the key. Errors name the feature that does not exist.
"""

import difflib
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from sklboost.boosting.settings import feature_rules
from sklboost.engine.structs import FeatureRules
from sklboost.estimators.input.feature_names import FittedFeatures, feature_keys, name_text
from sklboost.estimators.parameters.features import FeatureParameters, constraints_of
from sklboost.estimators.parameters.rules import check_parameters, is_integer, is_number

# Features that an error lists.
_MOST_NAMED = 10


def read_feature_rules(parameters: FeatureParameters, features: FittedFeatures) -> FeatureRules:
    """Return the constraints and the weights of the features."""
    signs, weights = parameters.monotone_constraints, parameters.feature_weights
    names = features.keys
    return feature_rules(
        len(names),
        signs=None if signs is None else _signs_by_feature(signs, features),
        groups=read_groups(parameters.interaction_constraints, names),
        weights=None if weights is None else _weights_by_feature(weights, names),
    )


def read_signs(constraints: Any, features: FittedFeatures) -> dict[int, int]:
    """Return the features that are to be monotone, by number; 1: rising, -1: falling.

    ValueError if `constraints` are not `monotone_constraints`, or none, or if a category has one.
    """
    constraints = constraints_of(constraints)
    constraints = {} if constraints is None else constraints
    check_parameters(FeatureParameters, {"monotone_constraints": constraints})
    signs = _signs_by_feature(constraints, features)
    asked = {number: int(sign) for number, sign in enumerate(signs) if sign != 0}
    if not asked:
        raise ValueError(
            "no feature is constrained, so there is nothing to prove: name the features and their "
            "signs, such as verify_monotone({'age': 1})"
        )
    return asked


def read_categories(value: Any, names: Sequence[Any]) -> set[int]:
    """Return the numbers of the features that `categorical_features` declares to be categories."""
    if value is None or isinstance(value, str):
        return set()
    listed = list(value)
    if listed and all(isinstance(entry, bool | np.bool_) for entry in listed):
        if len(listed) != len(names):
            raise ValueError(
                f"categorical_features is a mask of {len(listed)}, but X has {len(names)} features"
            )
        return {number for number, is_category in enumerate(listed) if is_category}
    places = FeaturePlaces(names)
    return {places.number_of(key, "categorical_features") for key in listed}


def by_feature(parameter: str, value: Any, names: Sequence[Any], default: Any) -> list[Any]:
    """Return one value for each feature.

    A dict gives values by name or number; the features it leaves out have `default`. A sequence has
    one for each. ValueError, with the name of the parameter, for features that do not exist.
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
    places, keys = FeaturePlaces(names), dict[int, Any]()
    for key, of_feature in value.items():
        number = places.number_of(key, parameter)
        if number in keys:
            raise ValueError(
                f"{parameter} has feature {number} twice, as {keys[number]!r} and as {key!r}"
            )
        keys[number], values[number] = key, of_feature
    return values


def _signs_by_feature(constraints: Any, features: FittedFeatures) -> list[Any]:
    """Return a sign for each feature; ValueError if a category has a monotone constraint."""
    names = features.keys
    signs = by_feature("monotone_constraints", constraints, names, 0)
    triples = zip(names, signs, features.encodings or (), strict=False)
    bound = [name for name, sign, encoding in triples if sign != 0 and encoding.kind == "category"]
    if bound:
        raise ValueError(
            f"monotone_constraints has {bound}, but categories have no order: leave them out, or "
            "turn them into numbers"
        )
    return signs


def _weights_by_feature(weights: Any, names: Sequence[Any]) -> list[Any]:
    """Return a weight for each feature; ValueError if no feature could be drawn."""
    by_number = by_feature("feature_weights", weights, names, 1.0)
    if not any(by_number):
        raise ValueError(
            f"feature_weights={weights!r} is 0 for every feature, so none could be drawn: give at "
            "least one a positive weight"
        )
    return by_number


def read_groups(value: Any, names: Sequence[Any]) -> list[list[int]] | str | None:
    """Return interaction constraints by the numbers of the features; words as they are."""
    if value is None or isinstance(value, str):
        return value
    places = FeaturePlaces(names)
    return [[places.number_of(key, "interaction_constraints") for key in own] for own in value]


class FeaturePlaces:
    """Which feature a key means: a name, the text that tables have of one, or a position.

    Where columns are named by numbers, a number is a name; elsewhere it is a position.
    """

    def __init__(self, names: Sequence[Any]):
        self._names = names
        self._are_numbers = any(map(is_number, names))
        self._by_name: dict[Any, list[int]] = {}
        self._by_text: dict[str, list[int]] = {}
        for place, name in enumerate(names):
            self._by_name.setdefault(name, []).append(place)
            self._by_text.setdefault(name_text(name), []).append(place)

    def number_of(self, key: Any, parameter: str) -> int:
        """Return the number of the feature that `key`, given for that parameter, names or is.

        ValueError if there is no such feature, or if there are several.
        """
        names = self._names
        if is_integer(key) and not self._are_numbers:
            if 0 <= key < len(names):
                return int(key)
            raise ValueError(
                f"{parameter} has feature {key}, but X has the features 0 to {len(names) - 1}"
            )
        # True is no 1 here, and what has no hash is no name
        may_be = isinstance(key, Hashable) and not isinstance(key, bool | np.bool_)
        found = self._by_name.get(key, []) if may_be else []
        if isinstance(key, str):
            found = found or self._by_text.get(key, [])
        if len(found) > 1:
            raise ValueError(
                f"{parameter} has {key!r}, which several features are called: use numbers"
            )
        if found:
            return found[0]
        if not isinstance(key, str | tuple) and not is_integer(key):
            raise ValueError(f"{parameter} has {key!r}: it must be the name or number of a feature")
        raise ValueError(f"{parameter} has {key!r}, but X has {_no_feature(key, names)}")


def _no_feature(key: Any, names: Sequence[Any]) -> str:
    """Say that no feature has this name, and which may be meant."""
    n_features = len(names)
    if list(names) == feature_keys(None, n_features):
        return f"{n_features} features without names: give their numbers, 0 to {n_features - 1}"
    near = (
        difflib.get_close_matches(key, map(name_text, names), n=1) if isinstance(key, str) else ()
    )
    if near:
        return f"no such feature; did you mean {near[0]!r}?"
    more = f" and {n_features - _MOST_NAMED} more" if n_features > _MOST_NAMED else ""
    listed = f"no such feature: it has {', '.join(map(repr, names[:_MOST_NAMED]))}{more}"
    if not is_integer(key):
        return listed
    return f"{listed}; where columns are named by numbers, a number is a name and no position"
