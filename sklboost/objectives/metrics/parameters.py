"""Parameters that metrics have: ``name@value``, or the training loss's, or a default."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np


class Parameter(NamedTuple):
    """A parameter of a metric.

    Attributes
    ----------
    symbol : str
        What it is called in ``name@symbol``.
    key : str
        The estimators' parameter that is its default; empty: a value must be given.
    default : float or None
        Where the training loss has none; None: then a value must be given.
    least, most : float
        Its range.
    has_ends : bool
        Whether the ends of the range belong to it.
    words : str
        What it is.
    """

    symbol: str
    key: str
    default: float | None
    least: float
    most: float
    has_ends: bool
    words: str

    def read(self, name: str, text: str) -> tuple[float, ...]:
        """Read the text behind the @ of a metric's name.

        Raises
        ------
        ValueError
            If it is no number, or out of range.
        """
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not self._has(value):
            family = name.partition("@")[0]
            raise ValueError(
                f"eval_metric={name!r}: after the @ there must be {self.words}, such as "
                f"{family}@{self._example}"
            )
        return (value,)

    def choose(self, name: str, parameters: Mapping[str, Any]) -> tuple[float, ...]:
        """Choose the training loss's value, or values, one an output; else the default.

        Raises
        ------
        ValueError
            If there is neither, or the loss's is out of range.
        """
        values = np.atleast_1d(parameters.get(self.key, self.default))
        if values[0] is None:
            raise ValueError(
                f"eval_metric={name!r} needs {self.words}, and the objective has none: give "
                f"{name}@{self._example}"
            )
        for value in values:
            if not self._has(value):
                raise ValueError(
                    f"eval_metric={name!r} cannot be taken with {self.key}={value:g}: it needs "
                    f"{self.words}; give {name}@{self._example}"
                )
        return tuple(values.astype(float).tolist())

    @property
    def _example(self) -> str:
        """A value that is possible."""
        if self.default is not None:
            return f"{self.default:g}"
        return "0.3" if self.has_ends else "0.9"

    def _has(self, value: float) -> bool:
        if self.has_ends:
            return self.least <= value <= self.most
        return self.least < value < self.most


_INFINITY = math.inf
_POSITIVE = "a number above 0"
THRESHOLD = Parameter("t", "", None, 0.0, 1.0, True, "a probability from 0 to 1")
HUBER_SLOPE = Parameter("slope", "huber_slope", 1.0, 0.0, _INFINITY, False, _POSITIVE)
# LightGBM's default.
HUBER_DELTA = Parameter("slope", "huber_slope", 0.9, 0.0, _INFINITY, False, _POSITIVE)
FAIR_C = Parameter("c", "fair_c", 1.0, 0.0, _INFINITY, False, _POSITIVE)
_ALPHA = "a level above 0 and below 1"
QUANTILE_ALPHA = Parameter("alpha", "quantile_alpha", None, 0.0, 1.0, False, _ALPHA)
EXPECTILE_ALPHA = Parameter("alpha", "expectile_alpha", None, 0.0, 1.0, False, _ALPHA)
_POWER = "a variance power from 1 to 2"
VARIANCE_POWER = Parameter("rho", "tweedie_variance_power", 1.5, 1.0, 2.0, True, _POWER)
VARIANCE_POWER_BETWEEN = VARIANCE_POWER._replace(
    has_ends=False,
    words="a variance power above 1 and below 2 (at 1 it is poisson-deviance, at 2 gamma-deviance)",
)
