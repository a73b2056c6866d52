"""Encodings of features as numbers: learnt at fit, used again at every prediction.

:func:`fit_encoding` learns an :class:`Encoding` from a column of the user's table, :func:`encode`
makes a :class:`~sklboost.data.table.Column` by it. A value becomes the same number whichever
library holds it: categories are numbered in increasing order of their values, not in the order of
the frame; times count in one unit; integers that float64 cannot tell apart are replaced by their
rank, so that a threshold lies between the two it was meant to divide.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from numbers import Number
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from sklboost.data.cuts import heaviest_first
from sklboost.data.dates import DateColumn, as_dates, as_durations, numpy_time
from sklboost.data.frames.adapter import ColumnAdapter, FrameAdapter, Kind, as_objects, is_wide
from sklboost.data.table import Column, floats_below
from sklboost.engine.cached import cached_property

# With the bin for missing values, one less than 16 bits can number.
MOST_CATEGORIES = 65_534
# Units of times in attoseconds, the coarsest first.
_UNITS = {"D": 86_400 * 10**18, "h": 3600 * 10**18, "m": 60 * 10**18}
_UNITS |= {"s": 10**18, "ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 1000, "as": 1}
_COARSE_UNITS = ("D", "h", "m", "s", "ms", "us")
_LARGEST = np.iinfo(np.int64).max
# From here on, ten digits do not say which integer a number is.
_FEW_DIGITS = 1e10


def _no_values() -> np.ndarray:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Encoding:
    """How the values of one feature become numbers."""

    kind: str = "number"  # or "time", or "category"
    # of times, such as "datetime64[ns]": the coarsest in which all times of the fit are whole
    unit: str = ""
    # int64 or uint64: distinct values, increasing, whose position is the number; empty: they are
    # numbers themselves
    ranks: np.ndarray = field(default_factory=_no_values)
    categories: np.ndarray = field(default_factory=_no_values)  # in increasing order
    # int64: of each category; several share the last one if there are very many
    codes: np.ndarray = field(default_factory=_no_values)
    is_declared: bool = False  # a category because the user said so: its column may be of any kind
    # whether values are codes already, as in some models of other libraries: 0, 1, ..., which
    # `categories` lists. All other numbers share one further code, the last.
    is_coded: bool = False
    # in which times are shown, such as "Europe/Berlin"; the numbers count from 1970 in UTC
    timezone: str = ""
    date_order: str = ""  # of times that are text whose year is last: "mdy" or "dmy"

    @cached_property
    def n_categories(self) -> int:
        """Number of codes of a category; 0 for numbers and times."""
        return int(self.codes.max(initial=-1)) + 1 + self.is_coded

    @property
    def is_plain(self) -> bool:
        """Whether values are numbers as they are."""
        return self.kind == "number" and len(self.ranks) == 0

    @cached_property
    def code_of(self) -> dict[Any, int]:
        """The code of each category."""
        return dict(zip(as_keys(self.categories), self.codes.tolist(), strict=True))

    @cached_property
    def is_of_text(self) -> bool:
        """Whether all category values are text."""
        return self.kind == "category" and all(isinstance(v, str) for v in self.categories)

    def originals(self, numbers: np.ndarray) -> np.ndarray:
        """Return thresholds, or numbers of rows, as values of a feature that is no category.

        Times are times, in UTC, and large integers are themselves. ``x < value`` says the same of
        every integer, and of every time in nanoseconds, as ``x < threshold`` of its number.
        """
        if self.is_plain:
            return numbers
        wholes = np.floor(numbers)
        rests, steps = numbers - wholes, np.spacing(np.abs(numbers))
        wholes = wholes.astype(np.int64)
        if len(self.ranks) > 0:
            # what lies between two ranks is a half: above the lower one, by as little as there is
            rests, steps = (rests > 0.0) * np.finfo(np.float64).tiny, np.zeros(len(numbers))
            wholes = self.ranks[np.clip(wholes, 0, len(self.ranks) - 1)]
        if self.kind != "time":
            return wholes + (rests > 0.0).astype(wholes.dtype)
        return _as_times(wholes, rests, steps, self.unit)

    def threshold(self, number: float) -> Any:
        """Return one threshold as :meth:`originals` does; NaT for a time that no other is below."""
        if np.isfinite(number):
            value = self.originals(np.array([number]))[0]
            return value.item() if value.dtype.kind in "iuf" else value
        return np.array("NaT", self.unit)[()] if self.kind == "time" else float(number)

    def text(self, value: Any) -> str:
        """Write a threshold, a value or a category; times with the digits that they need."""
        if isinstance(value, float) and self.kind == "number":
            # all digits of an id, or whatever else has so many
            return f"{value:.10g}" if abs(value) < _FEW_DIGITS else repr(float(value))
        if isinstance(value, np.datetime64):
            return instant_text(value, self.timezone)
        if isinstance(value, np.timedelta64) and self.unit not in ("", str(value.dtype)):
            one = np.array(1, self.unit)[()]
            return f"{value / one:.15g} {str(2 * one).partition(' ')[2]}"  # 4.5 hours
        return str(value)

    @property
    def measure(self) -> str:
        """Say what the numbers count; nothing if they are the values."""
        if len(self.ranks) > 0:
            return " as its place, from 0, among the values of the training"
        if self.kind != "time":
            return ""
        plural = str(np.array(2, self.unit.replace("datetime", "timedelta"))[()]).partition(" ")[2]
        return f" in {plural}{' since 1970' if self.unit.startswith('datetime') else ''}"

    def text_of_number(self, number: float) -> str:
        """Write the value of a row, given as the number that it became."""
        place = math.ceil(number) if len(self.ranks) > 0 and math.isfinite(number) else number
        if place == number:
            return self.text(self.threshold(number))
        ends = [self.text(self.threshold(end)) for end in (place - 1, place)]
        if place <= 0:
            return f"below {ends[1]}"
        return f"above {ends[0]}" if place == len(self.ranks) else f"between {' and '.join(ends)}"

    @cached_property
    def listed_categories(self) -> list[Any]:
        """The categories as Python has them; times of NumPy in the coarsest unit."""
        values = self.categories
        if values.dtype.kind not in "mM":
            return values.tolist()
        return list(values.astype(_coarsest_unit(values.view(np.int64), str(values.dtype))))

    def are_integers_below(self, stop: int) -> bool:
        """Whether all categories are integers from 0 on, whatever their type; bools are none."""
        return all(
            type(own) in (int, float) and 0 <= own < stop and own == int(own)
            for own in self.listed_categories
        )

    def fits(self, kind: Kind, unit: str) -> bool:
        """Whether a column of this kind, times in this unit, can be encoded.

        Categories are matched by value, so they may come without their dtype: integers as floats,
        text as objects. Numbers where no category is one are refused, since they would be codes,
        unless no category is known at all.
        """
        if self.is_coded:
            return kind == "number"
        if self.is_declared:
            return kind != "unsupported"
        if self.kind == "category":
            if self.n_categories == 0:  # whatever comes is unknown
                return kind != "unsupported"
            return kind in ("category", "text", "mixed") or kind in self._kinds_of_categories
        if kind in ("text", "mixed"):  # dates and durations, or an error that names what is none
            return self.unit.startswith("datetime64") or (self.kind == "time" and kind == "mixed")
        return kind == self.kind and unit.partition("[")[0] == self.unit.partition("[")[0]

    @cached_property
    def _kinds_of_categories(self) -> set[str]:
        """Which of the kinds "number" and "time" the categories are of."""
        types = {type(own) for own in as_keys(self.categories)}
        times = {own for own in types if issubclass(own, np.datetime64 | np.timedelta64)}
        numbers = any(issubclass(own, Number | np.bool_) for own in types - times)
        return ({"time"} if times else set()) | ({"number"} if numbers else set())

    def __repr__(self) -> str:
        """Say all that two encodings can differ by."""
        known = list(zip(self.categories.tolist(), self.codes.tolist(), strict=True))
        flags = f"{self.is_declared} {self.is_coded}"
        order = self.date_order and f" {self.date_order}"
        return f"{self.kind} {self.unit} {self.ranks.tolist()} {known} {flags}{order}"


class Unknown(NamedTuple):
    """Category values that no row of the training has: the rows that have one, and the first."""

    rows: np.ndarray
    first: Any


# --- learning how values become numbers


def fit_encoding(
    adapter: FrameAdapter,
    i: int,
    weight: np.ndarray,  # float64, shape (n_rows,): rows of weight 0 are not looked at
    missing: float,  # a further value that counts as missing; NaN: none
    is_declared: bool,  # whether the user said that it is a category
    *,
    # whether text, bools and Python's objects may become categories, and dates among them times
    is_auto: bool = False,
) -> Encoding:
    """Learn from one column, which can be a feature or has no value, how values become numbers."""
    column = adapter.column(i)
    if is_auto and column.kind in ("text", "mixed") and not column.is_empty():
        try:
            column = as_durations(column) or as_dates(column) or column
        except ValueError as error:
            raise ValueError(f"{adapter.label(i)}: {error}") from error
    if is_declared or column.kind == "category" or (is_auto and is_category_by_itself(column)):
        known = _fit_category(*column.categories(), weight, missing, is_declared)
        return replace(known, timezone=column.timezone) if column.timezone else known
    if column.kind == "time":
        times, absent, unit = column.times()
        used = _used(times, absent, weight)
        coarse = _coarsest_unit(used, unit)
        ranks = _ranks(_in_unit(used, unit, coarse)[0])
        order = column.order if isinstance(column, DateColumn) else ""
        return Encoding("time", coarse, ranks, timezone=column.timezone, date_order=order)
    if column.kind != "number" or column.is_exact():
        return Encoding()
    values, absent = column.numbers()
    if not is_wide(values.dtype):
        return Encoding()
    absent = _all_missing(values, absent, missing)
    return Encoding(ranks=_ranks(_used(values, absent, weight)))


def is_category_by_itself(column: ColumnAdapter) -> bool:
    """Whether a column holds categories without a dtype that says so: text, bools, objects.

    Objects that are all numbers are numbers; without any value they are categories yet to come.
    """
    if column.kind != "number":
        return column.kind in ("text", "mixed")
    if column.dtype_name == "object":
        return all(isinstance(value, bool | np.bool_) for value in column.examples())
    return is_bool(column.dtype_name)


def is_bool(dtype_name: str) -> bool:
    """Whether a library calls its dtype of bools so: bool, boolean, Boolean, bool[pyarrow]."""
    return dtype_name.lower().startswith("bool")


def _used(values: np.ndarray, absent: np.ndarray | None, weight: np.ndarray) -> np.ndarray:
    """Return the values that are not missing, of rows with a positive weight."""
    is_used = weight > 0.0 if absent is None else (weight > 0.0) & ~absent
    return values if is_used.all() else values[is_used]


def _ranks(values: np.ndarray) -> np.ndarray:
    """Return the distinct values if float64 cannot hold them all, else an empty array."""
    is_exact = floats_below(values).astype(values.dtype) == values
    return _no_values() if is_exact.all() else np.unique(values)


def _coarsest_unit(times: np.ndarray, unit: str) -> str:
    """Return the coarsest unit in which all times are whole.

    Libraries store the same times in units of their own, and the model is to be the same.
    """
    for name in _COARSE_UNITS:
        coarse = f"{unit.partition('[')[0]}[{name}]"
        factor = _length(coarse) // _length(unit)
        if factor <= 1:
            break
        if not (times % min(factor, _LARGEST)).any():
            return coarse
    return unit


def _fit_category(
    codes: np.ndarray,
    values: np.ndarray,
    weight: np.ndarray,
    missing: float,
    is_declared: bool,
) -> Encoding:
    """Number the categories that rows of the training have."""
    is_known = codes >= 0
    masses = np.bincount(codes[is_known], weight[is_known], minlength=len(values))
    mass_of: dict[Any, float] = {}
    for category, mass in zip(as_keys(values), masses.tolist(), strict=True):
        if mass > 0.0 and category != missing:
            mass_of[category] = mass_of.get(category, 0.0) + mass
    categories = _in_order(list(mass_of))
    numbers = np.arange(len(categories))
    if len(categories) > MOST_CATEGORIES:
        heaviest = heaviest_first(np.array([mass_of[category] for category in categories]))
        kept = np.sort(heaviest[: MOST_CATEGORIES - 1])
        numbers = np.full(len(categories), MOST_CATEGORIES - 1)
        numbers[kept] = np.arange(len(kept))
    return Encoding("category", "", _no_values(), _as_array(categories), numbers, is_declared)


def list_encoding(categories: Sequence[Any], *, is_declared: bool) -> Encoding:
    """Return the encoding of categories whose codes are their places in a list."""
    place = {category: code for code, category in enumerate(categories)}
    if len(place) < len(categories):
        raise ValueError("a category occurs twice")
    if len(place) > MOST_CATEGORIES:
        raise ValueError(f"{len(place)} categories: at most {MOST_CATEGORIES} are supported")
    ordered = _in_order(list(place))
    codes = np.array([place[category] for category in ordered], dtype=np.int64)
    return Encoding("category", "", _no_values(), _as_array(ordered), codes, is_declared)


def as_keys(categories: np.ndarray) -> list[Any]:
    """Return categories as values whose hashes are equal whatever their dtypes were."""
    if categories.dtype == object:
        return [
            _as_numpy_time(own) if isinstance(own, datetime | timedelta) else own
            for own in categories.tolist()
        ]
    if categories.dtype.kind not in "mM":
        return categories.tolist()
    fine = categories.astype(f"{categories.dtype.kind}8[ns]")
    beyond = fine.astype(categories.dtype) != categories  # silently becomes another time
    if beyond.any():
        raise ValueError(
            f"{categories[beyond][0]} is a value of a category: times as categories must be from "
            "the years 1678 to 2261, for they are told apart by nanoseconds; take them as times, "
            "or turn them into text"
        )
    return list(fine)


def _as_numpy_time(value: datetime | timedelta) -> Any:
    """Return a time or duration of Python or pandas as NumPy has it, if it can."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value
    time = numpy_time(value)
    fine = time.astype(f"{time.dtype.kind}8[ns]")
    return fine if fine.astype(time.dtype) == time else value  # NumPy wraps around


def _in_order(categories: list[Any]) -> list[Any]:
    """Sort categories: numbers first, then type by type."""

    def place(category: Any) -> tuple[str, Any]:
        is_number = isinstance(category, Number | np.bool_)
        return "" if is_number else type(category).__name__, category

    try:
        return sorted(categories, key=place)
    except TypeError:  # of a type that has no order
        return sorted(categories, key=lambda category: (place(category)[0], repr(category)))


def _as_array(categories: list[Any]) -> np.ndarray:
    """Return categories as an array: not of objects if they are numbers or times of one type."""
    types = set(map(type, categories))
    if len(types) == 1 and types <= {bool, int, float, np.datetime64, np.timedelta64}:
        dtype: Any = None
        if types == {int} and categories[-1] > _LARGEST:  # NumPy would make floats of them
            dtype = np.uint64 if categories[0] >= 0 and categories[-1] < 2**64 else object
        return np.array(categories, dtype=dtype)
    return as_objects(categories)


# --- from values to numbers


def encode(
    adapter: FrameAdapter, i: int, encoding: Encoding, missing: float
) -> tuple[Column, Unknown | None]:
    """Return column number `i` as numbers, and which of its categories are unknown."""
    column = adapter.column(i)
    if encoding.is_coded and column.kind == "number":
        values, absent = column.numbers()
        # rounded down; the last code for what is none, NaN for NaN
        codes, last = np.floor(values.astype(np.float64)), encoding.n_categories - 1
        codes[(codes < 0) | (codes > last)] = last
        return Column(codes, _all_missing(values, absent, missing)), None
    if encoding.kind == "category":
        return _encode_categories(*column.categories(), encoding, missing)
    if column.kind != encoding.kind and column.is_empty():
        return Column(np.full(adapter.n_rows, np.nan)), None
    if encoding.unit.startswith("timedelta64") and column.kind != "time":
        try:
            durations = as_durations(column)
        except ValueError as error:
            raise ValueError(f"{adapter.label(i)}: {error}") from error
        if durations is None:
            raise ValueError(
                f"{adapter.label(i)} held durations at fit, and {column.examples()[0]!r} and "
                "others are not all durations: convert it, as pandas.to_timedelta does"
            )
        column = durations
    elif encoding.kind == "time" and column.kind != "time":
        try:
            column = DateColumn(column, encoding.date_order or "ymd")
        except ValueError as error:
            raise ValueError(
                f"{adapter.label(i)} held dates at fit, and {error}: give it dates as then, None "
                "where there is none"
            ) from error
    if encoding.kind == "time":
        return _encode_times(*column.times(), encoding), None
    values, absent = column.numbers()
    absent = _all_missing(values, absent, missing)
    if len(encoding.ranks) > 0:
        values = _rank_of(values, encoding.ranks)
    return Column(values, absent), None


def _all_missing(
    values: np.ndarray, absent: np.ndarray | None, missing: float
) -> np.ndarray | None:
    """Add the values equal to `missing` to the mask of those that are absent."""
    if math.isnan(missing):
        return absent
    is_missing = values == missing
    if not is_missing.any():
        return absent
    return is_missing if absent is None else is_missing | absent


def _encode_categories(
    codes: np.ndarray, values: np.ndarray, encoding: Encoding, missing: float
) -> tuple[Column, Unknown | None]:
    categories = as_keys(values)
    numbers = [encoding.code_of.get(category, np.nan) for category in categories]
    translation = np.array([*numbers, np.nan])  # the last for code -1, which is missing
    unknown = None
    strange = [i for i, n in enumerate(numbers) if n != n and categories[i] != missing]
    if strange:
        rows = np.flatnonzero(np.isin(codes, strange))
        if len(rows) > 0:
            unknown = Unknown(rows, categories[codes[rows[0]]])
    return Column(codes, None, translation), unknown


def _encode_times(
    times: np.ndarray, absent: np.ndarray | None, unit: str, encoding: Encoding
) -> Column:
    whole, fraction = _in_unit(times, unit, encoding.unit)
    if len(encoding.ranks) > 0:
        ranks = _rank_of(whole, encoding.ranks)
        if fraction is not None:  # above the rank that the whole has, if it has one
            ranks += 0.5 * ((fraction > 0.0) & (ranks == np.floor(ranks)))
        return Column(ranks, absent)
    if fraction is None:
        return Column(whole, absent)
    floats = floats_below(whole)
    sums = floats + fraction
    # rounded down, as large integers are: a time below a threshold is not carried up to it
    return Column(np.where(sums - floats > fraction, np.nextafter(sums, -np.inf), sums), absent)


def _in_unit(times: np.ndarray, unit: str, other: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Return times in another unit: whole ones, rounded down, and the rest; None: no rest."""
    if unit == other:
        return times, None
    step, other_step = _length(unit), _length(other)
    if step > other_step:
        factor = min(step // other_step, _LARGEST)
        farthest = _LARGEST // factor  # beyond all that the other unit can say
        return np.clip(times, -farthest, farthest) * factor, None
    whole, rest = np.divmod(times, min(other_step // step, _LARGEST))
    return whole, rest / (other_step // step)


def _as_times(wholes: np.ndarray, rests: np.ndarray, steps: np.ndarray, unit: str) -> np.ndarray:
    """Return times in the coarsest unit that says them all; nanoseconds are rounded up.

    They are `wholes` and `rests` of a unit, the latter from 0 to 1 and known to within `steps`.
    """
    times, (what, _, own) = wholes.astype(unit), unit.removesuffix("]").partition("[")
    largest = np.abs(wholes.astype(np.float64)).max(initial=0.0) + 1.0
    for name, length in _UNITS.items():
        factor = _UNITS[own] // length
        if factor == 0:  # a coarser unit
            continue
        if largest * factor >= _LARGEST or (factor > 1 and length < _UNITS["ns"]):
            break
        parts = rests * factor
        nearest = np.rint(parts)
        is_whole = np.abs(parts - nearest) <= steps * factor
        parts = np.where(is_whole, nearest, np.ceil(parts)).astype(np.int64)
        times = (wholes * factor + parts).astype(f"{what}[{name}]")
        if is_whole.all():
            break
    return times


def instant_text(instant: np.datetime64, timezone: str) -> str:
    """Write an instant; one in UTC as the time of its zone, and how far that is from UTC."""
    if not timezone:
        return f"{instant}:00" if np.datetime_data(instant.dtype)[0] == "h" else str(instant)
    second = instant.astype("datetime64[s]")
    try:
        local = datetime.fromtimestamp(int(second.astype(np.int64)), zone_of(timezone)).isoformat()
    except (OverflowError, ValueError, OSError):  # beyond the years 1 to 9999
        return f"{instant}+00:00"
    text = str(np.datetime64(local[:19]) + (instant - second))
    return f"{text.removesuffix(':00')}{local[19:]}"


def zone_of(name: str) -> tzinfo:
    """Return a time zone by its name, or by how far it is from UTC, such as "UTC+02:00"."""
    offset = re.search(r"[+-]\d\d:\d\d$", name)
    try:
        if offset is not None:
            return datetime.strptime(offset[0], "%z").tzinfo or UTC
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # of another library, or not known here
        return UTC


def _length(unit: str) -> int:
    """Return the length of a unit of times in attoseconds."""
    return _UNITS[unit.partition("[")[2].removesuffix("]")]


def _rank_of(values: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Return the rank of each value, float64; one half less than the next for values between."""
    is_nan = values != values
    values = np.where(is_nan, 0, values)
    if np.can_cast(values.dtype, ranks.dtype):
        known, sought = ranks, values.astype(ranks.dtype)
    else:  # no dtype holds both exactly, but Python compares its numbers so
        known, sought = ranks.astype(object), values.astype(object)
    position = np.searchsorted(known, sought)
    is_known = known[np.minimum(position, len(known) - 1)] == sought
    found = position - np.where(is_known, 0.0, 0.5)
    found[is_nan] = np.nan
    return found
