"""Categories of ours as LightGBM's: integers from 0 on, or values of pandas columns."""

from typing import Any, NamedTuple

import numpy as np

from sklboost.data.encoding import Encoding
from sklboost.engine.model import Model
from sklboost.files.sections import NotExpressibleError

# LightGBM's sets are as long as their largest integer has it, in bits.
_LARGEST = 2**20


class WrittenCategories(NamedTuple):
    """The categories of a model, as LightGBM has them."""

    # list of ndarray of int64 or None: for each feature those of its known categories; None for a
    # number
    integers: list[np.ndarray | None]
    codes: list[np.ndarray | None]  # list of ndarray of int64 or None: our codes of these
    others: list[int | None]  # our code of all other numbers; None where these are missing values
    # the values of the features that may be pandas columns of a categorical dtype, in their order,
    # whose places are the integers. In all other columns LightGBM takes the integers themselves; so
    # a category that is one has it for its place.
    of_pandas: list[list[Any]]


def write_categories(model: Model, encodings: tuple[Encoding, ...] | None) -> WrittenCategories:
    """Return the categories of a model.

    Raises
    ------
    NotExpressibleError
        For features that LightGBM cannot read.
    """
    n = model.n_features
    written = WrittenCategories([None] * n, [None] * n, [None] * n, [])
    by_category = set(model.nodes.feature[_are_by_category(model)].tolist())
    for feature in range(model.n_features):
        encoding = Encoding() if encodings is None else encodings[feature]
        if encoding.kind != "category":
            if not encoding.is_plain:
                _refuse(f"features of the kind {encoding.unit or 'large integer'}")
            if feature in by_category:
                _refuse(f"categories whose values are not known (feature {feature})")
            continue
        values = encoding.listed_categories
        integers = np.arange(len(values))
        if encoding.are_integers_below(_LARGEST) or set(map(type, values)) == {bool}:
            integers = np.array(values, dtype=np.int64)
        elif encoding.is_declared and encoding.categories.dtype.kind in "iuf":
            _refuse(f"categories in columns of numbers but integers from 0 to {_LARGEST - 1}")
        if not all(type(value) in (str, int, float, bool) for value in values):
            _refuse(f"categories such as {values[0]!r}: they are texts or numbers")
        if not encoding.is_coded:
            places = dict(zip(integers.tolist(), values, strict=True))
            last = max(places, default=-1)
            written.of_pandas.append([places.get(place, place) for place in range(last + 1)])
        written.integers[feature], written.codes[feature] = integers, encoding.codes
        written.others[feature] = encoding.n_categories - 1 if encoding.is_coded else None
    return written


def _are_by_category(model: Model) -> np.ndarray:
    return (model.nodes.left >= 0) & np.isnan(model.nodes.threshold)


def _refuse(what: str) -> None:
    raise NotExpressibleError("LightGBM", what)
