"""Links and the predictions they stand for; what formulas of a row read of raw scores."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special

from sklboost.engine.compiling import inlined
from sklboost.objectives.blocks import LOG_1P, Formula, can_read
from sklboost.objectives.domains import IDENTITY, LINKS, LOG, LOG_ODDS, SOFTMAX, predictions_of
from sklboost.objectives.metric import Metric, mean_of_rows
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


@pytest.mark.parametrize("link", LINKS)
def test_predictions_are_a_new_array_and_never_nan(link):
    raw_score = np.array([[-1e300, -800.0, 0.0, 800.0, 1e300], [0.0] * 5])
    found = predictions_of(link, raw_score)
    assert not np.shares_memory(found, raw_score)
    assert not np.isnan(found).any()


# --- scales --------------------------------------------------------------------------------------


@inlined
def score_itself(y, score, term):
    """Return the score."""
    return score


def changed(link, reads, values):
    """Return what a formula reads of raw scores of a link."""
    metric = Metric("", False, None, formula=Formula(score_itself, reads), parameters=(0.0,))
    raw_scores = np.array(values, dtype=float)[:, np.newaxis, np.newaxis]
    y, weight = np.zeros((1, 1)), np.empty(0)
    return np.array([mean_of_rows(metric, link, y, raw_score, weight) for raw_score in raw_scores])


def test_all_ways_are_known_functions():
    z, share = np.linspace(-30, 30, 61), np.linspace(0.01, 0.99, 50)
    for link in (LOG, LOG_ODDS):
        assert_array_equal(changed(link, link, z), z)
    assert_allclose(changed(LOG, IDENTITY, z), np.exp(z), rtol=1e-15)
    assert_allclose(changed(LOG_ODDS, IDENTITY, z), special.expit(z), rtol=2e-15)
    assert_allclose(changed(LOG_ODDS, LOG, z), special.log_expit(z), rtol=2e-15, atol=1e-15)
    assert_allclose(changed(IDENTITY, LOG, share * 9), np.log(share * 9), rtol=2e-15)
    for link, scores in ((IDENTITY, share), (LOG, np.log(share))):
        log_odds = changed(link, LOG_ODDS, scores)
        assert_allclose(log_odds, special.logit(share), rtol=1e-13, atol=1e-14)
    assert_allclose(changed(IDENTITY, LOG_1P, share * 9), np.log1p(share * 9), rtol=2e-15)
    assert_allclose(changed(LOG, LOG_1P, z), np.log1p(np.exp(z)), rtol=2e-15)
    assert_allclose(changed(LOG_ODDS, LOG_1P, z), np.log1p(special.expit(z)), rtol=3e-15)


def test_every_loss_of_a_regression_has_a_way():
    formulas = [entry.of for entry in METRICS["regression"] if not entry.greater_is_better]
    for formula in formulas:
        # what a regression's raw scores may be
        assert all(can_read(formula, link) for link in (IDENTITY, LOG, LOG_ODDS))
        # by predictions only: a loss of its own, or a user says that the link is softmax
        assert not any(can_read(formula, link) for link in ("other", SOFTMAX))


def test_the_ends():
    assert_allclose(changed(LOG, IDENTITY, [1e9, -1e9]), [np.exp(340), np.exp(-340)], rtol=1e-13)
    assert np.isnan(changed(IDENTITY, LOG, [0.0, -1.0])).all()
    assert np.isnan(changed(IDENTITY, LOG_1P, [-1.0, -3.0])).all()
    outside = np.isnan(changed(IDENTITY, LOG_ODDS, [-1e-9, 0, 1, 1.001]))
    assert list(outside) == [True, False, False, True]
    assert list(np.isnan(changed(LOG, LOG_ODDS, [-1e9, 0, 1e-9]))) == [False, False, True]
    assert_allclose(changed(IDENTITY, LOG_ODDS, [0.0, 0.5, 1.0]), [-ODDS, 0.0, ODDS])
    assert changed(IDENTITY, LOG_ODDS, [0.5])[0] == 0.0
    assert list(changed(LOG_ODDS, IDENTITY, [-1e9, 1e9])) == [np.exp(-700.0), 1.0]


def test_probabilities_of_log_odds_at_the_ends():
    z = np.array([-np.inf, -800.0, -1.0, -0.0, 0.0, 1.0, 800.0, np.inf, np.nan])
    decay = np.exp(-1.0)
    below, above = decay / (1.0 + decay), 1.0 / (1.0 + decay)
    expected = [0.0, 0.0, below, 0.5, 0.5, above, 1.0, 1.0, np.nan]
    with np.errstate(all="raise"):
        assert_array_equal(predictions_of("logit", z), expected)
