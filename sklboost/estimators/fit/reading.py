"""What a fit was asked for: arguments and parameters, checked and in the engine's form."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from sklboost.boosting.callbacks import EarlyStopping, TrainingCallback
from sklboost.boosting.settings import STRATEGIES, Dropout, tree_params
from sklboost.data.encoding import Encoding
from sklboost.data.features import RemoteFeatures
from sklboost.data.frames import dask_kind
from sklboost.engine.model import Model
from sklboost.engine.structs import FeatureRules, TreeParams
from sklboost.estimators.fit.holdout import hold_out, lost_numbers
from sklboost.estimators.input.arguments import FitArguments, GivenSet, computed, given_sets, seeds
from sklboost.estimators.input.classes import ClassTargets, listed, places_among
from sklboost.estimators.input.feature_names import (
    Encodings,
    FittedFeatures,
    are_comparable,
    read_feature_rules,
)
from sklboost.estimators.input.features import (
    FeatureSettings,
    check_has_values,
    check_is_dense,
    feature_settings,
)
from sklboost.estimators.input.rows import (
    Rows,
    encode_targets,
    training_rows,
    validation_rows,
    weigh_classes,
)
from sklboost.estimators.input.targets import Targets
from sklboost.estimators.input.user_warnings import warn_user
from sklboost.estimators.parameters.boosting import BoostingParameters, rounds_and_trees
from sklboost.estimators.parameters.groups import Parameters
from sklboost.estimators.parameters.rules import names_of
from sklboost.estimators.parameters.trees import SamplingParameters, TreeParameters
from sklboost.estimators.predict.fitted_model import TrainedModel
from sklboost.objectives.loss import Loss, lacking
from sklboost.objectives.registry import TASK_WORDS


class Continued(NamedTuple):
    """What new rounds are added to."""

    name: str  # for errors
    is_warm_start: bool
    model: Model
    features: FittedFeatures
    targets: Targets
    loss: Loss
    has_margin: bool  # whether its scores start from the user's `base_margin`
    n_dart_rounds: int  # as in `TrainedModel`
    n_jobs: int | None
    split_seed: int | None  # by which rows were held out of its training; None: none were
    # the model as it was before it was trained once more on all rows, if it was: new rounds are
    # compared with the metrics of this one
    before_refit: Model | None

    def has_loss(self, loss: Loss) -> bool:
        """Whether it was trained with this loss, so that new rounds are more of the same."""
        parameters, parameters_before = loss.parameters, self.loss.parameters
        return loss.name == self.loss.name and np.array_equal(parameters, parameters_before)


def known_encodings(continued: Continued | None) -> Encodings:
    """Return how features of the continued model become numbers; those of the fit do the same."""
    if continued is None:
        return None
    features = continued.features
    plain = (Encoding(),) * features.n_features
    return plain if features.encodings is None else features.encodings


def check_continued(
    continued: Continued, features: FittedFeatures, targets: Targets, loss: Loss
) -> None:
    """Raise ValueError unless features, classes and outputs are those of the continued model."""
    name, before = continued.name, continued.features
    if before.n_features != features.n_features:
        raise ValueError(
            f"X has {features.n_features} features, but {name} was fitted with "
            f"{before.n_features}: continue with the same features"
        )
    names, names_before = features.listed_names, before.listed_names
    if names != names_before and are_comparable(names, names_before):
        raise ValueError(
            f"X has the features {names}, but {name} was fitted with {names_before}: "
            "continue with the same features, in the same order"
        )
    missing, missing_before = float(features.missing), float(before.missing)
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


def check_margin_given(continued: Continued, margin: np.ndarray) -> None:
    """Raise ValueError if the continued model's scores start from margins, and there are none."""
    if continued.has_margin and len(margin) == 0:
        raise ValueError(
            f"{continued.name} was fitted with base_margin, and its scores start from it: pass it "
            "here, too"
        )


def rounds_to_do(continued: Continued | None, n_rounds: int) -> range:
    """Return the numbers of the new rounds.

    `n_rounds` counts new rounds for `init_model` and all of them for `warm_start`, as in
    scikit-learn; ValueError if `warm_start` already has more.
    """
    if continued is None:
        return range(n_rounds)
    n_before = continued.model.n_rounds
    if not continued.is_warm_start:
        return range(n_before, n_before + n_rounds)
    if n_rounds < n_before:
        raise ValueError(
            f"n_estimators={n_rounds}: with warm_start=True it must be at least the "
            f"{n_before} rounds that the model already has"
        )
    if n_rounds == n_before:
        warn_user(
            f"n_estimators={n_rounds} is what the model already has: with warm_start=True "
            "there is nothing to fit"
        )
    return range(n_before, n_rounds)


def check_cluster_parameters(parameters: Parameters) -> None:
    """Raise ValueError for parameters that do not go with features on a cluster."""
    refused = {
        "linear_tree=True": parameters.linear_tree,
        "booster='dart'": parameters.booster == "dart",
        f"preset={parameters.preset!r}": parameters.preset is not None,
    }
    for what, is_asked_for in refused.items():
        if is_asked_for:
            raise _refusal(what, "leave it out")


def check_cluster_loss(loss: Loss) -> None:
    """Raise ValueError for a loss whose derivatives, or leaves, need all rows in one place."""
    what = ""
    if len(loss.renewal) > 0:
        what = "its leaves are quantiles of the residuals of all their rows"
    elif type(loss).prepare is not Loss.prepare:
        what = "the derivatives of a row depend on other rows"
    elif loss.block is None or loss.row_derivatives is not None:
        what = "it is not one of this package"
    if what:
        raise _refusal(f"objective={loss.name!r}, where {what},", "choose another one")


def _refusal(what: str, remedy: str) -> ValueError:
    not_yet = "does not go with Dask collections yet"
    return ValueError(f"{what} {not_yet}: {remedy}, or pass X.compute()")


TREE_PARAMETERS = (
    "learning_rate",
    *(name for name in names_of(TreeParameters) if name not in ("max_bin", "keep_pruned")),
    *names_of(SamplingParameters),
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
def tree_settings(
    parameters: Parameters, n_parallel_trees: int, loss: Loss, rows: Rows, raw_score: np.ndarray
) -> TreeParams:
    """Return the settings of the trees that are grown for a loss on these rows.

    `raw_score` is what the rounds of this loss start from, see `Loss.unit`.
    """
    settings = {name: getattr(parameters, name) for name in TREE_PARAMETERS}
    unit = loss.unit(rows.targets, raw_score, rows.weight)
    settings |= {name: unit * settings[name] for name in _PER_ROW}
    params = tree_params(**settings, num_parallel_tree=n_parallel_trees)
    if not _cover_counts_rows(params, loss, rows.weight):
        least_cover = params.min_child_weight * (1.0 - _ROUNDING)
        params = params._replace(min_child_weight=least_cover)
    elif params.min_child_samples > 0:
        least_cover = max(params.min_child_weight, float(params.min_child_samples))
        params = params._replace(min_child_weight=least_cover, min_child_samples=0)
    step = min(params.max_delta_step, loss.largest_step)
    return params._replace(max_delta_step=float(step))


def _cover_counts_rows(params: TreeParams, loss: Loss, weight: np.ndarray) -> bool:
    """Whether cover is the number of rows, so that they need not be counted once more."""
    if not loss.hessian_is_one or params.gradient_based == 1:
        return False
    return bool((weight == np.floor(weight)).all())


def dropout_of(parameters: BoostingParameters) -> Dropout | None:
    """Return how rounds are dropped; None unless ``booster="dart"``."""
    if parameters.booster != "dart":
        return None
    return Dropout(
        rate_drop=float(parameters.rate_drop),
        skip_drop=float(parameters.skip_drop),
        one_drop=bool(parameters.one_drop),
        by_weight=parameters.sample_type == "weighted",
        as_forest=parameters.normalize_type == "forest",
    )


def drops_rounds(parameters: BoostingParameters) -> bool:
    """Whether rounds are trained without some earlier ones."""
    dropout = dropout_of(parameters)
    return dropout is not None and (dropout.rate_drop > 0.0 or dropout.one_drop)


def is_sampling(parameters: Parameters) -> bool:
    """Whether rows, features, thresholds or rounds are drawn at random."""
    fractions = (
        parameters.subsample,
        parameters.colsample_bytree,
        parameters.colsample_bylevel,
        parameters.colsample_bynode,
    )
    return min(fractions) < 1.0 or parameters.extra_trees or drops_rounds(parameters)


def stops_early(parameters: Parameters) -> bool:
    """Whether early stopping was asked for."""
    return parameters.early_stopping_rounds is not None or any(
        isinstance(callback, EarlyStopping) for callback in parameters.callbacks or ()
    )


def raw_base_score(base_score: Any, loss: Loss, n_targets: int) -> np.ndarray:
    """Return the raw scores, shape (n_outputs,), of predictions given as `base_score`.

    Raises
    ------
    ValueError
        If there are too few or too many, or one is no prediction that the loss can give.
    """
    sizes = sorted({n_targets, loss.n_outputs})  # several classes, or quantiles of one target
    if np.ndim(base_score) > 0 and len(base_score) not in sizes:
        raise ValueError(
            f"base_score={base_score!r}: y has {n_targets} target(s) and {loss.name} "
            f"{loss.n_outputs} raw score(s) a row, so it must be one number, or a list of "
            f"{' or '.join(map(str, sizes))}"
        )
    values = np.ravel(base_score).astype(np.float64)
    raw = np.array([loss.raw_of(float(value)) for value in values])
    outputs = np.arange(loss.n_outputs)
    return raw[outputs % len(values), outputs]  # output o has target o % n_targets, and class o


def check_combination(
    parameters: Parameters, n_parallel_trees: int, continued: Continued | None
) -> None:
    """Raise ValueError for parameters that do not go together, or with the continued model."""
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
    if continued is None:
        return
    if parameters.booster == "dart":
        raise ValueError(
            f"booster='dart' changes the weights of earlier rounds, so it cannot continue "
            f"{continued.name}: fit anew, or continue with booster='gbtree'"
        )
    before = continued.model.params_of(0)
    if before.num_parallel_tree != n_parallel_trees:
        raise ValueError(
            f"a round would have {n_parallel_trees} parallel trees, but those of {continued.name} "
            f"have {before.num_parallel_tree}: continue with "
            f"num_parallel_tree={before.num_parallel_tree}"
        )
    strategy = STRATEGIES[before.multi_output]
    if continued.model.n_outputs > 1 and strategy != parameters.multi_strategy:
        raise ValueError(
            f"multi_strategy={parameters.multi_strategy!r}, but {continued.name} was fitted with "
            f"{strategy!r}: continue with the same"
        )


class FitRequest(NamedTuple):
    """What `fit` was called with, not checked yet but for the rules of single parameters."""

    X: Any
    y: Any
    arguments: FitArguments
    parameters: Parameters  # of a classifier, ClassifierParameters, and so on
    kind: type[Targets]  # of the targets
    estimator_name: str  # name of the estimator's class, for errors
    is_forest: bool  # whether there is one round, of `n_estimators` trees
    free: frozenset[str]  # parameters that a preset may choose: those at their defaults
    continued: Continued | None
    listeners: Sequence[TrainingCallback]  # told of the training beside the user's `callbacks`
    # makes a fitted estimator of a TrainedModel, for callbacks that ask for one
    make_estimator: Callable[[TrainedModel], Any]

    @property
    def n_rounds(self) -> int:
        """Rounds to do, those of a warm start included."""
        return rounds_and_trees(self.parameters, self.is_forest)[0]

    @property
    def n_parallel_trees(self) -> int:
        """Trees that a round adds to each output."""
        return rounds_and_trees(self.parameters, self.is_forest)[1]

    def with_settings(self, settings: Mapping[str, Any]) -> "FitRequest":
        """Return the request with other values of some parameters."""
        return self._replace(parameters=replace(self.parameters, **settings))


class FitTask(NamedTuple):
    """A checked request."""

    features: FittedFeatures
    targets: Targets
    loss: Loss
    rules: FeatureRules
    rows: Rows  # to be trained on
    validation: dict[str, Rows]  # to be scored after every round, by name
    # to be trained on once the best number of rounds is known, if that is asked for
    everything: Rows
    all_targets: Targets  # those of these rows
    rounds: range  # numbers of the rounds to do
    seeds: tuple[int, int]  # of the rounding of gradients, and of all that is drawn
    split_seed: int | None  # by which rows were held out; None: none were


@np.errstate(all="ignore")
def read_data(request: FitRequest) -> FitTask:
    """Check the data of a request, and what does not go with it; the task is of all rows."""
    parameters, continued = request.parameters, request.continued
    settings = feature_settings(request.estimator_name, parameters)
    arguments = request.arguments.computed()
    if dask_kind(request.X):
        check_cluster_parameters(parameters)
    rows, features = training_rows(
        request.X,
        computed(request.y),
        arguments,
        settings,
        kind=request.kind,
        encodings=known_encodings(continued),
    )
    targets: Targets = request.kind.learn(rows.y, rows.weight, parameters)
    if continued is not None:
        targets = targets.continuing(continued.targets, continued.name)
    loss = targets.make_loss(parameters)
    if continued is not None:
        check_continued(continued, features, targets, loss)
        check_margin_given(continued, rows.margin)
    rules = read_feature_rules(parameters, features)
    if parameters.linear_tree:
        _check_linear(rows, loss, rules)
    rows = encode_targets(rows, targets, loss, "y")
    if need := lacking(loss, rows.y):
        raise ValueError(f"y has no {need}: there is nothing to learn from")
    task = FitTask(
        features=features,
        targets=targets,
        loss=loss,
        rules=rules,
        rows=rows,
        validation={},
        everything=rows,
        all_targets=targets,
        rounds=range(0),
        seeds=(0, 0),
        split_seed=None,
    )
    sets = given_sets(arguments)
    return task._replace(
        validation={given.name: _read_set(given, settings, task) for given in sets}
    )


@np.errstate(all="ignore")
def plan_task(request: FitRequest, data: FitTask) -> FitTask:
    """Return what is to be done with the data of a request: rounds, seeds, rows to hold out."""
    parameters, continued = request.parameters, request.continued
    check_combination(parameters, request.n_parallel_trees, continued)
    if isinstance(data.rows.X, RemoteFeatures):
        check_cluster_loss(data.loss)
    task = data._replace(
        rounds=rounds_to_do(continued, request.n_rounds),
        seeds=seeds(parameters.random_state, is_sampling(parameters) or stops_early(parameters)),
    )
    return _weigh_classes(_hold_out(task, parameters, continued))


def _check_linear(rows: Rows, loss: Loss, rules: FeatureRules) -> None:
    """Raise ValueError unless leaves can be linear for such features, this loss, these rules."""
    check_has_values(rows.X)
    check_is_dense(rows.X)
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


def _read_set(given: GivenSet, settings: FeatureSettings, task: FitTask) -> Rows:
    """Check one validation set."""
    rows = validation_rows(given, task.features, settings, type(task.targets))
    if len(task.rows.margin) > 0 and len(rows.margin) == 0:
        raise ValueError(
            f"base_margin is given for X, but not for {given.argument}: scores start from it, so "
            "pass base_margin_val, or base_margin_eval_set"
        )
    if len(task.rows.margin) == 0 and len(rows.margin) > 0:
        raise ValueError(f"base_margin is given for {given.argument}, but not for X")
    return encode_targets(rows, task.targets, task.loss, f"y of {given.argument}")


def _hold_out(task: FitTask, parameters: Parameters, continued: Continued | None) -> FitTask:
    """Divide the rows among training and validation, and repeat those that are drawn one by one.

    Both go by the user's weights, before those of the classes are multiplied in: weights weigh the
    rows, and a row is on one side only.
    """
    rows, everything, validation = task.rows, task.everything, task.validation
    seed = None
    if stops_early(parameters) and not validation:
        seed = task.seeds[1]
        if continued is not None and continued.is_warm_start:
            # the same again: what the model has learnt from tells nothing of new rounds
            seed = _seed_of_split(continued, seed)
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
        validation, rows = {"validation_0": rows.take(held_out).here()}, rows.take(~held_out)
    elif stops_early(parameters) and parameters.refit:
        everything = rows.join(list(validation.values())[-1])
        of_all = task.targets.of_more(everything.y, everything.weight, parameters)
        task = task._replace(all_targets=of_all)
    if parameters.subsample < 1.0:
        rows, everything = rows.repeat(task.loss), everything.repeat(task.loss)
    return task._replace(rows=rows, everything=everything, validation=validation, split_seed=seed)


def _seed_of_split(continued: Continued, seed: int) -> int:
    """Return the seed by which rows were held out of a model's training; warn if none were."""
    if continued.split_seed is not None:
        return continued.split_seed
    warn_user(
        f"{continued.name} has learnt from the rows that early stopping holds out now, so its "
        "rounds look better than they are, and new rounds may seem no improvement: pass X_val and "
        "y_val"
    )
    return seed


def _weigh_classes(task: FitTask) -> FitTask:
    """Multiply the weights of all rows by those of their classes."""
    rows = weigh_classes(task.rows, task.targets)
    return task._replace(
        rows=rows,
        everything=(
            rows
            if task.everything is task.rows
            else weigh_classes(task.everything, task.all_targets)
        ),
        validation={
            name: weigh_classes(given, task.targets) for name, given in task.validation.items()
        },
    )
