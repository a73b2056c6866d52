"""From a text model of LightGBM to its trees and what they mean."""

from typing import Any

import numpy as np

from sklboost.files.foreign import ForeignTree
from sklboost.files.gradient_sums import with_gradients
from sklboost.files.lightgbm.categories import encode_categories, sends_zero_left
from sklboost.files.lightgbm.meaning import Header, read_header, read_parameters
from sklboost.files.lightgbm.text import read_text
from sklboost.files.lightgbm.trees import read_trees
from sklboost.files.meaning import Meaning


@np.errstate(all="ignore")
def read_lightgbm(data: bytes, name: str) -> tuple[list[ForeignTree], list[str], Meaning]:
    """Return the trees of a text model, their places for errors, and what they mean.

    Raises
    ------
    ModelFileError
        If it is no text model, is damaged, or has what cannot be represented.
    """
    text = read_text(data, name)
    header = read_header(text.header)
    n_trees, places = len(text.trees), [section.place for section in text.trees]
    if n_trees == 0 or n_trees % header.n_outputs > 0:
        text.header.fail(f"there are {n_trees} trees, and {header.n_outputs} in each round")
    trees, missing = read_trees(text.trees, len(header.infos))
    trees, encodings = encode_categories(trees, text, header.infos)
    parameters = read_parameters(text.parameters, header.objective)
    if missing == 0.0 and sends_zero_left(trees, encodings):
        text.header.fail("zero is missing, and a category as well: not possible here")
    if any(tree.linear for tree in trees):
        if missing == 0.0:
            text.header.fail("zero is missing, but linear leaves multiply it: not possible here")
        parameters["linear_tree"] = True
    n_rounds = n_trees // header.n_outputs
    if header.is_forest:
        parameters |= {"learning_rate": 1.0, "num_parallel_tree": n_rounds}
    trees, base_score = _without_start(trees, header, parameters)
    trees = _with_gradients(trees, header, parameters)
    factor = header.sigmoid / (n_rounds if header.is_forest else 1)
    task = header.objective.task
    meaning = Meaning(
        task=task,
        objective=header.objective.name,
        base_score=header.sigmoid * base_score,
        n_targets=1,
        n_features=len(header.infos),
        feature_names=header.names,
        encodings=encodings,
        classes=None if task == "regression" else np.arange(max(2, header.n_outputs)),
        missing=missing,
        parameters=parameters,
    )
    return [_scaled(tree, factor) for tree in trees], places, meaning


def _without_start(
    trees: list[ForeignTree], header: Header, parameters: dict[str, Any]
) -> tuple[list[ForeignTree], np.ndarray]:
    """Take from the leaves of the first round what training started from; return it, too.

    LightGBM adds it to them and sets their learning rate to 1. It is taken to be their mean, which
    it is where the gradients of all rows add up to 0 at the start.
    """
    start = np.zeros(header.n_outputs)
    rate, reg_lambda = parameters.get("learning_rate", 1.0), parameters.get("reg_lambda", 0.0)
    changed = list(trees)
    for output, tree in enumerate(trees[: header.n_outputs]):
        if header.is_forest or tree.learning_rate != 1.0 or rate == 1.0:
            continue
        is_leaf = tree.left < 0
        weights = tree.cover[is_leaf] + reg_lambda
        start[output] = np.average(tree.value[is_leaf, 0], weights=weights)
        changed[output] = tree._replace(value=tree.value - start[output], learning_rate=rate)
    return changed, start


def _with_gradients(
    trees: list[ForeignTree], header: Header, parameters: dict[str, Any]
) -> list[ForeignTree]:
    """Return the trees with the sums of gradients of their nodes, where they are known."""
    in_other_units = header.is_forest or header.sigmoid != 1.0
    if in_other_units or "linear_tree" in parameters or "reg_lambda" not in parameters:
        return trees
    # where the start is not known exactly, all weights of the first round may be off by a constant
    has_start = header.objective.starts_at_root and "subsample" not in parameters
    has_start &= parameters.get("learning_rate") != 1.0
    n_unknown = 0 if has_start else header.n_outputs
    reg_lambda = parameters["reg_lambda"]
    return trees[:n_unknown] + [with_gradients(tree, reg_lambda) for tree in trees[n_unknown:]]


def _scaled(tree: ForeignTree, factor: float) -> ForeignTree:
    """Return a tree whose values are multiplied by a factor."""
    return tree._replace(
        value=factor * tree.value,
        linear={
            node: (features, [factor * slope for slope in slopes])
            for node, (features, slopes) in tree.linear.items()
        },
        shifts={node: factor * shift for node, shift in tree.shifts.items()},
    )
