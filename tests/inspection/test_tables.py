import numpy as np
import pytest

from sklboost.inspection.tables import node_table
from sklboost.tree.predict.assembly import assemble_model
from tests.tree.growth import as_trees, make_nodes, params

pytestmark = pytest.mark.interpreted


@pytest.fixture
def table():
    root = dict(feature=1, threshold=2.5, left=1, right=2, gain=7.0, gradient=6.0, cover=5.0)
    root |= dict(value=0.1 * -1.0)
    first = make_nodes(
        root,
        dict(gradient=4.0, cover=1.0, value=-0.2),
        dict(root, feature=0, left=3, right=4, default_left=1, gain=3.0),
        dict(value=1.0),
        dict(value=2.0),
    )
    settings = params(reg_lambda=1.0, learning_rate=0.1)
    second = make_nodes(dict(gradient=-8.0, cover=3.0, value=0.2))
    model = assemble_model(as_trees([first, second], settings), np.zeros(1), 2)
    return node_table(model, ["age", "height"], [])


def test_one_row_a_node(table):
    assert table["Tree"] == [0, 0, 0, 0, 0, 1]
    assert table["Node"] == [0, 1, 2, 3, 4, 0]
    assert table["ID"] == ["0-0", "0-1", "0-2", "0-3", "0-4", "1-0"]
    assert table["Category"] == [None] * 6


def test_splits(table):
    assert table["Feature"] == ["height", "Leaf", "age", "Leaf", "Leaf", "Leaf"]
    assert (table["Split"][0], table["Split"][2]) == (2.5, 2.5)
    assert np.isnan([table["Split"][leaf] for leaf in (1, 3, 4, 5)]).all()
    assert table["Yes"] == ["0-1", None, "0-3", None, None, None]
    assert table["No"] == ["0-2", None, "0-4", None, None, None]
    assert table["Missing"] == ["0-2", None, "0-3", None, None, None]


def test_numbers(table):
    assert table["Gain"] == [7.0, -0.2, 3.0, 1.0, 2.0, 0.2]  # of a leaf its value
    assert table["Cover"] == [5.0, 1.0, 5.0, 1.0, 1.0, 3.0]
    # the fourth and the fifth were not free: their sums ask for a weight of 0
    assert table["Similarity"] == [6.0, 8.0, 6.0, -200.0, -800.0, 16.0]
    assert table["Output"] == [-1.0, -2.0, -1.0, 10.0, 20.0, 2.0]
