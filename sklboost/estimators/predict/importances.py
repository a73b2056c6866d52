"""Importances of features: methods of the estimators."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from sklboost.estimators.parameters.boosters import Parameters
from sklboost.estimators.parameters.docstrings import methods_documented
from sklboost.estimators.parameters.rules import check_parameters, value_of
from sklboost.estimators.predict.fitted_model import FittedModel, HasFittedModel
from sklboost.inspection.importances import scaled_to_one, split_importances

if TYPE_CHECKING:
    from sklboost.inspection.importances import ValidationImportances


@methods_documented
class ImportancesMixin(HasFittedModel):
    """Importances from the splits of the trees, and on validation rows."""

    @property
    def feature_importances_(self) -> np.ndarray:
        """Importance of each feature by its splits, scaled to sum 1; shape (n_features,).

        The parameter `importance_type` says what is measured.
        """
        return scaled_to_one(_split_importances(self._fitted, value_of(self, "importance_type")))

    def get_score(self, importance_type: str = "weight") -> dict[str, float]:
        """Return the unscaled importances of the features that trees are split on.

        Parameters
        ----------
        importance_type : {"weight", "gain", "total_gain", "cover", "total_cover"}, default="weight"
            As the parameter of the estimator, but with the default of XGBoost's ``get_score``.

        Returns
        -------
        dict of str to float
            By the name of the feature in the training data, or ``f0``, ``f1``, ... A name that
            several features have is followed by the number of the column.

        Raises
        ------
        ValueError
            If `importance_type` is none of these.
        """
        fitted = self._fitted
        importances = _split_importances(fitted, importance_type)
        names = fitted.feature_names
        counts = Counter(names)
        labels = [
            name if counts[name] == 1 else f"{name} (column {i})" for i, name in enumerate(names)
        ]
        used = np.flatnonzero(_split_importances(fitted, "weight"))
        return {labels[feature]: float(importances[feature]) for feature in used}

    def validation_importances(  # noqa: PLR0913, the arguments of users
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any,
        y_val: Any,
        sample_weight_val: Any = None,
        method: str = "permutation",
        scoring: Any = None,
        n_repeats: int = 10,
        random_state: Any = None,
    ) -> "ValidationImportances":
        """Measure importances on validation rows, and compare with features without information.

        Importances from splits are measured on the training rows, where even noise seems to matter.
        Here each repetition trains anew on `X` with a shadow of each feature, a copy with its rows
        shuffled, and measures features and shadows on `X_val`. A feature counts if its mean exceeds
        the best shadow of any repetition. The estimator's parameters are used; it need not be
        fitted, and is not changed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows: an array, a list or a frame, as for `fit`; neither sparse nor binned.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Training targets.
        sample_weight
        X_val : array-like of shape (n_validation_samples, n_features)
            Validation rows. Categories that no training row has count as missing, without a
            warning.
        y_val : array-like of shape (n_validation_samples,) or like `y`
            Their targets.
        sample_weight_val : array-like of shape (n_validation_samples,), optional
            Their weights.
        method : {"permutation", "shap"}, default="permutation"
            "permutation": decrease of the score when the values of the feature are shuffled.
            "shap": mean absolute SHAP value, summed over outputs; the targets `y_val` are not used.
        scoring : str, callable or None, default=None
            Score for "permutation": a scikit-learn scorer or its name. None: R² or accuracy.
        n_repeats : int, default=10
            Number of times to train and measure. The chance that any feature without information
            passes is about ``1 / (1 + n_repeats)``.
        random_state : int, RandomState instance, Generator or None, default=None
            Determines all shuffles. None: the estimator's `random_state`.

        Returns
        -------
        ValidationImportances
            Has ``importances_mean``, ``importances_std``, ``exceeds_baseline`` and more; prints as
            a table.

        Raises
        ------
        ValueError
            If an argument is out of range, or as `fit` does.
        TypeError
            If `X` or `X_val` is sparse or a BinnedMatrix.

        See Also
        --------
        sklearn.inspection.permutation_importance : For a fitted model, without a baseline.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklboost import XGBRegressorLite
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = XGBRegressorLite(n_estimators=20, max_depth=3)
        >>> found = model.validation_importances(
        ...     X[:300], y[:300], X_val=X[300:], y_val=y[300:], random_state=0
        ... )
        >>> [name for name, counts in zip(X, found.exceeds_baseline) if counts]
        ['bmi', 'bp', 's5']
        """
        from sklboost.estimators.predict.shadow_features import shadowed_importances

        return shadowed_importances(
            self,
            (X, y, sample_weight),
            (X_val, y_val, sample_weight_val),
            method=method,
            scoring=scoring,
            n_repeats=n_repeats,
            random_state=self.random_state if random_state is None else random_state,
        )


def _split_importances(fitted: FittedModel, importance_type: str) -> np.ndarray:
    check_parameters(Parameters, {"importance_type": importance_type})
    return split_importances(fitted.model, importance_type)
