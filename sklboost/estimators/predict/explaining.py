"""Methods that explain a fitted estimator: SHAP values, importances, derivations, its page.

Most models are never asked, so each method imports what it needs when it is called.
"""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sklboost.estimators.input.rows import GivenSet
from sklboost.estimators.parameters.boosters import Parameters
from sklboost.estimators.parameters.docstrings import methods_documented
from sklboost.estimators.parameters.rules import check_parameters, value_of
from sklboost.estimators.predict.fitted_model import HasFittedModel, by_partitions
from sklboost.inspection.importances import scaled_to_one, split_importances

if TYPE_CHECKING:
    from sklboost.estimators.predict.explanations import ExplainedRows
    from sklboost.inspection.derivation import Derivation
    from sklboost.inspection.importances import ValidationImportances


@methods_documented
class ExplainingMixin(HasFittedModel):
    """Methods that say what features add, which of them matter, and where each number is from."""

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
        sklboost.shap.TreeExplainer : ``import sklboost.shap`` lets shap take the estimator.

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
        from sklboost.estimators.predict.explanations import explained_rows

        return explained_rows(self._fitted, X, X_background, by_position)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Importance of each feature by its splits, scaled to sum 1; shape (n_features,).

        The parameter `importance_type` says what is measured.
        """
        return scaled_to_one(self._split_importances(value_of(self, "importance_type")))

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
        importances = self._split_importances(importance_type)
        names = self._fitted.feature_names
        counts = Counter(names)
        labels = [
            name if counts[name] == 1 else f"{name} (column {i})" for i, name in enumerate(names)
        ]
        used = np.flatnonzero(self._split_importances("weight"))
        return {labels[feature]: float(importances[feature]) for feature in used}

    def _split_importances(self, importance_type: str) -> np.ndarray:
        check_parameters(Parameters, {"importance_type": importance_type})
        return split_importances(self._fitted.model, importance_type)

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

    @np.errstate(all="ignore")
    def explain_split(
        self,
        tree: int,
        node: int = 0,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        base_margin: Any = None,
    ) -> "Derivation":
        """Derive the split of a node, or why it is a leaf, step by step.

        The derivation has the sums of gradients and hessians, similarities, gain, cover, why the
        split was kept or pruned, outputs and leaf values. Its numbers come from the training.

        Parameters
        ----------
        tree : int
            Counted from 0 over all rounds. For several targets, labels or more than two classes
            tree t belongs to number ``t % n_outputs`` of them.
        node : int, default=0
            As in :meth:`apply`. With `keep_pruned` also nodes that pruning removed, which are
            numbered after the nodes of the tree.
        X : array-like of shape (n_samples, n_features), optional
            Training rows, which a model does not keep, to find those that reach the node.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
            Their targets, to add up the gradients of these rows and compare the sums.
        sample_weight : array-like of shape (n_samples,), optional
            Their weights in training.
        base_margin : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Their `base_margin` in training.

        Returns
        -------
        Derivation
            To print, or as ``.text``, ``.latex`` and ``.html``; ``.result("gain")`` is one of its
            numbers.

        Raises
        ------
        ValueError
            If there is no such tree or node, if `y` is given without `X`, or weights or margins
            without `y`.

        Examples
        --------
        >>> from sklboost import XGBRegressorLite
        >>> dosage, effect = [[10], [20], [25], [35]], [-10, 7, 8, -7]
        >>> settings = dict(n_estimators=1, learning_rate=1, reg_lambda=0, base_score=0.5)
        >>> model = XGBRegressorLite(max_depth=2, gamma=130, **settings).fit(dosage, effect)
        >>> split = model.explain_split(tree=0, node=2)
        >>> round(split.result("gain"), 4)
        140.1667
        >>> for line in split.text.splitlines()[17:24]:
        ...     print(line)
        Similarities
          similarity of this node: S = G² / (H + λ) = (-6.5)² / (3 + 0) = 14.0833
          similarity of the left child: S_L = G_L² / (H_L + λ) = (-14)² / (2 + 0) = 98
          similarity of the right child: S_R = G_R² / (H_R + λ) = 7.5² / (1 + 0) = 56.25
        <BLANKLINE>
        Gain
          gain of the split: gain = S_L + S_R - S = 98 + 56.25 - 14.0833 = 140.1667
        """
        from sklboost.estimators.predict.explanations import derive_split

        given = GivenSet("X", "X", X, y, sample_weight, base_margin)
        return derive_split(self._fitted, self, tree, node, given)

    @np.errstate(all="ignore")
    def explain_prediction(
        self,
        x: Any,
        *,
        base_margin: Any = None,
        iteration_range: tuple[int, int] | None = None,
        full: bool = False,
    ) -> "Derivation":
        """Derive the prediction of one row: its path through all trees, and the running raw score.

        If that has more than 25 lines, a summary is shown: the start value, the sum of the trees,
        the trees and features that add most, and what the sum means.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (1, n_features)
            A row, or a table of one row.
        full : bool, default=False
            Whether to show all steps of all trees instead of a summary.

        Returns
        -------
        Derivation
            As :meth:`explain_split` returns it. Its last numbers are what `predict`, or
            `predict_proba`, returns. ``.sections`` and ``.steps`` have all trees in any case.

        Raises
        ------
        ValueError
            If there are several rows, or as `predict` does.

        Examples
        --------
        >>> from sklboost import XGBClassifierLite
        >>> X, y = [[0], [1], [2], [3]], ["no", "yes", "yes", "no"]
        >>> model = XGBClassifierLite(n_estimators=2, max_depth=2, min_child_weight=0).fit(X, y)
        >>> print(model.explain_prediction([1]))
        Prediction of one row by 2 trees
        <BLANKLINE>
        Start
          log-odds of the starting probability p: F_0 = log(p / (1 - p)) = log(0.5 / (1 - 0.5)) = 0
        <BLANKLINE>
        Tree 0
          node 0: f0 = 1 ≥ 0.5 → node 2
          node 2: f0 = 1 < 2.5 → node 3
          raw score after leaf 3: F_1 = F_0 + η · w = 0 + 0.3 · 0.666667 = 0.2
        <BLANKLINE>
        Tree 1
          node 0: f0 = 1 ≥ 0.5 → node 2
          node 2: f0 = 1 < 2.5 → node 3
          raw score after leaf 3: F_2 = F_1 + η · w = 0.2 + 0.3 · 0.602215 = 0.380665
        <BLANKLINE>
        Prediction
          probability: p = 1 / (1 + exp(-F_2)) = 1 / (1 + exp(-0.380665)) = 0.594033
          Predicted class: 'yes'.
        """
        from sklboost.estimators.predict.explanations import derive_row

        return derive_row(self._fitted, x, base_margin, iteration_range, full)

    @np.errstate(all="ignore")
    def to_html(
        self,
        path: str | os.PathLike[str],
        X: Any = None,
        y: Any = None,
        *,
        rows: Sequence[int] | None = None,
        derivations: bool = True,
        title: str | None = None,
    ) -> None:
        """Write the model as one HTML file, which a browser opens without a network.

        The page shows the trees, the derivation of each node, what a larger `gamma` would prune,
        importances and learning curves; and for rows their path through each tree and what each
        feature adds to their raw scores.

        Parameters
        ----------
        path : str or path-like
            The file, which is overwritten.
        X : array-like of shape (n_samples, n_features), optional
            Rows to explain.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
            Their targets, to show with the predictions.
        rows : sequence of int, optional
            Numbers of the rows of `X` to explain, from 0; the first 20 if not given.
        derivations : bool, default=True
            Whether nodes have derivations: a second and 0.8 MB for 5,000 nodes.
        title : str, optional
            Title of the page; the name of the estimator and its number of trees if not given.

        Raises
        ------
        ValueError
            If `X` has no such rows, if `y` or `rows` are given without `X`, or as `predict` does.
        OSError
            If the file cannot be written.

        See Also
        --------
        explain_split : The derivation of one node.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from sklearn.datasets import load_iris
        >>> from sklboost import XGBClassifierLite
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = XGBClassifierLite(n_estimators=5, max_depth=2).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = Path(folder) / "model.html"
        ...     model.to_html(page, X, y, rows=[0, 70, 120])
        ...     print(page.read_text(encoding="utf-8")[:15])
        <!DOCTYPE html>
        """
        from sklboost.estimators.predict.page import model_page

        text = model_page(self._fitted, self, (X, y, rows), derivations, title)
        Path(path).write_text(text, encoding="utf-8", newline="\n")
