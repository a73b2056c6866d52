"""The base class of all estimators: parameters, fit, raw scores, inspection."""

from abc import ABCMeta
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch

from sklboost.estimators.documentation_link import DocumentationLinkMixin
from sklboost.estimators.fit.fitting_mixin import FittingMixin
from sklboost.estimators.fit.sklearn_callbacks import CallbackSupportMixin
from sklboost.estimators.input.arguments import FitArguments
from sklboost.estimators.input.feature_names import read_signs
from sklboost.estimators.input.features import features
from sklboost.estimators.parameters.docstrings import methods_documented
from sklboost.estimators.parameters.groups import Parameters
from sklboost.estimators.parameters.names import ChecksNames, methods_checked
from sklboost.estimators.predict.by_partitions import by_partitions
from sklboost.estimators.predict.explaining import ExplainingMixin
from sklboost.estimators.predict.fitted_model import (
    FittedModel,
    RawScores,
    add_rounds,
    fitted_state,
    leaves,
    trained_model,
)
from sklboost.estimators.predict.importances import ImportancesMixin
from sklboost.estimators.predict.shap_values import ShapValuesMixin
from sklboost.estimators.saving import SavingMixin
from sklboost.estimators.xgboost_names import XGBoostNamesMixin
from sklboost.objectives.loss import by_rows

if TYPE_CHECKING:
    from sklboost.inspection.monotone_proof import MonotoneReport


@methods_checked
@methods_documented
class BaseBooster(
    ExplainingMixin,
    ShapValuesMixin,
    ImportancesMixin,
    SavingMixin,
    XGBoostNamesMixin,
    FittingMixin,
    CallbackSupportMixin,
    Parameters,
    ChecksNames,
    DocumentationLinkMixin,
    BaseEstimator,
    metaclass=ABCMeta,
):
    """Gradient boosted trees: everything but the loss and what its raw scores mean."""

    @by_partitions
    def apply(self, X: Any, iteration_range: tuple[int, int] | None = None) -> np.ndarray:
        """Return the leaf that each row reaches in each tree.

        Parameters
        ----------
        X
        iteration_range

        Returns
        -------
        ndarray of int32, shape (n_samples, n_trees)
            Numbers as in the ``Node`` column of :meth:`trees_to_dataframe`. For several targets,
            labels or more than two classes tree t belongs to number ``t % n_outputs`` of them.
        """
        fitted = self._fitted
        X = fitted.read(X)
        first, stop = fitted.trees(iteration_range)
        return leaves(fitted.model, X, self.n_jobs)[:, first:stop]

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """Compute the pruning path of the first tree in minimal cost-complexity pruning.

        The path consists of nested subtrees, from the whole tree to its root alone; at each step
        the weakest link is pruned. The tree is grown anew: it is the first that `fit` would grow,
        with `learning_rate` 1, all rows and no `ccp_alpha`. For squared error and ``reg_lambda=0``
        it is a regression tree (CART), and the path is that of scikit-learn's
        ``DecisionTreeRegressor`` for the same tree. For two classes and ``reg_lambda=0`` impurities
        are those of its ``DecisionTreeClassifier`` (Gini) divided by ``2 (p (1 - p))^2``, with p
        the share of ``classes_[1]``. With `reg_lambda`, the penalty on leaf weights counts as
        impurity; constraints on leaf weights do not.

        Parameters
        ----------
        X
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight

        Returns
        -------
        sklearn.utils.Bunch
            ``ccp_alphas``: the smallest `ccp_alpha` that leaves each subtree, from 0, the whole
            tree, to the root alone. ``impurities``: the impurity of all leaves of the subtree, for
            squared error the mean squared error. Both are ndarrays of float64, shape (n_subtrees,).

        Raises
        ------
        ValueError
            If there are several outputs (more than two classes), which have a tree each, or as
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
        from sklboost.estimators.fit.fitting import path_of_first_tree

        return path_of_first_tree(self._fit_request(X, y, FitArguments(sample_weight)))

    def trees_to_dataframe(self) -> Any:
        """Return all nodes of all trees as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            XGBoost's columns ``Tree, Node, ID, Feature, Split, Yes, No, Missing, Gain, Cover,
            Category``, and ``Similarity`` and ``Output`` (the leaf weight before the learning rate)
            of every node. ``x < Split`` goes to ``Yes``: it is a float, but of times a Timestamp,
            in the time zone of the column, or a Timedelta, and of integers that floats cannot tell
            apart an integer; then the column is of objects. It is -inf, or NaT, if only missing
            values go to ``Yes``. For a leaf, ``Gain`` is its value, as in XGBoost. ``Category``
            lists the categories that go to ``Yes``. With linear leaves also ``Shift, Slopes,
            Centres, Least, Most``: the leaf adds ``Shift`` and the sum of ``slope * (x - centre)``
            to its value, no less than ``Least`` and no more than ``Most``. There times, and
            integers that floats cannot tell apart, are the numbers that
            :meth:`explain_prediction` says: minutes since 1970, for instance.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        from sklboost.inspection.tables import node_frame

        fitted = self._fitted
        return node_frame(fitted.model, fitted.names)

    def verify_monotone(self, constraints: Any = None) -> "MonotoneReport":
        """Prove from the finished trees that raw scores are monotone in some features.

        Each tree is checked by itself, exactly: it passes if and only if it is monotone. If all
        pass, their sum is monotone. Trees that fail may still compensate one another.

        Parameters
        ----------
        constraints : dict or array-like, optional
            As `monotone_constraints`, whose value it has if not given. The model need not have been
            trained with them.

        Returns
        -------
        MonotoneReport
            ``report.holds`` is True or False; printed, it says where the constraints are violated.

        Raises
        ------
        ValueError
            If there are no constraints, or if leaves are linear.
        """
        from sklboost.inspection.monotone_proof import prove_monotone

        fitted = self._fitted
        if fitted.model.linear is not None:
            raise ValueError(
                "verify_monotone compares constant leaves, and this model has linear ones: fit "
                "with linear_tree=False"
            )
        constraints = self.monotone_constraints if constraints is None else constraints
        signs = read_signs(constraints, fitted.features)
        n_categories = [encoding.n_categories for encoding in fitted.encodings or ()]
        return prove_monotone(fitted.model, signs, fitted.feature_names, n_categories)

    def __sklearn_tags__(self) -> Any:
        """Tags for scikit-learn: missing values, categories, sparse matrices, several targets."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.linear_tree  # lines need values side by side
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.target_tags.multi_output = True
        return tags

    @property
    def _fitted(self) -> FittedModel:
        state = fitted_state(self)
        trained = trained_model(state)
        return FittedModel(
            **vars(trained),
            n_jobs=self.n_jobs,
            read=partial(features, self, trained.features),
            state=state,
        )

    def _scored(
        self,
        X: Any,
        base_margin: Any = None,
        iteration_range: tuple[int, int] | None = None,
        validate_features: bool = True,
    ) -> tuple[FittedModel, np.ndarray]:
        """Return the model and its raw scores, shape (n_outputs, n_samples)."""
        fitted = self._fitted
        if isinstance(X, RawScores):
            return fitted, X.values
        X = fitted.read(X, by_position=not validate_features)
        return fitted, fitted.raw_scores(X, base_margin, iteration_range)

    def _raw_scores(self, X: Any, *arguments: Any) -> np.ndarray:
        """Return the raw scores, shape (n_outputs, n_samples)."""
        return self._scored(X, *arguments)[1]

    @by_partitions
    def _raw_rows(self, X: Any) -> np.ndarray:
        """Return the raw scores, shape (n_samples,) or (n_samples, n_outputs)."""
        return by_rows(self._raw_scores(X))

    def _staged_scores(self, X: Any, base_margin: Any) -> Iterator[tuple[FittedModel, np.ndarray]]:
        """Yield the model and its raw scores after every round, the same array each time."""
        fitted = self._fitted
        X = fitted.read(X)
        raw_score = fitted.start(X, base_margin)
        for round_ in range(fitted.model.n_rounds):
            # a team for each stage: between two, anything may happen, a fork for one
            add_rounds(fitted.model, X, (round_, round_ + 1), raw_score, fitted.n_jobs)
            yield fitted, raw_score

    def _staged_raw_scores(self, X: Any, base_margin: Any) -> Iterator[np.ndarray]:
        """Yield the raw scores after every round, the same array each time."""
        for _, raw_score in self._staged_scores(X, base_margin):
            yield raw_score
