"""The pruning path of an estimator's first tree, in the form that scikit-learn's trees give it.

In: an estimator's parameters and data. Out: penalties and impurities of nested subtrees.
"""

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from sklboost.estimators.evaluation_sets import FitArguments
from sklboost.estimators.raw_scores import leaves
from sklboost.estimators.reading import read_task
from sklboost.inspection.cost_complexity import pruning_path
from sklboost.losses.base import Loss
from sklboost.losses.log_loss import LogLoss
from sklboost.losses.squared_error import SquaredError

# One whole tree of all rows, and nobody watches.
_ONE_TREE = {
    "n_estimators": 1,
    "learning_rate": 1.0,
    "num_parallel_tree": 1,
    "booster": "gbtree",
    "ccp_alpha": 0.0,
    "subsample": 1.0,
    "early_stopping_rounds": None,
    "max_time": None,
    "callbacks": None,
    "warm_start": False,
    "verbose": 0,
}


def path_of_first_tree(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Bunch:
    """Grow the first tree of such an estimator and give the path of its subtrees."""
    grown = type(estimator)(**{**estimator.get_params(deep=False), **_ONE_TREE})
    task = read_task(grown, X, y, FitArguments(sample_weight), None)
    if task.loss.n_outputs > 1:
        raise ValueError(
            f"cost_complexity_pruning_path prunes one tree, but y has {task.loss.n_outputs} "
            "classes, with a tree for each: use two classes, or "
            "sklearn.multiclass.OneVsRestClassifier"
        )
    model = grown.fit(X, y, sample_weight).model_
    rows = task.rows
    weight = rows.weight if len(rows.weight) > 0 else np.ones(len(rows.y))
    gradient, hessian = _derivatives(task.loss, rows.y, float(model.base_score[0]))
    (leaf,) = leaves(model, rows.X, grown.n_jobs).T
    path = pruning_path(model.nodes, leaf, weight * gradient, weight * hessian, model.params_of(0))
    return Bunch(ccp_alphas=path.alphas, impurities=path.impurities)


def _derivatives(loss: Loss, y: np.ndarray, start: float) -> tuple[np.ndarray, np.ndarray | float]:
    """Give gradients and hessians at the start: as float64, which training does without."""
    if isinstance(loss, SquaredError):
        return start - y, 1.0
    assert isinstance(loss, LogLoss)
    (other, share), *_ = loss.probabilities(np.array([[start]]))
    return share - y, share * other
