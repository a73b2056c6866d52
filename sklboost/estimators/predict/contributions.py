"""SHAP values of rows, in the shapes of the shap package and of XGBoost."""

from typing import Any, NamedTuple

import numpy as np

from sklboost.data.features import Features, raw_blocks
from sklboost.data.raw_values import array_of
from sklboost.engine.parallel import ThreadTeam
from sklboost.estimators.input.feature_names import order_of_fit
from sklboost.estimators.predict.fitted_model import FittedModel, add_scores
from sklboost.inspection.shap import add_contributions, lay_out_edges, mean_scores

# Rounds as users give them: the first and the one after the last.
Rounds = tuple[int, int] | None


def explained_rows(
    fitted: FittedModel, X: Any, X_background: Any, by_position: bool
) -> "ExplainedRows":
    """Check that the model can be explained, and the rows; None: rows that are put in later."""
    if fitted.model.linear is not None:
        raise ValueError(
            "SHAP values need constant leaves, and this model has linear ones: fit with "
            "linear_tree=False, or use shap.PermutationExplainer, which takes any model"
        )
    if X_background is None and not fitted.has_covers:
        raise ValueError(
            "SHAP values weigh the two sides of a split by their covers, and this model has none: "
            "XGBoost 2 keeps none for trees of several outputs. Pass X_background, rows to compare "
            "with"
        )
    known = np.empty((0, 0)) if X is None else fitted.read(X, by_position=by_position)
    background = None if X_background is None else fitted.read(X_background, "X_background")
    return ExplainedRows(fitted, known, background)


class ExplainedRows(NamedTuple):
    """Rows, the model, and perhaps rows to compare with."""

    fitted: FittedModel
    X: Features
    background: Features | None

    def values(self, rounds: Rounds) -> np.ndarray:
        """SHAP values: shape (n_samples, n_features), or (..., n_outputs) if several."""
        values = single_values(self.fitted, self.X, self.fitted.trees(rounds), self.background)
        return values if self.fitted.model.n_outputs > 1 else values[:, :, 0]

    def interactions(self, rounds: Rounds) -> np.ndarray:
        """SHAP interaction values: one more axis of features."""
        fitted, X, background = self
        model, trees = fitted.model, fitted.trees(rounds)
        values = np.zeros((len(X), model.n_features, model.n_features, model.n_outputs))
        out = values.transpose(0, 3, 1, 2)
        add_contributions(model, X, trees, background, fitted.n_jobs, out)
        return values if model.n_outputs > 1 else values[:, :, :, 0]

    def with_bias(self, base_margin: Any, rounds: Rounds, pairs: bool) -> np.ndarray:
        """SHAP values, or values of pairs, in XGBoost's shape: the bias is one more feature.

        Shape (n_samples, n_features + 1), of pairs (n_samples, n_features + 1, n_features + 1); if
        there are several raw scores per row, their number is the second dimension.
        """
        fitted, X, _ = self
        model, trees = fitted.model, fitted.trees(rounds)
        start = fitted.start(X, base_margin).T
        values = np.zeros((len(X), model.n_outputs, *(model.n_features + 1,) * (1 + pairs)))
        out = values[..., :-1, :-1] if pairs else values[..., :-1]
        add_contributions(model, X, trees, None, fitted.n_jobs, out)
        bias = values[..., -1, -1] if pairs else values[..., -1]
        bias += start + mean_scores(lay_out_edges(model), trees, model.n_outputs)
        return values if model.n_outputs > 1 else values[:, 0]

    @np.errstate(all="ignore")
    def raw_scores(self, X: Features, rounds: Rounds) -> np.ndarray:
        """Raw scores without margins, which are no part of SHAP values: (n_outputs, n_samples)."""
        fitted = self.fitted
        start = fitted.model.base_score + fitted.shift
        raw_score = np.repeat(start[:, np.newaxis], len(X), axis=1)
        add_scores(fitted.model, X, fitted.trees(rounds), raw_score, fitted.n_jobs)
        return raw_score

    @np.errstate(all="ignore")
    def mean_raw_score(self, rounds: Rounds) -> np.ndarray:
        """Mean raw score, to which SHAP values are added, shape (n_outputs,)."""
        if self.background is not None:
            return self.raw_scores(self.background, rounds).mean(axis=1)
        fitted, model = self.fitted, self.fitted.model
        mean = mean_scores(lay_out_edges(model), fitted.trees(rounds), model.n_outputs)
        return model.base_score + fitted.shift + mean

    def explanation(self, given: Any, rounds: Rounds) -> Any:
        """The values as the object that the plots of shap take; `given` are the user's rows."""
        try:
            import shap
        except ImportError as error:
            raise ImportError(
                'shap_explanation needs the shap package: pip install "sklboost[plot]"'
            ) from error
        fitted, values = self.fitted, self.values(rounds)
        has_several = fitted.model.n_outputs > 1
        with ThreadTeam(1) as team:  # the numbers that go down the trees; a copy
            data = np.concatenate([array_of(raw).copy() for _, raw in raw_blocks(team, self.X)])
        shown = None
        if hasattr(given, "to_numpy"):  # a frame, whose columns get the order of the fit
            order, shown = order_of_fit(given, fitted.features.listed_names), given.to_numpy()
            shown = shown if order is None else shown[:, list(order)]
        mean = self.mean_raw_score(rounds)
        base_values = np.repeat(mean[np.newaxis], len(values), axis=0)
        return shap.Explanation(
            values,
            base_values=base_values if has_several else base_values[:, 0],
            data=data,
            display_data=shown,
            feature_names=fitted.feature_names,
            output_names=fitted.classes if has_several else None,
        )


def single_values(
    fitted: FittedModel, X: Features, trees: tuple[int, int], background: Features | None = None
) -> np.ndarray:
    """SHAP values, shape (n_samples, n_features, n_outputs)."""
    model = fitted.model
    values = np.zeros((len(X), model.n_features, model.n_outputs))
    add_contributions(model, X, trees, background, fitted.n_jobs, values.transpose(0, 2, 1))
    return values
