"""What XGBoost's estimators have under names of their own, and where to find what is not here.

Results of a fit are attributes ending in an underscore, as scikit-learn has them; code written for
XGBoost asks for them by other names.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklboost.estimators.fit.fitting_mixin import FittingMixin
from sklboost.estimators.parameters.boosting import rounds_and_trees
from sklboost.estimators.parameters.docstrings import methods_documented
from sklboost.estimators.predict.fitted_model import HasFittedModel
from sklboost.objectives.links import SOFTMAX

_NODES = "trees_to_dataframe() has the nodes, get_score() the importances, model_ the arrays"
_BOOSTER = f"to_xgboost() makes one; {_NODES}"
_AFTER_STOPPING = "it is known after early stopping only: set early_stopping_rounds"

# What other libraries, or other estimators of this one, have: where it is.
_ELSEWHERE = {
    "get_booster": _BOOSTER,
    "booster_": _NODES,
    "estimators_": _NODES,
    "to_lightgbm": "save_model and to_xgboost are for XGBoost and treelite, sklboost.onnx for ONNX",
    "get_xgb_params": "get_params() returns the parameters",
    "best_iteration_": _AFTER_STOPPING,
    "best_score_": _AFTER_STOPPING,
    "coef_": "trees have no coefficients; shap_values(X) says what each feature adds to a row",
    "decision_function": "predict(X, output_margin=True) returns raw scores",
    "predict_proba": "a regressor predicts numbers; probabilities are for XGBClassifierLite",
    "feature_names_in_": "only columns whose names are all strings give it",
    "feature_name_": "it is feature_names_in_",
    "n_features_": "it is n_features_in_",
    "n_iter_": "it is n_estimators_",
    "validation_score_": "evals_result_ has the metrics of every round",
    "train_score_": "evals_result_ has the metrics of every round; of the training if X_val is X",
}


@methods_documented
class XGBoostNamesMixin(FittingMixin, HasFittedModel):
    """Methods and attributes by which XGBoost's estimators tell what a fit was."""

    evals_result_: dict[str, dict[str, list[float]]]
    best_iteration_: int
    best_score_: float

    def evals_result(self) -> dict[str, dict[str, list[float]]]:
        """Return the metrics after each round, `evals_result_`.

        Returns
        -------
        dict
            Such as ``{"validation_0": {"logloss": [0.61, 0.55]}}``.

        Raises
        ------
        ValueError
            If there was no validation data.
        """
        check_is_fitted(self)
        if not self.evals_result_:
            raise ValueError(
                "there are no metrics, because the fit had no validation data: give it eval_set, "
                "X_val and y_val, or set early_stopping_rounds"
            )
        return self.evals_result_

    def get_num_boosting_rounds(self) -> int:
        """Return the number of rounds that a fit does at most: of a forest 1.

        Returns
        -------
        int
        """
        return rounds_and_trees(self, self._is_forest)[0]

    @property
    def best_iteration(self) -> int:
        """The best round, from 0: `best_iteration_`. Only with early stopping."""
        check_is_fitted(self)
        return self.best_iteration_

    @property
    def best_score(self) -> float:
        """The metric at that round: `best_score_`. Only with early stopping."""
        check_is_fitted(self)
        return self.best_score_

    @property
    def intercept_(self) -> np.ndarray:
        """The base score: what is predicted before the first tree; shape (n_outputs,).

        For two classes the probability of ``classes_[1]``, for more their raw scores.
        """
        fitted = self._fitted
        start = fitted.model.base_score + fitted.shift
        if fitted.loss.link == SOFTMAX:
            return start
        return np.atleast_1d(fitted.loss.predictions(start[:, np.newaxis])).reshape(-1)

    if not TYPE_CHECKING:  # to a type checker, any attribute would then be there

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, with the way to what has another name or place here."""
            known = getattr(type(self), name, None)
            if isinstance(known, property):  # its own error, perhaps that nothing is fitted
                return known.fget(self)
            remedy = f": {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
            text = f"{type(self).__name__!r} object has no attribute {name!r}{remedy}"
            raise AttributeError(text, name=name, obj=self)
