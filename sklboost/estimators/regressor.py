"""The regressor."""

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from sklboost.estimators.base import BaseBooster
from sklboost.estimators.continuing import Continued
from sklboost.estimators.validation import check_target_range
from sklboost.losses.base import Loss
from sklboost.losses.squared_error import SquaredError


class XGBRegressorLite(RegressorMixin, BaseBooster):
    """Gradient boosted regression trees, squared error.

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
        ``classes_[1]``. None: the best constant (mean, or shares of the classes).
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
        ``(y_true, y_pred, sample_weight)``. None: ``"rmse"``.
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
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklboost import XGBRegressorLite
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = XGBRegressorLite(n_estimators=50, learning_rate=0.1, max_depth=3)
    >>> print(round(cross_val_score(model, X, y).mean(), 1))
    0.4
    """

    _numeric_target = True

    def _link(self, loss: Any) -> Callable[[np.ndarray], np.ndarray]:
        return itemgetter(0)

    def _choose_loss(self, y: np.ndarray, weight: np.ndarray, continued: Continued | None) -> Loss:
        return SquaredError()

    def _targets(
        self, y: np.ndarray, weight: np.ndarray, name: str
    ) -> tuple[np.ndarray, np.ndarray]:
        target = y.astype(np.float64)
        check_target_range(target, name)
        return target, weight

    def predict(
        self, X: Any, *, base_margin: Any = None, iteration_range: tuple[int, int] | None = None
    ) -> np.ndarray:
        """Predict the target of each row.

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
        ndarray of float64, shape (n_samples,)
        """
        return self._raw_scores(X, base_margin, iteration_range)[0]

    def staged_predict(self, X: Any, *, base_margin: Any = None) -> Iterator[np.ndarray]:
        """Yield the predictions after 1, 2, ... rounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        base_margin : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Raw scores to start from, in place of those the model started from.

        Yields
        ------
        ndarray of float64, shape (n_samples,)
        """
        for raw_score in self._staged_raw_scores(X, base_margin):
            yield raw_score[0].copy()
