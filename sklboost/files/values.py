"""Values of parameters, labels and categories as documents: JSON knows fewer types than Python."""

import datetime
import decimal
import math
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sklboost.data.encoding import MOST_CATEGORIES, Encoding, as_keys
from sklboost.files.sections import DocumentSection, ModelFileError, plain_number
from sklboost.tree.predict.trees import narrow_integers

_INT64 = np.iinfo(np.int64)
_NUMERIC = re.compile(r"[<>|][biuf][1248]")
_TEXT = re.compile(r"[<>]U\d{1,6}")
_TIMES = re.compile(r"[<>][mM]8\[(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\]")
_MOST_DIGITS = 4000  # of an integer; Python takes the square of their number to read them
# An array of text of fixed width may have so many characters, and so many for each text and each
# character of a text; others are written as arrays of objects. So no array takes much more room
# than the file.
_SOME_CHARACTERS, _CHARACTERS_PER_TEXT, _CHARACTERS_PER_CHARACTER = 1000, 36, 12
# Of keys, labels and names. Integers and what is made of them can be chosen to have the same hash,
# and a dict of thousands of these takes minutes.
_MOST_OF_ONE_HASH = 100
# Of an array without elements, along its axes: a loop over one of shape (10**18, 0) has no end.
_MOST_EMPTY = 1000


class NotStorableError(ValueError):
    """A value has no place in a model file."""


def value_document(value: Any) -> Any:
    """Return the document of a value; NotStorableError for code and unknown classes."""
    kind = type(value)
    if value is None or kind in (str, bool):
        return value
    if kind is int:
        return value if _INT64.min <= value <= _INT64.max else {"int": str(value)}
    if kind is float:
        plain = plain_number(value)
        return {"float": plain} if isinstance(plain, str) else plain
    if kind is list:
        return [value_document(part) for part in value]
    if kind in (tuple, set, frozenset):
        parts = [value_document(part) for part in value]
        # sets in an order that does not change from one process to the next
        return {kind.__name__: parts if kind is tuple else sorted(parts, key=repr)}
    if kind in (datetime.date, datetime.datetime, datetime.time):
        return {kind.__name__: value.isoformat()}
    if kind in (decimal.Decimal, uuid.UUID):
        return {kind.__name__: str(value)}
    if kind is bytes:
        return {"bytes": value.hex()}
    if kind is datetime.timedelta:
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    if isinstance(value, np.ndarray):
        return {"array": _array_document(value)}
    if isinstance(value, np.generic):
        return {"scalar": _array_document(value.reshape(1))}
    if isinstance(value, Mapping):
        pairs = value.items()
        return {"dict": [[value_document(key), value_document(of_key)] for key, of_key in pairs]}
    name = f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
    if name in ("pandas.Timestamp", "pandas.Timedelta") and getattr(value, "tz", None) is None:
        return {name: value_document(value.to_numpy())}
    if name == "pandas.Interval":
        return {name: [value_document(value.left), value_document(value.right), value.closed]}
    raise NotStorableError(
        f"{value!r} is of type {kind.__name__}, which has no place in a model file"
    )


def _array_document(array: np.ndarray) -> dict[str, Any]:
    """Return dtype, shape and values in C order."""
    kind, flat, dtype = array.dtype.kind, np.ravel(array), array.dtype.str
    values: Any
    if kind in "mM":
        values = flat.astype(flat.dtype.newbyteorder("=")).view(np.int64)
    elif kind == "b":
        values = flat.astype(np.uint8)
    elif kind in "iuf" and array.dtype.itemsize <= 8:
        exact = np.float64 if kind == "f" else np.int64
        # what int64 cannot hold
        is_large = kind == "u" and flat.size > 0 and int(flat.max()) > _INT64.max
        values = list(map(value_document, flat.tolist())) if is_large else flat.astype(exact)
    elif kind in "UO":
        values = [value_document(part) for part in flat.tolist()]
        if kind == "U" and not _is_text(dtype, flat.tolist()):
            dtype = "|O"
    else:
        raise NotStorableError(f"an array of {array.dtype} has no place in a model file")
    return {"dtype": dtype, "shape": list(array.shape), "values": values}


def _is_text(dtype: str, texts: Sequence[str]) -> bool:
    """Whether an array of texts of fixed width may be in a file."""
    n_used, n_padded = sum(map(len, texts)), np.dtype(dtype).itemsize // 4 * len(texts)
    by_texts = _CHARACTERS_PER_TEXT * len(texts) + _CHARACTERS_PER_CHARACTER * n_used
    return bool(_TEXT.fullmatch(dtype)) and n_padded <= _SOME_CHARACTERS + by_texts


def read_value(section: DocumentSection) -> Any:
    """Return the value of a section, as :func:`value_document` writes it; else ModelFileError."""
    value = section.value
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list):
        # in its place: no second list for each list in the file
        value[:] = map(read_value, section)
        return value
    if not isinstance(value, dict):
        return value
    kind = next(iter(value), "")
    if len(value) != 1 or kind not in _READERS:
        shown = ", ".join(map(repr, [*value][:3]))[:60]
        section.fail(f"must have one key, the name of a type, and has {len(value)}: {shown}")
    try:
        return _READERS[kind](section[kind])
    except ModelFileError:
        raise
    except (TypeError, ValueError, ArithmeticError, ImportError) as error:  # a list as a key, say
        section.fail(f"is no {kind}: {error}")


def _read_integer(section: DocumentSection) -> int:
    text = section.text()
    if not re.fullmatch(rf"-?\d{{1,{_MOST_DIGITS}}}", text, re.ASCII):
        section.fail(f"must be the digits of an integer, {_MOST_DIGITS} at most")
    return int(text)


def _read_dict(section: DocumentSection) -> dict[Any, Any]:
    pairs = read_value(section)
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        section.fail("must be a list of pairs of key and value")
    check_keys(section, [key for key, _ in pairs])
    found = dict(pairs)
    if len(found) < len(pairs):
        section.fail("a key occurs twice")
    return found


def check_keys(section: DocumentSection, keys: Sequence[Any]) -> None:
    """Check that values can be keys of a dict, and were not chosen to make it slow."""
    try:
        hashes = np.fromiter(map(hash, keys), np.int64, len(keys))
    except TypeError as error:  # such as a list
        section.fail(str(error))
    if np.unique(hashes, return_counts=True)[1].max(initial=0) > _MOST_OF_ONE_HASH:
        section.fail(f"more than {_MOST_OF_ONE_HASH} keys have the same hash")


def read_array(section: DocumentSection) -> np.ndarray:
    """Return an array of numbers, text, times or objects."""
    dtype = read_dtype(section["dtype"])
    shape = section["shape"].integers(0, _INT64.max).tolist()
    values, size = section["values"], math.prod(shape)
    if len(values) != size:
        values.fail(f"must have {size} elements, and has {len(values)}")
    if math.prod(max(n, 1) for n in shape) > max(size, _MOST_EMPTY):
        section["shape"].fail("an array without elements is too long")
    if dtype.kind in "mM":
        array = values.integers(_INT64.min, _INT64.max, size).view(dtype.newbyteorder("="))
        return array.astype(dtype).reshape(shape)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return values.numbers(size, finite=False).astype(dtype).reshape(shape)
    if dtype.kind == "b":
        return values.integers(0, 1, size).astype(dtype).reshape(shape)
    listed = read_value(values)
    if dtype.kind in "iu":
        if not set(map(type, listed)) <= {int}:
            values.fail("must be integers")
        return np.array(listed, dtype=dtype).reshape(shape)
    if dtype.kind == "U":
        width = dtype.itemsize // 4
        if not all(isinstance(text, str) and len(text) <= width for text in listed):
            values.fail(f"must be texts of at most {width} characters")
        if not _is_text(dtype.str, listed):
            section["dtype"].fail(f"is too wide for texts of {sum(map(len, listed))} characters")
    array = np.empty(size, dtype=dtype)
    array[:] = np.fromiter(listed, dtype=object, count=size)
    return array.reshape(shape)


def read_dtype(section: DocumentSection) -> np.dtype:
    """Return the dtype of an array in a file."""
    text = section.text()
    is_known = any(pattern.fullmatch(text) for pattern in (_NUMERIC, _TIMES, _TEXT))
    if text != "|O" and not is_known:
        section.fail(f"{text!r} is no dtype of a model file")
    try:
        return np.dtype(text)
    except TypeError as error:  # such as floats of one byte
        section.fail(str(error))


def _read_scalar(section: DocumentSection) -> Any:
    array = read_array(section)
    if array.size != 1:
        section.fail("must be an array of one element")
    return array.reshape(-1)[0]


def _read_set(section: DocumentSection) -> list[Any]:
    """Return values that can be in a set."""
    values = [read_value(part) for part in section]
    check_keys(section, values)
    return values


def _read_interval(section: DocumentSection) -> Any:
    import pandas as pd

    left, right, closed = section
    closed.text(("left", "right", "both", "neither"))
    return pd.Interval(read_value(left), read_value(right), closed.value)


def _read_time(section: DocumentSection, name: str) -> Any:
    import pandas as pd

    value = read_value(section)
    if not isinstance(value, np.datetime64 | np.timedelta64):
        section.fail("must be a scalar of times")
    return getattr(pd, name)(value)


_READERS: dict[str, Callable[[DocumentSection], Any]] = {
    "int": _read_integer,
    "float": DocumentSection.number,
    "tuple": lambda section: tuple(map(read_value, section)),
    "set": lambda section: set(_read_set(section)),
    "frozenset": lambda section: frozenset(_read_set(section)),
    "dict": _read_dict,
    "date": lambda section: datetime.date.fromisoformat(section.text()),
    "datetime": lambda section: datetime.datetime.fromisoformat(section.text()),
    "time": lambda section: datetime.time.fromisoformat(section.text()),
    "timedelta": lambda section: datetime.timedelta(*section.integers(-(10**9), 10**9, 3).tolist()),
    "array": read_array,
    "scalar": _read_scalar,
    "pandas.Timestamp": lambda section: _read_time(section, "Timestamp"),
    "pandas.Timedelta": lambda section: _read_time(section, "Timedelta"),
    "bytes": lambda section: bytes.fromhex(section.text()),
    "Decimal": lambda section: decimal.Decimal(section.text()),
    "UUID": lambda section: uuid.UUID(section.text()),
    "pandas.Interval": _read_interval,
}


# --- encodings


_ENCODING_KINDS = ("number", "time", "category")
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
        "date_order": encoding.date_order,
    }


def read_encoding(section: DocumentSection) -> Encoding:
    """Return the encoding of a section."""
    kind, unit = section["kind"].text(_ENCODING_KINDS), section["unit"].text()
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
    order = "" if (known := section.get("date_order")) is None else known.text(("", "mdy", "dmy"))
    encoding = Encoding(kind, unit, ranks, categories, codes, declared, is_coded, zone, order)
    if len(encoding.code_of) != n_known:
        section["categories"].fail("a category occurs twice")
    return encoding


def read_vector(section: DocumentSection) -> np.ndarray:
    """Return the array of one dimension of a section."""
    value = read_value(section)
    if not isinstance(value, np.ndarray) or value.ndim != 1:
        section.fail("must be an array of one dimension")
    return value
