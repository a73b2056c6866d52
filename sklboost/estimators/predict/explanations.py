"""Explanations of a fitted estimator: SHAP values, derivations of splits and of predictions.

SHAP values have the shapes of the shap package and of XGBoost.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np

from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.features import Features, raw_blocks, value_array, values_of_bins
from sklboost.data.raw_values import array_of, value_column
from sklboost.engine.parallel import ThreadTeam
from sklboost.estimators.input.feature_names import order_of_fit
from sklboost.estimators.input.features import feature_settings
from sklboost.estimators.input.rows import (
    GivenSet,
    Rows,
    base_margins,
    encode_targets,
    validation_rows,
    weigh_classes,
)
from sklboost.estimators.input.targets import ClassTargets, LabelTargets
from sklboost.estimators.parameters.boosters import Parameters
from sklboost.estimators.parameters.rules import is_integer
from sklboost.estimators.predict.fitted_model import FittedModel, add_scores, leaves
from sklboost.inspection.derivation import Derivation
from sklboost.inspection.derivation.nodes import NodeRows, derive_node
from sklboost.inspection.derivation.predictions import Row, derive_prediction
from sklboost.inspection.derivation.trees import GrownTree, grown_tree
from sklboost.inspection.shap import add_contributions, lay_out_edges, mean_scores

# Rounds as users give them: the first and the one after the last.
Rounds = tuple[int, int] | None


def explained_rows(
    fitted: FittedModel, X: Any, X_background: Any, by_position: bool
) -> "ExplainedRows":
    """Check that the model can be explained, and the rows; None: rows that are put in later."""
    if fitted.model.linear is not None:
        raise ValueError(
            "SHAP values need constant leaves, and this model has linear ones: fit with "
            "linear_tree=False, or use shap.PermutationExplainer, which takes any model"
        )
    if X_background is None and not fitted.has_covers:
        raise ValueError(
            "SHAP values weigh the two sides of a split by their covers, and this model has none: "
            "XGBoost 2 keeps none for trees of several outputs. Pass X_background, rows to compare "
            "with"
        )
    known = np.empty((0, 0)) if X is None else fitted.read(X, by_position=by_position)
    background = None if X_background is None else fitted.read(X_background, "X_background")
    return ExplainedRows(fitted, known, background)


class ExplainedRows(NamedTuple):
    """Rows, the model, and perhaps rows to compare with."""

    fitted: FittedModel
    X: Features
    background: Features | None

    def values(self, rounds: Rounds) -> np.ndarray:
        """SHAP values: shape (n_samples, n_features), or (..., n_outputs) if several."""
        return self._added(rounds, n_axes=1)

    def interactions(self, rounds: Rounds) -> np.ndarray:
        """SHAP interaction values: one more axis of features."""
        return self._added(rounds, n_axes=2)

    def _added(self, rounds: Rounds, n_axes: int) -> np.ndarray:
        fitted, X, background = self
        values = contributions(fitted, X, fitted.trees(rounds), background, n_axes)
        return values if fitted.model.n_outputs > 1 else values[..., 0]

    def with_bias(self, base_margin: Any, rounds: Rounds, pairs: bool) -> np.ndarray:
        """SHAP values, or values of pairs, in XGBoost's shape: the bias is one more feature.

        Shape (n_samples, n_features + 1), of pairs (n_samples, n_features + 1, n_features + 1); if
        there are several raw scores per row, their number is the second dimension.
        """
        fitted, X, _ = self
        model, trees = fitted.model, fitted.trees(rounds)
        start = fitted.start(X, base_margin).T
        values = np.zeros((len(X), model.n_outputs, *(model.n_features + 1,) * (1 + pairs)))
        out = values[..., :-1, :-1] if pairs else values[..., :-1]
        add_contributions(model, X, trees, None, fitted.n_jobs, out)
        bias = values[..., -1, -1] if pairs else values[..., -1]
        bias += start + mean_scores(lay_out_edges(model), trees, model.n_outputs)
        return values if model.n_outputs > 1 else values[:, 0]

    @np.errstate(all="ignore")
    def raw_scores(self, X: Features, rounds: Rounds) -> np.ndarray:
        """Raw scores without margins, which are no part of SHAP values: (n_outputs, n_samples)."""
        fitted = self.fitted
        start = fitted.model.base_score + fitted.shift
        raw_score = np.repeat(start[:, np.newaxis], len(X), axis=1)
        add_scores(fitted.model, X, fitted.trees(rounds), raw_score, fitted.n_jobs)
        return raw_score

    @np.errstate(all="ignore")
    def mean_raw_score(self, rounds: Rounds) -> np.ndarray:
        """Mean raw score, to which SHAP values are added, shape (n_outputs,)."""
        if self.background is not None:
            return self.raw_scores(self.background, rounds).mean(axis=1)
        fitted, model = self.fitted, self.fitted.model
        mean = mean_scores(lay_out_edges(model), fitted.trees(rounds), model.n_outputs)
        return model.base_score + fitted.shift + mean

    def explanation(self, given: Any, rounds: Rounds) -> Any:
        """The values as the object that the plots of shap take; `given` are the user's rows."""
        try:
            import shap
        except ImportError as error:
            raise ImportError(
                'shap_explanation needs the shap package: pip install "sklboost[plot]"'
            ) from error
        fitted, values = self.fitted, self.values(rounds)
        has_several = fitted.model.n_outputs > 1
        with ThreadTeam(1) as team:  # the numbers that go down the trees; a copy
            data = np.concatenate([array_of(raw).copy() for _, raw in raw_blocks(team, self.X)])
        shown = None
        if hasattr(given, "to_numpy"):  # a frame, whose columns get the order of the fit
            order, shown = order_of_fit(given, fitted.features.listed_names), given.to_numpy()
            shown = shown if order is None else shown[:, list(order)]
        mean = self.mean_raw_score(rounds)
        base_values = np.repeat(mean[np.newaxis], len(values), axis=0)
        return shap.Explanation(
            values,
            base_values=base_values if has_several else base_values[:, 0],
            data=data,
            display_data=shown,
            feature_names=fitted.feature_names,
            output_names=fitted.classes if has_several else None,
        )


def contributions(
    fitted: FittedModel,
    X: Features,
    trees: tuple[int, int],
    background: Features | None = None,
    n_axes: int = 1,
) -> np.ndarray:
    """SHAP values, shape (n_samples, n_features, n_outputs); of pairs: two axes of features."""
    model = fitted.model
    values = np.zeros((len(X), *(model.n_features,) * n_axes, model.n_outputs))
    add_contributions(model, X, trees, background, fitted.n_jobs, np.moveaxis(values, -1, 1))
    return values


# --- derivations


_UNKNOWN = np.empty((0, 0))


def derive_split(
    fitted: FittedModel, parameters: Parameters, tree: Any, node: Any, given: GivenSet
) -> Derivation:
    """Derive the split of a node; `given` has the training rows, as far as they are given."""
    X, y = given.X, given.y
    if X is None and y is not None:
        raise ValueError("y is given without X: pass the rows that the targets are of")
    for name in ("sample_weight", "base_margin"):
        if y is None and getattr(given, name) is not None:
            raise ValueError(f"{name} is given without y: pass X and y as well")
    model = fitted.model
    if not (is_integer(tree) and 0 <= tree < model.n_trees):
        raise ValueError(f"tree={tree!r}: this model has the trees 0 to {model.n_trees - 1}")
    grown = grown_tree(model, int(tree))
    if not (is_integer(node) and 0 <= node < len(grown.nodes)):
        hint = "; keep_pruned=True adds the nodes that pruning removed" if grown.n_forgotten else ""
        raise ValueError(
            f"node={node!r}: tree {tree} has the nodes 0 to {len(grown.nodes) - 1}{hint}"
        )
    rows = None
    if y is not None:
        settings = feature_settings(fitted.features.estimator_name, parameters)
        checked = validation_rows(given, fitted.features, settings, type(fitted.targets))
        encoded = encode_targets(checked, fitted.targets, fitted.loss, "y")
        weighted = weigh_classes(encoded, fitted.targets)
        rows = known_rows(fitted, grown, node, weighted)
    elif X is not None:
        is_here = rows_of_node(grown, node, fitted.read(X))
        why = "Pass y as well to see their gradients."
        rows = NodeRows(is_here, _UNKNOWN, _UNKNOWN, why)
    return derive_node(grown, int(node), fitted.names, rows)


def known_rows(fitted: FittedModel, tree: GrownTree, node: int, rows: Rows) -> NodeRows:
    """Rows of a node, with their gradients and hessians when its tree was grown.

    The raw scores before a round are predictions by the trees before: the same bits.
    """
    n_rows, loss, model = len(rows.y), fitted.loss, fitted.model
    is_here = rows_of_node(tree, node, rows.X)
    n_rounds = tree.number // model.trees_per_round
    if n_rounds < fitted.n_dart_rounds:
        why = (
            "Their gradients are not known: the tree was grown without some earlier rounds, and "
            "which these were is not kept."
        )
        return NodeRows(is_here, _UNKNOWN, _UNKNOWN, why)
    raw_score = rows.starting_scores(model.base_score)
    if n_rounds > 0:
        trees = (0, n_rounds * model.trees_per_round)
        add_scores(model, rows.X, trees, raw_score, fitted.n_jobs)
    weight = rows.weight if len(rows.weight) > 0 else np.ones(n_rows)
    if loss.takes_weight:
        derivatives = loss.gradients(rows.targets, raw_score, weight)  # type: ignore[call-arg]
    else:
        gradients, hessians = loss.gradients(rows.targets, raw_score)
        derivatives = weight * gradients, weight * hessians
    output = tree.number % model.n_outputs
    outputs = slice(None) if tree.n_outputs > 1 else slice(output, output + 1)
    # unknown targets among several count for nothing
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
    with ThreadTeam(1) as team:
        return values_of_bins(team, X)


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
        start=margin[0] if len(margin) > 0 else model.base_score,
        has_margin=fitted.has_margin or len(margin) > 0,
        shift=fitted.shift,
        trees=range(*fitted.trees(iteration_range)),
        predictions=np.ravel(predictions),
        conclusion=conclusion(fitted, raw_score),
    )

    def added() -> np.ndarray:
        return contributions(fitted, X, fitted.trees(iteration_range))[0]

    has_some = model.linear is None and fitted.has_covers  # else there are no SHAP values
    return derive_prediction(model, row, fitted.names, added if has_some else None, full)


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
