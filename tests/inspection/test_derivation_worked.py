"""Derivations print the numbers of the published worked examples.

The sections are those of ``tests/test_worked_examples.py``: squared error with three rows, growing
and pruning with four, classification with four and with nine.
"""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklboost import XGBClassifierLite, XGBRegressorLite
from tests.test_worked_examples import column, only_threshold

pytestmark = pytest.mark.interpreted

ONE_TREE = dict(n_estimators=1, learning_rate=1.0, min_child_weight=0.0, base_score=0.5)


def regression(x, y, **settings):
    return XGBRegressorLite(**(ONE_TREE | settings)).fit(column(x), y)


def classification(x, y, **settings):
    return XGBClassifierLite(**(ONE_TREE | settings)).fit(column(x), y)


def lines(derivation):
    return [line.strip() for line in derivation.text.splitlines()]


# --- squared error, three rows -------------------------------------------------------------------

THREE_Y = [-10.0, 7.0, 8.0]


@pytest.mark.parametrize(
    ("reg_lambda", "output", "similarity", "printed"),
    [
        (0, 3.5 / 3, 3.5**2 / 3, ("1.1667", "4.0833")),
        (4, 0.5, 1.75, ("0.5", "1.75")),
        (40, 3.5 / 43, 3.5**2 / 43, ("0.081395", "0.284884")),
    ],
)
def test_one_leaf(reg_lambda, output, similarity, printed):
    x = np.zeros(3)
    leaf = regression(x, THREE_Y, reg_lambda=reg_lambda).explain_split(0, 0, column(x), THREE_Y)
    assert_allclose([leaf.result("w"), leaf.result("S")], [output, similarity], rtol=1e-7)
    assert (leaf.result("G"), leaf.result("H")) == (-3.5, 3.0)
    hessian = f"(3 + {reg_lambda})"
    for line in [
        "sum of gradients of this node: G = -3.5",
        "sum of hessians of this node: H = 3",
        f"output of this node: w = -G / (H + λ) = -(-3.5) / {hessian} = {printed[0]}",
        f"similarity of this node: S = G² / (H + λ) = (-3.5)² / {hessian} = {printed[1]}",
        "Their residuals, times their weights: -10.5, 6.5, 7.5.",
        "sum of gradients of these rows: G_given = g_1 + g_2 + g_3 = 10.5 + (-6.5) + (-7.5) = -3.5",
        "These are the sums of the training, up to its rounding of gradients.",
    ]:
        assert line in lines(leaf)


# --- growing and pruning, four rows --------------------------------------------------------------

DOSAGE = np.array([10.0, 20.0, 25.0, 35.0])
FOUR_Y = np.array([-10.0, 7.0, 8.0, -7.0])


KEPT_OR_PRUNED = [
    (
        dict(reg_lambda=0, gamma=130),
        "Kept, although gain 120.3333 < gamma 130: pruning goes from the bottom up, and the split "
        "of node 2 beneath it stays.",
        "Kept: gain 140.1667 ≥ gamma 130.",
    ),
    (
        dict(reg_lambda=0, gamma=150),
        "Pruned: gain 120.3333 < gamma 150, and no split beneath it stays.",
        "Pruned: gain 140.1667 < gamma 150, and no split beneath it stays.",
    ),
    (
        dict(reg_lambda=1, gamma=130),
        "Pruned: gain 62.4875 < gamma 130, and no split beneath it stays.",
        "Pruned: gain 82.8958 < gamma 130, and no split beneath it stays.",
    ),
    (
        dict(reg_lambda=0, gamma=100, pruning="pre"),
        'Kept: gain 120.3333 > 0 and ≥ gamma 100 (pruning="pre").',
        'Kept: gain 140.1667 > 0 and ≥ gamma 100 (pruning="pre").',
    ),
]


@pytest.mark.parametrize(("settings", "of_root", "of_right"), KEPT_OR_PRUNED)
def test_kept_or_pruned(settings, of_root, of_right):
    model = regression(DOSAGE, FOUR_Y, max_depth=2, keep_pruned=True, **settings)
    assert of_root in lines(model.explain_split(0, 0))
    assert of_right in lines(model.explain_split(0, 2))


# --- classification, four rows and nine ----------------------------------------------------------


def test_four_rows_of_two_classes():
    x, y = np.array([1.0, 2.0, 3.0, 4.0]), [0, 1, 1, 0]
    model = classification(only_threshold(x, 1.5), y, max_depth=1, reg_lambda=0)
    split = model.explain_split(0, 0, column(x), y)
    assert_allclose(split.result("gain"), 4 / 3, rtol=1e-7)
    for line in [
        "similarity of this node: S = G² / (H + λ) = 0² / (1 + 0) = 0",
        "similarity of the left child: S_L = G_L² / (H_L + λ) = 0.5² / (0.25 + 0) = 1",
        "similarity of the right child: S_R = G_R² / (H_R + λ) = (-0.5)² / (0.75 + 0) = 0.333333",
        "gain of the split: gain = S_L + S_R - S = 1 + 0.333333 - 0 = 1.3333",
        "Cover H of the left child is 0.25 ≥ min_child_weight 0: the split is allowed.",
        "Their residuals, times their weights: -0.5, 0.5, 0.5, -0.5.",
        "sum of hessians of these rows: H_given = h_1 + h_2 + h_3 + h_4 = 0.25 + 0.25 + 0.25 + "
        "0.25 = 1",
    ]:
        assert line in lines(split)
    strict = classification(x, y, reg_lambda=0, min_child_weight=1).explain_split(0)
    assert (
        "A leaf: its cover 1 is not enough for two children of min_child_weight 1 each."
        in lines(strict)
    )


def test_nine_rows_of_which_five_are_positive():
    x = np.array([0, 0, 0, 1, 1, 1, 1, 1, 1])
    y = np.array([0, 0, 1, 1, 1, 1, 1, 0, 0])
    settings = dict(learning_rate=0.1, reg_lambda=0, base_score=None, max_depth=1)
    model = classification(x, y, **settings)
    left = model.explain_split(0, 1, column(x), y)
    assert_allclose(left.result("G"), 2 / 3, rtol=1e-6)
    assert_allclose(left.result("H"), 20 / 27, rtol=1e-6)
    assert_allclose(left.result("v"), -0.09, rtol=1e-6)
    for line in [
        "output of this node: w = -G / (H + λ) = -0.666667 / (0.740741 + 0) = -0.9",
        "leaf value of this node: learning rate times output: v = η · w = 0.1 · (-0.9) = -0.09",
        "Their residuals, times their weights: -0.555556, -0.555556, 0.444444.",
    ]:
        assert line in lines(left)
    prediction = model.explain_prediction([0])
    assert_allclose(prediction.result("F_0"), math.log(5 / 4), rtol=1e-6)
    for line in [
        "log-odds of the starting probability p: F_0 = log(p / (1 - p)) = log(0.555556 / (1 - "
        "0.555556)) = 0.223144",
        "node 0: f0 = 0 < 0.5 → node 1",
        "raw score after leaf 1: F_1 = F_0 + η · w = 0.223144 + 0.1 · (-0.9) = 0.133144",
        "probability: p = 1 / (1 + exp(-F_1)) = 1 / (1 + exp(-0.133144)) = 0.533237",
        "Predicted class: 1.",
    ]:
        assert line in lines(prediction)


# --- regression trees ----------------------------------------------------------------------------


def test_a_branch_that_cost_complexity_prunes():
    # both gains together are 260.5; a leaf of 4 rows costs 4 alpha
    settings = dict(max_depth=2, reg_lambda=0, base_score=None, keep_pruned=True)
    model = regression(DOSAGE, FOUR_Y, ccp_alpha=33.0, **settings)
    assert len(model.model_.nodes) == 1
    root, lower = (model.explain_split(0, node) for node in (0, 2))
    assert root.result("cost") == 2 * 33 * 4
    assert (
        "Pruned: the 2 splits of its branch gain 260.5 together, too little for cost-complexity "
        "pruning." in lines(root)
    )
    assert (
        "Pruned: the 2 splits of the branch of node 0, which it is part of, gain 260.5 together, "
        "too little for cost-complexity pruning." in lines(lower)
    )
    assert "Its rows end in node 0." in lines(lower)
    kept = regression(DOSAGE, FOUR_Y, ccp_alpha=32.0, **settings)
    assert "Kept: gain 120.3333 ≥ gamma 0." in lines(kept.explain_split(0, 0))
