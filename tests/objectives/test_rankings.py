"""Losses and metrics of rankings: against plain Python, scikit-learn and XGBoost."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import ndcg_score

from sklboost.engine.backend import BACKEND, Backend
from sklboost.engine.elementary import hash_key, mix_bits
from sklboost.engine.parallel import ThreadTeam
from sklboost.objectives.losses.ranking import settings_of
from sklboost.objectives.registry import OBJECTIVES, default_metric, find_metric, find_objective
from tests.objectives.rankings import (
    chances_of_orders,
    cross_entropy,
    lambdas,
    neighbours,
    ratios_of,
    value_of,
)

pytestmark = pytest.mark.interpreted

NO_WEIGHT = np.empty(0)
NAMES = [own.name for own in OBJECTIVES["ranking"]]
OF_PAIRS = [name for name in NAMES if name not in {"rank:xendcg", "rank:yeti"}]
MODES = ("ndcg", "map", "mrr", "classic")
SIZES = (1, 2, 3, 9, 40, 300)


def make(name, **parameters):
    return find_objective(name, "ranking").make(1, parameters)


def make_data(seed=0, sizes=SIZES, n_labels=4, digits=1):
    """Return targets of queries whose rows are mixed, and raw scores, some of them equal."""
    random = np.random.default_rng(seed)
    queries = random.permutation(np.repeat(np.arange(len(sizes)), sizes)).astype(float)
    labels = random.integers(0, n_labels, len(queries)).astype(float)
    scores = np.round(random.normal(size=len(queries)), digits)
    return np.array([labels, queries]), scores


def of_queries(y):
    """Yield the rows of each query, in their order."""
    yield from (np.flatnonzero(y[1] == query) for query in np.unique(y[1]))


def derivatives(loss, y, scores, n_threads=1, round_=0):
    both = np.empty((2, 1, len(scores)), np.float32)
    with ThreadTeam(n_threads) as team:
        loss.prepare(team, y, NO_WEIGHT, 7)(round_, scores[np.newaxis], both[0], both[1])
    return both[:, 0]


@pytest.mark.parametrize("name", OF_PAIRS)
@pytest.mark.parametrize(
    ("parameters", "settings"),
    [
        ({}, {}),
        (dict(lambdarank_num_pair_per_sample=3), dict(top=3)),
        (dict(lambdarank_normalization=False), dict(is_normalized=False)),
        (dict(lambdarank_score_normalization=False), dict(divides=False)),
        (dict(ndcg_exp_gain=False), dict(is_exponential=False)),
    ],
)
def test_pairs_of_the_top(name, parameters, settings):
    y, scores = make_data(sizes=(1, 2, 3, 9, 40, 5, 5), n_labels=2 if name == "rank:map" else 4)
    y[0, y[1] >= 5] = y[1, y[1] >= 5] - 5.0  # of equal labels, 0 or 1, there are no pairs
    gradient, hessian = derivatives(make(name, **parameters), y, scores)
    for rows in of_queries(y):
        expected = lambdas(name, y[0, rows], scores[rows], **settings)
        assert_allclose(gradient[rows], expected[0], rtol=1e-5, atol=1e-7)
        assert_allclose(hessian[rows], np.maximum(expected[1], 1e-16), rtol=1e-5)


@pytest.mark.parametrize("name", OF_PAIRS)
def test_pairs_far_below_the_best_score(name):
    y, scores = make_data(sizes=(1, 2, 3, 9, 40), n_labels=2)
    scores = np.clip(200.0 * scores, -340.0, 340.0)
    gradient, _ = derivatives(make(name), y, scores)
    for rows in of_queries(y):
        expected, _, _ = lambdas(name, y[0, rows], scores[rows])
        assert_allclose(gradient[rows], expected, rtol=1e-5, atol=1e-7)
    # by hand: the two last ones are in the wrong order, p is 0 of theirs and 1 of the others
    y = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    settings = dict(lambdarank_normalization=False, lambdarank_score_normalization=False)
    gradient, _ = derivatives(make("rank:pairwise", **settings), y, np.array([0.0, -400, -1e4]))
    assert_allclose(gradient, [0.0, 1.0, -1.0], atol=1e-30)


def test_equal_scores_divide_by_nothing():
    y = np.array([[0.0, 1.0, 2.0], [0.0, 0.0, 0.0]])
    gradient, _ = derivatives(make("rank:pairwise", lambdarank_normalization=False), y, np.ones(3))
    assert_allclose(gradient, [1.0, 0.0, -1.0])
    # two documents, by hand: the NDCG is 1 / log2(3) and would be 1, p is 1/2
    gradient, hessian = derivatives(
        make("rank:ndcg", lambdarank_normalization=False), y[:, :2], np.zeros(2)
    )
    change = 1.0 - 1.0 / np.log2(3.0)
    assert_allclose(gradient, [change / 2, -change / 2], rtol=1e-6)
    assert_allclose(hessian, [change / 2, change / 2], rtol=1e-6)


@pytest.mark.parametrize("name", OF_PAIRS)
def test_drawn_pairs(name):
    """Every document has its pairs, with documents of other relevance, on average all of them."""
    y, scores = make_data(sizes=(7,), n_labels=2, digits=3)
    loss = make(name, lambdarank_pair_method="mean", lambdarank_num_pair_per_sample=2)
    rounds = np.mean([derivatives(loss, y, scores, round_=k) for k in range(400)], axis=0)
    n_of = np.bincount(y[0].astype(int))
    ranked = y[0][np.argsort(-scores)]
    pairs = [(a, b) for a in range(7) for b in range(a + 1, 7) if ranked[a] != ranked[b]]
    # each of a pair draws the other with a chance of 2 in those of other relevance; halved later
    chance = 1.0 / n_of[0] + 1.0 / n_of[1]
    expected = lambdas(name, y[0], scores, pairs=pairs)
    for found, wanted in zip(rounds, expected, strict=False):
        assert_allclose(found, chance * wanted, atol=0.12 * np.abs(chance * wanted).max())


@pytest.mark.parametrize("name", OF_PAIRS)
@pytest.mark.parametrize(("norm", "scale"), [(0.0, 1.0), (1.0, 1.0), (1.0, 200.0)])
def test_positions(name, norm, scale):
    y, scores = make_data(sizes=(3, *[12] * 9, 40), n_labels=2, digits=3)
    scores = np.clip(scale * scores, -340.0, 340.0)
    loss = make(
        name,
        lambdarank_unbiased=True,
        lambdarank_bias_norm=norm,
        lambdarank_num_pair_per_sample=5,
    )
    ratios = np.ones((2, 5))
    both = np.empty((2, 1, len(scores)), np.float32)
    with ThreadTeam(2) as team:
        weight = 1.0 + y[1]
        fill = loss.prepare(team, y, weight, 0)
        for round_ in range(3):
            fill(round_, scores[np.newaxis], both[0], both[1])
            losses = []
            for rows in of_queries(y):
                expected = lambdas(name, y[0, rows], scores[rows], ratios=ratios, top=5)
                assert_allclose(both[0, 0, rows], expected[0], rtol=2e-5, atol=1e-7)
                assert_allclose(both[1, 0, rows], np.maximum(expected[1], 1e-16), 2e-5, 1e-15)
                losses.append(expected[2])
            ratios = ratios_of(losses, np.arange(1.0, 12.0), 5, 1.0 / (1.0 + norm))
            scores = np.round(np.roll(scores, 1), 3)


def test_cross_entropy():
    y, scores = make_data(sizes=(1, 2, 9, 40))
    gradient, hessian = derivatives(make("rank:xendcg"), y, scores)
    rows_of_queries = list(of_queries(y))
    drawn = [derivatives(make("rank:xendcg"), y, scores, round_=k)[0] for k in range(300)]
    for rows in rows_of_queries[1:]:
        mean, _ = cross_entropy(y[0, rows], scores[rows], 0.5)
        likely = [
            cross_entropy(y[0, rows], scores[rows], np.random.default_rng(k).random(len(rows)))
            for k in range(300)
        ]
        spread = np.std([pair[0] for pair in likely], axis=0)
        assert (np.abs(gradient[rows] - mean) < 5 * spread + 1e-3).all()
        assert_allclose(hessian[rows], likely[0][1], rtol=1e-5)
        assert_allclose(
            np.mean([gradients[rows] for gradients in drawn], axis=0),
            np.mean([pair[0] for pair in likely], axis=0),
            atol=5e-3,
        )
    assert gradient[rows_of_queries[0]] == 0.0  # a document alone


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("top", [32, 2])
def test_drawn_neighbours_are_on_average_those_of_all_orders(mode, top):
    """Plackett and Luce's law, and what exchanging two neighbours changes, worked out in full."""
    y, scores = make_data(sizes=(1, 2, 3, 5), n_labels=2 if mode == "map" else 4)
    n_orders = 4_000 if BACKEND is Backend.INTERPRETER else 400_000
    loss = make(
        "rank:yeti",
        yeti_mode=mode,
        yeti_permutations=n_orders,
        yeti_decay=0.7,
        lambdarank_num_pair_per_sample=top,
    )
    found = derivatives(loss, y, scores)
    for rows in of_queries(y):
        orders = chances_of_orders(scores[rows])
        expected = neighbours(mode, y[0, rows], scores[rows], orders, top, 0.7)
        # five standard errors of what is 1 at most
        assert_allclose(found[0, rows], expected[0], atol=2.5 / n_orders**0.5)
        assert_allclose(found[1, rows], np.maximum(expected[1], 1e-16), atol=2.5 / n_orders**0.5)


@pytest.mark.parametrize("spread", [0.0, 1.0, 50.0])
def test_the_first_places_of_drawn_orders(spread):
    """Each order of a long list again, all of its documents sorted by their times."""
    random = np.random.default_rng(0)
    labels, scores = random.integers(0, 5, 300).astype(float), spread * random.normal(size=300)
    y = np.array([labels, np.zeros(300)])
    found = derivatives(make("rank:yeti", yeti_permutations=4), y, scores)
    orders = []
    for drawn in range(4):
        key = hash_key(np.int64(hash_key(7, 0, -3)), np.int64(0), np.int64(drawn))
        bits = np.array([float(mix_bits(np.uint64(place) ^ key)) for place in range(300)])
        orders.append(np.argsort(-np.log((bits + 0.5) / 2.0**32) * np.exp(scores.max() - scores)))
    expected = neighbours("ndcg", labels, scores, [(0.25, order) for order in orders])
    assert_allclose(found[0], expected[0], rtol=1e-5, atol=1e-9)
    assert_allclose(found[1], np.maximum(expected[1], 1e-16), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("method", ["topk", "mean"])
def test_threads_and_the_order_of_queries_change_no_bit(name, method):
    y, scores = make_data(n_labels=2)
    loss = make(name, lambdarank_pair_method=method, lambdarank_unbiased=True)
    one = derivatives(loss, y, scores)
    assert np.isfinite(one).all()
    assert_array_equal(one[0, y[1] == 0.0], 0.0)  # a document alone has no pairs
    assert_array_equal(derivatives(loss, y, scores, n_threads=3), one)
    order = np.argsort(y[1], kind="stable")  # the rows of each query stay in their order
    assert_array_equal(derivatives(loss, y[:, order], scores[order]), one[:, order])


@pytest.mark.parametrize("name", NAMES)
def test_extreme_scores(name):
    y, _ = make_data(n_labels=2)
    for scale in (1e-300, 1e-8, 1e3, 1e100):
        scores = scale * np.random.default_rng(0).normal(size=y.shape[1])
        both = derivatives(make(name), y, scores)
        assert np.isfinite(both).all()
        assert (both[1] > 0.0).all()


def test_labels_that_losses_are_not_defined_for():
    queries = np.zeros(3)
    for name, labels, words in [
        ("rank:ndcg", [0, 1.5, 2], r"y\[1\]=1.5: objective='rank:ndcg' needs whole numbers from 0"),
        ("rank:ndcg", [0, 1, 32], r"y\[2\]=32: .* set ndcg_exp_gain=False"),
        ("rank:pairwise", [0, -1, 2], r"y\[1\]=-1: objective='rank:pairwise' needs targets >= 0"),
        ("rank:map", [0, 1, 2], r"y\[2\]=2: objective='rank:map' needs relevances of 0 and 1"),
        ("rank:xendcg", [0, 1, 40], r"y\[2\]=40: objective='rank:xendcg' needs whole numbers"),
        ("rank:yeti", [0, 1, 40], r"y\[2\]=40: objective='rank:yeti' needs whole numbers"),
    ]:
        with pytest.raises(ValueError, match=words):
            make(name).check_targets(np.column_stack([labels, queries]), "y")
    make("rank:ndcg", ndcg_exp_gain=False).check_targets(np.array([[40.5, 0.0]]), "y")
    make("rank:pairwise").check_targets(np.array([[40.5, 0.0]]), "y")
    make("rank:yeti", yeti_mode="classic").check_targets(np.array([[40.5, 0.0]]), "y")
    with pytest.raises(ValueError, match=r"y\[0\]=2: yeti_mode='map' needs relevances of 0 and 1"):
        make("rank:yeti", yeti_mode="map").check_targets(np.array([[2.0, 0.0]]), "y")


def test_defaults():
    assert settings_of({}).n_pairs == 32
    assert settings_of(dict(lambdarank_pair_method="mean")).n_pairs == 1
    for name, parameters, expected in [
        ("rank:ndcg", {}, "ndcg@32"),
        ("rank:pairwise", dict(lambdarank_num_pair_per_sample=5), "ndcg@5"),
        ("rank:map", {}, "map@32"),
        ("rank:map", dict(lambdarank_pair_method="mean"), "map"),
        ("rank:yeti", dict(yeti_mode="mrr"), "mrr@32"),
        ("rank:yeti", dict(yeti_mode="classic"), "ndcg@32"),
    ]:
        assert default_metric("ranking", name, parameters).name == expected


# --- metrics


@pytest.mark.parametrize(
    "name",
    ["ndcg", "ndcg@3", "ndcg@10-", "map", "map@2", "map-", "pre@5", "pre", "mrr", "mrr@2"],
)
def test_metrics(name):
    family, _, rest = name.rstrip("-").partition("@")
    y, scores = make_data(sizes=(1, 2, 9, 40, 4), n_labels=4 if family in ("ndcg", "mrr") else 2)
    y[0, y[1] == 4] = 0.0
    values, weights = [], []
    for query, rows in enumerate(of_queries(y)):
        empty = 0.0 if name.endswith("-") else 1.0
        values.append(
            value_of(family, y[0, rows], scores[rows], int(rest) if rest else None, empty)
        )
        weights.append(query + 1.0)
    function = find_metric(name, "ranking").function
    assert_allclose(function(y.T, scores, NO_WEIGHT), np.mean(values), rtol=1e-12)
    weighted = np.average(values, weights=weights)
    assert_allclose(function(y.T, scores, y[1] + 1.0), weighted, rtol=1e-12)


def test_ndcg_of_scikit_learn():
    y, _ = make_data(sizes=(2, 9, 40))
    scores = np.random.default_rng(1).normal(size=y.shape[1])  # none are equal
    for name, most in [("ndcg", None), ("ndcg@4", 4)]:
        expected = np.mean([ndcg_score([y[0, r]], [scores[r]], k=most) for r in of_queries(y)])
        metric = find_metric(name, "ranking", dict(ndcg_exp_gain=False))
        assert_allclose(metric.function(y.T, scores, NO_WEIGHT), expected, rtol=1e-12)
    powers = 2.0 ** y[0] - 1.0
    expected = np.mean([ndcg_score([powers[r]], [scores[r]]) for r in of_queries(y)])
    assert_allclose(find_metric("ndcg", "ranking").function(y.T, scores, NO_WEIGHT), expected)


def test_labels_that_metrics_are_not_defined_for():
    y = np.array([[2.0, 0.0], [0.5, 0.0]])
    for name, words in [
        ("map", "map of a relevance of 2: it needs relevances that are 0 or 1"),
        ("pre@3", "pre@3 of a relevance of 2"),
        ("ndcg", "ndcg of a relevance of 0.5: .* ndcg_exp_gain=False"),
    ]:
        with pytest.raises(ValueError, match=words):
            find_metric(name, "ranking").function(y, np.zeros(2), NO_WEIGHT)
