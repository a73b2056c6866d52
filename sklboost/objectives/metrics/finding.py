"""From the name of a metric to the metric, and from an objective to the metric that fits it."""

import difflib
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from sklboost.objectives.metric import Metric
from sklboost.objectives.metrics.aliases import names_for
from sklboost.objectives.metrics.parameters import VARIANCE_POWER
from sklboost.objectives.metrics.registry import METRICS, TASK_WORDS, Entry

_NONE: Mapping[str, Any] = MappingProxyType({})

# By XGBoost's name of the objective; any other has the default of its task.
_METRIC_OF_OBJECTIVE = {
    "reg:squaredlogerror": "rmsle",
    "reg:absoluteerror": "mae",
    "reg:pseudohubererror": "mphe",
    "reg:huber": "huber",
    "reg:fair": "fair",
    "reg:logcosh": "logcosh",
    "reg:mape": "mape",
    "reg:quantileerror": "quantile",
    "reg:expectileerror": "expectile",
    "reg:gamma": "gamma-nloglik",
    "reg:tweedie": "tweedie-nloglik",
    "count:poisson": "poisson-nloglik",
    "binary:hinge": "error",
}


def default_metric(
    task: str, objective: str | None = None, parameters: Mapping[str, Any] = _NONE
) -> Metric:
    """Give the metric of an objective whose user names none, as XGBoost.

    Parameters
    ----------
    task : str
        Of :data:`~sklboost.objectives.metrics.registry.METRICS`.
    objective : str, optional
        By XGBoost's name. One without a metric of its own has the task's.
    parameters : mapping of str to float or list of float
        Those of the objective.
    """
    name = _METRIC_OF_OBJECTIVE.get(objective or "", METRICS[task][0].name)
    if name == "tweedie-nloglik":
        # under the name that XGBoost gives it
        power = VARIANCE_POWER.choose(name, parameters)[0]
        name = f"{name}@{power:g}"
    return find_metric(name, task, parameters)


def metric_names(task: str) -> list[str]:
    """Name the metrics of a task; ``error@t`` stands for any threshold t."""
    return [entry.title for entry in METRICS[task]]


def is_metric_name(name: str) -> bool:
    """Tell whether a task has a metric of this name."""
    return any(_entry(name, task) for task in METRICS)


def find_metric(
    name: str,
    task: str,
    parameters: Mapping[str, Any] = _NONE,
    other_names: Collection[str] = (),
) -> Metric:
    """Give the metric of this name, or of the metric that it is another name of.

    Parameters
    ----------
    name : str
        With ``@value`` for a metric with a parameter, if it is not to be the training loss's.
    task : str
        Of :data:`~sklboost.objectives.metrics.registry.METRICS`.
    parameters : mapping of str to float or list of float
        Those of the objective, by the estimators' names. A list has one for each output.
    other_names : collection of str
        What else could have been meant.

    Raises
    ------
    ValueError
        If the task has no such metric; the text lists its metrics, and names the task that has it
        or the nearest name. If a parameter is missing or out of range.
    """
    entry = _entry(name, task)
    if entry is not None:
        return entry.metric(name, task, _parameters(entry, name, parameters))
    known = ", ".join(metric_names(task))
    tasks = [words for other, words in TASK_WORDS.items() if _entry(name, other)]
    if tasks:
        raise ValueError(
            f"eval_metric={name!r} is a metric for {' and '.join(tasks)}, not for "
            f"{TASK_WORDS[task]}: choose one of {known}"
        )
    candidates = [*metric_names(task), *other_names]
    nearest = difflib.get_close_matches(name, candidates, n=1, cutoff=0.0)[0]
    raise ValueError(
        f"eval_metric={name!r} is not known; did you mean {nearest!r}? The metrics for "
        f"{TASK_WORDS[task]} are {known}"
    )


def _entry(name: str, task: str) -> Entry | None:
    family, at, _ = name.partition("@")
    own_names = names_for(family)
    for entry in METRICS[task]:
        is_possible = entry.parameter is not None if at else not entry.needs_value
        if entry.name in own_names and is_possible:
            return entry
    return None


def _parameters(entry: Entry, name: str, parameters: Mapping[str, Any]) -> tuple[float, ...]:
    if entry.parameter is None:
        return (0.0,)
    _, at, text = name.partition("@")
    return entry.parameter.read(name, text) if at else entry.parameter.choose(name, parameters)
