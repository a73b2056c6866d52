"""How training is watched, when it ends, what it runs on, and how a model is looked at."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sklboost.boosting.callbacks import TrainingCallback
from sklboost.estimators.parameters.rules import (
    FLAG,
    Rule,
    anything,
    is_finite,
    is_integer,
    one_of,
    parameter,
)
from sklboost.inspection.importances import IMPORTANCE_TYPES


def _are_callbacks(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(callback, TrainingCallback) for callback in value
    )


@dataclass(init=False, kw_only=True, eq=False, repr=False)
class TrainingParameters:
    """How training is watched, when it ends, and what it runs on."""

    early_stopping_rounds: int | None = parameter(
        None,
        Rule(
            "int",
            "None (no early stopping) or an integer >= 1",
            lambda value: value is None or (is_integer(value) and value >= 1),
        ),
        """
        Stop when the last metric on the last validation data has not improved for this many rounds,
        and keep the rounds up to the best. Without validation data given to `fit`, part of `X` is
        held out. None: do all rounds.
        """,
    )
    validation_fraction: float = parameter(
        0.1,
        Rule(
            "float",
            "a number between 0 and 1, both excluded",
            lambda value: is_finite(value) and 0 < value < 1,
        ),
        'Fraction of the rows held out for early stopping; for "random", of their weight.',
    )
    validation_split: str = parameter(
        "random",
        one_of("random", "time"),
        """
        Which rows to hold out for early stopping. "random": drawn with `random_state`, for a
        classifier the same fraction of every class, or whole `groups`. A row is held out whole,
        whatever its weight. "time": the last ones.
        """,
    )
    eval_metric: str | Callable[..., Any] | Sequence[str | Callable[..., Any]] | None = parameter(
        None,
        anything("str, callable or list of them"),
        """
        Metrics computed on the validation data after every round: names of metrics (XGBoost's),
        scikit-learn scorers or their names, functions ``(y_true, y_pred)`` or
        ``(y_true, y_pred, sample_weight)``. None: the metric of the objective, such as ``"rmse"``,
        ``"logloss"``, or ``"mlogloss"`` for more than two classes.
        """,
    )
    refit: bool = parameter(
        False,
        FLAG,
        """
        Whether to train once more after early stopping, for the best number of rounds, on all rows,
        those held out (or those of the last validation data) included.
        """,
    )
    max_time: float | None = parameter(
        None,
        Rule(
            "float",
            "None (no limit) or a number of seconds > 0",
            lambda value: value is None or (is_finite(value) and value > 0),
        ),
        "Seconds after which no further round is started; the rounds so far are kept.",
    )
    callbacks: Sequence[TrainingCallback] | None = parameter(
        None,
        Rule(
            "list of TrainingCallback",
            "None or a list of objects (no classes) that inherit from sklboost.TrainingCallback",
            lambda value: value is None or _are_callbacks(value),
        ),
        "Objects that follow the training; see :class:`sklboost.TrainingCallback`.",
    )
    warm_start: bool = parameter(
        False,
        FLAG,
        """
        Whether `fit` adds rounds to those of the last `fit`, up to `n_estimators`, instead of
        starting anew. With early stopping the best round of all is kept, old or new.
        """,
    )
    n_jobs: int | None = parameter(
        None,
        Rule(
            "int",
            "None, a positive integer, or a negative one (-1: all processors)",
            lambda value: value is None or (is_integer(value) and value != 0),
        ),
        """
        Maximum number of threads; small data uses fewer, and one on a busy machine. None: as many
        as this process may use without oversubscribing the processors, -1: all processors. The
        model is the same bits for any number.
        """,
    )
    random_state: int | np.random.RandomState | np.random.Generator | None = parameter(
        None,
        anything("int, RandomState instance, Generator or None"),
        """
        Determines which rows and features are drawn, which rows are held out, and the random
        rounding of gradients (beyond about 4,000 rows). None: the seed 0, as in XGBoost, so the
        same data and parameters give the same model; other draws in each fit come from a
        RandomState or Generator, which moves on.
        """,
    )
    verbose: int = parameter(
        0,
        Rule(
            "int",
            "True, False or an integer >= 0",
            lambda value: isinstance(value, bool) or (is_integer(value) and value >= 0),
        ),
        """
        0: silent. 1: a progress bar (of tqdm if it is installed, else lines of text). 2: a line for
        every round. n: a line for every n rounds. Text goes through ``logging``.
        """,
    )


@dataclass(init=False, kw_only=True, eq=False, repr=False)
class InspectionParameters:
    """How a finished model is looked at."""

    importance_type: str | None = parameter(
        "gain",
        one_of(*IMPORTANCE_TYPES),
        """
        What `feature_importances_` measures. "weight": the number of splits on a feature. "gain"
        and "cover": the mean gain of these splits, and the mean cover of the nodes that they split.
        "total_gain" and "total_cover": sums of these.
        """,
    )
