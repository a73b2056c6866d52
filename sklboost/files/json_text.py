"""Documents as JSON (RFC 8259), read strictly."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from sklboost.files.errors import ModelFileError
from sklboost.files.sections import plain_number


def read_json(data: bytes, name: str) -> Any:
    """Return the document in JSON text; `name` is the file, for errors.

    The words ``NaN`` and ``Infinity``, which XGBoost writes, are numbers.

    Raises
    ------
    ModelFileError
        If it is no JSON, a key occurs twice in an object, or it is nested too deeply.
    """
    return _read(data, name, lambda text: (_DECODER.decode(text), len(data)))[0]


def read_json_start(data: bytes, start: int, name: str) -> tuple[Any, int]:
    """Return the value that begins at a byte, and the byte behind it; the rest is not read.

    `data` is ASCII.
    """
    return _read(data, name, lambda text: _DECODER.raw_decode(text, start))


def _read(data: bytes, name: str, read: Callable[[str], tuple[Any, int]]) -> tuple[Any, int]:
    try:
        return read(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{name}: byte {error.start} is no UTF-8 text") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ModelFileError(f"{name}: no JSON at {where}: {error.msg}") from None
    except RecursionError:
        raise ModelFileError(f"{name}: objects and lists are nested too deeply") from None
    except ValueError as error:  # a key twice; an integer of thousands of digits
        raise ModelFileError(f"{name}: {error}") from None


def write_json(document: Any) -> bytes:
    """Return the JSON text of a document; ndarrays become lists."""
    text = json.dumps(document, default=_as_list, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        (repeated, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {repeated!r} occurs more than once in an object")
    return found


def _as_list(array: Any) -> list[Any]:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{array!r} is nothing that a document holds")
    listed = (_shortened(array) if array.dtype == np.float32 else array).tolist()
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return [plain_number(value) for value in listed]
    return listed


@np.errstate(all="ignore")
def _shortened(array: np.ndarray) -> np.ndarray:
    """Return float32 numbers with as few digits as tell them apart, nine at most; float64."""
    exact = array.astype(np.float64)
    shortest, first_digit = exact, np.floor(np.log10(np.abs(exact)))
    for n_digits in (9, 8, 7, 6):
        digits = n_digits - 1 - first_digit
        # in two factors, neither of which overflows
        first = 10.0 ** np.clip(digits, -20.0, 20.0)
        second = 10.0 ** (digits - np.clip(digits, -20.0, 20.0))
        rounded = np.rint(exact * first * second) / first / second
        shortest = np.where(rounded.astype(np.float32) == array, rounded, shortest)
    return shortest


_DECODER = json.JSONDecoder(object_pairs_hook=_without_repeats)
