"""The values of categories in XGBoost's files, since its version 3.1: text or integers.

``enc`` has an entry for each feature, empty for numbers. Text is stored as bytes, all one after
the other, and where each begins. ``sorted_idx`` are the places of the values in increasing order,
feature after feature, by which XGBoost finds them; its bytes have signs.
"""

from typing import Any

import numpy as np

from sklboost.data.encoding import Encoding
from sklboost.files.errors import NotExpressibleError

# The types of arrays of integers, as XGBoost numbers them.
_TYPES = {9: np.int8, 10: np.uint8, 11: np.int16, 13: np.int32, 15: np.int64}
_INT64 = 15


def write_categories(encodings: tuple[Encoding, ...] | None) -> dict[str, Any] | None:
    """Return the section ``cats``; None if there are no values to be stored.

    Raises
    ------
    NotExpressibleError
        For features that XGBoost cannot read.
    """
    columns = [_stored_values(encoding) for encoding in encodings or ()]
    if all(values is None for values in columns):
        return None
    entries = [_entry(values) for values in columns]
    orders = [_order(values) for values in columns if values is not None]
    sizes = [0 if values is None else len(values) for values in columns]
    return {
        "enc": entries,
        "feature_segments": np.append(0, np.cumsum(sizes)).astype(np.int32),
        "sorted_idx": np.concatenate(orders).astype(np.int32),
    }


def _stored_values(encoding: Encoding) -> list[Any] | None:
    """Return the categories by code; None for numbers, and for codes that are the values."""
    if encoding.kind != "category":
        if not encoding.is_plain:
            _refuse(f"features of the kind {encoding.unit or 'large integer'}")
        return None
    values = encoding.categories[np.argsort(encoding.codes, kind="stable")].tolist()
    if len(values) > encoding.n_categories:
        _refuse(f"feature with {len(values)} categories of {encoding.n_categories} codes")
    if encoding.is_declared:
        if values == list(range(len(values))):
            return None
        _refuse("categories in columns of numbers but 0, 1, 2, ...: give it a pandas category")
    if not (encoding.is_of_text or encoding.categories.dtype.kind == "i"):
        _refuse(f"categories such as {values[0]!r}: they are text or integers")
    return values


def _refuse(what: str) -> None:
    raise NotExpressibleError("XGBoost", what)


def _entry(values: list[Any] | None) -> dict[str, Any]:
    if values is None:
        return {"offsets": np.empty(0, dtype=np.int32), "values": np.empty(0, dtype=np.int8)}
    if not isinstance(values[0], str):
        return {"type": _INT64, "values": np.array(values, dtype=np.int64)}
    words = [value.encode("utf-8") for value in values]
    return {
        "offsets": np.append(0, np.cumsum([len(word) for word in words])).astype(np.int32),
        "values": np.frombuffer(b"".join(words), dtype=np.int8),
    }


def _order(values: list[Any]) -> np.ndarray:
    """Return the places of values in increasing order."""
    keys = values
    if isinstance(values[0], str):
        keys = [np.frombuffer(v.encode("utf-8"), dtype=np.int8).tolist() for v in values]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__))
