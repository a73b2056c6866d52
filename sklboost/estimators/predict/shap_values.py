"""SHAP values: methods of the estimators, in the shapes of the shap package and of XGBoost.

What is computed, and how, is in ``inspection/shap``.
"""

from typing import Any

import numpy as np

from sklboost.data.features import Features, raw_blocks
from sklboost.data.raw_values import array_of
from sklboost.engine.parallel import ThreadTeam
from sklboost.estimators.input.feature_names import order_of_fit
from sklboost.estimators.parameters.docstrings import methods_documented
from sklboost.estimators.predict.fitted_model import FittedModel, HasFittedModel
from sklboost.estimators.predict.raw_scores import add_rounds
from sklboost.inspection.shap.contributions import add_contributions, add_interactions
from sklboost.inspection.shap.edges import lay_out_edges, mean_scores


@methods_documented
class ShapValuesMixin(HasFittedModel):
    """What features add to the raw scores of rows."""

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
        fitted, known, background = self._read(X, X_background)
        values = single_values(fitted, known, fitted.trees(iteration_range), background)
        return values if fitted.model.n_outputs > 1 else values[:, :, 0]

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
        fitted, known, background = self._read(X, X_background)
        model, trees = fitted.model, fitted.trees(iteration_range)
        values = np.zeros((len(known), model.n_features, model.n_features, model.n_outputs))
        out = values.transpose(0, 3, 1, 2)
        add_interactions(model, known, trees, background, fitted.n_jobs, out)
        return values if model.n_outputs > 1 else values[:, :, :, 0]

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
        try:
            import shap
        except ImportError as error:
            raise ImportError(
                'shap_explanation needs the shap package: pip install "sklboost[plot]"'
            ) from error
        fitted, known, background = self._read(X, X_background)
        values = single_values(fitted, known, fitted.trees(iteration_range), background)
        mean = _mean_raw_score(fitted, background, iteration_range)
        base_values = np.repeat(mean[np.newaxis], len(values), axis=0)
        has_several = fitted.model.n_outputs > 1
        return shap.Explanation(
            values if has_several else values[:, :, 0],
            base_values=base_values if has_several else base_values[:, 0],
            data=_numbers(known),
            display_data=_displayed(X, fitted.features.listed_names),
            feature_names=fitted.feature_names,
            output_names=fitted.classes if has_several else None,
        )

    def _read(
        self, X: Any, X_background: Any, by_position: bool = False
    ) -> tuple[FittedModel, Features, Features | None]:
        """Check that the model can be explained, and the rows."""
        fitted = self._fitted
        if fitted.model.linear is not None:
            raise ValueError(
                "SHAP values need constant leaves, and this model has linear ones: fit with "
                "linear_tree=False, or use shap.PermutationExplainer, which takes any model"
            )
        known = fitted.read(X, by_position=by_position)
        background = None if X_background is None else fitted.read(X_background, "X_background")
        return fitted, known, background

    def _contributions(
        self,
        X: Any,
        base_margin: Any,
        iteration_range: tuple[int, int] | None,
        single: bool,
        pairs: bool,
        validate_features: bool,
    ) -> np.ndarray:
        """SHAP values, or those of pairs, in XGBoost's shape: the bias is one more feature.

        Shape (n_samples, n_features + 1), of pairs (n_samples, n_features + 1, n_features + 1); if
        there are several raw scores per row, their number is the second dimension.
        """
        if single and pairs:
            raise ValueError(
                "pred_contribs=True and pred_interactions=True: predict gives one of them; call it "
                "once for each"
            )
        fitted, known, _ = self._read(X, None, by_position=not validate_features)
        model, trees = fitted.model, fitted.trees(iteration_range)
        start = fitted.start(known, base_margin).T
        values = np.zeros((len(known), model.n_outputs, *(model.n_features + 1,) * (1 + pairs)))
        if pairs:
            add_interactions(model, known, trees, None, fitted.n_jobs, values[..., :-1, :-1])
            bias = values[..., -1, -1]
        else:
            add_contributions(model, known, trees, None, fitted.n_jobs, values[..., :-1])
            bias = values[..., -1]
        bias += start + mean_scores(lay_out_edges(model), trees, model.n_outputs)
        return values if model.n_outputs > 1 else values[:, 0]


def single_values(
    fitted: FittedModel, X: Features, trees: tuple[int, int], background: Features | None = None
) -> np.ndarray:
    """SHAP values, shape (n_samples, n_features, n_outputs)."""
    model = fitted.model
    values = np.zeros((len(X), model.n_features, model.n_outputs))
    add_contributions(model, X, trees, background, fitted.n_jobs, values.transpose(0, 2, 1))
    return values


@np.errstate(all="ignore")
def _mean_raw_score(
    fitted: FittedModel, background: Features | None, iteration_range: tuple[int, int] | None
) -> np.ndarray:
    """Mean raw score, to which SHAP values are added, shape (n_outputs,)."""
    model, start = fitted.model, fitted.model.base_score + fitted.shift
    if background is None:
        trees = fitted.trees(iteration_range)
        return start + mean_scores(lay_out_edges(model), trees, model.n_outputs)
    raw_score = np.repeat(start[:, np.newaxis], len(background), axis=1)
    add_rounds(model, background, fitted.rounds(iteration_range), raw_score, fitted.n_jobs)
    return raw_score.mean(axis=1)


def _numbers(X: Features) -> np.ndarray:
    """Features as the numbers that go down the trees; a copy."""
    with ThreadTeam(1) as team:
        return np.concatenate([array_of(raw).copy() for _, raw in raw_blocks(team, X)])


def _displayed(X: Any, names: list[Any]) -> np.ndarray | None:
    """Values of a frame, in the order of the fit; None for anything else."""
    if not hasattr(X, "to_numpy"):
        return None
    order, values = order_of_fit(X, names), X.to_numpy()
    return values if order is None else values[:, list(order)]
