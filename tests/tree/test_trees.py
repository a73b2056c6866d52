import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost import XGBRegressorLite
from sklboost.engine.model import NO_BITS
from sklboost.tree.predict.category_bits import (
    add_category,
    allocate_bits,
    is_listed,
    listed_categories,
    most_words,
)
from sklboost.tree.predict.trees import (
    copy_trees,
    join_bits,
    join_trees,
    no_trees,
    take_bits,
    take_trees,
    trees_of,
)
from sklboost.tree.predict.walking import find_unlisted

# --- categories that splits list, as bits ---------------------------------------------------------


def bits_of(sets, n_categories):
    """Return the bits of some nodes that list these categories."""
    bits = allocate_bits(len(sets), most_words(n_categories, max(map(len, sets), default=0)))
    for node, categories in enumerate(sets):
        stop = bits.starts[node]
        for category in categories:
            stop = add_category(np.int64(category), bits.starts[node], stop, bits)
        bits.starts[node + 1] = stop
    return bits


def random_sets(seed, n_categories):
    random = np.random.default_rng(seed)
    sizes = random.integers(0, min(n_categories, 90), 12)
    return [random.choice(n_categories, size, replace=False) for size in sizes]


@pytest.mark.interpreted
@pytest.mark.parametrize("n_categories", [3, 64, 65, 130, 1000, 65_534])
def test_exactly_the_listed_categories_go_left(n_categories):
    sets = random_sets(n_categories, n_categories)
    bits = bits_of(sets, n_categories)
    asked = np.unique(np.r_[np.arange(min(n_categories, 150)), *sets, n_categories - 1])
    for node, categories in enumerate(sets):
        expected = np.isin(asked, categories).tolist()
        assert [is_listed(category, bits, node) for category in asked] == expected
        assert_array_equal(listed_categories(bits, node), np.sort(categories))
        for unknown in (-1, n_categories, n_categories + 200, 2**60):
            assert not is_listed(np.int64(unknown), bits, node)
        # many rows at once, as prediction asks: also for what is no category
        category_set = np.zeros(n_categories // 64 + 2, dtype=np.uint64)
        others = [np.nan, -1, n_categories, 64 * len(category_set), 2**40]
        for dtype in (np.float32, np.float64):
            rows = np.resize(np.r_[others, n_categories - 1, categories, asked], 128)
            decisions = np.ones((2, 2), dtype=np.uint64)
            find_unlisted(rows.astype(dtype), bits, node, category_set, decisions[1])
            goes_right = np.unpackbits(decisions[1].view(np.uint8), bitorder="little")
            assert_array_equal(goes_right == 0, np.isin(rows, categories))
            assert decisions[0].all()
            assert not category_set.any()


@pytest.mark.interpreted
def test_words_without_a_bit_are_left_out():
    bits = bits_of([[40_000, 5, 40_001], [], [64]], 65_534)
    assert bits.starts.tolist() == [0, 2, 2, 3]
    assert bits.numbers[:3].tolist() == [0, 625, 1]
    assert bits.words[:3].tolist() == [32, 3, 1]
    assert (most_words(65_534, 64), most_words(65, 64), most_words(0, 0)) == (64, 2, 0)


def test_a_model_has_no_more_words_than_categories_that_its_splits_list():
    random = np.random.default_rng(0)
    X = np.arange(1500.0)[random.permutation(1500), np.newaxis]
    settings = dict(max_depth=0, cat_smooth=0.0, min_child_weight=0.0, reg_lambda=0.0)
    model = XGBRegressorLite(n_estimators=2, categorical_features=[0], n_jobs=1, **settings)
    nodes = model.fit(X, random.normal(size=1500)).model_.nodes
    bits = model.model_.tops.bits
    n_listed = sum(map(len, model.trees_to_dataframe()["Category"].dropna()))
    assert (nodes.left >= 0).sum() > 1800
    assert 0 < len(bits.words) == len(bits.numbers) <= n_listed
    assert bits.words.all()


# --- trees cut, joined and copied -----------------------------------------------------------------


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
    first = take_trees(trees, 0, n_first)
    assert len(first.n_pruned) == n_first
    joined = join_trees([first, no_trees(), trees])
    assert_same_bits(take_trees(joined, 0, n_first), first)
    assert len(joined.n_pruned) == n_first + 5
    assert_same_bits(take_trees(join_trees([trees, trees]), 0, 5), trees)


def test_a_copy_shares_no_memory(trees):
    constant, copied = trees._replace(linear=None, unpruned=None), copy_trees(trees)
    assert_same_bits(constant, copied)
    for array, its_copy in zip(arrays_of(constant), arrays_of(copied), strict=True):
        assert not np.shares_memory(array, its_copy)


@pytest.mark.interpreted
def test_sets_of_categories_cut_and_joined():
    sets = random_sets(0, 500)
    bits = bits_of(sets, 500)
    first, rest = take_bits(bits, 0, 5), bits_of(sets[5:], 500)
    rest = take_bits(rest, 0, 7)  # without the room behind
    parts = [(NO_BITS, 0), (first, 5), (NO_BITS, 3), (rest, 7)]
    joined = join_bits(parts)
    found = [listed_categories(joined, node).tolist() for node in range(15)]
    assert found == [sorted(own) for own in [*sets[:5], [], [], [], *sets[5:]]]
    assert join_bits([(NO_BITS, 4), (NO_BITS, 0)]) is NO_BITS
    assert take_bits(NO_BITS, 0, 4) is NO_BITS
