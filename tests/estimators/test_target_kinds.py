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


def test_single_numbers_stay_single_and_integers_become_numbers():
    targets = RegressionTargets(1)
    assert targets.encode(np.zeros(3, np.float32), "y").dtype == np.float32
    assert targets.encode(np.zeros(3, np.int8), "y").dtype == np.float64


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


def test_a_label_that_is_no_class():
    with pytest.raises(ValueError, match=r"y_val has the labels \['egg'\], .*\['ham', 'spam'\]"):
        learn(SPAM).encode(np.array(["egg", "ham"]), "y_val")


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


@pytest.mark.parametrize(
    ("y", "parameters", "message"),
    [
        (np.ones((2, 2)), dict(scale_pos_weight=2.0), "scale_pos_weight=2.0, but y has 2 labels"),
        ([0, 1], dict(base_score=1.5), "base_score=1.5: for two classes"),
        ([0, 1], dict(calibrated_prior=True, objective="hinge"), "has no probabilities"),
    ],
)
def test_what_cannot_be_learnt(y, parameters, message):
    with pytest.raises(ValueError, match=message):
        learn(y, **parameters).make_loss(ClassifierParameters(**parameters))


def test_calibrated_shift_only_if_asked_for():
    raw_score, codes = np.array([[1.0, 0.5, 1.0, 1.0]]), np.array([1.0, 0.0, 1.0, 1.0])
    plain = learn(SPAM, class_weight="balanced")
    loss = plain.make_loss(ClassifierParameters())
    assert not plain.reads_scores
    calibrated = learn(SPAM, class_weight="balanced", calibrated_prior=True)
    assert calibrated.reads_scores
    _, shift = calibrated.finish(loss, raw_score, codes, NO_WEIGHT)
    assert loss.probabilities(raw_score + shift[:, np.newaxis])[:, 1].mean() == pytest.approx(0.75)
