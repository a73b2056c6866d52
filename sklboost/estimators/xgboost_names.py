"""Methods of XGBoost's estimators by their names, and where to find what is not here.

Results of a fit are attributes ending in an underscore, as scikit-learn has them; code written for
XGBoost asks for them by other names.
"""

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklboost.estimators.parameters.boosters import rounds_and_trees
from sklboost.estimators.parameters.docstrings import methods_documented
from sklboost.estimators.parameters.foreign_names import OTHER_ATTRIBUTES
from sklboost.estimators.predict.fitted_model import HasFittedModel
from sklboost.objectives.domains import SOFTMAX


@methods_documented
class XGBoostNamesMixin(HasFittedModel):
    """Methods and attributes by which XGBoost's estimators tell what a fit was."""

    evals_result_: dict[str, dict[str, list[float]]]
    best_iteration_: int
    best_score_: float
    _is_forest: ClassVar[bool]

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
            remedy = f": {OTHER_ATTRIBUTES[name]}" if name in OTHER_ATTRIBUTES else ""
            text = f"{type(self).__name__!r} object has no attribute {name!r}{remedy}"
            raise AttributeError(text, name=name, obj=self)
