"""Losses as a user writes them and lets numba compile them, in a module for pickle, too."""

import numba
import numpy as np

from sklboost import Loss
from sklboost.engine.elementary import exp_of_negative


@numba.njit
def squared_error_of_row(y_true, y_pred):
    return y_pred - y_true, 1


@numba.njit
def squared_error_of_arrays(y_true, y_pred):
    return y_pred - y_true, np.ones(len(y_pred))


class SquaredErrorOfRows(Loss):
    @staticmethod
    @numba.njit
    def row_derivatives(y_true, y_pred):
        return y_pred - y_true, 1.0


@numba.njit
def log_loss_of_row(y_true, y_pred):
    decay = exp_of_negative(-abs(y_pred))
    larger, smaller = 1.0 / (1.0 + decay), decay / (1.0 + decay)
    p, q = (larger, smaller) if y_pred >= 0.0 else (smaller, larger)
    return p * (1.0 - y_true) - q * y_true, larger * smaller


class LogLossOfRows(Loss):
    link = "logit"
    row_derivatives = log_loss_of_row
