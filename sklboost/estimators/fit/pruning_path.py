"""The pruning path of an estimator's first tree, in the form that scikit-learn's trees give it.

In: an estimator's parameters and data. Out: penalties and impurities of nested subtrees.
"""

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from sklboost.estimators.fit.reading import read_task
from sklboost.estimators.input.arguments import FitArguments
from sklboost.estimators.predict.raw_scores import leaves
from sklboost.inspection.cost_complexity import pruning_path

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
            f"cost_complexity_pruning_path prunes one tree, but {task.loss.name} has a tree for "
            f"each of {task.loss.n_outputs} outputs here: ask for one at a time (several classes: "
            "sklearn.multiclass.OneVsRestClassifier)"
        )
    model = grown.fit(X, y, sample_weight).model_
    rows = task.rows
    weight = rows.weight if len(rows.weight) > 0 else 1.0
    start = np.repeat(model.base_score[:, np.newaxis], len(rows.y), axis=1)
    ((gradient,), (hessian,)) = task.loss.gradients(rows.targets, start)
    (leaf,) = leaves(model, rows.X, grown.n_jobs).T
    path = pruning_path(model.nodes, leaf, weight * gradient, weight * hessian, model.params_of(0))
    return Bunch(ccp_alphas=path.alphas, impurities=path.impurities)
