"""How values of features become numbers, as a section of a model file."""

import re
from typing import Any

import numpy as np

from sklboost.data.encoding import MOST_CATEGORIES, Encoding, as_keys
from sklboost.files.sections import Section
from sklboost.files.values import check_keys, read_value, value_document
from sklboost.tree.predict.integer_sums import narrow_integers

_KINDS = ("number", "time", "category")
_UNIT = re.compile(r"(datetime64|timedelta64)\[(D|h|m|s|ms|us|ns|ps|fs|as)\]")


def encoding_document(encoding: Encoding) -> dict[str, Any]:
    """Return the document of an encoding."""
    return {
        "kind": encoding.kind,
        "unit": encoding.unit,
        "ranks": value_document(encoding.ranks),
        "categories": value_document(encoding.categories),
        "codes": narrow_integers(encoding.codes),
        "is_declared": encoding.is_declared,
        "is_coded": encoding.is_coded,
        "timezone": encoding.timezone,
    }


def read_encoding(section: Section) -> Encoding:
    """Return the encoding of a section."""
    kind, unit = section["kind"].text(_KINDS), section["unit"].text()
    if not (_UNIT.fullmatch(unit) if kind == "time" else unit == ""):
        section["unit"].fail(f"{unit!r} is no unit of a {kind}")
    ranks, categories = (read_vector(section[name]) for name in ("ranks", "categories"))
    if ranks.dtype not in (np.int64, np.uint64) or not (ranks[1:] > ranks[:-1]).all():
        section["ranks"].fail("must be increasing integers of 8 bytes")
    if kind == "category" and len(ranks) > 0:
        section["ranks"].fail("there are none of a category")
    n_known = 0 if kind != "category" else len(categories)
    codes = section["codes"].integers(0, MOST_CATEGORIES - 1, n_known)
    used = np.unique(codes)
    if len(used) > 0 and used[-1] != len(used) - 1:
        section["codes"].fail("a code has no category")
    declared, coded = section["is_declared"].flag(), section.get("is_coded")
    is_coded = coded is not None and coded.flag()
    is_counted = categories.dtype.kind in "iu" and np.array_equal(categories, np.arange(n_known))
    if is_coded and not is_counted:
        section["categories"].fail("must be 0, 1, 2, ..., for they are codes")
    try:
        check_keys(section["categories"], as_keys(categories))
    except ValueError as error:  # times that are too far away
        section["categories"].fail(str(error))
    if len(categories) != n_known:
        section["categories"].fail(f"there are none of a {kind}")
    zone = "" if (known := section.get("timezone")) is None else known.text()
    encoding = Encoding(kind, unit, ranks, categories, codes, declared, is_coded, zone)
    if len(encoding.code_of) != n_known:
        section["categories"].fail("a category occurs twice")
    return encoding


def read_vector(section: Section) -> np.ndarray:
    """Return the array of one dimension of a section."""
    value = read_value(section)
    if not isinstance(value, np.ndarray) or value.ndim != 1:
        section.fail("must be an array of one dimension")
    return value
