"""What the numbers of a model mean, in words that all libraries share."""

from typing import Any, NamedTuple

import numpy as np

from sklboost.data.encoding import Encoding


class Meaning(NamedTuple):
    """What the features and raw scores of a model mean, whatever library it is of.

    Attributes
    ----------
    task : {"regression", "binary", "multiclass", "multilabel"}
    objective : str
        As `objective` of our estimators; empty for a loss that the user wrote.
    base_score : ndarray of float64, shape (n_outputs,)
        Raw scores before the first tree, shifts after the training included.
    n_targets : int
        Columns of y; 1 for classes.
    n_features : int
    feature_names : list of str or None
    encodings : tuple of Encoding or None
        How the values of features become numbers; None: they are numbers.
    classes : ndarray or None
        Labels of a classifier, in the order of its outputs.
    missing : float
        A further value that counts as missing; NaN: none.
    parameters : dict of str to object
        Parameters of our estimators with which the model was trained, as far as they are known:
        those of the loss (`quantile_alpha`), and those that results depend on (`booster`,
        `num_parallel_tree`, `multi_strategy`, `learning_rate`, `reg_lambda`, ...).
    best_iteration : int or None
        The round at which early stopping found the best metric.
    chosen_by : str
        The parameter of our estimators that names the objective.
    """

    task: str
    objective: str
    base_score: np.ndarray
    n_targets: int
    n_features: int
    feature_names: list[str] | None = None
    encodings: tuple[Encoding, ...] | None = None
    classes: np.ndarray | None = None
    missing: float = np.nan
    parameters: dict[str, Any] = {}  # noqa: RUF012, never modified
    best_iteration: int | None = None
    chosen_by: str = "objective"
