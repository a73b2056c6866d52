"""From the inputs of a graph to one table of float64: categories as codes, missing values as NaN.

Trees compare float64 values, so float32 inputs go the same way in the graph as in `predict`.
"""

import itertools
import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from skl2onnx.common.data_types import (
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)

from sklboost.data.encoding import Encoding
from sklboost.data.table import LARGEST_EXACT
from sklboost.estimators.predict.fitted_model import FittedModel
from sklboost.onnx.graph import Graph

_INT64 = np.iinfo(np.int64)


class _Column(NamedTuple):
    """A feature, the input that has its values, and in which of how many columns of it."""

    feature: int
    variable: Any
    position: int
    width: int
    is_category: bool


def add_features(graph: Graph, inputs: Sequence[Any], fitted: FittedModel) -> str:
    """Add what makes one table of all features, shape (n_samples, n_features), of the inputs."""
    pieces = []
    for _, group in itertools.groupby(_columns(inputs, fitted), _piece_of):
        columns = list(group)
        first, values = columns[0], columns[0].variable.full_name
        if len(columns) < first.width:
            positions = graph.constant(np.array([column.position for column in columns]))
            values = graph.add("Gather", values, positions, axis=1)
        add = _add_codes if first.is_category else _add_numbers
        pieces.append(add(graph, values, first, fitted))
    return pieces[0] if len(pieces) == 1 else graph.add("Concat", *pieces, axis=1)


def _piece_of(column: _Column) -> tuple[str, int]:
    """Return what neighbouring columns have in common: numbers of one input stay together."""
    return column.variable.full_name, column.feature if column.is_category else -1


def _columns(inputs: Sequence[Any], fitted: FittedModel) -> list[_Column]:
    """Return where each feature is; ValueError if the inputs are others than the model's."""
    n_features = fitted.model.n_features
    # of an only input the number need not be known
    widths = [_width(variable) or (n_features if len(inputs) == 1 else 1) for variable in inputs]
    if sum(widths) != n_features:
        raise ValueError(
            f"the inputs {_names(inputs)} have {sum(widths)} columns, and the model has "
            f"{n_features} features: pass initial_types=sklboost.onnx.input_types(model), or rows "
            "that the model predicts as X"
        )
    places = [
        (variable, position, width)
        for variable, width in zip(inputs, widths, strict=True)
        for position in range(width)
    ]
    encodings = fitted.encodings or (Encoding(),) * n_features
    for encoding, name in zip(encodings, fitted.feature_names, strict=True):
        category_keys(encoding, name)  # refuses what a graph cannot read
    return [
        _Column(feature, *places[place], encodings[feature].kind == "category")
        for feature, place in enumerate(_order(inputs, fitted))
    ]


def _width(variable: Any) -> int | None:
    shape = variable.type.shape
    return shape[1] if len(shape) == 2 else None


def _order(inputs: Sequence[Any], fitted: FittedModel) -> Sequence[int]:
    """Return the column of each feature: by name if the inputs are the columns of a frame."""
    given, known = _names(inputs), fitted.feature_names
    if len(given) < len(known) or not set(given) & set(known):
        return range(len(known))
    if sorted(given) != sorted(known):
        raise ValueError(
            f"the inputs are {given}, and the features of the model are {known}: give the inputs "
            "these names, in any order, or none of them"
        )
    return [given.index(name) for name in known]


def _names(inputs: Sequence[Any]) -> list[str]:
    return [variable.raw_name for variable in inputs]


# --- numbers


def _add_numbers(graph: Graph, values: str, column: _Column, fitted: FittedModel) -> str:
    kind, missing = column.variable.type, fitted.features.missing
    if isinstance(kind, StringTensorType):
        raise ValueError(
            f"the input {column.variable.raw_name!r} is text, and the feature "
            f"{fitted.feature_names[column.feature]!r} of the model holds numbers: pass "
            "initial_types=sklboost.onnx.input_types(model), or encode the text in the pipeline"
        )
    if not isinstance(kind, DoubleTensorType):
        values = graph.cast(values, np.float64)
    if math.isnan(missing):
        return values
    # as NumPy compares float32 with a number of Python
    marker = np.float64(np.float32(missing) if isinstance(kind, FloatTensorType) else missing)
    is_missing = graph.add("Equal", values, graph.constant(marker))
    return graph.add("Where", is_missing, graph.constant(np.float64(np.nan)), values)


# --- categories


def category_keys(encoding: Encoding, name: str) -> list[Any]:
    """Return the categories of a feature as text or int, as graphs can look them up.

    Raises
    ------
    ValueError
        If they are neither all text nor all integers, or if the feature is of another kind than
        numbers and categories.
    """
    if encoding.kind == "time" or len(encoding.ranks) > 0:
        kind = "times" if encoding.kind == "time" else "integers beyond 2^53"
        raise ValueError(
            f"the feature {name!r} holds {kind}, which ONNX cannot compare: turn it into smaller "
            "numbers, such as days since a date, before fit"
        )
    values = encoding.listed_categories
    if encoding.is_of_text:
        return values
    is_whole = [  # NumPy's spans of time are integers, too
        not isinstance(v, np.timedelta64)
        and (isinstance(v, Integral) or (isinstance(v, float) and v.is_integer()))
        for v in values
    ]
    if not all(is_whole) or not all(_INT64.min <= v <= _INT64.max for v in values):
        strange = values[is_whole.index(False)] if False in is_whole else max(values, key=abs)
        raise ValueError(
            f"the feature {name!r} has the category {strange!r}: in ONNX all categories of a "
            "feature are text, or all are integers of 64 bits; turn them into text before fit"
        )
    return [int(value) for value in values]


def _add_own_codes(graph: Graph, numbers: str, encoding: Encoding) -> str:
    """Add the rounding of numbers to codes: the last one for what is none, NaN for NaN."""
    codes = graph.add("Floor", numbers)
    last = graph.constant(np.float64(encoding.n_categories - 1))
    is_below = graph.add("Less", codes, graph.constant(np.float64(0.0)))
    is_none = graph.add("Or", is_below, graph.add("Greater", codes, last))
    return graph.add("Where", is_none, last, codes)


def _add_codes(graph: Graph, values: str, column: _Column, fitted: FittedModel) -> str:
    """Add the look-up of a category's codes; unknown ones and missing values become NaN."""
    assert fitted.encodings is not None
    encoding, name = fitted.encodings[column.feature], fitted.feature_names[column.feature]
    if encoding.is_coded:
        return _add_own_codes(graph, _add_numbers(graph, values, column, fitted), encoding)
    keys, kind = category_keys(encoding, name), column.variable.type
    if not keys:  # the training has no value, so all are unknown
        return graph.filled(values, np.nan)
    if encoding.is_of_text != isinstance(kind, StringTensorType):
        raise ValueError(
            f"the input {column.variable.raw_name!r} is {type(kind).__name__}, and the categories "
            f"of the feature {name!r} are {'text' if encoding.is_of_text else 'numbers'}: pass "
            "initial_types=sklboost.onnx.input_types(model)"
        )
    codes = encoding.codes.astype(float).tolist()
    tables: dict[str, Any] = dict(values_floats=codes, default_float=math.nan)
    if encoding.is_of_text:
        found = graph.add("LabelEncoder", values, keys_strings=keys, **tables)
        return graph.cast(found, np.float64)
    if not isinstance(kind, Int64TensorType) and any(abs(key) > LARGEST_EXACT for key in keys):
        raise ValueError(
            f"the feature {name!r} has categories beyond 2^53: declare the input "
            f"{column.variable.raw_name!r} as Int64TensorType"
        )
    whole = graph.cast(values, np.int64)
    found = graph.cast(graph.add("LabelEncoder", whole, keys_int64s=keys, **tables), np.float64)
    if not isinstance(kind, FloatTensorType | DoubleTensorType):
        return found
    # 1.5 and NaN are no categories, whatever integer they become
    is_whole = graph.add("Equal", graph.cast(whole, np.float64), graph.cast(values, np.float64))
    return graph.add("Where", is_whole, found, graph.constant(np.float64(np.nan)))
