from collections import Counter

import numpy as np
import pytest

from sklboost.boosting.settings import feature_rules
from sklboost.engine.elementary import hash_key
from sklboost.tree.options.column_sampling import (
    allocate_column_sample,
    choose_some,
    choose_tree_features,
)
from tests.tree.growth import features_of_node, params

pytestmark = pytest.mark.interpreted


def choose_for_tree(key, settings, sample):
    """Choose the features of a tree as growing one does."""
    sample.key[0] = key
    if settings.colsample_bytree < 1.0:
        choose_tree_features(settings, sample)


def choose(n_features, fraction, seed, weights=None):
    features = np.arange(n_features)
    own_weights = np.array([] if weights is None else weights, dtype=float)
    key = np.uint64(hash_key(seed, 0, 0))
    n_chosen = choose_some(features, fraction, key, own_weights, np.ones((2, n_features)))
    return list(features[:n_chosen])


@pytest.mark.parametrize(
    ("n_features", "fraction", "expected"),
    [
        (10, 0.5, 5),
        (10, 0.59, 5),
        (10, 0.6, 6),
        (100, 0.29, 29),  # 0.29 * 100 is a little less than 29
        (10, 0.01, 1),
        (1, 0.5, 1),
        (3, 1.0, 3),
        (7, 1 / 7, 1),
    ],
)
def test_exactly_so_many_and_in_order(n_features, fraction, expected):
    for seed in range(20):
        chosen = choose(n_features, fraction, seed)
        assert len(chosen) == expected
        assert chosen == sorted(set(chosen))
        assert set(chosen) <= set(range(n_features))


@pytest.mark.parametrize("fraction", [0.01, 0.3, 0.5, 1.0])
def test_exactly_so_many_by_weight(fraction):
    weights = [1e-9, 1.0, 1.0, 5.0, 1e9, 2.0, 1e-300, 3.0, 1.0, 1e300]
    for seed in range(50):
        chosen = choose(10, fraction, seed, weights)
        assert len(chosen) == max(1, int(fraction * 10))
        assert chosen == sorted(set(chosen))


def test_of_two_one_is_drawn_after_the_other():
    counts = Counter(tuple(choose(3, 0.7, seed, [1.0, 2.0, 3.0])) for seed in range(3000))
    # first 1 of weight 6, then the other of what is left: 1/6 * 2/5 + 2/6 * 1/4, and so on
    for pair, chance in {(0, 1): 3 / 20, (0, 2): 4 / 15, (1, 2): 7 / 12}.items():
        assert abs(counts[pair] - 3000 * chance) < 4.5 * np.sqrt(3000 * chance)


@pytest.mark.parametrize("weights", [None, [3.0] * 5])
def test_every_set_is_as_likely(weights):
    assert len(feature_rules(3, weights=[7.0, 7.0, 7.0]).weights) == 0  # equal ones are none
    counts = Counter(tuple(choose(5, 0.4, seed, weights)) for seed in range(3000))
    assert len(counts) == 10  # 5 over 2
    assert all(abs(count - 300) < 4.5 * np.sqrt(300) for count in counts.values())


@pytest.mark.parametrize("name", ["colsample_bytree", "colsample_bylevel", "colsample_bynode"])
def test_weights_in_each_draw(name):
    settings = params(**{name: 0.1})
    sample = allocate_column_sample(feature_rules(10, weights=[1e9] + [1.0] * 9), 10, 1)
    for tree in range(20):
        choose_for_tree(hash_key(tree, 0, 0), settings, sample)
        assert features_of_node(sample, settings, 3, 2) == [0]


def start(n_features, key=1, **fractions):
    rules, settings = feature_rules(n_features), params(**fractions)
    sample = allocate_column_sample(rules, n_features, 1)
    choose_for_tree(hash_key(key, 0, 0), settings, sample)
    return sample, settings


def test_hierarchy():
    given = start(40, colsample_bytree=0.5, colsample_bylevel=0.5, colsample_bynode=0.3)
    sample, settings = given
    of_tree = set(sample.of_tree[: sample.n_of_tree[0]])
    assert len(of_tree) == 20
    of_depth = []
    for depth in range(3):
        nodes = [features_of_node(sample, settings, node, depth) for node in range(40)]
        assert {len(chosen) for chosen in nodes} == {3}
        of_depth.append(frozenset().union(*nodes))
        assert len(of_depth[-1]) == 10  # all nodes of a depth choose from the same
        assert of_depth[-1] <= of_tree
    assert len(set(of_depth)) == 3
    assert features_of_node(*given, 0, 0) == features_of_node(*given, 0, 0)


@pytest.mark.parametrize(
    ("name", "same_node", "same_depth"),
    [
        ("colsample_bytree", True, True),
        ("colsample_bylevel", True, False),
        ("colsample_bynode", False, False),
    ],
)
def test_each_fraction_alone(name, same_node, same_depth):
    sample, settings = start(30, **{name: 0.4})
    first = features_of_node(sample, settings, 3, 2)
    assert len(first) == 12
    assert (features_of_node(sample, settings, 4, 2) == first) == same_node
    assert (features_of_node(sample, settings, 4, 3) == first) == same_depth
    other, _ = start(30, key=2, **{name: 0.4})
    assert features_of_node(other, settings, 3, 2) != first
