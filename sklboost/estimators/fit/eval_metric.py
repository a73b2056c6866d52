"""From what users give as `eval_metric` to metrics that the rounds of boosting can call."""

import inspect
import math
from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from sklboost.estimators.input.targets import ClassTargets, LabelTargets, Targets
from sklboost.estimators.predict.fitted_model import PrecomputedScores
from sklboost.objectives.blocks import can_read
from sklboost.objectives.loss import Loss
from sklboost.objectives.metric import Function, Metric
from sklboost.objectives.registry import default_metric, find_metric, is_metric_name

FORMS = (
    "a function (y_true, y_pred) or (y_true, y_pred, sample_weight), or a scorer (estimator, X, y) "
    "or (estimator, X, y, sample_weight)"
)
# LightGBM's, and what people write.
_NAMES_OF_WEIGHTS = ("sample_weight", "sample_weights", "weight", "weights", "w")
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

# Targets or numbers of classes, raw scores, weights: the arguments of Metric.value.
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]
# Returns the keyword for the weights of n rows, a copy; ones where weights are needed.
WeightsOf = Callable[[np.ndarray, int], dict[str, np.ndarray]]


def check_names(eval_metric: Any, targets: Targets, loss: Loss) -> None:
    """Raise ValueError for a name that is unknown, though there is nothing to compute it of."""
    one_or_more = eval_metric if isinstance(eval_metric, list | tuple) else [eval_metric]
    names = [name for name in one_or_more if isinstance(name, str)]
    nothing = (np.empty(0), np.empty((loss.n_outputs, 0)), np.empty(0))
    if names:
        resolve_metrics(names, targets, loss, start=nothing)


def resolve_metrics(eval_metric: Any, targets: Targets, loss: Loss, *, start: Rows) -> list[Metric]:
    """Return the metrics that the user means, in the same order; None is the loss's default.

    Weights are passed to what has one parameter more, ones if it must have some; a function without
    is not weighted. If there is one class only, what cannot be computed is NaN.

    `start` is ``(y, raw_score, weight)`` of the validation rows before the first round: each
    function is called with them once, so that what fails fails before the training, and what
    returns ``(name, value, is_higher_better)``, or a list of these, tells its direction.
    """
    outputs = _Outputs(targets, loss)
    if eval_metric is None and loss.own_metrics:
        return [loss.own_metrics[0]]
    if eval_metric is None:
        default = default_metric(targets.task, loss.name, loss.of_metrics)
        return [_registered(default, outputs, start)]
    chosen = list(eval_metric) if isinstance(eval_metric, list | tuple) else [eval_metric]
    if not chosen:
        raise ValueError("eval_metric=[] is empty: name a metric, or give None for the default")
    metrics = [metric for one in chosen for metric in _resolve(one, outputs, start)]
    if targets.is_constant:
        metrics = [metric._replace(function=_or_nan(metric.function)) for metric in metrics]
    names = [metric.name for metric in metrics]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"eval_metric has two metrics called {name!r}: leave one out, or give functions "
                "a __name__ of their own, and what they return names of its own"
            )
    return metrics


class _Outputs(NamedTuple):
    """Turns targets and raw scores into labels and predictions, as users know them."""

    targets: Targets
    loss: Loss

    def predict(self, raw_score: np.ndarray) -> np.ndarray:
        """Return predictions, probabilities of the second of two classes, or of all classes."""
        if self.targets.task == "binary":
            return self.loss.probabilities(raw_score)[:, 1]
        return self.targets.link(self.loss)(raw_score)


def _resolve(given: Any, outputs: _Outputs, start: Rows) -> list[Metric]:
    """Return what is meant by one name or callable; a function can be several metrics."""
    if callable(given):
        name = _name_of(given)
        is_scorer, weights_of = form_of(given, name)
        if is_scorer:
            return [_from_scorer(given, weights_of, name, outputs)]
        return _from_function(given, weights_of, name, outputs, start)
    if not isinstance(given, str):
        raise ValueError(
            f"eval_metric={given!r}: a metric must be a name, a scikit-learn scorer or a function "
            "(y_true, y_pred) -> number"
        )
    own = {metric.name: metric for metric in outputs.loss.own_metrics}
    if given in own:
        return [own[given]]
    other_names: list[str] = []
    if not is_metric_name(given):
        from sklearn.metrics import get_scorer, get_scorer_names  # most fits do without

        other_names = get_scorer_names()
        if given in other_names:
            scorer = get_scorer(given)
            return [_from_scorer(scorer, form_of(scorer, given)[1], given, outputs)]
    parameters = outputs.loss.of_metrics
    try:
        metric = find_metric(given, outputs.targets.task, parameters, [*own, *other_names])
    except ValueError as error:
        raise ValueError(f"{error}; or a name of sklearn.metrics.get_scorer_names()") from None
    return [_registered(metric, outputs, start)]


def _registered(metric: Metric, outputs: _Outputs, start: Rows) -> Metric:
    """Return a metric of the registry for raw scores; without formula if that cannot read them."""
    metric.check_targets(start[0])
    is_compiled = metric.formula is not None and can_read(metric.formula, outputs.loss.link)
    return metric._replace(predict=outputs.predict, formula=metric.formula if is_compiled else None)


def _from_scorer(
    scorer: Callable[..., Any], weights_of: WeightsOf, name: str, outputs: _Outputs
) -> Metric:
    def function(y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        is_classifier = isinstance(outputs.targets, ClassTargets | LabelTargets)
        kind = ScoredClassifier if is_classifier else ScoredRegressor
        X = PrecomputedScores(raw_score, _NO_FEATURES)
        weights = weights_of(weight, len(y))
        try:
            score = scorer(kind(*outputs), X, outputs.targets.decode(y), **weights)
        except TypeError as error:
            # a scorer made by make_scorer takes weights, but its function perhaps does not
            if not weights or "sample_weight" not in str(error):
                raise
            raise TypeError(
                f"eval_metric: the scorer {name!r} takes no sample_weight, and the validation rows "
                "have weights; to go without them, give a function (estimator, X, y) that calls it"
            ) from error
        except ValueError as error:  # a class that the rows do not have, for one
            raise ValueError(
                f"eval_metric: the scorer {name!r} failed on the validation rows: {error} Choose "
                "another eval_metric, or other validation rows, X_val and y_val"
            ) from error
        return _number(name, score)

    return Metric(name, True, function)


def _from_function(
    given: Callable[..., Any], weights_of: WeightsOf, name: str, outputs: _Outputs, start: Rows
) -> list[Metric]:
    targets = outputs.targets

    def result(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> Any:
        # copies: whatever the function does to them, the training goes on undisturbed
        return given(targets.decode(y), np.array(prediction), **weights_of(weight, len(y)))

    first = _first_result(result, name, outputs, start)
    triples = _triples(first)
    results = [(str(key), value) for key, value, _ in triples] or [(name, first)]
    for key, value in results if not targets.is_constant else ():
        _number(key, value)
    # the metrics of a round are given the same predictions: the first one calls the function
    last: dict[str, Any] = {}

    def function_of(own: str) -> Function:
        def function(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
            if own == results[0][0] or last.get("prediction") is not prediction:
                last.update(prediction=prediction, found=result(y, prediction, weight))
            found = last["found"]
            by_name = {str(key): value for key, value, _ in _triples(found)}
            return _number(own, by_name.get(own) if triples else found)

        return function

    directions = [bool(triple[2]) for triple in triples] or [name.endswith("_score")]
    return [
        Metric(own, is_better, function_of(own), outputs.predict)
        for (own, _), is_better in zip(results, directions, strict=True)
    ]


def _first_result(result: Callable[..., Any], name: str, outputs: _Outputs, start: Rows) -> Any:
    """Return what a function gives before the first round, or the error, in words for users."""
    y, raw_score, weight = map(np.asarray, start)  # they may be elsewhere
    raw_score, targets = np.atleast_2d(raw_score), outputs.targets
    try:
        return result(y, outputs.predict(raw_score), weight)
    except AttributeError as error:
        if "get_label" not in str(error):
            raise
        raise TypeError(
            f"eval_metric: the function {name!r} is for XGBoost's or LightGBM's native interface "
            f"({error}): a metric must be {FORMS}"
        ) from error
    except ValueError as error:
        if targets.is_constant:
            return math.nan
        if targets.task == "regression":
            raise
        # f1_score for one; scikit-learn speaks of continuous targets, which the user has not
        raise ValueError(
            f"eval_metric: the function {name!r} failed on probabilities, which it is given "
            f"for y_pred: {error}. If it needs predicted labels, give make_scorer({name}), or "
            "the name of a scikit-learn scorer"
        ) from error


def _triples(found: Any) -> list[tuple[Any, Any, Any]]:
    """Return the (name, value, is_higher_better) that a function gave, one or a list; else []."""
    listed = found if isinstance(found, list) else [found]
    return listed if all(isinstance(one, tuple) and len(one) == 3 for one in listed) else []


def _or_nan(function: Function) -> Function:
    """Return the function with NaN where it is not defined."""

    def function_or_nan(y: np.ndarray, scores: np.ndarray, weight: np.ndarray) -> float:
        try:
            return function(y, scores, weight)
        except ValueError:
            return math.nan

    return function_or_nan


def _number(name: str, value: Any) -> float:
    """Return the value as a float; ValueError if it is no number."""
    if not isinstance(value, Real) or math.isnan(value):
        raise ValueError(
            f"the metric {name!r} gave {value!r}: it must be one real number, and not NaN; choose "
            "another eval_metric, or other validation rows, X_val and y_val"
        )
    return float(value)


def _name_of(function: Callable[..., Any]) -> str:
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__name__", None) or repr(function)


def form_of(metric: Callable[..., Any], name: str) -> tuple[bool, WeightsOf]:
    """Return whether a callable is a scorer, (estimator, X, y), and what makes its weights."""
    try:
        signature = inspect.signature(metric)
    except ValueError:  # some functions written in C have no signature
        return False, lambda weight, n_rows: {}
    parameters = list(signature.parameters.values())
    required = [p for p in parameters if p.default is p.empty and p.kind in _BY_POSITION]
    is_of_targets = bool(required) and required[0].name.startswith("y")
    taken = next((p for p in parameters if p.name in _NAMES_OF_WEIGHTS), None)
    if taken is None and is_of_targets and len(required) == 3:
        taken = required[2]
    n_others = len(required) - (taken in required)
    # a scorer that needs no y, or knows its own, is told by the name of its first parameter
    is_called_estimator = bool(parameters) and parameters[0].name == "estimator"
    is_scorer = not is_of_targets and (n_others == 3 or is_called_estimator)

    def weights_of(weight: np.ndarray, n_rows: int) -> dict[str, np.ndarray]:
        if taken is None or (len(weight) == 0 and taken.default is not taken.empty):
            return {}
        return {taken.name: weight.copy() if len(weight) > 0 else np.ones(n_rows)}

    arguments = ("estimator", "X", "y") if is_scorer else ("y_true", "y_pred")
    try:
        signature.bind(*arguments, **weights_of(np.ones(1), 1))
    except TypeError as error:
        raise TypeError(
            f"eval_metric: {name}{signature} cannot be called ({error}): it must be {FORMS}"
        ) from None
    return is_scorer, weights_of


# --- what scorers see

_NO_FEATURES = (
    "a scorer given as eval_metric sees the predictions of all validation rows, not their "
    "features: pass X on to estimator.predict, predict_proba or decision_function as it is"
)


class _ScoredEstimator(BaseEstimator):
    """What the raw scores of the validation rows mean, which are its `X`."""

    def __init__(self, targets: Any = None, loss: Any = None):
        self.targets = targets
        self.loss = loss

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _raw_scores(self, X: Any) -> np.ndarray:
        if not isinstance(X, PrecomputedScores):
            raise TypeError(_NO_FEATURES)
        return X.values

    def _linked(self, X: Any) -> np.ndarray:
        return np.array(self.targets.link(self.loss)(self._raw_scores(X)))


class ScoredRegressor(RegressorMixin, _ScoredEstimator):
    """A regressor that has predicted the validation rows."""

    def predict(self, X: Any) -> np.ndarray:
        """Return the predictions, shape (n_samples,) or (n_samples, n_outputs)."""
        return self._linked(X)


class ScoredClassifier(ClassifierMixin, _ScoredEstimator):
    """A classifier, of one label a row or of several, that has predicted the validation rows."""

    @property
    def classes_(self) -> np.ndarray | list[np.ndarray]:
        """The labels, sorted; 0 and 1 for each of several labels, as scorers know these."""
        if isinstance(self.targets, LabelTargets):
            return [np.arange(2) for _ in self.targets.classes]
        return self.targets.classes

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the raw scores, shape (n_samples,) or (n_samples, n_outputs)."""
        raw_score = self._raw_scores(X)
        return np.array(raw_score[0] if len(raw_score) == 1 else raw_score.T)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities, shape (n_samples, n_classes) or (n_samples, n_labels)."""
        return self._linked(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row, or which labels are likelier than not."""
        return self.targets.labels(self._raw_scores(X))
