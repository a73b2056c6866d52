"""The concordance index: by hand, and against a comparison of all pairs of rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklboost.objectives.metrics import concordance

pytestmark = pytest.mark.interpreted

NO_WEIGHT = np.empty(0)


def encoded(lower, upper, entry=None, stratum=None):
    """Targets as metrics read them, shape (n_samples, 4)."""
    entry = np.full(len(lower), -np.inf) if entry is None else entry
    stratum = np.zeros(len(lower)) if stratum is None else stratum
    return np.column_stack([lower, upper, entry, stratum]).astype(float)


def by_pairs(y, risk, weight):
    concordant = comparable = 0.0
    for i, (_, end, entry, stratum) in enumerate(y):
        for j, (begin, last, other_entry, other_stratum) in enumerate(y):
            is_first = end < begin or (end == begin and last > begin)
            is_seen = other_entry < end and entry < end
            if i == j or stratum != other_stratum or not (is_first and is_seen):
                continue
            pair = weight[i] * weight[j]
            comparable += pair
            concordant += pair * ((risk[i] > risk[j]) + 0.5 * (risk[i] == risk[j]))
    return concordant / comparable


@pytest.mark.parametrize(
    ("event", "time", "risk", "expected"),
    [
        ([True, True, True], [1, 2, 3], [3, 2, 1], 1.0),
        ([True, True, True], [1, 2, 3], [1, 2, 3], 0.0),
        ([True, True, True], [1, 2, 3], [3, 1, 2], 2 / 3),
        ([True, True, True], [1, 2, 3], [0, 0, 0], 0.5),
        ([False, True, True], [1, 2, 3], [1, 2, 3], 0.0),  # one pair: the first is censored
        ([True, False], [1, 1], [2, 1], 1.0),  # who is censored lives longer
        ([True, True, True], [1, 1, 2], [3, 2, 1], 1.0),  # two pairs: events at 1 are none
    ],
)
def test_by_hand(event, time, risk, expected):
    y = encoded(time, np.where(event, time, np.inf))
    assert concordance(y, np.array(risk, dtype=float), NO_WEIGHT) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["plain", "entries and strata", "bounds"])
def test_is_what_all_pairs_say(kind, seed):
    random = np.random.default_rng(seed)
    lower = random.integers(1, 15, 60).astype(float)
    upper = np.where(random.random(60) < 0.6, lower, np.inf)
    entry = stratum = None
    if kind == "entries and strata":
        entry = np.where(random.random(60) < 0.7, lower - random.integers(1, 9, 60), -np.inf)
        stratum = random.integers(0, 3, 60)
    elif kind == "bounds":
        upper = np.where(random.random(60) < 0.4, lower + random.integers(1, 5, 60), upper)
        lower = np.where(random.random(60) < 0.1, 0.0, lower)
    y, risk = encoded(lower, upper, entry, stratum), np.round(random.normal(size=60), 1)
    for weight in (np.ones(60), random.gamma(2.0, size=60)):
        assert_allclose(concordance(y, risk, weight), by_pairs(y, risk, weight), rtol=1e-12)
    assert concordance(y, risk, NO_WEIGHT) == concordance(y, risk, np.ones(60))


def test_no_pairs():
    y = encoded([1, 2], [np.inf, np.inf])
    assert np.isnan(concordance(y, np.zeros(2), NO_WEIGHT))
