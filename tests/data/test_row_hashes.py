import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.data.row_hashes import hash_rows, number_copies, tell_copies_apart
from sklboost.data.table import Column, Table
from tests.data.test_sparse_table import sparse_values
from tests.data.test_sparse_table import table_of as sparse_table

Y = np.zeros(3)


def make_rows(n_samples=300, n_features=5):
    random = np.random.default_rng(0)
    X = random.normal(size=(n_samples, n_features)).astype(np.float32)
    X[random.random(X.shape) < 0.1] = np.nan
    return X, random.normal(size=n_samples)


@pytest.mark.interpreted
def test_equal_rows_have_equal_hashes_and_others_have_not():
    X, y = make_rows()
    hashes = hash_rows(np.tile(X, (2, 1)), np.tile(y, 2), 7)
    assert hashes.dtype == np.uint32
    assert_array_equal(hashes[:300], hashes[300:])
    assert len(np.unique(hashes)) == 300


@pytest.mark.interpreted
def test_every_value_the_target_their_order_and_the_seed_matter():
    X, y = make_rows()
    hashes = hash_rows(X, y, 7)
    others = [hash_rows(X, y, 8), hash_rows(X, y + 1, 7), hash_rows(X[:, ::-1], y, 7)]
    for feature in range(X.shape[1]):
        changed = np.nan_to_num(X)
        changed[:, feature] += 1
        others.append(hash_rows(changed, y, 7))
    for other in others:
        assert not (hashes == other).any()


FORMS = {
    "float64": lambda X: X.astype(np.float64),
    "columns in order": np.asfortranarray,
    "read-only": lambda X: np.broadcast_to(X, X.shape),
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "sparse": sparse_table,
    "table": lambda X: Table([Column(values) for values in X.T], np.zeros(X.shape[1], int)),
}


@pytest.mark.interpreted
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_form_of_the_same_values_and_the_order_of_the_rows_do_not_matter(form):
    X, y = sparse_values(300, 9, 0.5).astype(np.float32), make_rows()[1]
    hashes = hash_rows(X, y, 7)
    formed = form(X)
    assert_array_equal(hash_rows(formed, y, 7), hashes)
    order = np.random.default_rng(1).permutation(300)[50:]
    assert_array_equal(hash_rows(formed[order], y[order], 7), hashes[order])


@pytest.mark.interpreted
def test_zeros_are_equal_and_all_missing_values():
    zeros = hash_rows(np.array([[0.0], [-0.0], [5e-324]]), Y, 0)
    assert zeros[0] == zeros[1] != zeros[2]
    other_nan = np.array([0x7FF8000000000001, 0xFFF8000000000000], dtype=np.uint64).view(float)
    missing = np.array([np.nan, *other_nan])
    assert np.isnan(missing).all()
    assert len(np.unique(hash_rows(missing[:, np.newaxis], Y, 0))) == 1
    infinite = hash_rows(np.array([[np.inf], [-np.inf], [np.nan]]), Y, 0)
    assert len(np.unique(infinite)) == 3


def test_hashes_look_random():
    n = 50_000
    X = np.arange(n, dtype=float)[:, np.newaxis] // [1, 50]  # small whole numbers
    hashes = hash_rows(X, np.zeros(n), 0)
    assert len(np.unique(hashes)) > n - 10  # 0.3 chance meetings are to be expected
    bits = hashes[:, np.newaxis] >> np.arange(32, dtype=np.uint32) & 1
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 5 * 0.5 / np.sqrt(n)
    assert abs(np.corrcoef(hashes, X[:, 0])[0, 1]) < 5 / np.sqrt(n)


@pytest.mark.parametrize("form", [np.asarray, FORMS["table"]], ids=["array", "table"])
@pytest.mark.parametrize("shape", [(70_000, 1), (30, 3000)])  # more than a block of rows, or wide
def test_blocks_of_rows_do_not_matter(shape, form):
    random = np.random.default_rng(0)
    X, y = form(random.normal(size=shape)), random.normal(size=shape[0])
    whole = hash_rows(X, y, 3)
    third = len(y) // 3
    parts = [hash_rows(X[:third], y[:third], 3), hash_rows(X[third:], y[third:], 3)]
    assert_array_equal(np.concatenate(parts), whole)


@pytest.mark.interpreted
def test_copies_are_told_apart_whatever_their_order():
    copied = np.array([7, 5, 7, 7, 9], dtype=np.uint32)
    hashes = tell_copies_apart(copied, np.empty(0))
    assert len(set(hashes.tolist())) == 5
    turned = tell_copies_apart(copied[::-1], np.empty(0))
    assert set(turned.tolist()) == set(hashes.tolist())


@pytest.mark.interpreted
def test_copies_are_counted_from_the_lightest_on():
    weight, copied = np.array([3.0, 1.0, 2.0]), np.full(3, 7, dtype=np.uint32)
    hashes, turned = (tell_copies_apart(copied, of) for of in (weight, weight[::-1]))
    assert_array_equal(turned, hashes[::-1])
    assert_array_equal(number_copies(copied, weight), [2, 0, 1])


def test_copies_of_the_same_weight_are_counted_as_they_come():
    # whatever sort the processor is fast at
    copied = (np.arange(1000) % 7 == 0).astype(np.uint32)
    for weight in ((), (np.ones(1000),)):
        numbers = number_copies(copied, *weight)
        for value in (0, 1):
            assert_array_equal(numbers[copied == value], np.arange((copied == value).sum()))
