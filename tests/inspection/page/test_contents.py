"""What the page is given to show."""

import json

import numpy as np
import pytest

from sklboost import XGBRegressorLite
from sklboost.estimators.predict.fitted_model import fitted_model
from sklboost.inspection.page.contents import (
    curve_contents,
    importances_of_splits,
    model_contents,
)


def test_curves_by_metric_without_what_is_no_number():
    log = {"a": {"rmse": [3.0, np.inf], "mae": [2.0, 1.0]}, "b": {"rmse": [4.0, np.nan]}}
    curves = json.loads(json.dumps(curve_contents(log, 5, None), allow_nan=False))
    assert curves == {
        "first_round": 5,
        "best": None,
        "metrics": [
            {
                "name": "rmse",
                "sets": [
                    {"name": "a", "values": [3.0, None]},
                    {"name": "b", "values": [4.0, None]},
                ],
            },
            {"name": "mae", "sets": [{"name": "a", "values": [2.0, 1.0]}]},
        ],
    }


@pytest.fixture(scope="module")
def model(regression):
    X, y = regression
    settings = dict(n_estimators=3, max_depth=4, gamma=30000.0, keep_pruned=True)
    return XGBRegressorLite(**settings).fit(X, y)


def test_columns_of_trees(model):
    contents = model_contents(model.model_, fitted_model(model).names, with_derivations=False)
    columns = contents["trees"]
    assert contents["gamma"] == 30000.0
    assert contents["derivations"] is None
    for tree in range(3):
        kept = slice(*model.model_.tree_starts[tree : tree + 2])
        nodes, start = model.model_.nodes[kept], columns["starts"][tree]
        own = slice(start, start + len(nodes))
        grown = np.array(columns["left"][own]), np.array(columns["removed"][own])
        # the nodes of the model come first; what it no longer splits is marked
        np.testing.assert_array_equal(np.where(grown[1] == 1, 0, grown[0]), nodes.left.clip(0))
        np.testing.assert_allclose(columns["values"][0][own], nodes.value, rtol=1e-8)
        np.testing.assert_allclose(columns["cover"][own], nodes.cover, rtol=1e-8)
        splits = nodes.left >= 0
        np.testing.assert_array_equal(nodes.right[splits], nodes.left[splits] + 1)
    assert sum(columns["removed"]) == model.fit_report_.n_pruned_splits > 0
    # a removed split's children lie side by side as well
    last = columns["starts"][-1]
    lefts = [left for left in columns["left"][columns["starts"][2] : last] if left > 0]
    assert sorted([*lefts, *(left + 1 for left in lefts)]) == list(range(1, 2 * len(lefts) + 1))


def test_every_node_has_a_derivation(model):
    contents = model_contents(model.model_, fitted_model(model).names, with_derivations=True)
    assert len(contents["derivations"]["kinds"]) == contents["trees"]["starts"][-1]


def test_importances_are_those_of_get_score(model):
    for own in importances_of_splits(model.model_):
        scores = model.get_score(own["name"])
        found = {f"f{i}": value for i, value in enumerate(own["values"]) if value != 0.0}
        assert found == pytest.approx(scores)
