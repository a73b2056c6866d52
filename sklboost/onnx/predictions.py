"""From raw scores to predictions: the formulas of links, losses and classes as nodes of a graph.

Tables have shape (n_samples, n_outputs), and all numbers are float64.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from sklboost.estimators.predict.fitted_model import FittedModel
from sklboost.objectives.links import IDENTITY, LOG, LOG_ODDS, SOFTMAX
from sklboost.objectives.loss import Loss
from sklboost.objectives.losses.quantiles import OrderedAlphas
from sklboost.objectives.losses.relative import SquaredLogError
from sklboost.objectives.losses.several_classes import OneVsRest
from sklboost.objectives.losses.two_classes import HingeLoss
from sklboost.onnx.graph import Graph

_LARGEST = 700.0  # the largest exponent of e, as in sklboost/objectives/links.py
_Formula = Callable[[Graph, str, FittedModel], str]


def add_predictions(graph: Graph, scores: str, fitted: FittedModel) -> str:
    """Add the predictions, of a classifier its probabilities."""
    formula = _formula_of(fitted)
    assert formula is not None  # it was asked for before
    return formula(graph, scores, fitted)


def has_formula(fitted: FittedModel) -> bool:
    """Whether predictions follow from raw scores by a formula that is known here."""
    return _formula_of(fitted) is not None


def _formula_of(fitted: FittedModel) -> _Formula | None:
    if fitted.targets.is_constant:
        return _ones
    method = fitted.targets.link(fitted.loss)
    return _FORMULAS.get(getattr(method, "__func__", method))


def add_class_scores(graph: Graph, scores: str, fitted: FittedModel) -> str:
    """Add raw scores as those of each class; of two classes they are each other's negative."""
    if not _is_of_two_classes(fitted):
        return scores
    return graph.add("Concat", graph.add("Neg", scores), scores, axis=1)


def add_labels(graph: Graph, scores: str, fitted: FittedModel, classes: np.ndarray) -> str:
    """Add the most probable class of each row; of several labels 1 for those that are likely."""
    if fitted.targets.task == "multilabel":
        return graph.cast(_is_positive(graph, scores), np.int64)
    if _is_of_two_classes(fitted):
        number = graph.cast(_is_positive(graph, scores), np.int64)
        number = graph.add("Reshape", number, graph.constant(np.array([-1])))
    else:
        number = graph.add("ArgMax", scores, axis=1, keepdims=0)
    return graph.add("Gather", graph.constant(classes), number)


def _is_of_two_classes(fitted: FittedModel) -> bool:
    return fitted.targets.task == "binary" and not fitted.targets.is_constant


# --- the formulas


def _is_positive(graph: Graph, scores: str) -> str:
    return graph.add("Greater", scores, graph.constant(0.0))


def _sigmoid(graph: Graph, scores: str) -> str:
    return graph.add("Sigmoid", scores)


def _softmax(graph: Graph, scores: str) -> str:
    return graph.add("Softmax", scores, axis=1)


def _exponentials(graph: Graph, scores: str) -> str:
    in_range = graph.add("Max", scores, graph.constant(-_LARGEST))
    return graph.add("Exp", graph.add("Min", in_range, graph.constant(_LARGEST)))


_LINKS: dict[str, Callable[[Graph, str], str]] = {
    IDENTITY: lambda graph, scores: scores,
    LOG: _exponentials,
    LOG_ODDS: _sigmoid,
    SOFTMAX: _softmax,
}


def _by_link(graph: Graph, scores: str, fitted: FittedModel) -> str:
    return _LINKS[fitted.loss.link](graph, scores)


def _class_probabilities(graph: Graph, scores: str, fitted: FittedModel) -> str:
    return _by_link(graph, add_class_scores(graph, scores, fitted), fitted)


def _in_order(graph: Graph, scores: str, fitted: FittedModel) -> str:
    """Sort the alphas of each target: output ``a * n_targets + t`` is alpha a of target t."""
    n_outputs, n_targets = fitted.model.n_outputs, fitted.targets.size
    n_alphas = n_outputs // n_targets
    if n_alphas == 1:
        return scores
    by_alpha = graph.constant(np.array([-1, n_alphas, n_targets]))
    alphas, all_of_them = graph.add("Reshape", scores, by_alpha), graph.constant([n_alphas])
    ordered = graph.add("TopK", alphas, all_of_them, n_results=2, axis=1, largest=0)
    return graph.add("Reshape", ordered, graph.constant(np.array([-1, n_outputs])))


def _powers_less_one(graph: Graph, scores: str, fitted: FittedModel) -> str:
    powers = graph.add("Exp", graph.add("Min", scores, graph.constant(_LARGEST)))
    return graph.add("Sub", powers, graph.constant(1.0))


def _one_vs_rest(graph: Graph, scores: str, fitted: FittedModel) -> str:
    """Divide logistic probabilities by their sum; as logarithms, of which none rounds to 0."""
    # log(1 / (1 + e^-z)) = min(z, 0) - log(1 + e^-|z|); onnxruntime has no Softplus of float64
    decay = graph.add("Exp", graph.add("Neg", graph.add("Abs", scores)))
    rest = graph.add("Log", graph.add("Add", decay, graph.constant(1.0)))
    logarithms = graph.add("Sub", graph.add("Min", scores, graph.constant(0.0)), rest)
    return _softmax(graph, logarithms)


def _steps(graph: Graph, scores: str, fitted: FittedModel) -> str:
    return graph.cast(_is_positive(graph, scores), np.float64)


def _two_steps(graph: Graph, scores: str, fitted: FittedModel) -> str:
    is_one = _steps(graph, scores, fitted)
    return graph.add("Concat", graph.add("Sub", graph.constant(1.0), is_one), is_one, axis=1)


def _ones(graph: Graph, scores: str, fitted: FittedModel) -> str:
    return graph.filled(scores, 1.0)


# By the method that computes the same of arrays: a loss with a method of its own is not among them.
_FORMULAS: dict[Any, _Formula] = {
    Loss.predictions: _by_link,
    Loss.probabilities: _class_probabilities,
    OrderedAlphas.predictions: _in_order,
    SquaredLogError.predictions: _powers_less_one,
    OneVsRest.probabilities: _one_vs_rest,
    HingeLoss.predictions: _steps,
    HingeLoss.probabilities: _two_steps,
}
