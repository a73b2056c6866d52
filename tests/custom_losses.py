"""Losses as a user writes them, in a module, so that pickle can find them."""

import numba
import numpy as np

from sklboost import Loss
from sklboost.engine.elementary import exp_of_negative

# the same arithmetic as the package's own, which np.exp is not to the last bit
_exp_of_negative = np.vectorize(exp_of_negative, otypes=[float])


def squared_error(y_true, y_pred):
    return y_pred - y_true, np.ones_like(y_pred)


def weighted_squared_error(y_true, y_pred, sample_weight=None):
    weight = 1.0 if sample_weight is None else sample_weight
    return weight * (y_pred - y_true), weight * np.ones_like(y_pred)


@numba.njit
def squared_error_of_row(y_true, y_pred):
    return y_pred - y_true, 1


@numba.njit
def squared_error_of_arrays(y_true, y_pred):
    return y_pred - y_true, np.ones(len(y_pred))


class SquaredErrorOfArrays(Loss):
    def gradients(self, y, raw_score):
        return raw_score - y, np.ones_like(raw_score)


class SquaredErrorOfRows(Loss):
    @staticmethod
    @numba.njit
    def row_derivatives(y_true, y_pred):
        return y_pred - y_true, 1.0


def log_loss(y_true, y_pred):
    decay = _exp_of_negative(-np.abs(y_pred))
    larger, smaller = 1.0 / (1.0 + decay), decay / (1.0 + decay)
    p = np.where(y_pred >= 0.0, larger, smaller)
    q = np.where(y_pred >= 0.0, smaller, larger)
    return p * (1.0 - y_true) - q * y_true, larger * smaller


@numba.njit
def log_loss_of_row(y_true, y_pred):
    decay = exp_of_negative(-abs(y_pred))
    larger, smaller = 1.0 / (1.0 + decay), decay / (1.0 + decay)
    p, q = (larger, smaller) if y_pred >= 0.0 else (smaller, larger)
    return p * (1.0 - y_true) - q * y_true, larger * smaller


class LogLossOfRows(Loss):
    link = "logit"
    row_derivatives = log_loss_of_row


def softmax(y_true, y_pred):
    terms = np.exp(y_pred - y_pred.max(axis=1, keepdims=True))
    p = terms / terms.sum(axis=1, keepdims=True)
    n_classes = p.shape[1]
    return p - np.eye(n_classes)[y_true.astype(int)], n_classes / (n_classes - 1) * p * (1 - p)


SQUARED_ERRORS = {
    "NumPy": squared_error,
    "numba, rows": squared_error_of_row,
    "numba, arrays": squared_error_of_arrays,
    "Loss": SquaredErrorOfArrays(),
    "Loss, rows": SquaredErrorOfRows(),
}
LOG_LOSSES = {"NumPy": log_loss, "numba, rows": log_loss_of_row, "Loss, rows": LogLossOfRows()}
