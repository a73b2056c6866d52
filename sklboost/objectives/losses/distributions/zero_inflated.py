"""Zero-inflated distributions: 0 with a probability of its own, and else another distribution.

With the probability q of these zeros, raw score ``log(q / (1 - q))``, and the probability f_0 that
the other distribution gives 0, a 0 is one of them with the probability ``w = q / (q + (1 - q)
f_0)``. The gradient is ``q - w``, and ``1 - w`` times the other distribution's. If it were known
which zeros are inflation, the information would be diagonal, ``q (1 - q)`` and ``1 - q`` times the
other's. Since it is not, ``u v v'`` is missing: v is 1 and the other's gradient at 0, and ``u = q
(1 - q) f_0 / (q + (1 - q) f_0)``, the variance of the guess times the probability of a 0. What is
left is not diagonal, so each parameter has its efficient gradient and information, as in
`StudentT`. Sources: Lambert (1992), "Zero-Inflated Poisson Regression"; Louis (1982), "Finding the
Observed Information Matrix when Using the EM Algorithm", for what is missing.
"""

from typing import Any, ClassVar

import numpy as np

from sklboost.engine.compiling import inlined, made_kernel
from sklboost.engine.elementary import exp, log
from sklboost.objectives.blocks import LEAST_HESSIAN, full_name
from sklboost.objectives.domains import NOT_NEGATIVE
from sklboost.objectives.loss import meets
from sklboost.objectives.losses.distributions import (
    DistributionLoss,
    Parameters,
    is_between,
    within,
)
from sklboost.objectives.losses.distributions.continuous import Gamma, Lognormal
from sklboost.objectives.losses.distributions.counts import NegativeBinomial, Poisson
from sklboost.objectives.start_values import weighted_mean

_LOG_ODDS = (-9.0, 9.0)
# Place of the gradients at 0, behind the row's.
_ROOM = 8
# Of the information in one direction, if almost nothing tells inflation from the other zeros.
_LEAST_LEFT = 0.05


def _derivatives_of(base: type[DistributionLoss]) -> Any:
    """Make the kernel of the gradients and the information of a row."""
    of_base, value, is_of_counts = base.derivatives, base.row_value, base.is_of_counts
    limits = (_LOG_ODDS, *base.limits)

    def derivatives(y, z, spread, first, second):
        inflation = 1.0 / (1.0 + exp(-within(z[0], _LOG_ODDS)))
        of_zero = exp(-value(0.0, z[1:], spread)) if is_of_counts else 0.0
        chance = inflation + (1.0 - inflation) * of_zero
        rest = 1.0 if y > 0.0 else (1.0 - inflation) * of_zero / chance
        of_base(y if rest > 0.0 else 1.0, z[1:], spread, first[1:], second[1:])
        first[0] = inflation - (1.0 - rest)
        second[0] = inflation * (1.0 - inflation)
        for output in range(1, len(z)):
            first[output] *= rest
            second[output] = max((1.0 - inflation) * second[output], LEAST_HESSIAN)
        if is_of_counts:
            of_base(0.0, z[1:], spread, first[_ROOM + 1 :], second[_ROOM + 1 :])
            first[_ROOM] = 1.0
            for output in range(len(z)):
                if not is_between(z[output], limits[output]):
                    first[_ROOM + output] = 0.0  # what cannot move is known
            unseen = inflation * (1.0 - inflation) * of_zero / chance
            _make_natural(first, second, len(z), unseen)

    return made_kernel(derivatives, full_name(base))


@inlined
def _make_natural(first, second, n_outputs, unseen):
    """Replace gradients and the information of the complete data by efficient ones.

    What is not seen takes ``u v v'`` from the information C of the complete data, with v from
    `first` on: the inverse is ``C^-1 + u / (1 - u v' C^-1 v) C^-1 v v' C^-1`` (Sherman & Morrison).
    """
    taken, along = 0.0, 0.0
    for output in range(n_outputs):
        part = first[_ROOM + output] / second[output]
        taken += unseen * part * first[_ROOM + output]
        along += part * first[output]
    factor = unseen / max(1.0 - taken, _LEAST_LEFT)
    for output in range(n_outputs):
        part = first[_ROOM + output] / second[output]
        information = 1.0 / (1.0 / second[output] + factor * part * part)
        first[output] = information * (first[output] / second[output] + factor * part * along)
        second[output] = information


def _value_of(base: type[DistributionLoss]) -> Any:
    """Make the kernel of the negative log-likelihood of a row."""
    value, is_of_counts = base.row_value, base.is_of_counts

    def row_value(y, z, spread):
        inflation = 1.0 / (1.0 + exp(-within(z[0], _LOG_ODDS)))
        if y > 0.0:
            return value(y, z[1:], spread) - log(1.0 - inflation)
        of_zero = exp(-value(0.0, z[1:], spread)) if is_of_counts else 0.0
        return -log(inflation + (1.0 - inflation) * of_zero)

    return made_kernel(row_value, full_name(base))


class _ZeroInflated(DistributionLoss):
    """Base of all mixtures: a subclass names the other distribution."""

    base: ClassVar[type[DistributionLoss]]
    targets = NOT_NEGATIVE

    def __init_subclass__(cls) -> None:
        """Take over the names of the other distribution, and make the formulas of the mixture."""
        cls.name = f"zero_inflated_{cls.base.name}"
        cls.parameter_names = ("inflation", *cls.base.parameter_names)
        cls.output_names = ("log odds of inflation", *cls.base.output_names)
        cls.limits = (_LOG_ODDS, *cls.base.limits)
        cls.is_of_counts, cls.has_own_unit = cls.base.is_of_counts, cls.base.has_own_unit
        cls.derivatives = staticmethod(_derivatives_of(cls.base))
        cls.row_value = staticmethod(_value_of(cls.base))
        super().__init_subclass__()

    def __init__(self, spread: float = 1.0):
        super().__init__(spread)
        self._base = self.base(spread)

    @classmethod
    def spread_of(cls, y: np.ndarray, weight: np.ndarray) -> float:
        """Return the unit of the targets above 0; ValueError if amounts have none."""
        known, weights = _above_0(y, weight)
        if len(known) == 0 and not cls.is_of_counts:
            raise ValueError(
                f"distribution={cls.name!r} and y is 0 in every row of positive weight: amounts "
                "above 0 are needed, too"
            )
        return cls.base.spread_of(known, weights)

    def needs(self, y: np.ndarray) -> dict[str, np.ndarray]:
        """Return which rows tell of the other distribution, unless 0 does, too."""
        return {} if self.is_of_counts else {"target above 0": meets(y > 0.0)}

    def guess(self, y: np.ndarray, weight: np.ndarray) -> list[float]:
        """Return raw scores of the share of zeros, half of it for counts, and the others' guess."""
        share = weighted_mean((y == 0.0).astype(np.float64), weight)
        share = min(max(0.5 * share if self.is_of_counts else share, 2e-4), 1.0 - 2e-4)
        known, weights = _above_0(y, weight)
        if len(known) == 0:
            known, weights = y, weight
        return [np.log(share / (1.0 - share)), *self._base.guess(known, weights)]

    def parameters_of(self, raw_score: np.ndarray) -> Parameters:
        log_odds = np.clip(raw_score[0], *_LOG_ODDS)
        return 1.0 / (1.0 + np.exp(-log_odds)), *self._base.parameters_of(raw_score[1:])

    def mean(self, parameters: Parameters) -> np.ndarray:
        inflation, *others = parameters
        means: np.ndarray = (1.0 - inflation) * self._base.mean(others)
        return means

    def mean_distance(self, y: np.ndarray, parameters: Parameters) -> Any:
        inflation, *others = parameters
        return inflation * y + (1.0 - inflation) * self._base.mean_distance(y, others)

    def half_distance(self, parameters: Parameters) -> Any:
        """Return half the mean distances; of 0 and a draw it is half the draw."""
        inflation, *others = parameters
        rest, mean = 1.0 - inflation, self._base.mean(others)
        return rest * (inflation * mean + rest * self._base.half_distance(others))

    def frozen(self, parameters: Parameters) -> Any:
        inflation, *others = parameters
        from sklboost.objectives.losses.distributions.frozen import FrozenZeroInflated

        return FrozenZeroInflated(self._base.frozen(others), inflation, self.is_of_counts)


def _above_0(y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return y[y > 0.0], weight[y > 0.0] if len(weight) else weight


class ZeroInflatedPoisson(_ZeroInflated):
    """More zeros than the Poisson distribution has."""

    base = Poisson


class ZeroInflatedNegativeBinomial(_ZeroInflated):
    """More zeros than the negative binomial distribution has."""

    base = NegativeBinomial


class ZeroInflatedGamma(_ZeroInflated):
    """Amounts that are often 0, and else of a gamma distribution."""

    base = Gamma


class ZeroInflatedLognormal(_ZeroInflated):
    """Amounts that are often 0, and else of a lognormal distribution."""

    base = Lognormal
