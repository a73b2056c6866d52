"""Reading a fit: :func:`read_task` checks the arguments of `fit` and makes a `FitTask` of them.

The parameters of the estimator come first, then the data, then what a preset chooses, and last what
depends on all of it: the rounds to do, the seeds, and the rows to hold out.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sklboost.boosting.callbacks import EarlyStopping, TrainingCallback
from sklboost.boosting.settings import STRATEGIES, tree_params
from sklboost.data.features import RemoteFeatures, row_arrays_of
from sklboost.data.frames import dask_kind
from sklboost.data.sparse_table import SparseTable
from sklboost.engine.structs import FeatureRules, RemoteColumn, TreeParams
from sklboost.estimators.fit.holdout import hold_out, lost_numbers
from sklboost.estimators.fit.sklearn_callbacks import CopiedCallbacks
from sklboost.estimators.input.feature_names import FittedFeatures, read_feature_rules
from sklboost.estimators.input.features import check_has_values, feature_settings
from sklboost.estimators.input.rows import (
    FitArguments,
    Rows,
    encode_targets,
    given_sets,
    training_rows,
    validation_rows,
    weigh_classes,
)
from sklboost.estimators.input.targets import ClassTargets, Targets, listed, places_among
from sklboost.estimators.input.user_warnings import warn_user
from sklboost.estimators.parameters.boosters import Parameters, rounds_and_trees, seeds
from sklboost.estimators.parameters.rules import check_parameters, is_default, names_of, value_of
from sklboost.estimators.predict.fitted_model import FittedModel, is_of_package
from sklboost.objectives.custom import StoredLoss
from sklboost.objectives.loss import Loss, lacking
from sklboost.objectives.registry import TASK_WORDS, make_loss

if TYPE_CHECKING:
    from sklboost.estimators.fit.fitting import ChosenParams

# The search of a symmetric tree has the histograms of all nodes of a depth in memory: so CatBoost.
_DEEPEST_SYMMETRIC = 16


class Clock:
    """Adds up the seconds of phases that follow one another."""

    def __init__(self) -> None:
        self.begin = self._last = time.perf_counter()
        self.seconds: dict[str, float] = {}

    @property
    def elapsed(self) -> float:
        """Seconds since the fit began."""
        return time.perf_counter() - self.begin

    def lap(self, phase: str, others: dict[str, float] | None = None) -> None:
        """Book the time since the last call, less what `others` had of it, which is booked too."""
        now = time.perf_counter()
        spent = {**(others or {}), phase: now - self._last - sum((others or {}).values())}
        for name, seconds in spent.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        self._last = now


class FitTask(NamedTuple):
    """The task of a fit: all that was given, checked."""

    parameters: Parameters  # of a classifier, ClassifierParameters, and so on
    is_forest: bool  # whether there is one round, of `n_estimators` trees
    continued: FittedModel | None  # what new rounds are added to
    continued_name: str  # for errors
    is_warm_start: bool  # whether it is the estimator's own model
    listeners: Sequence[TrainingCallback]  # told of the training, after the user's `callbacks`
    # makes a fitted estimator of its attributes, for callbacks that ask for one
    make_estimator: Callable[[Mapping[str, Any]], Any]
    clock: Clock
    features: FittedFeatures
    targets: Targets
    loss: Loss
    rules: FeatureRules
    rows: Rows  # to be trained on
    validation: dict[str, Rows]  # to be scored after every round, by name
    # to be trained on once the best number of rounds is known, if that is asked for
    everything: Rows
    all_targets: Targets  # of these rows
    free: frozenset[str] = frozenset()  # parameters that a preset may choose
    chosen: "ChosenParams | None" = None  # its choices; None: there is no preset
    # known once parameters are chosen: the numbers of the rounds to do
    rounds: range = range(0)
    seeds: tuple[int, int] = (0, 0)  # of the rounding of gradients, and of all that is drawn
    split_seed: int | None = None  # by which rows were held out; None: none were

    def with_settings(self, settings: Mapping[str, Any]) -> "FitTask":
        """Return the task with other values of some parameters."""
        task = self._replace(parameters=replace(self.parameters, **settings))
        if "objective" in settings:
            task = task._replace(loss=self.targets.make_loss(task.parameters))
        return task


def read_task(
    estimator: Any,
    X: Any,
    y: Any,
    arguments: FitArguments,
    listeners: Sequence[TrainingCallback] = (),
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> FitTask:
    """Check all arguments of a fit of the estimator, and return its task.

    `settings` are values of parameters that are others than the estimator's.
    """
    group = estimator._parameter_group
    values = {own.name: value_of(estimator, own.name) for own in fields(group) if own.init}
    if arguments.verbose is not None:
        values["verbose"] = arguments.verbose
    check_parameters(type(estimator), values)
    parameters: Parameters = group(**{**values, **settings})
    free = frozenset[str]()
    if parameters.preset is not None:
        names = set(names_of(type(parameters))).difference(estimator._given)
        # clones, as those of a cross-validation, do not show anything of their own accord either
        if arguments.verbose is not None or estimator._is_clone:
            names.discard("verbose")
        free = frozenset(name for name in names if is_default(estimator, name))
    if "categorical_features" in free:  # with a preset tables are read as they come
        parameters = replace(parameters, categorical_features="auto")
    continued, name, is_warm_start = None, "", False
    is_continuing = arguments.init_model is not None or arguments.xgb_model is not None
    if is_continuing or parameters.warm_start:
        continued, name, is_warm_start = _model_to_continue(estimator, arguments)
    clock = Clock()
    if estimator._copied and (copied := estimator._copied_callbacks()):
        listeners = [*listeners, CopiedCallbacks(copied)]

    with np.errstate(all="ignore"):  # values may be infinite
        how_to_read = feature_settings(type(estimator).__name__, parameters)
        kind = estimator._kind
        if dask_kind(X):
            _check_cluster_parameters(parameters, kind)
        before = None if continued is None else continued.features
        rows, features = training_rows(X, y, arguments, how_to_read, kind, before, name)
        targets: Targets = kind.learn(rows.y, rows.weight, parameters)
        if continued is not None:
            targets = targets.continuing(continued.targets, name)
        loss = targets.make_loss(parameters)
        if continued is not None:
            _check_continued(continued, name, parameters, features, targets, loss, rows)
        # columns on a cluster: methods of users' get arrays
        methods = (loss.start, loss.unit, loss.check_targets, loss.needs)
        if isinstance(rows.y, RemoteColumn) and not all(map(is_of_package, methods)):
            rows = rows.with_arrays()
        rules = read_feature_rules(parameters, features)
        if parameters.max_ctr_complexity > 0:
            _check_statistics(rows, parameters, name)
        if parameters.linear_tree:
            _check_linear(rows, loss, rules)
        rows = encode_targets(rows, targets, loss, "y")
        if need := lacking(loss, rows.y):
            raise ValueError(f"y has no {need}: there is nothing to learn from")

        validation = {}
        for given in given_sets(arguments):
            stays = isinstance(rows.X, RemoteFeatures)
            scored = validation_rows(given, features, how_to_read, type(targets), stays=stays)
            if isinstance(scored.y, RemoteColumn) and not all(map(is_of_package, methods)):
                scored = scored.with_arrays()
            if len(rows.margin) > 0 and len(scored.margin) == 0:
                raise ValueError(
                    f"base_margin is given for X, but not for {given.argument}: scores start from "
                    "it, so pass base_margin_val, or base_margin_eval_set"
                )
            if len(rows.margin) == 0 and len(scored.margin) > 0:
                raise ValueError(f"base_margin is given for {given.argument}, but not for X")
            words = f"y of {given.argument}"
            validation[given.name] = encode_targets(scored, targets, loss, words)

    task = FitTask(
        parameters=parameters,
        is_forest=estimator._is_forest,
        continued=continued,
        continued_name=name,
        is_warm_start=is_warm_start,
        listeners=listeners,
        make_estimator=estimator._fitted_copy,
        clock=clock,
        features=features,
        targets=targets,
        loss=loss,
        rules=rules,
        rows=rows,
        validation=validation,
        everything=rows,
        all_targets=targets,
        free=free,
    )
    clock.lap("checks")
    if parameters.preset is not None:
        from sklboost.estimators.fit.preset import choose

        chosen = choose(task)
        task = task.with_settings(chosen)._replace(chosen=chosen)
        clock.lap("choosing")
    return plan_task(task)


# --- what does not go together


def _model_to_continue(
    estimator: Any, arguments: FitArguments
) -> tuple[FittedModel | None, str, bool]:
    """Return the model that new rounds are added to, its name in errors, and if it is a warm start.

    None with `warm_start` before the first fit. ValueError for two models, TypeError for one of
    another class.
    """
    other, name = arguments.init_model, "init_model"
    if other is not None and arguments.xgb_model is not None:
        raise ValueError("init_model and xgb_model are two names of one argument: give one")
    if other is None:
        other, name = arguments.xgb_model, "xgb_model"
    is_warm_start = other is None
    if not is_warm_start:
        other = estimator._model_to_continue(other)
    elif hasattr(estimator, "model_"):
        other, name = estimator, "the model of warm_start=True"
    else:
        return None, "", False
    if type(other) is not type(estimator):
        raise TypeError(
            f"{name}={other!r}: it must be a fitted {type(estimator).__name__}, or a file or a "
            "model of another library that is read as one: the new trees are added to its trees"
        )
    return other._fitted, name, is_warm_start


def _check_continued(
    continued: FittedModel,
    name: str,
    parameters: Parameters,
    features: FittedFeatures,
    targets: Targets,
    loss: Loss,
    rows: Rows,
) -> None:
    """Raise ValueError unless the continued model has the same classes and outputs."""
    if isinstance(continued.loss, StoredLoss) and parameters.objective is None:
        raise ValueError(
            f"{name} was trained with objective={continued.loss.name}, a loss of your own, which "
            "its file does not hold: call set_params(objective=...) with it before"
        )
    missing, missing_before = float(features.missing), float(continued.features.missing)
    if not np.array_equal(missing, missing_before, equal_nan=True):
        raise ValueError(
            f"missing={missing:g}, but {name} was fitted with missing={missing_before:g}, and its "
            "trees depend on it: continue with the same value"
        )
    if isinstance(targets, ClassTargets) and isinstance(continued.targets, ClassTargets):
        classes, classes_before = targets.classes, continued.targets.classes
        places = places_among(classes_before, classes)
        if not np.array_equal(places, np.arange(len(classes_before))):
            raise ValueError(
                f"y has the classes {listed(classes)}, but {name} was fitted with "
                f"{listed(classes_before)}: continue with the same classes, or fit anew"
            )
    ours = (targets.task, targets.size, loss.n_outputs)
    theirs = (continued.targets.task, continued.targets.size, continued.model.n_outputs)
    if theirs != ours:
        words = (
            f"{TASK_WORDS[task]} with {size} target(s) or classes and {n} raw score(s) a row"
            for task, size, n in (ours, theirs)
        )
        raise ValueError(
            f"this fit is for {next(words)}, but {name} for {next(words)}: continue with "
            "the same targets, and the same number of quantiles or expectiles"
        )
    before_loss = continued.loss
    # where no link says what raw scores are, and for hazards and times, only the loss itself does
    needs_same = loss.link == "other" or targets.task == "survival"
    if loss.link != before_loss.link or (needs_same and loss.name != before_loss.name):
        with_what = "the same objective" if needs_same else "an objective of the same link"
        raise ValueError(
            f"objective={loss.name!r} (link {loss.link!r}), but {name} was fitted with "
            f"{before_loss.name!r} (link {before_loss.link!r}), whose raw scores mean something "
            f"else: continue with {with_what}, or fit anew"
        )
    if continued.has_margin and len(rows.margin) == 0:
        raise ValueError(
            f"{name} was fitted with base_margin, and its scores start from it: pass it here, too"
        )


def _check_statistics(rows: Rows, parameters: Parameters, continued_name: str) -> None:
    """Raise ValueError for what statistics of categories do not go with.

    What a model predicts for its training rows knows their targets, and while it is trained, the
    statistics do not. So no round may start from predictions for them.
    """
    asked = f"max_ctr_complexity={parameters.max_ctr_complexity}"
    for is_asked_for, what in (
        (continued_name, f"{continued_name}, which would be continued: fit anew"),
        (drops_rounds(parameters), "booster='dart': set booster='gbtree'"),
        (parameters.linear_tree, "linear_tree=True: set linear_tree=False"),
        (row_arrays_of(rows.X).are_on_disk, "bins in files: pass X in memory"),
    ):
        if is_asked_for:
            raise ValueError(f"{asked} does not go with {what}, or set max_ctr_complexity=0")


def _check_linear(rows: Rows, loss: Loss, rules: FeatureRules) -> None:
    """Raise ValueError unless leaves can be linear for such features, this loss, these rules."""
    check_has_values(rows.X)
    if isinstance(rows.X, SparseTable):
        raise ValueError(
            f"{rows.X!r}: linear leaves (linear_tree=True) are not for sparse input; pass "
            "X.toarray(), or set linear_tree=False"
        )
    if rules.signs.any():
        raise ValueError(
            "linear_tree=True does not go with monotone_constraints, which linear leaves would not "
            "keep: set linear_tree=False, or monotone_constraints=None"
        )
    if len(loss.renewal) > 0:
        raise ValueError(
            f"linear_tree=True, but the leaves of objective={loss.name!r} are quantiles of "
            "residuals, and no regression gives those: set linear_tree=False, or another objective"
        )


def _check_cluster_parameters(parameters: Parameters, kind: type[Targets]) -> None:
    """Raise ValueError for parameters that do not go with features on a cluster.

    So does a loss whose derivatives need other rows, unless it is known which, as those of a query.
    Of classes no loss by name does.
    """
    refused = {
        f"max_ctr_complexity={parameters.max_ctr_complexity}, whose statistics are of all rows,": (
            parameters.max_ctr_complexity > 0
        ),
        "lambdarank_unbiased=True, which adds up floats in the order of all queries,": (
            getattr(parameters, "lambdarank_unbiased", False)
        ),
    }
    for what, is_asked_for in refused.items():
        if is_asked_for:
            raise _refusal(what, "leave it out")
    loss = parameters.objective
    if not isinstance(loss, Loss) and isinstance(kind.task, str):
        loss = make_loss(loss, kind.task, 1, vars(parameters))
    prepares = getattr(type(loss), "prepare", Loss.prepare) is not Loss.prepare
    if not isinstance(loss, Loss) or (prepares and loss.group_row is not None):
        return
    if prepares or loss.group_row is not None or not loss.can_repeat:
        what = f"objective={loss.name!r}, where the derivatives of a row depend on other rows,"
        raise _refusal(what, "choose another one")


def _refusal(what: str, remedy: str) -> ValueError:
    not_yet = "does not go with Dask collections yet"
    return ValueError(f"{what} {not_yet}: {remedy}, or pass X.compute()")


# --- the rounds, seeds and held-out rows of a task


@np.errstate(all="ignore")
def plan_task(task: FitTask) -> FitTask:
    """Return the task with its rounds and seeds, and the rows that are held out."""
    parameters, continued = task.parameters, task.continued
    stop, n_parallel_trees = rounds_and_trees(parameters, task.is_forest)
    _check_combination(task, n_parallel_trees)
    first = 0
    if continued is not None:
        first = continued.model.n_rounds
        # new rounds for `init_model` and all of them for `warm_start`, as in scikit-learn
        stop = stop if task.is_warm_start else first + stop
    if stop < first:
        raise ValueError(
            f"n_estimators={stop}: with warm_start=True it must be at least the {first} rounds "
            "that the model already has"
        )
    if stop == first:
        warn_user(
            f"n_estimators={stop} is what the model already has: with warm_start=True there is "
            "nothing to fit"
        )
    fractions = (
        parameters.subsample,
        parameters.colsample_bytree,
        parameters.colsample_bylevel,
        parameters.colsample_bynode,
    )
    # whether rows, features, thresholds, rounds or parts of the rows are drawn at random
    is_sampling = (
        min(fractions) < 1.0  # type: ignore[operator, type-var]
        or parameters.extra_trees
        or drops_rounds(parameters)
        or parameters.max_ctr_complexity > 0
    )
    drawn = seeds(parameters.random_state, is_sampling or stops_early(parameters))
    task = task._replace(rounds=range(first, stop), seeds=drawn)
    if stops_early(parameters):
        task = _hold_out(task)
    rows, everything = task.rows, task.everything
    is_same = everything is rows
    if parameters.subsample < 1.0:  # type: ignore[operator]  # each of the repeated rows is drawn
        rows, everything = rows.repeat(task.loss), everything.repeat(task.loss)
    # the classes' weights come last: rows are held out, and metrics weighted, by the user's
    rows = weigh_classes(rows, task.targets)
    everything = rows if is_same else weigh_classes(everything, task.all_targets)
    return task._replace(rows=rows, everything=everything)


def _check_combination(task: FitTask, n_parallel_trees: int) -> None:
    """Raise ValueError for parameters that do not go together, or with the continued model."""
    parameters = task.parameters
    if n_parallel_trees > 1 and parameters.sampling_method == "gradient_based":
        raise ValueError(
            f"sampling_method='gradient_based' with {n_parallel_trees} parallel trees: it reweighs "
            "the gradients, which the trees of a round share; use sampling_method='uniform', or "
            "num_parallel_tree=1"
        )
    if parameters.linear_tree and parameters.multi_strategy == "multi_output_tree":
        raise ValueError(
            "linear_tree=True does not go with multi_strategy='multi_output_tree', whose leaves "
            "are constant: set linear_tree=False, or multi_strategy='one_output_per_tree'"
        )
    if parameters.booster == "dart" and parameters.linear_tree:
        raise ValueError(
            "linear_tree=True does not go with booster='dart', which scales constant leaves only: "
            "set linear_tree=False, or booster='gbtree'"
        )
    if parameters.grow_policy == "symmetric":
        check_symmetric(task)
    if task.continued is None:
        return
    name, model = task.continued_name, task.continued.model
    if parameters.booster == "dart":
        raise ValueError(
            f"booster='dart' changes the weights of earlier rounds, so it cannot continue "
            f"{name}: fit anew, or continue with booster='gbtree'"
        )
    before = model.params_of(0)
    if before.num_parallel_tree != n_parallel_trees:
        raise ValueError(
            f"a round would have {n_parallel_trees} parallel trees, but the rounds of {name} "
            f"have {before.num_parallel_tree}: continue with "
            f"num_parallel_tree={before.num_parallel_tree}"
        )
    strategy = STRATEGIES[before.multi_output]
    if model.n_outputs > 1 and strategy != parameters.multi_strategy:
        raise ValueError(
            f"multi_strategy={parameters.multi_strategy!r}, but {name} was fitted with "
            f"{strategy!r}: continue with the same"
        )


def check_symmetric(task: FitTask) -> None:
    """Raise ValueError for what nodes that share their splits cannot have."""
    parameters = task.parameters
    depth, other = parameters.max_depth, "or grow_policy='depthwise'"
    if not 1 <= depth <= _DEEPEST_SYMMETRIC:  # type: ignore[operator]
        raise ValueError(
            f"max_depth={depth} with grow_policy='symmetric', which searches all nodes of a depth "
            f"at once: set max_depth to an integer from 1 to {_DEEPEST_SYMMETRIC}, {other}"
        )
    if parameters.max_leaves != 0:
        raise ValueError(
            f"max_leaves={parameters.max_leaves} with grow_policy='symmetric', where all nodes "
            f"of a depth are split: limit max_depth and set max_leaves=0, {other}"
        )
    if parameters.interaction_constraints is not None:
        raise ValueError(
            "grow_policy='symmetric' does not go with interaction_constraints, which allow each "
            f"node other features: set interaction_constraints=None, {other}"
        )
    known = task.features.attributes.get("categories_", {})
    divided = [name for name, categories in known.items() if len(categories) > 0]
    if divided:
        raise ValueError(
            f"grow_policy='symmetric' does not go with categories (of {divided!s:.200}), of "
            f"which each node has a set of its own: encode them as numbers, {other}"
        )


def _hold_out(task: FitTask) -> FitTask:
    """Return the task with the rows that early stopping judges by, and what is trained on then.

    Rows are held out by the user's weights, before class weights are multiplied in: weights weigh
    the rows, and a row is on one side only.
    """
    parameters, continued = task.parameters, task.continued
    rows, everything, validation = task.rows, task.everything, task.validation
    seed = None
    if not validation:
        seed = task.seeds[1]
        if continued is not None and task.is_warm_start:
            # the same again: what the model has learnt from tells nothing of new rounds
            seed_before = continued.state.get("_split_seed")
            seed = seed if seed_before is None else seed_before
            if seed_before is None:
                warn_user(
                    f"{task.continued_name} has learnt from the rows that early stopping holds out "
                    "now, so its rounds look better than they are, and new rounds may seem no "
                    "improvement: pass X_val and y_val"
                )
        needs = task.targets.needs(rows.y, task.loss)
        held_out = hold_out(
            rows,
            fraction=parameters.validation_fraction,
            how=parameters.validation_split,
            parts=task.targets.strata_for_holdout(rows.y),
            seed=seed,
            needs=[*needs.values(), *task.targets.wanted(rows.y)],
        )
        for need, numbers in needs.items():
            for number in lost_numbers(numbers, held_out):
                raise ValueError(
                    f"no {need}{task.targets.words_of(number)} is left to train on, since all of "
                    "them are held out for early stopping: pass X_val and y_val, or "
                    "early_stopping_rounds=None"
                )
        validation, rows = {"validation_0": rows.take(held_out)}, rows.take(~held_out)
    elif parameters.refit:
        everything = rows.join(list(validation.values())[-1].here())
        of_all = task.targets.of_more(everything.y, everything.weight, parameters)
        task = task._replace(all_targets=of_all)
    return task._replace(rows=rows, everything=everything, validation=validation, split_seed=seed)


def drops_rounds(parameters: Parameters) -> bool:
    """Whether rounds are trained without some earlier ones."""
    return parameters.booster == "dart" and (
        parameters.rate_drop > 0.0 or bool(parameters.one_drop)
    )


def stops_early(parameters: Parameters) -> bool:
    """Whether early stopping was asked for."""
    return parameters.early_stopping_rounds is not None or any(
        isinstance(callback, EarlyStopping) for callback in parameters.callbacks or ()
    )


# --- in the engine's form


TREE_PARAMETERS = (
    "learning_rate",
    *(
        name
        for name in names_of(Parameters, "max_depth", "colsample_bynode")
        if name not in ("max_bin", "keep_pruned", "max_ctr_complexity")
    ),
)
# Of the cover of one row among 4,096, which is rounded to an integer: three rows of weight 1/3 have
# the cover 1.
_ROUNDING = 2.0**-21
# Counted in rows, so in the unit of the loss's hessians.
_PER_ROW = (
    *("reg_lambda", "reg_alpha", "gamma", "min_child_weight"),
    *("path_smooth", "cat_smooth"),
)


@np.errstate(all="ignore")
def tree_settings(task: FitTask, raw_score: np.ndarray) -> TreeParams:
    """Return the settings of the trees that a task grows.

    `raw_score` is what the rounds of this loss start from, see `Loss.unit`.
    """
    parameters, loss, rows = task.parameters, task.loss, task.rows
    settings = {name: getattr(parameters, name) for name in TREE_PARAMETERS}
    unit = loss.unit(rows.targets, raw_score, rows.weight)
    settings |= {name: unit * settings[name] for name in _PER_ROW}
    n_parallel_trees = rounds_and_trees(parameters, task.is_forest)[1]
    params = tree_params(**settings, num_parallel_tree=n_parallel_trees)
    # whether cover is the number of rows, so that they need not be counted once more
    has_ones = loss.hessian_is_one and params.gradient_based == 0
    if not (has_ones and (rows.weight == np.floor(rows.weight)).all()):
        least_cover = params.min_child_weight * (1.0 - _ROUNDING)
        params = params._replace(min_child_weight=least_cover)
    elif params.min_child_samples > 0:
        least_cover = max(params.min_child_weight, float(params.min_child_samples))
        params = params._replace(min_child_weight=least_cover, min_child_samples=0)
    step = min(params.max_delta_step, loss.largest_step)
    return params._replace(max_delta_step=float(step))
