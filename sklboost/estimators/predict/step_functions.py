"""Functions of time that are constant between some times: survival and cumulative hazard."""

from typing import Any

import numpy as np


class StepFunction:
    """A function of time that changes at given times only, as scikit-survival's class of this name.

    Called with times, it returns ``y[i]`` for ``x[i] <= time < x[i + 1]``, and `first` for times
    before ``x[0]``.

    Parameters
    ----------
    x : ndarray of float64, shape (n_steps,)
        Times, sorted.
    y : ndarray of float64, shape (n_steps,)
        The value from each of them on.
    first : float
        The value before the first.

    Attributes
    ----------
    domain : tuple of float
        Times that it can be called with, from 0 to the last of `x`: later ones are not known.
    """

    def __init__(self, x: np.ndarray, y: np.ndarray, *, first: float):
        self.x = x
        self.y = y
        self.first = first

    @property
    def domain(self) -> tuple[float, float]:
        """The first and the last time it can be called with."""
        return 0.0, float(self.x[-1])

    def __call__(self, x: Any) -> Any:
        """Return the value at times.

        Parameters
        ----------
        x : float or array-like

        Returns
        -------
        float or ndarray of float64, of the shape of `x`

        Raises
        ------
        ValueError
            For times outside the domain.
        """
        times = np.asarray(x, dtype=np.float64)
        first, last = self.domain
        if not ((times >= first) & (times <= last)).all():
            raise ValueError(
                f"x={x!r:.100}: times must be from {first:g} to {last:g}, the last known"
            )
        values = np.append(self.first, self.y)[np.searchsorted(self.x, times, side="right")]
        return float(values) if values.ndim == 0 else values

    def __repr__(self) -> str:
        return f"StepFunction(x={self.x!r}, y={self.y!r}, first={self.first!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StepFunction):
            return NotImplemented
        mine, theirs = (self.x, self.y), (other.x, other.y)
        return self.first == other.first and all(map(np.array_equal, mine, theirs))

    __hash__ = None  # type: ignore[assignment]  # arrays can change


def step_functions(x: np.ndarray, y: np.ndarray, *, first: float) -> np.ndarray:
    """Return an array of functions, one for each row of `y`, shape (n_samples, n_steps)."""
    functions = np.empty(len(y), dtype=object)
    for row, values in enumerate(y):
        functions[row] = StepFunction(x, values, first=first)
    return functions
