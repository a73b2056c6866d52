"""Which targets and predictions losses and metrics are defined for, and the errors for others."""

from typing import Any, NamedTuple

import numpy as np

# Rows that are looked at together: what is computed of them stays small beside many rows.
_CHECKED_AT_ONCE = 2**16


class Domain(NamedTuple):
    """A range of numbers."""

    words: str  # what it is called in errors
    least: float = -np.inf
    most: float = np.inf
    has_ends: bool = True  # whether these belong to it

    def has(self, values: Any) -> Any:
        """Whether each value is inside; NaN is not."""
        if self.has_ends:
            return (values >= self.least) & (values <= self.most)
        return (values > self.least) & (values < self.most)

    def lacks(self, values: np.ndarray) -> np.ndarray:
        """Whether each value is outside; NaN, which stands for unknown, is not."""
        is_outside: np.ndarray = ~(self.has(values) | np.isnan(values))
        return is_outside


ANYWHERE = Domain("of any size")
ABOVE_MINUS_1 = Domain("> -1", -1.0, has_ends=False)
NOT_NEGATIVE = Domain(">= 0", 0.0)
POSITIVE = Domain("> 0", 0.0, has_ends=False)
SHARES = Domain("from 0 to 1", 0.0, 1.0)
BETWEEN_0_AND_1 = Domain("between 0 and 1, both excluded", 0.0, 1.0, has_ends=False)


def check_domain(y: np.ndarray, domain: Domain, name: str, objective: str) -> None:
    """Raise ValueError for the first target outside of the domain of a loss; `name` is y's."""
    remedy = "choose another objective, or transform the targets"
    why = f"objective={objective!r} needs targets {domain.words}; {remedy}"
    for first in range(0, len(y), _CHECKED_AT_ONCE):
        some = y[first : first + _CHECKED_AT_ONCE]
        refuse_first(domain.lacks(some), some, name, why, first)


def check_labels(y: np.ndarray, name: str, objective: str) -> None:
    """Raise ValueError for the first target that is neither 0 nor 1; NaN passes."""
    is_other = ~np.isnan(y) & (y != 0.0) & (y != 1.0)
    remedy = "for probabilities choose 'binary:logistic'"
    refuse_first(is_other, y, name, f"objective={objective!r} needs targets 0 and 1; {remedy}")


def refuse_first(
    is_refused: np.ndarray, y: np.ndarray, name: str, why: str, first: int = 0
) -> None:
    """Raise ValueError for the first of the targets that are refused, if there are any.

    The text begins with its place in the argument `name`, where `y` begins with the row `first`;
    `why` says what is wrong and what to do.
    """
    if is_refused.any():
        row, *others = place = np.unravel_index(np.argmax(is_refused), y.shape)
        position = ", ".join(str(int(index)) for index in (first + row, *others))
        raise ValueError(f"{name}[{position}]={y[place]:g}: {why}")


def check_metric_domain(
    metric: str, kind: str, values: np.ndarray, domain: Domain, remedy: str
) -> None:
    """Raise ValueError for the first row outside of the domain of a metric.

    `kind` says what the values are, ``"target"`` or ``"prediction"``; `remedy`, what to do other
    than choosing another metric.
    """
    is_outside = domain.lacks(values)
    if is_outside.any():
        first = tuple(np.argwhere(is_outside)[0])
        raise ValueError(
            f"{metric} of a {kind} of {values[first]:g} in row {first[0]}: it needs {kind}s "
            f"{domain.words}; choose another eval_metric, or {remedy}"
        )


def no_rows(metric: str, needs: str) -> ValueError:
    """Return the error of a metric that is not defined without rows of some kind."""
    return ValueError(
        f"{metric} needs validation rows of {needs}, and there are none; choose another "
        "eval_metric, or other validation rows, X_val and y_val"
    )


def check_base_score(prediction: float, objective: str, domain: Domain) -> None:
    """Raise ValueError unless an objective can make this prediction."""
    if not domain.has(prediction):
        raise ValueError(
            f"base_score={prediction:g}: it is a prediction, and those of objective={objective!r} "
            f"are {domain.words}; give such a number, or None for the best constant"
        )
