import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklboost.inspection.shap.edges import lay_out_edges
from sklboost.tree.predict.assembly import assemble_model
from tests.tree.growth import as_trees, make_nodes, params

pytestmark = pytest.mark.interpreted


@pytest.fixture
def edges():
    # the root's children are written before its grandchildren; feature 2 comes back at node 4
    first = make_nodes(
        dict(feature=2, threshold=5.0, left=1, right=2, cover=8.0),
        dict(feature=0, threshold=1.0, left=3, right=4, cover=6.0),
        dict(value=7.0, cover=2.0),
        dict(value=8.0, cover=3.0),
        dict(feature=2, threshold=3.0, left=5, right=6, cover=3.0),
        dict(value=9.0, cover=1.0),
        dict(value=10.0, cover=2.0),
    )
    second = make_nodes(dict(value=-1.0, cover=8.0))
    model = assemble_model(as_trees([first, second], params()), np.zeros(1), 5)
    return lay_out_edges(model)


def test_order_of_a_walk_in_depth(edges):
    assert edges.edges.position.tolist() == [0, 1, 3, 4, 5, 6, 2, 7]
    assert edges.edges.depth.tolist() == [0, 1, 2, 2, 3, 3, 1, 0]
    assert edges.edges.right.tolist() == [6, 3, -1, 5, -1, -1, -1, -1]
    assert edges.edges.parent.tolist() == [0, 0, 1, 1, 3, 3, 0, 0]


def test_columns_are_the_features_that_occur(edges):
    assert edges.features.tolist() == [0, 2]
    assert edges.edges.column.tolist() == [1, 0, -1, 1, -1, -1, -1, -1]


def test_edges_know_the_one_before_with_their_feature(edges):
    assert edges.edges.previous.tolist() == [0, 0, 0, 0, 1, 1, 0, 0]
    assert edges.edges.n_different.tolist() == [0, 1, 2, 2, 2, 2, 1, 0]


def test_shares_are_those_of_all_splits_on_the_feature(edges):
    third = 1.0 / 3.0
    assert_allclose(edges.edges.fraction, [1, 0.75, 0.5, 0.5, third, 2 * third, 0.25, 1])
    assert_allclose(edges.edges.share, [1, 0.75, 0.5, 0.5, 0.25, 0.5, 0.25, 1])
    assert_allclose(edges.edges.reach, [1, 0.75, 0.375, 0.375, 0.125, 0.25, 0.25, 1])


def test_nodes_without_cover_are_divided_in_halves():
    nodes = make_nodes(
        dict(feature=0, threshold=5.0, left=1, right=2), dict(value=7.0), dict(value=8.0)
    )
    model = assemble_model(as_trees([nodes], params()), np.zeros(1), 1)
    assert lay_out_edges(model).edges.fraction.tolist() == [1.0, 0.5, 0.5]
