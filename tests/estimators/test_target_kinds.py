"""How targets become what a loss reads, and back."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.estimators.input.target_kinds import (
    ClassTargets,
    LabelTargets,
    RegressionTargets,
)
from sklboost.estimators.parameters.groups import ClassifierParameters, Parameters

pytestmark = pytest.mark.interpreted

NO_WEIGHT = np.empty(0)
SPAM = np.array(["spam", "ham", "spam", "spam"])


def learn(y, weight=NO_WEIGHT, **parameters):
    return ClassTargets.learn(np.asarray(y), weight, ClassifierParameters(**parameters))


@pytest.mark.parametrize(("y", "n_targets"), [(np.zeros(3), 1), (np.zeros((3, 2)), 2)])
def test_numbers(y, n_targets):
    targets = RegressionTargets.learn(y, NO_WEIGHT, Parameters())
    assert isinstance(targets, RegressionTargets)
    assert (targets.task, targets.size, targets.classes) == ("regression", n_targets, None)
    assert targets.encode(y, "y") is y
    assert targets.weigh(y, NO_WEIGHT) is NO_WEIGHT
    assert targets.make_loss(Parameters(objective="l1")).n_outputs == n_targets
    with pytest.raises(ValueError, match=rf"y has shape .*fit has {n_targets} target"):
        targets.encode(np.zeros((3, 3)), "y")
    # single numbers stay single, and integers become numbers
    assert targets.encode(y.astype(np.float32), "y").dtype == np.float32
    assert targets.encode(y.astype(np.int8), "y").dtype == np.float64


def test_two_classes_and_their_weights():
    targets = learn(SPAM, scale_pos_weight=3)
    assert isinstance(targets, ClassTargets)
    assert (targets.task, targets.size) == ("binary", 1)
    assert_array_equal(targets.classes, ["ham", "spam"])
    codes = targets.encode(SPAM, "y")
    assert codes.dtype == np.uint8
    assert_array_equal(codes, [1, 0, 1, 1])
    assert_array_equal(targets.weigh(codes, NO_WEIGHT), [3, 1, 3, 3])
    assert_array_equal(targets.weigh(codes, np.array([1.0, 2.0, 0.5, 1.0])), [3, 2, 1.5, 3])
    assert_array_equal(targets.decode(codes.astype(float)), SPAM)
    assert_array_equal(targets.labels(np.array([[1e-9, 0.0, -1.0]])), ["spam", "ham", "ham"])
    assert targets.make_loss(ClassifierParameters()).name == "binary:logistic"


def test_more_classes():
    targets = learn([5, 7, 9, 5])
    assert (targets.task, targets.size) == ("multiclass", 3)
    scores = np.array([[0.0, 1.0], [2.0, 1.0], [1.0, 1.0]])
    assert_array_equal(targets.labels(scores), [7, 5])
    assert targets.make_loss(ClassifierParameters()).n_outputs == 3
    many = np.tile(np.arange(300), 3)
    assert learn(many).encode(many, "y").dtype == np.float64


def test_several_labels():
    y = np.array([[1, 0], [0, 1], [1, 1]], dtype=np.int8)
    targets = learn(y)
    assert isinstance(targets, LabelTargets)
    assert (targets.task, targets.size) == ("multilabel", 2)
    assert_array_equal(targets.classes, [0, 1])
    encoded = targets.encode(y, "y")
    assert_array_equal(encoded, y.astype(float))
    found = targets.labels(np.array([[1.0, -1.0, 0.0], [0.5, 0.5, -0.5]]))
    assert found.dtype == np.int8
    assert_array_equal(found, [[1, 1], [0, 1], [0, 0]])


def test_a_calibrated_prior_needs_probabilities():
    parameters = dict(calibrated_prior=True, objective="hinge")
    with pytest.raises(ValueError, match="has no probabilities"):
        learn([0, 1], **parameters).make_loss(ClassifierParameters(**parameters))
