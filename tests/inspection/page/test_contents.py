"""What the page is given to show."""

import json

import numpy as np
import pytest

from sklboost import XGBRegressorLite
from sklboost.inspection.page import (
    curve_contents,
    importances_of_splits,
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


def test_importances_are_those_of_get_score(regression):
    model = XGBRegressorLite(n_estimators=3, max_depth=4, gamma=30000.0).fit(*regression)
    for own in importances_of_splits(model.model_):
        scores = model.get_score(own["name"])
        found = {f"f{i}": value for i, value in enumerate(own["values"]) if value != 0.0}
        assert found == pytest.approx(scores)
