"""LightGBM's text format, taken apart into sections of keys and values.

::

    tree                    the header: classes, objective, names of the features
    version=v4
    ...
    Tree=0                  a section for each tree
    num_leaves=3
    split_feature=2 0
    ...
    end of trees
    parameters:             those of the training
    [learning_rate: 0.1]
    ...
    end of parameters
    pandas_categorical:[["a", "b"]]     by the Python package
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from sklboost.files.errors import ModelFileError
from sklboost.files.json_text import read_json
from sklboost.files.sections import Section

# The arrays of a tree that are read; all else is not looked at.
_INTEGERS = (
    *("num_leaves", "num_cat", "split_feature", "decision_type", "left_child", "right_child"),
    *("leaf_count", "cat_boundaries", "cat_threshold"),
    *("is_linear", "num_features", "leaf_features"),
)
_NUMBERS = (
    *("split_gain", "threshold", "leaf_value", "leaf_weight", "internal_value", "shrinkage"),
    *("leaf_const", "leaf_coeff"),
)
_KINDS: dict[str, Any] = {**dict.fromkeys(_INTEGERS, int), **dict.fromkeys(_NUMBERS, float)}
_NO_ARRAYS: Mapping[str, Any] = MappingProxyType({})


class ModelText(NamedTuple):
    """The sections of a text model."""

    # of texts
    header: Section
    parameters: Section
    trees: list[Section]  # of arrays, int64 and float64
    # the categories of the pandas columns, in a list of lists; null if the file has none
    pandas_categorical: Section


def read_text(data: bytes, name: str) -> ModelText:
    """Take a text model apart; `name` is the file, for errors.

    Raises
    ------
    ModelFileError
        If it is no such model or ends before its trees do, if a key occurs twice in a section, or
        if what should be numbers is none.
    """
    try:
        text = data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{name}: byte {error.start} is no UTF-8 text") from None
    if not text.startswith("tree\n"):
        raise ModelFileError(f"{name}: no text model of LightGBM, whose first line is 'tree'")
    body, end, rest = text.partition("\nend of trees\n")
    if not end:
        raise ModelFileError(f"{name}: the file ends before the line 'end of trees'")
    header, *trees = body.split("\nTree=")
    parameters = rest.partition("\nparameters:\n")[2].partition("\nend of parameters")[0]
    listed = [line[1:-1] for line in parameters.split("\n") if line]
    categories = f"\n{rest}".partition("\npandas_categorical:")[2].partition("\n")[0]
    return ModelText(
        _section(header.split("\n")[1:], "=", f"{name}: the header"),
        _section(listed, ":", f"{name}: the parameters"),
        # the first line is the number of the tree
        [
            _section(tree.split("\n")[1:], "=", f"{name}: tree {number}", _KINDS)
            for number, tree in enumerate(trees)
        ],
        Section(
            read_json(categories.encode("utf-8") or b"null", f"{name}: pandas_categorical"),
            f"{name}: pandas_categorical",
        ),
    )


def _section(
    lines: list[str], separator: str, place: str, kinds: Mapping[str, Any] = _NO_ARRAYS
) -> Section:
    """Return the keys and values of lines; a line without a value has an empty text."""
    found: dict[str, Any] = {}
    for line in lines:
        key, _, text = line.partition(separator)
        if key in found:
            raise ModelFileError(f"{place} has the key {key!r} more than once")
        if key:
            kind = kinds.get(key)
            found[key] = text.strip() if kind is None else _array(text, kind, f"{place}.{key}")
    return Section(found, place)


def _array(text: str, kind: type, place: str) -> np.ndarray:
    """Return the numbers in a text; more digits than an int64 has are none."""
    try:
        return np.array(list(map(kind, text.split())), dtype=np.dtype(kind))
    except (ValueError, OverflowError) as error:
        raise ModelFileError(f"{place}: {error}") from None
