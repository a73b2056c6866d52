import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost.inspection.importances import ValidationImportances, scaled_to_one

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize(
    ("gains", "scaled"),
    [
        ([4.0, 0.0, 1.0], [0.8, 0.0, 0.2]),
        ([0.0, 0.0], [0.0, 0.0]),
        ([-1.0, 4.0, 0.0], [0.0, 1.0, 0.0]),  # less than nothing counts for nothing
        ([-1.0, 0.0], [0.0, 0.0]),
    ],
)
def test_scaled_to_one(gains, scaled):
    assert_array_equal(scaled_to_one(np.array(gains)), scaled)


# --- on validation rows


@pytest.fixture
def found():
    return ValidationImportances(
        ["age", "noise", "a longer name"],
        importances=np.array([[5.0, 7.0], [2.0, 0.0], [0.0, -1.0]]),
        shadow_importances=np.array([[0.5, 0.0], [1.0, -3.0], [0.0, -1.0]]),
        method="permutation",
    )


def test_mean_and_deviation(found):
    assert_array_equal(found.importances_mean, [6.0, 1.0, -0.5])
    assert_array_equal(found.importances_std, [1.0, 1.0, 0.5])


def test_the_baseline_is_the_best_shadow_of_each_repetition_and_not_below_0(found):
    assert_array_equal(found.baseline, [1.0, 0.0])
    assert_array_equal(
        ValidationImportances(["x"], np.ones((1, 2)), -np.ones((1, 2)), "shap").baseline, [0.0, 0.0]
    )


def test_what_exceeds_the_best_shadow_of_all(found):
    # the second has as much as the best shadow, which is not more
    assert_array_equal(found.exceeds_baseline, [True, False, False])


def test_p_values_count_the_repetitions_whose_best_shadow_has_as_much(found):
    assert_allclose(found.p_values, [1 / 3, 2 / 3, 1.0])


def test_printed_as_a_table(found):
    assert repr(found).splitlines() == [
        "ValidationImportances: 1 of 3 features exceed the best shadow of all 2 repetitions "
        "(permutation)",
        "  age                     6 +- 1",
        "  best shadow             1",
        "  noise                   1 +- 1          not above",
        "  a longer name        -0.5 +- 0.5        not above",
    ]
