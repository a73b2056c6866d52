"""All metrics, by XGBoost's names.

To add one: a function ``(y, prediction, weight) -> float`` in one of the files beside this, and a
line in :data:`METRICS`.
"""

import difflib
from collections.abc import Collection
from functools import partial

from sklboost.metrics import classification, ranking, regression
from sklboost.metrics.base import ERROR, LOGLOSS, MAE, MERROR, MLOGLOSS, RMSE, Metric

# The first of each task is its default.
METRICS: dict[str, tuple[Metric, ...]] = {
    "regression": (
        Metric("rmse", False, regression.rmse, RMSE),
        Metric("rmsle", False, regression.rmsle),
        Metric("mae", False, regression.mean_absolute_error, MAE),
        Metric("mape", False, regression.mean_absolute_percentage_error),
        Metric("r2", True, regression.r2),
    ),
    "binary": (
        Metric("logloss", False, classification.logloss, LOGLOSS),
        Metric("error", False, classification.error, ERROR),
        Metric("auc", True, ranking.auc),
        Metric("aucpr", True, ranking.aucpr),
        Metric("brier", False, classification.brier),
    ),
    "multiclass": (
        Metric("mlogloss", False, classification.mlogloss, MLOGLOSS),
        Metric("merror", False, classification.merror, MERROR),
        Metric("auc", True, ranking.multiclass_auc),
    ),
}
# A family with a parameter: error@0.3 predicts class 1 above a probability of 0.3.
_ERROR_AT = "error@"

TASK_WORDS = {
    "regression": "regression",
    "binary": "two classes",
    "multiclass": "more than two classes",
}


def default_metric(task: str) -> Metric:
    """Give the metric of a task whose user names none."""
    return METRICS[task][0]


def metric_names(task: str) -> list[str]:
    """Name the metrics of a task; ``error@t`` stands for any threshold t."""
    names = [metric.name for metric in METRICS[task]]
    return [*names, f"{_ERROR_AT}t"] if task == "binary" else names


def is_metric_name(name: str) -> bool:
    """Tell whether a task has a metric of this name."""
    return any(_named(name, task) for task in METRICS)


def find_metric(name: str, task: str, other_names: Collection[str] = ()) -> Metric:
    """Give the metric of this name.

    Parameters
    ----------
    name : str
    task : {"regression", "binary", "multiclass"}
    other_names : collection of str
        What else could have been meant.

    Raises
    ------
    ValueError
        If the task has no such metric; the text lists its metrics, and names the task that has it
        or the nearest name.
    """
    metric = _named(name, task)
    if metric is not None:
        return metric
    known = ", ".join(metric_names(task))
    tasks = [words for other, words in TASK_WORDS.items() if _named(name, other)]
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


def _named(name: str, task: str) -> Metric | None:
    for metric in METRICS[task]:
        if metric.name == name:
            return metric
    if task == "binary" and name.startswith(_ERROR_AT):
        threshold = _threshold(name)
        return Metric(name, False, partial(classification.error, threshold=threshold))
    return None


def _threshold(name: str) -> float:
    text = name.removeprefix(_ERROR_AT)
    try:
        threshold = float(text)
    except ValueError:
        threshold = -1.0
    if not 0.0 <= threshold <= 1.0:
        raise ValueError(
            f"eval_metric={name!r}: after the @ there must be a probability from 0 to 1, such as "
            f"{_ERROR_AT}0.3"
        )
    return threshold
