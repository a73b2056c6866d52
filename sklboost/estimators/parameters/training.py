"""How training is watched, when it ends, and what it runs on."""

from dataclasses import dataclass, field
from typing import Any

from sklboost.boosting.callbacks import TrainingCallback
from sklboost.estimators.parameters.about import about
from sklboost.estimators.parameters.rules import FLAG, Rule, anything, is_finite, is_integer, one_of


def _are_callbacks(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(callback, TrainingCallback) for callback in value
    )


@dataclass(kw_only=True, eq=False, repr=False)
class TrainingParameters:
    """How training is watched, when it ends, and what it runs on."""

    early_stopping_rounds: int | None = field(
        default=None,
        metadata=about(
            Rule(
                "int",
                "None (no early stopping) or an integer >= 1",
                lambda value: value is None or (is_integer(value) and value >= 1),
            ),
            """
            Stop when the last metric of the last validation data has not improved for so many
            rounds, and keep the rounds up to the best. Without validation data given to `fit`,
            part of `X` is held out. None: do all rounds.
            """,
        ),
    )
    validation_fraction: float = field(
        default=0.1,
        metadata=about(
            Rule(
                "float",
                "a number between 0 and 1, both excluded",
                lambda value: is_finite(value) and 0 < value < 1,
            ),
            """
            Share of the rows that early stopping holds out, of their weight for "random".
            """,
        ),
    )
    validation_split: str = field(
        default="random",
        metadata=about(
            one_of("random", "time"),
            """
            Which rows early stopping holds out. "random": chosen by `random_state`, for a
            classifier the same share of every class, or whole `groups`. Weight 2 is the row
            twice under the same conditions as for `subsample`. "time": the last ones.
            """,
        ),
    )
    eval_metric: Any = field(
        default=None,
        metadata=about(
            anything("str, callable or list of them"),
            """
            What is computed of the validation data after every round: names of metrics
            (XGBoost's), scikit-learn scorers or their names, functions ``(y_true, y_pred)`` or
            ``(y_true, y_pred, sample_weight)``. None: ``"logloss"``, or ``"mlogloss"`` for more
            than two classes.
            """,
        ),
    )
    refit: bool = field(
        default=False,
        metadata=about(
            FLAG,
            """
            After early stopping, train once more on all rows, with those held out or of the
            last validation data, for the best number of rounds.
            """,
        ),
    )
    max_time: float | None = field(
        default=None,
        metadata=about(
            Rule(
                "float",
                "None (no limit) or a number of seconds > 0",
                lambda value: value is None or (is_finite(value) and value > 0),
            ),
            """
            Seconds after which no further round is begun; the rounds so far are kept.
            """,
        ),
    )
    callbacks: Any = field(
        default=None,
        metadata=about(
            Rule(
                "list of TrainingCallback",
                "None or a list of objects (no classes) that inherit from "
                "sklboost.TrainingCallback",
                lambda value: value is None or _are_callbacks(value),
            ),
            """
            Told of every round; see :class:`sklboost.TrainingCallback`.
            """,
        ),
    )
    warm_start: bool = field(
        default=False,
        metadata=about(
            FLAG,
            """
            Whether `fit` adds rounds to those of the last `fit`, up to `n_estimators`, instead
            of starting anew.
            """,
        ),
    )
    n_jobs: int | None = field(
        default=None,
        metadata=about(
            Rule(
                "int",
                "None, a positive integer, or a negative one (-1: all processors)",
                lambda value: value is None or (is_integer(value) and value != 0),
            ),
            """
            Most threads to use; small data uses fewer. None: as many as this process may use
            without crowding others out, -1: all processors. The model is the same bits for any
            number.
            """,
        ),
    )
    random_state: Any = field(
        default=None,
        metadata=about(
            anything("int, RandomState instance, Generator or None"),
            """
            Decides which rows and features are drawn, and the random rounding of gradients
            (beyond about 4,000 rows). None: the draws come from NumPy's global state, the
            rounding is fixed; so the same data and parameters give the same model if nothing is
            drawn.
            """,
        ),
    )
    verbose: int = field(
        default=0,
        metadata=about(
            Rule(
                "int",
                "True, False or an integer >= 0",
                lambda value: isinstance(value, bool) or (is_integer(value) and value >= 0),
            ),
            """
            0: silent. 1: a progress bar (of tqdm where it is installed, else lines of text). 2:
            a line for every round. Text goes through ``logging``.
            """,
        ),
    )
