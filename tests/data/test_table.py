"""Columns of different kinds as one table: values, rows of it, blocks."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.data import table
from sklboost.data.cuts import find_cuts
from sklboost.data.features import join_rows, training_bins
from sklboost.data.table import Column, Table, floats_below
from sklboost.engine.parallel import ThreadTeam
from tests.data.test_binning import NO_WEIGHT, assert_same_matrix

nan = np.nan
N = 7


def make_table(n_rows=N):
    """Return a table of five features, and the values that it holds."""
    numbers = np.arange(n_rows)
    halves = (numbers / 2).astype(np.float16)
    halves[::3] = nan
    codes = (numbers % 4 - 1).astype(np.int8)
    columns = [
        Column(numbers % 2 == 1),
        Column(numbers.astype(np.int64), numbers == 2),
        Column(halves),
        Column(codes, None, np.array([2.0, nan, 0.0, nan])),  # -1: the last
        Column(numbers.astype(np.uint32), numbers % 5 == 0),
    ]
    X = np.column_stack(
        [
            numbers % 2,
            np.where(numbers == 2, nan, numbers),
            halves.astype(float),
            np.array([nan, 2.0, nan, 0.0])[numbers % 4],
            np.where(numbers % 5 == 0, nan, numbers),
        ]
    )
    return Table(columns, np.array([0, 0, 0, 3, 0])), X


CHOICES = [
    slice(None),
    slice(2, 5),
    slice(None, None, -2),
    np.array([3, 1, 1, 6]),
    np.arange(N) % 2 == 0,
    np.zeros(N, dtype=bool),
]


@pytest.mark.interpreted
@pytest.mark.parametrize("second", [slice(None), slice(1, 3), np.array([0]), slice(0, 0)])
@pytest.mark.parametrize("first", CHOICES)
def test_rows_are_chosen_as_those_of_an_array(first, second):
    T, X = make_table()
    chosen, expected = T[first], X[first]
    if len(expected) == 0 and isinstance(second, np.ndarray):
        second = second[:0]
    for T, X in ((chosen, expected), (chosen[second], expected[second])):
        assert T.shape == X.shape
        assert T.size == X.size
        assert T.ndim == 2
        assert len(T) == len(X)
        for feature in range(X.shape[1]):
            assert_array_equal(T.column(feature), X[:, feature])
        if len(X) > 0:
            assert_array_equal(T.values(), X)


def test_choosing_rows_copies_no_values():
    T, _ = make_table()
    for part in (T[1:4], T[np.array([2, 3])], T[np.arange(N) > 2][1:]):
        for column, whole in zip(part.columns, T.columns, strict=True):
            assert np.shares_memory(column.values, whole.values)


@pytest.mark.interpreted
@pytest.mark.parametrize("n_rows", [1, 2, 3, 7, 100])
def test_blocks(n_rows):
    T, X = make_table()
    T, X = T[np.array([5, 0, 1, 2, 3, 4, 6])], X[[5, 0, 1, 2, 3, 4, 6]]
    ranges = []
    for rows, values in T.blocks(n_rows):
        assert values.flags.f_contiguous
        assert_array_equal(values, X[rows])
        ranges.append(rows)
    assert ranges == [slice(i, min(i + n_rows, N)) for i in range(0, N, n_rows)]


def test_the_type_of_blocks_is_float32_where_that_is_exact():
    short = [Column(np.zeros(3, dtype)) for dtype in ("?", "i1", "u2", "<f2", ">f4", ">i2")]
    assert Table(short, np.zeros(6, int)).dtype == np.float32
    codes = Column(np.zeros(3, int), None, np.array([65_533.0, nan]))
    assert Table([*short, codes], np.zeros(7, int)).dtype == np.float32
    for dtype in ("i4", "u4", "i8", "f8", "g"):
        assert Table([*short, Column(np.zeros(3, dtype))], np.zeros(7, int)).dtype == np.float64
    long = Column(np.zeros(3, int), None, np.array([2.0**24 + 1, nan]))
    assert Table([long], np.zeros(1, int)).dtype == np.float64


@pytest.mark.interpreted
def test_large_integers_are_rounded_down():
    large = [2**53 + 1, 2**53 + 3, 2**60 + 129, 2**63 - 1, -(2**53) - 1, -(2**63), 0, 5]
    expected = [2**53, 2**53 + 2, 2**60, 2**63 - 1024, -(2**53) - 2, -(2**63), 0, 5]
    floats = floats_below(np.array(large, dtype=np.int64))
    assert [int(value) for value in floats] == expected
    floats = floats_below(np.array([2**64 - 1, 2**63 + 1, 3], dtype=np.uint64))
    assert [int(value) for value in floats] == [2**64 - 2048, 2**63, 3]
    assert len(floats_below(np.empty(0, dtype=np.int64))) == 0


@pytest.mark.interpreted
def test_joined_rows():
    T, X = make_table()
    chosen = np.array([4, 2, 2])
    for joined, expected in (
        (join_rows(T, T[chosen]), np.concatenate([X, X[chosen]])),
        (join_rows(T[chosen], T), np.concatenate([X[chosen], X])),
        (join_rows(T, X), np.concatenate([X, X])),
        (join_rows(X, T[1:3]), np.concatenate([X, X[1:3]])),
    ):
        assert_array_equal(joined.values(), expected)
    assert list(join_rows(T, T).n_categories) == [0, 0, 0, 3, 0]
    large = Table([Column(np.array([2**60 - 1]))], np.zeros(1, int))
    assert_array_equal(join_rows(large, large).values(), 2 * [[2**60 - 128]])  # rounded down


def test_joined_columns_keep_their_types():
    T, _ = make_table()
    columns = join_rows(T, T[1:3]).columns
    types = [column.values.dtype.name for column in columns]
    assert types == ["bool", "int64", "float16", "float64", "uint32"]  # codes become floats
    assert [column.missing is None for column in columns] == [True, False, True, True, False]


@pytest.mark.parametrize("n_threads", [1, 3])
def test_bins_are_those_of_the_same_values_in_an_array(n_threads, monkeypatch):
    monkeypatch.setattr(table, "BLOCK_VALUES", 5 * 700)
    T, X = make_table(3000)
    with ThreadTeam(n_threads) as team:
        matrix, cuts = training_bins(team, T, NO_WEIGHT, 20)
        expected, _ = training_bins(team, X, NO_WEIGHT, 20)
        numbers = Table(T.columns, np.zeros(5, dtype=int))
        assert_same_matrix(training_bins(team, numbers, NO_WEIGHT, 20)[0], expected)
    # the code 1 has a bin, though no row has it
    assert list(cuts.cuts[cuts.starts[3] : cuts.starts[4]]) == [0.5, 1.5]
    assert list(matrix.lower[matrix.cell_starts[3] : matrix.cell_starts[4] - 1]) == [0, 1, 2]
    assert_array_equal(matrix.columns[3], np.where(np.isnan(X[:, 3]), 3, X[:, 3]))
    assert_array_equal(matrix.rows.T, matrix.columns)
    assert_array_equal(np.delete(matrix.columns, 3, 0), np.delete(expected.columns, 3, 0))
    assert list(matrix.n_categories) == list(cuts.n_categories) == [0, 0, 0, 3, 0]


@pytest.mark.parametrize("weighted", [False, True])
def test_a_sample_is_put_together_from_blocks(weighted, monkeypatch):
    monkeypatch.setattr(table, "BLOCK_VALUES", 2 * 50_000)
    random = np.random.default_rng(0)
    # two rare values, which the sample may not have, and many
    X = np.column_stack([random.integers(0, 3, 300_000), random.normal(size=300_000)])
    X[[7, 250_000], 0] = 50, 60
    weight = random.integers(1, 4, len(X)).astype(float) if weighted else NO_WEIGHT
    with ThreadTeam(2) as team:
        expected, _ = find_cuts(team, X, weight, 64)
        T = Table([Column(values) for values in X.T], np.zeros(X.shape[1], int))
        cuts, _ = find_cuts(team, T, weight, 64)
    for one, other in zip(cuts, expected, strict=True):
        assert_array_equal(one, other)
    assert list(cuts.lower[:5]) == [0, 1, 2, 50, 60]


def test_more_levels_than_bins():
    codes = Column(np.arange(1000) % 700, None, np.append(np.arange(700.0), nan))
    T = Table([codes, Column(np.arange(1000.0))], np.array([700, 0]))
    with ThreadTeam(1) as team:
        matrix, _ = training_bins(team, T, NO_WEIGHT, 16)
    assert list(np.diff(matrix.cell_starts)) == [700, 16]
    assert matrix.rows.dtype == np.uint16
    assert_array_equal(matrix.columns[0], np.arange(1000) % 700)
