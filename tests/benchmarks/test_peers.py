"""The table of equivalent parameters: what is spelt differently in every library."""

import pytest

from benchmarks import peers
from sklboost import XGBRegressorLite

LEAFWISE = peers.Settings(grow_policy="lossguide", max_depth=0, max_leaves=255)
BY_DEPTH = {
    "sklboost": dict(max_depth=10, max_leaves=0, grow_policy="depthwise"),
    "xgboost": dict(max_depth=10, max_leaves=0, grow_policy="depthwise"),
    "lightgbm": dict(max_depth=10, num_leaves=1024),
    "lightgbm_quantized": dict(max_depth=10, num_leaves=1024, use_quantized_grad=True),
    "hist_gb": dict(max_depth=10, max_leaf_nodes=None),
    "catboost": dict(depth=10, grow_policy="Depthwise"),
    "catboost_symmetric": dict(depth=10, grow_policy="SymmetricTree"),
}
BY_GAIN = {
    "sklboost": dict(max_depth=0, max_leaves=255, grow_policy="lossguide"),
    "xgboost": dict(max_depth=0, max_leaves=255, grow_policy="lossguide"),
    "lightgbm": dict(max_depth=-1, num_leaves=255),
    "lightgbm_quantized": dict(max_depth=-1, num_leaves=255),
    "hist_gb": dict(max_depth=None, max_leaf_nodes=255),
    "catboost": dict(depth=16, max_leaves=255, grow_policy="Lossguide"),
}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [(peers.Settings(max_depth=10), BY_DEPTH), (LEAFWISE, BY_GAIN)],
    ids=["only the depth", "only the number of leaves"],
)
def test_what_limits_a_tree_in_every_library(settings, expected):
    for library, own in expected.items():
        parameters = peers.LIBRARIES[library].parameters(settings, "binary")
        assert {name: parameters[name] for name in own} == own
        if settings.max_depth:
            assert not parameters.get("max_leaves")


def test_symmetric_trees_cannot_grow_by_gain():
    with pytest.raises(ValueError, match="grow_policy='lossguide': catboost_symmetric"):
        peers.LIBRARIES["catboost_symmetric"].parameters(LEAFWISE, "binary")


def test_without_settings_an_estimator_is_at_its_defaults():
    model = peers.make_estimator("sklboost", None, "regression", 1, seed=3)
    assert model.get_params() == XGBRegressorLite(n_jobs=1, random_state=3).get_params()
