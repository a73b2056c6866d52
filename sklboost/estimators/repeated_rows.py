"""Weights that stand for repeated rows, where rows are drawn."""

import numpy as np

from sklboost.estimators.validation import TrainingData
from sklboost.tree.quantization import FEW_ROWS


def repeat_rows(data: TrainingData) -> TrainingData:
    """Repeat each row as often as its weight says, if all weights are whole and their sum is small.

    Each of the repeated rows is then drawn on its own: weight 2 is the row twice also where rows
    are drawn. Up to a sum of 4,096, as everywhere.
    """
    weight = data.weight
    if len(weight) == 0 or weight.sum() > FEW_ROWS or (weight != np.floor(weight)).any():
        return data
    rows = np.repeat(np.arange(len(weight)), weight.astype(np.intp))
    return TrainingData(data.X[rows], data.y[rows], np.empty(0))
