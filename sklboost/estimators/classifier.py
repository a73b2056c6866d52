"""The classifier."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from sklboost.estimators.base import BaseBooster
from sklboost.estimators.class_weights import (
    calibrate_prior,
    class_codes,
    class_multipliers,
    multiply_weights,
    prior_shift,
)
from sklboost.estimators.continuing import Continued, check_same_classes
from sklboost.losses.base import ClassLoss
from sklboost.losses.log_loss import LogLoss
from sklboost.losses.softmax import Softmax


class XGBClassifierLite(ClassifierMixin, BaseBooster):
    """Gradient boosted classification trees: log loss for two classes, softmax for more.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of boosting rounds: trees, or for more than two classes trees per class.
    learning_rate : float, default=0.3
        What a tree's leaf weights are multiplied by before they are added.
    max_depth : int, default=6
        Most splits on the way from the root to a leaf. 0: no limit.
    max_leaves : int, default=0
        Most leaves of a tree. 0: no limit.
    grow_policy : {"depthwise", "lossguide"}, default="depthwise"
        Split level by level, or always the leaf of largest gain.
    max_bin : int, default=256
        A feature with more distinct values than this is cut into so many bins of about equal
        weight, one of them for missing values. 2 to 65,535; if a feature has more than 256 (256
        values and missing ones, for instance), the bins of all take twice the memory.
    reg_lambda : float, default=1.0
        L2 penalty on leaf weights: similarity is ``G^2 / (H + reg_lambda)``.
    reg_alpha : float, default=0.0
        L1 penalty on leaf weights: moves G towards 0 by so much.
    gamma : float, default=0.0
        Splits of smaller gain are pruned, from the bottom up. 0 still prunes negative gains.
    min_child_weight : float, default=1.0
        Least cover (sum of hessians) of a child: rows for squared error, ``sum p (1 - p)`` for log
        loss.
    max_delta_step : float, default=0.0
        Largest leaf weight in absolute value, before the learning rate. 0: no limit.
    pruning : {"post", "full", "pre"}, default="post"
        "post": grow every split of positive gain, then prune with `gamma`. "full": grow through
        splits without gain too, so that what lies beneath can justify them. "pre": refuse a split
        of gain below `gamma` at once, as XGBoost's ``hist`` does.
    subsample : float, default=1.0
        Part of the rows that each round's trees are grown from, drawn anew for each round: greater
        than 0, at most 1. Each row is drawn or not by itself, so the number varies a little. Weight
        2 is the row twice here, too, if the weights are whole and their sum is at most 4,096; else
        a row is drawn whole, whatever its weight.
    sampling_method : {"uniform", "gradient_based"}, default="uniform"
        "uniform": every row is drawn with probability `subsample`. "gradient_based": with one
        proportional to ``sqrt(g^2 + 0.1 h^2)``, at most 1, about `subsample` of the rows in all;
        gradient and hessian of a row drawn with probability p count 1 / p times, for
        `min_child_weight` too. Of use where `subsample` is small.
    colsample_bytree : float, default=1.0
        Part of the features that a tree may split on, drawn anew for each tree: greater than 0, at
        most 1; rounded down, at least one feature.
    colsample_bylevel : float, default=1.0
        Part of these that splits of one depth may be on.
    colsample_bynode : float, default=1.0
        Part of the latter that the split of one node may be on.
    base_score : float, optional
        Prediction before the first tree: a value, or for two classes the probability of
        ``classes_[1]``. None: the best constant (mean, or shares of the classes). For more than two
        classes a number stands for equal shares.
    class_weight : dict, "balanced" or None, default=None
        What the weights of a class's rows are multiplied by: a dict of labels to numbers, or
        "balanced" for weights that make the classes count alike. Validation data is weighted too.
    scale_pos_weight : float, default=1.0
        For two classes, multiplies the weight of ``classes_[1]``, on top of `class_weight`.
    calibrated_prior : bool, default=False
        Whether raw scores are shifted back after training so that probabilities are those of the
        data, not of the weighted classes (prior correction: King & Zeng 2001).
    early_stopping_rounds : int, optional
        Stop when the last metric of the last validation data has not improved for so many rounds,
        and keep the rounds up to the best. Without validation data given to `fit`, part of `X` is
        held out. None: do all rounds.
    validation_fraction : float, default=0.1
        Share of the rows that early stopping holds out, of their weight for "random".
    validation_split : {"random", "time"}, default="random"
        Which rows early stopping holds out. "random": chosen by `random_state`, for a classifier
        the same share of every class, or whole `groups`. Weight 2 is the row twice under the same
        conditions as for `subsample`. "time": the last ones.
    eval_metric : str, callable or list of them, optional
        What is computed of the validation data after every round: names of metrics (XGBoost's),
        scikit-learn scorers or their names, functions ``(y_true, y_pred)`` or
        ``(y_true, y_pred, sample_weight)``. None: ``"logloss"``, or ``"mlogloss"`` for more
        than two classes.
    refit : bool, default=False
        After early stopping, train once more on all rows, with those held out or of the last
        validation data, for the best number of rounds.
    max_time : float, optional
        Seconds after which no further round is begun; the rounds so far are kept.
    callbacks : list of TrainingCallback, optional
        Told of every round; see :class:`sklboost.TrainingCallback`.
    warm_start : bool, default=False
        Whether `fit` adds rounds to those of the last `fit`, up to `n_estimators`, instead of
        starting anew.
    n_jobs : int, optional
        Most threads to use; small data uses fewer. None: as many as this process may use without
        crowding others out, -1: all processors. The model is the same bits for any number.
    random_state : int, RandomState instance, Generator or None, default=None
        Decides which rows and features are drawn, and the random rounding of gradients (beyond
        about 4,000 rows). None: the draws come from NumPy's global state, the rounding is fixed; so
        the same data and parameters give the same model if nothing is drawn.
    verbose : int, default=0
        0: silent. 1: a progress bar (of tqdm where it is installed, else lines of text). 2: a line
        for every round. Text goes through ``logging``.

    Attributes
    ----------
    n_features_in_ : int
        Number of features at fit.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the features, where `X` had names that are all strings.
    classes_ : ndarray, shape (n_classes,)
        The labels, sorted.
    model_ : Model
        The trees, as :class:`sklboost.structs.Model`.
    n_estimators_ : int
        Rounds of the model: fewer than `n_estimators` if training stopped early, more if it
        continued another model.
    stop_reason_ : str
        Why training ended: ``"completed"``, ``"early_stopping"`` (a callback of the user's
        included), ``"max_time"`` or ``"interrupted"`` (Ctrl-C).
    best_iteration_ : int
        The best round, from 0, as in XGBoost; the last of the model. Only with early stopping.
    best_score_ : float
        The metric at that round. Only with early stopping.
    evals_result_ : dict
        ``{"validation_0": {"logloss": [0.61, 0.55]}}``: a value for each round done.
    fit_report_ : FitReport
        Time by phase, rows, bins, trees, leaves, pruned splits, constant features, threads.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklboost import XGBClassifierLite
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = XGBClassifierLite(n_estimators=50, learning_rate=0.1, max_depth=3)
    >>> print(cross_val_score(model, X, y).mean() > 0.95)
    True
    """

    _numeric_target = False
    classes_: np.ndarray
    _loss: ClassLoss

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
        class_weight: Any = None,
        scale_pos_weight: float = 1.0,
        calibrated_prior: bool = False,
        early_stopping_rounds: int | None = None,
        validation_fraction: float = 0.1,
        validation_split: str = "random",
        eval_metric: Any = None,
        refit: bool = False,
        max_time: float | None = None,
        callbacks: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        super().__init__(
            n_estimators=n_estimators,
            learning_rate=learning_rate,
            max_depth=max_depth,
            max_leaves=max_leaves,
            grow_policy=grow_policy,
            max_bin=max_bin,
            reg_lambda=reg_lambda,
            reg_alpha=reg_alpha,
            gamma=gamma,
            min_child_weight=min_child_weight,
            max_delta_step=max_delta_step,
            pruning=pruning,
            subsample=subsample,
            sampling_method=sampling_method,
            colsample_bytree=colsample_bytree,
            colsample_bylevel=colsample_bylevel,
            colsample_bynode=colsample_bynode,
            base_score=base_score,
            early_stopping_rounds=early_stopping_rounds,
            validation_fraction=validation_fraction,
            validation_split=validation_split,
            eval_metric=eval_metric,
            refit=refit,
            max_time=max_time,
            callbacks=callbacks,
            warm_start=warm_start,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight
        self.scale_pos_weight = scale_pos_weight
        self.calibrated_prior = calibrated_prior

    def _link(self, loss: Any) -> Callable[[np.ndarray], np.ndarray]:
        return loss.probabilities

    def _choose_loss(
        self, y: np.ndarray, weight: np.ndarray, continued: Continued | None
    ) -> ClassLoss:
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        check_same_classes(continued, self.classes_.tolist())
        n_classes = len(self.classes_)
        if n_classes == 1:
            (label,) = self.classes_.tolist()
            raise ValueError(
                f"y has only one class, {label!r}, in the rows of positive weight: "
                "a classifier needs at least 2 classes"
            )
        if n_classes == 2 and self.base_score is not None and not 0.0 < self.base_score < 1.0:
            raise ValueError(
                f"base_score={self.base_score!r}: for two classes it is a probability, "
                "so it must be between 0 and 1, both excluded"
            )
        self._multipliers = class_multipliers(
            *(self.class_weight, self.scale_pos_weight, self.classes_, codes, weight)
        )
        return LogLoss() if n_classes == 2 else Softmax(n_classes)

    def _targets(
        self, y: np.ndarray, weight: np.ndarray, name: str
    ) -> tuple[np.ndarray, np.ndarray]:
        codes = class_codes(self.classes_, y, name)
        return codes.astype(np.float64), multiply_weights(weight, self._multipliers, codes)

    @property
    def _is_shifted(self) -> bool:
        return self.calibrated_prior

    def _calibrated_shift(
        self, loss: ClassLoss, raw_score: np.ndarray, y: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        """Give what makes the probabilities those of the data, not of the weighted classes."""
        codes = y.astype(np.intp)
        own_weight = weight / self._multipliers[codes] if len(weight) > 0 else weight
        return calibrate_prior(loss, raw_score, codes, own_weight, prior_shift(self._multipliers))

    def decision_function(
        self, X: Any, *, base_margin: Any = None, iteration_range: tuple[int, int] | None = None
    ) -> np.ndarray:
        """Give the raw scores: log-odds of ``classes_[1]``, or one score a class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        base_margin : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Raw scores to start from, in place of those the model started from.
        iteration_range : tuple of int, optional
            Rounds to use: the first and the one after the last, ``(0, k)`` for the first k rounds;
            ``(0, 0)``: all.

        Returns
        -------
        ndarray of float64, shape (n_samples,) or (n_samples, n_classes)
        """
        return _by_rows(self._raw_scores(X, base_margin, iteration_range))

    def predict_proba(
        self, X: Any, *, base_margin: Any = None, iteration_range: tuple[int, int] | None = None
    ) -> np.ndarray:
        """Give the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        base_margin : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Raw scores to start from, in place of those the model started from.
        iteration_range : tuple of int, optional
            Rounds to use: the first and the one after the last, ``(0, k)`` for the first k rounds;
            ``(0, 0)``: all.

        Returns
        -------
        ndarray of float64, shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        raw_score = self._raw_scores(X, base_margin, iteration_range)
        return self._loss.probabilities(raw_score)

    def predict(
        self, X: Any, *, base_margin: Any = None, iteration_range: tuple[int, int] | None = None
    ) -> np.ndarray:
        """Give the most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        base_margin : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Raw scores to start from, in place of those the model started from.
        iteration_range : tuple of int, optional
            Rounds to use: the first and the one after the last, ``(0, k)`` for the first k rounds;
            ``(0, 0)``: all.

        Returns
        -------
        ndarray of the labels' dtype, shape (n_samples,)
        """
        return self._labels(self._raw_scores(X, base_margin, iteration_range))

    def staged_predict(self, X: Any, *, base_margin: Any = None) -> Iterator[np.ndarray]:
        """Yield the predicted classes after 1, 2, ... rounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        base_margin : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Raw scores to start from, in place of those the model started from.

        Yields
        ------
        ndarray of the labels' dtype, shape (n_samples,)
        """
        for raw_score in self._staged_raw_scores(X, base_margin):
            yield self._labels(raw_score)

    def staged_predict_proba(self, X: Any, *, base_margin: Any = None) -> Iterator[np.ndarray]:
        """Yield the probabilities of the classes after 1, 2, ... rounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        base_margin : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Raw scores to start from, in place of those the model started from.

        Yields
        ------
        ndarray of float64, shape (n_samples, n_classes)
        """
        for raw_score in self._staged_raw_scores(X, base_margin):
            yield self._loss.probabilities(raw_score)

    def staged_decision_function(self, X: Any, *, base_margin: Any = None) -> Iterator[np.ndarray]:
        """Yield the raw scores after 1, 2, ... rounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        base_margin : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Raw scores to start from, in place of those the model started from.

        Yields
        ------
        ndarray of float64, shape (n_samples,) or (n_samples, n_classes)
        """
        for raw_score in self._staged_raw_scores(X, base_margin):
            yield _by_rows(raw_score)

    def _labels(self, raw_score: np.ndarray) -> np.ndarray:
        if len(raw_score) == 1:
            return self.classes_[(raw_score[0] > 0.0).astype(np.intp)]
        return self.classes_[raw_score.argmax(axis=0)]


def _by_rows(raw_score: np.ndarray) -> np.ndarray:
    """Give a copy of the raw scores in the shape that users know."""
    return raw_score[0].copy() if len(raw_score) == 1 else raw_score.T.copy()
