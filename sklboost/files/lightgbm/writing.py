"""Models of ours as text models of LightGBM."""

import json
import re
from typing import NoReturn

import numpy as np

from sklboost.engine.model import Model
from sklboost.files.foreign import Meaning
from sklboost.files.lightgbm.tree_writing import TreeWriter
from sklboost.files.lightgbm.written_categories import write_categories
from sklboost.files.sections import NotExpressibleError

# By the task here. Predictions of those without a name are raw scores, as with a loss of the
# user's own there.
_OBJECTIVES = {
    "regression": {
        "reg:squarederror": "regression",
        "reg:absoluteerror": "regression_l1",
        "reg:quantileerror": "quantile",
        "reg:huber": "huber",
        "reg:fair": "fair",
        "reg:mape": "mape",
        "count:poisson": "poisson",
        "reg:gamma": "gamma",
        "reg:tweedie": "tweedie",
        "reg:logistic": "cross_entropy",
        "reg:expectileerror": "",
        "reg:pseudohubererror": "",
        "reg:logcosh": "",
    },
    "binary": {"binary:logistic": "binary sigmoid:1"},
    "multiclass": {"multi:softprob": "multiclass num_class:{}"},
    "ranking": {
        "rank:ndcg": "lambdarank",
        "rank:map": "lambdarank",
        "rank:pairwise": "lambdarank",
        "rank:xendcg": "rank_xendcg",
    },
}
_NO_NAME_HAS = '",:[]{}'  # LightGBM's dumps give these a meaning


def write_lightgbm(model: Model, meaning: Meaning) -> str:
    """Return the text model that LightGBM opens, and that predicts the same there.

    Thresholds are the next float64 below ours, and the base score is in the leaves of the first
    round, as LightGBM has it. A round of parallel trees is several rounds, and a vector tree a tree
    for each output.

    Raises
    ------
    NotExpressibleError
        If LightGBM has no way to say what the model is; a ValueError.
    """
    objective = _objective(model, meaning)
    names = _names(meaning)
    categories = write_categories(model, meaning.encodings)
    writer = TreeWriter(model, categories, meaning.missing)
    trees = [
        f"Tree={number}\n{tree}\n\n\n"
        for number, tree in enumerate(writer.trees(meaning.base_score))
    ]
    header = {
        "version": "v4",
        "num_class": model.n_outputs,
        "num_tree_per_iteration": model.n_outputs,
        "label_index": 0,
        "max_feature_idx": model.n_features - 1,
        **({"objective": objective} if objective else {}),
        "feature_names": " ".join(names),
        "feature_infos": " ".join(_info(integers) for integers in categories.integers),
        "tree_sizes": " ".join(str(len(tree)) for tree in trees),
    }
    lines = "\n".join(f"{key}={value}" for key, value in header.items())
    lists = json.dumps(categories.of_pandas) if categories.of_pandas else "null"
    return f"tree\n{lines}\n\n{''.join(trees)}end of trees\n\npandas_categorical:{lists}\n"


def _objective(model: Model, meaning: Meaning) -> str:
    if meaning.objective == "":
        _refuse("a loss of your own")
    if meaning.task == "multilabel" or meaning.n_targets > 1:
        _refuse("several targets or labels")
    if meaning.classes is not None and len(meaning.classes) == 1:
        _refuse(f"model of a single class, {meaning.classes.tolist()[0]!r}")
    shared = _OBJECTIVES.get(meaning.task, {})
    if meaning.objective not in shared:
        _refuse(f"{meaning.chosen_by}={meaning.objective!r} with the same predictions")
    if model.n_outputs > 1 and meaning.task == "regression":
        _refuse("several quantiles or expectiles")
    return shared[meaning.objective].format(model.n_outputs)


def _names(meaning: Meaning) -> list[str]:
    """Return the names of the features, in which LightGBM has no spaces."""
    if meaning.feature_names is None:
        return [f"Column_{i}" for i in range(meaning.n_features)]
    names = [re.sub(r"\s", "_", name) for name in meaning.feature_names]
    wrong = [name for name in names if not name or any(mark in name for mark in _NO_NAME_HAS)]
    if wrong:
        _refuse(f"feature name {wrong[0]!r}: LightGBM's have none of {_NO_NAME_HAS}")
    if len(set(names)) < len(names):
        _refuse("two features of the same name, spaces counting as underscores")
    return names


def _info(integers: np.ndarray | None) -> str:
    """Return what is said of the values of a feature: their range, or the categories."""
    return "[-inf:inf]" if integers is None else ":".join(map(str, integers.tolist())) or "none"


def _refuse(what: str) -> NoReturn:
    raise NotExpressibleError("LightGBM", what)
