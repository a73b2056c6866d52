"""Rows of a user's data: features, targets and all that is given row by row, chosen together.

:func:`training_rows` and :func:`validation_rows` read them from the arguments of `fit`.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array, check_consistent_length

from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.features import RemoteFeatures, join_rows, row_arrays_of
from sklboost.data.frames import dask_kind
from sklboost.data.frames.adapter import FrameAdapter
from sklboost.estimators.input.arguments import (
    FitArguments,
    GivenSet,
    one_each,
    row_values,
    row_weights,
)
from sklboost.estimators.input.feature_names import Encodings, FittedFeatures
from sklboost.estimators.input.features import (
    SHAPE_CHECKS,
    FeatureSettings,
    binned_features,
    fit_source,
    fit_table,
    read_features,
)
from sklboost.estimators.input.targets import Targets
from sklboost.objectives.loss import Loss
from sklboost.tree.core.quantization import FEW_ROWS

# Beyond, the 32 bits of a gradient sum leave a row less than two steps.
_MOST_ROWS = 2**29


class Rows(NamedTuple):
    """Rows of positive weight and of known targets.

    What is not given is empty, and stays so whatever rows are chosen.
    """

    X: Any
    # shape (n_samples,) or (n_samples, n_targets): numbers, or labels of any kind, as the user has
    # them; after `encode_targets` as the loss reads them: float64, float32 if the user's are, or
    # uint8 for numbers of up to 256 classes. NaN of several targets: not known.
    y: np.ndarray
    # float64, shape (n_samples,) or (0,): positive: the user's, until :func:`weigh_classes`
    # multiplies them. Empty: all 1.
    weight: np.ndarray
    # float64, shape (n_samples, n_outputs) or (0, 0): the user's raw scores before the first tree.
    # Empty: the model's own.
    margin: np.ndarray
    # int, shape (n_samples,) or (0,): of the rows in the user's `X`; in the validation data, -1 is
    # its first row, -2 its second. Empty: 0, 1, 2, ...
    numbers: np.ndarray = np.empty(0, dtype=np.intp)
    # shape (n_samples,) or (0,): labels of what is held out together, or not at all. Empty: each
    # row by itself.
    groups: np.ndarray = np.empty(0)

    @property
    def targets(self) -> np.ndarray:
        """Targets as losses take them, float64, shape (n_targets, n_samples)."""
        targets = self.y.reshape(len(self.y), -1).T
        if targets.dtype == np.float64 and targets.flags.c_contiguous:
            return targets
        return row_arrays_of(self.X).copy(targets, np.float64)

    def starting_scores(self, base_score: np.ndarray) -> np.ndarray:
        """Raw scores before the first tree, shape (n_outputs, n_samples): the margin, if any."""
        arrays = row_arrays_of(self.X)
        if len(self.margin) > 0:
            return arrays.copy(self.margin.T, np.float64)
        return arrays.full(base_score, len(self.y))

    @property
    def n_given(self) -> int:
        """How many of the user's rows these are: a row and its copies, which follow it, are one."""
        if len(self.numbers) == 0:
            return len(self.y)
        return 1 + int(np.count_nonzero(np.diff(self.numbers)))

    @property
    def known_numbers(self) -> np.ndarray:
        """The numbers of the rows, written out."""
        return self.numbers if len(self.numbers) else np.arange(len(self.y))

    def take(self, chosen: np.ndarray) -> "Rows":
        """Choose rows by a mask; these rows themselves, if it chooses all."""
        return self if chosen.all() else self._at(chosen)

    def join(self, other: "Rows") -> "Rows":
        """Append other rows; the result has no groups."""
        weight = np.empty(0)
        if len(self.weight) or len(other.weight):
            weight = np.concatenate(
                [
                    rows.weight if len(rows.weight) else np.ones(len(rows.y))
                    for rows in (self, other)
                ]
            )
        y = np.concatenate([self.y, other.y])
        margin = np.concatenate([self.margin, other.margin])
        numbers = np.concatenate([self.known_numbers, ~other.known_numbers])
        return Rows(join_rows(self.X, other.X), y, weight, margin, numbers)

    def repeat(self, loss: Loss) -> "Rows":
        """Repeat each row as often as its weight says, if that is whole and the sum is small.

        Each of the repeated rows is then drawn on its own, so that weight 2 is the row twice where
        rows are drawn, too, if it is that for the loss. The sum may be 4,096, as everywhere.
        """
        weight = self.weight
        if len(weight) == 0 or not loss.can_repeat or weight.sum() > FEW_ROWS:
            return self
        if (weight != np.floor(weight)).any():
            return self
        rows = np.repeat(np.arange(len(weight)), weight.astype(np.intp))
        return self._replace(weight=np.empty(0))._at(rows)

    def here(self) -> "Rows":
        """Return the rows with their features in this process."""
        return self._replace(X=self.X.gather()) if isinstance(self.X, RemoteFeatures) else self

    def words_for(self, row: int) -> str:
        """Name a row as the user knows it."""
        number = int(self.numbers[row]) if len(self.numbers) else row
        return f"row {number} of X" if number >= 0 else f"row {~number} of the validation data"

    def _at(self, rows: np.ndarray) -> "Rows":
        """Return the rows of a mask, or those at these places."""
        X, *others = self._replace(numbers=self.known_numbers)
        return Rows(X[rows], *(part[rows] if len(part) else part for part in others))


def training_rows(
    X: Any,
    y: Any,
    given: FitArguments,
    settings: FeatureSettings,
    *,
    kind: type[Targets],
    encodings: Encodings,
) -> tuple[Rows, FittedFeatures]:
    """Check the rows of a fit; drop those of weight 0, or of no known target.

    `kind` reads the targets. `encodings` are those of a model that is continued.
    ValueError for wrong shapes or lengths, no rows, targets or weights that are NaN or infinite,
    negative weights, weights that are all 0, a column of targets none of which is known.
    """
    learn_table: Any = fit_table
    if isinstance(X, BinnedMatrix):
        check_array(X.bins, estimator=settings.caller, **SHAPE_CHECKS)
    elif dask_kind(X):
        # imports Dask
        from sklboost.estimators.input.cluster_features import cluster_source, fit_cluster

        (X, names), learn_table = cluster_source(X, settings), fit_cluster
    else:
        X, names = fit_source(X, settings, encodings)

    y = kind.read(y, "y", settings.caller)
    if hasattr(X, "partitions") and len(y) != X.n_rows:
        raise ValueError(
            f"X has {X.partitions!r}, but y has {len(y):,} rows: pass a target for each row of X"
        )
    check_consistent_length(X, y)
    if len(y) > _MOST_ROWS:
        raise ValueError(f"X has {len(y):,} rows: at most {_MOST_ROWS:,} are supported")
    weight, is_used = _weights(given.sample_weight, y, "sample_weight")

    if isinstance(X, BinnedMatrix):
        features = binned_features(X, settings, encodings)
    else:
        encodings_of_fit = None
        if isinstance(X, FrameAdapter):
            learnt_from = np.broadcast_to(1.0, len(y))  # which takes no memory
            if len(weight) > 0 or not is_used.all():
                learnt_from = is_used * (weight if len(weight) > 0 else 1.0)
            X, encodings_of_fit = learn_table(X, settings, learnt_from, encodings)
        features = FittedFeatures(
            settings.caller, X.shape[1], names, encodings_of_fit, None, settings.missing
        )

    groups = np.empty(0)
    if given.groups is not None:
        groups = one_each(given.groups, "groups", "group", len(X))
    margin = base_margins(given.base_margin, X, "")
    rows = Rows(X, y, weight, margin, groups=groups).take(is_used)
    if rows.y.ndim == 2 and rows.y.dtype.kind == "f":
        is_unknown = np.isnan(rows.y).all(axis=0)
        if is_unknown.any():
            raise ValueError(
                f"y[:, {int(np.argmax(is_unknown))}] is NaN, not known, in every row of positive "
                "weight: leave this target out"
            )
    return rows, features


def validation_rows(
    given: GivenSet, fitted: FittedFeatures, settings: FeatureSettings, kind: type[Targets]
) -> Rows:
    """Check rows that are to be scored during training; drop those of weight 0, or no target."""
    name = given.argument
    X = read_features(given.X, fitted, settings, name)
    y = kind.read(given.y, f"y of {name}")
    if len(y) != len(X):
        raise ValueError(f"{name} has {len(X)} rows, but its y has {len(y)}: pass one for each")
    weight, is_used = _weights(given.sample_weight, y, f"sample_weight of {name}")
    margin = base_margins(given.base_margin, X, f" of {name}")
    rows = Rows(X, y, weight, margin).take(is_used)
    if len(rows.y) == 0:
        raise ValueError(f"y of {name} is NaN, not known, in every row of positive weight")
    return rows


def encode_targets(rows: Rows, targets: Targets, loss: Loss, name: str) -> Rows:
    """Return the rows with targets as the loss has them."""
    if len(rows.margin) > 0:
        check_margin_outputs(rows.margin, loss.n_outputs)
        if loss.has_own_unit:
            raise ValueError(
                f"base_margin does not go with {loss.chosen_by}={loss.name!r}, whose raw scores "
                "are in a unit that each fit takes from its targets: subtract an offset from y, or "
                "continue a model with init_model"
            )
    if rows.y.dtype.kind == "f" and not rows.y.flags.writeable:
        arrays = row_arrays_of(rows.X)
        if arrays.are_on_disk:  # encode would make a copy in memory
            rows = rows._replace(y=arrays.copy(rows.y, rows.y.dtype))
    y = targets.encode(rows.y, name)
    loss.check_targets(y, name)
    return rows._replace(y=y)


def weigh_classes(rows: Rows, targets: Targets) -> Rows:
    """Return rows of encoded targets with their weights times those of their classes."""
    return rows._replace(weight=targets.weigh(rows.y, rows.weight))


def _weights(sample_weight: Any, y: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights, empty for None, and which rows have a weight and a known target."""
    is_used = np.broadcast_to(np.True_, len(y))
    if y.ndim > 1 and y.dtype.kind == "f":
        is_used = ~np.isnan(y).all(axis=1)
    if sample_weight is None:
        return np.empty(0), is_used
    weight = row_weights(sample_weight, y, name)
    return weight, is_used & (weight > 0.0)


def base_margins(base_margin: Any, X: Any, of: str) -> np.ndarray:
    """Return given raw scores, float64, shape (n_samples, n_outputs); empty for None."""
    if base_margin is None:
        return np.empty((0, 0))
    name = f"base_margin{of}"
    margin = row_values(base_margin, name, "raw scores")
    margin = check_array(margin, dtype=np.float64, ensure_2d=False, allow_nd=True, input_name=name)
    if margin.ndim == 1:
        margin = margin[:, np.newaxis]
    if margin.ndim != 2 or len(margin) != len(X):
        raise ValueError(
            f"{name} has shape {np.shape(base_margin)}: it must be one raw score for each of the "
            f"{len(X)} rows, or one for each row and class or target"
        )
    return margin


def check_margin_outputs(margin: np.ndarray, n_outputs: int) -> None:
    """Raise ValueError unless there is a margin for every output."""
    if len(margin) > 0 and margin.shape[1] != n_outputs:
        raise ValueError(
            f"base_margin has {margin.shape[1]} column(s), but the model has {n_outputs} raw "
            "score(s) a row: one for each target, or label, or class of more than two"
        )
