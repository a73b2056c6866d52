"""What estimators differ by: how targets become what a loss reads, and back."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from sklboost.estimators.input.targets import (
    LABELS_OF_A_BYTE,
    check_columns,
    check_labels,
    check_target_range,
    distinct_labels,
    label_numbers,
    listed,
    places_among,
    read_indicator,
    training_targets,
    validation_targets,
)
from sklboost.estimators.input.weights import (
    calibrate_prior,
    class_multipliers,
    multiply_weights,
    prior_shift,
    refuse_class_weights,
)
from sklboost.estimators.parameters.boosters import ClassifierParameters, Parameters
from sklboost.objectives.loss import Loss
from sklboost.objectives.registry import find_distribution, make_loss

if TYPE_CHECKING:
    from sklboost.estimators.parameters.kinds import DistributionParameters


class Targets(ABC):
    """How targets are learnt, and what raw scores say of them."""

    numeric: ClassVar[bool] = False  # targets are numbers, not labels
    classes: np.ndarray | None  # the labels, sorted; None: numbers
    is_calibrated: bool = False  # raw scores are shifted after the training
    is_constant: bool = False  # there is one label only, which is predicted for every row
    reads_scores: bool = False  # `finish` has something to do

    @classmethod
    def read(cls, y: Any, name: str, caller: str = "") -> np.ndarray:
        """Check the form of targets; of a fit, if it has a `caller`, else of other rows."""
        if caller:
            return training_targets(y, numeric=cls.numeric, caller=caller)
        return validation_targets(y, name, numeric=cls.numeric)

    @classmethod
    def kinds(cls) -> tuple[type["Targets"], ...]:
        """Return the classes that :meth:`learn` returns one of."""
        return (cls,)

    @classmethod
    @abstractmethod
    def learn(cls, y: np.ndarray, weight: np.ndarray, parameters: Any) -> "Targets":
        """Return the targets of a fit, from checked ones of rows of positive weight."""

    @property
    @abstractmethod
    def task(self) -> str:
        """The name under which objectives and metrics are registered."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many targets or labels, for more than two classes how many classes."""

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

    def parts(self, y: np.ndarray) -> np.ndarray | None:
        """Return what rows are told apart by when some of them are held out; None: by nothing.

        Of each number that encoded targets have here, the same share is held out.
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

    n_targets: int

    numeric = True
    task = "regression"
    classes = None

    @classmethod
    def learn(cls, y: np.ndarray, weight: np.ndarray, parameters: Any) -> Targets:
        """Count the targets."""
        return cls(1 if y.ndim == 1 else y.shape[1])

    @property
    def size(self) -> int:
        """The number of targets."""
        return self.n_targets

    def encode(self, y: np.ndarray, name: str) -> np.ndarray:
        """Return float32 targets as they are, others as float64; the user's memory if possible."""
        check_columns(y, self.n_targets, name)
        # kernels are compiled for targets that can be written
        dtype = np.float32 if y.dtype == np.float32 else np.float64
        target = np.require(y, dtype, ["A", "W"])
        check_target_range(target, name)
        return target


@dataclass(frozen=True, eq=False)
class ClassTargets(Targets):
    """One of several classes a row.

    A single class is learnt as the first of two, the second of which no row has. So raw scores are
    the log-odds of another class, as low as they can be, and rounds go on as ever; but predictions
    do not depend on them.

    Attributes
    ----------
    classes : ndarray, shape (n_classes,)
        The labels, sorted.
    multipliers : ndarray of float64, shape (n_classes,)
        What the weights of each class's rows are multiplied by.
    is_calibrated : bool
        Whether raw scores are shifted so that probabilities are those of unweighted classes.
    """

    classes: np.ndarray
    multipliers: np.ndarray
    is_calibrated: bool

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
        check_labels(y)
        classes = distinct_labels(y)
        is_counted = isinstance(parameters.class_weight, str)
        codes = label_numbers(y, classes) if is_counted else np.empty(0, np.uint8)
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
    def reads_scores(self) -> bool:  # type: ignore[override]
        """Whether raw scores are shifted."""
        return self.is_calibrated

    @property
    def task(self) -> str:
        """Of up to two classes ``"binary"``."""
        return "binary" if len(self.classes) <= 2 else "multiclass"

    @property
    def size(self) -> int:
        """The number of classes; 1 if there are up to two."""
        return 1 if self.task == "binary" else len(self.classes)

    def encode(self, y: np.ndarray, name: str) -> np.ndarray:
        """Return numbers of classes, uint8 or float64; ValueError for labels that are no class."""
        check_columns(y, 1, name)
        labels = distinct_labels(y)
        codes = places_among(self.classes, labels)
        if (codes < 0).any():
            raise ValueError(
                f"{name} has the labels {listed(labels[codes < 0])}, which y does not have: the "
                f"classes are {listed(self.classes)}"
            )
        numbers = label_numbers(y, labels)
        dtype = np.uint8 if len(self.classes) <= LABELS_OF_A_BYTE else np.float64
        if np.array_equal(codes, np.arange(len(codes))):
            return numbers.astype(dtype, copy=False)
        return codes.astype(dtype)[numbers]

    def weigh(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the weights times those of the classes; ValueError if they become too large."""
        return multiply_weights(weight, self.multipliers, y)

    def unweigh(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the weights without those of the classes."""
        if len(weight) == 0 or (self.multipliers == 1.0).all():
            return weight
        unweighted: np.ndarray = weight / self.multipliers[y.astype(np.intp)]
        return unweighted

    def of_more(self, y: np.ndarray, weight: np.ndarray, parameters: Any) -> Targets:
        """Return the same classes, balanced anew if that is asked for."""
        if parameters.class_weight != "balanced":
            return self
        factor = parameters.scale_pos_weight if len(self.classes) == 2 else 1.0
        codes = y.astype(np.intp)
        multipliers = class_multipliers("balanced", factor, self.classes, codes, weight)
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
        return _certainty if self.is_constant else loss.probabilities

    def parts(self, y: np.ndarray) -> np.ndarray | None:
        """Return the classes."""
        return y

    def is_complete(self, y: np.ndarray) -> bool:
        """Whether there are two classes or more."""
        return len(np.unique(y)) > 1

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


@dataclass(frozen=True, eq=False)
class LabelTargets(Targets):
    """Several labels, each of which a row has or has not.

    Attributes
    ----------
    classes : ndarray of int, shape (n_labels,)
        The numbers of the labels, as scikit-learn's MLPClassifier has them.
    dtype : dtype
        Of predictions, as `y` had it.
    """

    classes: np.ndarray
    dtype: np.dtype

    task = "multilabel"

    @classmethod
    def learn(cls, y: np.ndarray, weight: np.ndarray, parameters: ClassifierParameters) -> Self:
        """Check an indicator of labels, shape (n_samples, n_labels)."""
        read_indicator(y, "y")
        n_labels = y.shape[1]
        refuse_class_weights(vars(parameters), n_labels)
        return cls(np.arange(n_labels), y.dtype if y.dtype.kind in "biuf" else np.dtype(np.float64))

    @property
    def size(self) -> int:
        """The number of labels."""
        return len(self.classes)

    def encode(self, y: np.ndarray, name: str) -> np.ndarray:
        """Return 1 where a row has a label, 0 where not, NaN where that is not known."""
        check_columns(y, len(self.classes), name)
        return read_indicator(y, name)

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


def _certainty(raw_score: np.ndarray) -> np.ndarray:
    """Return the probabilities of the only class, shape (n_samples, 1)."""
    return np.ones((raw_score.shape[1], 1))


def check_prior(base_score: Any) -> None:
    """Raise ValueError unless it is None, a probability, or a list of probabilities."""
    if base_score is None or all(0.0 < prior < 1.0 for prior in np.ravel(base_score)):
        return
    raise ValueError(
        f"base_score={base_score!r}: for two classes, or labels, it is a probability, so it must "
        "be between 0 and 1, both excluded"
    )


@dataclass(frozen=True, eq=False)
class DistributionTargets(RegressionTargets):
    """Numbers, one a row, each drawn from a distribution of its own.

    Attributes
    ----------
    distribution : str
    spread : float
        The unit of locations and scales in raw scores.
    """

    distribution: str
    spread: float

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
