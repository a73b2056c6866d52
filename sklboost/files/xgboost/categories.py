"""The values of categories in XGBoost's files, since its version 3.1: text or integers.

``enc`` has an entry for each feature, empty for numbers. Text is stored as bytes, all one after
the other, and where each begins. ``sorted_idx`` are the places of the values in increasing order,
feature after feature, by which XGBoost finds them.

XGBoost looks up the values of columns of a categorical dtype, and takes all other numbers for
places in the list. So small integers are in the list at their own places, with those between them:
either way they are the same category.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from sklboost.data.encoding import MOST_CATEGORIES, Encoding
from sklboost.data.frames.adapter import as_objects
from sklboost.files.sections import ModelFileError, NotExpressibleError, Section

# The types of arrays of integers, as XGBoost numbers them: from int8 to int64.
_INT8, _INT64 = 9, 15
# It counts characters where it should count bytes, so that other values are found.
_CUT_OFF = "XGBoost 3.2 cuts text off that is not ASCII"


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
    """Return the categories by XGBoost's codes; None for numbers, and for codes of the user's."""
    if encoding.kind != "category" or encoding.is_coded:
        if not (encoding.is_plain or encoding.is_coded):
            _refuse(f"features of the kind {encoding.unit or 'large integer'}")
        return None
    order = np.argsort(encoding.codes, kind="stable").tolist()
    values = [encoding.listed_categories[place] for place in order]
    if len(values) > encoding.n_categories:
        _refuse(f"feature with {len(values)} categories of {encoding.n_categories} codes")
    if not values:  # its own frames cannot have such columns either
        _refuse("category features without a category, all values of which are missing")
    if encoding.are_integers_below(MOST_CATEGORIES):
        return list(range(int(max(values)) + 1))
    if encoding.is_declared and encoding.categories.dtype.kind in "iuf":
        largest = MOST_CATEGORIES - 1
        _refuse(f"categories in columns of numbers but integers from 0 to {largest}")
    if not (encoding.is_of_text or encoding.categories.dtype.kind == "i"):
        _refuse(f"categories such as {values[0]!r}: they are text or integers")
    for value in values:
        if isinstance(value, str) and not value.isascii():
            _refuse(f"categories such as {value!r}: {_CUT_OFF}")
    return values


def written_codes(encoding: Encoding) -> np.ndarray:
    """Return XGBoost's code for each code of a category whose values can be stored."""
    if not encoding.are_integers_below(MOST_CATEGORIES):
        return np.arange(encoding.n_categories)
    return encoding.categories[np.argsort(encoding.codes, kind="stable")].astype(np.int64)


def _refuse(what: str) -> None:
    raise NotExpressibleError("XGBoost", what)


def _entry(values: list[Any] | None) -> dict[str, Any]:
    if values is None:
        return {"offsets": np.empty(0, dtype=np.int32), "values": np.empty(0, dtype=np.int8)}
    if not isinstance(values[0], str):
        return {"type": _INT64, "values": np.array(values, dtype=np.int64)}
    words = [value.encode("ascii") for value in values]
    return {
        "offsets": np.append(0, np.cumsum([len(word) for word in words])).astype(np.int32),
        "values": np.frombuffer(b"".join(words), dtype=np.int8),
    }


def _order(values: list[Any]) -> np.ndarray:
    """Return the places of values in increasing order."""
    return np.array(sorted(range(len(values)), key=values.__getitem__))


def read_categories(
    section: Section | None, is_category: Sequence[bool], most_listed: Sequence[int]
) -> tuple[Encoding, ...] | None:
    """Return how the values of features become numbers; None if all are numbers.

    Parameters
    ----------
    section : Section or None
        Stored values; None, or a section without entries, if there are none.
    is_category : sequence of bool
        Which features are categories, as far as the file says it.
    most_listed : sequence of int
        The largest code in the splits of each feature, -1 if there is none.
    """
    columns: list[list[Any] | None] = [None] * len(is_category)
    entries = None if section is None else section.get("enc")
    if entries is not None and len(entries) > 0:
        if len(entries) != len(columns):
            entries.fail(f"must have {len(columns)} elements, and has {len(entries)}")
        columns = [_read_values(entry) for entry in entries]
    plain, codes = Encoding(), np.arange(max(most_listed, default=-1) + 1)  # shared
    encodings = []
    for values, is_declared, most in zip(columns, is_category, most_listed, strict=True):
        if values is not None:
            if most >= len(values):
                raise ModelFileError(f"cats.enc: there is no category {most}, as splits have")
            encodings.append(_encoding(values))
        elif is_declared or most >= 0:  # codes that the user has made
            own = codes[: most + 1]
            encodings.append(Encoding("category", "", codes[:0], own, own, True, True))
        else:
            encodings.append(plain)
    return None if all(encoding.is_plain for encoding in encodings) else tuple(encodings)


def _read_values(entry: Section) -> list[Any] | None:
    """Return the categories by code; None for numbers."""
    values = entry["values"]
    if len(values) == 0:
        return None
    if len(values) > MOST_CATEGORIES:
        values.fail(f"more than {MOST_CATEGORIES} categories are not supported")
    if (kind := entry.get("type")) is not None:
        kind.integer(_INT8, _INT64)
        found: list[Any] = values.integers(-(2**63), 2**63 - 1).tolist()
    else:
        data = values.integers(-128, 127).astype(np.int8).tobytes()
        if not data.isascii():
            values.fail(f"text of categories beyond ASCII: {_CUT_OFF}; train with other names")
        ends = entry["offsets"].integers(0, len(data))
        if (np.diff(ends) < 0).any():
            entry["offsets"].fail("do not increase")
        found = [data[i:j].decode("ascii") for i, j in itertools.pairwise(ends.tolist())]
    if not found:
        entry["offsets"].fail("there is no category")
    if len(set(found)) < len(found):
        values.fail("a category occurs twice")
    return found


def _encoding(values: list[Any]) -> Encoding:
    order = sorted(range(len(values)), key=values.__getitem__)
    ordered = [values[i] for i in order]
    categories = as_objects(ordered) if isinstance(values[0], str) else np.array(ordered)
    is_declared = values == list(range(len(values)))  # a number is the category it is the place of
    return Encoding(
        "category", "", categories=categories, codes=np.array(order), is_declared=is_declared
    )
