"""Dates in columns of text or of Python's objects, read as times.

The year has four digits and comes first (2024-01-31) or last: 31.1.2024 with points, and 1/31/2024
or 31/1/2024, of which the values of a training decide. A time of day, and how far it is from UTC,
may follow.
"""

import re
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np

from sklboost.data.frames.adapter import ColumnAdapter
from sklboost.data.frames.numpy_arrays import NumpyColumn

_DATE = re.compile(
    r"(?:(\d{4})([-/.])(\d{1,2})\2(\d{1,2})|(\d{1,2})([-/.])(\d{1,2})\6(\d{4}))"
    r"(?:[T ](\d{1,2}:\d\d(?::\d\d(?:\.\d{1,9})?)?) ?(?:(Z|UTC)|([+-]\d\d):?(\d\d)?)?)?"
)


# So many distinct values, the first ones, are looked at for dates.
_SAMPLE = 20
# If so many are dates, the others are mistakes, or may be.
_NEARLY_ALL, _MANY = 0.9, 0.5
_ORDERS = ("ymd", "mdy", "dmy")
_REMEDY = (
    "give None where there is no date, convert the column to dates, as pandas.to_datetime does, "
    "or, if these are categories, list the categories in categorical_features, this column among "
    "them"
)


class DateColumn(NumpyColumn):
    """A column of dates as one of times; `order` is that of day, month and year in text."""

    def __init__(self, column: ColumnAdapter, order: str) -> None:
        codes, values = column.categories()
        is_date = np.array([not _is_absent(value) for value in values], dtype=bool)
        instants, is_in_utc = _instants(values[is_date].tolist(), order)
        times = np.full(len(values) + 1, "NaT", dtype=instants.dtype)  # of -1, the last one, too
        times[:-1][is_date] = instants
        super().__init__(
            times[codes], np.isnat(times)[codes], column.dtype_name, "UTC" if is_in_utc else ""
        )
        self.order = "" if order == "ymd" else order


def as_dates(column: ColumnAdapter) -> DateColumn | None:
    """Read a column, with a value at least, if all values are dates; else return None."""
    texts = column.categories()[1].tolist()
    if not _has_dates(texts):
        return None
    found: list[DateColumn] = []
    reasons = {}
    for order in _ORDERS:
        try:
            found.append(DateColumn(column, order))
        except ValueError as error:
            reasons[order] = error
            continue
        if order == "ymd":
            return found[0]
    if len(found) == 2 and any(map(_is_in_doubt, texts)):
        raise ValueError(
            f"dates such as {next(filter(_is_in_doubt, texts))!r} have the month or the day first, "
            'and no value tells which: convert them, pandas.to_datetime(..., format="%d/%m/%Y") say'
        )
    if found:
        return found[0]
    share, order, other = _read_most(column)
    if other is None:  # they are dates, but not of one kind
        raise ValueError(f"{reasons[order]}: convert them, pandas.to_datetime(..., utc=True) say")
    if share >= _NEARLY_ALL:
        raise ValueError(f"{other!r} is no date, and nearly all other values are: {_REMEDY}")
    return None


def warning_of_dates(column: ColumnAdapter) -> str:
    """Return a warning if half of the values or more are dates, but not all; else empty text."""
    if not _has_dates(column.categories()[1].tolist()):
        return ""
    share, _, other = _read_most(column)
    if share < _MANY:
        return ""
    return f"{other!r} is no date, and many other values are, so all are categories: {_REMEDY}"


def _has_dates(values: list[Any]) -> bool:
    return any(_parts(value, order) for value in values[:_SAMPLE] for order in _ORDERS)


def _read_most(column: ColumnAdapter) -> tuple[float, str, Any]:
    """Return the share of dates in the order that reads most, the order, and what it does not read.

    The share is that of the rows or of the distinct values, whichever is larger. What is not read
    is the first value that is no date; None: all are.
    """
    codes, values = column.categories()
    dates_by_order = {}
    for order in _ORDERS:
        read = [_parts(value, order) for value in values.tolist()]
        is_read = [parts is not None and _is_real(parts[0]) for parts in read]
        dates_by_order[order] = np.array(is_read) | np.array([*map(_is_absent, values.tolist())])
    order = max(_ORDERS, key=lambda order: dates_by_order[order].sum())
    is_date, present = dates_by_order[order], codes[codes >= 0]
    others = present[~is_date[present]]
    share = max(is_date.mean(), is_date[present].mean())
    return share, order, values.tolist()[others[0]] if len(others) > 0 else None


def _is_absent(value: Any) -> bool:
    """Whether text stands for no date, as it does for pandas."""
    return isinstance(value, str) and value.strip() in ("", "NaT")


def _is_in_doubt(value: Any) -> bool:
    """Whether text has the year last, and says by no points that the day is first."""
    match = _DATE.fullmatch(value.strip()) if isinstance(value, str) else None
    return match is not None and match[6] in ("/", "-")


def as_durations(column: ColumnAdapter) -> NumpyColumn | None:
    """Read a column of Python's objects, a value at least, if all are durations; else None."""
    if not all(isinstance(value, timedelta | np.timedelta64) for value in column.examples()):
        return None
    codes, values = column.categories()
    spans = [numpy_time(value) for value in values.tolist()]
    in_finest = np.array(spans)
    for span, of_finest in zip(spans, in_finest, strict=True):
        if of_finest.astype(span.dtype) != span:
            unit = np.datetime_data(in_finest.dtype)[0]
            raise ValueError(
                f"{span.item()!r} is too long to be counted in {unit!r}, as others are"
            )
    known = np.append(in_finest, np.timedelta64("NaT"))[codes]  # -1 is the last one
    return NumpyColumn(known, codes < 0, column.dtype_name)


def numpy_time(value: Any) -> Any:
    """Return a time without a zone, or a duration, of Python, pandas or NumPy as one of NumPy."""
    if isinstance(value, np.generic):
        return value
    # pandas has nanoseconds, which Python has not
    return getattr(value, "asm8", np.array(value, "M8" if isinstance(value, date) else "m8")[()])


def _instants(values: Sequence[Any], order: str) -> tuple[np.ndarray, bool]:
    """Return dates as datetime64, and whether they are in UTC; ValueError for what is none."""
    parts = [_parts(value, order) for value in values]
    for value, known in zip(values, parts, strict=True):
        if known is None:
            raise ValueError(f"{value!r} is no date")
    texts = [known[0] for known in parts if known is not None]
    offsets = [known[1] for known in parts if known is not None]
    if len({offset is None for offset in offsets}) > 1:
        raise ValueError(f"{values[0]!r} and others are dates with a time zone and without one")
    is_fine = any(len(text) > len("2024-01-31T12:00:00.000000") for text in texts)
    try:
        instants = np.array(texts, dtype="datetime64[ns]" if is_fine else "datetime64[us]")
    except ValueError:
        wrong = next(value for value, text in zip(values, texts, strict=True) if not _is_real(text))
        raise ValueError(f"{wrong!r} is no date") from None
    if is_fine and not all("1700" <= text[:4] < "2200" for text in texts):
        raise ValueError("nanoseconds are counted from the years 1700 to 2199 alone")
    minutes = np.array([offset or 0 for offset in offsets], dtype="timedelta64[m]")
    return instants - minutes, any(offset is not None for offset in offsets)


def _is_real(text: str) -> bool:
    try:
        np.datetime64(text)
    except ValueError:
        return False
    return True


def _parts(value: Any, order: str) -> tuple[str, int | None] | None:
    """Return a date as NumPy reads it, and the minutes from UTC, if it says so; None: it is none.

    `order`: where the year is last, "mdy" or "dmy"; "ymd": it never is.
    """
    if isinstance(value, date):  # datetime and pandas' Timestamp are dates
        value = value.isoformat()
    elif isinstance(value, np.datetime64):
        value = str(value)
    match = _DATE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return None
    year, _, month, day, first, mark, second, last, clock, utc, hours, minutes = match.groups()
    if year is None:
        if order == "ymd":
            return None
        year, month, day = last, first, second
        if order == "dmy" or mark == ".":
            month, day = second, first
    text = f"{year}-{month:0>2}-{day:0>2}"
    if clock is not None:
        text += f"T{'0' if clock[1] == ':' else ''}{clock}"
    if hours is not None:
        offset = int(hours) * 60 + int(f"{hours[0]}{minutes or 0}")
        return text, offset
    return text, 0 if utc else None
