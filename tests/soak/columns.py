"""Columns of features, targets and tables, plain and nasty, drawn at random."""

from collections import deque
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy.sparse import csc_array, csr_array

from sklboost import bin_features

Random = np.random.Generator
WORDS = ["red", "Grün", "", " ", "nan", "0", "日本", "a\u0301", "x" * 300, "<b>&amp;"]


def _with_missing(random: Random, n: int) -> np.ndarray:
    values = random.normal(size=n)
    values[random.random(n) < 0.3] = np.nan
    return values


def _with_infinities(random: Random, n: int) -> np.ndarray:
    return random.choice([-np.inf, -1.0, 0.0, 2.0, np.inf], n)


def _any_magnitude(random: Random, n: int) -> np.ndarray:
    with np.errstate(all="ignore"):
        return random.choice([-1.0, 1.0], n) * 10.0 ** random.uniform(-320, 308, n)


NUMBERS: dict[str, Callable[[Random, int], np.ndarray]] = {
    "normal": lambda random, n: random.normal(size=n),
    "ties": lambda random, n: random.integers(-2, 3, n).astype(float),
    "constant": lambda random, n: np.full(n, random.choice([0.0, -7.5, 1e300])),
    "all missing": lambda random, n: np.full(n, np.nan),
    "with missing": _with_missing,
    "infinities": _with_infinities,
    "denormals": lambda random, n: random.integers(-3, 4, n) * 5e-324,
    "huge": lambda random, n: random.normal(size=n) * 1e300,
    "any magnitude": _any_magnitude,
    "zeros of both signs": lambda random, n: random.choice([-0.0, 0.0, 1.0], n),
    "neighbours": lambda random, n: np.nextafter(1.0, random.choice([0.0, 2.0], n)),
    "heavy tails": lambda random, n: random.standard_cauchy(n),
    "sorted": lambda random, n: np.sort(random.normal(size=n)),
    "large integers": lambda random, n: 2.0**53 + random.integers(0, 9, n),
    "mostly 0": lambda random, n: np.where(random.random(n) < 0.1, random.normal(size=n), 0.0),
}


def draw_matrix(random: Random, n_rows: int, n_features: int) -> np.ndarray:
    """Return numbers, float64, shape (n_rows, n_features), each column of a kind of its own."""
    kinds = list(NUMBERS)
    likely = np.where(np.isin(kinds, ["normal", "ties", "with missing"]), 4.0, 1.0)
    chosen = random.choice(kinds, n_features, p=likely / likely.sum())
    return np.column_stack([NUMBERS[kind](random, n_rows) for kind in chosen])


# --- the same numbers in other hands


def _big_endian(X: np.ndarray) -> np.ndarray:
    return X.astype(">f8")


def _strided(X: np.ndarray) -> np.ndarray:
    wide = np.full((2 * len(X), X.shape[1] + 1), 9.0)
    wide[::2, 1:] = X
    return wide[::2, 1:]


def _read_only(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


def _sparse(kind: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], Any]:
    return lambda X: kind(np.where(X == 0.0, 0.0, X))


CARRIERS: dict[str, Callable[[np.ndarray], Any]] = {
    "copy": np.copy,
    "Fortran order": np.asfortranarray,
    "strided": _strided,
    "read-only": _read_only,
    "big-endian": _big_endian,
    "objects": lambda X: X.astype(object),
    "lists": lambda X: X.tolist(),
    "frame": pd.DataFrame,
    "csr": _sparse(csr_array),
    "csc": _sparse(csc_array),
}
# Taken where the parameters allow it: they bin with `max_bin` of their own.
BINS = "bins"
# The folders of the last bins that were kept on disk: older ones are removed.
_FOLDERS: deque[TemporaryDirectory[str]] = deque()
_MOST_FOLDERS = 10


def carry(X: np.ndarray, carrier: str, max_bin: int) -> Any:
    """Return the same numbers in another kind of table; bins of an odd number of rows on disk."""
    if carrier != BINS:
        return CARRIERS[carrier](X)
    if len(X) % 2 == 0:
        return bin_features(X, max_bin=max_bin)
    if len(_FOLDERS) == _MOST_FOLDERS:
        _FOLDERS.popleft().cleanup()
    _FOLDERS.append(TemporaryDirectory())
    return bin_features(X, max_bin=max_bin, path=_FOLDERS[-1].name)


# --- targets, weights, labels ... in other hands

_NULLABLE = {"b": "boolean", "i": "Int64", "u": "UInt64", "f": "Float64"}


def _masked(values: list[Any], dtype: np.dtype) -> np.ndarray:
    is_missing = [value is None for value in values]
    some = next(value for value in values if value is not None)
    return np.ma.array([some if v is None else v for v in values], dtype, mask=is_missing)


def _series(values: list[Any], dtype: Any) -> pd.Series:
    return pd.Series(values, index=range(len(values))[::-1], dtype=dtype)


def _pieces(values: list[Any]) -> pa.ChunkedArray:
    kind = pa.array(values).type
    return pa.chunked_array([pa.array(part, kind) for part in (values[:1], values[1:])])


# From a list of values, None where one is missing, and the dtype that they had; and from such
# columns by name.
Hold = Callable[[list[Any], np.dtype], Any]
HOLDERS: dict[str, tuple[Hold, Callable[[dict[str, Any]], Any]]] = {
    "masked": (_masked, lambda columns: np.ma.column_stack([*columns.values()])),
    "objects": (
        lambda values, dtype: np.array(values, dtype=object),
        lambda columns: np.column_stack([*columns.values()]),
    ),
    "objects with pandas.NA": (
        lambda values, dtype: np.array([pd.NA if v is None else v for v in values], dtype=object),
        lambda columns: np.column_stack([*columns.values()]),
    ),
    "lists": (lambda values, dtype: values, lambda columns: [*zip(*columns.values(), strict=True)]),
    "pandas": (lambda values, dtype: _series(values, None), pd.DataFrame),
    "nullable": (
        lambda values, dtype: _series(values, _NULLABLE.get(dtype.kind, "string")),
        pd.DataFrame,
    ),
    "categories": (lambda values, dtype: _series(values, "category"), pd.DataFrame),
    "ArrowDtype": (
        lambda values, dtype: _series(values, pd.ArrowDtype(pa.array(values).type)),
        pd.DataFrame,
    ),
    "Arrow": (lambda values, dtype: _pieces(values), pa.table),
    "polars": (lambda values, dtype: pl.Series(values), pl.DataFrame),
}
# The same values, as far as they are: labels 0, 0.0, False and numpy.int64(0) are one.
_MIXED = (int, float, np.int64, np.float32, bool, np.uint8)
CASTS = ["float64", "float32", "float16", "int8", "int64", ">i4", "uint64", "bool", "longdouble"]


def hold(values: np.ndarray, holder: str, is_missing: np.ndarray | None = None) -> Any:
    """Return the values of one or two axes in other hands, without those that are missing."""
    if holder == "mixed":
        return _mixed(values)
    if holder in CASTS:
        with np.errstate(all="ignore"):
            cast = values.astype(holder)
        return cast if (cast == values).all() else values
    one, several = HOLDERS[holder]
    listed = values.astype(object)
    if is_missing is not None:
        listed[is_missing] = None
    if values.ndim == 1:
        return one(listed.tolist(), values.dtype)
    columns = (one(column, values.dtype) for column in listed.T.tolist())
    return several({f"column {i}": column for i, column in enumerate(columns)})


def _mixed(values: np.ndarray) -> np.ndarray:
    listed = values.astype(object)
    for place, value in np.ndenumerate(listed):
        cast = _MIXED[sum(place) % len(_MIXED)]
        if 0 <= value < 128 and float(cast(value)) == value:
            listed[place] = cast(value)
    return listed


# --- tables with other things than numbers


def _times(random: Random, n: int, zone: str | None) -> pd.Series:
    hours = pd.to_timedelta(random.integers(0, 10**5, n), "h")
    return pd.Series(pd.Timestamp("1999-12-31", tz=zone) + hours)


def _categories(random: Random, n: int) -> pd.Series:
    n_words = random.integers(1, len(WORDS) + 1)
    codes = random.integers(-1, n_words, n)
    return pd.Series(pd.Categorical.from_codes(codes, WORDS[:n_words]))


COLUMNS: dict[str, Callable[[Random, int], pd.Series]] = {
    "categories": _categories,
    "many categories": lambda random, n: pd.Series(
        pd.Categorical([f"{code:x}" for code in random.integers(0, 500, n)])
    ),
    "numbers of categories": lambda random, n: pd.Series(
        pd.Categorical(random.choice([-5, 0, 2**60], n))
    ),
    "small numbers of categories": lambda random, n: pd.Series(
        pd.Categorical(random.choice([3, 7, 12, 45], n))
    ),
    "truths of categories": lambda random, n: pd.Series(pd.Categorical(random.random(n) < 0.5)),
    "bool": lambda random, n: pd.Series(random.random(n) < 0.5),
    "nullable": lambda random, n: pd.Series(
        pd.array(random.choice([1, 2, None], n), dtype="Int64")
    ),
    "nullable fractions": lambda random, n: pd.Series(
        pd.array(random.choice([0.5, 1.5, -2.5, None], n), dtype="Float64")
    ),
    "large int64": lambda random, n: pd.Series(2**60 + random.integers(0, 5, n)),
    "huge uint64": lambda random, n: pd.Series(np.uint64(2**63) + random.integers(0, 5, n, "u8")),
    "nullable large": lambda random, n: pd.Series(
        pd.array(random.choice([2**60, 2**60 + 1, 2**60 + 2, None], n), dtype="Int64")
    ),
    "durations": lambda random, n: pd.Series(pd.to_timedelta(random.integers(-50, 50, n), "min")),
    "times": lambda random, n: _times(random, n, None),
    "times of a zone": lambda random, n: _times(random, n, "Pacific/Apia"),
    "int8": lambda random, n: pd.Series(random.integers(-128, 128, n).astype(np.int8)),
    "text": lambda random, n: pd.Series(random.choice(WORDS, n)),
}


def draw_frame(random: Random, n_rows: int, n_features: int) -> pd.DataFrame:
    """Return a table of columns of all kinds; text is refused unless it is named as categories."""
    kinds = [*COLUMNS, *["number"] * 4]
    likely = np.where(np.array(kinds) == "text", 0.1, 1.0)
    frame = {}
    for i, kind in enumerate(random.choice(kinds, n_features, p=likely / likely.sum())):
        make = COLUMNS.get(kind)
        numbers = draw_matrix(random, n_rows, 1)[:, 0]
        frame[f"{kind} {i}"] = pd.Series(numbers) if make is None else make(random, n_rows)
    return pd.DataFrame(frame)


# --- targets

TARGETS: dict[str, Callable[[Random, np.ndarray], np.ndarray]] = {
    "plain": lambda random, signal: signal,
    "ties": lambda random, signal: np.round(signal) + 0.0,  # no -0.0, which other types lack
    "constant": lambda random, signal: np.full(len(signal), 3.5),
    "tiny": lambda random, signal: signal * 1e-20,
    "huge": lambda random, signal: signal * 1e20,
    "float32": lambda random, signal: signal.astype(np.float32),
    "far from 0": lambda random, signal: signal + 1e9,
    "heavy tails": lambda random, signal: signal + random.standard_cauchy(len(signal)) ** 3,
    "counts": lambda random, signal: random.poisson(np.exp(np.clip(signal, -5, 5))).astype(float),
    "positive": lambda random, signal: np.exp(np.clip(signal, -9, 9)),
    "shares": lambda random, signal: 1 / (1 + np.exp(-np.clip(signal, -9, 9))),
}
LABELS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "numbers": lambda codes: codes,
    "words": lambda codes: np.array(WORDS)[codes],
    "bool": lambda codes: codes > 0,
    "one class": lambda codes: np.full(len(codes), 7),
    "floats": lambda codes: codes.astype(float) - 1.0,
    "objects": lambda codes: np.array(WORDS, dtype=object)[codes],
}
