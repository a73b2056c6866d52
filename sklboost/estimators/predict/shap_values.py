"""SHAP values of the estimators: checks, shapes, and what shap's plots need.

In: a fitted estimator and rows. Out: arrays in the shapes of the shap package or of XGBoost, or a
``shap.Explanation``. What is computed, and how, is in ``inspection/shap``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklboost.data.features import Features, raw_blocks
from sklboost.data.raw_values import array_of
from sklboost.engine.model import Model
from sklboost.engine.parallel import ThreadTeam
from sklboost.estimators.input.check_features import features
from sklboost.estimators.input.feature_names import order_of_fit
from sklboost.estimators.predict.raw_scores import add_rounds
from sklboost.inspection.shap.contributions import add_contributions, add_interactions
from sklboost.inspection.shap.edges import lay_out_edges, mean_scores


class ShapValuesMixin:
    """Methods that tell what each feature adds to the raw scores of rows."""

    model_: Model
    n_jobs: int | None
    _feature_names: Callable[[], list[str]]

    def shap_values(
        self,
        X: Any,
        *,
        X_background: Any = None,
        iteration_range: tuple[int, int] | None = None,
    ) -> np.ndarray:
        """Give what each feature adds to each row's raw score: exact SHAP values.

        Values of a row add up to its raw score less the mean raw score. A feature's value is how
        much it changes the mean on average over all orders in which features become known. Where a
        feature is not known, rows are spread over the branches of its splits as the training rows
        were, by cover (path-dependent TreeSHAP, as XGBoost's ``pred_contribs``); or the values of
        the background rows stand in for it (interventional TreeSHAP).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        X_background : array-like of shape (n_backgrounds, n_features), optional
            Rows to compare with, often a hundred; the time grows with their number.
        iteration_range : tuple of int, optional
            Rounds to use: the first and the one after the last, ``(0, k)`` for the first k rounds;
            ``(0, 0)``: all.

        Returns
        -------
        ndarray of float64, shape (n_samples, n_features) or (n_samples, n_features, n_outputs)
            The latter if there are several raw scores a row: classes, targets, labels, quantiles.

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
        known, background = _read(self, X, X_background)
        return _single_values(self, known, background, iteration_range)

    def shap_interaction_values(
        self,
        X: Any,
        *,
        X_background: Any = None,
        iteration_range: tuple[int, int] | None = None,
    ) -> np.ndarray:
        """Give what each pair of features adds to each row's raw score: exact interaction values.

        Row and column of a matrix are features: two different ones share their interaction in equal
        halves, and the diagonal has what a feature adds by itself. Each row of the matrix adds up
        to the feature's SHAP value.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        X_background : array-like of shape (n_backgrounds, n_features), optional
            As for :meth:`shap_values`.
        iteration_range : tuple of int, optional
            Rounds to use: the first and the one after the last, ``(0, k)`` for the first k rounds;
            ``(0, 0)``: all.

        Returns
        -------
        ndarray of float64
            Shape (n_samples, n_features, n_features), and where there are several raw scores a row
            (n_samples, n_features, n_features, n_outputs).

        Raises
        ------
        ValueError
            If leaves are linear.
        """
        known, background = _read(self, X, X_background)
        model, trees = self.model_, _trees(self, iteration_range)
        values = np.zeros((len(known), model.n_features, model.n_features, model.n_outputs))
        add_interactions(model, known, trees, background, self.n_jobs, values.transpose(0, 3, 1, 2))
        return values if model.n_outputs > 1 else values[:, :, :, 0]

    def shap_explanation(
        self,
        X: Any,
        *,
        X_background: Any = None,
        iteration_range: tuple[int, int] | None = None,
    ) -> Any:
        """Give :meth:`shap_values` as the object that the plots of the shap package take.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        X_background : array-like of shape (n_backgrounds, n_features), optional
            As for :meth:`shap_values`.
        iteration_range : tuple of int, optional
            Rounds to use: the first and the one after the last, ``(0, k)`` for the first k rounds;
            ``(0, 0)``: all.

        Returns
        -------
        shap.Explanation
            ``values``; ``base_values``, the mean raw score, to which a row's values add up to its
            raw score; ``data``, the numbers that the model has for `X`, the codes of categories
            included; ``display_data``, what a frame has in their place; ``feature_names``; and
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
        known, background = _read(self, X, X_background)
        values = _single_values(self, known, background, iteration_range)
        mean = _mean_raw_score(self, background, iteration_range)
        has_several = self.model_.n_outputs > 1
        base_values = np.repeat(mean[np.newaxis], len(values), axis=0)
        classes = getattr(self, "classes_", None)
        return shap.Explanation(
            values,
            base_values=base_values if has_several else base_values[:, 0],
            data=_numbers(known),
            display_data=_displayed(self, X),
            feature_names=self._feature_names(),
            output_names=None if classes is None or not has_several else classes.tolist(),
        )


def contributions(
    estimator: Any, X: Any, base_margin: Any, iteration_range: Any, pairs: bool
) -> np.ndarray:
    """Give SHAP values, or those of pairs, in XGBoost's shape: the bias is one more feature.

    Parameters
    ----------
    estimator : BaseBooster
    X : array-like of shape (n_samples, n_features)
    base_margin : array-like or None
        Part of the bias.
    iteration_range : tuple of int or None
    pairs : bool

    Returns
    -------
    ndarray of float64
        Shape (n_samples, n_features + 1), of pairs (n_samples, n_features + 1, n_features + 1);
        where there are several raw scores a row, their number is the second dimension.
    """
    known, _ = _read(estimator, X, None)
    model, trees = estimator.model_, _trees(estimator, iteration_range)
    start = estimator._start(known, base_margin).T
    values = np.zeros((len(known), model.n_outputs, *(model.n_features + 1,) * (1 + pairs)))
    if pairs:
        add_interactions(model, known, trees, None, estimator.n_jobs, values[..., :-1, :-1])
        bias = values[..., -1, -1]
    else:
        add_contributions(model, known, trees, None, estimator.n_jobs, values[..., :-1])
        bias = values[..., -1]
    bias += start + mean_scores(lay_out_edges(model), trees, model.n_outputs)
    return values if model.n_outputs > 1 else values[:, 0]


def check_one_kind(pred_contribs: bool, pred_interactions: bool) -> None:
    """Raise ValueError if both kinds of contributions are asked for."""
    if pred_contribs and pred_interactions:
        raise ValueError(
            "pred_contribs=True and pred_interactions=True: predict gives one of them; call it "
            "once for each"
        )


def _read(estimator: Any, X: Any, X_background: Any) -> tuple[Features, Features | None]:
    """Check that the model can be explained, and the rows."""
    check_is_fitted(estimator)
    if estimator.model_.linear is not None:
        raise ValueError(
            "SHAP values need constant leaves, and this model has linear ones: fit with "
            "linear_tree=False, or use shap.PermutationExplainer, which takes any model"
        )
    known = features(estimator, X)
    if X_background is None:
        return known, None
    return known, features(estimator, X_background, "X_background")


def _trees(estimator: Any, iteration_range: Any) -> tuple[int, int]:
    """Give the first tree of some rounds and the one after the last."""
    first, stop = estimator._rounds(iteration_range)
    trees_per_round = estimator.model_.trees_per_round
    return first * trees_per_round, stop * trees_per_round


def _single_values(
    estimator: Any, X: Features, background: Features | None, iteration_range: Any
) -> np.ndarray:
    """Give what :meth:`ShapValuesMixin.shap_values` gives, of rows that have been checked."""
    model, trees = estimator.model_, _trees(estimator, iteration_range)
    values = np.zeros((len(X), model.n_features, model.n_outputs))
    out = values.transpose(0, 2, 1)
    add_contributions(model, X, trees, background, estimator.n_jobs, out)
    return values if model.n_outputs > 1 else values[:, :, 0]


def _mean_raw_score(
    estimator: Any, background: Features | None, iteration_range: Any
) -> np.ndarray:
    """Give what SHAP values are added to, shape (n_outputs,)."""
    model = estimator.model_
    start = model.base_score + estimator._shift
    if background is None:
        trees = _trees(estimator, iteration_range)
        return start + mean_scores(lay_out_edges(model), trees, model.n_outputs)
    raw_score = np.repeat(start[:, np.newaxis], len(background), axis=1)
    rounds = estimator._rounds(iteration_range)
    add_rounds(model, background, rounds, raw_score, estimator.n_jobs)
    return raw_score.mean(axis=1)


def _numbers(X: Features) -> np.ndarray:
    """Give features as the numbers that go down the trees; a copy."""
    with ThreadTeam(1) as team:
        return np.concatenate([array_of(raw).copy() for _, raw in raw_blocks(team, X)])


def _displayed(estimator: Any, X: Any) -> np.ndarray | None:
    """Give the values of a frame, in the order of the fit; None for what is no frame of its own."""
    if not hasattr(X, "to_numpy"):
        return None
    order, values = order_of_fit(X, estimator._fitted_features.listed_names), X.to_numpy()
    return values if order is None else values[:, list(order)]
