import math

import numpy as np
import pytest

from sklboost.boosting.settings import tree_params

pytestmark = pytest.mark.interpreted

PLAIN = dict(learning_rate=0.3, reg_lambda=1.0, reg_alpha=0.0, gamma=0.0, min_child_weight=1.0)
PLAIN |= dict(
    min_child_samples=0, max_delta_step=0.0, max_depth=6, max_leaves=0, grow_policy="depthwise"
)
PLAIN |= dict(pruning="post", subsample=1.0, sampling_method="uniform")
PLAIN |= dict(ccp_alpha=0.0, num_parallel_tree=1)
PLAIN |= dict(colsample_bytree=1.0, colsample_bylevel=1.0, colsample_bynode=1.0)
PLAIN |= dict(path_smooth=0.0, extra_trees=False, linear_tree=False, linear_lambda=1.0)
PLAIN |= dict(multi_strategy="one_output_per_tree")
PLAIN |= dict(max_cat_to_onehot=4, max_cat_threshold=64, cat_smooth=10.0)


def make(**changes):
    return tree_params(**(PLAIN | changes))


def test_zero_means_no_limit():
    free, limited = make(max_depth=0), make(max_depth=4, max_leaves=7, max_delta_step=0.7)
    assert free.max_depth == free.max_leaves >= 2**31
    assert free.max_delta_step == math.inf
    assert (limited.max_depth, limited.max_leaves, limited.max_delta_step) == (4, 7, 0.7)


@pytest.mark.parametrize("name", ["max_depth", "max_leaves"])
def test_limits_beyond_any_tree(name):
    assert getattr(make(**{name: 10**30}), name) == make(**{name: 0}).max_leaves


@pytest.mark.parametrize(
    ("pruning", "gamma", "grow_gain", "prune_gain"),
    [
        ("post", 0.0, 5e-324, 0.0),
        ("post", 3.0, 5e-324, 3.0),
        ("full", 0.0, -math.inf, 0.0),
        ("full", 3.0, -math.inf, 3.0),
        ("pre", 0.0, 5e-324, -math.inf),
        ("pre", 3.0, 3.0, -math.inf),
    ],
)
def test_pruning_modes_are_two_gains(pruning, gamma, grow_gain, prune_gain):
    made = make(pruning=pruning, gamma=gamma)
    assert (made.grow_gain, made.prune_gain) == (grow_gain, prune_gain)


def test_policies():
    assert make(grow_policy="lossguide").best_first == 1
    assert make(grow_policy="depthwise").best_first == 0


def test_every_number_has_one_type():
    """A stray type would compile every kernel once more."""
    strange = make(
        learning_rate=1,
        reg_lambda=np.float32(2),
        reg_alpha=np.int64(1),
        gamma=1,
        ccp_alpha=0,
        min_child_weight=True,
        max_delta_step=np.float64(1),
        max_depth=np.int8(3),
        max_leaves=np.uint16(9),
        num_parallel_tree=np.int32(2),
    )
    assert [type(value) for value in strange] == [type(value) for value in make()]
    assert {type(value) for value in strange} == {int, float}


def test_a_setting_that_trees_do_not_have():
    with pytest.raises(KeyError, match="subsamples"):
        make(subsamples=0.5)
