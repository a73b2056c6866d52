import numpy as np
import pytest

from sklboost.inspection.importances import gain_importance
from sklboost.tree.assembly import assemble_model
from tests.tree.growth import as_trees, make_nodes, params

pytestmark = pytest.mark.interpreted


def split(feature, gain, left):
    return dict(feature=feature, gain=gain, threshold=0.0, left=left, right=left + 1)


def importance(*trees):
    tables = [make_nodes(*tree) for tree in trees]
    return list(gain_importance(assemble_model(as_trees(tables, params()), np.zeros(1), 3)))


def test_average_gain_of_each_features_splits():
    two_splits = [split(0, 6.0, 1), split(2, 1.0, 3), {}, {}, {}]
    assert importance(two_splits, [split(0, 2.0, 1), {}, {}]) == [0.8, 0.0, 0.2]


def test_no_splits():
    assert importance([{}], [{}]) == [0.0, 0.0, 0.0]


def test_gains_below_zero_count_for_nothing():
    assert importance([split(0, -1.0, 1), split(1, 4.0, 3), {}, {}, {}]) == [0.0, 1.0, 0.0]
    assert importance([split(0, -1.0, 1), {}, {}]) == [0.0, 0.0, 0.0]
