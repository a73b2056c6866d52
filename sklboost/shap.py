"""The shap package explains the estimators: importing this module lets its explainers take them.

``shap.TreeExplainer(model)`` and ``shap.Explainer(model)`` then give the exact values of
``model.shap_values``, of categories, too. It needs shap: ``pip install "sklboost[plot]"``.
"""

from functools import wraps
from typing import Any

import numpy as np
import pandas as pd

try:
    import shap
except ImportError as error:
    raise ImportError('sklboost.shap needs shap: pip install "sklboost[plot]"') from error

from sklboost.docstrings import described_like
from sklboost.estimators.base import BaseBooster
from sklboost.estimators.predict.explanations import ExplainedRows, as_table, explained_rows

__all__ = ["TreeExplainer"]


class TreeExplainer(shap.TreeExplainer):
    """The counterpart of ``shap.TreeExplainer(model)`` for an estimator of this package.

    Parameters
    ----------
    model : estimator
        Fitted, with constant leaves; of a pipeline its last step, ``pipeline[-1]``.
    data : array-like of shape (n_backgrounds, n_features) or shap.maskers.Independent, optional
        Background rows, whose values stand in for unknown features. Without them rows are
        spread over the branches as the training rows were, by cover.
    model_output : {"raw"}, default="raw"
        The raw score: log-odds of two classes, logarithms of means.
    feature_perturbation : {"auto", "interventional", "tree_path_dependent"}, default="auto"
        "tree_path_dependent" does not look at `data`; "interventional" needs them; "auto" takes
        them where they are given.
    feature_names : list of str, optional
        For explanations; the names of the fit if not given.
    **ignored
        Other arguments of ``shap.TreeExplainer``: `link`, `linearize_link` and `approximate`, which
        it does not use either or which exact values do without.

    Attributes
    ----------
    expected_value : float, or ndarray of float64 of shape (n_outputs,)
        The mean raw score, to which a row's values add up to its raw score.

    Raises
    ------
    ValueError
        If `model_output` is another than "raw", if there are no background rows for
        "interventional", or if leaves are linear.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Examples
    --------
    >>> import shap
    >>> import sklboost.shap
    >>> from sklboost import XGBRegressorLite
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = XGBRegressorLite(n_estimators=20).fit(X, y)
    >>> explainer = shap.TreeExplainer(model)
    >>> values = explainer.shap_values(X)
    >>> bool(abs(values.sum(axis=1) + explainer.expected_value - model.predict(X)).max() < 1e-10)
    True
    """

    def __init__(
        self,
        model: BaseBooster,
        data: Any = None,
        model_output: str = "raw",
        feature_perturbation: str = "auto",
        feature_names: list[str] | None = None,
        **ignored: Any,
    ):
        if model_output != "raw":
            raise ValueError(
                f"model_output={model_output!r}: the trees of {type(model).__name__} are explained "
                'in the raw score, so pass model_output="raw", or explain model.predict_proba by '
                "shap.PermutationExplainer"
            )
        if feature_perturbation not in ("auto", "interventional", "tree_path_dependent"):
            raise ValueError(
                f"feature_perturbation={feature_perturbation!r}: it must be 'auto', "
                "'interventional' or 'tree_path_dependent'"
            )
        if feature_perturbation == "interventional" and data is None:
            raise ValueError(
                "feature_perturbation='interventional' needs background rows: pass data, 100 to "
                "1,000 rows of the training for instance, or take 'auto'"
            )
        if feature_perturbation == "tree_path_dependent":
            data = None
        fitted = model._fitted
        if isinstance(data, shap.maskers.Independent):
            masker, data = data, data.data  # the values, if it was made of a frame
            names = getattr(masker, "feature_names", None)
            names = fitted.features.names if names is None else names
            if names is not None:
                data = pd.DataFrame(data, columns=names).infer_objects()
        # the model as it is now, should the estimator be fitted again
        self._rows = explained_rows(fitted, None, data, by_position=False)
        mean = self._rows.mean_raw_score(None)
        self.expected_value = mean if len(mean) > 1 else float(mean[0])
        self.model, self.data, self.masker, self.model_output = model, data, None, model_output
        self.feature_perturbation = "tree_path_dependent" if data is None else "interventional"
        self.feature_names = self.data_feature_names = feature_names or fitted.feature_names

    def shap_values(
        self,
        X: Any,
        y: Any = None,
        tree_limit: int | None = None,
        approximate: bool = False,
        check_additivity: bool = True,
        from_call: bool = False,
    ) -> np.ndarray:
        """Compute what each feature adds to the raw scores of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or one row of shape (n_features,)
            Rows as `predict` takes them.
        y : None
            Only losses would need targets, which are not explained.
        tree_limit : int, optional
            The number of rounds to explain; None and -1: all.
        approximate : bool, default=False
            Without effect: exact values take no longer.
        check_additivity : bool, default=True
            Whether to check that the values of all rounds add up to raw scores.
        from_call : bool, default=False
            Without effect here.

        Returns
        -------
        ndarray of float64
            Shape (n_samples, n_features), with n_outputs as last axis if there are several raw
            scores a row, and without the first axis for one row.

        Raises
        ------
        shap.utils._exceptions.ExplainerError
            If values do not add up.
        """
        rows, rounds, is_one = self._read(X, y, tree_limit)
        values = rows.values(rounds)
        if check_additivity and rounds is None:
            raw_score, several = rows.raw_scores(rows.X, rounds), values.ndim > 2
            by_output = list(np.moveaxis(values, -1, 0)) if several else values
            self.assert_additivity(by_output, raw_score.T if several else raw_score[0])
        return values[0] if is_one else values

    @described_like(shap_values)
    def shap_interaction_values(
        self, X: Any, y: Any = None, tree_limit: int | None = None
    ) -> np.ndarray:
        """Compute what each pair of features adds to the raw scores of rows.

        Returns
        -------
        ndarray of float64
            Shape (n_samples, n_features, n_features), with n_outputs as last axis if there are
            several raw scores a row, and without the first axis for one row.
        """
        rows, rounds, is_one = self._read(X, y, tree_limit)
        values = rows.interactions(rounds)
        return values[0] if is_one else values

    def _read(
        self, X: Any, y: Any, tree_limit: int | None
    ) -> tuple[ExplainedRows, tuple[int, int] | None, bool]:
        """Return rows, rounds, and whether there is one row, given as such."""
        if y is not None:
            raise ValueError("y is given, but raw scores are explained, no losses: leave y out")
        is_one = getattr(X, "ndim", 2) == 1
        X = as_table(X) if is_one else X
        rounds = None if tree_limit is None or tree_limit < 0 else (0, tree_limit)
        return self._rows._replace(X=self._rows.fitted.read(X)), rounds, is_one


_of_others, _supports_others = (
    shap.TreeExplainer.__init__,
    shap.TreeExplainer.supports_model_with_masker,
)


@wraps(_of_others)
def _explain(self: shap.TreeExplainer, model: Any, *arguments: Any, **named: Any) -> None:
    if type(self) is shap.TreeExplainer and isinstance(model, BaseBooster):
        self.__class__ = TreeExplainer
        TreeExplainer.__init__(self, model, *arguments, **named)
    else:
        _of_others(self, model, *arguments, **named)


@wraps(_supports_others)
def _supports(model: Any, masker: Any) -> bool:
    if isinstance(model, BaseBooster):
        return masker is None or isinstance(masker, shap.maskers.Independent)
    return bool(_supports_others(model, masker))


# shap has no list of models that others could add to: it knows them by the names of their classes.
shap.TreeExplainer.__init__ = _explain
shap.TreeExplainer.supports_model_with_masker = staticmethod(_supports)
