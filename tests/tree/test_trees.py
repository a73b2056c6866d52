import numpy as np
import pytest

from sklboost import XGBRegressorLite
from sklboost.engine.model import NO_BITS
from sklboost.tree.predict.category_bits import listed_categories
from sklboost.tree.predict.trees import (
    copy_trees,
    first_bits,
    first_trees,
    join_bits,
    join_trees,
    no_trees,
    trees_of,
)
from tests.tree.test_category_bits import bits_of, random_sets


def arrays_of(trees):
    """Return the arrays of trees, and of the groups in them."""
    arrays = []
    for field in trees:
        if isinstance(field, np.ndarray):
            arrays.append(field)
        elif isinstance(field, tuple):
            arrays += arrays_of(field)
    return arrays


def assert_same_bits(trees, others):
    for array, other in zip(arrays_of(trees), arrays_of(others), strict=True):
        assert array.tobytes() == other.tobytes()


@pytest.fixture(scope="module")
def trees():
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(size=500), random.integers(0, 30, 500)])
    y = X[:, 0] + np.sin(X[:, 1])
    model = XGBRegressorLite(
        n_estimators=5, categorical_features=[1], linear_tree=True, gamma=0.5, keep_pruned=True
    )
    return trees_of(model.fit(X, y).model_)


@pytest.mark.parametrize("n_first", [0, 2, 5])
def test_joined_trees_are_what_was_cut(trees, n_first):
    first = first_trees(trees, n_first)
    assert len(first.n_pruned) == n_first
    joined = join_trees([first, no_trees(), trees])
    assert_same_bits(first_trees(joined, n_first), first)
    assert len(joined.n_pruned) == n_first + 5
    assert_same_bits(first_trees(join_trees([trees, trees]), 5), trees)


def test_a_copy_shares_no_memory(trees):
    constant, copied = trees._replace(linear=None, unpruned=None), copy_trees(trees)
    assert_same_bits(constant, copied)
    for array, its_copy in zip(arrays_of(constant), arrays_of(copied), strict=True):
        assert not np.shares_memory(array, its_copy)


@pytest.mark.interpreted
def test_sets_of_categories_cut_and_joined():
    sets = random_sets(0, 500)
    bits = bits_of(sets, 500)
    first, rest = first_bits(bits, 5), bits_of(sets[5:], 500)
    rest = first_bits(rest, 7)  # without the room behind
    parts = [(NO_BITS, 0), (first, 5), (NO_BITS, 3), (rest, 7)]
    joined = join_bits(parts)
    found = [listed_categories(joined, node).tolist() for node in range(15)]
    assert found == [sorted(own) for own in [*sets[:5], [], [], [], *sets[5:]]]
    assert join_bits([(NO_BITS, 4), (NO_BITS, 0)]) is NO_BITS
    assert first_bits(NO_BITS, 4) is NO_BITS
