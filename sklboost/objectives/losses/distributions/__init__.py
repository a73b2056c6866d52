"""The base class of distributions: blocks, metrics, the constant of largest likelihood.

The loss is the negative log-likelihood. Instead of its second derivatives the hessian of each
parameter is the Fisher information, the mean of the squared gradient under the distribution itself.
A leaf weight ``-G / (H + lambda)`` is then a step of Fisher scoring, which is the natural gradient
of the rows of the leaf; and a gain, ``G^2 / H``, does not depend on how a parameter is written.
Sources: Duan et al. (2020), "NGBoost: Natural Gradient Boosting for Probabilistic Prediction";
Fahrmeir & Tutz (2001), "Multivariate Statistical Modelling", section 2.2, for Fisher scoring.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from sklboost.engine.compiling import inlined, made_kernel
from sklboost.engine.structs import RemoteColumn
from sklboost.objectives.blocks import LARGEST, LEAST_HESSIAN, NO_FAULT, Formula, full_name, limited
from sklboost.objectives.domains import ANYWHERE, Domain, refuse_first
from sklboost.objectives.loss import Loss
from sklboost.objectives.metric import Metric, losses_of_rows, mean_of_rows
from sklboost.objectives.start_values import all_at, exact_sum, exact_sums, weighted_mean

# Logarithms of scales are kept within these: a thousandth and a thousand of the targets' spread.
# Without a least scale the likelihood of equal targets would have no largest value.
LOG_SCALES = (-7.0, 7.0)
ANY_SIZE = (-np.inf, np.inf)
# Of standardised residuals, in gradients: a row further away counts as one that is so far away.
_FARTHEST = 100.0
# Of a distribution, each of shape (n_samples,).
Parameters = Sequence[np.ndarray]
# Of the constant of largest likelihood: most take fewer steps than those that are not checked.
_MOST_STEPS, _FREE_STEPS, _MOST_HALVINGS, _TOLERANCE = 100, 20, 30, 1e-8


# --- of a row


@inlined
def within(z, limits):
    """Return z, brought between two numbers."""
    return min(max(z, limits[0]), limits[1])


@inlined
def is_between(z, limits):
    """Whether z is between two numbers, so that a parameter moves with it."""
    return limits[0] < z < limits[1]


@inlined
def kept_within(gradient, z, limits):
    """Return a gradient; 0 if a step along it would leave the range that z is brought into."""
    is_at_end = (z <= limits[0] and gradient > 0.0) or (z >= limits[1] and gradient < 0.0)
    return 0.0 if is_at_end else gradient


@inlined
def residual_of(residual):
    """Return a standardised residual for gradients, not further from 0 than 100."""
    return within(residual, (-_FARTHEST, _FARTHEST))


# --- blocks


def distribution_block(formula: Any, limits: tuple[tuple[float, float], ...]) -> Any:
    """Make the block of derivatives of ``formula(y, z, spread, gradient, information)``.

    The formula fills the last two, arrays, from the raw scores z of a row. No raw score is moved
    beyond its limits.
    """

    def fill_block(rows, y, raw_score, parameters, gradient, hessian, scratch):
        first, second = scratch[0], scratch[1]
        for row in range(rows[0], rows[1]):
            formula(y[0, row - rows[2]], raw_score[:, row], parameters[0], first, second)
            for output in range(raw_score.shape[0]):
                slope = kept_within(first[output], raw_score[output, row], limits[output])
                gradient[output, row] = limited(slope, -LARGEST)
                hessian[output, row] = limited(second[output], LEAST_HESSIAN)
        return NO_FAULT

    return made_kernel(fill_block, full_name(formula))


def _value_block(formula: Any) -> Any:
    """Make the block that fills the losses of rows from ``formula(y, z, spread)``."""

    def fill_row_losses(rows, output, y, raw_score, parameters, scratch):
        losses = scratch[0, : rows[1] - rows[0]]
        for row in range(len(losses)):
            losses[row] = formula(y[0, rows[0] + row], raw_score[:, rows[0] + row], parameters[0])
        return NO_FAULT

    return made_kernel(fill_row_losses, full_name(formula))


# --- the loss


class DistributionLoss(Loss):
    """Negative log-likelihood of a distribution with a raw score for each of its parameters.

    A subclass has two formulas of a row, ``derivatives(y, z, spread, first, second)``, which fills
    gradients and information, and ``row_value(y, z, spread)``; the same in NumPy for the
    predictions (`parameters_of`, `mean`, `crps`), and a first guess of the best constant.
    `spread` is the unit of locations and scales, so that their raw scores are numbers around 1.
    """

    link = "other"
    chosen_by = "distribution"
    # a step of a logarithm by 2 is a factor of 7
    largest_step = 2.0
    hessian_is_bound = True
    parameter_names: ClassVar[tuple[str, ...]]  # what :meth:`parameters_of` returns
    output_names: ClassVar[tuple[str, ...]]  # of the raw scores
    # least and largest value of each raw score
    limits: ClassVar[tuple[tuple[float, float], ...]]
    targets: Domain = ANYWHERE
    is_of_counts = False  # whether targets are whole numbers
    guess_is_best = False  # whether `guess` is the constant of largest likelihood
    derivatives: Callable[..., Any]
    row_value: Callable[..., Any]
    formula: ClassVar[Formula]

    def __init_subclass__(cls) -> None:
        """Make the block of a distribution that has derivatives of its own."""
        if "derivatives" in vars(cls):
            cls.block = staticmethod(distribution_block(cls.derivatives, cls.limits))
            cls.formula = Formula(_value_block(cls.row_value), cls.link, is_block=True)
            cls.n_outputs = len(cls.output_names)

    def __init__(self, spread: float = 1.0):
        self.spread = spread
        self.parameters = np.full(self.n_outputs, spread)

    # --- of a distribution

    @classmethod
    def spread_of(cls, y: np.ndarray, weight: np.ndarray) -> float:
        """Return the unit for these targets, shape (n_samples,): 1 where there is none."""
        return 1.0

    def guess(self, y: np.ndarray, weight: np.ndarray) -> list[float]:
        """Return raw scores that are near to the best constant ones, one for each output."""
        raise NotImplementedError

    def limited(self, raw_score: np.ndarray) -> np.ndarray:
        """Return raw scores within their limits."""
        least, most = np.array(self.limits[: len(raw_score)]).T
        clipped: np.ndarray = np.clip(raw_score.T, least, most).T
        return clipped

    def parameters_of(self, raw_score: np.ndarray) -> Parameters:
        """Return the parameters of the distributions, by default ``e^z`` of each raw score."""
        return tuple(np.exp(self.limited(raw_score)))

    def mean(self, parameters: Parameters) -> np.ndarray:
        """Return the means of distributions, by default their first parameter."""
        return parameters[0]

    def mean_distance(self, y: np.ndarray, parameters: Parameters) -> Any:
        """Return the mean distances of targets from what is drawn, ``E abs(X - y)``."""
        raise NotImplementedError

    def half_distance(self, parameters: Parameters) -> Any:
        """Return half the mean distances of two draws, ``E abs(X - X') / 2``."""
        raise NotImplementedError

    def crps(self, y: np.ndarray, parameters: Parameters) -> Any:
        """Return the continuous ranked probability scores of targets, in the targets' unit."""
        return self.mean_distance(y, parameters) - self.half_distance(parameters)

    def frozen(self, parameters: Parameters) -> Any:
        """Return the distributions as one frozen distribution, as of scipy.stats."""
        from sklboost.objectives.losses.distributions.frozen import FROZEN

        return FROZEN[self.name](*parameters)

    # --- as a loss

    def row_values(self, y: np.ndarray, raw_score: np.ndarray) -> np.ndarray:
        losses = losses_of_rows(self.formula, self.parameters, y, raw_score)
        return np.ravel(losses)

    def value(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        return mean_of_rows(self.own_metrics[0], self.link, np.atleast_2d(y), raw_score, weight)

    def mean_crps(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        """Return the mean continuous ranked probability score."""
        with np.errstate(all="ignore"):
            return weighted_mean(self.crps(y, self.parameters_of(raw_score)), weight)

    @property
    def own_metrics(self) -> tuple[Metric, ...]:  # type: ignore[override]
        """Negative log-likelihood and continuous ranked probability score."""
        spread = (self.spread,)
        likelihood = Metric("nll", False, self.value, formula=self.formula, parameters=spread)
        return likelihood, Metric("crps", False, self.mean_crps)

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the constant raw scores of largest likelihood, by Fisher scoring.

        Steps that do not get shorter go around it, or along the end of a range. From then on they
        are halved until the likelihood is no less than before.
        """
        targets: Any = y[0] if y.ndim > 1 else y
        is_checked, last_length = False, np.inf
        score = np.array(self.guess(targets, weight), dtype=np.float64)
        if self.guess_is_best:
            return score
        total = exact_sum(weight) if len(weight) else len(targets)

        def mean_of(function: Callable[..., Any], constants: np.ndarray) -> np.ndarray:
            """Return the mean of each row of ``function(targets)`` at constant raw scores."""
            given = {"loss": self, "score": constants}
            if isinstance(targets, RemoteColumn):
                rows = targets.apply(function, **given)
            else:
                rows = function(targets, **given)
            weighed = (np.multiply, rows, weight) if len(weight) else (np.positive, rows)
            return exact_sums(*weighed) / total

        for count in range(_MOST_STEPS):
            before = score
            if is_checked:
                score = self._checked_step(mean_of, score)
            else:
                step, information = self._scoring_step(mean_of, score)
                score = score + np.clip(step, -1.0, 1.0)
                length = float((information * step * step).sum())
                is_checked = count >= _FREE_STEPS and length >= last_length
                last_length = length
            is_near = np.abs(score - before) <= _TOLERANCE * (1.0 + np.abs(score))
            # a small part of a location far from 0 may be many scales
            if is_near.all() and (is_checked or last_length <= _TOLERANCE):
                break
        return score

    def _scoring_step(
        self, mean_of: Callable[..., np.ndarray], score: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the step of Fisher scoring from constants, and the information."""
        slope, information = mean_of(derivatives_at, score).reshape(2, -1)
        return -slope / information, information

    def _checked_step(self, mean_of: Callable[..., np.ndarray], score: np.ndarray) -> np.ndarray:
        """Return constants within the limits that are at least as likely."""

        def value(constants: np.ndarray) -> float:
            return float(mean_of(values_at, constants)[0])

        score, least, most = self.limited(score), *np.array(self.limits).T
        # at an end only the gradients of rows that lead away from it are left
        inside = np.clip(score, least + _TOLERANCE, most - _TOLERANCE)
        step, _ = self._scoring_step(mean_of, inside)
        stays = ((score <= least) & (step < 0.0)) | ((score >= most) & (step > 0.0))
        if stays.any():  # the others move as if it were known
            step, _ = self._scoring_step(mean_of, np.where(stays, score, inside))
            step[stays] = 0.0
        step /= max(1.0, np.abs(step).max())
        highest = value(score)
        for halvings in range(_MOST_HALVINGS):
            moved = self.limited(score + 0.5**halvings * step)
            if value(moved) <= highest:
                return moved
        return score

    def predictions(self, raw_score: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            means: np.ndarray = np.asarray(self.mean(self.parameters_of(raw_score)))
            return means

    def check_targets(self, y: np.ndarray, name: str) -> None:
        is_outside = self.targets.lacks(y)
        words = f"targets {self.targets.words}"
        if self.is_of_counts:
            is_outside = is_outside | (y != np.floor(y))  # a column is not changed in place
            words = "whole numbers >= 0 as targets"
        why = f"distribution={self.name!r} needs {words}; choose another distribution"
        refuse_first(is_outside, y, name, why)


def derivatives_at(y: np.ndarray, loss: DistributionLoss, score: np.ndarray) -> np.ndarray:
    """Return gradients, and below them the information, of rows that all have these raw scores."""
    return np.concatenate(loss.gradients(*all_at(y, score)))


def values_at(y: np.ndarray, loss: DistributionLoss, score: np.ndarray) -> np.ndarray:
    """Return the losses of rows that all have these raw scores, shape (1, n_samples)."""
    return loss.row_values(*all_at(y, score))[np.newaxis]
