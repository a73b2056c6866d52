import numpy as np
import pytest

from sklboost.tree.options.several_outputs import list_sums


@pytest.mark.interpreted
@pytest.mark.parametrize("lane", [0, 3])
def test_sums_of_another_output_before_the_same_bins(lane):
    cells = np.array([0, 5, 0, 7, 2, 0])
    lanes = np.full((6, 4), 1000)
    lanes[:, lane] = cells
    sums = np.empty(3, dtype=np.int64)
    list_sums(lanes.ravel(), 4, lane, np.array([1, 3, 4]), sums)
    assert list(sums) == [0, 5, 12]
