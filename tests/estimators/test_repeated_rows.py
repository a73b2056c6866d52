import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost import bin_features
from sklboost.estimators.repeated_rows import repeat_rows
from sklboost.estimators.validation import TrainingData

pytestmark = pytest.mark.interpreted

X, Y = np.arange(8.0).reshape(4, 2), np.arange(4)


def test_whole_weights_become_rows():
    data = repeat_rows(TrainingData(X, Y, np.array([1.0, 3.0, 1.0, 2.0])))
    rows = [0, 1, 1, 1, 2, 3, 3]
    assert_array_equal(data.X, X[rows])
    assert_array_equal(data.y, Y[rows])
    assert data.weight.shape == (0,)


def test_of_binned_features():
    B = bin_features(X)
    data = repeat_rows(TrainingData(B, Y, np.array([1.0, 1.0, 2.0, 1.0])))
    assert_array_equal(data.X.bins, B.bins[[0, 1, 2, 2, 3]])


@pytest.mark.parametrize("weight", [[], [1.0, 1.5, 1.0, 1.0], [4094.0, 1.0, 1.0, 1.0]])
def test_other_weights_stay(weight):
    data = TrainingData(X, Y, np.array(weight))
    assert repeat_rows(data) is data


def test_up_to_so_many():
    assert len(repeat_rows(TrainingData(X, Y, np.array([4093.0, 1.0, 1.0, 1.0]))).X) == 4096
