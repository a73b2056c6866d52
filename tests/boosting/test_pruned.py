"""The model says how many splits pruning removed."""

import numpy as np
import pytest

from sklboost import XGBRegressorLite

pytestmark = pytest.mark.interpreted

DOSAGE = np.array([[10.0], [20.0], [25.0], [35.0]])
EFFECT = np.array([-10.0, 7.0, 8.0, -7.0])


@pytest.mark.parametrize(
    ("pruning", "gamma", "n_pruned"),
    [("post", 130.0, 0), ("post", 150.0, 2), ("full", 150.0, 2), ("pre", 150.0, 0)],
)
def test_number_of_pruned_splits(pruning, gamma, n_pruned):
    model = XGBRegressorLite(
        n_estimators=1, max_depth=2, reg_lambda=0, base_score=0.5, pruning=pruning, gamma=gamma
    ).fit(DOSAGE, EFFECT)
    assert list(model.model_.n_pruned) == [n_pruned]
