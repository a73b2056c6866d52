"""The model that a fit continues: `init_model`, or with `warm_start` the estimator's own."""

from typing import NamedTuple

import numpy as np

from sklboost.data.encoding import Encoding
from sklboost.engine.model import Model
from sklboost.estimators.input.feature_names import Encodings, FittedFeatures, are_comparable
from sklboost.estimators.input.target_kinds import ClassTargets, Targets
from sklboost.estimators.input.targets import listed, places_among
from sklboost.estimators.input.user_warnings import warn_user
from sklboost.objectives.loss import Loss
from sklboost.objectives.naming import TASK_WORDS


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
