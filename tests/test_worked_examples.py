"""The published worked examples, number by number, through the public API.

The sections are those of the method as the documentation explains it: squared error with three
rows, growing and pruning with four, classification with four and with nine, regression trees.
"""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.tree import DecisionTreeRegressor

from sklboost import XGBClassifierLite, XGBRegressorLite

pytestmark = pytest.mark.interpreted

PRECISION = dict(rtol=1e-6, atol=1e-6)


def one_tree(X, y, **settings):
    """Fit the method's plain tree: all rows count, learning rate 1, start at 0.5."""
    plain = dict(n_estimators=1, learning_rate=1.0, min_child_weight=0.0, base_score=0.5, n_jobs=1)
    return XGBRegressorLite(**(plain | settings)).fit(column(X), y)


def one_classification_tree(X, y, **settings):
    plain = dict(n_estimators=1, learning_rate=1.0, min_child_weight=0.0, base_score=0.5, n_jobs=1)
    return XGBClassifierLite(**(plain | settings)).fit(column(X), y)


def column(X):
    X = np.asarray(X, dtype=float)
    return X if X.ndim == 2 else X[:, np.newaxis]


def nodes(model):
    return model.trees_to_dataframe()


def root(model):
    return nodes(model).iloc[0]


def n_leaves(model):
    return int((nodes(model)["Feature"] == "Leaf").sum())


def outputs_of_leaves(model):
    frame = nodes(model)
    return sorted(frame.loc[frame["Feature"] == "Leaf", "Output"])


def only_threshold(x, threshold):
    """Merge values until two are left, so that one threshold alone is offered."""
    x = np.asarray(x, dtype=float)
    return np.where(x < threshold, x[x < threshold].max(), x[x >= threshold].min())


# --- squared error, three rows -------------------------------------------------------------------

THREE_Y = np.array([-10.0, 7.0, 8.0])
THREE_X = np.zeros(3)  # a constant feature: the tree is one leaf


def total_loss(model, X, y):
    return 0.5 * np.sum((y - model.predict(column(X))) ** 2)


@pytest.mark.parametrize(("output", "loss"), [(0, 104.375), (-1, 109.375), (1, 102.375)])
def test_total_loss_as_the_output_of_one_leaf_varies(output, loss):
    # so strong an L1 penalty that the tree adds 0: what is left is the start
    model = one_tree(THREE_X, THREE_Y, base_score=0.5 + output, reg_alpha=1000.0)
    assert_allclose(total_loss(model, THREE_X, THREE_Y), loss, **PRECISION)


def test_total_loss_at_an_output_that_max_delta_step_clips_to_one():
    model = one_tree(THREE_X, THREE_Y, reg_lambda=0.0, max_delta_step=1.0)
    assert_allclose(root(model)["Output"], 1.0, **PRECISION)
    assert_allclose(total_loss(model, THREE_X, THREE_Y), 102.375, **PRECISION)
    # 104.375 - 102.375 is what the leaf removes: half its similarity
    assert_allclose(root(model)["Similarity"], 4.0, **PRECISION)


@pytest.mark.parametrize(
    ("reg_lambda", "output", "similarity"),
    # printed as 1.1667 and 4.0833, 0.5 and 1.75, 0.081395 and 0.28488
    [(0, 3.5 / 3, 3.5**2 / 3), (4, 0.5, 1.75), (40, 3.5 / 43, 3.5**2 / 43)],
)
def test_output_and_similarity_of_three_residuals(reg_lambda, output, similarity):
    model = one_tree(THREE_X, THREE_Y, reg_lambda=reg_lambda)
    assert root(model)["Feature"] == "Leaf"
    assert_allclose(root(model)["Output"], output, **PRECISION)
    assert_allclose(root(model)["Similarity"], similarity, **PRECISION)
    assert_allclose(root(model)["Cover"], 3.0, **PRECISION)
    assert_allclose(model.predict(column(THREE_X)), 0.5 + output, **PRECISION)


# --- growing and pruning, four rows --------------------------------------------------------------

DOSAGE = np.array([10.0, 20.0, 25.0, 35.0])
FOUR_Y = np.array([-10.0, 7.0, 8.0, -7.0])

# The right child of the split at 15 is a tree of its own. Printed as 120.3333, 4, 56.3333; 62.4875,
# 2.1333, 27.9875; 28.1667, 140.1667; 10.5625, 82.8958.
GAINS = [  # first row, lambda, threshold, gain
    (0, 0, 15.0, 110.25 + 6.5**2 / 3 - 4),
    (0, 0, 22.5, 4.0),
    (0, 0, 30.0, 3.5**2 / 3 + 7.5**2 - 4),
    (0, 1, 15.0, 62.4875),
    (0, 1, 22.5, 16 / 3 - 3.2),
    (0, 1, 30.0, 27.9875),
    (1, 0, 22.5, 6.5**2 - 6.5**2 / 3),
    (1, 0, 30.0, 14**2 / 2 + 7.5**2 - 6.5**2 / 3),
    (1, 1, 22.5, 10.5625),
    (1, 1, 30.0, 14**2 / 3 + 7.5**2 / 2 - 6.5**2 / 4),
]


@pytest.mark.parametrize(("first_row", "reg_lambda", "threshold", "gain"), GAINS)
def test_gain_of_every_threshold(first_row, reg_lambda, threshold, gain):
    x, y = only_threshold(DOSAGE[first_row:], threshold), FOUR_Y[first_row:]
    model = one_tree(x, y, max_depth=1, reg_lambda=reg_lambda)
    assert root(model)["Split"] == threshold
    assert_allclose(root(model)["Gain"], gain, **PRECISION)


@pytest.mark.parametrize(
    ("reg_lambda", "gains", "outputs"),
    [
        (0, (110.25 + 6.5**2 / 3 - 4, 98 + 7.5**2 - 6.5**2 / 3), (-10.5, 7, -7.5)),
        (1, (62.4875, 14**2 / 3 + 7.5**2 / 2 - 6.5**2 / 4), (-5.25, 14 / 3, -3.75)),
    ],
)
def test_grown_tree_of_four_rows(reg_lambda, gains, outputs):
    model = one_tree(DOSAGE, FOUR_Y, max_depth=2, reg_lambda=reg_lambda)
    frame = nodes(model)
    low, middle, high = outputs
    assert_allclose(frame["Similarity"][0], {0: 4.0, 1: 3.2}[reg_lambda], **PRECISION)
    assert list(frame["Feature"]) == ["f0", "Leaf", "f0", "Leaf", "Leaf"]
    assert list(frame["Split"])[0::2][:2] == [15.0, 30.0]
    assert_allclose(frame["Gain"], [gains[0], low, gains[1], middle, high], **PRECISION)
    assert_allclose(frame["Cover"], [4, 1, 3, 2, 1], **PRECISION)
    assert_allclose(frame["Output"][[1, 3, 4]], [low, middle, high], **PRECISION)
    assert_allclose(
        model.predict(column(DOSAGE)), 0.5 + np.array([low, middle, middle, high]), **PRECISION
    )
    # x < threshold goes left, so the threshold itself goes right
    assert_allclose(model.predict(column([15.0, 30.0])), 0.5 + np.array([middle, high]))


@pytest.mark.parametrize(
    ("reg_lambda", "gamma", "leaves"), [(0, 130, 3), (0, 150, 1), (1, 0, 3), (1, 130, 1)]
)
def test_pruning_with_gamma_from_the_bottom_up(reg_lambda, gamma, leaves):
    model = one_tree(DOSAGE, FOUR_Y, max_depth=2, reg_lambda=reg_lambda, gamma=gamma)
    assert n_leaves(model) == leaves
    if leaves == 1:
        output = -4 / (4 + reg_lambda)
        assert_allclose(model.predict(column(DOSAGE)), 0.5 + output, **PRECISION)


def test_a_lower_split_keeps_an_upper_one_of_gain_below_gamma():
    model = one_tree(DOSAGE, FOUR_Y, max_depth=2, reg_lambda=0, gamma=130)
    assert root(model)["Gain"] < 130  # 120.33 stays for the sake of 140.17
    assert_allclose(outputs_of_leaves(model), [-10.5, -7.5, 7.0], **PRECISION)


def test_pruning_pre_refuses_at_once():
    settings = dict(max_depth=2, reg_lambda=0, pruning="pre")
    assert n_leaves(one_tree(DOSAGE, FOUR_Y, gamma=120, **settings)) == 3
    assert n_leaves(one_tree(DOSAGE, FOUR_Y, gamma=130, **settings)) == 1


def test_a_gain_of_exactly_gamma_stays():
    x = only_threshold(DOSAGE, 22.5)
    for pruning in ("post", "full", "pre"):
        settings = dict(max_depth=1, reg_lambda=0, pruning=pruning)
        assert n_leaves(one_tree(x, FOUR_Y, gamma=4.0, **settings)) == 2
        assert n_leaves(one_tree(x, FOUR_Y, gamma=4.001, **settings)) == 1


def test_gamma_zero_prunes_a_split_of_negative_gain():
    # residuals 0.5 and 0.5: apart 2 * 0.25 / 2, together 1 / 3, gain -1/12
    x, y = [0.0, 1.0], [1.0, 1.0]
    model = one_tree(x, y, pruning="full", gamma=0.0, reg_lambda=1.0)
    assert n_leaves(model) == 1
    assert_allclose(model.predict(column(x)), 0.5 + 1 / 3, **PRECISION)


XOR_X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float)
XOR_Y = np.array([0.0, 1.0, 1.0, 0.0])


@pytest.mark.parametrize("base_score", [0.5, None])
@pytest.mark.parametrize("copies", [1, 5])
def test_pruning_full_solves_balanced_xor_and_post_does_not_split(copies, base_score):
    X, y = np.tile(XOR_X, (copies, 1)), np.tile(XOR_Y, copies)
    settings = dict(max_depth=2, reg_lambda=0.0, base_score=base_score)
    full = one_tree(X, y, pruning="full", **settings)
    assert_allclose(full.predict(X), y, **PRECISION)
    assert n_leaves(full) == 4
    assert root(full)["Gain"] == 0.0
    for pruning in ("post", "pre"):
        model = one_tree(X, y, pruning=pruning, **settings)
        assert n_leaves(model) == 1
        assert_allclose(model.predict(X), 0.5, **PRECISION)


def test_pruning_full_keeps_a_negative_gain_for_what_lies_beneath():
    # start 0.4: residuals -0.4, 0.6, 0.6, -0.4; each half sums to 0.2, the whole to 0.4
    settings = dict(max_depth=2, reg_lambda=1.0, base_score=0.4)
    full = one_tree(XOR_X, XOR_Y, pruning="full", **settings)
    assert n_leaves(full) == 4
    assert_allclose(root(full)["Gain"], 2 * 0.04 / 3 - 0.16 / 5, **PRECISION)
    assert n_leaves(one_tree(XOR_X, XOR_Y, pruning="post", **settings)) == 1


@pytest.mark.parametrize("learning_rate", [0.1, 0.3, 1.0])
def test_each_tree_adds_learning_rate_times_output_to_the_start(learning_rate):
    model = one_tree(DOSAGE, FOUR_Y, max_depth=2, n_estimators=3, learning_rate=learning_rate)
    frame, leaves = nodes(model), model.apply(column(DOSAGE))
    expected = np.full(4, 0.5)
    for tree, prediction in enumerate(model.staged_predict(column(DOSAGE))):
        own = frame[frame["Tree"] == tree].set_index("Node").loc[leaves[:, tree]]
        expected += learning_rate * own["Output"].to_numpy()
        assert_allclose(prediction, expected, **PRECISION)
        assert_allclose(own["Gain"], learning_rate * own["Output"], **PRECISION)


def test_start_is_the_mean_by_default():
    model = one_tree(THREE_X, THREE_Y, base_score=None, reg_lambda=100.0)
    assert_allclose(model.predict(column(THREE_X)), 5 / 3, **PRECISION)


# --- classification, four rows -------------------------------------------------------------------

FOUR_LABELS = np.array([0, 1, 1, 0])


def test_first_split_of_four_labels():
    model = one_classification_tree(DOSAGE, FOUR_LABELS, reg_lambda=0.0, max_depth=1)
    frame = nodes(model)
    assert frame["Split"][0] == 15.0  # 30 would gain as much: the lower position wins
    assert_allclose(frame["Similarity"], [0.0, 1.0, 1 / 3], **PRECISION)
    assert_allclose(frame["Cover"], [1.0, 0.25, 0.75], **PRECISION)
    assert_allclose(frame["Gain"][0], 4 / 3, **PRECISION)
    # residual -0.5 over 0.25, and 0.5 over 0.75
    assert_allclose(frame["Output"], [0.0, -2.0, 2 / 3], **PRECISION)


@pytest.mark.parametrize(("threshold", "gain"), [(15.0, 4 / 3), (22.5, 0.0), (30.0, 4 / 3)])
def test_min_child_weight_one_allows_no_split_and_zero_allows_all(threshold, gain):
    x = only_threshold(DOSAGE, threshold)
    settings = dict(reg_lambda=0.0, max_depth=1, pruning="full")
    free = one_classification_tree(x, FOUR_LABELS, min_child_weight=0.0, **settings)
    assert root(free)["Split"] == threshold
    assert_allclose(root(free)["Gain"], gain, **PRECISION)
    default = XGBClassifierLite(n_estimators=1, base_score=0.5, **settings)
    assert default.min_child_weight == 1
    default.fit(column(x), FOUR_LABELS)
    assert n_leaves(default) == 1
    assert_allclose(root(default)["Cover"], 1.0, **PRECISION)


@pytest.mark.parametrize(("min_child_weight", "leaves"), [(0.25, 2), (0.26, 1)])
def test_cover_is_compared_with_min_child_weight(min_child_weight, leaves):
    x = only_threshold(DOSAGE, 15.0)
    model = one_classification_tree(x, FOUR_LABELS, min_child_weight=min_child_weight)
    assert n_leaves(model) == leaves


# --- classification, nine rows -------------------------------------------------------------------

NINE_X = np.array([0] * 3 + [1] * 6, dtype=float)
NINE_LABELS = np.array([0, 0, 1, 1, 1, 1, 1, 0, 0])


def nine_row_model(**settings):
    plain = dict(base_score=None, reg_lambda=0.0, learning_rate=0.1, max_depth=1)
    return one_classification_tree(NINE_X, NINE_LABELS, **(plain | settings))


def test_start_is_the_log_odds_of_the_prior_by_default():
    # so strong an L1 penalty that the tree adds 0
    model = nine_row_model(reg_alpha=1000.0)
    assert_allclose(model.decision_function(column(NINE_X)), np.log(5 / 4), **PRECISION)  # 0.223144
    assert_allclose(model.predict_proba(column(NINE_X))[:, 1], 5 / 9, **PRECISION)


def test_leaf_of_outcomes_0_0_1():
    model = nine_row_model()
    leaf = nodes(model).iloc[1]
    assert_allclose(leaf["Cover"], 20 / 27, **PRECISION)  # 0.740741
    assert_allclose(leaf["Output"], -0.9, **PRECISION)
    assert_allclose(leaf["Output"] * leaf["Cover"], -2 / 3, **PRECISION)  # the sum of residuals
    assert_allclose(leaf["Similarity"], (2 / 3) ** 2 / (20 / 27), **PRECISION)
    log_odds = model.decision_function([[0.0]])  # 0.133144
    assert_allclose(log_odds, np.log(5 / 4) - 0.09, **PRECISION)
    assert_allclose(model.predict_proba([[0.0]])[0, 1], 0.533237, atol=1e-6)


def test_base_score_of_a_classifier_is_a_probability():
    by_default, given = (
        nine_row_model(n_estimators=3),
        nine_row_model(n_estimators=3, base_score=5 / 9),
    )
    X = column(NINE_X)
    assert_allclose(by_default.predict_proba(X), given.predict_proba(X), **PRECISION)


# --- regression trees as a special case ----------------------------------------------------------


def cart(**settings):
    return XGBRegressorLite(
        n_estimators=1, learning_rate=1.0, reg_lambda=0.0, base_score=0.0, n_jobs=1, **settings
    )


def small_regression(seed, n_rows=24):
    random = np.random.default_rng(seed)
    return random.integers(0, 7, (n_rows, 3)).astype(float), random.normal(size=n_rows)


@pytest.mark.parametrize("seed", range(3))
def test_the_split_minimises_the_squared_errors_of_the_two_children(seed):
    X, y = small_regression(seed)

    def squared_errors(part):
        return np.sum((part - part.mean()) ** 2)

    errors = {}
    for feature in range(X.shape[1]):
        values = np.unique(X[:, feature])
        for low, high in itertools.pairwise(values):
            left = X[:, feature] < (low + high) / 2
            errors[f"f{feature}", (low + high) / 2] = squared_errors(y[left]) + squared_errors(
                y[~left]
            )
    best = min(errors, key=errors.get)
    top = root(cart(max_depth=1).fit(X, y))
    assert (top["Feature"], top["Split"]) == best
    assert_allclose(top["Gain"], squared_errors(y) - errors[best], **PRECISION)


BEST_FIRST = dict(max_depth=0, max_leaves=6, grow_policy="lossguide")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("limit", "limit_of_peer"),
    [
        (dict(max_depth=2), dict(max_depth=2)),
        (dict(max_depth=4), dict(max_depth=4)),
        (BEST_FIRST, dict(max_leaf_nodes=6)),
    ],
)
def test_same_tree_as_cart(seed, limit, limit_of_peer):
    X, y = small_regression(seed)
    peer = DecisionTreeRegressor(**limit_of_peer).fit(X, y)
    model = cart(**limit).fit(X, y)
    assert n_leaves(model) == peer.get_n_leaves()
    assert_allclose(model.predict(X), peer.predict(X), **PRECISION)


def test_pre_stopping():
    X, y = small_regression(0)
    assert n_leaves(cart(max_depth=1).fit(X, y)) == 2
    assert n_leaves(cart(max_depth=0, max_leaves=5).fit(X, y)) == 5
    covers = nodes(cart(max_depth=0, min_child_weight=4).fit(X, y))["Cover"]
    assert covers.min() == 4
    # without a limit each distinct row has its leaf
    assert n_leaves(cart(max_depth=0).fit(X, y)) == len(np.unique(X, axis=0))
