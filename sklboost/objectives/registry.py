"""Everything that `objective` and `eval_metric` can name, for each task."""

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from sklboost.objectives import metrics
from sklboost.objectives.custom import FunctionLoss, check_loss_fits
from sklboost.objectives.domains import BETWEEN_0_AND_1, POSITIVE, SHARES, Domain
from sklboost.objectives.links import LOG_1P, PROBABILITY
from sklboost.objectives.loss import Loss, RowLoss
from sklboost.objectives.losses.classes import (
    FocalLoss,
    HingeLoss,
    LogisticRegression,
    LogLoss,
    OneVsRest,
    Softmax,
)
from sklboost.objectives.losses.regression import (
    AbsoluteError,
    AbsolutePercentageError,
    ExpectileError,
    Fair,
    Gamma,
    Huber,
    LogCosh,
    Poisson,
    PseudoHuber,
    QuantileError,
    SquaredLogError,
    Tweedie,
)
from sklboost.objectives.losses.squared_error import SquaredError
from sklboost.objectives.metric import LossOfRows, Metric, MetricEntry, Parameter

TASK_WORDS = {
    "regression": "regression",
    "binary": "two classes",
    "multiclass": "more than two classes",
    "multilabel": "several labels",
    "ranking": "rankings",
    "survival": "survival times",
}
_KINDS = {"objective": "an objective", "eval_metric": "a metric"}
# What other libraries have losses and metrics for, by the first word of their names.
_ELSEWHERE = {
    "survival times with other distributions": "survivalaft",
}
_RANKING = (
    "rank lambdarank lambdamart ndcg dcg map pre mrr xendcg yetirank yetirankpairwise pairlogit "
    "pairlogitpairwise queryrmse querysoftmax querycrossentropy stochasticrank"
)
# Names of other libraries that are near to none of ours.
_OTHER_NAMES = {
    "auc_roc": "auc",
    "deviance": "log_loss",
    "entropy": "log_loss",
    "f1_score": "f1",
    "friedman_mse": "reg:squarederror",
    "gini": "log_loss",
    "hinge_loss": "hinge",
    "huber_loss": "huber",
    "lad": "reg:absoluteerror",
    "logistic": "binary:logistic",
    "ls": "reg:squarederror",
    "mean_absolute_error": "reg:absoluteerror",
    "mean_squared_error": "reg:squarederror",
    "rmse": "reg:squarederror",
    "softmax": "multi:softprob",
}
# Similarity, from 0 to 1, below which a name is not the misspelling of another.
_NEAR = 0.7


class Named(Protocol):
    """What can be asked for by a name."""

    @property
    def title(self) -> str:
        """The name that lists show."""

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names."""

    def has_name(self, name: str) -> bool:
        """Whether it can be asked for by this name."""


NamedType = TypeVar("NamedType", bound=Named)


def find_named(
    argument: str,
    known: Mapping[str, tuple[NamedType, ...]],
    name: str,
    task: str,
    other_names: Collection[str] = (),
) -> NamedType:
    """Return what has this name among what is known for a task.

    `argument` is ``"objective"`` or ``"eval_metric"``; `other_names` could have been meant, too.

    Raises
    ------
    ValueError
        If the task has nothing of this name; the text lists what it has, and names the tasks that
        have it, or the nearest name if one is near.
    """
    found = named(known[task], name)
    if found is not None:
        return found
    titles = [entry.title for entry in known[task]]
    tasks = [words for other, words in TASK_WORDS.items() if named(known[other], name)]
    if tasks:
        raise ValueError(
            f"{argument}={name!r} is {_KINDS[argument]} for {' and '.join(tasks)}, not for "
            f"{TASK_WORDS[task]}: choose one of {', '.join(titles)}"
        )
    raise ValueError(
        f"{argument}={name!r} {_remedy(str(name), known[task], other_names)} The "
        f"{argument.removeprefix('eval_')}s for {TASK_WORDS[task]} are {', '.join(titles)}"
    )


def _remedy(name: str, entries: Collection[Named], other_names: Collection[str]) -> str:
    """Say what an unknown name means elsewhere, or what it may be a misspelling of."""
    first_word = re.split("[:@_-]", name.lower())[0]
    if {name.lower(), first_word} & set(_RANKING.split()):
        return "is for rankings, and no name of XGBRankerLite's."
    for task, words in _ELSEWHERE.items():
        if {name.lower(), first_word} & set(words.split()):
            return f"is for {task}, which sklboost does not have."
    aliases = (alias for entry in entries for alias in entry.aliases)
    candidates = {each.lower(): each for each in (*other_names, *aliases)}
    candidates |= {entry.title.lower(): entry.title for entry in entries}
    meant = {other: own for other, own in _OTHER_NAMES.items() if own in candidates.values()}
    candidates = {**meant, **candidates}
    near = difflib.get_close_matches(name.lower(), candidates, n=1, cutoff=_NEAR)
    return f"is not known; did you mean {candidates[near[0]]!r}?" if near else "is not known."


def named(entries: tuple[NamedType, ...], name: str) -> NamedType | None:
    """Return the first entry that has a name, None if none has."""
    return next((entry for entry in entries if entry.has_name(name)), None)


# --- objectives


class Objective(NamedTuple):
    """A loss that can be named."""

    name: str
    # ``make(size, parameters) -> Loss``. `size` is the number of targets, or for more than two
    # classes that of classes; `parameters` are those of the estimator, by name.
    make: Callable[[int, Mapping[str, Any]], Loss]
    # other names: those of LightGBM and scikit-learn, and XGBoost's for another task that mean the
    # same
    aliases: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The name."""
        return self.name

    def has_name(self, name: str) -> bool:
        """Whether it can be asked for by this name."""
        return name in (self.name, *self.aliases)


def _of_rows(loss: type[RowLoss], *aliases: str) -> Objective:
    """Make the objective of a loss of rows; its parameter can be one number or several."""

    def make(n_targets: int, parameters: Mapping[str, Any]) -> Loss:
        if not loss.parameter:
            return loss(n_targets)
        return loss(n_targets, tuple(map(float, np.ravel(parameters[loss.parameter]))))

    return Objective(loss.name, make, aliases)


def _of_classes(loss: type[Softmax | OneVsRest], *aliases: str) -> Objective:
    """Make the objective of a loss that knows nothing but the number of classes."""
    return Objective(loss.name, lambda n_classes, _: loss(n_classes), aliases)


def _of_queries(name: str, class_name: str, *aliases: str) -> Objective:
    """Make the objective of a loss of rankings, imported when it is first asked for."""

    def make(_: int, parameters: Mapping[str, Any]) -> Loss:
        from sklboost.objectives.losses import ranking

        loss: Loss = getattr(ranking, class_name)(ranking.settings_of(parameters))
        return loss

    return Objective(name, make, aliases)


def _later(place: str) -> Callable[..., Any]:
    """Return a function of the objectives that is imported when it is first called."""
    return lambda *arguments: resolve_name(f"sklboost.objectives.{place}")(*arguments)


_cox, _aft = _later("losses.cox:make_cox"), _later("losses.aft:make_aft")


# The first of each task is its default.
OBJECTIVES: dict[str, tuple[Objective, ...]] = {
    "regression": (
        _of_rows(SquaredError, "squared_error", "regression", "l2", "mse", "reg:linear"),
        _of_rows(AbsoluteError, "absolute_error", "regression_l1", "l1", "mae"),
        _of_rows(QuantileError, "quantile"),
        _of_rows(ExpectileError, "expectile"),
        _of_rows(Huber, "huber"),
        _of_rows(PseudoHuber, "pseudo_huber"),
        _of_rows(LogCosh, "logcosh"),
        _of_rows(Fair, "fair"),
        _of_rows(AbsolutePercentageError, "mape", "mean_absolute_percentage_error"),
        _of_rows(SquaredLogError, "msle", "squared_log_error"),
        _of_rows(Poisson, "poisson"),
        _of_rows(Gamma, "gamma"),
        _of_rows(Tweedie, "tweedie"),
        _of_rows(LogisticRegression, "binary:logistic", "cross_entropy", "xentropy"),
    ),
    "binary": (
        _of_rows(
            LogLoss,
            *("log_loss", "binary", "multi:softprob", "multi:softmax"),
            *("multi:onevsrest", "multiclassova"),
        ),
        _of_rows(FocalLoss, "focal"),
        _of_rows(HingeLoss, "hinge"),
    ),
    "multilabel": (
        _of_rows(LogLoss, "log_loss", "binary"),
        _of_rows(FocalLoss, "focal"),
        _of_rows(HingeLoss, "hinge"),
    ),
    "multiclass": (
        _of_classes(Softmax, "multi:softmax", "log_loss", "multiclass", "binary:logistic"),
        _of_classes(OneVsRest, "multiclassova", "multiclass_ova", "ova", "ovr"),
    ),
    "ranking": (
        _of_queries("rank:ndcg", "LambdaRank", "lambdarank", "lambdamart"),
        _of_queries("rank:map", "LambdaRankPrecision"),
        _of_queries("rank:pairwise", "RankNet", "ranknet"),
        _of_queries("rank:xendcg", "CrossEntropyNDCG", "rank_xendcg", "xendcg", "xe_ndcg"),
    ),
    "survival": (
        Objective("survival:cox", _cox, ("cox", "coxph")),
        Objective("survival:aft", _aft, ("aft",)),
    ),
}


def make_loss(objective: Any, task: str, size: int, parameters: Mapping[str, Any]) -> Loss:
    """Make the loss of what an estimator was given as `objective`.

    Parameters
    ----------
    objective : None, str, callable or Loss
    task : {"regression", "binary", "multilabel", "multiclass"}
    size : int
        The number of targets or labels, for more than two classes that of classes.
    parameters : mapping of str to object
        Those of the estimator.
    """
    if isinstance(objective, Loss):
        check_loss_fits(objective, task, size)
        return objective
    if callable(objective):
        return FunctionLoss(objective, task, size)
    return find_objective(objective, task).make(size, parameters)


def find_objective(name: str | None, task: str) -> Objective:
    """Return the objective of this name, the task's default for None."""
    if name is None:
        return OBJECTIVES[task][0]
    return find_named("objective", OBJECTIVES, name, task)


def is_built_in(loss: Loss) -> bool:
    """Whether a loss is one of those that can be named, and not the user's."""
    return type(loss).__module__.startswith("sklboost.objectives.losses.")


# --- metrics

_POSITIVE = POSITIVE._replace(words="a number above 0")
_ALPHA = BETWEEN_0_AND_1._replace(words="an alpha above 0 and below 1")
_POWERS = Domain("a variance power from 1 to 2", 1.0, 2.0)
_POWERS_BETWEEN = Domain(
    "a variance power above 1 and below 2 (at 1 it is poisson-deviance, at 2 gamma-deviance)",
    *(1.0, 2.0, False),
)
_HUBER_SLOPE = Parameter("slope", "huber_slope", 1.0, _POSITIVE)
_FAIR_C = Parameter("c", "fair_c", 1.0, _POSITIVE)
_QUANTILE_ALPHA = Parameter("alpha", "quantile_alpha", None, _ALPHA)
_EXPECTILE_ALPHA = Parameter("alpha", "expectile_alpha", None, _ALPHA)
_VARIANCE_POWER = Parameter("rho", "tweedie_variance_power", 1.5, _POWERS)
_THRESHOLD = Parameter("t", "", None, SHARES._replace(words="a probability from 0 to 1"))


def _mean_of(
    name: str,
    loss: type[RowLoss | Softmax],
    *aliases: str,
    factor: float = 1.0,
    is_root: bool = False,
    parameter: Parameter | None = None,
    **changes: Any,
) -> MetricEntry:
    """Make the entry of a mean of a loss's value; `changes` are fields of its formula."""
    formula = loss.formula(**changes)
    return MetricEntry(name, formula, aliases, loss.name, factor, is_root, parameter)


def _deviance_of(name: str, loss: type[Poisson | Gamma | Tweedie], *aliases: str) -> MetricEntry:
    """Make the entry of a deviance: twice the loss less the least value that a target allows."""
    return _mean_of(name, loss, *aliases, factor=2.0, less=loss.least_value)


class RankingEntry(MetricEntry):
    """A metric of rankings, with ``@k`` and ``-`` behind its name."""

    def has_name(self, name: str) -> bool:
        """Whether it can be asked for by this name."""
        # 0 documents are none
        form = rf"(?:{'|'.join((self.name, *self.aliases))})(@0*[1-9]\d*)?-?"
        return re.fullmatch(form, name) is not None

    def default_name(self, parameters: Mapping[str, Any]) -> str:
        """Return the name with as many documents as pairs begin with, as XGBoost."""
        from sklboost.objectives.losses.ranking import settings_of

        settings = settings_of(parameters)
        return f"{self.name}@{settings.n_pairs}" if settings.takes_top else self.name

    def metric(self, name: str, task: str, parameters: Mapping[str, Any]) -> Metric:
        """Make the metric of this name; `parameters` are those of the objective."""
        from sklboost.objectives.metrics import metric_function

        family = re.match(r"\w+", name).group()  # type: ignore[union-attr]
        own = self.name + name.removeprefix(family)
        is_exponential = bool(parameters.get("ndcg_exp_gain", True))
        return Metric(name, True, metric_function(own, is_exponential))


def _of_top(name: str, *aliases: str, objective: str = "") -> RankingEntry:
    # what it is computed by is imported when it is asked for
    return RankingEntry(name, _not_called, aliases, objective)


def _not_called(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    raise NotImplementedError


# Other libraries' names for two classes, and for more: whichever is asked for, the one of the task
# is meant.
_NAMES_OF_LOG_LOSS = (
    *("log_loss", "binary_logloss", "multi_logloss", "binary", "multiclass", "softmax"),
    *("multiclassova", "multiclass_ova", "ova", "ovr"),
)
_NAMES_OF_ERROR = ("binary_error", "multi_error", "zero_one_loss")

_LOG_LOSS = _mean_of("logloss", LogLoss, "log_loss", "binary_logloss", "cross_entropy", "xentropy")
_DIVERGENCE = _mean_of("kullback_leibler", LogLoss, "kldiv", less=LogLoss.least_value)
_ERROR = MetricEntry(
    "error", metrics.WRONG_SIDE, (*_NAMES_OF_ERROR, "merror", "hamming_loss"), HingeLoss.name
)
_BINARY = (
    _LOG_LOSS._replace(aliases=(*_NAMES_OF_LOG_LOSS, "mlogloss", "cross_entropy", "xentropy")),
    _ERROR,
    _ERROR._replace(of=metrics.WRONG_SIDE_OF_PROBABILITY, parameter=_THRESHOLD),
    MetricEntry("auc", metrics.auc, ("roc_auc_score",)),
    MetricEntry("aucpr", metrics.aucpr, ("average_precision_score",)),
    _mean_of(
        *("brier", SquaredError, "brier_score_loss", "mse", "l2", "mean_squared_error"),
        factor=2.0,
        reads=PROBABILITY,
    ),
    _mean_of(
        *("rmse", SquaredError, "l2_root", "root_mean_squared_error"),
        factor=2.0,
        is_root=True,
        reads=PROBABILITY,
    ),
    _mean_of("mae", AbsoluteError, "l1", "mean_absolute_error", reads=PROBABILITY),
    _DIVERGENCE,
)


# The first of each task is its default, and the first with an objective's name is that objective's.
METRICS: dict[str, tuple[MetricEntry, ...]] = {
    "regression": (
        _mean_of(
            "rmse", SquaredError, "l2_root", "root_mean_squared_error", factor=2.0, is_root=True
        ),
        _mean_of("mse", SquaredError, "l2", "mean_squared_error", "regression_l2", factor=2.0),
        _mean_of(
            *("rmsle", SquaredLogError, "root_mean_squared_log_error"),
            factor=2.0,
            is_root=True,
            reads=LOG_1P,
        ),
        _mean_of("mae", AbsoluteError, "l1", "mean_absolute_error", "regression_l1"),
        _mean_of("mape", AbsolutePercentageError, "mean_absolute_percentage_error"),
        _mean_of("mphe", PseudoHuber, parameter=_HUBER_SLOPE),
        # LightGBM's default
        _mean_of("huber", Huber, parameter=_HUBER_SLOPE._replace(default=0.9)),
        _mean_of("fair", Fair, parameter=_FAIR_C),
        _mean_of("logcosh", LogCosh),
        _mean_of("quantile", QuantileError, "mean_pinball_loss", parameter=_QUANTILE_ALPHA),
        _mean_of("expectile", ExpectileError, parameter=_EXPECTILE_ALPHA),
        _mean_of("poisson-nloglik", Poisson, "poisson", less=Poisson.log_of_base),
        _deviance_of("poisson-deviance", Poisson, "mean_poisson_deviance"),
        _mean_of("gamma-nloglik", Gamma, "gamma"),
        _deviance_of("gamma-deviance", Gamma, "gamma_deviance", "mean_gamma_deviance"),
        _mean_of("tweedie-nloglik", Tweedie, "tweedie", parameter=_VARIANCE_POWER),
        _deviance_of("tweedie-deviance", Tweedie, "mean_tweedie_deviance")._replace(
            parameter=_VARIANCE_POWER._replace(domain=_POWERS_BETWEEN)
        ),
        # of targets that are probabilities
        _LOG_LOSS,
        _DIVERGENCE,
        MetricEntry("r2", metrics.r2, ("r2_score",)),
    ),
    "binary": _BINARY,
    "multiclass": (
        _mean_of("mlogloss", Softmax, *_NAMES_OF_LOG_LOSS, "logloss"),
        MetricEntry("merror", metrics.WRONG_CLASS, (*_NAMES_OF_ERROR, "error")),
        MetricEntry("auc", metrics.multiclass_auc, ("roc_auc_score",)),
        MetricEntry("auc_mu", metrics.auc_mu),
        MetricEntry("brier", metrics.SQUARED_CLASS_ERROR, ("brier_score_loss",)),
    ),
    "multilabel": _BINARY,
    "ranking": (
        _of_top("ndcg", "lambdarank", "xendcg"),
        _of_top("map", "mean_average_precision", objective="rank:map"),
        _of_top("pre", "precision_at"),
        _of_top("mrr"),
    ),
    "survival": (
        MetricEntry("cox-nloglik", LossOfRows(_cox), ("cox",), "survival:cox"),
        MetricEntry(
            *("aft-nloglik", LossOfRows(_aft), ("aft",), "survival:aft"),
            needs="aft_loss_distribution",
        ),
        MetricEntry(
            "interval-regression-accuracy",
            metrics.share_between,
            objective="survival:aft",
            needs="aft_loss_distribution",
        ),
        MetricEntry("cindex", metrics.cindex, ("concordance_index", "concordance")),
    ),
}

_NO_PARAMETERS: Mapping[str, Any] = MappingProxyType({})


def default_metric(
    task: str, objective: str = "", parameters: Mapping[str, Any] = _NO_PARAMETERS
) -> Metric:
    """Return the metric of an objective whose user names none, as XGBoost; else the task's."""
    entries = METRICS[task]
    of_objective = (entry for entry in entries if objective and entry.objective == objective)
    entry = next(of_objective, entries[0])
    name = entry.default_name(parameters)
    if name == "tweedie-nloglik":  # under the name that XGBoost gives it
        name = f"{name}@{_VARIANCE_POWER.choose(name, parameters)[0]:g}"
    return entry.metric(name, task, parameters)


def is_metric_name(name: str) -> bool:
    """Whether a task has a metric of this name."""
    return any(named(entries, name) for entries in METRICS.values())


def find_metric(
    name: str,
    task: str,
    parameters: Mapping[str, Any] = _NO_PARAMETERS,
    other_names: Collection[str] = (),
) -> Metric:
    """Return the metric of this name, with ``@value`` if its parameter is not the training loss's.

    `parameters` are those of the objective, by the estimators' names; a list has one for each
    output. `other_names` could have been meant, too.

    Raises
    ------
    ValueError
        If the task has no such metric, or a parameter is missing or out of range.
    """
    entry = find_named("eval_metric", METRICS, name, task, other_names)
    return entry.metric(name, task, parameters)
