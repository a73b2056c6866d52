"""Features by name: what a fit remembers of them, and where they are in another frame.

Names are strings, numbers or tuples (of two headings). Columns that nobody named are called 0, 1,
2, as pandas does. Frames are known by their attributes, so none of their libraries is imported.
scikit-learn knows names that are strings only: where names are strings at fit and not at prediction
(or the other way round), or some are and others not, its checks warn or raise.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from sklboost.data.encoding import Encoding

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

    None if `X` has no names, or none that compare with those of the fit. ValueError, which lists
    them all, if columns are missing or unknown, or if columns of the same name would have to be
    told apart.
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
