"""Rows of a user's data: features, targets and all that is given row by row, chosen together."""

from typing import NamedTuple

import numpy as np

from sklboost.data.features import Features, join_rows
from sklboost.tree.core.quantization import FEW_ROWS


class Rows(NamedTuple):
    """Rows of positive weight, and of known targets, only.

    What is not given, or says nothing, is empty, and stays so whatever rows are chosen.

    Attributes
    ----------
    X : ndarray of float32 or float64, Table or BinnedMatrix; shape (n_samples, n_features)
    y : ndarray, shape (n_samples,) or (n_samples, n_targets)
        As checked: numbers, or labels of any kind. Then as the loss has it: float64, float32 if the
        user's are, or uint8 for numbers of up to 256 classes. NaN of several targets: not known.
    weight : ndarray of float64, shape (n_samples,) or (0,)
        Positive; with targets as the loss has them, weights of classes included. Empty: all 1.
    margin : ndarray of float64, shape (n_samples, n_outputs) or (0, 0)
        The user's raw scores before the first tree. Empty: the model's own.
    numbers : ndarray of int, shape (n_samples,) or (0,)
        Of the rows in the user's `X`; in the validation data, -1 is its first row, -2 its second.
        Empty: 0, 1, 2, ...
    groups : ndarray, shape (n_samples,) or (0,)
        Labels of what is held out together, or not at all. Empty: each row by itself.
    """

    X: Features
    y: np.ndarray
    weight: np.ndarray
    margin: np.ndarray
    numbers: np.ndarray = np.empty(0, dtype=np.intp)
    groups: np.ndarray = np.empty(0)

    @property
    def targets(self) -> np.ndarray:
        """Targets as losses take them, float64, shape (n_targets, n_samples)."""
        return np.ascontiguousarray(self.y.reshape(len(self.y), -1).T, dtype=np.float64)

    @property
    def known_numbers(self) -> np.ndarray:
        """The numbers of the rows, written out."""
        return self.numbers if len(self.numbers) else np.arange(len(self.y))

    def take(self, chosen: np.ndarray) -> "Rows":
        """Choose rows by a mask; these rows themselves, if it chooses all."""
        return self if chosen.all() else self._at(chosen)

    def join(self, other: "Rows") -> "Rows":
        """Put other rows behind these; what is left of groups is nothing."""
        weight = np.empty(0)
        if len(self.weight) or len(other.weight):
            weight = np.concatenate(
                [own.weight if len(own.weight) else np.ones(len(own.y)) for own in (self, other)]
            )
        y = np.concatenate([self.y, other.y])
        margin = np.concatenate([self.margin, other.margin])
        numbers = np.concatenate([self.known_numbers, ~other.known_numbers])
        return Rows(join_rows(self.X, other.X), y, weight, margin, numbers)

    def repeat(self) -> "Rows":
        """Repeat each row as often as its weight says, if that is whole and the sum is small.

        Each of the repeated rows is then drawn, or held out, on its own: weight 2 is the row twice
        there, too. Up to a sum of 4,096, as everywhere.
        """
        weight = self.weight
        if len(weight) == 0 or weight.sum() > FEW_ROWS or (weight != np.floor(weight)).any():
            return self
        rows = np.repeat(np.arange(len(weight)), weight.astype(np.intp))
        return self._replace(weight=np.empty(0))._at(rows)

    def words_for(self, row: int) -> str:
        """Name a row as the user knows it."""
        number = int(self.numbers[row]) if len(self.numbers) else row
        return f"row {number} of X" if number >= 0 else f"row {~number} of the validation data"

    def _at(self, rows: np.ndarray) -> "Rows":
        """Give the rows of a mask, or those at these places."""
        X, *others = self._replace(numbers=self.known_numbers)
        return Rows(X[rows], *(own[rows] if len(own) else own for own in others))
