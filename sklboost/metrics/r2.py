"""The share of the variance that is explained."""

import numpy as np


def r2(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Give the share of the variance that is explained; of several targets, the mean of theirs.

    As scikit-learn: where all targets are the same, 1 for no error at all and else 0. A target that
    is NaN is not counted.
    """
    columns = zip(np.atleast_2d(y.T), np.atleast_2d(prediction.T), strict=True)
    return float(np.mean([_r2_of_target(*column, weight) for column in columns]))


def _r2_of_target(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    known = ~np.isnan(y)
    y, prediction = y[known], prediction[known]
    weights = weight[known] if len(weight) else None
    residual = np.average((y - prediction) ** 2, weights=weights)
    variance = np.average((y - np.average(y, weights=weights)) ** 2, weights=weights)
    if variance == 0.0:
        return 1.0 if residual == 0.0 else 0.0
    return float(1.0 - residual / variance)
