"""What a fit comes to: the trained model, how training went, and a report.

Each says which attributes an estimator keeps it in.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from sklboost.data.row_arrays import row_blocks
from sklboost.engine.model import Model
from sklboost.engine.structs import TrainingBins
from sklboost.estimators.fit.binned import Binned
from sklboost.estimators.input.feature_names import name_text
from sklboost.estimators.predict.fitted_model import TrainedModel


@dataclass(frozen=True)
class FitReport:
    """Where the time of a fit went, and what it saw and made.

    Attributes
    ----------
    seconds : dict of str to float
        ``"choosing"`` parameters by a preset, ``"checks"`` of the arguments, ``"binning"``,
        ``"boosting"`` (growing trees), ``"evaluation"`` (scoring validation data), ``"refit"`` on
        all rows, ``"other"``, and ``"total"``, their sum.
    n_samples : int
        Rows that trees were grown on: of positive weight, not held out. A row of weight 2 is one.
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
    traffic : dict of str to tuple of int
        On a cluster, how many messages, and bytes, its workers sent to one another, by what for:
        ``"scales"`` of gradients, cells of ``"histograms"``, best ``"splits"`` and others; those of
        the last workers, if some were lost on the way. Else empty.
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
    traffic: dict[str, tuple[int, int]]

    def __str__(self) -> str:
        lines = []
        for field in fields(self):
            value = getattr(self, field.name, {})  # reports of earlier versions have no traffic
            if field.name == "seconds":
                value = ", ".join(f"{name} {spent:.4f}" for name, spent in value.items())
            elif field.name == "constant_features":
                value = ", ".join(value) or "none"
            elif field.name == "traffic":
                parts = (f"{name} {n:,} ({size:,} bytes)" for name, (n, size) in value.items())
                value = ", ".join(parts) or "none"
            lines.append(f"{field.name.replace('_', ' '):<21} {value}")
        return "\n".join(lines)


class ChosenParams(dict[str, Any]):
    """Values of parameters that a preset has chosen, by name, and why.

    ``estimator.set_params(**chosen, preset=None)`` fits the same model to the same data, bit for
    bit. Printed, they have a line each, with the reason.

    Parameters
    ----------
    values : mapping of str to object
    reasons : mapping of str to str
        Why, for each of them; an attribute.
    """

    def __init__(self, values: Mapping[str, Any], reasons: Mapping[str, str]):
        super().__init__(values)
        self.reasons = dict(reasons)

    def __str__(self) -> str:
        shown = {f"{name}={value!r}": self.reasons.get(name, "") for name, value in self.items()}
        width = max(map(len, shown), default=0)
        return "\n".join(f"{setting:<{width}}  {why}" for setting, why in shown.items())


class FitResult(NamedTuple):
    """A trained model, and how its training went."""

    trained: TrainedModel
    # by validation set and metric, one value a round
    evals_result: dict[str, dict[str, list[float]]]
    first_round: int  # of `evals_result`; not 0 if `init_model` was continued
    split_seed: int | None  # by which rows were held out for early stopping; None: none were
    # with `warm_start` and `refit`, the model that early stopping has judged
    before_refit: Model | None
    stop_reason: str  # empty for models of other libraries
    best_iteration: int | None
    best_score: float | None
    report: FitReport | None  # None for models of other libraries
    chosen: ChosenParams | None = None  # by a preset. None: there was none.

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes that an estimator keeps this in, by name."""
        kept = {
            **self.trained.attributes,
            "evals_result_": self.evals_result,
            "_first_round": self.first_round,
            "_split_seed": self.split_seed,
            "_before_refit": self.before_refit,
            "stop_reason_": self.stop_reason,
        }
        known = {
            "best_iteration_": self.best_iteration,
            "best_score_": self.best_score,
            "fit_report_": self.report,
            "chosen_params_": self.chosen,
        }
        return kept | {name: value for name, value in known.items() if value is not None}


@np.errstate(all="ignore")
def describe_fit(
    trained: TrainedModel,
    binned: Binned,
    *,
    n_samples: int,
    n_validation_samples: int,
    n_threads: int,
    seconds: dict[str, float],
    traffic: dict[str, tuple[int, int]],
) -> FitReport:
    """Return the report of a finished fit; `seconds` by phase, without their sum."""
    model, names, matrix = trained.model, trained.features.keys, binned.matrix
    constant = binned.is_constant
    numbers = _constant_features(matrix) if constant is None else np.flatnonzero(constant)
    return FitReport(
        seconds={**seconds, "total": sum(seconds.values())},
        n_samples=n_samples,
        n_validation_samples=n_validation_samples,
        n_features=model.n_features,
        n_bins=int(matrix.bin_starts[-1]),
        constant_features=[name_text(names[i]) for i in numbers],
        n_rounds=model.n_rounds,
        n_trees=model.n_trees,
        n_leaves=int((model.nodes.left < 0).sum()),
        n_pruned_splits=int(model.n_pruned.sum()),
        n_threads=n_threads,
        traffic=traffic,
    )


def _constant_features(matrix: TrainingBins) -> list[int]:
    """Return the features whose rows are all in one bin."""
    # one value and missing ones are two bins; so are missing ones alone
    few = np.flatnonzero(np.diff(matrix.bin_starts) <= 2)
    n_rows, constant, counts = len(matrix.rows), [], {}
    for feature in few:
        place, n_bins = matrix.places[feature], np.diff(matrix.bin_starts)[feature]
        if place.column not in counts:
            column = matrix.columns[place.column]
            n_cells = np.diff(matrix.cell_starts)[place.column]
            counts[place.column] = np.zeros(n_cells, dtype=np.int64)
            for rows in row_blocks(n_rows):  # bincount makes integers of 8 bytes of the bins
                counts[place.column] += np.bincount(column[rows], minlength=n_cells)
        first = place.first_cell - matrix.cell_starts[place.column]
        cells = counts[place.column][first : first + n_bins - place.is_shared]
        if cells.max(initial=0) == n_rows or (place.is_shared and not cells.any()):
            constant.append(int(feature))
    return constant
