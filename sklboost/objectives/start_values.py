"""The constant of least loss, for losses that have no formula for it."""

from typing import Protocol

import numpy as np

from sklboost.objectives.loss import weighted_mean

_MOST_STEPS = 200
# Of a raw score, relative to its size or to 1.
_TOLERANCE = 1e-12


class Differentiable(Protocol):
    """What has gradients."""

    n_outputs: int

    def gradients(self, y: np.ndarray, raw_score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Give gradient and hessian of each output."""


def find_constants(
    loss: Differentiable, y: np.ndarray, weight: np.ndarray, guess: np.ndarray | None = None
) -> np.ndarray:
    """Find the raw score of each output at which its mean gradient is 0; shape (n_outputs,).

    Newton's method, kept between the largest score known to be too small and the smallest known to
    be too large: what would leave this range, or come from a step without end, is the middle of it
    instead. Where the hessian is only a bound of the second derivative, the slope of the secant
    through the last two points tells more, and makes the steps as long as they should be.

    Parameters
    ----------
    loss : Differentiable
        Its mean gradient rises with the raw score.
    y : ndarray of float64, shape (n_targets, n_samples)
        NaN: not known.
    weight : ndarray of float64, shape (n_samples,) or (0,)
    guess : ndarray of float64, shape (n_outputs,), optional
        Where to begin, if not at 0.
    """
    score = np.zeros(loss.n_outputs) if guess is None else np.asarray(guess, dtype=np.float64)
    low, high = np.full(loss.n_outputs, -np.inf), np.full(loss.n_outputs, np.inf)
    slope, curvature = _mean_gradients(loss, y, weight, score)
    for _ in range(_MOST_STEPS):
        low, high = np.where(slope <= 0.0, score, low), np.where(slope >= 0.0, score, high)
        # at most doubled: far from its minimum a loss can be almost flat
        limit = 1.0 + np.abs(score)
        following = score - np.clip(slope / curvature, -limit, limit)
        middle = 0.5 * (np.maximum(low, score - limit) + np.minimum(high, score + limit))
        following = np.where((following > low) & (following < high), following, middle)
        following = np.where(slope == 0.0, score, following)
        moved = following - score
        if (np.abs(moved) <= _TOLERANCE * (1.0 + np.abs(score))).all():
            return following
        previous_slope, score = slope, following
        slope, curvature = _mean_gradients(loss, y, weight, score)
        rise = np.where(moved == 0.0, 0.0, slope - previous_slope)
        secant = rise / np.where(moved == 0.0, 1.0, moved)
        curvature = np.where(secant > 0.0, np.minimum(secant, curvature), curvature)
    return score


def _mean_gradients(
    loss: Differentiable, y: np.ndarray, weight: np.ndarray, score: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    raw_score = np.repeat(score, y.shape[1]).reshape(len(score), -1)
    both = loss.gradients(y, raw_score)
    slope, curvature = np.array([[weighted_mean(own, weight) for own in rows] for rows in both])
    return slope, curvature
