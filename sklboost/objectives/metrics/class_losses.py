"""Losses of a row of several classes, from all its raw scores.

In: the change of scale that brings raw scores to logarithms of probabilities, but for a constant of
the row. Out: a block, see :mod:`sklboost.objectives.metrics.blocks`; its targets are numbers of
classes. It goes output by output, as the gradients of softmax: every inner loop runs over rows and
becomes vector instructions.
"""

from collections.abc import Callable

import numpy as np

from sklboost.engine.compiling import made_kernel
from sklboost.engine.elementary import exp_of_negative, log_of_one_plus


def softmax_losses(change: Callable, name: str) -> Callable:
    """Make the block that fills ``log(sum of e^z_k) - z_y``."""
    fill_largest = largest_scores(change, name)

    def fill_softmax_losses(rows, output, y, raw_score, parameters, scratch):
        n_rows = rows[1] - rows[0]
        targets, losses = y[0, rows[0] : rows[1]], scratch[0, :n_rows]
        largest, others = scratch[1, :n_rows], scratch[2, :n_rows]
        fill_largest(rows, raw_score, largest)
        # the largest has the term 1: what is left is the sum of the others' terms
        others[:] = -1.0
        losses[:] = 0.0
        for class_ in range(raw_score.shape[0]):
            own_score, number = raw_score[class_, rows[0] : rows[1]], float(class_)
            for row in range(len(targets)):
                below = largest[row] - change(own_score[row])
                others[row] += exp_of_negative(-below)
                losses[row] += below if targets[row] == number else 0.0
        for row in range(len(targets)):
            losses[row] += log_of_one_plus(max(others[row], 0.0))
        return 0

    return made_kernel(fill_softmax_losses, name)


def class_errors(change: Callable, name: str) -> Callable:
    """Make the block that fills 1 where the most probable class, the first of equals, is not y."""

    def fill_class_errors(rows, output, y, raw_score, parameters, scratch):
        n_rows = rows[1] - rows[0]
        targets, losses = y[0, rows[0] : rows[1]], scratch[0, :n_rows]
        largest, best = scratch[1, :n_rows], scratch[2, :n_rows]
        largest[:] = -np.inf
        for class_ in range(raw_score.shape[0]):
            own_score, number = raw_score[class_, rows[0] : rows[1]], float(class_)
            for row in range(len(targets)):
                # read before it is known whether it is needed: a vector of rows, not a branch each
                own, top, first = change(own_score[row]), largest[row], best[row]
                best[row] = number if own > top else first
                largest[row] = max(own, top)
        for row in range(len(targets)):
            losses[row] = 0.0 if best[row] == targets[row] else 1.0
        return 0

    return made_kernel(fill_class_errors, name)


def squared_class_errors(change: Callable, name: str) -> Callable:
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
            own_score = raw_score[class_, rows[0] : rows[1]]
            for row in range(len(targets)):
                total[row] += exp_of_negative(change(own_score[row]) - largest[row])
        for class_ in range(raw_score.shape[0]):
            own_score, number = raw_score[class_, rows[0] : rows[1]], float(class_)
            for row in range(len(targets)):
                term = exp_of_negative(change(own_score[row]) - largest[row])
                is_own = 1.0 if targets[row] == number else 0.0
                losses[row] += (is_own - term / total[row]) ** 2
        return 0

    return made_kernel(fill_squared_class_errors, name)


def largest_scores(change: Callable, name: str) -> Callable:
    """Make a kernel that fills the largest changed score of each row."""

    def fill_largest(rows, raw_score, largest):
        largest[:] = -np.inf
        for class_ in range(raw_score.shape[0]):
            own_score = raw_score[class_, rows[0] : rows[1]]
            for row in range(len(largest)):
                largest[row] = max(largest[row], change(own_score[row]))

    return made_kernel(fill_largest, name)
