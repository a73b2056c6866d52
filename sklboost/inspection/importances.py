"""Importances of features: from the splits of a model, and on validation rows."""

from dataclasses import dataclass

import numpy as np

from sklboost.engine.model import Model

# XGBoost's names. The first is the default.
IMPORTANCE_TYPES = ("gain", "total_gain", "cover", "total_cover", "weight")


@np.errstate(all="ignore")
def split_importances(model: Model, importance_type: str) -> np.ndarray:
    """Return the importance of each feature, float64, as XGBoost's ``get_score``."""
    splits = model.nodes[model.nodes.left >= 0]
    n_splits = np.bincount(splits.feature, minlength=model.n_features)
    if importance_type == "weight":
        return n_splits.astype(np.float64)
    counted = splits.gain if importance_type.endswith("gain") else splits.cover
    total = np.bincount(splits.feature, weights=counted, minlength=model.n_features)
    return total if importance_type.startswith("total") else total / np.maximum(n_splits, 1)


@np.errstate(all="ignore")
def scaled_to_one(importances: np.ndarray) -> np.ndarray:
    """Return importances divided by their sum; negative ones count as 0, and 0 stays 0."""
    # with pruning="full" the gains of kept splits can add up to less than 0: no importance
    importances = np.maximum(importances, 0.0)
    return importances / (importances.sum() or 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class ValidationImportances:
    """Importances of features, and of shadows without information, on validation rows.

    Attributes
    ----------
    feature_names : list of str
    importances : ndarray of float64, shape (n_features, n_repeats)
        Each repetition trains anew, among new shadows.
    shadow_importances : ndarray of float64, shape (n_features, n_repeats)
        Importances of the shadow of each feature.
    method : str
        What is measured, ``"permutation"`` or ``"shap"``.
    """

    feature_names: list[str]
    importances: np.ndarray
    shadow_importances: np.ndarray
    method: str

    @property
    def importances_mean(self) -> np.ndarray:
        """Mean of each feature's importances, shape (n_features,)."""
        return self.importances.mean(axis=1)

    @property
    def importances_std(self) -> np.ndarray:
        """Standard deviation of each feature's importances, shape (n_features,)."""
        return self.importances.std(axis=1)

    @property
    def baseline(self) -> np.ndarray:
        """The largest importance of a shadow in each repetition, at least 0; shape (n_repeats,)."""
        return self.shadow_importances.max(axis=0, initial=0.0)

    @property
    def p_values(self) -> np.ndarray:
        """How often chance gives any shadow as much as the feature has on average, (n_features,).

        The share of repetitions, one counted in addition, whose best shadow has it. That is the
        test of Westfall & Young (1993): the chance that any feature without information gets as
        small a number is no larger than the number, however many features there are.
        """
        reached = self.baseline >= self.importances_mean[:, np.newaxis]
        return (1 + reached.sum(axis=1)) / (1 + len(self.baseline))

    @property
    def exceeds_baseline(self) -> np.ndarray:
        """Which features have on average more than the best shadow of any repetition, of bool.

        With ten repetitions, one in eleven data sets has a feature without information among them.
        """
        return self.importances_mean > self.baseline.max()

    def __repr__(self) -> str:
        """Return a line for each feature, the most important first, and one for the baseline."""
        means, deviations = self.importances_mean, self.importances_std
        exceeds = self.exceeds_baseline
        width = max(map(len, [*self.feature_names, "best shadow"]))
        lines = [
            f"ValidationImportances: {exceeds.sum()} of {len(means)} features exceed the best "
            f"shadow of all {self.importances.shape[1]} repetitions ({self.method})"
        ]
        rows = [
            (means[i], deviations[i], self.feature_names[i], "" if exceeds[i] else "  not above")
            for i in range(len(means))
        ]
        for mean, deviation, name, remark in sorted(rows, key=lambda row: -row[0]):
            lines.append(f"  {name:<{width}}  {mean:10.4g} +- {deviation:<9.3g}{remark}".rstrip())
        at = 1 + int(exceeds.sum())
        lines.insert(at, f"  {'best shadow':<{width}}  {self.baseline.max():10.4g}")
        return "\n".join(lines)
