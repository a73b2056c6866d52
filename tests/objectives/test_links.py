"""Links and the predictions they stand for; each way from one scale of a row to another."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special

from sklboost.engine.compiling import made_kernel
from sklboost.objectives.links import (
    IDENTITY,
    LOG,
    LOG_1P,
    LOG_ODDS,
    PREDICTIONS,
    PROBABILITY,
    SOFTMAX,
    chances,
    change_of_scale,
    predictions_of,
)
from sklboost.objectives.registry import METRICS

pytestmark = pytest.mark.interpreted

EPS = np.finfo(float).eps
ODDS = np.log((1 - EPS) / EPS)


def test_by_hand():
    raw_score = np.array([[0.0, np.log(3.0)], [0.0, 0.0]])
    assert_array_equal(predictions_of("identity", raw_score), raw_score)
    assert_allclose(predictions_of("log", raw_score), [[1, 3], [1, 1]])
    assert_allclose(predictions_of("logit", raw_score), [[0.5, 0.75], [0.5, 0.5]])
    assert_allclose(predictions_of("softmax", raw_score), [[0.5, 0.75], [0.5, 0.25]])


@pytest.mark.parametrize("link", PREDICTIONS)
def test_predictions_are_a_new_array_and_never_nan(link):
    raw_score = np.array([[-1e300, -800.0, 0.0, 800.0, 1e300], [0.0] * 5])
    found = predictions_of(link, raw_score)
    assert not np.shares_memory(found, raw_score)
    assert not np.isnan(found).any()


# --- scales --------------------------------------------------------------------------------------


@cache  # several tests ask for the same ways, each of which is compiled
def way(given, wanted):
    change = change_of_scale(given, wanted).kernel

    def fill(values, results):
        for index in range(len(values)):
            results[index] = change(values[index])

    return made_kernel(fill, None)


def changed(given, wanted, values):
    results = np.empty(len(values))
    way(given, wanted)(np.array(values, dtype=float), results)
    return results


def test_all_ways_are_known_functions():
    z, share = np.linspace(-30, 30, 61), np.linspace(0.01, 0.99, 50)
    assert_allclose(changed(LOG, IDENTITY, z), np.exp(z), rtol=1e-15)
    assert_allclose(changed(LOG_ODDS, IDENTITY, z), special.expit(z), rtol=2e-15)
    assert_allclose(changed(LOG_ODDS, PROBABILITY, z), special.expit(z), rtol=2e-15)
    assert_allclose(changed(LOG_ODDS, LOG, z), special.log_expit(z), rtol=2e-15)
    assert_allclose(changed(IDENTITY, LOG, share * 9), np.log(share * 9), rtol=2e-15)
    assert_allclose(changed(PROBABILITY, SOFTMAX, share), np.log(share), rtol=2e-15)
    assert_allclose(
        changed(PROBABILITY, LOG_ODDS, share), special.logit(share), rtol=1e-14, atol=1e-15
    )
    assert_allclose(
        changed(IDENTITY, LOG_ODDS, share), special.logit(share), rtol=1e-14, atol=1e-15
    )
    log_odds = changed(LOG, LOG_ODDS, np.log(share))
    assert_allclose(log_odds, special.logit(share), rtol=1e-13, atol=1e-14)
    assert_allclose(changed(IDENTITY, LOG_1P, share * 9), np.log1p(share * 9), rtol=2e-15)
    assert_allclose(changed(LOG, LOG_1P, z), np.log1p(np.exp(z)), rtol=2e-15)
    assert_allclose(changed(LOG_ODDS, LOG_1P, z), np.log1p(special.expit(z)), rtol=3e-15)


def test_every_loss_of_a_regression_has_a_way():
    for given in (IDENTITY, LOG, LOG_ODDS):  # what a regression's raw scores may be
        for entry in METRICS["regression"]:
            if not entry.greater_is_better:
                assert change_of_scale(given, entry.of.reads) is not None
    # a regression whose user says that its link is softmax: by predictions only
    assert change_of_scale(SOFTMAX, IDENTITY) is None


def test_the_ends():
    assert_allclose(changed(LOG, IDENTITY, [1e9, -1e9]), [np.exp(340), np.exp(-340)], rtol=1e-13)
    assert np.isnan(changed(IDENTITY, LOG, [0.0, -1.0])).all()
    assert np.isnan(changed(IDENTITY, LOG_1P, [-1.0, -3.0])).all()
    outside = np.isnan(changed(IDENTITY, LOG_ODDS, [-1e-9, 0, 1, 1.001]))
    assert list(outside) == [True, False, False, True]
    assert list(np.isnan(changed(LOG, LOG_ODDS, [-1e9, 0, 1e-9]))) == [False, False, True]
    assert_allclose(changed(PROBABILITY, SOFTMAX, [0.0, 1.0]), [np.log(EPS), 0.0])
    assert_allclose(changed(PROBABILITY, LOG_ODDS, [0.0, 0.5, 1.0]), [-ODDS, 0.0, ODDS])
    assert changed(PROBABILITY, LOG_ODDS, [0.5])[0] == 0.0
    assert list(changed(LOG_ODDS, PROBABILITY, [-1e9, 1e9])) == [np.exp(-700.0), 1.0]


def test_chances_of_log_odds_at_the_ends():
    z = np.array([-np.inf, -800.0, -1.0, -0.0, 0.0, 1.0, 800.0, np.inf, np.nan])
    decay = np.exp(-1.0)
    below, above = decay / (1.0 + decay), 1.0 / (1.0 + decay)
    with np.errstate(all="raise"):
        assert_array_equal(chances(z), [0.0, 0.0, below, 0.5, 0.5, above, 1.0, 1.0, np.nan])
