"""Class weights: hand-worked numbers, and the same as scikit-learn's."""

import math
from datetime import date, datetime

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.utils.class_weight import compute_class_weight

from sklboost.estimators.input.targets import (
    ClassTargets,
    calibrate_prior,
    class_multipliers,
    prior_shift,
)
from sklboost.estimators.parameters.boosters import ClassifierParameters
from sklboost.estimators.parameters.rules import check_parameters
from sklboost.objectives.losses.classes import LogLoss, Softmax

pytestmark = pytest.mark.interpreted

NONE = np.empty(0)
TWO, THREE = np.array(["no", "yes"]), np.array([3, 5, 9])


def weighted(weight, factors, codes):
    return ClassTargets(TWO, np.array(factors), False).weigh(codes, weight)


def multipliers(class_weight=None, scale_pos_weight=1, classes=TWO, codes=(0, 0, 0, 1), weight=()):
    return class_multipliers(
        class_weight, scale_pos_weight, classes, np.array(codes), np.array(weight, dtype=float)
    )


def test_balanced_classes_weigh_the_same():
    assert_allclose(multipliers("balanced"), [4 / (2 * 3), 4 / (2 * 1)])
    # weights 1, 2, 3 of class 0 and 2 of class 1: 8 in all
    assert_allclose(multipliers("balanced", weight=[1, 2, 3, 2]), [8 / (2 * 6), 8 / (2 * 2)])
    assert_allclose(
        multipliers("balanced", classes=THREE, codes=[0, 0, 0, 1, 1, 2]), [6 / 9, 6 / 6, 6 / 3]
    )


def test_balanced_is_what_scikit_learn_computes():
    _, y = load_wine(return_X_y=True)
    classes, codes = np.unique(y, return_inverse=True)
    expected = compute_class_weight("balanced", classes=classes, y=y)
    assert_array_equal(class_multipliers("balanced", 1, classes, codes, NONE), expected)


def test_weights_by_label():
    assert_array_equal(multipliers({"yes": 5, "no": 0.5}), [0.5, 5])
    assert_array_equal(multipliers({"yes": 5}), [1, 5])
    assert_array_equal(multipliers({}), [1, 1])
    assert_array_equal(multipliers(), [1, 1])
    assert_array_equal(multipliers(classes=THREE, codes=[0, 1, 2]), [1, 1, 1])
    # one that is no class, as in a fold that a rare class is missing from
    assert_array_equal(multipliers({"yes": 5, "no": 2, "rare": 7}), [2, 5])
    assert_array_equal(multipliers({9: 2, 3: 4}, classes=THREE), [4, 1, 2])
    assert_array_equal(multipliers({True: 3}, classes=np.array([False, True])), [1, 3])
    huge = np.array([0, 2**63 + 1], dtype=np.uint64)
    assert_array_equal(multipliers({2**63 + 1: 3}, classes=huge), [1, 3])
    for unit in ("D", "us", "ns"):  # a day is the same day in any unit
        days = np.array(["2025-01-01", "2026-01-01"], dtype=f"M8[{unit}]")
        for day in (days[1], np.datetime64("2026-01-01"), date(2026, 1, 1), datetime(2026, 1, 1)):
            assert_array_equal(multipliers({day: 3}, classes=days), [1, 3])


def test_labels_that_are_no_class():
    with pytest.raises(
        ValueError, match=r"no class of y, \['Yes'\], and leaves out \['yes'\].*\['no', 'yes'\]"
    ):
        multipliers({"no": 1, "Yes": 5})
    # 1 is not "1"
    with pytest.raises(ValueError, match=r"no class of y, \['3', '5'\]"):
        multipliers({"3": 1, "5": 5}, classes=THREE)
    days = np.array(["2025-01-01", "2026-01-01"], dtype="M8[ns]")
    with pytest.raises(ValueError, match=r"no class of y, \[1\], and leaves out \['2025-01-01T"):
        multipliers({1: 3}, classes=days)


def test_scale_pos_weight_is_for_the_second_of_two_classes():
    assert_array_equal(multipliers(scale_pos_weight=2.5), [1, 2.5])
    assert_array_equal(multipliers({"no": 4, "yes": 3}, 2.5), [4, 7.5])
    assert_array_equal(multipliers(classes=THREE, codes=[0, 1, 2], scale_pos_weight=1.0), [1, 1, 1])


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "many", None])
def test_rules_of_the_parameters(value):
    with pytest.raises(
        ValueError, match=r"^class_weight=\{0: .*must be None, 'balanced' or a dict"
    ):
        check_parameters(ClassifierParameters, {"class_weight": {0: value, 1: 1}})
    with pytest.raises(ValueError, match=r"^scale_pos_weight=.* a finite number > 0"):
        check_parameters(ClassifierParameters, {"scale_pos_weight": value})


def test_rules_of_other_kinds():
    check_parameters(
        ClassifierParameters,
        {"class_weight": "balanced", "scale_pos_weight": 2, "calibrated_prior": True},
    )
    check_parameters(
        ClassifierParameters, {"class_weight": {"a": np.float32(2)}, "calibrated_prior": np.False_}
    )
    with pytest.raises(ValueError, match=r"^class_weight="):
        check_parameters(ClassifierParameters, {"class_weight": np.ones(2)})


def test_weights_of_rows():
    codes = np.array([1, 0, 1])
    assert_array_equal(weighted(NONE, [0.5, 4.0], codes), [4, 0.5, 4])
    weight = np.array([1.0, 2.0, 3.0])
    assert_array_equal(weighted(weight, [0.5, 4.0], codes), [4, 1, 12])
    assert weighted(weight, [1.0, 1.0], codes) is weight
    assert weighted(NONE, [1.0, 1.0], codes) is NONE
    for extreme, words in ((1e120, r"1e\+120"), (1e-120, "1e-120")):
        with pytest.raises(
            ValueError, match=rf"largest sample_weight times class weight is {words}: it must"
        ):
            weighted(NONE, [extreme, extreme], codes)


def test_the_shift_of_two_classes_by_hand():
    # 1 row in 5 is positive; with weight 4 it is 4 of 8: log-odds 0 instead of log(1/4)
    (shift,) = prior_shift(np.array([1.0, 4.0]))
    assert_allclose(math.log(4 / 4) + shift, math.log(1 / 4))
    assert_allclose(prior_shift(np.array([2.0, 8.0])), [-math.log(4)])
    assert_allclose(prior_shift(np.array([3.0, 1.0])), [math.log(3)])
    assert_array_equal(prior_shift(np.ones(2)), [0])


def test_the_shift_of_more_classes_by_hand():
    # shares 1/6, 2/6, 3/6, weighted to 1/3 each by 2, 1 and 2/3
    shift = prior_shift(np.array([2.0, 1.0, 2 / 3]))
    terms = np.exp(np.log([1 / 3, 1 / 3, 1 / 3]) + shift)
    assert_allclose(terms / terms.sum(), [1 / 6, 2 / 6, 3 / 6])


# --- the exact shift -----------------------------------------------------------------------------


def test_equal_scores_are_shifted_to_the_shares():
    # all at log-odds 1, and 1 row in 4 is positive: log(1/3) - 1
    scores, codes = np.full((1, 4), 1.0), np.array([0, 0, 1, 0])
    assert_allclose(
        calibrate_prior(LogLoss(), scores, codes, NONE, np.zeros(1)), [-math.log(3) - 1]
    )
    # shares 1/6, 2/6, 3/6; the first class stays where it was
    codes = np.array([0, 1, 1, 2, 2, 2])
    shift = calibrate_prior(Softmax(3), np.zeros((3, 6)), codes, NONE, np.array([5.0, 0, 0]))
    assert_allclose(shift, 5 + np.log([1, 2, 3]))


def test_two_weighted_rows_by_hand():
    # scores log 2 and -log 2, weights 1 and 2, the first is positive; with t = e^shift the mean is
    # (2t / (1 + 2t) + 2 t / (2 + t)) / 3 = 1/3, which is 4 t^2 + t - 2 = 0
    scores, weight = np.log([[2.0, 0.5]]), np.array([1.0, 2.0])
    shift = calibrate_prior(LogLoss(), scores, np.array([1, 0]), weight, np.zeros(1))
    assert_allclose(shift, [math.log((math.sqrt(33) - 1) / 8)])


@pytest.mark.parametrize(
    ("n_classes", "weighted", "scale"),
    [(2, False, 0.1), (2, True, 15), (3, True, 0.1), (3, False, 3), (30, True, 3), (30, False, 15)],
)
def test_the_mean_probabilities_are_the_shares(n_classes, weighted, scale):
    random = np.random.default_rng(0)
    loss = LogLoss() if n_classes == 2 else Softmax(n_classes)
    n = 2000
    codes = np.minimum(random.geometric(0.3, size=n) - 1, n_classes - 1)
    codes[:n_classes] = np.arange(n_classes)
    scores = random.normal(scale=scale, size=(loss.n_outputs, n))
    weight = random.exponential(size=n) if weighted else NONE
    # from far away, too
    for start in (np.zeros(loss.n_outputs), np.linspace(9, 30, loss.n_outputs)):
        shift = calibrate_prior(loss, scores, codes, weight, start)
        means = np.average(
            loss.probabilities(scores + shift[:, np.newaxis]),
            axis=0,
            weights=weight if weighted else None,
        )
        shares = np.bincount(codes, weights=weight if weighted else None)
        assert_allclose(means, shares / shares.sum(), atol=2e-10 * n_classes)


def test_scores_that_are_right_or_without_doubt_stay():
    start = np.array([-0.25])
    scores = np.array([[0.25, 0.25]])
    shift = calibrate_prior(LogLoss(), scores, np.array([0, 1]), NONE, start)
    assert_array_equal(shift, start)
    assert shift is not start
    # no probability moves: the start is as good as anything else
    scores, codes = np.array([[900.0, -900.0]]), np.array([1, 0])
    assert_array_equal(calibrate_prior(LogLoss(), scores, codes, NONE, np.ones(1)), [1.0])
    # and no shift within reason makes up for a label that is wrong
    wrong = calibrate_prior(LogLoss(), scores, np.array([0, 0]), NONE, np.ones(1))
    assert_array_equal(wrong, [1.0])
