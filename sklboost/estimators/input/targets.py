"""Targets as users give them, checked, and what estimators differ by: how a loss reads them.

In several columns NaN is a value that is not known: it has no gradient, so each column is learnt
from its own known rows, and no row needs to be left out for one of its columns.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import validate_data

from sklboost.estimators.input.arguments import places, row_values
from sklboost.estimators.parameters.boosters import Parameters
from sklboost.objectives.loss import Loss
from sklboost.objectives.registry import find_distribution, make_loss

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
    task: str  # the name under which objectives and metrics are registered
    size: int  # how many targets or labels, for more than two classes how many classes
    classes: np.ndarray | None  # the labels, sorted; None: numbers
    is_calibrated: bool = False  # raw scores are shifted after the training
    is_constant: bool = False  # there is one label only, which is predicted for every row
    reads_scores: bool = False  # `finish` has something to do
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
        # kernels are compiled for targets that can be written
        y = np.require(y, np.float32 if y.dtype == np.float32 else np.float64, ["A", "W"])
        for number, column in enumerate(np.atleast_2d(y.T)):
            # these know no NaN, and make no array
            least = float(np.fmin.reduce(column, initial=np.nan))
            most = float(np.fmax.reduce(column, initial=np.nan))
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
