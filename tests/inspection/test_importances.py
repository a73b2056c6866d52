import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost.inspection.importances import IMPORTANCE_TYPES, scaled_to_one, split_importances
from sklboost.inspection.validation_importances import ValidationImportances
from sklboost.tree.predict.assembly import assemble_model
from tests.tree.growth import as_trees, make_nodes, params

pytestmark = pytest.mark.interpreted


def split(feature, gain, left, cover=1.0):
    return dict(feature=feature, gain=gain, threshold=0.0, left=left, right=left + 1, cover=cover)


def importances(importance_type, *trees):
    tables = [make_nodes(*tree) for tree in trees]
    model = assemble_model(as_trees(tables, params()), np.zeros(1), 3)
    return split_importances(model, importance_type)


TREES = [
    [split(0, 6.0, 1, cover=8.0), split(2, 1.0, 3, cover=5.0), {}, {}, {}],
    [split(0, 2.0, 1, cover=4.0), {}, {}],
]
EXPECTED = {
    "gain": [4.0, 0.0, 1.0],
    "total_gain": [8.0, 0.0, 1.0],
    "cover": [6.0, 0.0, 5.0],
    "total_cover": [12.0, 0.0, 5.0],
    "weight": [2.0, 0.0, 1.0],
}


@pytest.mark.parametrize("importance_type", IMPORTANCE_TYPES)
def test_what_the_splits_of_each_feature_have(importance_type):
    found = importances(importance_type, *TREES)
    assert found.dtype == np.float64
    assert_array_equal(found, EXPECTED[importance_type])
    assert_array_equal(importances(importance_type, [{}], [{}]), [0.0, 0.0, 0.0])


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
