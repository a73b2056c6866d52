"""What the numbers of a model mean, in words that all libraries share."""

from typing import Any, NamedTuple

import numpy as np

from sklboost.data.encoding import Encoding


class Meaning(NamedTuple):
    """What the features and raw scores of a model mean, whatever library it is of."""

    task: str
    objective: str  # as `objective` of our estimators; empty for a loss that the user wrote
    # float64, shape (n_outputs,): raw scores before the first tree, shifts after the training
    # included
    base_score: np.ndarray
    n_targets: int  # columns of y; 1 for classes
    n_features: int
    feature_names: list[str] | None = None
    # how the values of features become numbers; None: they are numbers
    encodings: tuple[Encoding, ...] | None = None
    # ndarray or None: labels of a classifier, in the order of its outputs
    classes: np.ndarray | None = None
    missing: float = np.nan  # A further value that counts as missing; NaN: none
    parameters: dict[str, Any] = {}  # noqa: RUF012, never modified
    best_iteration: int | None = None  # the round at which early stopping found the best metric
    chosen_by: str = "objective"  # the parameter of our estimators that names the objective
