"""Which features matter: the estimators' methods for it."""

from collections import Counter
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklboost.engine.model import Model
from sklboost.estimators.parameters.rules import check_parameters
from sklboost.estimators.parameters.training import InspectionParameters
from sklboost.estimators.predict.shadow_features import shadowed_importances
from sklboost.inspection.importances import scaled_to_one, split_importances
from sklboost.inspection.validation_importances import ValidationImportances


class ImportancesMixin:
    """Importances from the splits of the trees, and on validation rows."""

    model_: Model
    importance_type: str
    random_state: Any

    @property
    def feature_importances_(self) -> np.ndarray:
        """Importance of each feature by its splits, scaled to sum 1; shape (n_features,).

        What is counted says the parameter `importance_type`.
        """
        return scaled_to_one(self._split_importances(self.importance_type))

    def get_score(self, importance_type: str = "weight") -> dict[str, float]:
        """Give the importances of the features that trees are split on, unscaled.

        Parameters
        ----------
        importance_type : {"weight", "gain", "total_gain", "cover", "total_cover"}, default="weight"
            As the parameter of the estimator; the default is that of XGBoost's ``get_score``.

        Returns
        -------
        dict of str to float
            By name: those of the training data, or ``f0``, ``f1``, ... A name that several features
            have is followed by the number of the column.

        Raises
        ------
        ValueError
            If there is no such kind of importance.
        """
        importances = self._split_importances(importance_type)
        names: list[str] = self._feature_names()  # type: ignore[attr-defined]
        counts = Counter(names)
        labels = [
            name if counts[name] == 1 else f"{name} (column {i})" for i, name in enumerate(names)
        ]
        used = np.flatnonzero(self._split_importances("weight"))
        return {labels[feature]: float(importances[feature]) for feature in used}

    def _split_importances(self, importance_type: str) -> np.ndarray:
        check_is_fitted(self)
        check_parameters(InspectionParameters, {"importance_type": importance_type})
        return split_importances(self.model_, importance_type)

    def validation_importances(
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
    ) -> ValidationImportances:
        """Measure importances on validation rows, beside those of features without information.

        Importances from splits are those of the training rows, where noise seems to matter. Here
        each repetition trains anew on `X` with a shadow of each feature, a copy with its rows
        shuffled, and measures features and shadows on `X_val`. A feature counts if it has more, on
        average, than the best shadow of any repetition. The estimator's parameters are used; it
        need not be fitted, and stays as it is.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            To train on: an array, a list or a frame, as for ``fit``; not sparse, not binned.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
        X_val : array-like of shape (n_validation_samples, n_features)
            To measure on. Categories that no training row has count as missing, without a warning.
        y_val : array-like of shape (n_validation_samples,) or like `y`
            Their targets.
        sample_weight_val : array-like of shape (n_validation_samples,), optional
            Their weights.
        method : {"permutation", "shap"}, default="permutation"
            "permutation": by how much the score falls when the values of the feature are shuffled.
            "shap": mean absolute SHAP value, of several outputs their sum; the targets `y_val` do
            not matter for it.
        scoring : str, callable or None, default=None
            Score for "permutation": a scorer of scikit-learn or its name. None: R² or accuracy.
        n_repeats : int, default=10
            How many times to train and measure. The chance that any feature without information
            passes is about ``1 / (1 + n_repeats)``.
        random_state : int, RandomState instance, Generator or None, default=None
            Decides on all orders of rows. None: `random_state` of the estimator.

        Returns
        -------
        ValidationImportances
            ``importances_mean``, ``importances_std``, ``exceeds_baseline`` and more; printed, a
            table.

        Raises
        ------
        ValueError
            If an argument is out of range, or as `fit` does.
        TypeError
            If `X` or `X_val` is sparse or a BinnedMatrix.

        See Also
        --------
        sklearn.inspection.permutation_importance : The same of a fitted model, without baseline.

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
        return shadowed_importances(
            self,
            (X, y, sample_weight),
            (X_val, y_val, sample_weight_val),
            method=method,
            scoring=scoring,
            n_repeats=n_repeats,
            random_state=self.random_state if random_state is None else random_state,
        )
