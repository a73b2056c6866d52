"""Metrics of regression, each equal to scikit-learn's function."""

import math

import numpy as np

from sklboost.metrics.base import mean


def rmse(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Give the root of the mean squared error."""
    return math.sqrt(mean((y - prediction) ** 2, weight))


def rmsle(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Give the root mean squared error of log(1 + y).

    Raises
    ------
    ValueError
        For a target or a prediction that is -1 or below, which has no such logarithm.
    """
    for kind, values in (("target", y), ("prediction", prediction)):
        least = float(values.min())
        if least <= -1.0:
            raise ValueError(
                f"rmsle of a {kind} of {least:g}: it needs targets and predictions above -1; "
                "choose another eval_metric, or fit log1p(y) with the metric rmse"
            )
    return rmse(np.log1p(y), np.log1p(prediction), weight)


def mean_absolute_error(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Give the mean of the absolute errors."""
    return mean(np.abs(y - prediction), weight)


def mean_absolute_percentage_error(
    y: np.ndarray, prediction: np.ndarray, weight: np.ndarray
) -> float:
    """Give the mean of ``|y - p| / |y|``, a share of 1; as scikit-learn, 2e-16 stands for y = 0."""
    size = np.maximum(np.abs(y), np.finfo(np.float64).eps)
    return mean(np.abs(y - prediction) / size, weight)


def r2(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Give the share of the variance that is explained.

    As scikit-learn: where all targets are the same, 1 for no error at all and else 0.
    """
    residual = mean((y - prediction) ** 2, weight)
    variance = mean((y - mean(y, weight)) ** 2, weight)
    if variance == 0.0:
        return 1.0 if residual == 0.0 else 0.0
    return 1.0 - residual / variance
