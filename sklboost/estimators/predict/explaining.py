"""The estimators' methods that derive a split, a leaf or a prediction, number by number."""

from typing import Any

from sklearn.utils.validation import check_is_fitted

from sklboost.estimators.predict.derivations import check_given, derive_row, derive_split
from sklboost.inspection.derivation.steps import Derivation


class ExplainingMixin:
    """Derivations of what is in a fitted estimator."""

    def explain_split(
        self,
        tree: int,
        node: int = 0,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        base_margin: Any = None,
    ) -> Derivation:
        """Derive the split of a node, or why it is a leaf, by hand.

        Sums of gradients and hessians, similarities, gain, cover, whether and why the split was
        kept or pruned, outputs, leaf values: the numbers are those of the training.

        Parameters
        ----------
        tree : int
            Counted from 0 over all rounds. For several targets, labels or more than two classes
            tree t belongs to number ``t % n_outputs`` of them.
        node : int, default=0
            As in :meth:`apply`. With `keep_pruned` also nodes that pruning removed: their numbers
            come after those of the tree.
        X : array-like of shape (n_samples, n_features), optional
            Training data: which rows come to the node, which a model does not keep.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
            Their targets: what their gradients were, and whether they add up to the node's.
        sample_weight : array-like of shape (n_samples,), optional
        base_margin : array-like of shape (n_samples,) or (n_samples, n_outputs), optional

        Returns
        -------
        Derivation
            Print it; ``.text``, ``.latex`` and ``.html`` are its forms, ``.result("gain")`` one of
            its numbers.

        Raises
        ------
        ValueError
            If there is no such tree or node, or if there are targets, weights or margins, but no
            rows or targets that they are for.

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
        check_is_fitted(self)
        check_given(X, y, sample_weight, base_margin)
        return derive_split(self, (tree, node), (X, y, sample_weight, base_margin))

    def explain_prediction(
        self,
        x: Any,
        *,
        base_margin: Any = None,
        iteration_range: tuple[int, int] | None = None,
    ) -> Derivation:
        """Derive the prediction of one row: its way through all trees, and the running raw score.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (1, n_features)
            A row, or a table of one row.
        base_margin : array-like of shape (1,) or (1, n_outputs), optional
            Raw scores to start from, in place of those the model started from.
        iteration_range : tuple of int, optional
            Rounds to use: the first and the one after the last, ``(0, k)`` for the first k rounds;
            ``(0, 0)``: all.

        Returns
        -------
        Derivation
            As of :meth:`explain_split`. The last numbers are those of `predict`, or of
            `predict_proba`.

        Raises
        ------
        ValueError
            If there are several rows, and as `predict` does.

        Examples
        --------
        >>> from sklboost import XGBClassifierLite
        >>> X, y = [[0], [1], [2], [3]], ["no", "yes", "yes", "no"]
        >>> model = XGBClassifierLite(n_estimators=2, max_depth=2, min_child_weight=0).fit(X, y)
        >>> print(model.explain_prediction([1]))
        Prediction of one row by 2 tree(s)
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
        check_is_fitted(self)
        return derive_row(self, x, base_margin, iteration_range)
