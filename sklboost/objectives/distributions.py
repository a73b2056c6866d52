"""The distributions that can be named; what computes with one is imported when it is asked for."""

from pkgutil import resolve_name
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sklboost.objectives.losses.distributions.base import DistributionLoss

_PLACES = {
    "normal": "continuous:Normal",
    "student_t": "continuous:StudentT",
    "laplace": "continuous:Laplace",
    "lognormal": "continuous:Lognormal",
    "gamma": "continuous:Gamma",
    "poisson": "counts:Poisson",
    "negative_binomial": "counts:NegativeBinomial",
    "zero_inflated_poisson": "zero_inflated:ZeroInflatedPoisson",
    "zero_inflated_negative_binomial": "zero_inflated:ZeroInflatedNegativeBinomial",
    "zero_inflated_gamma": "zero_inflated:ZeroInflatedGamma",
    "zero_inflated_lognormal": "zero_inflated:ZeroInflatedLognormal",
}
DISTRIBUTIONS = tuple(_PLACES)


def find_distribution(name: str) -> "type[DistributionLoss]":
    """Return the loss of a distribution."""
    found: type[DistributionLoss] = resolve_name(
        f"sklboost.objectives.losses.distributions.{_PLACES[name]}"
    )
    return found
