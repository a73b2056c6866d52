import numpy as np
import pytest

from sklboost.tree.options.inherited_weights import Inherited, clip_to_bounds, held_weight, smooth

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize(
    ("weight", "expected"), [(0.5, 0.5), (-3.0, -1.0), (7.0, 2.0), (-1.0, -1.0), (2.0, 2.0)]
)
def test_bounds(weight, expected):
    assert clip_to_bounds(weight, -1.0, 2.0) == expected
    assert clip_to_bounds(weight, -np.inf, np.inf) == weight


def test_a_weight_is_moved_towards_the_parents():
    # 6 of 6 + 2: three quarters are its own
    assert smooth(4.0, 6.0, 0.0, 2.0) == 3.0
    assert smooth(4.0, 6.0, 8.0, 2.0) == 5.0
    assert smooth(0.1, 0.3, 1e300, 0.0) == 0.1  # to the last bit


def test_weight_of_a_child():
    free, bound = Inherited(-1.0, -np.inf, np.inf, 5.0), Inherited(-1.0, -np.inf, -0.25, 5.0)
    assert held_weight(2.0, 5.0, free) == 0.5
    assert held_weight(2.0, 5.0, bound) == -0.25
