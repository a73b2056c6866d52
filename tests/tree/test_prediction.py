import gc
import itertools
import weakref

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.data import raw_values
from sklboost.data.raw_values import raw_matrix
from sklboost.engine.compiling import kernel
from sklboost.engine.parallel import ThreadTeam
from sklboost.tree.predict import prediction, walking
from sklboost.tree.predict.assembly import assemble_model
from sklboost.tree.predict.prediction import add_to_few_rows, add_trees, find_leaves
from tests.data.test_raw_values import ORDERS
from tests.tree.growth import as_trees, binned, follow, grow, make_data, make_nodes, params

inf, nan = np.inf, np.nan


def split(feature, threshold, left, default_left=0):
    return dict(
        feature=feature, threshold=threshold, left=left, right=left + 1, default_left=default_left
    )


# tree 0: x0 < 5, missing right;         left: x1 < 2, missing left
# tree 1: missing alone goes left;       tree 2: a leaf
TREES = [
    [split(0, 5.0, 1), split(1, 2.0, 3, 1), dict(value=30.0), dict(value=10.0), dict(value=20.0)],
    [split(1, -inf, 1, 1), dict(value=0.5), dict(value=0.25)],
    [dict(value=7.0)],
]


def make_model(*trees, n_outputs=1):
    tables = [make_nodes(*tree) for tree in trees]
    return assemble_model(as_trees(tables, params()), np.zeros(n_outputs), 2)


def scores(model, X, trees=None, n_threads=1):
    X, raw_score = np.asarray(X), np.zeros((model.n_outputs, len(X)))
    trees = trees or (0, model.n_trees)
    with ThreadTeam(n_threads) as team:
        assert team.size == n_threads
        add_trees(team, model, X, trees, raw_score)
    if len(X) < walking.MIN_ROWS:
        alone = np.zeros_like(raw_score)
        add_to_few_rows(model, X, trees, alone)
        assert_array_equal(alone, raw_score)
    return raw_score


def leaves(model, X, n_threads=1):
    with ThreadTeam(n_threads) as team:
        assert team.size == n_threads
        return find_leaves(team, model, raw_matrix(np.asarray(X)))


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("row", "leaf", "value"),
    [
        ([4.9, 1.9], 3, 10.0),
        ([4.9, 2.0], 4, 20.0),  # a threshold goes right
        ([5.0, 0.0], 2, 30.0),
        ([np.nextafter(5.0, 0), 0.0], 3, 10.0),
        ([nan, 0.0], 2, 30.0),
        ([0.0, nan], 3, 10.0),
        ([nan, nan], 2, 30.0),
        ([inf, 0.0], 2, 30.0),
        ([-inf, inf], 4, 20.0),
        ([-inf, -inf], 3, 10.0),
    ],
)
def test_the_way_of_a_row(row, leaf, value):
    model = make_model(TREES[0])
    for n_rows in (1, 20):  # step by step, and as bits of a word
        X = np.array([row] * n_rows)
        assert_array_equal(leaves(model, X), np.full((n_rows, 1), leaf))
        assert_array_equal(scores(model, X), np.full((1, n_rows), value))


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("value", "expected"), [(nan, 0.5), (-inf, 0.25), (inf, 0.25), (-1e308, 0.25)]
)
def test_only_missing_values_are_below_minus_infinity(value, expected):
    for n_rows in (1, 20):
        assert (scores(make_model(TREES[1]), [[0.0, value]] * n_rows) == expected).all()


@pytest.mark.interpreted
def test_infinity_as_a_threshold():
    model = make_model([split(0, inf, 1), dict(value=1.0), dict(value=2.0)])
    assert_array_equal(scores(model, [[1e308, 0], [inf, 0], [-inf, 0]]), [[1.0, 2.0, 1.0]])


@pytest.mark.interpreted
def test_float32_rows_and_float64_thresholds():
    third = np.float32(1) / np.float32(3)  # 1e-8 more than a third
    model = make_model([split(0, 1 / 3, 1), dict(value=1.0), dict(value=2.0)])
    X = np.array([[third, 0], [np.nextafter(third, np.float32(0)), 0]], dtype=np.float32)
    assert_array_equal(scores(model, X), [[2.0, 1.0]])
    assert_array_equal(scores(model, X.repeat(20, axis=0)), [[2.0] * 20 + [1.0] * 20])


@pytest.mark.parametrize("threshold", [1e300, -1e300, inf, -inf, 1e-300, -1e-300, 0.0, 1 / 3])
def test_float32_thresholds_are_rounded_up(threshold):
    model = make_model([split(0, threshold, 1), dict(value=1.0), dict(value=2.0)])
    near = np.float32(np.clip(threshold, -3e38, 3e38))
    values = [near, np.nextafter(near, np.float32(inf)), np.nextafter(near, np.float32(-inf))]
    values = np.array([*values, 0, -0.0, 1, -1, inf, -inf, 3.4e38, -3.4e38], dtype=np.float32)
    expected = np.where(values.astype(float) >= threshold, 2.0, 1.0)
    assert_array_equal(scores(model, np.column_stack([values, values]))[0], expected)


@pytest.mark.interpreted
def test_trees_are_added():
    model, X = make_model(*TREES), [[4.0, 1.0], [6.0, nan]]
    assert_array_equal(scores(model, X), [[10 + 0.25 + 7, 30 + 0.5 + 7]])
    assert_array_equal(scores(model, X, (1, 3)), [[0.25 + 7, 0.5 + 7]])
    assert_array_equal(scores(model, X, (1, 1)), [[0, 0]])
    assert_array_equal(leaves(model, X), [[3, 2, 0], [2, 1, 0]])


@pytest.mark.interpreted
def test_trees_take_turns_with_the_outputs():
    model, X = make_model(*TREES, n_outputs=3), [[4.0, 1.0], [6.0, nan]]
    assert_array_equal(scores(model, X), [[10, 30], [0.25, 0.5], [7, 7]])
    six = make_model(*TREES, *TREES, n_outputs=3)
    assert_array_equal(scores(six, X), [[20, 60], [0.5, 1], [14, 14]])
    assert_array_equal(scores(six, X, (3, 6)), [[10, 30], [0.25, 0.5], [7, 7]])


@pytest.mark.parametrize("order", ORDERS)
def test_blocks_layouts_and_threads(order):
    X, gradient, hessian = make_data(0, 1100)
    grown = grow(binned(X), gradient, hessian, params(max_depth=5))
    tree = grown.nodes
    model = assemble_model(as_trees([tree], params()), np.zeros(1), 3)
    expected = np.array([follow(tree, row) for row in X])
    for n_rows in (1, 7, 8, 63, 64, 65, 255, 257, 500, 511, 513, 1100):
        rows, own = ORDERS[order](X[:n_rows]), expected[:n_rows]
        for n_threads in (1, 5):
            assert_array_equal(leaves(model, rows, n_threads)[:, 0], own)
            assert_array_equal(scores(model, rows, None, n_threads)[0], tree["value"][own])
    # what training added is what prediction gives
    assert_array_equal(grown.raw_score, tree["value"][expected])
    assert_array_equal(np.unique(expected), np.flatnonzero(tree["left"] < 0))


@pytest.mark.parametrize(
    ("dtype", "settings", "n_features"),
    [
        (np.float32, dict(max_depth=1), 2),
        (np.float64, dict(max_depth=6), 200),
        (np.float64, dict(max_depth=7), 2),
        (np.float32, dict(max_depth=7), 200),
        (np.float64, dict(max_depth=0), 2),
    ],
)
def test_words_of_rows_go_the_way_of_single_rows(dtype, settings, n_features):
    X, gradient, hessian = make_data(3, 600, n_features, n_values=50)
    X += np.random.default_rng(0).normal(size=X.shape)
    X = X.astype(dtype)
    grown = grow(binned(X), gradient, hessian, params(**settings))
    model = assemble_model(as_trees([grown.nodes] * 2, params()), np.zeros(1), n_features)
    by_words = leaves(model, X)
    assert_array_equal(by_words[:, 0], [follow(grown.nodes, row) for row in X])
    assert_array_equal(by_words[:, 1], by_words[:, 0])
    one_by_one = np.concatenate([leaves(model, X[start : start + 3]) for start in range(0, 600, 3)])
    assert_array_equal(one_by_one, by_words)


@kernel
def all_rows_at(decisions, places, here):
    for index in range(len(places)):
        here[index] = walking.rows_at(decisions, np.uint64(1), places[index])


@pytest.mark.interpreted
def test_which_rows_come_to_a_split():
    decisions = np.random.default_rng(0).integers(2**64, size=64, dtype=np.uint64)
    expected = {32: 2**64 - 1}
    for half in (16, 8, 4, 2, 1):  # from the root down
        for place in [place for place in expected if place % (2 * half) == 0]:
            goes_right = int(decisions[place])
            if place % (4 * half) == 2 * half:
                expected[place - half] = expected[place] & ~goes_right
                expected[place + half] = expected[place] & goes_right
    places = np.arange(1, 64)
    here = np.empty(63, dtype=np.uint64)
    all_rows_at(np.stack([~decisions, decisions], axis=1), places, here)
    assert here.tolist() == [expected[place] for place in places.tolist()]


@pytest.mark.interpreted
def test_a_model_that_has_predicted_is_freed_at_once():
    model = make_model(*TREES)
    scores(model, np.zeros((3, 2)))
    nodes = weakref.ref(model.nodes)
    gc.disable()
    try:
        del model
        assert nodes() is None
    finally:
        gc.enable()


@pytest.mark.interpreted
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_few_rows_go_down_several_trees_together(n_outputs):
    n_trees = 2 * prediction._TREES_AT_ONCE + 4
    model = make_model(*itertools.islice(itertools.cycle(TREES), n_trees), n_outputs=n_outputs)
    X = np.array([[4.0, 1.0], [6.0, nan], [nan, 3.0], [1.0, nan]]).repeat(3, axis=0)
    for trees in [(0, n_trees), (3, 4), (5, prediction._TREES_AT_ONCE + 6)]:
        few = [scores(model, X[start : start + 3], trees) for start in range(0, 12, 3)]
        assert_array_equal(np.hstack(few), scores(model, X, trees))


@pytest.mark.interpreted
@pytest.mark.parametrize("n_values", [20, 19, 4, 1])
def test_arrays_of_one_block_and_of_several(monkeypatch, n_values):
    X = np.linspace(0.0, 10.0, 20).reshape(10, 2)
    expected = scores(make_model(*TREES), X)
    monkeypatch.setattr(raw_values, "ARRAY_BLOCK_VALUES", n_values)
    monkeypatch.setattr(prediction, "ARRAY_BLOCK_VALUES", n_values)
    assert_array_equal(scores(make_model(*TREES), X), expected)
