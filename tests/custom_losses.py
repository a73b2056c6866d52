"""Losses as a user writes them, in a module, so that pickle can find them.

Those that numba compiles are in :mod:`tests.compiler.losses`.
"""

from importlib import import_module

import numpy as np
import pytest

from sklboost import Loss
from sklboost.engine.elementary import exp_of_negative

# the same arithmetic as the package's own, which np.exp is not to the last bit
_exp_of_negative = np.vectorize(
    getattr(exp_of_negative, "py_func", exp_of_negative), otypes=[float]
)


def squared_error(y_true, y_pred):
    return y_pred - y_true, np.ones_like(y_pred)


def weighted_squared_error(y_true, y_pred, sample_weight=None):
    weight = 1.0 if sample_weight is None else sample_weight
    return weight * (y_pred - y_true), weight * np.ones_like(y_pred)


class SquaredErrorOfArrays(Loss):
    def gradients(self, y, raw_score):
        return raw_score - y, np.ones_like(raw_score)


def log_loss(y_true, y_pred):
    decay = _exp_of_negative(-np.abs(y_pred))
    larger, smaller = 1.0 / (1.0 + decay), decay / (1.0 + decay)
    p = np.where(y_pred >= 0.0, larger, smaller)
    q = np.where(y_pred >= 0.0, smaller, larger)
    return p * (1.0 - y_true) - q * y_true, larger * smaller


def softmax(y_true, y_pred):
    terms = np.exp(y_pred - y_pred.max(axis=1, keepdims=True))
    p = terms / terms.sum(axis=1, keepdims=True)
    n_classes = p.shape[1]
    return p - np.eye(n_classes)[y_true.astype(int)], n_classes / (n_classes - 1) * p * (1 - p)


SQUARED_ERRORS = [
    *("squared_error", "squared_error_of_row", "squared_error_of_arrays"),
    *("SquaredErrorOfArrays", "SquaredErrorOfRows"),
]
LOG_LOSSES = ["log_loss", "log_loss_of_row", "LogLossOfRows"]


def loss_named(name):
    """Return a function, or an object of a class; skip the test if it is one for numba alone."""
    found = globals().get(name)
    if found is None:
        pytest.importorskip("numba")
        found = getattr(import_module("tests.compiler.losses"), name)
    return found() if isinstance(found, type) else found


def compiled(function):
    """Compile a function as a user does; skip the test if there is no numba."""
    return pytest.importorskip("numba").njit(function)
