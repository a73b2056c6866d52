"""The table of losses: which libraries have the same one, how they spell it, and on which data.

Peers get the parameters of `peers.py`, and what stands here instead of squared error. The held-out
loss is computed by the formulas of this file from predictions, or for the losses of classes from
raw scores; nothing of it comes from any of the libraries.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class LossCase(NamedTuple):
    """One loss on some data sets.

    Attributes
    ----------
    objective : str
        Ours; parameters of it in `ours`.
    value : callable
        ``value(y, prediction) -> loss of each row``; shape (n_samples, n_classes) for classes.
    datasets : tuple of str
        Of `loss_data.py`.
    ours : dict
    peers : dict of str to dict
        For each library that has the loss, what makes it the same.
    """

    objective: str
    value: Callable[[np.ndarray, np.ndarray], np.ndarray]
    datasets: tuple[str, ...]
    ours: dict[str, Any]
    peers: dict[str, dict[str, Any]]


# a third or less of the targets' spread
SLOPE, LEVEL, POWER, FOCUS = 0.3, 0.9, 1.5, 2.0


def _huber(y, p):
    size = np.abs(y - p)
    return np.where(size <= SLOPE, 0.5 * size**2, SLOPE * (size - 0.5 * SLOPE))


def _pseudo_huber(y, p):
    return SLOPE**2 * (np.sqrt(1 + ((y - p) / SLOPE) ** 2) - 1)


def _log_cosh(y, p):
    return np.logaddexp(y - p, p - y) - np.log(2)


def _fair(y, p):
    share = np.abs(y - p) / SLOPE
    return SLOPE**2 * (share - np.log1p(share))


def _expectile(y, p):
    return np.where(y > p, LEVEL, 1 - LEVEL) * (y - p) ** 2


def _squared_log_error(y, p):
    return 0.5 * (np.log1p(np.maximum(p, -1 + 1e-6)) - np.log1p(y)) ** 2


def _percentage_error(y, p):
    return np.abs(y - p) / np.abs(y)


# Deviances: the values less those of a perfect model, so that a ratio means something.
def _poisson(y, p):
    return 2 * (np.where(y > 0, y * np.log(np.where(y > 0, y, 1) / p), 0.0) - y + p)


def _gamma(y, p):
    return 2 * (y / p - 1 - np.log(y / p))


def _tweedie(y, p):
    a, b = 1 - POWER, 2 - POWER
    return 2 * (np.maximum(y, 0) ** b / (a * b) - y * p**a / a + p**b / b)


def _focal(y, z):
    margin = np.where(y == 1, z, -z)
    return np.exp(-FOCUS * np.logaddexp(0, margin)) * np.logaddexp(0, -margin)


def _hinge(y, z):
    return np.maximum(0.0, 1 - (2 * y - 1) * z)


def _one_vs_rest(y, z):
    is_own = y[:, np.newaxis] == np.arange(z.shape[1])
    return np.logaddexp(0, np.where(is_own, -z, z)).sum(axis=1)


# not all of its losses have Newton's leaves, or a start value
_CATBOOST_CHOICES = ("leaf_estimation_method", "leaf_estimation_iterations", "boost_from_average")


def _catboost(loss, **others):
    """Return a loss of CatBoost's, with its own choice of what is made equal for squared error."""
    return {"loss_function": loss, **dict.fromkeys(_CATBOOST_CHOICES), **others}


_ROBUST_DATA = ("protein_casp", "california_100k")
CASES = (
    LossCase(
        "reg:huber",
        _huber,
        _ROBUST_DATA,
        {"huber_slope": SLOPE},
        {
            "lightgbm": {"objective": "huber", "alpha": SLOPE},
            "catboost": _catboost(f"Huber:delta={SLOPE}"),
        },
    ),
    LossCase(
        "reg:pseudohubererror",
        _pseudo_huber,
        _ROBUST_DATA,
        {"huber_slope": SLOPE},
        {"xgboost": {"objective": "reg:pseudohubererror", "huber_slope": SLOPE}},
    ),
    LossCase("reg:logcosh", _log_cosh, _ROBUST_DATA, {}, {"catboost": _catboost("LogCosh")}),
    LossCase(
        "reg:fair",
        _fair,
        _ROBUST_DATA,
        {"fair_c": SLOPE},
        {"lightgbm": {"objective": "fair", "fair_c": SLOPE}},
    ),
    LossCase(
        "reg:expectileerror",
        _expectile,
        _ROBUST_DATA,
        {"expectile_alpha": LEVEL},
        {"catboost": _catboost(f"Expectile:alpha={LEVEL}")},
    ),
    LossCase(
        "reg:mape",
        _percentage_error,
        ("bike_hour", "diamonds"),  # no target below 1, where LightGBM's loss is another
        {},
        {"lightgbm": {"objective": "mape"}, "catboost": _catboost("MAPE")},
    ),
    LossCase(
        "reg:squaredlogerror",
        _squared_log_error,
        ("bike_hour", "california_100k"),
        {},
        {"xgboost": {"objective": "reg:squaredlogerror"}},
    ),
    LossCase(
        "count:poisson",
        _poisson,
        ("bike_hour", "weather_rainfall"),
        {},
        {
            "xgboost": {"objective": "count:poisson"},
            "lightgbm": {"objective": "poisson"},
            "hist_gb": {"loss": "poisson"},
            "catboost": _catboost("Poisson"),
        },
    ),
    LossCase(
        "reg:gamma",
        _gamma,
        ("diamonds", "california_100k"),
        {},
        {
            "xgboost": {"objective": "reg:gamma"},
            "lightgbm": {"objective": "gamma"},
            "hist_gb": {"loss": "gamma"},
        },
    ),
    LossCase(
        "reg:tweedie",
        _tweedie,
        ("bike_hour", "weather_rainfall"),
        {"tweedie_variance_power": POWER},
        {
            "xgboost": {"objective": "reg:tweedie", "tweedie_variance_power": POWER},
            "lightgbm": {"objective": "tweedie", "tweedie_variance_power": POWER},
            "catboost": _catboost(f"Tweedie:variance_power={POWER}"),
        },
    ),
    LossCase(
        "binary:focal",
        _focal,
        ("adult", "bank_marketing"),
        {"focal_gamma": FOCUS},
        # its loss has weights for the classes, of which half for each halves the loss
        {"catboost": _catboost(f"Focal:focal_alpha=0.5;focal_gamma={FOCUS}", l2_leaf_reg=0.5)},
    ),
    LossCase(
        "binary:hinge",
        _hinge,
        ("adult", "bank_marketing"),
        {},
        {"xgboost": {"objective": "binary:hinge"}},
    ),
    LossCase(
        "multi:onevsrest",
        _one_vs_rest,
        ("letter", "lgb_multiclass"),
        {},
        {
            "lightgbm": {"objective": "multiclassova"},
            "catboost": _catboost("MultiClassOneVsAll"),
        },
    ),
)
