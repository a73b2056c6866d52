import numpy as np
import pytest

from tests.tree.growth import params

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("name", ["max_depth", "max_leaves"])
def test_limits_beyond_any_tree(name):
    assert getattr(params(**{name: 10**30}), name) == params(**{name: 0}).max_leaves


def test_every_number_has_one_type():
    """A stray type would compile every kernel once more."""
    strange = params(
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
    assert [type(value) for value in strange] == [type(value) for value in params()]
    assert {type(value) for value in strange} == {int, float}


def test_a_setting_that_trees_do_not_have():
    with pytest.raises(KeyError, match="subsamples"):
        params(subsamples=0.5)
