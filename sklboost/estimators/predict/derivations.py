"""What the derivations of an estimator need to know: its trees, names, rows and links.

In: a fitted estimator and the arguments of its methods. Out: derivations.
"""

from typing import Any

import numpy as np

from sklboost.estimators.fit.boosters import drops_rounds
from sklboost.estimators.input.arguments import GivenSet
from sklboost.estimators.input.check_features import features
from sklboost.estimators.input.feature_tables import categories_by_code
from sklboost.estimators.input.rows import base_margins
from sklboost.estimators.parameters.rules import is_integer
from sklboost.estimators.predict.node_rows import feature_values, find_node_rows
from sklboost.estimators.predict.raw_scores import add_rounds, leaves, starting_scores
from sklboost.inspection.derivation.grown_tree import GrownTree, grown_tree
from sklboost.inspection.derivation.nodes import derive_node
from sklboost.inspection.derivation.predictions import Row, derive_prediction
from sklboost.inspection.derivation.steps import Derivation
from sklboost.inspection.derivation.words import Words


def check_given(X: Any, y: Any, sample_weight: Any, base_margin: Any) -> None:
    """Raise ValueError for what is given without the rows that it is for."""
    if X is None and y is not None:
        raise ValueError("y is given without X: pass the rows that the targets are of")
    for name, given in (("sample_weight", sample_weight), ("base_margin", base_margin)):
        if y is None and given is not None:
            raise ValueError(f"{name} is given without y: pass X and y as well")


def derive_split(estimator: Any, place: tuple[Any, Any], given: tuple) -> Derivation:
    """Derive a node, a tree's number and its own; `given` are rows of the training, or None."""
    tree = find_tree(estimator, *place)
    node, rows = int(place[1]), None
    if given[0] is not None:
        rows = find_node_rows(estimator, tree, node, GivenSet("X", "X", *given))
    return derive_node(tree, node, words_of(estimator), rows)


def derive_row(
    estimator: Any, x: Any, base_margin: Any, iteration_range: tuple[int, int] | None
) -> Derivation:
    """Derive the prediction of one row."""
    model, X = estimator.model_, features(estimator, as_table(x))
    if len(X) != 1:
        raise ValueError(
            f"x has {len(X)} rows: one prediction is derived at a time, so pass one, such as X[:1] "
            "or X.iloc[[0]]"
        )
    rounds = estimator._rounds(iteration_range)
    raw_score = estimator._start(X, base_margin)
    add_rounds(model, X, rounds, raw_score, 1)
    first, stop = (round_ * model.trees_per_round for round_ in rounds)
    margin = base_margins(base_margin, X, "")
    row = Row(
        values=feature_values(X)[0].astype(np.float64),
        leaves=leaves(model, X, 1)[0],
        start=starting_scores(model.base_score, margin, 1)[:, 0],
        has_margin=estimator._has_margin or len(margin) > 0,
        shift=estimator._shift,
        trees=range(first, stop),
        predictions=np.ravel(estimator._link(estimator._loss)(raw_score)),
        conclusion=conclusion(estimator, raw_score),
    )
    return derive_prediction(model, row, words_of(estimator))


def as_table(x: Any) -> Any:
    """Give a table of one row, if `x` is a row."""
    if getattr(x, "ndim", None) == 1 and hasattr(x, "to_frame"):
        return x.to_frame().T.infer_objects()  # a row of a pandas frame
    if isinstance(x, list | tuple):
        is_row = not any(isinstance(value, list | tuple | np.ndarray) for value in x)
        return [list(x)] if is_row else x
    return x[np.newaxis] if isinstance(x, np.ndarray) and x.ndim == 1 else x


def find_tree(estimator: Any, tree: Any, node: Any) -> GrownTree:
    """Give a tree by its number.

    Raises
    ------
    ValueError
        If there is none, or if it has no such node.
    """
    model = estimator.model_
    if not (is_integer(tree) and 0 <= tree < model.n_trees):
        raise ValueError(f"tree={tree!r}: this model has the trees 0 to {model.n_trees - 1}")
    grown = grown_tree(model, int(tree))
    if not (is_integer(node) and 0 <= node < len(grown.nodes)):
        hint = "; keep_pruned=True adds those that pruning removed" if grown.n_forgotten else ""
        raise ValueError(
            f"node={node!r}: tree {tree} has the nodes 0 to {len(grown.nodes) - 1}{hint}"
        )
    return grown


def words_of(estimator: Any) -> Words:
    """Give what the estimator calls things."""
    notes = []
    if drops_rounds(estimator):
        notes.append('booster="dart": η is the learning rate times the weight of the round.')
    params = estimator.model_.params_of(0)
    if params.num_parallel_tree > 1:
        notes.append(f"η is shared by the {params.num_parallel_tree} trees of a round.")
    return Words(
        estimator._feature_names(),
        categories_by_code(estimator._encodings),
        output_names(estimator),
        estimator._loss,
        tuple(notes),
    )


def output_names(estimator: Any) -> list[str]:
    """Name the raw scores of a row: classes, labels, targets, levels of a quantile."""
    loss, n_outputs = estimator._loss, estimator.model_.n_outputs
    classes = getattr(estimator, "classes_", None)
    if classes is not None:
        kind = "label" if estimator._task == "multilabel" else "class"
        return [f"{kind} {label!r}" for label in classes.tolist()[-n_outputs:]]
    # of several levels: all targets of the lowest, then those of the next
    n_targets = estimator._targets.size
    n_categories = n_outputs // n_targets
    names = []
    for output in range(n_outputs):
        parts = [f"target {output % n_targets}"] if n_targets > 1 else []
        if n_categories > 1:
            parts.append(f"level {loss.parameters[output]:g}")
        names.append(" at ".join(parts))
    return names


def conclusion(estimator: Any, raw_score: np.ndarray) -> str:
    """Give a classifier's last word."""
    if not hasattr(estimator, "classes_"):
        return ""
    (answer,) = estimator._targets.labels(raw_score).tolist()
    if estimator._task == "multilabel":
        labels = [label for label, has in zip(estimator.classes_, answer, strict=True) if has]
        return f"Predicted labels: {', '.join(map(str, labels)) or 'none'}."
    return f"Predicted class: {answer!r}."
