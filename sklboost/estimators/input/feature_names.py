"""Features by name: what a fit remembers of them, and parameters that speak of single features."""

import difflib
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sklboost.boosting.settings import feature_rules
from sklboost.data.encoding import Encoding
from sklboost.engine.structs import FeatureRules
from sklboost.estimators.parameters.boosters import Parameters, constraints_of
from sklboost.estimators.parameters.rules import check_parameters, is_integer, is_number

Encodings = tuple[Encoding, ...] | None  # None: all features are numbers as they are


class FittedFeatures(NamedTuple):
    """What a fit remembers of its features."""

    estimator_name: str  # class of the estimator, for errors
    n_features: int
    # object, shape (n_features,), or None: as the user has them, strings or not. None: nobody named
    # them.
    names: np.ndarray | None
    encodings: Encodings  # how values become numbers
    binning_digest: str | None  # of the BinnedMatrix that was given to fit. None: raw values were.
    missing: float = math.nan  # A further value that counts as missing; NaN: none

    @property
    def attributes(self) -> dict[str, Any]:
        """The public attributes of an estimator, by name."""
        text_names = self.names
        if text_names is not None and _kind(text_names) != "text":
            text_names = None
        kept: dict[str, Any] = {"n_features_in_": self.n_features}
        if text_names is not None:
            kept["feature_names_in_"] = text_names
        keys = range(self.n_features) if self.names is None else self.names.tolist()
        pairs = zip(keys, self.encodings or (), strict=False)
        categories = {
            key: encoding.categories for key, encoding in pairs if encoding.kind == "category"
        }
        return kept | ({"categories_": categories} if categories else {})

    @property
    def listed_names(self) -> list[Any]:
        """The names as the user has them; 0, 1, 2, ... for features that nobody named."""
        return list(range(self.n_features)) if self.names is None else self.names.tolist()

    def check_continued(self, names: np.ndarray | None, n_features: int, model: str) -> None:
        """Raise ValueError unless a fit that continues `model`, of these features, has the same."""
        if n_features != self.n_features:
            raise ValueError(
                f"X has {n_features} features, but {model} was fitted with {self.n_features}: "
                "continue with the same features"
            )
        listed = self._replace(names=names).listed_names
        if listed != self.listed_names and are_comparable(listed, self.listed_names):
            raise ValueError(
                f"X has the features {listed}, but {model} was fitted with {self.listed_names}: "
                "continue with the same features, in the same order"
            )

    @property
    def keys(self) -> list[Any]:
        """What parameters and methods know the features by, as :func:`feature_keys`."""
        return feature_keys(self.names, self.n_features)


def feature_keys(names: Sequence[Any] | np.ndarray | None, n_features: int) -> list[Any]:
    """Return the names of features as the user has them; f0, f1, ... if nobody named them."""
    listed = None if names is None else list(names)
    if listed is None or _are_counted(listed):
        return [f"f{i}" for i in range(n_features)]
    return listed


def name_text(name: Any) -> str:
    """Return the name of a feature as text, as XGBoost and LightGBM make it of what is not."""
    return " ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def column_names(X: Any) -> np.ndarray | None:
    """Return the names of the columns, ndarray of object; None if `X` has none."""
    # asked of the class: a pandas frame has its columns as attributes, whatever they are called
    for attribute in ("column_names", "columns"):  # an Arrow table has its values in `columns`
        if hasattr(type(X), attribute):
            # an array first: a pandas index takes ten times as long to go through
            return np.asarray(getattr(X, attribute), dtype=object)
    return None


def given_names(X: Any) -> np.ndarray | None:
    """Return the names of the columns; None also for 0, 1, 2, ..., which are no user's."""
    names = column_names(X)
    return None if names is None or _are_counted(names.tolist()) else names


def order_of_fit(X: Any, fitted: list[Any]) -> Sequence[int] | None:
    """Return the column of each feature in a frame, given the names at fit.

    None if `X` has no names, or none that compare with those of the fit.
    """
    array = column_names(X)
    if array is None:
        return None
    names = array.tolist()
    if names == fitted:
        return range(len(fitted))
    kind = _kind(names)
    if kind == "mixed" or kind != _kind(fitted) or not are_comparable(names, fitted):
        return None
    _check_same_names(names, fitted)
    places = {name: place for place, name in enumerate(names)}
    return [places[name] for name in fitted]


def are_comparable(names: list[Any], fitted: list[Any]) -> bool:
    """Whether users have named their columns here and at fit; 0, 1, 2 may be no names."""
    return set(names) == set(fitted) or not (_are_counted(names) or _are_counted(fitted))


def _are_counted(names: list[Any]) -> bool:
    return names == list(range(len(names)))


def _kind(names: Iterable[Any]) -> str:
    are_text = {isinstance(name, str) for name in names}
    return "mixed" if len(are_text) > 1 else "text" if True in are_text else "other"


def _check_same_names(names: list[Any], fitted: list[Any]) -> None:
    unseen, missing = set(names) - set(fitted), set(fitted) - set(names)
    if unseen or missing:
        # scikit-learn's words, but all of the names
        lines = ["The feature names should match those that were passed during fit."]
        for heading, listed in (
            ("Feature names unseen at fit time:", sorted(unseen, key=str)),
            ("Feature names seen at fit time, yet now missing:", sorted(missing, key=str)),
        ):
            if listed:
                lines += [heading, *(f"- {name}" for name in listed)]
        raise ValueError("\n".join(lines) + "\n")
    counts = Counter(names) | Counter(fitted)
    twice = sorted((name for name, count in counts.items() if count > 1), key=str)
    if twice:
        raise ValueError(
            f"columns {twice} occur more than once, here or at fit, so that they cannot be put in "
            "order by name: give each column a name of its own, or all of them in the order of fit"
        )


# Features that an error lists.
_MOST_NAMED = 10


def read_feature_rules(parameters: Parameters, features: FittedFeatures) -> FeatureRules:
    """Return the constraints and the weights of the features."""
    signs, weights = parameters.monotone_constraints, parameters.feature_weights
    groups = parameters.interaction_constraints
    if weights is not None:
        weights = by_feature("feature_weights", weights, features.keys, 1.0)
        if not any(weights):
            raise ValueError(
                f"feature_weights={parameters.feature_weights!r:.100} is 0 for every feature, so "
                "none could be drawn: give at least one a positive weight"
            )
    return feature_rules(
        features.n_features,
        signs=None if signs is None else _signs_by_feature(signs, features),
        groups=None if groups is None else read_groups(groups, features.keys),
        weights=weights,
    )


def read_signs(constraints: Any, features: FittedFeatures) -> dict[int, int]:
    """Return the features that are to be monotone, by number; 1: rising, -1: falling."""
    constraints = constraints_of(constraints)
    constraints = {} if constraints is None else constraints
    check_parameters(Parameters, {"monotone_constraints": constraints})
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
    bound = [name for name, sign, encoding in triples if sign != 0 and encoding.n_categories > 0]
    if bound:
        raise ValueError(
            f"monotone_constraints has {bound}, but categories have no order: leave them out, or "
            "turn them into numbers"
        )
    return signs


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
        """Return the number of the feature that `key`, given for that parameter, names or is."""
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
    if list(names) == feature_keys(None, n_features):  # a user's, perhaps
        last = n_features - 1
        return f"{n_features} features, f0 to f{last}: give these names, or the numbers 0 to {last}"
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
