"""Losses of a row that only metrics have: wrong predictions, and the squared error of classes.

Those of more than two classes read all scores of a row, so each makes its block itself, see
:mod:`sklboost.objectives.blocks`; targets are numbers of classes. They go output by output, as the
gradients of softmax: every inner loop runs over rows and becomes vector instructions.
"""

from typing import Any

import numpy as np

from sklboost.engine.compiling import inlined, made_kernel
from sklboost.engine.elementary import exp_of_negative
from sklboost.objectives.blocks import NO_FAULT, Formula
from sklboost.objectives.links import ANY, LOG_ODDS, PROBABILITY, SOFTMAX
from sklboost.objectives.losses.several_classes import largest_scores


@inlined
def wrong_side(y, prediction, threshold):
    """Return ``1 - y`` where the prediction is above the threshold, which is class 1, else y."""
    return 1.0 - y if prediction > threshold else y


def wrong_classes(change: Any, name: str) -> Any:
    """Make the block that fills 1 where the most probable class, the first of equals, is not y."""

    def fill_wrong_classes(rows, output, y, raw_score, parameters, scratch):
        n_rows = rows[1] - rows[0]
        targets, losses = y[0, rows[0] : rows[1]], scratch[0, :n_rows]
        largest, best = scratch[1, :n_rows], scratch[2, :n_rows]
        largest[:] = -np.inf
        for class_ in range(raw_score.shape[0]):
            scores, number = raw_score[class_, rows[0] : rows[1]], float(class_)
            for row in range(len(targets)):
                # read before it is known whether it is needed: a vector of rows, not a branch each
                score, top, first = change(scores[row]), largest[row], best[row]
                best[row] = number if score > top else first
                largest[row] = max(score, top)
        for row in range(len(targets)):
            losses[row] = 0.0 if best[row] == targets[row] else 1.0
        return NO_FAULT

    return made_kernel(fill_wrong_classes, name)


def squared_class_errors(change: Any, name: str) -> Any:
    """Make the block that fills the sum over classes of ``([y = k] - p_k)^2``."""
    fill_largest = largest_scores(change, name)

    def fill_squared_class_errors(rows, output, y, raw_score, parameters, scratch):
        n_rows = rows[1] - rows[0]
        targets, losses = y[0, rows[0] : rows[1]], scratch[0, :n_rows]
        largest, total = scratch[1, :n_rows], scratch[2, :n_rows]
        fill_largest(rows, raw_score, largest)
        total[:] = 0.0
        losses[:] = 0.0
        for class_ in range(raw_score.shape[0]):
            scores = raw_score[class_, rows[0] : rows[1]]
            for row in range(len(targets)):
                total[row] += exp_of_negative(change(scores[row]) - largest[row])
        for class_ in range(raw_score.shape[0]):
            scores, number = raw_score[class_, rows[0] : rows[1]], float(class_)
            for row in range(len(targets)):
                term = exp_of_negative(change(scores[row]) - largest[row])
                happened = 1.0 if targets[row] == number else 0.0
                losses[row] += (happened - term / total[row]) ** 2
        return NO_FAULT

    return made_kernel(fill_squared_class_errors, name)


# The threshold 0 of log-odds tells more rows apart than 1/2 of probabilities that are rounded.
WRONG_SIDE = Formula(wrong_side, LOG_ODDS)
WRONG_SIDE_OF_PROBABILITY = Formula(wrong_side, PROBABILITY)
WRONG_CLASS = Formula(wrong_classes, ANY, is_of_classes=True)
SQUARED_CLASS_ERROR = Formula(squared_class_errors, SOFTMAX, is_of_classes=True)
