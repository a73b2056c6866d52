import numpy as np
import pytest

from sklboost.objectives.domains import (
    ABOVE_MINUS_1,
    ANYWHERE,
    BETWEEN_0_AND_1,
    NOT_NEGATIVE,
    POSITIVE,
    SHARES,
    check_domain,
)

pytestmark = pytest.mark.interpreted

VALUES = np.array([-np.inf, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, np.nan])
OUTSIDE = {
    ANYWHERE: [],
    ABOVE_MINUS_1: [-np.inf, -1],
    NOT_NEGATIVE: [-np.inf, -1, -0.5],
    POSITIVE: [-np.inf, -1, -0.5, 0],
    SHARES: [-np.inf, -1, -0.5, 2],
    BETWEEN_0_AND_1: [-np.inf, -1, -0.5, 0, 1, 2],
}


@pytest.mark.parametrize("domain", OUTSIDE, ids=lambda domain: domain.words)
def test_what_is_outside(domain):
    assert VALUES[domain.lacks(VALUES)].tolist() == OUTSIDE[domain]
    for value in VALUES[:-1]:
        assert domain.has(float(value)) is bool(value not in OUTSIDE[domain])
    assert not domain.has(np.nan)


def test_the_first_is_named_by_its_place():
    y = np.array([[1.0, 2.0], [np.nan, -3.0], [-4.0, 0.0]])
    with pytest.raises(ValueError, match=r"^y\[1, 1\]=-3: objective='own' needs targets >= 0; "):
        check_domain(y, NOT_NEGATIVE, "y", "own")
    check_domain(y[:1], NOT_NEGATIVE, "y", "own")
