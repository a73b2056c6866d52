"""How the values of a feature become numbers: learnt at fit, used again at every prediction.

:func:`fit_encoding` learns an :class:`Encoding` from a column of the user's table, :func:`encode`
makes a :class:`~sklboost.data.table.Column` by it. A value becomes the same number whichever
library holds it: categories are numbered in increasing order of their values, not in the order of
the frame; times count in one unit; integers that float64 cannot tell apart are replaced by their
rank, so that a threshold lies between the two it was meant to divide.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Number
from typing import Any, NamedTuple

import numpy as np

from sklboost.data.feature_cuts import heaviest_first
from sklboost.data.frames.adapter import FrameAdapter, Kind, as_objects, is_wide
from sklboost.data.table import Column, floats_below
from sklboost.engine.cached import cached_property

# With the bin for missing values, one less than 16 bits can number.
MOST_CATEGORIES = 65_534
# Units of times in attoseconds, the coarsest first.
_UNITS = {"D": 86_400 * 10**18, "h": 3600 * 10**18, "m": 60 * 10**18}
_UNITS |= {"s": 10**18, "ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 1000, "as": 1}
_COARSE_UNITS = ("D", "h", "m", "s", "ms", "us")
_LARGEST = np.iinfo(np.int64).max


def _no_values() -> np.ndarray:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Encoding:
    """How the values of one feature become numbers.

    Attributes
    ----------
    kind : {"number", "time", "category"}
    unit : str
        Of times, such as "datetime64[ns]": the coarsest in which those of the fit are whole.
    ranks : ndarray of int64 or uint64, shape (n_ranks,)
        Distinct values, increasing, whose position is the number. Empty: they are numbers
        themselves.
    categories : ndarray, shape (n_known_categories,)
        Values of a category, in increasing order.
    codes : ndarray of int64, shape (n_known_categories,)
        The code of each category. Several share the last one if there are very many.
    is_declared : bool
        Whether the user said that it is a category: then its column may be of any kind.
    is_coded : bool
        Whether values are codes already, as in some models of other libraries: 0, 1, ..., which
        `categories` lists. All other numbers share one further code, the last.
    """

    kind: str = "number"
    unit: str = ""
    ranks: np.ndarray = field(default_factory=_no_values)
    categories: np.ndarray = field(default_factory=_no_values)
    codes: np.ndarray = field(default_factory=_no_values)
    is_declared: bool = False
    is_coded: bool = False

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

        Times are times, and large integers are themselves. Of the rows seen in training ``x <
        value`` says the same as ``x < threshold``.

        Parameters
        ----------
        numbers : ndarray of float64, shape (n_numbers,)
            Finite.

        Returns
        -------
        ndarray of float64, int64, uint64, datetime64 or timedelta64, shape (n_numbers,)
        """
        if self.is_plain:
            return numbers
        # all values are integers: none lies between a threshold and the next integer
        values = np.ceil(numbers).astype(np.int64)
        if len(self.ranks) > 0:
            values = self.ranks[np.clip(values, 0, len(self.ranks) - 1)]
        return values.astype(self.unit) if self.kind == "time" else values

    def fits(self, kind: Kind, unit: str) -> bool:
        """Whether a column of this kind, times in this unit, can be encoded.

        Text is as good as a category of text: read from a file once more, that is what it is.
        """
        if self.is_coded:
            return kind == "number"
        if self.is_declared:
            return kind != "unsupported"
        if kind == "text":
            return self.is_of_text
        return kind == self.kind and unit.partition("[")[0] == self.unit.partition("[")[0]

    def __repr__(self) -> str:
        """Say all that two encodings can differ by."""
        known = list(zip(self.categories.tolist(), self.codes.tolist(), strict=True))
        flags = f"{self.is_declared} {self.is_coded}"
        return f"{self.kind} {self.unit} {self.ranks.tolist()} {known} {flags}"


class Unknown(NamedTuple):
    """Category values that no row of the training has: the rows that have one, and the first."""

    rows: np.ndarray
    first: Any


# --- learning how values become numbers


def fit_encoding(
    adapter: FrameAdapter, i: int, weight: np.ndarray, missing: float, is_declared: bool
) -> Encoding:
    """Learn from one column how its values become numbers.

    Parameters
    ----------
    adapter : FrameAdapter
    i : int
        A column of a kind that can be a feature, or without any value.
    weight : ndarray of float64, shape (n_rows,)
        Rows of weight 0 are not looked at.
    missing : float
        A further value that counts as missing; NaN: none.
    is_declared : bool
        Whether the user said that it is a category.
    """
    column = adapter.column(i)
    if is_declared or column.kind == "category":
        return _fit_category(*column.categories(), weight, missing, is_declared)
    if column.kind == "time":
        times, absent, unit = column.times()
        used = _used(times, absent, weight)
        coarse = _coarsest_unit(used, unit)
        return Encoding("time", coarse, _ranks(_in_unit(used, unit, coarse)[0]))
    if column.kind != "number" or column.is_exact():
        return Encoding()
    values, absent = column.numbers()
    if not is_wide(values.dtype):
        return Encoding()
    absent = _all_missing(values, absent, missing)
    return Encoding(ranks=_ranks(_used(values, absent, weight)))


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
    """Return the encoding of categories whose codes are their places in a list.

    ValueError if one occurs twice, or if there are too many.
    """
    place = {category: code for code, category in enumerate(categories)}
    if len(place) < len(categories):
        raise ValueError("a category occurs twice")
    if len(place) > MOST_CATEGORIES:
        raise ValueError(f"{len(place)} categories: at most {MOST_CATEGORIES} are supported")
    ordered = _in_order(list(place))
    codes = np.array([place[category] for category in ordered], dtype=np.int64)
    return Encoding("category", "", _no_values(), _as_array(ordered), codes, is_declared)


def as_keys(categories: np.ndarray) -> list[Any]:
    """Return categories as Python values, whose hashes are equal whatever their dtypes were."""
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
        return np.array(categories)
    return as_objects(categories)


# --- from values to numbers


def encode(
    adapter: FrameAdapter, i: int, encoding: Encoding, missing: float
) -> tuple[Column, Unknown | None]:
    """Return column number `i` as numbers, and which of its categories are unknown.

    The column is of a kind that the encoding fits, or without any value.
    """
    column = adapter.column(i)
    if encoding.is_coded and column.kind == "number":
        values, absent = column.numbers()
        return Column(_own_codes(values, encoding), _all_missing(values, absent, missing)), None
    if encoding.kind == "category":
        return _encode_categories(*column.categories(), encoding, missing)
    if column.kind != encoding.kind:  # there is no value at all
        return Column(np.full(adapter.n_rows, np.nan)), None
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


def _own_codes(values: np.ndarray, encoding: Encoding) -> np.ndarray:
    """Return numbers as codes, rounded down; the last code for what is none, NaN for NaN."""
    codes = np.floor(values.astype(np.float64))
    last = encoding.n_categories - 1
    return np.where((codes < 0) | (codes > last), last, codes)


def _encode_times(
    times: np.ndarray, absent: np.ndarray | None, unit: str, encoding: Encoding
) -> Column:
    whole, fraction = _in_unit(times, unit, encoding.unit)
    if len(encoding.ranks) > 0:
        ranks = _rank_of(whole, encoding.ranks)
        if fraction is not None:  # above the rank that the whole has, if it has one
            ranks += 0.5 * ((fraction > 0.0) & (ranks == np.floor(ranks)))
        return Column(ranks, absent)
    return Column(whole if fraction is None else floats_below(whole) + fraction, absent)


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
