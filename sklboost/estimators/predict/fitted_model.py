"""A fitted estimator, as its predictions, explanations and displays see it.

And the decorators of its methods that take a Dask collection as `X`: what they do with one is in
``dask_collections.py``, which is imported when the first one comes.
"""

import functools
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from sklboost.data.features import Features, RemoteFeatures
from sklboost.data.frames import dask_kind
from sklboost.engine.cached import cached_property
from sklboost.engine.model import Model
from sklboost.engine.parallel import Team, ThreadTeam, assemble, n_threads_for, share
from sklboost.estimators.input.feature_names import Encodings, FittedFeatures, name_text
from sklboost.estimators.input.features import categories_by_code, check_has_values
from sklboost.estimators.input.rows import base_margins, check_margin_outputs
from sklboost.estimators.input.targets import ClassTargets, LabelTargets, Targets
from sklboost.estimators.input.user_warnings import warn_user
from sklboost.estimators.parameters.boosters import Parameters
from sklboost.estimators.parameters.names import argument_check
from sklboost.estimators.parameters.rules import is_integer
from sklboost.objectives.loss import Loss
from sklboost.tree.predict.prediction import add_to_few_rows, add_trees, find_leaves
from sklboost.tree.predict.walking import MIN_ROWS

if TYPE_CHECKING:
    from sklboost.inspection.derivation.trees import ModelNames


# Rows times trees that are predicted in the time it takes to start a thread, or less than that.
_LEAVES_PER_THREAD = 250_000
# Raw scores of so many rows become probabilities in a few times what it takes to start a thread.
_CHANGED_PER_THREAD = 50_000


class PrecomputedScores:
    """Raw scores of rows, given to a method as `X` where nothing else of the rows is needed."""

    def __init__(self, values: np.ndarray, error: str):
        self.values = values  # float64, shape (n_outputs, n_samples)
        self._error = error  # says why there are no features, and what to do

    def __len__(self) -> int:
        return self.values.shape[1]

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        """Refuse to become an array of features."""
        raise TypeError(self._error)

    def __getitem__(self, key: Any) -> NoReturn:
        """Refuse to give some of the rows or columns."""
        raise TypeError(self._error)


def add_scores(
    model: Model,
    X: Features | RemoteFeatures,
    trees: tuple[int, int],
    raw_score: np.ndarray,
    n_jobs: int | None,
) -> None:
    """Add the values of trees ``[start, stop)`` to `raw_score`, shape (n_outputs, n_samples)."""
    if type(X) is np.ndarray and len(X) < MIN_ROWS and model.linear is None:
        add_to_few_rows(model, X, trees, raw_score)
        return
    if isinstance(X, RemoteFeatures):
        X.add_trees(model, trees, raw_score)
        return
    if model.linear is not None:
        check_has_values(X)
    work = len(X) * (trees[1] - trees[0])
    with ThreadTeam(n_threads_for(n_jobs, work, _LEAVES_PER_THREAD)) as team:
        add_trees(team, model, X, trees, raw_score)


def leaves(model: Model, X: Features | RemoteFeatures, n_jobs: int | None) -> np.ndarray:
    """The leaf that each row reaches in each tree, int32, shape (n_samples, n_trees)."""
    if isinstance(X, RemoteFeatures):
        return X.leaves(model)
    with ThreadTeam(n_threads_for(n_jobs, len(X) * model.n_trees, _LEAVES_PER_THREAD)) as team:
        return find_leaves(team, model, X)


@dataclass(eq=False, repr=False)
class TrainedModel:
    """The result of a fit, and all that prediction needs."""

    model: Model
    features: FittedFeatures
    targets: Targets
    loss: Loss
    shift: np.ndarray  # float64, shape (n_outputs,): added to raw scores after training
    has_margin: bool  # whether training started from the user's `base_margin`
    n_dart_rounds: int = 0  # the first rounds, which were trained without some earlier ones

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes that an estimator keeps this in, by name."""
        kept = {**self.features.attributes, "model_": self.model, "_trained": self}
        return kept if self.targets.classes is None else {**kept, "classes_": self.targets.classes}


def trained_model(state: Mapping[str, Any]) -> TrainedModel:
    """Return the result of the fit; users may change the model and the names of the features."""
    trained = state["_trained"]
    model, names = state["model_"], state.get("feature_names_in_", trained.features.names)
    if model is trained.model and names is trained.features.names:
        return trained
    features = trained.features._replace(names=names)
    return TrainedModel(**{**vars(trained), "model": model, "features": features})


def is_of_package(function: Any) -> bool:
    """Whether a function is of this package, not of a user or of Python."""
    return (getattr(function, "__module__", None) or "").startswith("sklboost.")


@dataclass(eq=False, repr=False, kw_only=True)
class FittedModel(TrainedModel):
    """The model of an estimator, how rows become its features, and what its raw scores mean."""

    n_jobs: int | None
    # read(X, name="X", by_position=False) checks rows and returns their features
    read: Callable[..., Features]
    state: Mapping[str, Any]  # the attributes of the estimator

    @property
    def classes(self) -> list[Any] | None:
        """Labels of a classifier; None for a regressor."""
        if isinstance(self.targets, ClassTargets | LabelTargets):
            return self.targets.classes.tolist()
        return None

    @property
    def encodings(self) -> Encodings:
        """How the values of features become numbers; None: they are numbers."""
        return self.features.encodings

    @cached_property
    def has_covers(self) -> bool:
        """Whether splits have covers; XGBoost 2 keeps none for trees of several outputs."""
        nodes = self.model.nodes
        return bool((nodes.cover[nodes.left >= 0] > 0.0).all())

    @cached_property
    def feature_names(self) -> list[str]:
        """Names of the features as text, shape (n_features,); f0, f1, ... where they have none."""
        return list(map(name_text, self.features.keys))

    @cached_property
    def categories(self) -> list[list[list[Any]]]:
        """For each feature and each of its codes the categories; may be empty if there are none."""
        return categories_by_code(self.encodings)

    @cached_property
    def output_names(self) -> list[str]:
        """Names of the raw scores: classes, labels, targets, quantiles; may be empty for one."""
        n_outputs, n_targets = self.model.n_outputs, self.targets.size
        if self.targets.is_constant:
            return ["any other class"]
        if self.loss.output_names:
            return list(self.loss.output_names)
        if self.classes is not None:
            kind = "label" if self.targets.task == "multilabel" else "class"
            return [f"{kind} {label!r}" for label in self.classes[-n_outputs:]]
        # of several quantiles: all targets of the lowest, then all of the next
        names = []
        for output in range(n_outputs):
            parts = [f"target {output % n_targets}"] if n_targets > 1 else []
            if n_outputs > n_targets and len(self.loss.parameters) == n_outputs:
                parts.append(f"alpha {self.loss.parameters[output]:g}")
            elif n_outputs > n_targets:  # of a loss of the user's
                parts.append(f"output {output // n_targets}")
            names.append(" at ".join(parts))
        return names

    @cached_property
    def names(self) -> "ModelNames":
        """Names, and remarks on the learning rate, for derivations."""
        from sklboost.inspection.derivation.trees import ModelNames

        notes = []
        if self.n_dart_rounds > 0:
            notes.append('booster="dart": η is the learning rate times the weight of the round.')
        n_parallel = self.model.params_of(0).num_parallel_tree
        if n_parallel > 1:
            notes.append(f"η is shared by the {n_parallel} trees of a round.")
        return ModelNames(
            *(self.feature_names, self.categories, self.output_names, self.loss, tuple(notes)),
            encodings=self.encodings,
            is_foreign=self.state.get("fit_report_") is None,
        )

    def trees(self, iteration_range: tuple[int, int] | None) -> tuple[int, int]:
        """First tree of these rounds, and the one after the last."""
        if iteration_range is None:
            return 0, self.model.n_trees
        n_rounds, per_round = self.model.n_rounds, self.model.trees_per_round
        is_pair = isinstance(iteration_range, tuple | list) and len(iteration_range) == 2
        if is_pair and all(map(is_integer, iteration_range)):
            first, stop = iteration_range
            if 0 <= first < (stop or n_rounds) <= n_rounds:
                return int(first) * per_round, (int(stop) or n_rounds) * per_round
        raise ValueError(
            f"iteration_range={iteration_range!r}: it must be the first round and the one after "
            f"the last, 0 <= first < last <= {n_rounds}; a last of 0 stands for {n_rounds}, all "
            "rounds"
        )

    def start(self, X: Features, base_margin: Any) -> np.ndarray:
        """Raw scores before the first tree, shape (n_outputs, n_samples)."""
        shift = self.shift[:, np.newaxis]
        if base_margin is not None:
            margin = base_margins(base_margin, X, "")
            check_margin_outputs(margin, self.model.n_outputs)
            return np.ascontiguousarray(margin.T) + shift
        if self.has_margin:
            warn_user(
                f"this {self.features.estimator_name} was fitted with base_margin, but predicts "
                "without: its scores start from 0. Pass base_margin"
            )
        return np.repeat(self.model.base_score[:, np.newaxis] + shift, len(X), axis=1)

    def raw_scores(
        self,
        X: Features,
        base_margin: Any = None,
        iteration_range: tuple[int, int] | None = None,
    ) -> np.ndarray:
        """Raw scores of rows, shape (n_outputs, n_samples)."""
        raw_score = self.start(X, base_margin)
        add_scores(self.model, X, self.trees(iteration_range), raw_score, self.n_jobs)
        return raw_score

    def predictions(
        self, raw_score: np.ndarray, into: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> np.ndarray:
        """Return ``into(raw_score)``, which has an entry for each row; each thread has a share.

        None: predictions of a regressor, probabilities of the classes of a classifier.
        """
        into = self.targets.link(self.loss) if into is None else into
        n_samples = raw_score.shape[1]
        # a user's function is called once, with all rows
        if n_samples < 2 * _CHANGED_PER_THREAD or not is_of_package(into):
            return into(raw_score)
        of_one = into(raw_score[:, :1])
        n_threads = n_threads_for(self.n_jobs, n_samples, _CHANGED_PER_THREAD)
        if n_threads == 1 or len(raw_score) == of_one.size == 1:  # one number takes a nanosecond
            return into(raw_score)
        changed = np.empty((n_samples, *of_one.shape[1:]), of_one.dtype)

        @np.errstate(all="ignore")  # what the caller ignores is not known in other threads
        def fill(team: Team) -> None:
            if assemble(team):
                start, stop = share(team, n_samples)
                changed[start:stop] = into(raw_score[:, start:stop])

        with ThreadTeam(n_threads) as team:
            team.run(fill)
        return changed


class HasFittedModel(Parameters, metaclass=ABCMeta):
    """An estimator of this package, for the classes that it inherits methods from."""

    @property
    @abstractmethod
    def _fitted(self) -> FittedModel:
        """Its model; NotFittedError is raised if it is not fitted."""


def fitted_model(estimator: Any) -> FittedModel:
    """Model of a fitted estimator; TypeError if it is another package's, or NotFittedError."""
    if not isinstance(estimator, HasFittedModel):
        raise TypeError(
            f"{estimator!r} is no estimator of sklboost, so its trees are not known: pass a fitted "
            "XGBRegressorLite or XGBClassifierLite; of a pipeline its last step, pipeline[-1]"
        )
    return estimator._fitted


Function = TypeVar("Function", bound=Callable[..., Any])


def by_partitions(method: Function) -> Function:
    """Decorate a method that returns an array with an entry for each row of `X`.

    Of a Dask collection it returns a lazy one, which has the rows of each part where that part is.
    Arguments that the method does not have are a TypeError, as :func:`checks_arguments` raises it.
    """
    check = argument_check(method)  # without a call of its own: one row is predicted in 0.1 ms

    @functools.wraps(method)
    def called(self: Any, X: Any, *arguments: Any, **named: Any) -> Any:
        if named:
            check(self, named)
        if type(X) is not np.ndarray and dask_kind(X):
            from sklboost.estimators.predict.dask_collections import lazily

            return lazily(called, self, X, *arguments, **named)
        return method(self, X, *arguments, **named)

    return called  # type: ignore[return-value]  # the signature is the same


def from_raw_scores(score: Function) -> Function:
    """Decorate a method ``score(X, y, ...)`` that needs no more of `X` than its raw scores.

    Of a Dask collection these are computed part by part; targets and weights come to the process
    that calls, and features do not.
    """

    @functools.wraps(score)
    def called(self: Any, X: Any, *arguments: Any, **named: Any) -> Any:
        if not dask_kind(X):
            return score(self, X, *arguments, **named)
        from sklboost.estimators.predict.dask_collections import computed

        X, *values = computed(self._raw_rows(X), *arguments, *named.values())
        named = dict(zip(named, values[len(arguments) :], strict=True))
        return score(self, X, *values[: len(arguments)], **named)

    return called  # type: ignore[return-value]
