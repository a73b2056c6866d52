"""Checked access to documents, since a file may hold anything."""

import math
import re
from collections.abc import Collection, Iterator
from typing import Any, NoReturn

import numpy as np


class ModelFileError(ValueError):
    """A model file is damaged, or is not what it says, or holds what cannot be read.

    The message names the file, the place in it and what is wrong there.
    """


class NotExpressibleError(ValueError):
    """XGBoost has no way to say what a model is."""

    def __init__(self, what: str):
        super().__init__(f"XGBoost cannot hold {what}")


# JSON has no other way to write them (RFC 8259); these are the words of Protocol Buffers' JSON.
NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_INTEGER = re.compile(r"-?\d{1,20}", re.ASCII)
_MOST_SHOWN = 40  # characters of a wrong value or of a key in an error
# Of leaf values and of what raw scores begin with: the sum of millions of them is finite.
LARGEST_SCORE = 1e298
DEEPEST = 64  # objects and lists in one another; model files have less than ten


class DocumentSection:
    """A value in a document and its place: every access checks what it returns.

    `place` says where it is, such as ``model.json: sklboost.trees``, in the ModelFileError that all
    methods raise if the value is something else than is asked for.
    """

    def __init__(self, value: Any, place: str, depth: int = 0):
        self.value = value
        self.place = place
        self._depth = depth

    def _part(self, value: Any, step: str) -> "DocumentSection":
        # what reads values calls itself for their parts, and so does what hashes and shows them
        if self._depth == DEEPEST:
            self.fail(f"objects and lists are nested more than {DEEPEST} deep")
        return DocumentSection(value, f"{self.place}{step}", self._depth + 1)

    def fail(self, problem: str) -> NoReturn:
        """Raise ModelFileError that names the place."""
        raise ModelFileError(f"{self.place}: {problem}")

    def _refuse(self, wanted: str) -> NoReturn:
        if isinstance(self.value, dict):
            shown = "an object"
        elif isinstance(self.value, list | np.ndarray):
            shown = "a list"
        else:
            shown = repr(self.value)
        cut = shown if len(shown) <= _MOST_SHOWN else shown[:_MOST_SHOWN] + "..."
        self.fail(f"must be {wanted}, and is {cut}")

    # --- objects and lists

    def __getitem__(self, key: str) -> "DocumentSection":
        """The value of a key, which must be there."""
        found = self.get(key)
        if found is None:
            self.fail(f"has no key {key!r}")
        return found

    def get(self, key: str) -> "DocumentSection | None":
        """The value of a key; None if the key is not there."""
        if not isinstance(self.value, dict):
            self._refuse("an object")
        # all of a long key in the places of all that is below it would take long
        return self._part(self.value[key], f".{key[:_MOST_SHOWN]}") if key in self.value else None

    def items(self) -> list[tuple[str, "DocumentSection"]]:
        """The keys of an object and their values."""
        if not isinstance(self.value, dict):
            self._refuse("an object")
        return [(key, self[key]) for key in self.value]

    def __iter__(self) -> Iterator["DocumentSection"]:
        """The elements of a list."""
        values = self.value.tolist() if isinstance(self.value, np.ndarray) else self.value
        if not isinstance(values, list):
            self._refuse("a list")
        return (self._part(value, f"[{i}]") for i, value in enumerate(values))

    def __len__(self) -> int:
        """The number of elements of a list."""
        if not isinstance(self.value, list | np.ndarray):
            self._refuse("a list")
        return len(self.value)

    @property
    def is_null(self) -> bool:
        """Whether there is None."""
        return self.value is None

    # --- single values

    def text(self, choices: Collection[str] | None = None) -> str:
        """A text, one of `choices` if they are given."""
        if not isinstance(self.value, str):
            self._refuse("text")
        if choices is not None and self.value not in choices:
            self._refuse(f"one of {', '.join(map(repr, choices))}")
        return self.value

    def flag(self) -> bool:
        """True or False."""
        if not isinstance(self.value, bool):
            self._refuse("true or false")
        return self.value

    def integer(self, low: int, high: int) -> int:
        """An integer from `low` to `high`."""
        value = self.value
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            self._refuse(f"an integer from {low} to {high}")
        return value

    def written_integer(self, low: int, high: int) -> int:
        """An integer from `low` to `high` that is written as text."""
        text = self.text()
        if not _INTEGER.fullmatch(text) or not low <= int(text) <= high:
            self._refuse(f"an integer from {low} to {high}")
        return int(text)

    def finite_number(self) -> float:
        """A finite float."""
        if not math.isfinite(value := self.number()):
            self._refuse("a finite number")
        return value

    def number(self) -> float:
        """A float; ``"NaN"``, ``"Infinity"`` and ``"-Infinity"`` are floats, too."""
        value = self.value
        if isinstance(value, str) and value in NOT_FINITE:
            return NOT_FINITE[value]
        if not isinstance(value, int | float) or isinstance(value, bool):
            self._refuse("a number")
        try:
            return float(value)
        except OverflowError:
            self._refuse("a number that float64 can hold")

    # --- arrays

    def integers(self, low: int, high: int, size: int | None = None) -> np.ndarray:
        """Integers from `low` to `high`, int64 of shape (size,)."""
        values = self.value
        if isinstance(values, list):
            if not set(map(type, values)) <= {int}:
                self._refuse_elements("integers")
            try:
                values = np.array(values, dtype=np.int64)
            except OverflowError:
                self._refuse_elements(f"integers from {low} to {high}")
        elif not isinstance(values, np.ndarray) or values.dtype.kind not in "iu":
            self._refuse("a list of integers")
        self._check_size(values, size)
        outside = (values < low) | (values > high)
        if outside.any():
            i = int(outside.argmax())
            self._part(int(values[i]), f"[{i}]")._refuse(f"an integer from {low} to {high}")
        return values.astype(np.int64, copy=False)

    def numbers(
        self,
        size: int | None = None,
        *,
        finite: bool = True,
        limits: tuple[float, float] | None = None,
    ) -> np.ndarray:
        """Floats, float64 of shape (size,); with `limits`, the least and the most, none is NaN."""
        values = self.value
        if isinstance(values, list):
            kinds = set(map(type, values))
            if str in kinds:
                values = [NOT_FINITE.get(v, v) if isinstance(v, str) else v for v in values]
                kinds = set(map(type, values))
            if not kinds <= {int, float}:
                self._refuse_elements("numbers")
            try:
                values = np.array(values, dtype=np.float64)
            except OverflowError:
                self._refuse_elements("numbers that float64 can hold")
        elif not isinstance(values, np.ndarray) or values.dtype.kind not in "iuf":
            self._refuse("a list of numbers")
        self._check_size(values, size)
        values = values.astype(np.float64, copy=False)
        if finite and not np.isfinite(values).all():
            i = int(np.isfinite(values).argmin())
            self._part(float(values[i]), f"[{i}]")._refuse("a finite number")
        inside = limits is None or (values >= limits[0]) & (values <= limits[1])
        if not np.all(inside):
            i = int(np.argmin(inside))
            words = "a number from {:g} to {:g}".format(*limits or ())
            self._part(float(values[i]), f"[{i}]")._refuse(words)
        return values

    def _check_size(self, values: np.ndarray, size: int | None) -> None:
        if values.ndim != 1 or (size is not None and len(values) != size):
            self.fail(f"must have {size} elements, and has {len(values)}")

    def _refuse_elements(self, wanted: str) -> NoReturn:
        self.fail(f"must be a list of {wanted}")


def plain_number(value: float) -> float | str:
    """Return a number as documents hold it: a text if it is not finite."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
