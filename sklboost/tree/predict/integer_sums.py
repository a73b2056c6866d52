"""Sums of gradients and hessians as what they were added up as: integers times a power of two."""

from typing import NamedTuple

import numpy as np

_DIGITS = 53  # of a float64


class Sums(NamedTuple):
    """Floats as integers times a power of two for each tree and output."""

    integers: np.ndarray
    exponents: np.ndarray

    @np.errstate(all="ignore")
    def floats(self, counts: np.ndarray) -> np.ndarray:
        """Return the floats; `counts` are the numbers of nodes of the trees."""
        exponents = np.repeat(self.exponents, counts, axis=0)
        floats: np.ndarray = np.ldexp(self.integers.astype(np.float64), exponents)
        return floats


@np.errstate(all="ignore")
def pack_sums(values: np.ndarray, counts: np.ndarray) -> Sums | np.ndarray:
    """Return sums as integers; as they are, if they are no integers or too large."""
    if values.size == 0 or not np.isfinite(values).all():
        return values
    fractions, exponents = np.frexp(values)
    digits = np.ldexp(fractions, _DIGITS).astype(np.int64)
    # the exponent of the last digit that is not 0
    _, last = np.frexp((digits & -digits).astype(np.float64))
    last += exponents - (_DIGITS + 1)
    last[digits == 0] = np.iinfo(last.dtype).max
    of_trees = np.minimum.reduceat(last, np.cumsum(counts) - counts)
    of_trees[of_trees == np.iinfo(last.dtype).max] = 0  # all are 0
    integers = np.ldexp(values, -np.repeat(of_trees, counts, axis=0))
    if np.abs(integers).max() >= 2.0**32:
        return values
    packed = Sums(narrow_integers(integers.astype(np.int64)), narrow_integers(of_trees))
    # no zero had a sign, and no power was too small or too large for a float
    return packed if packed.floats(counts).tobytes() == values.tobytes() else values


def narrow_integers(numbers: np.ndarray) -> np.ndarray:
    """Return integers in the smallest type that holds them; floats as they are, contiguous."""
    if numbers.dtype.kind == "f" or numbers.size == 0:
        return np.ascontiguousarray(numbers)
    low, high = int(numbers.min()), int(numbers.max())
    limits = [np.iinfo(kind) for kind in "BbHhIiQq"]
    return numbers.astype(next(of.dtype for of in limits if of.min <= low and high <= of.max))
