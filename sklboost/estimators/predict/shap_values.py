"""SHAP values: methods of the estimators, in the shapes of the shap package and of XGBoost.

What is computed, and how, is in ``inspection/shap``; it is imported when the first of them is
called.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from sklboost.estimators.parameters.docstrings import methods_documented
from sklboost.estimators.predict.by_partitions import by_partitions
from sklboost.estimators.predict.fitted_model import HasFittedModel

if TYPE_CHECKING:
    from sklboost.estimators.predict.contributions import ExplainedRows


@methods_documented
class ShapValuesMixin(HasFittedModel):
    """What features add to the raw scores of rows."""

    @by_partitions
    def shap_values(
        self,
        X: Any,
        *,
        X_background: Any = None,
        iteration_range: tuple[int, int] | None = None,
    ) -> np.ndarray:
        """Compute exact SHAP values: what each feature adds to the raw score of each row.

        The values of a row add up to its raw score minus the mean raw score. A feature's value is
        the change of the mean when the feature becomes known, averaged over all orders in which
        features become known. Where a feature is not known, rows are spread over the branches of
        its splits as the training rows were, by cover (path-dependent TreeSHAP, as XGBoost's
        ``pred_contribs``); or the values of the background rows stand in for it (interventional
        TreeSHAP).

        Parameters
        ----------
        X
        X_background
        iteration_range

        Returns
        -------
        ndarray of float64, shape (n_samples, n_features) or (n_samples, n_features, n_outputs)
            The latter if there are several raw scores per row: classes, targets, labels, quantiles.

        Raises
        ------
        ValueError
            If leaves are linear.

        See Also
        --------
        shap_interaction_values : What pairs of features add.
        shap_explanation : The same for the plots of the shap package.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklboost import XGBRegressorLite
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = XGBRegressorLite(n_estimators=20).fit(X, y)
        >>> values = model.shap_values(X)
        >>> mean = model.predict(X) - values.sum(axis=1)
        >>> print(values.shape, bool(mean.max() - mean.min() < 1e-10))
        (442, 10) True
        """
        return self._explained_rows(X, X_background).values(iteration_range)

    @by_partitions
    def shap_interaction_values(
        self,
        X: Any,
        *,
        X_background: Any = None,
        iteration_range: tuple[int, int] | None = None,
    ) -> np.ndarray:
        """Compute exact SHAP interaction values: what each pair of features adds to the raw score.

        Rows and columns of a matrix are features: two different ones share their interaction in
        equal halves, and the diagonal has what a feature adds by itself. Each row of the matrix
        adds up to the feature's SHAP value.

        Parameters
        ----------
        X
        X_background
        iteration_range

        Returns
        -------
        ndarray of float64
            Shape (n_samples, n_features, n_features), or (n_samples, n_features, n_features,
            n_outputs) if there are several raw scores per row.

        Raises
        ------
        ValueError
            If leaves are linear.
        """
        return self._explained_rows(X, X_background).interactions(iteration_range)

    @np.errstate(all="ignore")
    def shap_explanation(
        self,
        X: Any,
        *,
        X_background: Any = None,
        iteration_range: tuple[int, int] | None = None,
    ) -> Any:
        """Return :meth:`shap_values` as the object that the plots of the shap package take.

        Parameters
        ----------
        X
        X_background
        iteration_range

        Returns
        -------
        shap.Explanation
            ``values``; ``base_values``, the mean raw score, to which a row's values add up to its
            raw score; ``data``, the numbers that the model has for `X`, including the codes of
            categories; ``display_data``, what a frame has in their place; ``feature_names``; and
            ``output_names``, the classes.

        Raises
        ------
        ImportError
            If the shap package is not installed.
        ValueError
            If leaves are linear.
        """
        return self._explained_rows(X, X_background).explanation(X, iteration_range)

    def _explained_rows(
        self, X: Any, X_background: Any = None, by_position: bool = False
    ) -> "ExplainedRows":
        from sklboost.estimators.predict.contributions import explained_rows

        return explained_rows(self._fitted, X, X_background, by_position)

    def _contributions(
        self,
        X: Any,
        base_margin: Any,
        iteration_range: tuple[int, int] | None,
        single: bool,
        pairs: bool,
        validate_features: bool,
    ) -> np.ndarray:
        """What `predict` returns for `pred_contribs` and `pred_interactions`."""
        if single and pairs:
            raise ValueError(
                "pred_contribs=True and pred_interactions=True: predict gives one of them; call it "
                "once for each"
            )
        rows = self._explained_rows(X, by_position=not validate_features)
        return rows.with_bias(base_margin, iteration_range, pairs)
