"""Callbacks: objects that are called before and after every round, and may stop training.

A callback keeps nothing of a training beyond its end, so the same object serves many models. The
names are XGBoost's (``xgboost.callback``), and :func:`as_callback` adapts callbacks written for it.
"""

import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

import joblib
import numpy as np

from sklboost.docstrings import describe_methods

if TYPE_CHECKING:
    from sklboost.boosting.training import Training

    # What callbacks see of it, the Notes of :class:`TrainingCallback` describe.
    TrainingState: TypeAlias = Training
else:  # its module imports this one
    TrainingState = Any
# {"validation_0": {"logloss": [one value a round]}}
EvalsLog = Mapping[str, Mapping[str, Sequence[float]]]

# Values, how many of them were looked at, position of the best one.
_NOTHING_SEEN: tuple[Sequence[float], int, int] = ((), 0, -1)


class TrainingCallback:
    """Base class of callbacks: override the methods you need.

    Attributes
    ----------
    every_round : bool, default=True
        False: :meth:`after_iteration` may be called for several rounds in a row after all of them
        were done, which is faster on small data; rounds after the one at which it stops are
        dropped. Such a callback must rely on its arguments `epoch` and `evals_log`, because
        `training` may be ahead of them.

    See Also
    --------
    EarlyStopping : Stops when a metric no longer improves.
    LearningRateScheduler : Sets the learning rate of each round.
    Checkpoint : Saves the model now and then.

    Notes
    -----
    In all methods `training` has these attributes and methods:

    - ``n_estimators``, ``n_rounds``: planned and finished rounds, a continued model's
      included
    - ``first_round``: rounds of the model that is continued, 0 without one
    - ``learning_rate``: learning rate of the next rounds; may be set
    - ``elapsed``: seconds since fit began
    - ``best_iteration``, ``best_score``: number of the best round, from 0, and the metric there;
      None unless :class:`EarlyStopping` or another callback sets them
    - ``stop_reason``: "" until training has ended, then as the estimator's ``stop_reason_``
    - ``greater_is_better(metric_name)``: whether more of a metric is better
    - ``training_loss()``: the loss of the training rows, computed on each call
    - ``snapshot()``: the estimator as if training had ended after the last finished round

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklboost import TrainingCallback, XGBRegressorLite
    >>> class StopAtLoss(TrainingCallback):
    ...     def after_iteration(self, training, epoch, evals_log):
    ...         return training.training_loss() < 2_000
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = XGBRegressorLite(callbacks=[StopAtLoss()]).fit(X, y)
    >>> model.model_.n_rounds < model.n_estimators
    True
    """

    every_round: bool = True

    def __repr__(self) -> str:
        given = (f"{name}={value!r}" for name, value in vars(self).items() if name[0] != "_")
        return f"{type(self).__name__}({', '.join(given)})"

    def before_training(self, training: TrainingState) -> None:
        """Called before the first round."""

    def before_iteration(self, training: TrainingState, epoch: int, evals_log: EvalsLog) -> bool:
        """Called before a round.

        Returns
        -------
        bool
            True ends the training before this round.
        """
        return False

    def after_iteration(self, training: TrainingState, epoch: int, evals_log: EvalsLog) -> bool:
        """Called after a round.

        Returns
        -------
        bool
            True ends the training after this round.
        """
        return False

    def after_training(self, training: TrainingState) -> None:
        """Called after the last round, also after an error or Ctrl-C."""


describe_methods(
    TrainingCallback,
    {
        "training": "training : TrainingState\n    The training.",
        "epoch": "epoch : int\n    Number of the round, from 0; rounds of a continued model count.",
        "evals_log": "evals_log : dict\n    Values of the metrics up to here, "
        '``{"validation_0": {"logloss": [0.61, 0.55]}}``.\n    Empty without validation data.',
    },
)


class EarlyStopping(TrainingCallback):
    """Stop when a metric of the validation data has not improved for some rounds.

    It also sets the training's best round and score, which prediction then uses.

    Parameters
    ----------
    rounds : int
        Stop when the metric has not improved in this many rounds.
    metric_name : str, optional
        The metric to watch. None: the last one.
    data_name : str, optional
        The validation data to watch, ``"validation_0"`` for one. None: the last one.
    min_delta : float, default=0.0
        A value must be better than the best one by more than this to count. NaN never does.
    maximize : bool, optional
        Whether more is better. None: as the metric says.
    save_best : bool or None, default=True
        Accepted for code written for XGBoost, without effect: a fitted model always ends at its
        best round.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import train_test_split
    >>> from sklboost import EarlyStopping, XGBClassifierLite
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, X_val, y, y_val = train_test_split(X, y, random_state=0)
    >>> stop = EarlyStopping(rounds=5, min_delta=0.001)
    >>> model = XGBClassifierLite(callbacks=[stop]).fit(X, y, X_val=X_val, y_val=y_val)
    >>> model.best_iteration_ < model.n_estimators - 1
    True
    """

    every_round = False

    def __init__(
        self,
        rounds: int,
        metric_name: str | None = None,
        data_name: str | None = None,
        min_delta: float = 0.0,
        maximize: bool | None = None,
        save_best: bool | None = True,
    ):
        check_positive_integer("rounds", rounds)
        if not _is_finite(min_delta) or min_delta < 0:
            raise ValueError(f"min_delta={min_delta!r}: it must be a finite number >= 0")
        self.rounds = rounds
        self.metric_name = metric_name
        self.data_name = data_name
        self.min_delta = min_delta
        self.maximize = maximize
        self._seen = _NOTHING_SEEN

    def after_iteration(self, training: TrainingState, epoch: int, evals_log: EvalsLog) -> bool:
        if not evals_log:
            raise ValueError(
                "EarlyStopping has no validation data to watch: give fit X_val and y_val, "
                "or an eval_set"
            )
        of_metric = evals_log[_chosen("data_name", self.data_name, evals_log)]
        metric_name = _chosen("metric_name", self.metric_name, of_metric)
        values = of_metric[metric_name]
        maximize = self.maximize
        if maximize is None:
            maximize = training.greater_is_better(metric_name)
        best = self._best(values, maximize)
        since_best = len(values) - 1 - best
        # values may lack the rounds of a continued model, so epochs are counted from the end
        training.best_iteration = None if best < 0 else epoch - since_best
        training.best_score = None if best < 0 else float(values[best])
        return since_best >= self.rounds

    def after_training(self, training: TrainingState) -> None:
        self._seen = _NOTHING_SEEN

    def _best(self, values: Sequence[float], maximize: bool) -> int:
        """Position of the best value, -1 if all are NaN.

        Values of the same list that were seen before are not looked at again; another list is
        another training, perhaps one at the same time.
        """
        seen, n_seen, best = self._seen
        if seen is not values or n_seen > len(values):
            n_seen, best = 0, -1
        sign = 1 if maximize else -1
        for position in range(n_seen, len(values)):
            value = sign * values[position]
            is_first = best < 0 and not math.isnan(value)
            if is_first or (best >= 0 and value - self.min_delta > sign * values[best]):
                best = position
        self._seen = values, len(values), best
        return best


class LearningRateScheduler(TrainingCallback):
    """Set the learning rate of each round.

    Parameters
    ----------
    learning_rates : callable or array-like of shape (n_estimators,)
        One learning rate for each round, a continued model's included; or a function that
        takes the number of the round, from 0, and returns the learning rate.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklboost import LearningRateScheduler, XGBRegressorLite
    >>> X, y = load_diabetes(return_X_y=True)
    >>> smaller_and_smaller = LearningRateScheduler(lambda epoch: 0.3 * 0.97**epoch)
    >>> model = XGBRegressorLite(callbacks=[smaller_and_smaller]).fit(X, y)
    """

    def __init__(self, learning_rates: Callable[[int], float] | Sequence[float] | np.ndarray):
        if not callable(learning_rates):
            if np.ndim(learning_rates) != 1:
                raise ValueError(
                    f"learning_rates={learning_rates!r}: it must be a function of the round's "
                    "number, or a list of one learning rate for each round"
                )
            for epoch, rate in enumerate(learning_rates):
                _check_rate(rate, epoch)
        self.learning_rates = learning_rates

    def before_training(self, training: TrainingState) -> None:
        if callable(self.learning_rates) or len(self.learning_rates) >= training.n_estimators:
            return
        raise ValueError(
            f"learning_rates has {len(self.learning_rates)} values for {training.n_estimators} "
            "rounds: give one for each round, or a function of the round's number"
        )

    def before_iteration(self, training: TrainingState, epoch: int, evals_log: EvalsLog) -> bool:
        rates = self.learning_rates
        training.learning_rate = _check_rate(
            rates(epoch) if callable(rates) else rates[epoch], epoch
        )
        return False


def _chosen(parameter: str, name: str | None, known: Mapping[str, Any]) -> str:
    """Return `name`, or the last of the known names if it is None."""
    if name is None:
        return list(known)[-1]
    if name not in known:
        raise ValueError(f"{parameter}={name!r}: it must be one of {', '.join(map(repr, known))}")
    return name


def _check_rate(rate: Any, epoch: int) -> float:
    if not _is_finite(rate) or rate <= 0:
        raise ValueError(
            f"learning rate {rate!r} for round {epoch}: it must be a finite number > 0"
        )
    return float(rate)


def check_positive_integer(parameter: str, value: Any) -> None:
    """Raise ValueError unless the value of this parameter is an integer >= 1."""
    if type(value) is bool or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{parameter}={value!r}: it must be an integer >= 1")


def _is_finite(value: Any) -> bool:
    return type(value) is not bool and isinstance(value, Real) and math.isfinite(value)


class Checkpoint(TrainingCallback):
    """Save the model at regular intervals and at the end.

    The files ``model_100.joblib``, ``model_200.joblib`` and so on are for ``joblib.load``: fitted
    estimators, as if training had ended there, but without `callbacks`, which may hold what cannot
    be saved. A file is written whole or not at all.

    Parameters
    ----------
    directory : str or path-like
        An existing folder.
    name : str, default="model"
        Beginning of the files' names.
    interval : int, default=100
        Rounds between two files.

    Examples
    --------
    >>> import tempfile
    >>> import joblib
    >>> from sklearn.datasets import load_diabetes
    >>> from sklboost import Checkpoint, XGBRegressorLite
    >>> X, y = load_diabetes(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     callbacks = [Checkpoint(folder, interval=10)]
    ...     _ = XGBRegressorLite(n_estimators=25, callbacks=callbacks).fit(X, y)
    ...     model = joblib.load(f"{folder}/model_20.joblib")
    >>> model.model_.n_rounds
    20
    """

    def __init__(self, directory: str | os.PathLike[str], name: str = "model", interval: int = 100):
        check_positive_integer("interval", interval)
        if not name or Path(name).name != name:
            raise ValueError(f"name={name!r}: it must be the beginning of a file's name, no path")
        self.directory = directory
        self.name = name
        self.interval = interval

    def before_training(self, training: TrainingState) -> None:
        if not Path(self.directory).is_dir():
            raise FileNotFoundError(
                f"directory={str(self.directory)!r}: there is no such folder; create it first"
            )

    def after_iteration(self, training: TrainingState, epoch: int, evals_log: EvalsLog) -> bool:
        if training.n_rounds % self.interval == 0:
            self._save(training)
        return False

    def after_training(self, training: TrainingState) -> None:
        if training.n_rounds > training.first_round and training.n_rounds % self.interval != 0:
            self._save(training)

    def _save(self, training: TrainingState) -> None:
        """Write a temporary file, then rename it: a crash leaves no half of a snapshot."""
        model = _model_to_save(training)
        target = Path(self.directory) / f"{self.name}_{training.n_rounds}.joblib"
        # a name of its own: other processes and threads of a search may write to the same folder
        partial = target.with_name(f"{target.name}.{uuid4().hex}.part")
        try:
            with open(partial, "xb") as file:
                joblib.dump(model, file, compress=1)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)


def _model_to_save(training: TrainingState) -> Any:
    model = training.snapshot()
    model.callbacks = None
    return model


# --- callbacks written for XGBoost


def as_callback(given: Any) -> Any:
    """Return a callback as trainings call it; what is no callback as it is.

    An object with the four methods of XGBoost's callbacks is adapted, whatever it inherits from.
    XGBoost's EarlyStopping becomes this package's: that can be used again, knows which metrics are
    better when greater, and holds rows out if there is no validation data.
    """
    methods = ("before_training", "before_iteration", "after_iteration", "after_training")
    is_ours = isinstance(given, TrainingCallback | type)
    if is_ours or not all(callable(getattr(given, name, None)) for name in methods):
        return given
    if (type(given).__module__, type(given).__name__) == ("xgboost.callback", "EarlyStopping"):
        return EarlyStopping(
            given.rounds, given.metric_name, given.data, given._min_delta, given.maximize
        )
    return XGBoostCallback(given)


class XGBoostCallback(TrainingCallback):
    """Calls one callback written for XGBoost as ``xgboost.train`` does, in one training."""

    def __init__(self, callback: Any):
        self.callback = callback
        self._model: TrainingBooster | None = None
        # the metrics so far: the same object in all rounds, which some callbacks change
        self._log: dict[str, dict[str, list[float]]] = {}
        self._n_logged = 0  # values of each metric

    def before_training(self, training: TrainingState) -> None:
        """Make the model that the callback gets."""
        self._model = TrainingBooster(training)
        self._log, self._n_logged = {}, 0
        self.callback.before_training(self._model)

    def before_iteration(self, training: TrainingState, epoch: int, evals_log: EvalsLog) -> bool:
        epoch -= training.first_round  # as XGBoost does
        return bool(self.callback.before_iteration(self._model, epoch, self._log_of(evals_log)))

    def after_iteration(self, training: TrainingState, epoch: int, evals_log: EvalsLog) -> bool:
        epoch -= training.first_round  # as XGBoost does
        return bool(self.callback.after_iteration(self._model, epoch, self._log_of(evals_log)))

    def after_training(self, training: TrainingState) -> None:
        """Call it unless training ended with an error."""
        if training.stop_reason:
            self.callback.after_training(self._model)

    def _log_of(self, evals_log: EvalsLog) -> dict[str, dict[str, list[float]]]:
        """Return the callback's own log, with the values that are new."""
        n_logged = self._n_logged
        for data, of_metric in evals_log.items():
            for metric, values in of_metric.items():
                self._log.setdefault(data, {}).setdefault(metric, []).extend(values[n_logged:])
                self._n_logged = len(values)
        return self._log


class TrainingBooster:
    """A training under the names of ``xgboost.Booster``: the `model` of callbacks written for it.

    What only reads the trees, such as ``predict(DMatrix)`` or ``get_dump()``, is asked of a Booster
    made of the rounds so far. Pickled or copied it is a fitted estimator of these rounds.
    """

    _BEST: Mapping[str, type] = {"best_iteration": int, "best_score": float}
    _CHANGING = ("boost", "load_config", "load_model", "reset", "update")

    def __init__(self, training: TrainingState):
        self._training = training
        self._attributes: dict[str, str] = {}

    @property  # type: ignore[misc]  # it overrides the one of object
    def __class__(self) -> Any:
        """XGBoost's Booster where that is imported: Optuna's callback asks for it."""
        return getattr(sys.modules.get("xgboost"), "Booster", TrainingBooster)

    def num_boosted_rounds(self) -> int:
        """Rounds that are finished, a continued model's included."""
        return self._training.n_rounds

    def attributes(self) -> dict[str, str]:
        """Return what was set by set_attr, and the best round and score, if there are any."""
        best = {name: getattr(self._training, name) for name in self._BEST}
        return self._attributes | {
            name: str(value) for name, value in best.items() if value is not None
        }

    def attr(self, key: str) -> str | None:
        """Return one of the attributes; None: there is no such."""
        return self.attributes().get(key)

    def set_attr(self, **attributes: str | None) -> None:
        """Set attributes, or delete those that are None; the best round is the training's."""
        for name, value in attributes.items():
            if name in self._BEST:
                setattr(self._training, name, None if value is None else self._BEST[name](value))
            elif value is None:
                self._attributes.pop(name, None)
            elif isinstance(value, str):
                self._attributes[name] = value
            else:
                raise ValueError(f"set_attr({name}={value!r}): it must be a string or None")

    def set_param(self, params: Any, value: Any = None) -> None:
        """Set the learning rate of the next rounds, the one parameter that may change."""
        given = {params: value} if isinstance(params, str) else dict(params)
        for name, new in given.items():
            if name not in ("learning_rate", "eta"):
                raise ValueError(
                    f"set_param({name!r}, {new!r}): a callback can change learning_rate alone; "
                    "set other parameters of the estimator before fit"
                )
            self._training.learning_rate = float(new)

    def save_model(self, fname: Any) -> None:
        """Write the model of the rounds so far, as the estimator's save_model does."""
        _model_to_save(self._training).save_model(fname)

    def __getattr__(self, name: str) -> Any:
        if name in self._BEST:
            value = getattr(self._training, name)
            if value is not None:
                return value
            raise AttributeError(f"{name}: there is none before a callback has set it")
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._CHANGING or not hasattr(self.__class__, name):
            raise AttributeError(
                f"the model that a callback gets has no {name!r}: it has attr, attributes, "
                "best_iteration, best_score, num_boosted_rounds, save_model, set_attr, set_param, "
                "and what xgboost.Booster has to read trees and to predict"
            )
        return getattr(self._training.snapshot().to_xgboost(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._BEST:
            setattr(self._training, name, value)
        else:
            object.__setattr__(self, name, value)

    def __getitem__(self, rounds: Any) -> Any:
        return self._training.snapshot().to_xgboost()[rounds]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return copy, (_model_to_save(self._training),)
