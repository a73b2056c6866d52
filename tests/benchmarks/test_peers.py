"""The table of equivalent parameters: what is spelt differently in every library."""

import pytest

from benchmarks import peers, workloads

DEPTHWISE = peers.Settings(max_depth=10)


def spelt(library, settings, task="binary"):
    return peers.LIBRARIES[library].parameters(settings, task)


@pytest.mark.parametrize(
    ("library", "expected"),
    [
        ("sklboost", dict(max_depth=10, max_leaves=0, grow_policy="depthwise")),
        ("xgboost", dict(max_depth=10, max_leaves=0, grow_policy="depthwise")),
        ("lightgbm", dict(max_depth=10, num_leaves=1024)),
        ("lightgbm_quantized", dict(max_depth=10, num_leaves=1024, use_quantized_grad=True)),
        ("hist_gb", dict(max_depth=10, max_leaf_nodes=None)),
        ("catboost", dict(depth=10, grow_policy="Depthwise")),
        ("catboost_symmetric", dict(depth=10, grow_policy="SymmetricTree")),
    ],
)
def test_only_the_depth_limits_a_depthwise_tree(library, expected):
    parameters = spelt(library, DEPTHWISE)
    assert {name: parameters[name] for name in expected} == expected
    assert "max_leaves" not in parameters or parameters["max_leaves"] == 0


@pytest.mark.parametrize(
    ("library", "expected"),
    [
        ("sklboost", dict(max_depth=0, max_leaves=255, grow_policy="lossguide")),
        ("xgboost", dict(max_depth=0, max_leaves=255, grow_policy="lossguide")),
        ("lightgbm", dict(max_depth=-1, num_leaves=255)),
        ("lightgbm_quantized", dict(max_depth=-1, num_leaves=255)),
        ("hist_gb", dict(max_depth=None, max_leaf_nodes=255)),
        ("catboost", dict(depth=16, max_leaves=255, grow_policy="Lossguide")),
    ],
)
def test_only_the_leaves_limit_a_tree_of_255(library, expected):
    parameters = spelt(library, workloads.LEAFWISE)
    assert {name: parameters[name] for name in expected} == expected


def test_symmetric_trees_cannot_grow_by_gain():
    with pytest.raises(ValueError, match="grow_policy='lossguide': catboost_symmetric"):
        spelt("catboost_symmetric", workloads.LEAFWISE)
