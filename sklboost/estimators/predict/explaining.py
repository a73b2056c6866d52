"""Derivations of splits, leaves and predictions: methods of the estimators, and what they need."""

import itertools
from typing import Any

import numpy as np

from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.features import Features, raw_blocks, value_array
from sklboost.data.raw_values import value_column
from sklboost.engine.model import Model
from sklboost.engine.parallel import ThreadTeam
from sklboost.estimators.input.arguments import GivenSet
from sklboost.estimators.input.feature_tables import feature_settings
from sklboost.estimators.input.rows import (
    Rows,
    base_margins,
    encode_targets,
    validation_rows,
    weigh_classes,
)
from sklboost.estimators.input.target_kinds import ClassTargets, LabelTargets
from sklboost.estimators.parameters.docstrings import methods_documented
from sklboost.estimators.parameters.rules import is_integer
from sklboost.estimators.predict.fitted_model import FittedModel, HasFittedModel
from sklboost.estimators.predict.raw_scores import add_rounds, leaves, starting_scores
from sklboost.estimators.predict.shap_values import single_values
from sklboost.inspection.derivation.derivation import Derivation
from sklboost.inspection.derivation.grown_tree import GrownTree, grown_tree
from sklboost.inspection.derivation.nodes import NodeRows, derive_node
from sklboost.inspection.derivation.predictions import Row, derive_prediction

_UNKNOWN = np.empty((0, 0))


@methods_documented
class ExplainingMixin(HasFittedModel):
    """Methods that derive what is in a fitted estimator, number by number."""

    @np.errstate(all="ignore")
    def explain_split(
        self,
        tree: int,
        node: int = 0,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        base_margin: Any = None,
    ) -> Derivation:
        """Derive the split of a node, or why it is a leaf, step by step.

        The derivation has the sums of gradients and hessians, similarities, gain, cover, why the
        split was kept or pruned, outputs and leaf values. Its numbers are those of the training.

        Parameters
        ----------
        tree : int
            Counted from 0 over all rounds. For several targets, labels or more than two classes
            tree t belongs to number ``t % n_outputs`` of them.
        node : int, default=0
            As in :meth:`apply`. With `keep_pruned` also nodes that pruning removed, which are
            numbered after those of the tree.
        X : array-like of shape (n_samples, n_features), optional
            Training rows, which a model does not keep, to find those that reach the node.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
            Their targets, to add up the gradients of these rows and compare the sums.
        sample_weight : array-like of shape (n_samples,), optional
            Their weights in training.
        base_margin : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Their `base_margin` in training.

        Returns
        -------
        Derivation
            To print, or as ``.text``, ``.latex`` and ``.html``; ``.result("gain")`` is one of its
            numbers.

        Raises
        ------
        ValueError
            If there is no such tree or node, if `y` is given without `X`, or weights or margins
            without `y`.

        Examples
        --------
        >>> from sklboost import XGBRegressorLite
        >>> dosage, effect = [[10], [20], [25], [35]], [-10, 7, 8, -7]
        >>> settings = dict(n_estimators=1, learning_rate=1, reg_lambda=0, base_score=0.5)
        >>> model = XGBRegressorLite(max_depth=2, gamma=130, **settings).fit(dosage, effect)
        >>> split = model.explain_split(tree=0, node=2)
        >>> round(split.result("gain"), 4)
        140.1667
        >>> for line in split.text.splitlines()[17:24]:
        ...     print(line)
        Similarities
          similarity of this node: S = G² / (H + λ) = (-6.5)² / (3 + 0) = 14.0833
          similarity of the left child: S_L = G_L² / (H_L + λ) = (-14)² / (2 + 0) = 98
          similarity of the right child: S_R = G_R² / (H_R + λ) = 7.5² / (1 + 0) = 56.25
        <BLANKLINE>
        Gain
          gain of the split: gain = S_L + S_R - S = 98 + 56.25 - 14.0833 = 140.1667
        """
        fitted = self._fitted
        if X is None and y is not None:
            raise ValueError("y is given without X: pass the rows that the targets are of")
        for name, given in (("sample_weight", sample_weight), ("base_margin", base_margin)):
            if y is None and given is not None:
                raise ValueError(f"{name} is given without y: pass X and y as well")
        grown = find_tree(fitted.model, tree, node)
        rows = None
        if y is not None:
            data = GivenSet("X", "X", X, y, sample_weight, base_margin)
            settings = feature_settings(fitted.features.estimator_name, self)
            numeric = fitted.targets.numeric
            checked = validation_rows(data, fitted.features, settings, numeric=numeric)
            encoded = encode_targets(checked, fitted.targets, fitted.loss, "y")
            weighted = weigh_classes(encoded, fitted.targets)
            rows = known_rows(fitted, grown, node, weighted)
        elif X is not None:
            is_here = rows_of_node(grown, node, fitted.read(X))
            why = "Pass y as well to see their gradients."
            rows = NodeRows(is_here, _UNKNOWN, _UNKNOWN, why)
        return derive_node(grown, int(node), fitted.names, rows)

    @np.errstate(all="ignore")
    def explain_prediction(
        self,
        x: Any,
        *,
        base_margin: Any = None,
        iteration_range: tuple[int, int] | None = None,
        full: bool = False,
    ) -> Derivation:
        """Derive the prediction of one row: its path through all trees, and the running raw score.

        If that has more than 25 lines, a summary is shown: the start value, the sum of the trees,
        the trees and features that add most, and what the sum means.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (1, n_features)
            A row, or a table of one row.
        base_margin
        iteration_range
        full : bool, default=False
            Whether to show all steps of all trees instead of a summary.

        Returns
        -------
        Derivation
            As :meth:`explain_split` returns it. Its last numbers are those of `predict`, or of
            `predict_proba`. ``.sections`` and ``.steps`` have all trees in any case.

        Raises
        ------
        ValueError
            If there are several rows, or as `predict` does.

        Examples
        --------
        >>> from sklboost import XGBClassifierLite
        >>> X, y = [[0], [1], [2], [3]], ["no", "yes", "yes", "no"]
        >>> model = XGBClassifierLite(n_estimators=2, max_depth=2, min_child_weight=0).fit(X, y)
        >>> print(model.explain_prediction([1]))
        Prediction of one row by 2 trees
        <BLANKLINE>
        Start
          log-odds of the starting probability p: F_0 = log(p / (1 - p)) = log(0.5 / (1 - 0.5)) = 0
        <BLANKLINE>
        Tree 0
          node 0: f0 = 1 ≥ 0.5 → node 2
          node 2: f0 = 1 < 2.5 → node 3
          raw score after leaf 3: F_1 = F_0 + η · w = 0 + 0.3 · 0.666667 = 0.2
        <BLANKLINE>
        Tree 1
          node 0: f0 = 1 ≥ 0.5 → node 2
          node 2: f0 = 1 < 2.5 → node 3
          raw score after leaf 3: F_2 = F_1 + η · w = 0.2 + 0.3 · 0.602215 = 0.380665
        <BLANKLINE>
        Prediction
          probability: p = 1 / (1 + exp(-F_2)) = 1 / (1 + exp(-0.380665)) = 0.594033
          Predicted class: 'yes'.
        """
        return derive_row(self._fitted, x, base_margin, iteration_range, full)


def find_tree(model: Model, tree: Any, node: Any) -> GrownTree:
    """Tree of a model by its number; ValueError if there is none, or if it has no such node."""
    if not (is_integer(tree) and 0 <= tree < model.n_trees):
        raise ValueError(f"tree={tree!r}: this model has the trees 0 to {model.n_trees - 1}")
    grown = grown_tree(model, int(tree))
    if not (is_integer(node) and 0 <= node < len(grown.nodes)):
        hint = "; keep_pruned=True adds those that pruning removed" if grown.n_forgotten else ""
        raise ValueError(
            f"node={node!r}: tree {tree} has the nodes 0 to {len(grown.nodes) - 1}{hint}"
        )
    return grown


def known_rows(fitted: FittedModel, tree: GrownTree, node: int, rows: Rows) -> NodeRows:
    """Rows of a node, with their gradients and hessians when its tree was grown.

    All is the same bits again, so raw scores before a round are those of prediction.
    """
    n_rows, loss, model = len(rows.y), fitted.loss, fitted.model
    is_here = rows_of_node(tree, node, rows.X)
    if fitted.drops_rounds:
        why = (
            "Their gradients are not known: the tree was grown without some earlier rounds, and "
            "which these were is not kept."
        )
        return NodeRows(is_here, _UNKNOWN, _UNKNOWN, why)
    raw_score = starting_scores(model.base_score, rows.margin, n_rows)
    n_rounds = tree.number // model.trees_per_round
    if n_rounds > 0:
        add_rounds(model, rows.X, (0, n_rounds), raw_score, fitted.n_jobs)
    weight = rows.weight if len(rows.weight) > 0 else np.ones(n_rows)
    if loss.takes_weight:
        derivatives = loss.gradients(rows.targets, raw_score, weight)  # type: ignore[call-arg]
    else:
        gradients, hessians = loss.gradients(rows.targets, raw_score)
        derivatives = weight * gradients, weight * hessians
    output = tree.number % model.n_outputs
    outputs = slice(None) if tree.n_outputs > 1 else slice(output, output + 1)
    # of several targets those that are not known count for nothing
    gradients, hessians = (np.nan_to_num(values[outputs]) for values in derivatives)
    return NodeRows(is_here, gradients, hessians, "")


def rows_of_node(tree: GrownTree, node: int, X: Features) -> np.ndarray:
    """Which rows reach a node, bool, shape (n_samples,)."""
    is_here = np.ones(len(X), bool)
    values = feature_values(X) if isinstance(X, BinnedMatrix) else X
    for above, below in itertools.pairwise(tree.path(node)):
        # not as float32, which thresholds would be rounded to
        column = value_column(values, int(tree.nodes.feature[above])).astype(np.float64)
        goes_left = tree.goes_left(above, column)
        is_here &= goes_left if tree.nodes.left[above] == below else ~goes_left
    return is_here


def feature_values(X: Features) -> np.ndarray:
    """All values, as trees compare them, shape (n_samples, n_features)."""
    if not isinstance(X, BinnedMatrix):
        return value_array(X)
    values = np.empty(X.shape)
    with ThreadTeam(1) as team:
        for rows, raw in raw_blocks(team, X):
            values[rows] = raw.values.reshape(-1, raw.n_features)
    return values


def derive_row(
    fitted: FittedModel,
    x: Any,
    base_margin: Any,
    iteration_range: tuple[int, int] | None,
    full: bool,
) -> Derivation:
    """Derive the prediction of one row; unless `full`, a long derivation has a summary."""
    model, X = fitted.model, fitted.read(as_table(x))
    if len(X) != 1:
        raise ValueError(
            f"x has {len(X)} rows: one prediction is derived at a time, so pass one, such as X[:1] "
            "or X.iloc[[0]]"
        )
    raw_score = fitted.raw_scores(X, base_margin, iteration_range)
    margin = base_margins(base_margin, X, "")
    # what is certain is no function of raw scores
    is_certain = fitted.targets.is_constant
    predictions = (fitted.loss.probabilities if is_certain else fitted.predictions)(raw_score)
    row = Row(
        values=feature_values(X)[0].astype(np.float64),
        leaves=leaves(model, X, 1)[0],
        start=starting_scores(model.base_score, margin, 1)[:, 0],
        has_margin=fitted.has_margin or len(margin) > 0,
        shift=fitted.shift,
        trees=range(*fitted.trees(iteration_range)),
        predictions=np.ravel(predictions),
        conclusion=conclusion(fitted, raw_score),
    )

    def contributions() -> np.ndarray:
        return single_values(fitted, X, fitted.trees(iteration_range))[0]

    has_some = model.linear is None  # there are no SHAP values of linear leaves
    return derive_prediction(model, row, fitted.names, contributions if has_some else None, full)


def as_table(x: Any) -> Any:
    """A table of one row, if `x` is a row."""
    if getattr(x, "ndim", None) == 1 and hasattr(x, "to_frame"):
        return x.to_frame().T.infer_objects()  # a row of a pandas frame
    if isinstance(x, list | tuple):
        is_row = not any(isinstance(value, list | tuple | np.ndarray) for value in x)
        return [list(x)] if is_row else x
    return x[np.newaxis] if isinstance(x, np.ndarray) and x.ndim == 1 else x


def conclusion(fitted: FittedModel, raw_score: np.ndarray) -> str:
    """The labels that a classifier predicts for a row, as a sentence; nothing for a regressor."""
    if not isinstance(fitted.targets, ClassTargets | LabelTargets):
        return ""
    (answer,) = fitted.targets.labels(raw_score).tolist()
    if fitted.targets.task == "multilabel":
        labels = [label for label, has in enumerate(answer) if has]
        return f"Predicted labels: {', '.join(map(str, labels)) or 'none'}."
    the_only = ", the only one in the training" if fitted.targets.is_constant else ""
    return f"Predicted class: {answer!r}{the_only}."
