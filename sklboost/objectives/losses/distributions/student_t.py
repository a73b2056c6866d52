"""Student's t distribution, with its degrees of freedom as third parameter.

With the residual ``r = (y - loc) / scale`` and n degrees of freedom the negative log-likelihood is
``(n + 1) / 2 log(1 + r^2 / n) + log scale + log B(n / 2, 1 / 2) + log(n) / 2``. Its Fisher
information: Lange, Little & Taylor (1989), "Robust Statistical Modeling Using the t Distribution",
appendix B.
"""

import math
from typing import Any

import numpy as np

from sklboost.engine.compiling import inlined
from sklboost.engine.elementary import (
    digamma,
    exp,
    log,
    log_of_factorial,
    log_of_one_plus,
    trigamma,
)
from sklboost.objectives.losses.distributions.base import (
    ANY_SIZE,
    LOG_SCALES,
    Parameters,
    is_between,
    within,
)
from sklboost.objectives.losses.distributions.real import LocationScale
from sklboost.objectives.start_values import weighted_quantile

_HALF_LOG_PI = 0.5 * math.log(math.pi)
# Below, there is hardly a mean; beyond, the normal distribution.
_LOG_DFS = (math.log(1.1), math.log(1000.0))
_QUARTILE_OF_NORMAL = 0.6744897501960817


class StudentT(LocationScale):
    """Student's t distribution, whose tails are heavier the fewer degrees of freedom.

    Scale and degrees of freedom are not orthogonal: a sample of heavy tails could have a larger
    scale as well. So each has its efficient gradient, what is left of it after its regression on
    the other's, and the information that is left: together these are the natural gradient.
    """

    name = "student_t"
    parameter_names = ("df", "loc", "scale")
    output_names = ("loc", "log scale", "log df")
    limits = (ANY_SIZE, LOG_SCALES, _LOG_DFS)

    @classmethod
    def _scale_of(cls, y: np.ndarray, weight: np.ndarray) -> float:
        """Return the scale by the quartiles, which outliers do not move."""
        low, high = (weighted_quantile(y, weight, alpha) for alpha in (0.25, 0.75))
        scale = (high - low) / (2.0 * _QUARTILE_OF_NORMAL)
        return scale if scale > 0.0 else super()._scale_of(y, weight)

    def guess(self, y: np.ndarray, weight: np.ndarray) -> list[float]:
        """Return those of the median and the quartiles, with 5 degrees of freedom."""
        raw = self._raw(weighted_quantile(y, weight, 0.5), self._scale_of(y, weight))
        return [*raw, math.log(5.0)]

    @staticmethod
    @inlined
    def derivatives(y, z, spread, first, second):
        """Fill the gradients and the information of a row."""
        scale = exp(within(z[1], LOG_SCALES))
        df = exp(within(z[2], _LOG_DFS))
        r = (y / spread - z[0]) / scale
        pull = (df + 1.0) / (df + r * r)
        first[0] = -pull * r / scale
        second[0] = (df + 1.0) / ((df + 3.0) * scale * scale)
        of_scale = 1.0 - pull * r * r
        between = digamma(0.5 * df) - digamma(0.5 * df + 0.5)
        of_df = 0.5 * df * (between + log_of_one_plus(r * r / df)) + 0.5 * of_scale
        both = (df + 1.0) * (df + 3.0)
        scale_information = 2.0 * df / (df + 3.0)
        # a parameter that cannot move is known
        are_free = is_between(z[1], LOG_SCALES) and is_between(z[2], _LOG_DFS)
        mixed = -2.0 * df / both if are_free else 0.0
        curve = 0.25 * (trigamma(0.5 * df) - trigamma(0.5 * df + 0.5))
        df_information = df * df * (curve - (df + 5.0) / (2.0 * df * both))
        first[1] = of_scale - mixed / df_information * of_df
        second[1] = scale_information - mixed * mixed / df_information
        first[2] = of_df - mixed / scale_information * of_scale
        second[2] = df_information - mixed * mixed / scale_information

    @staticmethod
    @inlined
    def row_value(y, z, spread):
        """Return the negative log-likelihood of a row."""
        log_scale = within(z[1], LOG_SCALES)
        log_df = within(z[2], _LOG_DFS)
        df = exp(log_df)
        r = (y / spread - z[0]) * exp(-log_scale)
        # log gamma(x) = log gamma(x + 1) - log x, for x = df / 2, which may be less than 1
        constant = log_of_factorial(0.5 * df) - log(0.5 * df) - log_of_factorial(0.5 * df - 0.5)
        tail = 0.5 * (df + 1.0) * log_of_one_plus(r * r / df)
        return tail + constant + 0.5 * log_df + _HALF_LOG_PI + log_scale + log(spread)

    def parameters_of(self, raw_score: np.ndarray) -> Parameters:
        """Return degrees of freedom, locations and scales."""
        df = np.exp(np.clip(raw_score[2], *_LOG_DFS))
        return df, *super().parameters_of(raw_score)

    def mean(self, parameters: Parameters) -> np.ndarray:
        """Return the locations."""
        return parameters[1]

    def crps(self, y: np.ndarray, parameters: Parameters) -> Any:
        """Return Jordan, Krueger & Lerch's closed form, with the beta function B.

        ``scale (r (2 F(r) - 1) + 2 f(r) (n + r^2) / (n - 1)
        - 2 sqrt(n) / (n - 1) B(1/2, n - 1/2) / B(1/2, n/2)^2)``.
        """
        df, loc, scale = parameters
        from scipy.special import betaln, stdtr

        r = (y - loc) / scale
        log_beta = betaln(0.5, 0.5 * df)
        density = np.exp(-0.5 * (df + 1.0) * np.log1p(r * r / df) - log_beta) / np.sqrt(df)
        spread = 2.0 * np.sqrt(df) * np.exp(betaln(0.5, df - 0.5) - 2.0 * log_beta)
        near = 2.0 * density * (df + r * r)
        return scale * (r * (2.0 * stdtr(df, r) - 1.0) + (near - spread) / (df - 1.0))

    def frozen(self, parameters: Parameters) -> Any:
        """Return that of Student's t."""
        from sklboost.objectives.losses.distributions.frozen import student_t

        return student_t(*parameters)
