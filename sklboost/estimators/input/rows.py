"""Rows of a user's data: features, targets and all that is given row by row, chosen together.

:func:`training_rows` and :func:`validation_rows` read them from the arguments of `fit`, which are
checked here, too: values row by row, weights, validation sets.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, time, timedelta
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array, check_consistent_length

from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.encoding import Encoding
from sklboost.data.features import RemoteFeatures, join_rows, row_arrays_of
from sklboost.data.frames import dask_kind, read_values
from sklboost.data.frames.adapter import FrameAdapter, is_missing
from sklboost.data.frames.numpy_arrays import ObjectColumn
from sklboost.engine.structs import RemoteColumn
from sklboost.estimators.input.feature_names import FittedFeatures
from sklboost.estimators.input.features import (
    SHAPE_CHECKS,
    FeatureSettings,
    binned_features,
    fit_source,
    fit_table,
    read_features,
)
from sklboost.estimators.input.user_warnings import warn_user
from sklboost.objectives.loss import Loss
from sklboost.tree.core.quantization import FEW_ROWS

if TYPE_CHECKING:
    from sklboost.estimators.input.targets import Targets

# What to do where a row has no value of this kind.
_REMEDIES = {
    "targets": "leave out rows without a target",
    "weights": "every row needs a weight, and 0 leaves it out",
    "raw scores": "every row needs its raw scores",
    "times": "leave out such rows",
    "events": "leave out such rows",
    "sizes": "every query needs its number of rows",
    **{of: f"every row needs the label of its {of}" for of in ("group", "query", "stratum")},
}
_ARE_NUMBERS = {
    "targets": "targets are numbers; labels are for XGBClassifierLite",
    "events": "events are True or False, or 1 and 0",
}
_TIMES = (date, time, timedelta, np.datetime64, np.timedelta64)
# Sums of weights, and of weights times gradients, stay normal numbers within these.
_WEIGHT_RANGE = (1e-100, 1e100)
# Far more than the least hessian of a row of weight 1, which stands for 0, and less than others.
_NO_COVER = 1e-12


# --- values row by row


def row_values(
    given: Any,
    name: str,
    what: str,  # a key of the remedies
    *,
    numeric: bool = True,  # numbers, also written as text, rather than labels
    unknown: bool = False,  # what is missing in several columns becomes NaN: not known
    records: bool = False,  # it may be an array with fields
) -> Any:
    """Return an argument that has an entry for each row, of any container, as an array.

    The array has what was given exactly: see :func:`~sklboost.data.frames.read_values`. Shapes are
    left to the caller, or to scikit-learn, as are NaN and infinity among floats.
    """
    dtype = str(getattr(given, "dtype", ""))
    if what == "targets" and dtype.startswith("period"):
        raise TypeError(
            f"{name} has dtype {dtype}: labels are no periods; pass {name}.astype(str), or "
            f"{name}.dt.to_timestamp()"
        )
    try:
        values, missing = read_values(given.compute() if dask_kind(given) else given)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: {error}") from error
    if not issparse(values):  # which scikit-learn refuses or takes
        if not isinstance(values, np.ndarray) or values.ndim == 0:
            raise TypeError(
                f"{name} is {values!r:.100}, of type {type(values).__name__}: it must have an "
                "entry for each row; pass an array, a list or a column of a frame"
            )
        if values.dtype.names is not None and not records:
            raise TypeError(
                f"{name} is an array of records with the fields {list(values.dtype.names)}: pass "
                "the values of one of them"
            )
    if missing is not None and missing.any():
        if not (unknown and values.ndim == 2 and values.shape[1] > 1):
            raise ValueError(f"{name} has no value in {places(missing)}: {_REMEDIES[what]}")
        values = values.astype(np.float64 if values.dtype.kind in "biuf" else object)
        values[missing] = np.nan
    if numeric and isinstance(values, np.ndarray) and values.dtype.kind in "mMSUO":
        return _as_numbers(values, name, what)
    return values


def _as_numbers(values: np.ndarray, name: str, what: str) -> np.ndarray:
    """Return written numbers and Python's as float64; ValueError for times, and for no numbers."""
    is_plain = values.dtype.kind != "O"
    for example in values.ravel()[:1] if is_plain else ObjectColumn(values.ravel()).examples():
        if isinstance(example, _TIMES):
            raise ValueError(
                f"{name} holds times, such as {example!r}: {what} are numbers; subtract a date and "
                "divide by np.timedelta64(1, 'D'), say, to count days"
            )
    with suppress(TypeError, ValueError, OverflowError):
        return values.astype(np.float64)
    for wrong in values.ravel().tolist():
        try:
            float(wrong)
        except (TypeError, ValueError, OverflowError):
            break
    kind = "text" if isinstance(wrong, str | bytes) else type(wrong).__name__
    rule = _ARE_NUMBERS.get(what, f"{what} are numbers")
    raise ValueError(f"{name} holds {kind}, such as {wrong!r:.100}: {rule}")


def one_each(
    given: Any, name: str, what: str, n_rows: int | None = None, *, numeric: bool = False
) -> Any:
    """Return one value for each row, such as the label of its query.

    `given` may be of a part of the rows: then `n_rows` is None. What was read by parts, a
    RemoteColumn, is returned as it is.
    """
    is_read = isinstance(given, RemoteColumn)
    values: Any = given if is_read else np.asarray(row_values(given, name, what, numeric=numeric))
    if values.shape != (len(values) if n_rows is None else n_rows,):
        raise ValueError(
            f"{name} has shape {values.shape}: it must be 1-D, one for each of the {n_rows} rows"
        )
    missing = None if is_read else is_missing(values, None)
    if missing is not None:
        raise ValueError(f"{name} has no value in {places(missing)}: {_REMEDIES[what]}")
    return values


def score_arguments(y: Any, sample_weight: Any, *, numeric: bool) -> tuple[Any, Any]:
    """Return targets and weights, or None, as arrays, for scores that scikit-learn computes."""
    y = row_values(y, "y", "targets", numeric=numeric, unknown=True)
    if sample_weight is not None:
        sample_weight = row_values(sample_weight, "sample_weight", "weights")
    return y, sample_weight


def places(is_wrong: np.ndarray) -> str:
    """Say in how many rows there is a wrong value, and where the first is."""
    rows = np.flatnonzero(is_wrong.reshape(len(is_wrong), -1).any(axis=1))
    words = f"{len(rows)} row(s), the first is row {rows[0]}"
    is_one = is_wrong.size == len(is_wrong)
    return words if is_one else f"{words}, column {np.argmax(is_wrong[rows[0]])}"


# --- weights


def row_weights(sample_weight: Any, X: Any, name: str = "sample_weight") -> Any:
    """Return the weights as float64, shape (n_samples,), or (0,) for None, which is 1 everywhere.

    A single number counts for every row.
    """
    if sample_weight is None:
        return np.empty(0)
    if isinstance(sample_weight, Real):
        sample_weight = np.full(len(X), sample_weight)
    is_read = isinstance(sample_weight, RemoteColumn)
    weight = sample_weight if is_read else read_weights(sample_weight, name)
    if len(weight) != len(X):
        raise ValueError(
            f"{name} and X have inconsistent numbers of samples: [{len(weight)}, {len(X)}]"
        )
    if (weight < 0.0).any():
        row = int(np.argmax(weight < 0.0))
        raise ValueError(
            f"{name}[{row}]={weight[row]:g}: weights must be >= 0 (0 leaves a row out)"
        )
    if not weight.any():
        raise ValueError(f"{name} is zero for every row: at least one weight must be > 0")
    check_largest_weight(weight, name)
    return weight


def read_weights(sample_weight: Any, name: str) -> np.ndarray:
    """Return the weights that were given as float64, none of which is NaN or infinite."""
    weight = row_values(sample_weight, name, "weights")
    weight = check_array(weight, dtype=np.float64, ensure_2d=False, input_name=name)
    if weight.ndim != 1:
        raise ValueError(
            f"{name} has shape {weight.shape}: it must be 1-D, one weight for each row"
        )
    return weight


def check_largest_weight(weight: np.ndarray, name: str) -> None:
    """Raise ValueError if sums of these weights, times gradients, could be no normal numbers."""
    largest = float(weight.max())
    if not _WEIGHT_RANGE[0] <= largest <= _WEIGHT_RANGE[1]:
        raise ValueError(
            f"the largest {name} is {largest:g}: it must be from {_WEIGHT_RANGE[0]:g} to "
            f"{_WEIGHT_RANGE[1]:g}; multiply the weights by a constant"
        )


def warn_of_no_split(
    weight: np.ndarray,  # the user's, float64, shape (n_samples,) or (0,)
    n_rows: int,
    cover: tuple[float, float],  # of all rows, and what both children of a split must have
    min_child_samples: int,
    *,
    has_own_cover: bool,  # whether the cover of a row does not depend on others, such as its query
) -> None:
    """Warn if no tree has a split only because the weights of the rows, or covers, are small."""
    of_all, least = cover
    total = float(weight.sum()) if len(weight) > 0 else float(n_rows)
    if not has_own_cover and of_all < _NO_COVER * total:
        warn_user(
            "no tree has a split: the targets that are compared, such as those of a query, are all "
            "equal, so there is nothing to learn"
        )
        return
    if not has_own_cover and of_all < 2 * least:
        warn_user(
            f"no tree has a split: both children need a cover of min_child_weight={least:g}, but "
            f"that of all rows is {of_all:g}; lower min_child_weight"
        )
        return
    if total < 2 * min_child_samples <= n_rows:
        warn_user(
            f"no tree has a split: min_child_samples={min_child_samples} counts each row by its "
            f"weight, and the sum of sample_weight is {total:g}; multiply the weights so that "
            "their mean is 1, or lower min_child_samples"
        )
    elif of_all < 2 * least <= of_all * n_rows / total:  # enough if the mean weight were 1
        warn_user(
            f"no tree has a split: both children need a cover of min_child_weight={least:g}, but "
            f"that of all rows is {of_all:g}, because the sum of sample_weight is {total:g}, its "
            f"mean {total / n_rows:g}; multiply the weights so that their mean is 1, or lower "
            "min_child_weight"
        )


# --- arguments of fit


class FitArguments(NamedTuple):
    """The arguments of fit besides X and y, as they were given.

    One record, since three classes have a `fit`, which hand 13 arguments on to two functions.
    """

    sample_weight: Any = None
    X_val: Any = None
    y_val: Any = None
    sample_weight_val: Any = None
    base_margin_val: Any = None
    eval_set: Any = None
    sample_weight_eval_set: Any = None
    base_margin_eval_set: Any = None
    groups: Any = None
    base_margin: Any = None
    init_model: Any = None
    xgb_model: Any = None
    verbose: Any = None

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> "FitArguments":
        """Take them out of others by their names, as of the local variables of `fit`."""
        return cls(**{name: arguments[name] for name in cls._fields if name in arguments})


class GivenSet(NamedTuple):
    """One set of validation rows, not checked yet.

    There are two ways to give them to `fit`; the rows of `explain_split` are one, too.
    """

    name: str  # in `evals_result_`
    argument: str  # of fit that `X` is from, for errors
    X: Any
    y: Any
    sample_weight: Any
    base_margin: Any


def given_sets(given: FitArguments) -> list[GivenSet]:
    """Return the validation sets; an error if both forms are given, or only half of one."""
    if given.X_val is not None and given.eval_set is not None:
        raise ValueError("both X_val and eval_set are given: pass validation data in one of them")
    if given.eval_set is not None:
        return _read_eval_set(given)
    for name in ("sample_weight_eval_set", "base_margin_eval_set"):
        if getattr(given, name) is not None:
            raise ValueError(f"{name} is given without eval_set")
    if given.X_val is None:
        for name in ("y_val", "sample_weight_val", "base_margin_val"):
            if getattr(given, name) is not None:
                raise ValueError(f"{name} is given without X_val")
        return []
    if given.y_val is None:
        raise ValueError("X_val is given without y_val")
    weight, margin = given.sample_weight_val, given.base_margin_val
    return [GivenSet("validation_0", "X_val", given.X_val, given.y_val, weight, margin)]


def _read_eval_set(given: FitArguments) -> list[GivenSet]:
    pairs = given.eval_set
    if not isinstance(pairs, list | tuple):
        raise TypeError(
            f"eval_set is of type {type(pairs).__name__}: it must be a list of pairs, "
            "eval_set=[(X_val, y_val)]"
        )
    for name, twin in (
        ("sample_weight_val", "sample_weight_eval_set"),
        ("base_margin_val", "base_margin_eval_set"),
        ("y_val", "the pair (X, y) itself"),
    ):
        if getattr(given, name) is not None:
            raise ValueError(f"{name} goes with X_val; for eval_set there is {twin}")
    weights = one_for_each_set(given.sample_weight_eval_set, len(pairs), "sample_weight_eval_set")
    margins = one_for_each_set(given.base_margin_eval_set, len(pairs), "base_margin_eval_set")
    sets = []
    for index, pair in enumerate(pairs):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise TypeError(
                f"eval_set[{index}] must be a pair (X, y), not of type {type(pair).__name__}: "
                "eval_set=[(X_val, y_val)]"
            )
        X, y = pair
        name, argument = f"validation_{index}", f"eval_set[{index}]"
        sets.append(GivenSet(name, argument, X, y, weights[index], margins[index]))
    return sets


def one_for_each_set(given: Any, n_sets: int, name: str) -> Sequence[Any]:
    """Return an entry for each validation set; None stands for None everywhere."""
    if given is None:
        return [None] * n_sets
    if not isinstance(given, list | tuple) or len(given) != n_sets:
        raise ValueError(
            f"{name} must be a list with one entry (or None) for each of the {n_sets} pairs of "
            "eval_set"
        )
    return given


# --- rows

# Beyond, the 32 bits of a gradient sum leave a row less than two steps.
_MOST_ROWS = 2**29


class Rows(NamedTuple):
    """Rows of positive weight and of known targets.

    What is not given is empty, and stays so whatever rows are chosen.
    """

    X: Any
    # shape (n_samples,) or (n_samples, n_targets): numbers, or labels of any kind, as the user has
    # them; after `encode_targets` as the loss reads them: float64, float32 if the user's are, or
    # uint8 for numbers of up to 256 classes. NaN of several targets: not known. A RemoteColumn, if
    # the values are on a cluster.
    y: Any
    # float64, shape (n_samples,) or (0,): positive: the user's, until :func:`weigh_classes`
    # multiplies them. Empty: all 1. It may be a RemoteColumn, too.
    weight: Any
    # float64, shape (n_samples, n_outputs) or (0, 0): the user's raw scores before the first tree.
    # Empty: the model's own. It may be a RemoteColumn, too, of shape (n_samples,) for one output.
    margin: Any
    # int, shape (n_samples,) or (0,): of the rows in the user's `X`; in the validation data, -1 is
    # its first row, -2 its second. Empty: 0, 1, 2, ... A RemoteColumn, if `weight` is one.
    numbers: Any = np.empty(0, dtype=np.intp)
    # shape (n_samples,) or (0,): labels of what is held out together, or not at all. Empty: each
    # row by itself. It may be a RemoteColumn, too.
    groups: Any = np.empty(0)

    @property
    def targets(self) -> Any:
        """Targets as losses take them, float64, shape (n_targets, n_samples).

        They may be a column, of shape (n_samples,) for one target.
        """
        if isinstance(self.y, RemoteColumn):
            return self.y.T.astype(np.float64)
        targets = self.y.reshape(len(self.y), -1).T
        if targets.dtype == np.float64 and targets.flags.c_contiguous:
            return targets
        return row_arrays_of(self.X).copy(targets, np.float64)

    def starting_scores(self, base_score: np.ndarray) -> np.ndarray:
        """Raw scores before the first tree, shape (n_outputs, n_samples): the margin, if any."""
        arrays = row_arrays_of(self.X)
        if len(self.margin) > 0:
            return arrays.copy(np.atleast_2d(self.margin.T), np.float64)
        return arrays.full(base_score, len(self.y))

    @property
    def n_given(self) -> int:
        """How many of the user's rows these are: a row and its copies, which follow it, are one."""
        if len(self.numbers) == 0 or isinstance(self.numbers, RemoteColumn):
            return len(self.y)
        return 1 + int(np.count_nonzero(np.diff(self.numbers)))

    @property
    def known_numbers(self) -> Any:
        """The numbers of the rows, written out."""
        return self.numbers if len(self.numbers) else np.arange(len(self.y))

    def take(self, chosen: Any) -> "Rows":
        """Choose rows by a mask, or a column; these rows themselves, if it chooses all."""
        if chosen.all():
            return self
        if not isinstance(chosen, RemoteColumn):
            return self._at(chosen)
        numbers = chosen.flatnonzero()
        taken = self._at(numbers)
        return taken if len(taken.numbers) else taken._replace(numbers=numbers)

    def join(self, other: "Rows") -> "Rows":
        """Append other rows; the result has no groups."""
        if isinstance(self.y, RemoteColumn):
            return self.with_arrays().join(other)
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
        # more rows have a larger sum, if their weights are whole
        if not 0 < len(self.weight) <= FEW_ROWS or not loss.can_repeat:
            return self
        weight = np.asarray(self.weight)
        if weight.sum() > FEW_ROWS:
            return self
        if (weight != np.floor(weight)).any():
            return self
        rows = np.repeat(np.arange(len(weight)), weight.astype(np.intp))
        return self._replace(weight=np.empty(0))._at(rows)

    def here(self) -> "Rows":
        """Return the rows in this process."""
        is_here = not isinstance(self.X, RemoteFeatures)
        return self if is_here else self.with_arrays()._replace(X=self.X.here())

    def with_arrays(self) -> "Rows":
        """Return the rows with targets, weights and margins in this process."""
        names = ("y", "weight", "margin", "numbers", "groups")
        here = {name: np.asarray(getattr(self, name)) for name in names}
        here["margin"] = np.atleast_2d(here["margin"].T).T
        return self._replace(**here)

    def words_for(self, row: int) -> str:
        """Name a row as the user knows it."""
        number = int(self.numbers[row]) if len(self.numbers) else row
        return f"row {number} of X" if number >= 0 else f"row {~number} of the validation data"

    def _at(self, rows: Any) -> "Rows":
        """Return the rows of a mask, or those at these places, which may be a column."""
        numbers = self.numbers if isinstance(rows, RemoteColumn) else self.known_numbers
        X, *others = self._replace(numbers=numbers)
        return Rows(X[rows], *(part[rows] if len(part) else part for part in others))


def training_rows(
    X: Any,
    y: Any,
    given: FitArguments,
    settings: FeatureSettings,
    kind: "type[Targets]",
    before: FittedFeatures | None = None,
    model: str = "",
) -> tuple[Rows, FittedFeatures]:
    """Check the rows of a fit; drop those of weight 0, or of no known target.

    `before` are the features of the `model` that the fit continues.
    """
    encodings, groups = None, given.groups
    if before is not None:  # the same values become the same numbers
        encodings = before.encodings or (Encoding(),) * before.n_features
    learn_table: Any = fit_table
    sample_weight, base_margin = given.sample_weight, given.base_margin
    if isinstance(X, BinnedMatrix):
        check_array(X.bins, estimator=settings.caller, **SHAPE_CHECKS)
        names = X.binning.feature_names
    elif dask_kind(X):
        # imports Dask
        from sklboost.estimators.input.cluster_features import (
            cluster_columns,
            cluster_source,
            fit_cluster,
        )

        (X, names), learn_table = cluster_source(X, settings), fit_cluster
        columns = y, sample_weight, base_margin, groups
        y, sample_weight, base_margin, groups = cluster_columns(
            X.partitions, *columns, kind, settings.caller
        )
    else:
        X, names = fit_source(X, settings, encodings)
    if before is not None:
        before.check_continued(names, X.shape[1], model)

    if not isinstance(y, RemoteColumn):
        y = kind.read(y, "y", settings.caller)
    if hasattr(X, "partitions") and len(y) != X.n_rows:
        raise ValueError(
            f"X has {X.partitions!r}, but y has {len(y):,} rows: pass a target for each row of X"
        )
    check_consistent_length(X, y)
    if len(y) > _MOST_ROWS:
        raise ValueError(f"X has {len(y):,} rows: at most {_MOST_ROWS:,} are supported")
    weight, is_used = _weights(sample_weight, y, "sample_weight")

    if isinstance(X, BinnedMatrix):
        features = binned_features(X, settings, encodings)
    else:
        encodings_of_fit = None
        if isinstance(X, FrameAdapter):
            learnt_from = np.broadcast_to(1.0, len(y)) if len(weight) == 0 else weight
            if not is_used.all():  # an array of equal numbers takes no memory
                learnt_from = is_used * (weight if len(weight) > 0 else 1.0)
            X, encodings_of_fit = learn_table(X, settings, learnt_from, encodings)
        features = FittedFeatures(
            settings.caller, X.shape[1], names, encodings_of_fit, None, settings.missing
        )

    groups = np.empty(0) if groups is None else one_each(groups, "groups", "group", len(X))
    margin = base_margins(base_margin, X, "")
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
    given: GivenSet,
    fitted: FittedFeatures,
    settings: FeatureSettings,
    kind: "type[Targets]",
    *,
    stays: bool = False,
) -> Rows:
    """Check rows that are to be scored during training; drop those of weight 0, or no target.

    With `stays` those of a Dask collection stay on its cluster.
    """
    name, columns = given.argument, (given.y, given.sample_weight, given.base_margin, None)
    y, sample_weight, base_margin, _ = columns
    if stays and dask_kind(given.X):
        # imports Dask
        from sklboost.estimators.input.cluster_features import cluster_columns, read_cluster

        X: Any = read_cluster(given.X, fitted, settings, name)
        y, sample_weight, base_margin, _ = cluster_columns(
            X.partitions, *columns, kind, of=f" of {name}"
        )
    else:
        X = given.X.compute() if dask_kind(given.X) else given.X
        X = read_features(X, fitted, settings, name)
    if not isinstance(y, RemoteColumn):
        y = kind.read(y, f"y of {name}")
    if len(y) != len(X):
        raise ValueError(f"{name} has {len(X)} rows, but its y has {len(y)}: pass one for each")
    weight, is_used = _weights(sample_weight, y, f"sample_weight of {name}")
    margin = base_margins(base_margin, X, f" of {name}")
    rows = Rows(X, y, weight, margin).take(is_used)
    if len(rows.y) == 0:
        raise ValueError(f"y of {name} is NaN, not known, in every row of positive weight")
    return rows


def encode_targets(rows: Rows, targets: "Targets", loss: Loss, name: str) -> Rows:
    """Return the rows with targets as the loss has them."""
    if len(rows.margin) > 0:
        check_margin_outputs(rows.margin, loss.n_outputs)
        if loss.has_own_unit:
            raise ValueError(
                f"base_margin does not go with {loss.chosen_by}={loss.name!r}, whose raw scores "
                "are in a unit that each fit takes from its targets: subtract an offset from y, or "
                "continue a model with init_model"
            )
    is_here = isinstance(rows.y, np.ndarray)
    if is_here and rows.y.dtype.kind == "f" and not rows.y.flags.writeable:
        arrays = row_arrays_of(rows.X)
        if arrays.are_on_disk:  # encode would make a copy in memory
            rows = rows._replace(y=arrays.copy(rows.y, rows.y.dtype))
    y: Any = targets.encode(rows.y, name)
    y = y.persist() if isinstance(y, RemoteColumn) else y
    loss.check_targets(y, name)
    return rows._replace(y=y)


def weigh_classes(rows: Rows, targets: "Targets") -> Rows:
    """Return rows of encoded targets with their weights times those of their classes."""
    return rows._replace(weight=targets.weigh(rows.y, rows.weight))


def _weights(sample_weight: Any, y: Any, name: str) -> tuple[Any, Any]:
    """Return the weights, empty for None, and which rows have a weight and a known target."""
    is_used: Any = np.True_
    if y.ndim > 1 and y.dtype.kind == "f":
        is_used = ~np.isnan(y).all(axis=1)
    weight: Any = np.empty(0)
    if sample_weight is not None:
        weight = row_weights(sample_weight, y, name)
        is_used = is_used & (weight > 0.0)
    return weight, np.broadcast_to(np.True_, len(y)) if is_used.all() else is_used


def base_margins(base_margin: Any, X: Any, of: str) -> Any:
    """Return raw scores, float64, shape (n_samples, n_outputs), or a column; empty for None."""
    if base_margin is None:
        return np.empty((0, 0))
    name = f"base_margin{of}"
    is_read = isinstance(base_margin, RemoteColumn)
    margin = base_margin if is_read else read_margins(base_margin, name)
    if margin.ndim == 1 and not is_read:
        margin = margin[:, np.newaxis]
    if margin.ndim > 2 or len(margin) != len(X):
        raise ValueError(
            f"{name} has shape {np.shape(base_margin)}: it must be one raw score for each of the "
            f"{len(X)} rows, or one for each row and class or target"
        )
    return margin


def read_margins(base_margin: Any, name: str) -> np.ndarray:
    """Return the raw scores that were given as float64, none of which is NaN or infinite."""
    margin = row_values(base_margin, name, "raw scores")
    settings: dict[str, Any] = dict(ensure_2d=False, allow_nd=True, input_name=name)
    return check_array(margin, dtype=np.float64, **settings)


def check_margin_outputs(margin: Any, n_outputs: int) -> None:
    """Raise ValueError unless there is a margin for every output."""
    n_columns = 1 if margin.ndim == 1 else margin.shape[1]
    if len(margin) > 0 and n_columns != n_outputs:
        raise ValueError(
            f"base_margin has {n_columns} column(s), but the model has {n_outputs} raw "
            "score(s) a row: one for each target, or label, or class of more than two"
        )
