"""Targets as users give them, checked, and what estimators differ by: how a loss reads them.

In several columns NaN is a value that is not known: it has no gradient, so each column is learnt
from its own known rows, and no row needs to be left out for one of its columns.

Class weights multiply the weights of the rows, and so change the shares of the classes that a model
learns. Source of the correction: King & Zeng (2001), "Logistic Regression in Rare Events Data",
prior correction.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from sklboost.data.frames.adapter import as_objects
from sklboost.data.raw_values import row_blocks
from sklboost.engine.structs import RemoteColumn
from sklboost.estimators.input.rows import check_largest_weight, places, row_values
from sklboost.estimators.input.user_warnings import warn_user
from sklboost.estimators.parameters.boosters import ClassifierParameters, Parameters
from sklboost.estimators.parameters.rules import is_default
from sklboost.objectives.loss import Loss
from sklboost.objectives.registry import find_distribution, make_loss
from sklboost.objectives.start_values import class_shares, class_sums, weighted_mean

if TYPE_CHECKING:
    from sklboost.estimators.parameters.kinds import DistributionParameters


# Gradients are float32: beyond these they would overflow, or vanish, without a word.
_LARGEST_TARGET = 1e30
_SMALLEST_SPREAD = 1e-30


def _refuse_infinite(y: np.ndarray, name: str) -> None:
    """Raise ValueError, in scikit-learn's words and with the places, for floats that are no target.

    These are infinite ones, and NaN unless there are several columns.
    """
    is_nan = np.isnan(y)
    if y.ndim == 1 and is_nan.any():
        raise ValueError(
            f"Input {name} contains NaN: there is no value in {places(is_nan)}; leave out rows "
            "without a target"
        )
    is_infinite = np.isinf(y)
    if is_infinite.any():
        raise ValueError(
            f"Input {name} contains infinity or a value too large for {y.dtype!r}: in "
            f"{places(is_infinite)}; targets are finite numbers"
        )


def check_columns(y: np.ndarray, n_targets: int, name: str) -> None:
    """Raise ValueError unless there are as many targets as were fitted."""
    n_columns = 1 if y.ndim == 1 else y.shape[1]
    if n_columns != n_targets:
        raise ValueError(
            f"{name} has shape {y.shape}, but y of the fit has {n_targets} target(s): pass the same"
        )


class Targets(ABC):
    """How targets are learnt, and what raw scores say of them."""

    numeric: ClassVar[bool] = False  # targets are numbers, not labels
    # Whether targets in a Dask collection stay on the workers: `read` gets a partition, or as
    # `read_parts` says, and other methods get a RemoteColumn.
    stays: ClassVar[bool] = False
    task: str  # the name under which objectives and metrics are registered
    size: int  # how many targets or labels, for more than two classes how many classes
    classes: np.ndarray | None  # the labels, sorted; None: numbers
    is_calibrated: bool = False  # raw scores are shifted after the training
    is_constant: bool = False  # there is one label only, which is predicted for every row
    # What `finish` will add to raw scores, roughly: metrics of the rounds read scores that have it.
    # A number, or float64, shape (n_outputs, 1).
    expected_shift: "float | np.ndarray" = 0.0

    @classmethod
    def read(cls, y: Any, name: str, caller: str = "") -> np.ndarray:
        """Check targets, shape (n_samples,) or (n_samples, n_targets).

        `name` is the argument's, for errors; `caller` the class of the estimator that is fitted,
        and empty for other rows. Several columns become float64 if `numeric`, else have any dtype.
        """
        if y is None and caller:  # in scikit-learn's words
            raise ValueError(
                f"This {caller} estimator requires y to be passed, but the target y is None."
            )
        y = row_values(y, name, "targets", numeric=cls.numeric, unknown=True)
        # one column is one target in another form, which scikit-learn takes with a warning
        is_one = len(getattr(y, "shape", ())) < 2 or y.shape[1] == 1
        if not is_one:
            dtype = np.float64 if cls.numeric else None
            y = check_array(y, dtype=dtype, ensure_all_finite=False, input_name=name)
        if isinstance(y, np.ndarray) and y.dtype.kind == "f":
            with np.errstate(all="ignore"):
                is_finite = np.isfinite(y.sum())
            if not is_finite:
                _refuse_infinite(y.ravel() if is_one else y, name)
        if not is_one:
            return y
        if caller:
            return validate_data(BaseEstimator(), y=y, y_numeric=cls.numeric, estimator=caller)
        kind = "numeric" if cls.numeric else None
        return column_or_1d(check_array(y, dtype=kind, ensure_2d=False, input_name=name))

    @classmethod
    def read_parts(cls, opened: Callable[[Callable[..., Any]], Any], name: str, caller: str) -> Any:
        """Read targets on a cluster: a RemoteColumn, or None.

        ``opened(read)`` is the column of what ``read(part)`` returns; None if that differs in kind.
        """
        return opened(partial(cls.read, name=name, caller=caller))

    @classmethod
    def kinds(cls) -> tuple[type["Targets"], ...]:
        """Return the classes that :meth:`learn` returns one of."""
        return (cls,)

    @classmethod
    @abstractmethod
    def learn(cls, y: np.ndarray, weight: np.ndarray, parameters: Any) -> "Targets":
        """Return the targets of a fit, from checked ones of rows of positive weight."""

    @abstractmethod
    def encode(self, y: np.ndarray, name: str) -> np.ndarray:
        """Return targets as losses read them."""

    def weigh(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the weights of rows of encoded targets, times those of their classes."""
        return weight

    def unweigh(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the weights of rows of encoded targets without those of their classes."""
        return weight

    def continuing(self, before: "Targets", name: str) -> "Targets":
        """Return the targets of a fit that continues a model of the targets `before`."""
        return self

    def of_more(self, y: np.ndarray, weight: np.ndarray, parameters: Any) -> "Targets":
        """Return the targets of a training on other rows, too, all of whose targets are encoded."""
        return self

    def decode(self, y: np.ndarray) -> np.ndarray:
        """Return encoded targets as the user knows them; a copy."""
        return np.array(y)

    def make_loss(self, parameters: Parameters) -> Loss:
        """Return the loss that the parameters choose for these targets."""
        return make_loss(parameters.objective, self.task, self.size, vars(parameters))

    def link(self, loss: Loss) -> Callable[[np.ndarray], np.ndarray]:
        """Return what turns raw scores into predictions, of classes into probabilities."""
        return loss.predictions

    def strata_for_holdout(self, y: np.ndarray) -> np.ndarray | None:
        """Return a number for each row; the same share is held out of the rows of each number.

        None: rows are held out whatever their targets.
        """
        return None

    def is_complete(self, y: np.ndarray) -> bool:
        """Whether a metric can be computed of these encoded targets."""
        return len(y) > 0 and (y.ndim == 1 or not np.isnan(y).all(axis=0).any())

    def needs(self, y: np.ndarray, loss: Loss) -> dict[str, np.ndarray]:
        """Return what there must be among rows of encoded targets, as :meth:`Loss.needs`.

        Where rows are held out, each of these numbers must be left in the training.
        """
        return loss.needs(y)

    def words_of(self, number: float) -> str:
        """Return which rows have this number in :meth:`needs`, for errors."""
        return ""

    def wanted(self, y: np.ndarray) -> list[np.ndarray]:
        """Return numbers like those of :meth:`needs` that a training can do without."""
        return []

    def reads_scores(self, loss: Loss) -> bool:
        """Whether :meth:`finish` has something to do."""
        return self.is_calibrated

    def finish(
        self, loss: Loss, raw_score: np.ndarray, y: np.ndarray, weight: np.ndarray
    ) -> tuple["Targets", np.ndarray]:
        """Return the targets with what they learn of the scores of a finished model.

        And what is added to raw scores from then on, shape (n_outputs,).
        """
        return self, np.zeros(loss.n_outputs)


@dataclass(frozen=True, eq=False)
class RegressionTargets(Targets):
    """Numbers, one or several a row."""

    size: int

    numeric = True
    stays = True
    task = "regression"
    classes = None

    @classmethod
    def learn(cls, y: np.ndarray, weight: np.ndarray, parameters: Any) -> Targets:
        """Count the targets."""
        return cls(1 if y.ndim == 1 else y.shape[1])

    def encode(self, y: np.ndarray, name: str) -> np.ndarray:
        """Return float32 targets as they are, others as float64; the user's memory if possible.

        ValueError if they are too large or too close together for float32 gradients: each of
        several targets is checked, and NaN is let pass.
        """
        check_columns(y, self.size, name)
        dtype = np.float32 if y.dtype == np.float32 else np.float64
        # kernels are compiled for targets that can be written
        y = np.require(y, dtype, ["A", "W"]) if isinstance(y, np.ndarray) else y.astype(dtype)
        # these know no NaN, and make no array
        ends = [np.ravel(find.reduce(y, initial=np.nan)) for find in (np.fmin, np.fmax)]
        for number, (least, most) in enumerate(np.transpose(ends).tolist()):
            name_of_column = name if y.ndim == 1 else f"{name}[:, {number}]"
            largest, spread = max(abs(least), abs(most)), most - least
            if largest > _LARGEST_TARGET:
                raise ValueError(
                    f"{name_of_column} contains {largest:g}: targets beyond {_LARGEST_TARGET:g} "
                    "are not supported; divide it by a constant"
                )
            if 0.0 < spread < _SMALLEST_SPREAD:
                raise ValueError(
                    f"{name_of_column} varies by {spread:g} only, less than {_SMALLEST_SPREAD:g}; "
                    "multiply it by a constant"
                )
        return y


@dataclass(frozen=True, eq=False)
class DistributionTargets(RegressionTargets):
    """Numbers, one a row, each drawn from a distribution of its own."""

    distribution: str
    spread: float  # the unit of locations and scales in raw scores

    @classmethod
    def learn(cls, y: np.ndarray, weight: np.ndarray, parameters: "DistributionParameters") -> Self:
        """Find the unit for targets of rows of positive weight, shape (n_samples,)."""
        if y.ndim == 2:
            raise ValueError(
                f"y has {y.shape[1]} columns, and a distribution is one of a single target: fit an "
                "estimator for each, as sklearn.multioutput.MultiOutputRegressor does"
            )
        loss, name = find_distribution(parameters.distribution), parameters.distribution
        targets = RegressionTargets(1).encode(y, "y").astype(np.float64)
        loss().check_targets(targets, "y")
        return cls(1, name, loss.spread_of(targets, weight))

    def continuing(self, before: Targets, name: str) -> Targets:
        """Return the targets of the model that is continued; its trees are in its unit."""
        assert isinstance(before, DistributionTargets)
        if before.distribution != self.distribution:
            raise ValueError(
                f"distribution={self.distribution!r}, but {name} was fitted with "
                f"{before.distribution!r}: continue with the same"
            )
        return before

    def make_loss(self, parameters: Parameters) -> Loss:
        """Return the loss of the distribution."""
        return self.loss

    @property
    def loss(self) -> Loss:
        """The loss, which the targets alone decide."""
        return find_distribution(self.distribution)(self.spread)


_PROBABILITIES = "for probabilities as targets, use XGBRegressorLite(objective='reg:logistic')"
_LABELS_OF_A_BYTE = 256
# The first so many rows of a block are sorted; if they have at most so many labels, the other rows
# are compared with these.
_FIRST_ROWS, _MOST_COMPARED = 1000, 10

# Newton's steps on the shift. Three to five are the rule; a step of 2 is seven times the odds.
_MOST_STEPS = 100
_LONGEST_STEP = 2.0
# Of a mean probability.
_TOLERANCE = 1e-10
# Keeps the matrix regular where no row's probability moves any more.
_RIDGE = 1e-12


@dataclass(frozen=True, eq=False)
class ClassTargets(Targets):
    """One of several classes a row.

    A single class is learnt as the first of two, the second of which no row has. So raw scores are
    the log-odds of another class, as low as they can be, and rounds go on as ever; but predictions
    do not depend on them.
    """

    stays = True

    classes: np.ndarray  # the labels, sorted, shape (n_classes,)
    # float64, shape (n_classes,): what the weights of each class's rows are multiplied by
    multipliers: np.ndarray
    is_calibrated: bool  # raw scores are shifted so that probabilities are of unweighted classes

    @classmethod
    def kinds(cls) -> tuple[type[Targets], ...]:
        """Return the kinds of one label a row and of several."""
        return cls, LabelTargets

    @classmethod
    def learn(
        cls, y: np.ndarray, weight: np.ndarray, parameters: ClassifierParameters
    ) -> "ClassTargets | LabelTargets":
        """Find the classes in labels of rows of positive weight, or several labels of each row."""
        if y.ndim == 2:
            return LabelTargets.learn(y, weight, parameters)
        classes = check_labels(y)
        codes: Any = np.empty(0, np.uint8)
        if isinstance(parameters.class_weight, str):  # they are counted
            codes = apply(label_numbers, y, labels=classes)
        multipliers = class_multipliers(
            parameters.class_weight,
            parameters.scale_pos_weight,  # type: ignore[arg-type]
            classes,
            codes,
            weight,
        )
        return cls(classes, multipliers, parameters.calibrated_prior and len(classes) > 1)

    @property
    def is_constant(self) -> bool:  # type: ignore[override]
        """Whether there is one class only."""
        return len(self.classes) == 1

    @property
    def task(self) -> str:  # type: ignore[override]
        """Of up to two classes ``"binary"``."""
        return "binary" if len(self.classes) <= 2 else "multiclass"

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of classes; 1 if there are up to two."""
        return 1 if self.task == "binary" else len(self.classes)

    def encode(self, y: np.ndarray, name: str) -> np.ndarray:
        """Return numbers of classes, uint8 or float64; ValueError for labels that are no class."""
        check_columns(y, 1, name)
        labels = distinct_labels(y, name)
        codes = places_among(self.classes, labels)
        if (codes < 0).any():
            raise ValueError(
                f"{name} has the labels {listed(labels[codes < 0])}, which y does not have: the "
                f"classes are {listed(self.classes)}"
            )
        dtype = np.uint8 if len(self.classes) <= _LABELS_OF_A_BYTE else np.float64
        numbers = apply(label_numbers, y, labels=labels)
        if np.array_equal(codes, np.arange(len(codes))):
            return apply(np.asarray, numbers, dtype=dtype)
        return apply(entries_at, numbers, table=codes.astype(dtype))

    def weigh(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the weights times those of the classes; `weight` itself if these are all 1.

        ValueError if sums of the products could overflow.
        """
        if (self.multipliers == 1.0).all():
            return weight
        factors = apply(entries_at, y, table=self.multipliers)
        product = factors * weight if len(weight) else factors
        check_largest_weight(product, "sample_weight times class weight")
        return product

    def unweigh(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the weights without those of the classes."""
        if len(weight) == 0 or (self.multipliers == 1.0).all():
            return weight
        unweighted: np.ndarray = weight / apply(entries_at, y, table=self.multipliers)
        return unweighted

    def of_more(self, y: np.ndarray, weight: np.ndarray, parameters: Any) -> Targets:
        """Return the same classes, balanced anew if that is asked for."""
        if parameters.class_weight != "balanced":
            return self
        factor = parameters.scale_pos_weight if len(self.classes) == 2 else 1.0
        multipliers = class_multipliers("balanced", factor, self.classes, y, weight)
        return replace(self, multipliers=multipliers)

    def decode(self, y: np.ndarray) -> np.ndarray:
        """Return the labels of numbers of classes."""
        return self.classes[y.astype(np.intp)]

    def labels(self, raw_score: np.ndarray) -> np.ndarray:
        """Return the most probable class of each row, shape (n_samples,)."""
        if self.is_constant:
            return np.repeat(self.classes, raw_score.shape[1])
        if len(raw_score) == 1:
            return self.classes[(raw_score[0] > 0.0).astype(np.intp)]
        return self.classes[raw_score.argmax(axis=0)]

    def make_loss(self, parameters: Parameters) -> Loss:
        """Return the loss; ValueError if its probabilities cannot be calibrated, but are to be."""
        if self.task == "binary":
            check_prior(parameters.base_score)
        loss = super().make_loss(parameters)
        if self.is_calibrated and loss.link not in ("logit", "softmax"):
            raise ValueError(
                f"calibrated_prior=True: objective={loss.name!r} has no probabilities that a shift "
                "of the raw scores would correct; choose 'binary:logistic' or 'multi:softprob'"
            )
        return loss

    def link(self, loss: Loss) -> Callable[[np.ndarray], np.ndarray]:
        """Return what turns raw scores into probabilities, shape (n_samples, n_classes)."""
        if self.is_constant:
            return lambda raw_score: np.ones((raw_score.shape[1], 1))
        return loss.probabilities

    def strata_for_holdout(self, y: np.ndarray) -> np.ndarray | None:
        """Return the classes."""
        return y

    def is_complete(self, y: np.ndarray) -> bool:
        """Whether there are two classes or more."""
        return len(y) > 0 and bool(y.min() < y.max())

    def needs(self, y: np.ndarray, loss: Loss) -> dict[str, np.ndarray]:
        """Return the classes."""
        return {"row": y}

    def words_of(self, number: float) -> str:
        """Return the name of the class."""
        return f" of class {self.classes.tolist()[int(number)]!r}"

    def finish(
        self, loss: Loss, raw_score: np.ndarray, y: np.ndarray, weight: np.ndarray
    ) -> tuple[Targets, np.ndarray]:
        """Return the shift that makes probabilities those of the unweighted classes."""
        codes, unweighted = y.astype(np.intp), self.unweigh(y, weight)
        start = prior_shift(self.multipliers)
        return self, calibrate_prior(loss, raw_score, codes, unweighted, start)

    @property
    def expected_shift(self) -> "float | np.ndarray":  # type: ignore[override]
        """The prior correction alone, if raw scores are shifted."""
        return prior_shift(self.multipliers)[:, np.newaxis] if self.is_calibrated else 0.0


@dataclass(frozen=True, eq=False)
class LabelTargets(Targets):
    """Several labels, each of which a row has or has not."""

    # int, shape (n_labels,): the numbers of the labels, as scikit-learn's MLPClassifier has them
    classes: np.ndarray
    dtype: np.dtype  # of predictions, as `y` had it

    task = "multilabel"

    @classmethod
    def learn(cls, y: np.ndarray, weight: np.ndarray, parameters: ClassifierParameters) -> Self:
        """Check an indicator of labels, shape (n_samples, n_labels)."""
        apply(read_indicator, y, name="y")
        n_labels = y.shape[1]
        for name in ("class_weight", "scale_pos_weight", "calibrated_prior"):
            if not is_default(parameters, name):
                raise ValueError(
                    f"{name}={getattr(parameters, name)!r}, but y has {n_labels} labels, and a row "
                    "of several labels has one weight: fit a model for each label, with "
                    "sklearn.multioutput.MultiOutputClassifier, or weight the rows with "
                    "sample_weight"
                )
        return cls(np.arange(n_labels), y.dtype if y.dtype.kind in "biuf" else np.dtype(np.float64))

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of labels."""
        return len(self.classes)

    def encode(self, y: np.ndarray, name: str) -> np.ndarray:
        """Return 1 where a row has a label, 0 where not, NaN where that is not known."""
        check_columns(y, len(self.classes), name)
        return apply(read_indicator, y, name=name)

    def wanted(self, y: np.ndarray) -> list[np.ndarray]:
        """Return whether rows have the labels: else a label would seem to be none's, or all's."""
        return [*y.T]

    def labels(self, raw_score: np.ndarray) -> np.ndarray:
        """Return 1 where a label is likelier than not, else 0; shape (n_samples, n_labels)."""
        return (raw_score.T > 0.0).astype(self.dtype, order="C")

    def make_loss(self, parameters: Parameters) -> Loss:
        """Return the loss of labels that are independent of one another."""
        check_prior(parameters.base_score)
        return super().make_loss(parameters)


def check_prior(base_score: Any) -> None:
    """Raise ValueError unless it is None, a probability, or a list of probabilities."""
    if base_score is None or all(0.0 < prior < 1.0 for prior in np.ravel(base_score)):
        return
    raise ValueError(
        f"base_score={base_score!r:.100}: for two classes, or labels, it is a probability, so it "
        "must be between 0 and 1, both excluded"
    )


# --- labels


def check_labels(y: Any) -> np.ndarray:
    """Return the labels in `y`, shape (n_samples,), sorted; ValueError for what are none."""
    labels = distinct_labels(y)
    # scikit-learn looks at all rows; of each label a few tell it as much
    shown = np.repeat(labels, 3) if 3 * len(labels) < len(y) else np.asarray(y)
    try:
        check_classification_targets(shown)
    except ValueError as error:
        if y.dtype.kind == "f" and y.min() >= 0.0 and y.max() <= 1.0:
            raise ValueError(f"{error} Or {_PROBABILITIES}") from None
        if y.dtype.kind == "O":
            raise ValueError(f"{error} {_of_types(shown, 'y')}") from None
        raise
    return labels


def _of_types(objects: np.ndarray, name: str) -> str:
    types = ", ".join(sorted({type(label).__name__ for label in objects}))
    return (
        f"{name} holds Python objects of type {types}: labels are all text, or numbers of a dtype "
        "of their own, as y.astype(int) has"
    )


def distinct_labels(y: Any, name: str = "y") -> np.ndarray:
    """Return the labels in `y`, sorted; ValueError for objects that have no order."""
    if isinstance(y, RemoteColumn):
        parts = y.each(distinct_labels, name=name)
        return distinct_labels(np.concatenate([np.empty(0, y.dtype), *parts]), name)
    found = [y[:0]]
    try:
        for rows in row_blocks(len(y)):
            some = y[rows]
            # the first rows tend to have all labels: comparing the others with few takes a tenth of
            # the time of sorting
            first = np.unique(some[:_FIRST_ROWS])
            is_new = np.ones(len(some), dtype=bool)
            # of one dimension, or an object that is a sequence would be compared by its elements
            for label in first[:, np.newaxis] if len(first) <= _MOST_COMPARED else ():
                is_new = is_new & (some != label)
            found += [first, np.unique(some[is_new])]
        return np.unique(np.concatenate(found))
    except TypeError:  # of objects
        raise ValueError(_of_types(y, name)) from None


def label_numbers(y: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return where each is among the sorted labels; uint8 if there are up to 256, else int64."""
    numbers: np.ndarray = np.zeros(
        len(y), np.uint8 if len(labels) <= _LABELS_OF_A_BYTE else np.int64
    )
    for rows in row_blocks(len(y)):
        if len(labels) <= _MOST_COMPARED and y.dtype.kind in "biuf":
            for label in labels[1:]:
                numbers[rows] += y[rows] >= label
        else:
            numbers[rows] = np.searchsorted(labels, y[rows])
    return numbers


def entries_at(places: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return the entry of a table for each row, whose place in it may be a float."""
    return table[places.astype(np.intp)]


def apply(
    function: Callable[..., np.ndarray], values: Any, *others: Any, **settings: Any
) -> np.ndarray:
    """Return ``function(values, *others, **settings)``; of columns it is a column."""
    if isinstance(values, RemoteColumn):
        return values.apply(function, *others, **settings)  # type: ignore[return-value]
    return function(values, *others, **settings)


def row_numbers(values: Any) -> np.ndarray:
    """Return 0, 1, ... for as many rows as the values have; for a column they are a column."""
    if isinstance(values, RemoteColumn):
        return values.apply(_every_row).flatnonzero()  # type: ignore[return-value]
    return np.arange(len(values))


def _every_row(values: np.ndarray) -> np.ndarray:
    return np.ones(len(values), dtype=bool)


def places_among(classes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return where each label is among the classes, int64; -1 if it is none.

    Numbers of different dtypes are compared exactly, which NumPy does not always do, and times
    whatever their units are. Objects may be labels of any dtype.
    """
    if classes.dtype.kind in "mM" and labels.dtype.kind == "O":
        with suppress(TypeError, ValueError):  # of what is no time
            if not any(isinstance(label, int | str) for label in labels):  # which NumPy reads, too
                labels = np.array(labels.tolist(), dtype=f"{classes.dtype.kind}8")
    kind, kinds = classes.dtype.kind, {classes.dtype.kind, labels.dtype.kind}
    if kinds & {"m", "M"} and len(kinds) > 1 and kind != "O":
        return np.full(len(labels), -1)  # times are no numbers, though those of ns become such
    if kind == labels.dtype.kind and kind in "mM":
        unit = np.result_type(labels, classes)
        labels, classes = labels.astype(unit).view(np.int64), classes.astype(unit).view(np.int64)
    known = {label: place for place, label in enumerate(classes.tolist())}
    return np.array([known.get(label, -1) for label in labels.tolist()], dtype=np.int64)


def listed(labels: np.ndarray) -> list[Any]:
    """Return labels as errors show them: times as dates, which are numbers to Python."""
    return list(map(str, labels)) if labels.dtype.kind in "mM" else labels.tolist()


def read_indicator(y: np.ndarray, name: str) -> np.ndarray:
    """Return 1 where a row has a label, 0 where not, NaN where that is not known.

    Float64, shape (n_samples, n_labels). ValueError for any other value, with the remedy.
    """
    try:
        is_text = y.dtype.kind in "USmM"
        indicator = (y[:0] if is_text else y).astype(np.float64)
        values = set(y.flat if is_text else np.unique(indicator[~np.isnan(indicator)]).tolist())
    except (TypeError, ValueError):  # objects that are no numbers
        values = set(y.flat)
    others = sorted(map(str, values - {0.0, 1.0}))
    if others:
        raise ValueError(
            f"{name} has {y.shape[1]} columns and the value {others[0]}: each column is a label "
            "that rows have (1) or have not (0; NaN: not known). For several targets of any "
            "classes, use sklearn.multioutput.MultiOutputClassifier(XGBClassifierLite()); "
            f"{_PROBABILITIES}"
        )
    return indicator


# --- class weights


def class_multipliers(
    class_weight: Mapping[Hashable, float] | Literal["balanced"] | None,
    scale_pos_weight: float,
    classes: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray,
) -> np.ndarray:
    """Return what the weights of each class's rows are multiplied by, shape (n_classes,).

    "balanced": every class gets the same sum of weights, their mean stays 1: ``sum of weights /
    (n_classes * sum of the class's weights)``, scikit-learn's formula. Its `codes` are the
    positions of the rows' labels in `classes`, and every class occurs; else they are empty. A class
    that is not in a dict has weight 1. A label of the dict may be missing from `classes`, as in a
    fold without a rare class, if the dict has all that are in `classes`. `scale_pos_weight`
    multiplies the weight of ``classes[1]`` of two on top of that.
    """
    n_classes = len(classes)
    if n_classes > 2 and scale_pos_weight != 1:
        warn_user(
            f"scale_pos_weight={scale_pos_weight!r} is ignored, because y has {n_classes} classes: "
            "it is for two classes only; use class_weight"
        )
    if class_weight is None:
        multipliers = np.ones(n_classes)
    elif isinstance(class_weight, str):
        totals = class_sums(codes, weight, n_classes)
        multipliers = totals.sum() / (n_classes * totals)
    else:
        multipliers = _from_dict(class_weight, classes)
    if n_classes == 2:
        multipliers[1] *= scale_pos_weight
    return multipliers


def _from_dict(class_weight: Mapping[Hashable, float], classes: np.ndarray) -> np.ndarray:
    places = places_among(classes, as_objects(class_weight))
    unknown = [label for label, place in zip(class_weight, places, strict=True) if place < 0]
    left_out = listed(np.delete(classes, places[places >= 0]))
    # one of them alone is well meant: a fold without a rare class, a dict of the rare class only
    if unknown and left_out:
        raise ValueError(
            f"class_weight={dict(class_weight)!r} has labels that are no class of y, {unknown}, "
            f"and leaves out {left_out}: use the labels of y, {listed(classes)}"
        )
    multipliers = np.ones(len(classes))
    multipliers[places[places >= 0]] = np.array([*class_weight.values()], float)[places >= 0]
    return multipliers


def prior_shift(multipliers: np.ndarray) -> np.ndarray:
    """Return the shift from raw scores learnt under class weights to those of unweighted classes.

    Weights w multiply the odds of a class by its w: where p is the probability in the data, a model
    learns ``w_k p_k / sum_j w_j p_j``. So raw scores are too large by ``log w_k``, and the log-odds
    of two classes by ``log(w_1 / w_0)``. Shape (n_outputs,), to be added.
    """
    logarithms = np.log(multipliers)
    if len(multipliers) == 2:
        return logarithms[:1] - logarithms[1:]
    return -logarithms


def calibrate_prior(
    loss: Loss, raw_score: np.ndarray, codes: np.ndarray, weight: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """Return the shift that makes each class's mean probability its share of the training rows.

    :func:`prior_shift` would be enough if the model had learnt the weighted probabilities. Trees
    that are shrunk and regularised learn less, and not by the same in every class. So the mean is
    corrected by Newton's method: its derivative in the shift is ``mean(diag(p) - p p^T)``.

    `raw_score` is that of the training rows, learnt under class weights; `weight` is without these,
    and every class occurs in `codes`. `start` is a first guess, of :func:`prior_shift`, and
    returned if no shift moves the means.
    """
    n_free = max(loss.n_outputs - 1, 1)  # only differences count: that of the first class stays
    shares = class_shares(codes, weight, n_free + 1)[1:]
    shift = start.copy()
    for _ in range(_MOST_STEPS):
        probabilities = loss.probabilities(raw_score + shift[:, np.newaxis])[:, 1:]
        means = np.array([weighted_mean(column, weight) for column in probabilities.T])
        excess = means - shares
        if np.abs(excess).max() <= _TOLERANCE:
            return shift
        step = np.linalg.solve(_sensitivity(probabilities, means, weight), excess)
        shift[-n_free:] -= step * min(1.0, _LONGEST_STEP / np.abs(step).max())
    return start.copy()


def _sensitivity(probabilities: np.ndarray, means: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the derivatives of the mean probabilities in the shifts, with a little ridge."""
    weighted = probabilities * weight[:, np.newaxis] if len(weight) else probabilities
    total = weight.sum() if len(weight) else len(probabilities)
    # einsum and not a matrix product: the bits of that depend on the number of BLAS threads
    products = np.einsum("ij,ik->jk", weighted, probabilities) / total
    return np.diag(means + _RIDGE) - products
