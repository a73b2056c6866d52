"""What a fit reports of itself."""

from dataclasses import dataclass, fields

import numpy as np

from sklboost.engine.model import Model
from sklboost.engine.structs import TrainingBins


@dataclass(frozen=True)
class FitReport:
    """Where the time of a fit went, and what it saw and made.

    Attributes
    ----------
    seconds : dict of str to float
        ``"checks"`` of the arguments, ``"binning"``, ``"boosting"`` (growing trees),
        ``"evaluation"`` (scoring validation data), ``"refit"`` on all rows, ``"other"``, and
        ``"total"``, their sum.
    n_samples : int
        Rows that trees were grown on: of positive weight, not held out.
    n_validation_samples : int
        Rows of all validation data.
    n_features : int
        Columns of `X`.
    n_bins : int
        Bins of all features together, those of missing values included.
    constant_features : list of str
        Names of features with the same value, or missing, in every row of `n_samples`; ``f0``,
        ``f1``, ... where `X` had no names. No tree can use them.
    n_rounds, n_trees, n_leaves : int
        Of the whole model, a continued one included.
    n_pruned_splits : int
        Splits of these trees that pruning removed.
    n_threads : int
        Threads that did the work.
    """

    seconds: dict[str, float]
    n_samples: int
    n_validation_samples: int
    n_features: int
    n_bins: int
    constant_features: list[str]
    n_rounds: int
    n_trees: int
    n_leaves: int
    n_pruned_splits: int
    n_threads: int

    def __str__(self) -> str:
        lines = []
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "seconds":
                value = ", ".join(f"{name} {spent:.4f}" for name, spent in value.items())
            elif field.name == "constant_features":
                value = ", ".join(value) or "none"
            lines.append(f"{field.name.replace('_', ' '):<21} {value}")
        return "\n".join(lines)


def describe_fit(
    model: Model,
    matrix: TrainingBins,
    feature_names: list[str],
    n_validation_samples: int,
    n_threads: int,
    seconds: dict[str, float],
) -> FitReport:
    """Put the report of a finished fit together."""
    constant = _constant_features(matrix)
    return FitReport(
        seconds=seconds,
        n_samples=len(matrix.rows),
        n_validation_samples=n_validation_samples,
        n_features=model.n_features,
        n_bins=int(matrix.bin_starts[-1]),
        constant_features=[feature_names[i] for i in constant],
        n_rounds=model.n_rounds,
        n_trees=model.n_trees,
        n_leaves=int((model.nodes.left < 0).sum()),
        n_pruned_splits=int(model.n_pruned.sum()),
        n_threads=n_threads,
    )


def _constant_features(matrix: TrainingBins) -> list[int]:
    """Give the features whose rows are all in one bin."""
    # one value and missing ones are two bins; so are missing ones alone
    few = np.flatnonzero(np.diff(matrix.bin_starts) <= 2)
    n_rows, constant, counts = len(matrix.rows), [], {}
    for feature in few:
        place, n_bins = matrix.places[feature], np.diff(matrix.bin_starts)[feature]
        if place.column not in counts:
            counts[place.column] = np.bincount(matrix.columns[place.column])
        first = place.first_cell - matrix.cell_starts[place.column]
        own = counts[place.column][first : first + n_bins - place.is_shared]
        if own.max(initial=0) == n_rows or (place.is_shared and not own.any()):
            constant.append(int(feature))
    return constant
