"""Everything that `objective`, `distribution` and `eval_metric` can name, for each task."""

import difflib
import math
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from sklboost.objectives import metrics
from sklboost.objectives.blocks import LOG_1P, Formula
from sklboost.objectives.custom import FunctionLoss, check_loss_fits
from sklboost.objectives.domains import BETWEEN_0_AND_1, POSITIVE, SHARES, Domain, no_rows
from sklboost.objectives.loss import Loss, RowLoss, lacking
from sklboost.objectives.losses import ranking
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
from sklboost.objectives.metric import Function, Metric, as_rows, mean_metric

if TYPE_CHECKING:
    from sklboost.objectives.losses.distributions import DistributionLoss

# make(size, parameters): `size` is the number of targets, or for more than two classes of classes;
# `parameters` are the estimator's, by name.
MakeLoss = Callable[[int, Mapping[str, Any]], Loss]

# --- objectives


class ObjectiveEntry(NamedTuple):
    """A loss that can be named."""

    name: str
    make: MakeLoss
    # other names: LightGBM's and scikit-learn's, and XGBoost's for another task that mean the same
    aliases: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The name that lists show."""
        return self.name

    def has_name(self, name: str) -> bool:
        """Whether it can be asked for by this name."""
        return name in (self.name, *self.aliases)


def _of_rows(loss: type[RowLoss], *aliases: str) -> ObjectiveEntry:
    """Make the entry of a loss of rows; its parameter can be one number or several."""

    def make(n_targets: int, parameters: Mapping[str, Any]) -> Loss:
        if not loss.parameter:
            return loss(n_targets)
        return loss(n_targets, tuple(map(float, np.ravel(parameters[loss.parameter]))))

    return ObjectiveEntry(loss.name, make, aliases)


def _of_queries(loss: type[ranking.RankingLoss], *aliases: str) -> ObjectiveEntry:
    """Make the entry of a loss of rankings."""
    make: MakeLoss = lambda _, parameters: loss(ranking.settings_of(parameters))  # noqa: E731
    return ObjectiveEntry(loss.name, make, aliases)


def _cox(_: int, parameters: Mapping[str, Any]) -> Loss:
    from sklboost.objectives.losses.cox import Cox  # most fits do without

    return Cox(parameters.get("ties", "breslow"))


def _aft(_: int, parameters: Mapping[str, Any]) -> Loss:
    from sklboost.objectives.losses.aft import AcceleratedFailureTime

    scale = np.ravel(parameters.get("aft_loss_distribution_scale", 1.0))
    distribution = parameters.get("aft_loss_distribution", "normal")
    return AcceleratedFailureTime(distribution, float(scale[0]))


def _yeti(_: int, parameters: Mapping[str, Any]) -> Loss:
    from sklboost.objectives.losses.yeti import YetiRank

    return YetiRank(ranking.settings_of(parameters))


# The first of each task is its default.
OBJECTIVES: dict[str, tuple[ObjectiveEntry, ...]] = {
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
        ObjectiveEntry(
            Softmax.name,
            lambda n_classes, _: Softmax(n_classes),
            ("multi:softmax", "log_loss", "multiclass", "binary:logistic"),
        ),
        _of_rows(OneVsRest, "multiclassova", "multiclass_ova", "ova", "ovr"),
    ),
    "ranking": (
        _of_queries(ranking.LambdaRank, "lambdarank", "lambdamart"),
        _of_queries(ranking.LambdaRankPrecision),
        _of_queries(ranking.RankNet, "ranknet"),
        _of_queries(ranking.CrossEntropyNDCG, "rank_xendcg", "xendcg", "xe_ndcg"),
        ObjectiveEntry("rank:yeti", _yeti, ("yetirank", "YetiRank")),
    ),
    "survival": (
        ObjectiveEntry("survival:cox", _cox, ("cox", "coxph")),
        ObjectiveEntry("survival:aft", _aft, ("aft",)),
    ),
}


def make_loss(objective: Any, task: str, size: int, parameters: Mapping[str, Any]) -> Loss:
    """Make the loss of an estimator's `objective`: None, a name, a function or a Loss."""
    if isinstance(objective, Loss):
        check_loss_fits(objective, task, size)
        return objective
    if callable(objective):
        return FunctionLoss(objective, task, size)
    return find_objective(objective, task).make(size, parameters)


def find_objective(name: str | None, task: str) -> ObjectiveEntry:
    """Return the objective of this name, the task's default for None."""
    if name is None:
        return OBJECTIVES[task][0]
    return find_named("objective", OBJECTIVES, name, task)


def is_built_in(loss: Loss) -> bool:
    """Whether a loss is one of those that can be named, and not the user's."""
    return type(loss).__module__.startswith("sklboost.objectives.losses.")


# --- distributions

# What computes with one is imported when it is asked for.
_PLACES = {
    "normal": "continuous:Normal",
    "student_t": "continuous:StudentT",
    "laplace": "continuous:Laplace",
    "lognormal": "continuous:Lognormal",
    "gamma": "continuous:Gamma",
    "poisson": "counts:Poisson",
    "negative_binomial": "counts:NegativeBinomial",
    "zero_inflated_poisson": "zero_inflated:ZeroInflatedPoisson",
    "zero_inflated_negative_binomial": "zero_inflated:ZeroInflatedNegativeBinomial",
    "zero_inflated_gamma": "zero_inflated:ZeroInflatedGamma",
    "zero_inflated_lognormal": "zero_inflated:ZeroInflatedLognormal",
}
DISTRIBUTIONS = tuple(_PLACES)


def find_distribution(name: str) -> "type[DistributionLoss]":
    """Return the loss of a distribution."""
    found: type[DistributionLoss] = resolve_name(
        f"sklboost.objectives.losses.distributions.{_PLACES[name]}"
    )
    return found


# --- metrics


class Parameter(NamedTuple):
    """A parameter of a metric: ``name@value``, or the training loss's, or a default."""

    symbol: str  # what it is called in ``name@symbol``
    key: str  # the estimators' parameter that is its default; empty: a value must be given
    default: float | None  # where the training loss has none; None: then a value must be given
    domain: Domain  # its words say what the parameter is

    def values(self, name: str, parameters: Mapping[str, Any]) -> tuple[float, ...]:
        """Return the value behind the @, or the training loss's, one an output, or the default."""
        family, at, text = name.partition("@")
        possible = ("0.3" if self.domain.has_ends else "0.9") if self.default is None else ""
        example = f"{family}@{possible or format(self.default, 'g')}"
        if at:
            try:
                value = float(text)
            except ValueError:
                value = math.nan
            if not self.domain.has(value):
                raise ValueError(
                    f"eval_metric={name!r}: after the @ there must be {self.domain.words}, such as "
                    f"{example}"
                )
            return (value,)
        values = np.atleast_1d(parameters.get(self.key, self.default))
        if values[0] is None:
            raise ValueError(
                f"eval_metric={name!r} needs {self.domain.words}, and the loss has none: give "
                f"{example}"
            )
        for value in values:
            if not self.domain.has(value):
                raise ValueError(
                    f"eval_metric={name!r} cannot be taken with {self.key}={value:g}: it needs "
                    f"{self.domain.words}; give {example}"
                )
        return tuple(values.astype(float).tolist())


class MetricEntry(NamedTuple):
    """A metric that can be named, or a family of metrics with a parameter."""

    name: str  # XGBoost's, without parameter
    # the loss whose mean it is; or what makes its function, see `Metric`, from the name that was
    # asked for and the parameters of the objective
    of: Formula | Callable[[str, Mapping[str, Any]], Function]
    # other libraries' names of it. A metric is called by the name it was asked for.
    aliases: tuple[str, ...] = ()
    objective: str = ""  # the objective of this loss, if there is one
    greater_is_better: bool = False
    factor: float = 1.0  # that the mean is multiplied by
    is_root: bool = False  # whether the metric is the root of that
    parameter: Parameter | None = None  # which the formula has; ``name@value`` gives a value
    ending: str = ""  # regular expression of what else may stand behind the name
    # A parameter that the training loss must have: the raw scores of others mean something else
    needs: str = ""

    @property
    def title(self) -> str:
        """The name that lists show, with the parameter if it needs a value."""
        if self.parameter is None or self.parameter.key:
            return self.name
        return f"{self.name}@{self.parameter.symbol}"

    def has_name(self, name: str) -> bool:
        """Whether it can be asked for by this name."""
        ending = self.ending
        if self.parameter is not None:
            ending = "(@.*)?" if self.parameter.key else "@.*"
        names = "|".join(map(re.escape, (self.name, *self.aliases)))
        return re.fullmatch(f"(?:{names}){ending}", name, re.DOTALL) is not None

    def metric(self, name: str, task: str, parameters: Mapping[str, Any]) -> Metric:
        """Make the metric of this name; `parameters` are the objective's."""
        if self.needs and parameters and self.needs not in parameters:
            raise ValueError(
                f"eval_metric={name!r} is for the raw scores of {self.objective!r}: choose this "
                "objective, or another eval_metric"
            )
        if not isinstance(self.of, Formula):
            return Metric(name, self.greater_is_better, self.of(name, parameters))
        return mean_metric(
            *(name, self.of),
            (0.0,) if self.parameter is None else self.parameter.values(name, parameters),
            self.factor,
            is_root=self.is_root,
            is_of_probabilities=task != "regression",
        )


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
    formula = loss.formula._replace(**changes)
    return MetricEntry(
        *(name, formula, aliases, loss.name),
        factor=factor,
        is_root=is_root,
        parameter=parameter,
    )


def _deviance_of(name: str, loss: type[Poisson | Gamma | Tweedie], *aliases: str) -> MetricEntry:
    """Make the entry of a deviance: twice the loss less the least value that a target allows."""
    return _mean_of(name, loss, *aliases, factor=2.0, constant=loss.least_value)


def _of_function(name: str, function: Function, *aliases: str) -> MetricEntry:
    """Make the entry of a function that has no parameters: the greater the better."""
    return MetricEntry(name, lambda *_: function, aliases, greater_is_better=True)


def _of_loss(make: MakeLoss) -> Callable[[str, Mapping[str, Any]], Function]:
    """Return what makes the function of a loss that does not decompose by row.

    Predictions are raw scores.
    """

    def function_of(name: str, parameters: Mapping[str, Any]) -> Function:
        loss = make(1, parameters)

        def function(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
            loss.check_targets(y, "y of a metric")
            found = loss.value(as_rows(y), as_rows(prediction), weight)
            if math.isnan(found) and (need := lacking(loss, y)):
                raise no_rows(name, f"{'an' if need[0] in 'aeiou' else 'a'} {need}")
            return found

        return function

    return function_of


def _of_top(name: str, *aliases: str, objective: str = "") -> MetricEntry:
    """Make the entry of a metric of rankings, with ``@k`` and ``-`` behind its name."""

    def function_of(asked: str, parameters: Mapping[str, Any]) -> Function:
        own = name + re.sub(r"^\w+", "", asked)
        is_exponential = bool(parameters.get("ndcg_exp_gain", True))
        return partial(metrics.mean_over_queries, own, is_exponential=is_exponential)

    # 0 documents are none
    ending = r"(@0*[1-9]\d*)?-?"
    return MetricEntry(
        *(name, function_of, aliases, objective), greater_is_better=True, ending=ending
    )


# Other libraries' names for two classes, and for more: whichever is asked for, the one of the task
# is meant.
_NAMES_OF_LOG_LOSS = (
    *("log_loss", "binary_logloss", "multi_logloss", "binary", "multiclass", "softmax"),
    *("multiclassova", "multiclass_ova", "ova", "ovr"),
)
_NAMES_OF_ERROR = ("binary_error", "multi_error", "zero_one_loss")

_LOG_LOSS = _mean_of("logloss", LogLoss, "log_loss", "binary_logloss", "cross_entropy", "xentropy")
_DIVERGENCE = _mean_of("kullback_leibler", LogLoss, "kldiv", constant=LogLoss.least_value)
_ERROR = MetricEntry(
    "error", metrics.WRONG_SIDE, (*_NAMES_OF_ERROR, "merror", "hamming_loss"), HingeLoss.name
)
_BINARY = (
    _LOG_LOSS._replace(aliases=(*_NAMES_OF_LOG_LOSS, "mlogloss", "cross_entropy", "xentropy")),
    _ERROR,
    _ERROR._replace(of=metrics.WRONG_SIDE_OF_PROBABILITY, parameter=_THRESHOLD),
    _of_function("auc", metrics.auc, "roc_auc_score"),
    _of_function("aucpr", metrics.aucpr),
    _of_function("average_precision_score", metrics.mean_precision),
    _mean_of(
        *("brier", SquaredError, "brier_score_loss", "mse", "l2", "mean_squared_error"),
        factor=2.0,
    ),
    _mean_of(
        *("rmse", SquaredError, "l2_root", "root_mean_squared_error"),
        factor=2.0,
        is_root=True,
    ),
    _mean_of("mae", AbsoluteError, "l1", "mean_absolute_error"),
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
        _mean_of("poisson-nloglik", Poisson, "poisson", constant=Poisson.log_of_base),
        _deviance_of("poisson-deviance", Poisson, "mean_poisson_deviance"),
        # the first is the default, as in XGBoost since 3.0
        _deviance_of("gamma-deviance", Gamma, "gamma_deviance", "mean_gamma_deviance"),
        _mean_of("gamma-nloglik", Gamma, "gamma"),
        _mean_of("tweedie-nloglik", Tweedie, "tweedie", parameter=_VARIANCE_POWER),
        _deviance_of("tweedie-deviance", Tweedie, "mean_tweedie_deviance")._replace(
            parameter=_VARIANCE_POWER._replace(domain=_POWERS_BETWEEN)
        ),
        # of targets that are probabilities
        _LOG_LOSS,
        _DIVERGENCE,
        _of_function("r2", metrics.r2, "r2_score"),
    ),
    "binary": _BINARY,
    "multiclass": (
        _mean_of("mlogloss", Softmax, *_NAMES_OF_LOG_LOSS, "logloss"),
        MetricEntry("merror", metrics.WRONG_CLASS, (*_NAMES_OF_ERROR, "error")),
        _of_function("auc", metrics.multiclass_auc, "roc_auc_score"),
        _of_function("aucpr", metrics.multiclass_aucpr),
        _of_function("auc_mu", metrics.auc_mu),
        MetricEntry("brier", metrics.SQUARED_CLASS_ERROR, ("brier_score_loss",)),
    ),
    "multilabel": _BINARY,
    "ranking": (
        _of_top("ndcg", "lambdarank", "xendcg"),
        _of_top("map", "mean_average_precision", objective="rank:map"),
        _of_top("pre", "precision_at"),
        _of_top("mrr"),
        _of_function("auc", metrics.ranking_auc),
        _of_function("aucpr", metrics.ranking_aucpr),
    ),
    "survival": (
        MetricEntry("cox-nloglik", _of_loss(_cox), ("cox",), "survival:cox"),
        MetricEntry(
            *("aft-nloglik", _of_loss(_aft), ("aft",), "survival:aft"),
            needs="aft_loss_distribution",
        ),
        _of_function("interval-regression-accuracy", metrics.share_between)._replace(
            objective="survival:aft", needs="aft_loss_distribution"
        ),
        _of_function("cindex", metrics.cindex, "concordance_index", "concordance"),
    ),
}

_NO_PARAMETERS: Mapping[str, Any] = MappingProxyType({})


def default_metric(
    task: str, objective: str = "", parameters: Mapping[str, Any] = _NO_PARAMETERS
) -> Metric:
    """Return the default metric of an objective, XGBoost's; without one, the task's."""
    entries = METRICS[task]
    of_objective = (entry for entry in entries if objective and entry.objective == objective)
    entry = next(of_objective, entries[0])
    name = entry.name
    if task == "ranking":  # of as many documents as pairs begin with
        settings = ranking.settings_of(parameters)
        if objective == "rank:yeti":  # "classic" has no metric of its own
            entry = named(entries, settings.yeti_mode) or entry
        name = entry.name
        name = f"{name}@{settings.n_pairs}" if settings.takes_top else name
    elif name == "tweedie-nloglik":  # under the name that XGBoost gives it
        name = f"{name}@{_VARIANCE_POWER.values(name, parameters)[0]:g}"
    return entry.metric(name, task, parameters)


def find_metric(
    name: str,
    task: str,
    parameters: Mapping[str, Any] = _NO_PARAMETERS,
    other_names: Collection[str] = (),
) -> Metric:
    """Return the metric of this name, with ``@value`` if its parameter is not the training loss's.

    `parameters` are the objective's; `other_names` could have been meant, too.
    """
    entry = find_named("eval_metric", METRICS, name, task, other_names)
    return entry.metric(name, task, parameters)


def is_metric_name(name: str) -> bool:
    """Whether a task has a metric of this name."""
    return any(named(entries, name) for entries in METRICS.values())


# --- names

TASK_WORDS = {
    "regression": "regression",
    "binary": "two classes",
    "multiclass": "more than two classes",
    "multilabel": "several labels",
    "ranking": "rankings",
    "survival": "survival times",
}
# The estimators of objectives, for errors.
_ESTIMATORS = {
    "regression": "XGBRegressorLite",
    **dict.fromkeys(("binary", "multiclass", "multilabel"), "XGBClassifierLite"),
    "ranking": "XGBRankerLite",
    "survival": "XGBSurvivalLite",
}
_KINDS = {"objective": "an objective", "eval_metric": "a metric"}
# First words of the names that other libraries have for rankings.
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

Entry = TypeVar("Entry", ObjectiveEntry, MetricEntry)


def find_named(
    argument: str,
    known: Mapping[str, tuple[Entry, ...]],
    name: str,
    task: str,
    other_names: Collection[str] = (),
) -> Entry:
    """Return the entry of this name among those of a task, or explain that there is none."""
    found = named(known[task], name)
    if found is not None:
        return found
    titles = [entry.title for entry in known[task]]
    tasks = [other for other in TASK_WORDS if named(known[other], name)]
    if tasks:
        estimators = dict.fromkeys(_ESTIMATORS[other] for other in tasks)
        way = "choose one of"
        if argument == "objective" and _ESTIMATORS[task] not in estimators:
            way = f"take {' or '.join(estimators)}, or {way}"
        raise ValueError(
            f"{argument}={name!r} is {_KINDS[argument]} for "
            f"{' and '.join(TASK_WORDS[other] for other in tasks)}, not for "
            f"{TASK_WORDS[task]}: {way} {', '.join(titles)}"
        )
    raise ValueError(
        f"{argument}={name!r} {_remedy(str(name), known[task], other_names)} The "
        f"{argument.removeprefix('eval_')}s for {TASK_WORDS[task]} are {', '.join(titles)}"
    )


def _remedy(
    name: str, entries: Collection[ObjectiveEntry | MetricEntry], other_names: Collection[str]
) -> str:
    """Say where an unknown name comes from, or which name it may be a misspelling of."""
    first_word = re.split("[:@_-]", name.lower())[0]
    if {name.lower(), first_word} & set(_RANKING.split()):
        return "is for rankings, but XGBRankerLite does not have it."
    if "survivalaft" in (name.lower(), first_word):  # CatBoost's
        return "is for survival times with other distributions, which sklboost does not have."
    aliases = (alias for entry in entries for alias in entry.aliases)
    candidates = {each.lower(): each for each in (*other_names, *aliases)}
    candidates |= {entry.title.lower(): entry.title for entry in entries}
    meant = {other: own for other, own in _OTHER_NAMES.items() if own in candidates.values()}
    candidates = {**meant, **candidates}
    near = difflib.get_close_matches(name.lower(), candidates, n=1, cutoff=_NEAR)
    return f"is not known; did you mean {candidates[near[0]]!r}?" if near else "is not known."


def named(entries: tuple[Entry, ...], name: str) -> Entry | None:
    """Return the first entry that has a name, None if none has."""
    return next((entry for entry in entries if entry.has_name(name)), None)
