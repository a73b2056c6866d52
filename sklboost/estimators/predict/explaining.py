"""What a fitted estimator tells about itself: methods of the estimators.

Each imports what it needs when it is called, since most models are never asked.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sklboost.estimators.input.arguments import GivenSet
from sklboost.estimators.parameters.docstrings import methods_documented
from sklboost.estimators.predict.fitted_model import HasFittedModel

if TYPE_CHECKING:
    from sklboost.inspection.derivation.derivation import Derivation


@methods_documented
class ExplainingMixin(HasFittedModel):
    """Methods that derive what is in a fitted estimator, number by number; and its page."""

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
        split was kept or pruned, outputs and leaf values. Its numbers are those of the training.

        Parameters
        ----------
        tree : int
            Counted from 0 over all rounds. For several targets, labels or more than two classes
            tree t belongs to number ``t % n_outputs`` of them.
        node : int, default=0
            As in :meth:`apply`. With `keep_pruned` also nodes that pruning removed, which are
            numbered after those of the tree.
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
        from sklboost.estimators.predict.derivations import derive_split

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
        base_margin
        iteration_range
        full : bool, default=False
            Whether to show all steps of all trees instead of a summary.

        Returns
        -------
        Derivation
            As :meth:`explain_split` returns it. Its last numbers are those of `predict`, or of
            `predict_proba`. ``.sections`` and ``.steps`` have all trees in any case.

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
        from sklboost.estimators.predict.derivations import derive_row

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
            Their targets, to show beside the predictions.
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
