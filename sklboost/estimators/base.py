"""What the two estimators share: parameters, fit, raw scores, inspection."""

import sys
from abc import ABCMeta, abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sklboost.boosting.rounds import boost
from sklboost.boosting.settings import tree_params
from sklboost.data.binning import VALUES_PER_THREAD
from sklboost.data.features import raw_blocks, training_bins
from sklboost.estimators.parameters import ChecksNames, check_parameters
from sklboost.estimators.repeated_rows import repeat_rows
from sklboost.estimators.seeds import seeds
from sklboost.estimators.validation import TrainingData, features, training_data
from sklboost.inspection.importances import gain_importance
from sklboost.inspection.tables import node_table
from sklboost.losses.base import Loss
from sklboost.parallel import ThreadTeam, n_threads_for
from sklboost.structs import Model
from sklboost.tree.prediction import add_trees, find_leaves, prepare_prediction

_TREE_PARAMETERS = (
    *("learning_rate", "reg_lambda", "reg_alpha", "gamma", "min_child_weight"),
    *("max_delta_step", "max_depth", "max_leaves", "grow_policy", "pruning"),
    *("subsample", "sampling_method"),
    *("colsample_bytree", "colsample_bylevel", "colsample_bynode"),
)

# Rows times trees that are predicted in the time it takes to start a thread, or less than that.
_LEAVES_PER_THREAD = 250_000


class BaseBooster(ChecksNames, BaseEstimator, metaclass=ABCMeta):
    """Gradient boosted trees: everything but the loss and what its raw scores mean."""

    model_: Model
    n_features_in_: int
    _numeric_target: bool
    _loss: Loss
    _binning_digest: str | None  # of a BinnedMatrix given to fit

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        learning_rate: float = 0.3,
        max_depth: int = 6,
        max_leaves: int = 0,
        grow_policy: str = "depthwise",
        max_bin: int = 256,
        reg_lambda: float = 1.0,
        reg_alpha: float = 0.0,
        gamma: float = 0.0,
        min_child_weight: float = 1.0,
        max_delta_step: float = 0.0,
        pruning: str = "post",
        subsample: float = 1.0,
        sampling_method: str = "uniform",
        colsample_bytree: float = 1.0,
        colsample_bylevel: float = 1.0,
        colsample_bynode: float = 1.0,
        base_score: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.grow_policy = grow_policy
        self.max_bin = max_bin
        self.reg_lambda = reg_lambda
        self.reg_alpha = reg_alpha
        self.gamma = gamma
        self.min_child_weight = min_child_weight
        self.max_delta_step = max_delta_step
        self.pruning = pruning
        self.subsample = subsample
        self.sampling_method = sampling_method
        self.colsample_bytree = colsample_bytree
        self.colsample_bylevel = colsample_bylevel
        self.colsample_bynode = colsample_bynode
        self.base_score = base_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @abstractmethod
    def _prepare(self, data: TrainingData) -> tuple[Loss, np.ndarray]:
        """Choose the loss; give it and the targets as float64, setting what labels need."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "BaseBooster":
        """Train on rows `X` with targets `y`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers: float32 and float64 are used as they are, others as float64. NaN is a missing
            value; infinity is an ordinary one. Or what :func:`sklboost.bin_features` made of them.
        y : array-like of shape (n_samples,)
            Targets: numbers for the regressor, labels of any kind for the classifier.
        sample_weight : array-like of shape (n_samples,), optional
            Weight 2 is the row twice, weight 0 the row left out.

        Returns
        -------
        estimator
            Itself.

        Raises
        ------
        ValueError
            If a parameter is out of range or the data is unusable; the text says which and why.
        """
        before = self.__dict__.copy()
        try:
            self._fit(X, y, sample_weight)
        except BaseException:
            # whatever went wrong, Ctrl-C included, an earlier fit is still whole
            self.__dict__ = before
            raise
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        check_parameters(self.get_params(deep=False))
        data = training_data(self, X, y, sample_weight, numeric=self._numeric_target)
        if self.subsample < 1.0:
            data = repeat_rows(data)
        loss, target = self._prepare(data)
        params = tree_params(**{name: getattr(self, name) for name in _TREE_PARAMETERS})
        seed, sampling_seed = seeds(self.random_state, self._is_sampling())
        with ThreadTeam(n_threads_for(self.n_jobs, data.X.size, VALUES_PER_THREAD)) as team:
            matrix = training_bins(team, data.X, data.weight, self.max_bin)
            self.model_ = boost(
                team,
                matrix,
                target,
                data.weight,
                loss,
                params,
                start=self._start(loss, target, data.weight),
                n_rounds=self.n_estimators,
                seed=seed,
                sampling_seed=sampling_seed,
                after_round=partial(self._report, loss, target, data) if self.verbose else None,
            )
        self._loss = loss

    def apply(self, X: Any) -> np.ndarray:
        """Give the leaf that each row reaches in each tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of int32, shape (n_samples, n_trees)
            Numbers as in the ``Node`` column of :meth:`trees_to_dataframe`. For more than two
            classes tree t belongs to class ``t % n_classes``.
        """
        check_is_fitted(self)
        X = features(self, X)
        leaves = np.empty((len(X), self.model_.n_trees), dtype=np.int32)
        with ThreadTeam(n_threads_for(self.n_jobs, leaves.size, _LEAVES_PER_THREAD)) as team:
            for rows, raw in raw_blocks(team, X):
                prepared = prepare_prediction(self.model_, raw, team.size)
                team.run(find_leaves, self.model_, raw, prepared, leaves[rows])
        return leaves

    @property
    def feature_importances_(self) -> np.ndarray:
        """Average gain of each feature's splits, scaled to sum 1; shape (n_features,)."""
        check_is_fitted(self)
        return gain_importance(self.model_)

    def trees_to_dataframe(self) -> Any:
        """Give all nodes of all trees as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            XGBoost's columns ``Tree, Node, ID, Feature, Split, Yes, No, Missing, Gain, Cover,
            Category``, and ``Similarity`` and ``Output`` (the leaf weight before the learning rate)
            of every node. For a leaf, ``Gain`` is its value, as in XGBoost.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        check_is_fitted(self)
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("trees_to_dataframe needs pandas: pip install pandas") from error
        return pd.DataFrame(node_table(self.model_, self._feature_names()))

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that missing values are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _raw_scores(self, X: Any) -> np.ndarray:
        """Give the raw scores, shape (n_outputs, n_samples)."""
        (raw_score,) = self._staged_raw_scores(X, self.model_.n_rounds)
        return raw_score

    def _staged_raw_scores(self, X: Any, n_rounds_at_once: int) -> Iterator[np.ndarray]:
        """Yield the raw scores, the same array each time, after every so many rounds."""
        model = self.model_
        X = features(self, X)
        raw_score = np.repeat(model.base_score, len(X)).reshape(-1, len(X))
        step = n_rounds_at_once * model.n_outputs
        for first in range(0, model.n_trees, step):
            # a team for each step: between two, anything may happen, a fork for one
            with ThreadTeam(n_threads_for(self.n_jobs, len(X) * step, _LEAVES_PER_THREAD)) as team:
                trees = (first, first + step)
                for rows, raw in raw_blocks(team, X):
                    prepared = prepare_prediction(model, raw, team.size)
                    # C order, as kernels want it: a copy only of blocks of several outputs
                    scores = np.ascontiguousarray(raw_score[:, rows])
                    team.run(add_trees, model, raw, trees, prepared, scores)
                    raw_score[:, rows] = scores
            yield raw_score

    def _start(self, loss: Loss, target: np.ndarray, weight: np.ndarray) -> np.ndarray:
        if self.base_score is None:
            return loss.start(target, weight)
        return loss.raw_of(float(self.base_score))

    def _is_sampling(self) -> bool:
        columns = (self.colsample_bytree, self.colsample_bylevel, self.colsample_bynode)
        return min(self.subsample, *columns) < 1.0

    def _report(
        self, loss: Loss, target: np.ndarray, data: TrainingData, round_: int, raw: np.ndarray
    ) -> None:
        if (round_ + 1) % self.verbose == 0:
            value = loss.value(target, raw, data.weight)
            sys.stdout.write(f"round {round_ + 1} of {self.n_estimators}: loss {value:.6g}\n")

    def _feature_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"f{i}" for i in range(self.n_features_in_)] if names is None else list(names)
