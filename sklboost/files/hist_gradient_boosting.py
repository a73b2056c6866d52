"""The trees of scikit-learn's HistGradientBoosting estimators, and what they mean.

Estimators are read by their attributes, which are the same from scikit-learn 1.6 to 1.9.
"""

from typing import Any

import numpy as np

from sklboost.data.encoding import Encoding, list_encoding
from sklboost.files.foreign import ForeignTree, ModelInfo, with_equal_left, with_gradients
from sklboost.files.sections import ModelFileError

_LEAST_HESSIAN = 1e-3  # of a child
_OBJECTIVES = {
    "squared_error": "reg:squarederror",
    "absolute_error": "reg:absoluteerror",
    "quantile": "reg:quantileerror",
    "poisson": "count:poisson",
    "gamma": "reg:gamma",
    "log_loss": "binary:logistic",
}


def read_hist_gradient_boosting(estimator: Any) -> tuple[list[ForeignTree], list[str], ModelInfo]:
    """Return the trees of a fitted estimator, their places for errors, and what they mean.

    ModelFileError if it has what cannot be represented.
    """
    if estimator.loss not in _OBJECTIVES:
        raise ModelFileError(
            f"loss={estimator.loss!r}: it must be one of {', '.join(map(repr, _OBJECTIVES))}"
        )
    base_score = np.ravel(estimator._baseline_prediction).astype(np.float64)
    classes = getattr(estimator, "classes_", None)
    of_classes = "binary" if len(base_score) == 1 else "multiclass"
    objective = _OBJECTIVES[estimator.loss] if len(base_score) == 1 else "multi:softprob"
    is_category = np.zeros(estimator.n_features_in_, dtype=bool)
    if estimator._preprocessor is not None:
        is_category |= estimator.is_categorical_
    # the trees count categories first, then numbers
    columns = np.concatenate([np.flatnonzero(is_category), np.flatnonzero(~is_category)])
    parameters = _parameters(estimator)
    trees = [
        with_gradients(_read_tree(predictor, columns, parameters), parameters["reg_lambda"])
        for round_ in estimator._predictors
        for predictor in round_
    ]
    names = getattr(estimator, "feature_names_in_", None)
    info = ModelInfo(
        task="regression" if classes is None else of_classes,
        objective=objective,
        base_score=base_score,
        n_targets=1,
        n_features=len(columns),
        feature_names=None if names is None else names.tolist(),
        encodings=_encodings(estimator, is_category) if is_category.any() else None,
        classes=classes,
        parameters=parameters,
    )
    return trees, [f"tree {number}" for number in range(len(trees))], info


def _parameters(estimator: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "learning_rate": estimator.learning_rate,
        "reg_lambda": estimator.l2_regularization,
        "max_leaves": estimator.max_leaf_nodes or 0,
        "max_depth": estimator.max_depth or 0,
        "min_child_weight": _LEAST_HESSIAN,
        "min_child_samples": estimator.min_samples_leaf,
        "colsample_bynode": estimator.max_features,
        "monotone_constraints": estimator.monotonic_cst,
        "random_state": estimator.random_state,
        "grow_policy": "lossguide",
        "pruning": "pre",
    }
    if estimator.loss == "quantile":
        found["quantile_alpha"] = estimator.quantile
    return found


def _read_tree(predictor: Any, columns: np.ndarray, parameters: dict[str, Any]) -> ForeignTree:
    """Return a tree; the learning rate is in the values of its leaves, but not of its splits."""
    nodes = predictor.nodes
    is_leaf = nodes["is_leaf"] == 1
    rate = parameters["learning_rate"]
    by_category = np.flatnonzero(~is_leaf & (nodes["is_categorical"] == 1)).tolist()
    words = predictor.raw_left_cat_bitsets[nodes["bitset_idx"][by_category]].astype("<u4")
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
    tree = ForeignTree(
        left=np.where(is_leaf, -1, nodes["left"].astype(np.int64)),
        right=np.where(is_leaf, -1, nodes["right"].astype(np.int64)),
        feature=columns[np.where(is_leaf, 0, nodes["feature_idx"])],
        threshold=nodes["num_threshold"],
        default_left=nodes["missing_go_to_left"] == 1,
        value=np.where(is_leaf, 1.0, rate)[:, np.newaxis] * nodes["value"][:, np.newaxis],
        gain=np.maximum(nodes["gain"], 0.0),
        cover=nodes["count"].astype(np.float64),
        gradient=np.full(len(nodes), np.nan),
        categories={node: np.flatnonzero(bits[i]) for i, node in enumerate(by_category)},
        learning_rate=rate,
    )
    return with_equal_left(tree)


def _encodings(estimator: Any, is_category: np.ndarray) -> tuple[Encoding, ...]:
    """Return the encodings of all features; the codes are scikit-learn's OrdinalEncoder's."""
    encodings = [Encoding()] * len(is_category)
    lists = estimator._preprocessor.named_transformers_["encoder"].categories_
    is_declared = not isinstance(estimator.categorical_features, str)  # "from_dtype"
    for feature, values in zip(np.flatnonzero(is_category).tolist(), lists, strict=True):
        categories = values.tolist()
        if categories and categories[-1] != categories[-1]:
            del categories[-1]  # NaN, which is last, is a missing value
        if None in categories:
            raise ModelFileError(f"feature {feature}: None is a category, which here is missing")
        encodings[feature] = list_encoding(categories, is_declared=is_declared)
    return tuple(encodings)
