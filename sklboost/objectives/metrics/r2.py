"""The share of the variance that is explained."""

import numpy as np


def r2(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Give the share of the variance that is explained; of several targets, the mean of theirs.

    As scikit-learn: where all targets are the same, 1 for no error at all and else 0. A target that
    is NaN is not counted, and neither is a column without any other.

    Raises
    ------
    ValueError
        If there is not one prediction for each target, but one for each level of a quantile.
    """
    if prediction.shape != y.shape:
        raise ValueError(
            f"r2 of predictions of shape {prediction.shape} for targets of shape {y.shape}: it "
            "needs one prediction for each target; choose another metric"
        )
    columns = zip(np.atleast_2d(y.T), np.atleast_2d(prediction.T), strict=True)
    known = [column for column in columns if not np.isnan(column[0]).all()]
    return float(np.mean([_r2_of_target(*column, weight) for column in known]))


def _r2_of_target(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    known = ~np.isnan(y)
    y, prediction = y[known], prediction[known]
    weights = weight[known] if len(weight) else None
    residual = np.average((y - prediction) ** 2, weights=weights)
    variance = np.average((y - np.average(y, weights=weights)) ** 2, weights=weights)
    if variance == 0.0:
        return 1.0 if residual == 0.0 else 0.0
    return float(1.0 - residual / variance)
