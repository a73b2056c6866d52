"""The regressor."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from sklboost.estimators.base import BaseBooster
from sklboost.estimators.validation import TrainingData, check_target_range
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
    n_jobs : int, optional
        Most threads to use; small data uses fewer. None: as many as this process may use without
        crowding others out, -1: all processors. The model is the same bits for any number.
    random_state : int, RandomState instance, Generator or None, default=None
        Decides which rows and features are drawn, and the random rounding of gradients (beyond
        about 4,000 rows). None: the draws come from NumPy's global state, the rounding is fixed; so
        the same data and parameters give the same model if nothing is drawn.
    verbose : int, default=0
        Write the training loss every so many rounds. 0: never.

    Attributes
    ----------
    n_features_in_ : int
        Number of features at fit.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the features, where `X` had names that are all strings.
    model_ : Model
        The trees, as :class:`sklboost.structs.Model`.

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

    def _prepare(self, data: TrainingData) -> tuple[Loss, np.ndarray]:
        target = data.y.astype(np.float64)
        check_target_range(target)
        return SquaredError(), target

    def predict(self, X: Any) -> np.ndarray:
        """Predict the target of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of float64, shape (n_samples,)
        """
        check_is_fitted(self)
        return self._raw_scores(X)[0]

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the predictions after 1, 2, ... rounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Yields
        ------
        ndarray of float64, shape (n_samples,)
        """
        check_is_fitted(self)
        for raw_score in self._staged_raw_scores(X, 1):
            yield raw_score[0].copy()
