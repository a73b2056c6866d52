"""The base class of all estimators: `fit`, `predict` and what other methods get raw scores from."""

import copy
from abc import ABCMeta
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from sklboost.engine.model import Model
from sklboost.estimators.fit.fitting import ONE_TREE, path_of_first_tree, train
from sklboost.estimators.fit.reading import read_task
from sklboost.estimators.fit.sklearn_callbacks import CallbackSupportMixin, FitTasks, with_callbacks
from sklboost.estimators.input.feature_names import read_signs
from sklboost.estimators.input.features import features
from sklboost.estimators.input.rows import FitArguments
from sklboost.estimators.input.targets import RegressionTargets, Targets
from sklboost.estimators.parameters.boosters import Parameters, rounds_and_trees
from sklboost.estimators.parameters.docstrings import methods_documented
from sklboost.estimators.parameters.names import OTHER_ATTRIBUTES, methods_checked
from sklboost.estimators.predict.explaining import ExplainingMixin
from sklboost.estimators.predict.fitted_model import (
    FittedModel,
    PrecomputedScores,
    TrainedModel,
    add_scores,
    by_partitions,
    leaves,
    trained_model,
)
from sklboost.estimators.saving import SavingMixin
from sklboost.objectives.domains import SOFTMAX
from sklboost.objectives.loss import by_rows

if TYPE_CHECKING:
    from sklboost.inspection.monotone_proof import MonotoneReport


@methods_checked
@methods_documented
class BaseBooster(
    ExplainingMixin,
    SavingMixin,
    CallbackSupportMixin,
    Parameters,
    BaseEstimator,
    metaclass=ABCMeta,
):
    """Gradient boosted trees: everything but the loss and what its raw scores mean."""

    model_: Model
    evals_result_: dict[str, dict[str, list[float]]]
    best_iteration_: int
    best_score_: float
    _trained: TrainedModel
    _first_round: int  # of evals_result_; not 0 if init_model was continued
    _fitted_names: tuple[str, ...] = ()  # of the attributes that fit has set
    _parameter_group: ClassVar[type[Parameters]] = Parameters  # what a fit reads
    _kind: ClassVar[type[Targets]] = RegressionTargets
    _is_forest: ClassVar[bool] = False  # one round, of n_estimators trees
    _read_rows = staticmethod(features)  # how methods of the fitted estimator check their X
    # scikit-learn's metadata routing: groups are for the splitter unless set_fit_request asks for
    # them here, too
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": False}

    @with_callbacks
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
        xgb_model: Any = None,
        verbose: bool | int | None = None,
    ) -> Self:
        """Train on rows `X` with targets `y`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            An array, a list of rows, a matrix of scipy.sparse (an absent entry is 0), or a frame of
            pandas, polars, Arrow or another library. Columns are numbers, times or categories
            (`categorical_features`). NaN is a missing value, as is what the frame calls missing;
            infinity is an ordinary one. Integers and times are exact however large. Or what
            :func:`sklboost.bin_features` made of them. Or a DataFrame or an Array of Dask: then the
            workers of the current ``distributed.Client`` do the training, with the same bits. Other
            arguments may be of Dask, too: those of one target, weight or margin a row stay there,
            the others come to this process.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets: numbers for the regressor, labels of any kind for the classifier. Several
            columns are several targets; for the classifier several labels, 1 where a row has the
            label and 0 where not. NaN in one of several columns is an unknown value: the row counts
            for the other columns only.
        sample_weight : array-like of shape (n_samples,), optional
            Weight 2 is equivalent to the row twice, except where rows are held out at random for
            early stopping (whole, with their weight). Weight 0 leaves the row out.
        X_val : array-like of shape (n_validation_samples, n_features), optional
            Rows on which `eval_metric` is computed after every round.
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
        init_model : estimator, str, path-like, file object, bytes or Booster, optional
            A fitted estimator of the same class, the file of one, or a model of XGBoost or LightGBM
            that can be read as one. Its trees come first, `n_estimators` rounds are added to them.
        xgb_model : the same, optional
            XGBoost's name for `init_model`.
        verbose : bool or int, optional
            As the parameter, for this fit only. None: the parameter's value.

        Returns
        -------
        estimator
            Itself.

        Raises
        ------
        ValueError
            If a parameter is out of range or the data is unusable; the text says which and why.
        TypeError
            If there is no such argument, or if one is of a type that cannot be read.
        KeyboardInterrupt
            At Ctrl-C before the first round is finished. Later, the rounds finished so far are
            kept, and `stop_reason_` is ``"interrupted"``.
        """
        arguments = FitArguments.of(locals())
        tasks = FitTasks.of(self, X, y, sample_weight)
        before = self.__dict__.copy()
        try:
            task = read_task(self, X, y, arguments, tasks)
            # until the fit is done the estimator keeps the earlier fit, without what users and
            # callbacks have set on that model
            self.__dict__ = {
                name: value
                for name, value in vars(self).items()
                if name in self._fitted_names or name.startswith("_") or not name.endswith("_")
            }
            self._set_fitted(train(task))
            for told in tasks:
                told.finish()
        except BaseException:
            # whatever went wrong, an earlier fit is still whole
            self.__dict__ = before
            raise
        return self

    def _set_fitted(self, attributes: Mapping[str, Any]) -> None:
        """Replace the attributes of an earlier fit by these, at once."""
        model = attributes["model_"]
        # what `n_estimators` counts
        n_estimators = model.params_of(0).num_parallel_tree if self._is_forest else model.n_rounds
        fitted = {**attributes, "n_estimators_": n_estimators}
        kept = {name: vars(self)[name] for name in vars(self) if name not in self._fitted_names}
        self.__dict__ = {**kept, **fitted, "_fitted_names": tuple(fitted)}

    def _fitted_copy(self, attributes: Mapping[str, Any]) -> Self:
        """Return a copy with the attributes of a fit that ended earlier."""
        copied = copy.copy(self)
        # what scikit-learn keeps in private attributes ties it to the fit that is under way: a file
        # of the copy would hold all that callbacks hold
        for name in [name for name in vars(copied) if name[0] == "_" and "callback" in name]:
            delattr(copied, name)
        copied._set_fitted(attributes)
        return copied

    @by_partitions
    def predict(
        self,
        X: Any,
        *,
        output_margin: bool = False,
        validate_features: bool = True,
        base_margin: Any = None,
        iteration_range: tuple[int, int] | None = None,
        pred_contribs: bool = False,
        pred_interactions: bool = False,
    ) -> np.ndarray:
        """Predict a number, the most probable class or a score for each row.

        Returns
        -------
        ndarray, shape (n_samples,) or (n_samples, n_outputs)
            A regressor gives float64, a column per target; with several quantiles
            (`quantile_alpha`) or expectiles a column for each of them and target: all targets of
            the lowest one, then all targets of the next. A classifier gives the most probable
            class, in the dtype of the labels; with several labels, 1 where a label is likelier than
            not, else 0. A ranker gives the score of each document, and a survival model the risk
            score of each row, float64.

            With `pred_contribs` float64 of shape (n_samples, n_features + 1), with
            `pred_interactions` (n_samples, n_features + 1, n_features + 1); if there are several
            raw scores per row, their number is the second dimension.
        """
        if pred_contribs and pred_interactions:
            raise ValueError(
                "pred_contribs=True and pred_interactions=True: predict gives one of them; call it "
                "once for each"
            )
        if pred_contribs or pred_interactions:
            rows = self._explained_rows(X, by_position=not validate_features)
            return rows.with_bias(base_margin, iteration_range, pred_interactions)
        fitted, raw_score = self._scored(X, base_margin, iteration_range, validate_features)
        return by_rows(raw_score) if output_margin else self._predictions(fitted, raw_score)

    def staged_predict(self, X: Any, *, base_margin: Any = None) -> Iterator[np.ndarray]:
        """Yield what :meth:`predict` returns, after 1, 2, ... rounds.

        Yields
        ------
        ndarray
            Of the shape and dtype that :meth:`predict` returns.
        """
        for fitted, raw_score in self._staged_scores(X, base_margin):
            yield self._predictions(fitted, raw_score)

    def _predictions(self, fitted: FittedModel, raw_score: np.ndarray) -> np.ndarray:
        """Return what `predict` says of raw scores, shape (n_outputs, n_samples)."""
        return fitted.predictions(raw_score)

    @by_partitions
    def apply(self, X: Any, iteration_range: tuple[int, int] | None = None) -> np.ndarray:
        """Return the leaf that each row reaches in each tree.

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
        it is a regression tree (CART), and the path agrees with scikit-learn's
        ``DecisionTreeRegressor`` for the same tree. For two classes and ``reg_lambda=0`` impurities
        agree with its ``DecisionTreeClassifier`` (Gini), divided by ``2 (p (1 - p))^2``, with p
        the share of ``classes_[1]``. With `reg_lambda`, the penalty on leaf weights counts as
        impurity; constraints on leaf weights do not.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Targets.

        Returns
        -------
        sklearn.utils.Bunch
            ``ccp_alphas``: the penalty of a leaf from which on each subtree is the best, from 0,
            the whole tree, to the root alone. ``impurities``: the impurity of all leaves of the
            subtree, for squared error the mean squared error. Both are ndarrays of float64, shape
            (n_subtrees,). `fit` adds up rounded gradients, so a `ccp_alpha` equal to one of these
            may leave the subtree before; one between two of them leaves that of the first.

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
        if self.preset == "auto":
            raise ValueError(
                "preset='auto': a pruning path belongs to a tree of given parameters; call "
                "set_params(**model.chosen_params_, preset=None) before"
            )
        task = read_task(self, X, y, FitArguments(sample_weight), settings=ONE_TREE)
        return path_of_first_tree(task)

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

    # --- by XGBoost's names

    def evals_result(self) -> dict[str, dict[str, list[float]]]:
        """Return the metrics after each round, `evals_result_`.

        Returns
        -------
        dict
            Such as ``{"validation_0": {"logloss": [0.61, 0.55]}}``.

        Raises
        ------
        ValueError
            If there was no validation data.
        """
        check_is_fitted(self)
        if not self.evals_result_:
            raise ValueError(
                "there are no metrics, because the fit had no validation data: give it eval_set, "
                "X_val and y_val, or set early_stopping_rounds"
            )
        return self.evals_result_

    def get_num_boosting_rounds(self) -> int:
        """Return the number of rounds that a fit does at most: of a forest 1.

        Returns
        -------
        int
        """
        return rounds_and_trees(self, self._is_forest)[0]

    @property
    def best_iteration(self) -> int:
        """The best round, from 0: `best_iteration_`. Only with early stopping."""
        check_is_fitted(self)
        return self.best_iteration_

    @property
    def best_score(self) -> float:
        """The metric at that round: `best_score_`. Only with early stopping."""
        check_is_fitted(self)
        return self.best_score_

    @property
    def intercept_(self) -> np.ndarray:
        """The base score: what is predicted before the first tree; shape (n_outputs,).

        For two classes the probability of ``classes_[1]``, for more their raw scores.
        """
        fitted = self._fitted
        start = fitted.model.base_score + fitted.shift
        if fitted.loss.link == SOFTMAX:
            return start
        return np.atleast_1d(fitted.loss.predictions(start[:, np.newaxis])).reshape(-1)

    if not TYPE_CHECKING:  # to a type checker, any attribute would then be there

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, with the way to what has another name or place here."""
            known = getattr(type(self), name, None)
            if isinstance(known, property):  # its own error, perhaps that nothing is fitted
                return known.fget(self)
            remedy = f": {OTHER_ATTRIBUTES[name]}" if name in OTHER_ATTRIBUTES else ""
            text = f"{type(self).__name__!r} object has no attribute {name!r}{remedy}"
            raise AttributeError(text, name=name, obj=self)

    # --- what methods are made of

    @property
    def _fitted(self) -> FittedModel:
        # all attributes are of one fit: another thread's puts a new dictionary in this one's place
        state = vars(self)
        if "model_" not in state:  # the check takes a sixth of the prediction of one row
            check_is_fitted(self)
        trained = trained_model(state)
        return FittedModel(
            **vars(trained),
            n_jobs=self.n_jobs,
            read=partial(self._read_rows, self, trained.features),
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
        if isinstance(X, PrecomputedScores):
            return fitted, X.values
        X = fitted.read(X, by_position=not validate_features)
        return fitted, fitted.raw_scores(X, base_margin, iteration_range)

    @by_partitions
    def _raw_rows(self, X: Any) -> np.ndarray:
        """Return the raw scores, shape (n_samples,) or (n_samples, n_outputs)."""
        return by_rows(self._scored(X)[1])

    def _staged_scores(self, X: Any, base_margin: Any) -> Iterator[tuple[FittedModel, np.ndarray]]:
        """Yield the model and its raw scores after every round, the same array each time."""
        fitted = self._fitted
        X = fitted.read(X)
        raw_score, per_round = fitted.start(X, base_margin), fitted.model.trees_per_round
        for first in range(0, fitted.model.n_trees, per_round):
            # a team for each stage: between two, anything may happen, a fork for one
            add_scores(fitted.model, X, (first, first + per_round), raw_score, fitted.n_jobs)
            yield fitted, raw_score
