"""Links: what raw scores are, the predictions they stand for, and the scales metrics read.

The link of a loss names the scale of its raw scores: predictions themselves, their logarithms,
log-odds. A metric reads predictions on the scale where its formula is short and exact: log loss
reads log-odds, since a probability close to 1 has lost the digits that count. Between the two
stands a change of scale, one more formula of a row.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from sklboost.engine.compiling import inlined
from sklboost.engine.elementary import exp, exp_of_negative, log, log_of_one_plus
from sklboost.objectives.domains import (
    ABOVE_MINUS_1,
    ANYWHERE,
    BETWEEN_0_AND_1,
    POSITIVE,
    SHARES,
    Domain,
    check_base_score,
)

# The links. Softmax has logarithms of probabilities but for a constant of the row.
IDENTITY, LOG, LOG_ODDS, SOFTMAX = "identity", "log", "logit", "softmax"
# Scales without a link: what classifiers predict, and log(1 + prediction). Metrics that need only
# the order of a row's predictions read ANY scale.
PROBABILITY, LOG_1P, ANY = "probability", "log1p", "any"

_LARGEST = 700.0  # e^700 is 1e304


# --- of all rows: what users see


def chances(log_odds: np.ndarray) -> np.ndarray:
    """Return ``1 / (1 + e^-z)``; nothing overflows or cancels."""
    probabilities: np.ndarray = expit(log_odds)
    return probabilities


@np.errstate(all="ignore")
def shares(logarithms: np.ndarray) -> np.ndarray:
    """Return ``e^z / (sum of e^z over the outputs)``."""
    terms = np.exp(logarithms - logarithms.max(axis=0))
    parts: np.ndarray = terms / terms.sum(axis=0)
    return parts


@np.errstate(all="ignore")
def exponentials(logarithms: np.ndarray) -> np.ndarray:
    """Return ``e^z``; where that is out of range, the number at its end."""
    powers: np.ndarray = np.exp(np.clip(logarithms, -_LARGEST, _LARGEST))
    return powers


PREDICTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    IDENTITY: np.array,
    LOG: exponentials,
    LOG_ODDS: chances,
    SOFTMAX: shares,
}


def predictions_of(link: str, raw_score: np.ndarray) -> np.ndarray:
    """Return the predictions of raw scores, both of shape (n_outputs, n_samples); a new array."""
    return PREDICTIONS[link](raw_score)


def raw_score_of(link: str, prediction: float, objective: str) -> float:
    """Return the raw score of a prediction; for softmax any number is as good as another.

    ValueError if there is none; `objective` is the name of the loss in the text.
    """
    if link == LOG:
        check_base_score(prediction, objective, POSITIVE)
        return float(np.log(prediction))
    if link == LOG_ODDS:
        check_base_score(prediction, objective, BETWEEN_0_AND_1)
        return float(np.log(prediction) - np.log1p(-prediction))
    return prediction


# --- of one row: what metrics read

# As scikit-learn: the logarithm of 0 would make one row count more than all others.
LEAST_PROBABILITY = float(np.finfo(np.float64).eps)
# e^340 is 1e147: its square, and the sum of many, is still a number.
_MOST_LOG = 340.0


@inlined
def unchanged(prediction):
    """Return the prediction."""
    return prediction


@inlined
def mean_of_log(z):
    """Return e^z, with z brought to within 340 of 0."""
    return exp(min(_MOST_LOG, max(-_MOST_LOG, z)))


@inlined
def probability_of_log_odds(z):
    """Return ``1 / (1 + e^-z)``."""
    decay = exp_of_negative(-abs(z))
    return (1.0 if z >= 0.0 else decay) / (1.0 + decay)


@inlined
def log_of_mean(mean):
    """Return the logarithm; NaN where there is none."""
    return log(mean) if mean > 0.0 else np.nan


@inlined
def log_of_probability(probability):
    """Return the logarithm of a probability, at least 2e-16."""
    return log(max(probability, LEAST_PROBABILITY))


@inlined
def log_of_log_odds(z):
    """Return the logarithm of the probability."""
    return min(z, 0.0) - log_of_one_plus(exp_of_negative(-abs(z)))


@inlined
def log_odds_of_probability(probability):
    """Return ``log(p / (1 - p))``, with both at least 2e-16."""
    rest = max(1.0 - probability, LEAST_PROBABILITY)
    return log(max(probability, LEAST_PROBABILITY) / rest)


@inlined
def log_odds_of_mean(mean):
    """Return the log-odds of a mean that is a probability; of any other, NaN."""
    return log_odds_of_probability(mean) if abs(mean - 0.5) <= 0.5 else np.nan


@inlined
def log_odds_of_log(z):
    """Return the log-odds of e^z if that is a probability; of any other, NaN."""
    return log_odds_of_probability(exp_of_negative(z)) if z <= 0.0 else np.nan


@inlined
def log_1p_of_mean(mean):
    """Return ``log(1 + p)``; NaN where there is none."""
    return log_of_one_plus(mean) if mean > -1.0 else np.nan


@inlined
def log_1p_of_log(z):
    """Return ``log(1 + e^z)``."""
    return log_of_one_plus(mean_of_log(z))


@inlined
def log_1p_of_log_odds(z):
    """Return ``log(1 + p)`` of the probability p."""
    return log_of_one_plus(probability_of_log_odds(z))


class Change(NamedTuple):
    """The way from one scale to another."""

    kernel: Any  # ``kernel(prediction) -> prediction``; NaN outside of the domain
    domain: Domain = ANYWHERE  # which predictions the other scale has
    remedy: str = ""  # what to do about predictions outside of it


_UNCHANGED = Change(unchanged)
_POSITIVE_ONES = "an objective of positive predictions, such as 'count:poisson'"
_PROBABILITIES = "an objective of probabilities, such as 'reg:logistic'"
_CHANGES = {
    (LOG, IDENTITY): Change(mean_of_log),
    (LOG_ODDS, IDENTITY): Change(probability_of_log_odds),
    (LOG_ODDS, PROBABILITY): Change(probability_of_log_odds),
    (LOG_ODDS, LOG): Change(log_of_log_odds),
    (IDENTITY, LOG): Change(log_of_mean, POSITIVE, _POSITIVE_ONES),
    (IDENTITY, LOG_ODDS): Change(log_odds_of_mean, SHARES, _PROBABILITIES),
    (LOG, LOG_ODDS): Change(log_odds_of_log, SHARES, _PROBABILITIES),
    (IDENTITY, LOG_1P): Change(log_1p_of_mean, ABOVE_MINUS_1, "fit log1p(y) with the metric rmse"),
    (LOG, LOG_1P): Change(log_1p_of_log),
    (LOG_ODDS, LOG_1P): Change(log_1p_of_log_odds),
    (PROBABILITY, SOFTMAX): Change(log_of_probability),
    (PROBABILITY, LOG_ODDS): Change(log_odds_of_probability),
}


def change_of_scale(given: str, wanted: str) -> Change | None:
    """Return the way from one scale to another, None if there is none."""
    return _UNCHANGED if wanted in (given, ANY) else _CHANGES.get((given, wanted))
