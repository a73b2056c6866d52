"""The regressor."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_consistent_length

from sklboost.estimators.base import BaseBooster
from sklboost.estimators.input.arguments import row_weights, score_arguments
from sklboost.estimators.input.targets import check_columns, has_columns, read_targets
from sklboost.estimators.parameters.docstrings import documented
from sklboost.estimators.parameters.groups import RegressorParameters
from sklboost.estimators.predict.by_partitions import by_partitions, from_raw_scores
from sklboost.objectives.loss import by_rows
from sklboost.objectives.metrics import r2


@documented
class XGBRegressorLite(RegressorParameters, RegressorMixin, BaseBooster):
    """Gradient boosted regression trees.

    Attributes
    ----------
    n_features_in_
    feature_names_in_
    categories_
    model_
    n_estimators_
    stop_reason_
    best_iteration_
    best_score_
    evals_result_
    fit_report_
    chosen_params_

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
        """Predict the target of each row.

        Parameters
        ----------
        X
        output_margin
        validate_features
        base_margin
        iteration_range
        pred_contribs
        pred_interactions

        Returns
        -------
        ndarray of float64, shape (n_samples,) or (n_samples, n_outputs)
            A column per target. With several quantiles (`quantile_alpha`) or expectiles a column
            for each of them and target: all targets of the lowest one, then those of the next. With
            `pred_contribs` shape (n_samples, n_features + 1), with `pred_interactions` (n_samples,
            n_features + 1, n_features + 1); if there are several raw scores per row, their number
            is the second dimension.
        """
        if pred_contribs or pred_interactions:
            return self._contributions(
                X, base_margin, iteration_range, pred_contribs, pred_interactions, validate_features
            )
        fitted, raw_score = self._scored(X, base_margin, iteration_range, validate_features)
        return by_rows(raw_score) if output_margin else fitted.predictions(raw_score)

    @from_raw_scores
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R², the coefficient of determination of the predictions.

        Parameters
        ----------
        X
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets. With several, NaN is a value that is not known.
        sample_weight

        Returns
        -------
        float
            With several targets the mean of their R², each from the known values.
        """
        y, sample_weight = score_arguments(y, sample_weight, numeric=True)
        if not has_columns(y):
            return super().score(X, y, sample_weight)
        fitted, raw_score = self._scored(X)
        y, prediction = read_targets(y, "y", numeric=True), fitted.predictions(raw_score)
        check_columns(y, fitted.targets.size, "y")
        check_consistent_length(prediction, y)
        weight = np.empty(0) if sample_weight is None else row_weights(sample_weight, prediction)
        return r2(y, prediction, weight)

    def staged_predict(self, X: Any, *, base_margin: Any = None) -> Iterator[np.ndarray]:
        """Yield the predictions after 1, 2, ... rounds.

        Parameters
        ----------
        X
        base_margin

        Yields
        ------
        ndarray of float64, shape (n_samples,) or (n_samples, n_outputs)
        """
        for fitted, raw_score in self._staged_scores(X, base_margin):
            yield fitted.predictions(raw_score)
