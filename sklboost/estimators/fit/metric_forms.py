"""In which form a metric is written in Python: a function of targets and predictions, or a scorer.

The forms are told apart by their parameters: a scorer has three without a default, (estimator, X,
y), and a function two, (y_true, y_pred). Either may have one more, for weights. A third one of a
function whose first is called y, y_true or alike is for weights, too, whatever it is called.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

FORMS = (
    "a function (y_true, y_pred) or (y_true, y_pred, sample_weight), or a scorer (estimator, X, y) "
    "or (estimator, X, y, sample_weight)"
)
# LightGBM's, and what people write.
_NAMES_OF_WEIGHTS = ("sample_weight", "sample_weights", "weight", "weights", "w")


class MetricForm(NamedTuple):
    """How a metric is called."""

    is_scorer: bool  # with (estimator, X, y) and not with (y_true, y_pred)
    weight: str = ""  # name of the parameter that takes weights; empty if there is none
    needs_weight: bool = False  # whether that has no default

    def weights(self, weight: np.ndarray, n_rows: int) -> dict[str, np.ndarray]:
        """Return the argument for the weights, a copy; ones where there are none, but needed."""
        if self.weight and len(weight) > 0:
            return {self.weight: weight.copy()}
        return {self.weight: np.ones(n_rows)} if self.needs_weight else {}


def form_of(metric: Callable[..., Any], name: str) -> MetricForm:
    """Return the form of a callable; TypeError if its parameters are those of none."""
    try:
        signature = inspect.signature(metric)
    except ValueError:  # some functions written in C have no signature
        return MetricForm(is_scorer=False)
    parameters = list(signature.parameters.values())
    required = [p for p in parameters if p.default is p.empty and p.kind in _BY_POSITION]
    is_of_targets = bool(required) and required[0].name.startswith("y")
    weight = next((p for p in parameters if p.name in _NAMES_OF_WEIGHTS), None)
    if weight is None and is_of_targets and len(required) == 3:
        weight = required[2]
    n_others = len(required) - (weight in required)
    is_scorer = not is_of_targets and (n_others == 3 or _is_called_estimator(parameters))
    form = MetricForm(is_scorer)
    if weight is not None:
        form = MetricForm(is_scorer, weight.name, weight.default is weight.empty)
    arguments = ("estimator", "X", "y") if is_scorer else ("y_true", "y_pred")
    try:
        signature.bind(*arguments, **form.weights(np.ones(1), 1))
    except TypeError as error:
        raise TypeError(
            f"eval_metric: {name}{signature} cannot be called ({error}): it must be {FORMS}"
        ) from None
    return form


_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _is_called_estimator(parameters: list[inspect.Parameter]) -> bool:
    """Whether the first parameter is: of a scorer that needs no y, or knows its own."""
    return bool(parameters) and parameters[0].name == "estimator"
