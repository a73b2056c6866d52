"""Trees whose leaves have a value for each output."""

import numpy as np
import pytest
import xgboost
from numpy.testing import assert_allclose, assert_array_equal

import sklboost.tree.core.workspace as workspace_module
from sklboost.boosting.settings import feature_rules
from sklboost.engine.model import NODE_DTYPE
from sklboost.tree.core.machines import one_machine
from sklboost.tree.core.quantization import LANES, allocate_gradients, weigh
from tests import reference
from tests.tree.growth import (
    GROWTH,
    NO_WEIGHT,
    assert_same_tree,
    binned,
    grow,
    make_data,
    params,
    quantize_together,
    rows_in_partition,
    run,
    watch_growth,
)
from tests.tree.test_histogram import check_histograms

SETTINGS = {
    "depthwise": dict(max_depth=3),
    "lossguide, 5 leaves": dict(grow_policy="lossguide", max_depth=0, max_leaves=5),
    "lambda": dict(max_depth=3, reg_lambda=3.0),
    "alpha": dict(max_depth=3, reg_alpha=1.5),
    "gamma": dict(max_depth=3, gamma=9.0),
    "min_child_weight": dict(max_depth=3, min_child_weight=4.0),
    "max_delta_step": dict(max_depth=3, max_delta_step=0.4),
    "path_smooth": dict(max_depth=3, path_smooth=5.0),
    "full": dict(max_depth=3, pruning="full", gamma=4.0),
}


def make_outputs(seed, n_rows, n_outputs, n_features=3):
    """Return X with ties and missing values, gradients and hessians of several outputs."""
    random = np.random.default_rng(seed)
    X, gradient, _ = make_data(seed, n_rows, n_features)
    weights = random.normal(size=(n_outputs, 1))
    other = np.nan_to_num(X[:, -1]) - 3.0
    gradient = (
        weights * gradient + (1.0 - weights) * other + random.normal(size=(n_outputs, n_rows))
    )
    hessian = random.uniform(0.1, 1.0, (n_outputs, n_rows))
    return X, gradient.astype(np.float32), hessian.astype(np.float32)


# --- against plain NumPy -------------------------------------------------------------------------


class VectorTree(reference.Tree):
    """The oracle's tree, with sums, similarities and leaf weights of each output."""

    def make_node(self, rows, depth, parent=None):
        settings, infinite = self.settings, np.full(len(self.g), np.inf)
        gradient, hessian = self.g[:, rows].sum(axis=1), self.h[:, rows].sum(axis=1)
        pairs = list(zip(gradient.tolist(), hessian.tolist(), strict=True))
        weight = np.array([reference.leaf_weight(g, h, settings) for g, h in pairs])
        lower, upper = -infinite, infinite
        if parent is not None:
            smoothing, lower, upper = settings.path_smooth, parent.lower, parent.upper
            if smoothing > 0.0:
                weight = (weight * hessian + parent.weight * smoothing) / (hessian + smoothing)
            weight = np.clip(weight, lower, upper)
        similarities = [
            reference.similarity(g, h, w, settings) for (g, h), w in zip(pairs, weight, strict=True)
        ]
        mean = hessian.mean()
        return reference.Node(rows, depth, gradient, mean, weight, sum(similarities), lower, upper)


def plain_tree(X, gradient, hessian, settings):
    settings = dict(reg_lambda=0.0, min_child_weight=0.0) | settings
    both = gradient.astype(float), hessian.astype(float)
    return VectorTree(X, *both, reference.Settings(**settings))


@pytest.mark.interpreted
@pytest.mark.parametrize(("n_outputs", "seed"), [(2, 0), (2, 1), (5, 2)])
@pytest.mark.parametrize("name", SETTINGS)
def test_the_tree_of_the_oracle(name, n_outputs, seed):
    X, gradient, hessian = make_outputs(seed, 30, n_outputs)
    grown = grow(binned(X), gradient, hessian, params(**SETTINGS[name]))
    plain = plain_tree(X, gradient, hessian, SETTINGS[name])
    assert len(grown.nodes) == len(plain.nodes)
    for node, outputs, own in zip(grown.nodes, grown.outputs, plain.nodes, strict=True):
        links = [plain.number(child) for child in own.children] or [-1, -1]
        assert [node["left"], node["right"]] == links
        if own.children:
            assert (node["feature"], node["default_left"]) == (own.feature, own.default_left)
            assert_allclose(node["threshold"], own.threshold)
            assert_allclose(node["gain"], own.gain, rtol=1e-5)
        assert_allclose(node["cover"], own.hessian, rtol=1e-6)
        assert_allclose(outputs["gradient"], own.gradient, atol=1e-5)
        assert_allclose(outputs["value"], own.weight, atol=1e-5)
        assert (node["value"], node["gradient"]) == (outputs["value"][0], outputs["gradient"][0])
    expected = np.array([plain.leaf_of(x).weight for x in X]).T
    assert_allclose(grown.raw_score, expected, atol=1e-5)


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", range(2))
def test_the_tree_of_the_oracle_with_constraints(seed):
    X, gradient, hessian = make_outputs(seed, 40, 2)
    gradient[1] += gradient[0]  # both outputs can rise with the same feature
    signs, settings = [-1, 1, 0], dict(max_depth=4, reg_lambda=1.0)
    rules = feature_rules(3, signs=signs)
    grown = grow(binned(X), gradient, hessian, params(**settings), rules=rules)
    plain = plain_tree(X, gradient, hessian, settings | dict(monotone_constraints=signs))
    assert_array_equal(grown.nodes["feature"], [own.feature for own in plain.nodes])
    assert_allclose(grown.outputs["value"], [own.weight for own in plain.nodes], atol=1e-5)
    assert len(plain.nodes) > 5


@pytest.mark.interpreted
def test_two_outputs_by_hand():
    # 10 | 20 divides the first output best, 20 | 30 the second, and the second weighs more
    X = np.array([[10.0], [20.0], [30.0]])
    gradient = np.array([[2.0, -1.0, -1.0], [4.0, 4.0, -8.0]], dtype=np.float32)
    grown = grow(binned(X), gradient, np.ones_like(gradient), params(max_depth=1))
    # first output: 1 / 2 + 1, second: 64 / 2 + 64, less nothing since both sums are 0
    assert_allclose(grown.nodes["gain"][0], 1 / 2 + 1 + 64 / 2 + 64)
    assert grown.nodes["threshold"][0] == 25.0
    assert_allclose(grown.outputs["value"], [[0, 0], [-0.5, -4.0], [1.0, 8.0]])
    assert_allclose(grown.raw_score, [[-0.5, -0.5, 1.0], [-4.0, -4.0, 8.0]])


# --- what it has in common with trees of one output ----------------------------------------------


@pytest.mark.parametrize("n_outputs", [2, 4, 9])
@pytest.mark.parametrize("growth", GROWTH)
def test_equal_outputs_give_the_tree_of_one(growth, n_outputs):
    X, gradient, hessian = make_data(0, 500)
    matrix, settings = binned(X), params(min_child_weight=3.0, reg_lambda=0.5, **GROWTH[growth])
    one = grow(matrix, gradient, hessian, settings)
    many = (np.tile(values, (n_outputs, 1)) for values in (gradient, hessian))
    grown = grow(matrix, *many, settings)
    for name in set(NODE_DTYPE.names) - {"gain", "cover"}:
        assert_array_equal(grown.nodes[name], one.nodes[name], err_msg=name)
    assert_allclose(grown.nodes["gain"], n_outputs * one.nodes["gain"], rtol=1e-12)
    assert_allclose(grown.nodes["cover"], one.nodes["cover"], rtol=1e-12)
    assert_array_equal(grown.raw_score, np.tile(one.raw_score, (n_outputs, 1)))
    assert len(one.nodes) > 10


def test_a_row_without_a_target_counts_for_the_others():
    # of the first output only half is known, in rows of their own bins
    X, gradient, hessian = make_outputs(5, 400, 2)
    X[:, 0] = np.arange(400) // 4
    unknown = X[:, 0] % 2 == 0
    gradient[0, unknown] = hessian[0, unknown] = 0.0
    settings = dict(max_depth=4, reg_lambda=1.0)
    grown = grow(binned(X), gradient, hessian, params(**settings))
    plain = plain_tree(X, gradient, hessian, settings)
    assert_array_equal(grown.nodes["feature"], [own.feature for own in plain.nodes])
    assert_array_equal(grown.nodes["threshold"][:1], plain.nodes[0].threshold)
    assert_allclose(grown.outputs["value"], [own.weight for own in plain.nodes], atol=1e-5)


# --- histograms and threads ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("growth", "n_outputs"), [("depthwise", 2), ("lossguide, 9 leaves", 5), ("full", 4)]
)
def test_every_histogram_is_of_the_rows_of_its_node(growth, n_outputs):
    X, gradient, hessian = make_outputs(0, 300, n_outputs, 13)  # bins as words of 8 and one by one
    matrix, seen = binned(X), []
    check = check_histograms(matrix, seen)
    watch_growth(matrix, gradient, hessian, params(**GROWTH[growth]), check)
    assert len(seen) >= 3


@pytest.mark.parametrize(
    ("n_threads", "shared_bytes", "max_bin"),
    [(2, 1, 256), (5, 2**26, 256), (5, 1, 1000), (2, 2**26, 1000)],
)
def test_several_threads_build_the_same(n_threads, shared_bytes, max_bin, monkeypatch):
    monkeypatch.setattr(workspace_module, "SHARED_BYTES", shared_bytes)
    X, gradient, hessian = make_outputs(2, 10_000, 5, 13)
    X[:, 0] = np.random.default_rng(0).normal(size=len(X))
    matrix, seen = binned(X, max_bin), []
    check = check_histograms(matrix, seen)
    watch_growth(matrix, gradient, hessian, params(max_depth=4), check, n_threads)
    assert len(seen) >= 3


@pytest.mark.parametrize(("n_outputs", "pool_bytes"), [(3, 1), (6, 2**28)])
@pytest.mark.parametrize("growth", GROWTH)
def test_threads_and_slots_change_no_bit(growth, n_outputs, pool_bytes, monkeypatch):
    X, gradient, hessian = make_outputs(3, 5000, n_outputs, n_features=4)
    matrix = binned(X)
    settings = params(**(dict(min_child_weight=20.0, subsample=0.7) | GROWTH[growth]))
    one = grow(matrix, gradient, hessian, settings)
    monkeypatch.setattr(workspace_module, "_POOL_BYTES", pool_bytes)
    for n_threads in (1, 3):
        other = grow(matrix, gradient, hessian, settings, n_threads=n_threads)
        assert_same_tree(one, other)
        assert_array_equal(one.outputs, other.outputs)
    assert len(one.nodes) >= 15


# --- quantised gradients -------------------------------------------------------------------------


def quantized(gradient, hessian, n_threads=1):
    gradients = allocate_gradients(*gradient.shape, len(gradient))
    run(
        *(quantize_together, weigh(gradient, hessian, NO_WEIGHT, n_threads)),
        *(np.uint64(7), gradients),
        one_machine(gradient.shape[1], 1),
        n_threads=n_threads,
    )
    return gradients


def test_the_strip_of_one_output_is_its_numbers():
    _, gradient, hessian = make_outputs(0, 5001, 1)
    gradients = quantized(gradient, hessian, n_threads=2)
    assert gradients.strips.shape == gradients.packed.shape
    assert np.shares_memory(gradients.strips, gradients.packed)


@pytest.mark.parametrize("n_outputs", [2, 4, 5])
def test_strips_are_the_same_numbers_side_by_side(n_outputs):
    _, gradient, hessian = make_outputs(0, 5001, n_outputs)
    gradients = quantized(gradient, hessian, n_threads=2)
    lanes = gradients.strips.reshape(-1, 5001, LANES).transpose(0, 2, 1).reshape(-1, 5001)
    assert_array_equal(lanes[:n_outputs], gradients.packed)
    assert not lanes[n_outputs:].any()


def test_every_output_has_scales_and_roundings_of_its_own():
    _, gradient, hessian = make_outputs(0, 5001, 1)
    both = quantized(np.concatenate([gradient, gradient, 64 * gradient]), np.repeat(hessian, 3, 0))
    alone = quantized(gradient, hessian)
    assert_array_equal(both.packed[0], alone.packed[0])
    assert_array_equal(both.scales[0], alone.scales[0])
    assert_array_equal(both.scales[2], both.scales[0] * [64, 1])
    assert (both.packed[1] != both.packed[0]).mean() > 0.3


# --- sampling ------------------------------------------------------------------------------------


def test_rows_are_drawn_by_the_length_of_all_their_derivatives():
    n_rows = 3000
    gradient = np.full((3, n_rows), 0.01, dtype=np.float32)
    large = np.arange(n_rows) % 10 == 0
    gradient[2, large] = 5.0
    hessian = np.full_like(gradient, 0.01)
    settings = params(max_depth=1, subsample=0.12, sampling_method="gradient_based")
    workspace = grow(binned(np.zeros((n_rows, 1))), gradient, hessian, settings).workspace
    drawn = rows_in_partition(0, workspace)[: workspace.tree.growth[0].n_rows]
    assert np.isin(np.flatnonzero(large), drawn).all()  # sure to be drawn
    assert abs(len(drawn) - 0.12 * n_rows) < 5 * np.sqrt(60)
    # what the drawn rows stand for is about what all have, for each output
    cover = workspace.tree.outputs["hessian"][0]
    assert_allclose(cover, 0.01 * n_rows, rtol=0.5)


# --- XGBoost -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        dict(max_depth=6, reg_lambda=0.1),
        dict(max_leaves=9, max_depth=0, grow_policy="lossguide", reg_lambda=20.0),
    ],
)
def test_a_round_of_xgboost(parameters):
    random = np.random.default_rng(0)
    X = random.integers(0, 30, (500, 4)).astype(float)
    signal = np.column_stack([X[:, 0] > 12, X[:, 1] * X[:, 2] / 100, np.sin(X[:, 3])])
    y = signal + random.normal(scale=0.3, size=(500, 3))
    own = dict(reg_lambda=1.0, min_child_weight=0.0, learning_rate=0.5) | parameters
    peer = xgboost.XGBRegressor(
        multi_strategy="multi_output_tree", tree_method="hist", n_estimators=1, base_score=0.5,
        max_bin=256, n_jobs=1, **own,
    ).fit(X, y)  # fmt: skip
    gradient = (0.5 - y.T).astype(np.float32)
    grown = grow(binned(X), gradient, np.ones_like(gradient), params(**own))
    assert_allclose(grown.raw_score + 0.5, peer.predict(X).T, atol=2e-6)
    assert len(grown.nodes) > 10
