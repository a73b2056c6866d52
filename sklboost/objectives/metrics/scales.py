"""The scales that predictions come on, and the way from one to another.

A loss gives raw scores on the scale of its link: a mean itself, its logarithm, log-odds. A metric
reads predictions on the scale where its formula is short and exact: log loss reads log-odds, since
a probability close to 1 has lost the digits that count. Between the two stands a change of scale,
one more formula for a row.
"""

from collections.abc import Callable

import numpy as np

from sklboost.engine.compiling import inlined
from sklboost.engine.elementary import exp, exp_of_negative, log, log_of_one_plus

# The mean itself; its logarithm, of several classes but for a constant of the row; log-odds, of
# class 1 or of each class against the rest: by the name of the link. "probability" is what
# classifiers give users; of a "margin" only the sign has a meaning.
MEAN, LOG, LOG_ODDS, PROBABILITY, MARGIN = "identity", "log", "logit", "probability", "margin"
# Of what reads nothing but the order, which is the same on all.
ANY = "any"

# By the link of a loss; softmax has logarithms of probabilities.
SCALE_OF_LINK = {"identity": MEAN, "log": LOG, "logit": LOG_ODDS, "softmax": LOG}

# As scikit-learn: the logarithm of 0 would make one row count more than all others.
LEAST_PROBABILITY = float(np.finfo(np.float64).eps)
_MOST_LOG_ODDS = -float(np.log(LEAST_PROBABILITY))
# e^340 is 1e147: its square, and the sum of many, is still a number.
_MOST_LOG = 340.0


@inlined
def unchanged(prediction):
    """Give it as it is."""
    return prediction


@inlined
def mean_of_log(z):
    """Give e^z, with z brought to within 340 of 0."""
    return exp(min(_MOST_LOG, max(-_MOST_LOG, z)))


@inlined
def probability_of_log_odds(z):
    """Give ``1 / (1 + e^-z)``."""
    decay = exp_of_negative(-abs(z))
    return (1.0 if z >= 0.0 else decay) / (1.0 + decay)


@inlined
def log_of_mean(mean):
    """Give the logarithm; NaN where there is none."""
    return log(mean) if mean > 0.0 else np.nan


@inlined
def log_of_probability(probability):
    """Give the logarithm of a probability, at least 2e-16."""
    return log(max(probability, LEAST_PROBABILITY))


@inlined
def log_of_log_odds(z):
    """Give the logarithm of the probability."""
    return min(z, 0.0) - log_of_one_plus(exp_of_negative(-abs(z)))


@inlined
def log_odds_of_probability(probability):
    """Give ``log(p / (1 - p))``, with both at least 2e-16."""
    rest = max(1.0 - probability, LEAST_PROBABILITY)
    return log(max(probability, LEAST_PROBABILITY) / rest)


@inlined
def log_odds_of_mean(mean):
    """Give the log-odds of a mean that is a probability; of any other, NaN."""
    return log_odds_of_probability(mean) if abs(mean - 0.5) <= 0.5 else np.nan


@inlined
def log_odds_of_log(z):
    """Give the log-odds of e^z if that is a probability; of any other, NaN."""
    return log_odds_of_probability(exp_of_negative(z)) if z <= 0.0 else np.nan


@inlined
def probability_of_margin(z):
    """Give 1 above 0, else 0."""
    return 1.0 if z > 0.0 else 0.0


@inlined
def log_odds_of_margin(z):
    """Give the log-odds of the least probability, or of the greatest above 0."""
    return _MOST_LOG_ODDS if z > 0.0 else -_MOST_LOG_ODDS


_CHANGES = {
    (LOG, MEAN): mean_of_log,
    (LOG_ODDS, MEAN): probability_of_log_odds,
    (LOG_ODDS, PROBABILITY): probability_of_log_odds,
    (LOG_ODDS, LOG): log_of_log_odds,
    (MEAN, LOG): log_of_mean,
    (MEAN, LOG_ODDS): log_odds_of_mean,
    (LOG, LOG_ODDS): log_odds_of_log,
    (PROBABILITY, LOG): log_of_probability,
    (PROBABILITY, LOG_ODDS): log_odds_of_probability,
    (MARGIN, PROBABILITY): probability_of_margin,
    (MARGIN, LOG_ODDS): log_odds_of_margin,
}


def change_of_scale(given: str, wanted: str) -> Callable:
    """Give the kernel that brings a prediction from one scale to another."""
    return unchanged if wanted in (given, ANY) else _CHANGES[given, wanted]
