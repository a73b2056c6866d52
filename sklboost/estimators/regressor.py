"""The regressor."""

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_consistent_length

from sklboost.estimators.base import BaseBooster
from sklboost.estimators.input.rows import row_weights, score_arguments
from sklboost.estimators.input.targets import RegressionTargets, check_columns
from sklboost.estimators.parameters.boosters import RegressorParameters
from sklboost.estimators.parameters.docstrings import documented
from sklboost.estimators.predict.fitted_model import from_raw_scores
from sklboost.objectives.metrics import r2


@documented(init=False)
class XGBRegressorLite(RegressorParameters, RegressorMixin, BaseBooster):
    """Gradient boosted regression trees.

    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklboost import XGBRegressorLite
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = XGBRegressorLite(n_estimators=50, learning_rate=0.1, max_depth=3)
    >>> print(round(cross_val_score(model, X, y).mean(), 1))
    0.4
    """

    @from_raw_scores
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R², the coefficient of determination; of quantiles and expectiles D2.

        R² compares the squared errors of the predictions with the squared errors of the mean. For
        "reg:quantileerror" and "reg:expectileerror" D2 does the same with the loss of the objective
        and its best constant, the quantile or expectile of the targets; for quantiles it is
        :func:`sklearn.metrics.d2_pinball_score`.

        Parameters
        ----------
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets. With several, NaN is a value that is not known.

        Returns
        -------
        float
            With several targets the mean of their R², each from the known values; with several
            quantiles or expectiles the mean over all of them and the targets. 1 is the best.
        """
        y, sample_weight = score_arguments(y, sample_weight, numeric=True)
        fitted = self._fitted
        if fitted.loss.d2 is None and (np.ndim(y) < 2 or y.shape[1] == 1):
            return super().score(X, y, sample_weight)
        y, prediction = RegressionTargets.read(y, "y"), self.predict(X)
        check_columns(y, fitted.targets.size, "y")
        check_consistent_length(prediction, y)
        weight = row_weights(sample_weight, prediction)
        if fitted.loss.d2 is None:
            return r2(y, prediction, weight)
        columns = np.atleast_2d(y.T).astype(np.float64)
        return float(fitted.loss.d2(columns, np.atleast_2d(prediction.T), weight))
