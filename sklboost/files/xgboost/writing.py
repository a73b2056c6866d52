"""Models of ours in XGBoost's schema."""

import json
from typing import Any

import numpy as np

from sklboost.engine.model import Model
from sklboost.files.errors import NotExpressibleError
from sklboost.files.meaning import Meaning
from sklboost.files.xgboost.categories import write_categories
from sklboost.files.xgboost.objectives import LOG, LOG_ODDS, SHARED
from sklboost.files.xgboost.tree_writing import TreeWriter

# XGBoost's estimators go by the schema of the version that a file names.
_OLD_VERSION, _NEW_VERSION = [2, 1, 0], [3, 2, 0]
_NO_NAME_HAS = "[]<"  # XGBoost's text dumps give these a meaning
_LEAST = float(np.finfo(np.float32).tiny)
_KINDS = {"regression": "regressor", "ranking": "ranker"}


def learner_document(model: Model, meaning: Meaning) -> dict[str, Any]:
    """Return the keys ``learner`` and ``version`` of XGBoost's model files.

    XGBoost then predicts the same for every float32 row, but for the rounding of its sums, which
    are float32. Thresholds are rounded up to float32; dart's trees have their weights in their
    leaves. The version is 2.1, unless the model needs what came later.

    Raises
    ------
    NotExpressibleError
        If XGBoost has no way to say what the model is; a ValueError.
    """
    _check(model, meaning)
    base_score, rest = _base_score(meaning)
    is_old = len(set(base_score)) == 1 and model.params_of(0).multi_output == 0
    text = ",".join(f"{score:.9g}" for score in base_score[: 1 if is_old else None])
    categories = write_categories(meaning.encodings)
    is_old = is_old and categories is None
    learner = {
        "attributes": _attributes(model, meaning),
        "feature_names": meaning.feature_names or [],
        "feature_types": _feature_types(meaning),
        "gradient_booster": {"model": _trees(model, meaning, rest, categories), "name": "gbtree"},
        "learner_model_param": {
            "base_score": text if is_old else f"[{text}]",
            "boost_from_average": "1",
            "num_class": str(model.n_outputs if meaning.task == "multiclass" else 0),
            "num_feature": str(model.n_features),
            "num_target": str(1 if meaning.task == "multiclass" else model.n_outputs),
        },
        "objective": _objective(model, meaning),
    }
    return {"learner": learner, "version": _OLD_VERSION if is_old else _NEW_VERSION}


def _check(model: Model, meaning: Meaning) -> None:
    """Raise NotExpressibleError for a model that XGBoost cannot have."""
    if meaning.objective == "":
        _refuse("loss of your own")
    if meaning.objective not in SHARED.get(meaning.task, ()):
        _refuse(f"{meaning.chosen_by}={meaning.objective!r} with the same predictions")
    if len(meaning.parameters.get("quantile_alpha", ())) > 1:
        _refuse("several values of quantile_alpha whose predictions are put in order")
    if model.linear is not None:
        _refuse("linear leaves")
    if not np.isnan(meaning.missing):
        _refuse(f"missing={meaning.missing}, a number that counts as missing, in its files")
    _check_classes(meaning)
    names = meaning.feature_names or []
    wrong = [name for name in names if any(mark in name for mark in _NO_NAME_HAS)]
    if wrong:
        _refuse(f"feature name {wrong[0]!r}: XGBoost's have none of {_NO_NAME_HAS}")
    if len(set(names)) < len(names):
        _refuse("two features of the same name")


def _check_classes(meaning: Meaning) -> None:
    if meaning.classes is None or meaning.task == "multilabel":
        return
    labels = meaning.classes.tolist()
    if len(labels) == 1:
        _refuse(f"single class, {labels[0]!r}")
    if labels != list(range(len(labels))):
        shown = ", ".join(map(repr, labels[:3])) + ", ..." * (len(labels) > 3)
        _refuse(f"labels {shown}: its classes are 0, 1, 2, ...")


def _refuse(what: str) -> None:
    raise NotExpressibleError("XGBoost", what)


def _base_score(meaning: Meaning) -> tuple[np.ndarray, np.ndarray]:
    """Return the base score as XGBoost has it, and what its rounding leaves of the raw scores.

    XGBoost's is a prediction in float32: a probability close to 1 has lost the digits that count.
    """
    raw = meaning.base_score
    if meaning.objective in LOG:
        largest = float(np.finfo(np.float32).max)
        score = np.exp(np.clip(raw, np.log(_LEAST), np.log(largest) - 1.0)).astype(np.float32)
        return score, raw - np.log(score.astype(np.float64))
    if meaning.objective in LOG_ODDS:
        chance = np.clip(1.0 / (1.0 + np.exp(-np.clip(raw, -50.0, 50.0))), 1e-5, 1.0 - 1e-5)
        score = chance.astype(np.float32)
        chance = score.astype(np.float64)
        return score, raw - (np.log(chance) - np.log1p(-chance))
    score = raw.astype(np.float32)
    return score, raw - score


def _attributes(model: Model, meaning: Meaning) -> dict[str, str]:
    kind = _KINDS.get(meaning.task, "classifier")
    attributes = {"scikit_learn": json.dumps({"_estimator_type": kind})}
    if meaning.best_iteration == model.n_rounds - 1:
        attributes["best_iteration"] = str(meaning.best_iteration)
    return attributes


def _feature_types(meaning: Meaning) -> list[str]:
    if meaning.encodings is None:
        return ["float"] * meaning.n_features if meaning.feature_names is not None else []
    return ["c" if encoding.kind == "category" else "float" for encoding in meaning.encodings]


def _objective(model: Model, meaning: Meaning) -> dict[str, Any]:
    name, shared = meaning.objective, SHARED[meaning.task][meaning.objective]
    if not shared.section:
        return {"name": name}
    parameters = dict(shared.written)
    if shared.parameter:
        value = f"{meaning.parameters[shared.parameter][0]:.9g}"
        parameters[shared.parameter] = f"[{value}]" if shared.is_list else value
    if meaning.task == "multiclass":
        parameters["num_class"] = str(model.n_outputs)
    return {"name": name, shared.section: parameters}


def _trees(
    model: Model, meaning: Meaning, rest: np.ndarray, categories: dict[str, Any] | None
) -> dict[str, Any]:
    """Return the section of the trees; `rest` is added to the leaves of the first round."""
    writer = TreeWriter(model, meaning.encodings)
    settings = model.params_of(0)
    n_parallel, per_round = settings.num_parallel_tree, model.trees_per_round
    n_groups = per_round // n_parallel
    # XGBoost has all parallel trees of an output, then those of the next
    order = np.arange(model.n_trees).reshape(-1, n_parallel, n_groups).swapaxes(1, 2).ravel()
    added = rest.reshape(n_groups, -1)  # a row for each tree of the first n_groups
    trees = []
    for number, tree in enumerate(order.tolist()):
        shift = added[tree] if tree < n_groups else np.zeros(added.shape[1])
        trees.append({**writer.tree(tree, shift), "id": number})
    return {
        "cats": categories or {"enc": [], "feature_segments": [], "sorted_idx": []},
        "gbtree_model_param": {
            "num_parallel_tree": str(n_parallel),
            "num_trees": str(model.n_trees),
        },
        "iteration_indptr": list(range(0, model.n_trees + 1, per_round)),
        "tree_info": (order % n_groups).tolist(),
        "trees": trees,
    }
