"""What a fit was asked for: the user's arguments, checked and brought to the engine's form."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from sklboost.boosting.callbacks import TrainingCallback
from sklboost.data.features import RemoteFeatures
from sklboost.data.frames import dask_kind
from sklboost.engine.structs import FeatureRules
from sklboost.estimators.fit.cluster_limits import check_cluster_loss, check_cluster_parameters
from sklboost.estimators.fit.continuing import (
    Continued,
    check_continued,
    check_margin_given,
    known_encodings,
    rounds_to_do,
)
from sklboost.estimators.fit.holdout import hold_out, lost_numbers
from sklboost.estimators.fit.training_settings import check_combination, is_sampling, stops_early
from sklboost.estimators.input.arguments import FitArguments, GivenSet, computed, given_sets
from sklboost.estimators.input.check_features import check_has_values, check_is_dense
from sklboost.estimators.input.feature_names import FittedFeatures
from sklboost.estimators.input.feature_rules import read_feature_rules
from sklboost.estimators.input.feature_tables import FeatureSettings, feature_settings
from sklboost.estimators.input.rows import (
    Rows,
    encode_targets,
    training_rows,
    validation_rows,
    weigh_classes,
)
from sklboost.estimators.input.seeds import seeds
from sklboost.estimators.input.target_kinds import Targets
from sklboost.estimators.input.user_warnings import warn_user
from sklboost.estimators.parameters.boosting import rounds_and_trees
from sklboost.estimators.parameters.groups import Parameters
from sklboost.estimators.predict.fitted_model import TrainedModel
from sklboost.objectives.loss import Loss, lacking


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
            parts=task.targets.parts(rows.y),
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
