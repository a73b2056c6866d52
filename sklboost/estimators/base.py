"""What the two estimators share: parameters, fit, raw scores, inspection."""

from abc import ABCMeta
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from sklboost.data.features import Features
from sklboost.engine.model import Model
from sklboost.estimators.fit.boosters import drops_rounds
from sklboost.estimators.fit.callback_support import CallbackSupportMixin, with_callbacks
from sklboost.estimators.fit.fitting import fit_estimator
from sklboost.estimators.fit.pruning_path import path_of_first_tree
from sklboost.estimators.fit.sklearn_callbacks import fit_tasks
from sklboost.estimators.input.arguments import FitArguments
from sklboost.estimators.input.check_features import features
from sklboost.estimators.input.feature_names import Encodings, FittedFeatures
from sklboost.estimators.input.feature_rules import read_signs
from sklboost.estimators.input.feature_tables import categories_by_code
from sklboost.estimators.input.rows import base_margins, check_margin_outputs
from sklboost.estimators.input.target_kinds import Targets
from sklboost.estimators.input.user_warnings import warn_user
from sklboost.estimators.parameters.groups import Parameters
from sklboost.estimators.parameters.names import ChecksNames, checks_arguments
from sklboost.estimators.parameters.rules import is_integer
from sklboost.estimators.predict.explaining import ExplainingMixin
from sklboost.estimators.predict.importances import ImportancesMixin
from sklboost.estimators.predict.raw_scores import add_rounds, leaves, starting_scores
from sklboost.estimators.predict.shap_values import ShapValuesMixin
from sklboost.estimators.predict.to_html import PageMixin
from sklboost.inspection.monotone import MonotoneReport, prove_monotone
from sklboost.inspection.tables import node_table
from sklboost.objectives.loss import Loss


# ChecksNames behind Parameters: the signature is that of the first class with __init__ or __new__
class BaseBooster(
    PageMixin,
    ExplainingMixin,
    ShapValuesMixin,
    ImportancesMixin,
    CallbackSupportMixin,
    Parameters,
    ChecksNames,
    BaseEstimator,
    metaclass=ABCMeta,
):
    """Gradient boosted trees: everything but the loss and what its raw scores mean."""

    model_: Model
    _shift: np.ndarray  # (n_outputs,), added to raw scores at prediction
    n_features_in_: int
    _targets: Targets
    _loss: Loss
    _has_margin: bool  # scores start from the user's base_margin
    _other_names: np.ndarray | None  # of features, where not all are strings
    _binning_digest: str | None  # of a BinnedMatrix given to fit
    _first_round: int  # of evals_result_; not 0 if another model was continued
    _encodings: Encodings  # what features become numbers by

    @property
    def _task(self) -> str:
        return self._targets.task

    def _link(self, loss: Loss) -> Callable[[np.ndarray], np.ndarray]:
        """Return what turns raw scores into predictions, or probabilities of the classes."""
        return self._targets.link(loss)

    def _is_sampling(self) -> bool:
        columns = (self.colsample_bytree, self.colsample_bylevel, self.colsample_bynode)
        return min(self.subsample, *columns) < 1.0 or self.extra_trees or drops_rounds(self)

    @property
    def _rounds_and_trees(self) -> tuple[int, int]:
        """How many rounds to do, and how many trees each of them adds to an output."""
        return self.n_estimators, self.num_parallel_tree

    def _n_estimators_of(self, model: Model) -> int:
        """Count what `n_estimators` counts."""
        return model.n_rounds

    @with_callbacks
    @checks_arguments
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        base_margin_val: Any = None,
        eval_set: Any = None,
        sample_weight_eval_set: Any = None,
        base_margin_eval_set: Any = None,
        groups: Any = None,
        base_margin: Any = None,
        init_model: Any = None,
    ) -> "BaseBooster":
        """Train on rows `X` with targets `y`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            An array, a list of rows, a matrix of scipy.sparse (an absent entry is 0), or a frame of
            pandas, polars, Arrow or another library. Columns are numbers, times or categories
            (`categorical_features`). NaN is a missing value, as is what the frame calls missing;
            infinity is an ordinary one. Integers and times are exact however large. Or what
            :func:`sklboost.bin_features` made of them.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets: numbers for the regressor, labels of any kind for the classifier. In several
            columns: numbers, or for the classifier labels that a row has (1) or has not (0); NaN
            there is a value that is not known, and only that column does without the row.
        sample_weight : array-like of shape (n_samples,), optional
            Weight 2 is the row twice, weight 0 the row left out.
        X_val : array-like of shape (n_validation_samples, n_features), optional
            Rows that `eval_metric` is computed of after every round.
        y_val : array-like of shape (n_validation_samples,) or like `y`, optional
            Their targets.
        sample_weight_val : array-like of shape (n_validation_samples,), optional
            Their weights.
        base_margin_val : array-like of shape (n_validation_samples,), optional
            Their `base_margin`.
        eval_set : list of (X, y), optional
            The same for several sets of rows, as in XGBoost; early stopping watches the last.
        sample_weight_eval_set : list of array-like or None, optional
            Their weights.
        base_margin_eval_set : list of array-like or None, optional
            Their `base_margin`.
        groups : array-like of shape (n_samples,), optional
            Rows of the same group are held out for early stopping together, or not at all.
        base_margin : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Raw scores that training starts from instead of `base_score`. Prediction needs its own.
        init_model : estimator, optional
            A fitted estimator of the same class. Its trees come first, `n_estimators` rounds are
            added to them.

        Returns
        -------
        estimator
            Itself.

        Raises
        ------
        ValueError
            If a parameter is out of range or the data is unusable; the text says which and why.
        KeyboardInterrupt
            At Ctrl-C before the first round is finished. Later, the rounds finished so far are
            kept, and `stop_reason_` is ``"interrupted"``.
        """
        given = FitArguments(
            *(sample_weight, X_val, y_val, sample_weight_val, base_margin_val),
            *(eval_set, sample_weight_eval_set, base_margin_eval_set),
            *(groups, base_margin, init_model),
        )
        tasks = fit_tasks(self, X, y, sample_weight)
        before = self.__dict__.copy()
        try:
            fit_estimator(self, X, y, given, tasks)
            for task in tasks:
                task.finish()
        except BaseException:
            # whatever went wrong, an earlier fit is still whole
            self.__dict__ = before
            raise
        return self

    def apply(self, X: Any, *, iteration_range: tuple[int, int] | None = None) -> np.ndarray:
        """Give the leaf that each row reaches in each tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        iteration_range : tuple of int, optional
            First round and the one after the last, ``(0, k)`` for the first k; ``(0, 0)``: all.

        Returns
        -------
        ndarray of int32, shape (n_samples, n_trees)
            Numbers as in the ``Node`` column of :meth:`trees_to_dataframe`. For several targets,
            labels or more than two classes tree t belongs to number ``t % n_outputs`` of them.
        """
        check_is_fitted(self)
        X = features(self, X)
        first, stop = (r * self.model_.trees_per_round for r in self._rounds(iteration_range))
        return leaves(self.model_, X, self.n_jobs)[:, first:stop]

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """Give the nested subtrees that pruning the first tree goes through, weakest link first.

        A tree is grown anew, the first that `fit` would grow, with `learning_rate` 1, all rows and
        no `ccp_alpha`. For squared error and ``reg_lambda=0`` it is a regression tree (CART), and
        this is what scikit-learn's ``DecisionTreeRegressor`` gives for the same tree. For two
        classes and ``reg_lambda=0`` impurities are those of its ``DecisionTreeClassifier`` (Gini)
        divided by ``2 (p (1 - p))^2``, p being the share of ``classes_[1]``. With `reg_lambda`, the
        penalty on leaf weights counts as impurity; constraints on leaf weights do not.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        sklearn.utils.Bunch
            ``ccp_alphas``: from 0, the whole tree, to the last, its root alone, the least
            `ccp_alpha` that leaves each subtree. ``impurities``: of all its leaves together, for
            squared error the mean squared error. Both ndarrays of float64, shape (n_subtrees,).

        Raises
        ------
        ValueError
            If there are several outputs (more than two classes), which have a tree each, and as
            `fit` does.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklboost import XGBRegressorLite
        >>> X, y = load_diabetes(return_X_y=True)
        >>> one_tree = dict(n_estimators=1, learning_rate=1, reg_lambda=0)
        >>> path = XGBRegressorLite(**one_tree).cost_complexity_pruning_path(X, y)
        >>> alpha = (path.ccp_alphas[-4] * path.ccp_alphas[-3]) ** 0.5
        >>> pruned = XGBRegressorLite(ccp_alpha=alpha, **one_tree).fit(X, y)
        >>> bool(abs(((pruned.predict(X) - y) ** 2).mean() / path.impurities[-4] - 1) < 1e-6)
        True
        """
        return path_of_first_tree(self, X, y, sample_weight)

    def trees_to_dataframe(self) -> Any:
        """Give all nodes of all trees as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            XGBoost's columns ``Tree, Node, ID, Feature, Split, Yes, No, Missing, Gain, Cover,
            Category``, and ``Similarity`` and ``Output`` (the leaf weight before the learning rate)
            of every node. For a leaf, ``Gain`` is its value, as in XGBoost. ``Category`` lists the
            levels that go to ``Yes`` in a split on categories. With linear leaves also ``Shift,
            Slopes, Centres, Least, Most``: the leaf adds ``Shift`` and the sum of ``slope * (x -
            centre)`` to its value, no less than ``Least`` and no more than ``Most``.

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
        categories = categories_by_code(self._encodings)
        return pd.DataFrame(node_table(self.model_, self._feature_names(), categories))

    def verify_monotone(self, constraints: Any = None) -> MonotoneReport:
        """Prove on the finished trees that raw scores are monotone in some features.

        Each tree is checked by itself, exactly: it passes if and only if it is monotone. Where all
        pass, so is their sum. Trees that fail may still make up for one another.

        Parameters
        ----------
        constraints : dict or array-like, optional
            As `monotone_constraints`, which it is when not given. The model need not have been
            trained with them.

        Returns
        -------
        MonotoneReport
            ``report.holds`` is True or False; printed, it says where.

        Raises
        ------
        ValueError
            If there are no constraints, or if leaves are linear.
        """
        check_is_fitted(self)
        if self.model_.linear is not None:
            raise ValueError(
                "verify_monotone compares constant leaves, and this model has linear ones: fit "
                "with linear_tree=False"
            )
        constraints = self.monotone_constraints if constraints is None else constraints
        signs = read_signs(constraints, self._fitted_features)
        n_categories = [own.n_categories for own in self._encodings or ()]
        return prove_monotone(self.model_, signs, self._feature_names(), n_categories)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn of missing values, categories, sparse matrices, several targets."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.linear_tree  # lines need values side by side
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.target_tags.multi_output = True
        return tags

    def _raw_scores(
        self, X: Any, base_margin: Any = None, iteration_range: tuple[int, int] | None = None
    ) -> np.ndarray:
        """Give the raw scores, shape (n_outputs, n_samples)."""
        check_is_fitted(self)
        X = features(self, X)
        raw_score = self._start(X, base_margin)
        add_rounds(self.model_, X, self._rounds(iteration_range), raw_score, self.n_jobs)
        return raw_score

    def _staged_raw_scores(self, X: Any, base_margin: Any) -> Iterator[np.ndarray]:
        """Yield the raw scores, the same array each time, after every round."""
        check_is_fitted(self)
        X, model = features(self, X), self.model_
        raw_score = self._start(X, base_margin)
        for round_ in range(model.n_rounds):
            # a team for each stage: between two, anything may happen, a fork for one
            add_rounds(model, X, (round_, round_ + 1), raw_score, self.n_jobs)
            yield raw_score

    def _start(self, X: Features, base_margin: Any) -> np.ndarray:
        """Give the raw scores before the first tree, shape (n_outputs, n_samples)."""
        model = self.model_
        margin = base_margins(base_margin, X, "")
        check_margin_outputs(margin, model.n_outputs)
        if self._has_margin and len(margin) == 0:
            warn_user(
                f"this {type(self).__name__} was fitted with base_margin, but predicts without: "
                "its scores start from 0. Pass base_margin"
            )
        return starting_scores(model.base_score, margin, len(X)) + self._shift[:, np.newaxis]

    def _rounds(self, iteration_range: tuple[int, int] | None) -> tuple[int, int]:
        """Give the first round and the one after the last."""
        n_rounds = self.model_.n_rounds
        if iteration_range is None:
            return 0, n_rounds
        check_iteration_range(iteration_range, n_rounds)
        first, stop = iteration_range
        return int(first), int(stop) or n_rounds

    def _feature_names(self) -> list[str]:
        return self._fitted_features.text_names

    @property
    def _fitted_features(self) -> FittedFeatures:
        return FittedFeatures(
            estimator_name=type(self).__name__,
            n_features=self.n_features_in_,
            names=getattr(self, "feature_names_in_", self._other_names),
            encodings=self._encodings,
            binning_digest=self._binning_digest,
        )


def check_iteration_range(iteration_range: Any, n_rounds: int) -> None:
    """Raise ValueError unless it is a pair of round numbers of a model with so many rounds."""
    is_pair = isinstance(iteration_range, tuple | list) and len(iteration_range) == 2
    if is_pair and all(map(is_integer, iteration_range)):
        first, stop = iteration_range
        if 0 <= first < (stop or n_rounds) <= n_rounds:
            return
    raise ValueError(
        f"iteration_range={iteration_range!r}: it must be the first round and the one after the "
        f"last, 0 <= first < last <= {n_rounds}; a last of 0 stands for {n_rounds}, all rounds"
    )
