import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.inspection.importances import IMPORTANCE_TYPES, scaled_to_one, split_importances
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


def test_there_are_five_kinds():
    assert set(EXPECTED) == set(IMPORTANCE_TYPES)


@pytest.mark.parametrize("importance_type", IMPORTANCE_TYPES)
def test_what_the_splits_of_each_feature_have(importance_type):
    found = importances(importance_type, *TREES)
    assert found.dtype == np.float64
    assert_array_equal(found, EXPECTED[importance_type])


@pytest.mark.parametrize("importance_type", IMPORTANCE_TYPES)
def test_no_splits(importance_type):
    assert_array_equal(importances(importance_type, [{}], [{}]), [0.0, 0.0, 0.0])


def test_scaled_to_one():
    assert_array_equal(scaled_to_one(np.array([4.0, 0.0, 1.0])), [0.8, 0.0, 0.2])
    assert_array_equal(scaled_to_one(np.zeros(2)), [0.0, 0.0])


def test_gains_below_zero_count_for_nothing():
    assert_array_equal(scaled_to_one(np.array([-1.0, 4.0, 0.0])), [0.0, 1.0, 0.0])
    assert_array_equal(scaled_to_one(np.array([-1.0, 0.0])), [0.0, 0.0])
