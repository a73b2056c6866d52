import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost.objectives.links import PREDICTIONS, predictions_of, raw_score_of

pytestmark = pytest.mark.interpreted


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


@pytest.mark.parametrize(("link", "prediction"), [("identity", -3.0), ("log", 0.2), ("logit", 0.7)])
def test_there_and_back(link, prediction):
    raw_score = np.array([[raw_score_of(link, prediction, "own")]])
    assert_allclose(predictions_of(link, raw_score), prediction, rtol=1e-15)


@pytest.mark.parametrize(
    ("link", "prediction"), [("log", 0.0), ("log", -1.0), ("logit", 0.0), ("logit", 1.0)]
)
def test_predictions_that_there_are_not(link, prediction):
    words = "> 0" if link == "log" else "between 0 and 1, both excluded"
    with pytest.raises(
        ValueError, match=rf"^base_score={prediction:g}: .* objective='own' are {words}"
    ):
        raw_score_of(link, prediction, "own")
