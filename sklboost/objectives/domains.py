"""Ranges of targets and predictions, the errors for others, and links.

The *link* of a loss says what its raw scores are: predictions themselves (``"identity"``), their
logarithms (``"log"``), log-odds (``"logit"``), logarithms of class probabilities up to a constant
of the row (``"softmax"``), or anything else (``"other"``).
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from sklboost.engine.structs import RemoteColumn

IDENTITY, LOG, LOG_ODDS, SOFTMAX = "identity", "log", "logit", "softmax"
LINKS = (IDENTITY, LOG, LOG_ODDS, SOFTMAX)

# Rows that are looked at together: what is computed of them takes little memory.
_CHECKED_AT_ONCE = 2**16
_LARGEST_LOGARITHM = 700.0  # e^700 is 1e304


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


# --- links


@np.errstate(all="ignore")
def predictions_of(link: str, raw_score: np.ndarray) -> np.ndarray:
    """Return the predictions of raw scores, both of shape (n_outputs, n_samples); a new array."""
    predictions: np.ndarray
    if link == LOG:
        predictions = np.exp(np.clip(raw_score, -_LARGEST_LOGARITHM, _LARGEST_LOGARITHM))
    elif link == LOG_ODDS:
        predictions = expit(raw_score)
    elif link == SOFTMAX:
        predictions = np.exp(raw_score - raw_score.max(axis=0))
        predictions = predictions / predictions.sum(axis=0)
    else:
        predictions = np.array(raw_score)
    return predictions


def raw_score_of(link: str, prediction: float, objective: str) -> float:
    """Return the raw score of a prediction; for softmax any number is as good as another."""
    if link == LOG:
        check_base_score(prediction, objective, POSITIVE)
        return float(np.log(prediction))
    if link == LOG_ODDS:
        check_base_score(prediction, objective, BETWEEN_0_AND_1)
        return float(np.log(prediction) - np.log1p(-prediction))
    return prediction


def check_base_score(prediction: float, objective: str, domain: Domain) -> None:
    """Raise ValueError unless an objective can make this prediction."""
    if not domain.has(prediction):
        raise ValueError(
            f"base_score={prediction:g}: it is a prediction, and objective={objective!r} "
            f"predicts numbers {domain.words}; give such a number, or None for the best constant"
        )


# --- targets of losses


def check_domain(y: Any, domain: Domain, name: str, objective: str) -> None:
    """Raise ValueError for the first target outside of the domain of a loss; `name` is y's."""
    remedy = "choose another objective, or transform the targets"
    why = f"objective={objective!r} needs targets {domain.words}; {remedy}"
    n_at_once = len(y) if isinstance(y, RemoteColumn) else _CHECKED_AT_ONCE
    for first in range(0, len(y), n_at_once):
        some = y[first : first + n_at_once]
        # the extremes tell most: looking at each value takes ten times as long
        if not (domain.has(some.min()) and domain.has(some.max())):
            refuse_first(domain.lacks(some), some, name, why, first)


def refuse_first(
    is_refused: np.ndarray, y: np.ndarray, name: str, why: str, first: int = 0
) -> None:
    """Raise ValueError for the first of the refused targets, the first of which is row `first`."""
    if is_refused.any():
        row, *others = place = np.unravel_index(np.argmax(is_refused), y.shape)
        position = ", ".join(str(int(index)) for index in (first + row, *others))
        raise ValueError(f"{name}[{position}]={y[place]:g}: {why}")


# --- targets and predictions of metrics


def check_metric_domain(
    metric: str, kind: str, values: np.ndarray, domain: Domain, remedy: str
) -> None:
    """Raise ValueError for the first target or prediction that a metric is not defined for."""
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
