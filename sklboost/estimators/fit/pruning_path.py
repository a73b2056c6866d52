"""The pruning path of the first tree of a fit, in the form that scikit-learn's trees give it."""

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from sklboost.data.frames import dask_kind
from sklboost.estimators.fit.fitting import Clock, train_model
from sklboost.estimators.fit.reading import FitRequest, plan_task, read_data
from sklboost.estimators.predict.raw_scores import leaves
from sklboost.inspection.nested_subtrees import pruning_path

# One whole tree of all rows, without callbacks and progress.
_ONE_TREE: dict[str, Any] = {
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


def path_of_first_tree(request: FitRequest) -> Bunch:
    """Grow the first tree of such a fit and return the path of its subtrees."""
    if request.parameters.preset is not None:
        raise ValueError(
            "preset='auto': the pruning path is that of a tree of given parameters; call "
            "set_params(**model.chosen_params_, preset=None) before"
        )
    if dask_kind(request.X):
        raise TypeError(
            "X is a Dask collection: cost_complexity_pruning_path needs the rows here, X.compute()"
        )
    request = request.with_settings(_ONE_TREE)._replace(continued=None)
    task = plan_task(request, read_data(request))
    rows, loss = task.rows, task.loss
    if loss.n_outputs > 1:
        raise ValueError(
            f"cost_complexity_pruning_path prunes one tree, but {loss.name} has a tree for "
            f"each of {loss.n_outputs} outputs here: ask for one at a time (several classes: "
            "sklearn.multiclass.OneVsRestClassifier)"
        )
    model = train_model(request, task, Clock()).trained.model
    weight = rows.weight if len(rows.weight) > 0 else 1.0
    start = np.repeat(model.base_score[:, np.newaxis], len(rows.y), axis=1)
    ((gradient,), (hessian,)) = loss.gradients(rows.targets, start)
    (leaf,) = leaves(model, rows.X, request.parameters.n_jobs).T
    path = pruning_path(model.nodes, leaf, weight * gradient, weight * hessian, model.params_of(0))
    return Bunch(ccp_alphas=path.alphas, impurities=path.impurities)
