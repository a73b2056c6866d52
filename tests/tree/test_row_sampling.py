import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost.tree.core.quantization import weigh
from sklboost.tree.core.workspace import allocate_workspace
from sklboost.tree.options.row_sampling import (
    allocate_row_sample,
    draw_rows,
    find_limit,
    magnitude_cell,
    middle_of_cell,
    row_keys,
)
from tests.tree.growth import NO_WEIGHT, binned, follow, grow, make_data, params, run, tree_keys

BY_GRADIENT = dict(sampling_method="gradient_based")


def sets_of_rows(partition):
    """Return the rows that the root was given: those drawn and those left out."""
    bounds = zip(partition.start[:, 0], partition.stop[:, 0], strict=True)
    blocks = [partition.lists[0, start:stop] for start, stop in bounds]
    half = len(blocks) // 2
    return [np.concatenate(part) for part in (blocks[:half], blocks[half:])]


def draw(n_rows, round_=0, n_threads=1, gradient=None, hessian=None, weight=NO_WEIGHT, **settings):
    """Draw rows of a round; give (drawn, left out, gradients and hessians after, sample).

    The first round's are those of the tree that :func:`grow` grows.
    """
    gradient = np.ones(n_rows, dtype=np.float32) if gradient is None else gradient.copy()
    hessian = np.ones_like(gradient) if hessian is None else hessian.copy()
    settings = params(**settings)
    workspace = allocate_workspace(binned(np.zeros((n_rows, 1))), settings, 1, n_threads)
    derivatives = weigh(*np.atleast_2d(gradient, hessian), weight, n_threads)
    key = tree_keys(0, round_).rows
    partition = workspace.partition
    sample = allocate_row_sample(n_rows, settings, n_threads)
    run(draw_rows, derivatives, key, settings, sample, workspace, n_threads=n_threads)
    drawn, left_out = sets_of_rows(partition)
    assert_array_equal(np.sort(np.concatenate([drawn, left_out])), np.arange(n_rows))
    return np.sort(drawn), left_out, (gradient, hessian), sample


# --- every row alike -----------------------------------------------------------------------------


@pytest.mark.parametrize("subsample", [0.01, 0.5, 0.99])
def test_part_of_the_rows(subsample):
    n_rows = 100_000
    sizes = [len(draw(n_rows, round_, subsample=subsample)[0]) for round_ in range(5)]
    deviation = np.sqrt(n_rows * subsample * (1 - subsample))
    assert_allclose(sizes, n_rows * subsample, atol=4.5 * deviation)
    assert len(set(sizes)) > 1


def test_rounds_are_independent():
    n_rows, part = 20_000, 0.4
    first, second = (np.isin(np.arange(n_rows), draw(n_rows, r, subsample=part)[0]) for r in (0, 1))
    both = np.count_nonzero(first & second)
    assert both == pytest.approx(n_rows * part**2, abs=4.5 * np.sqrt(n_rows * part**2))


# --- what rows are known by ----------------------------------------------------------------------


def matrix_of(columns):
    return binned(columns.T.astype(float))


def contents(keys, columns, y):
    """Return the content of the rows in the order of their keys."""
    return np.column_stack([*columns, y])[np.argsort(keys)]


@pytest.mark.interpreted
def test_keys_of_few_rows_go_by_their_content():
    random = np.random.default_rng(0)
    columns = random.integers(0, 3, (3, 100)).astype(np.uint8)
    y = random.integers(0, 2, 100).astype(float)
    keys = row_keys(matrix_of(columns), y[np.newaxis], NO_WEIGHT)
    for weight in (0.3, 1.0, 1.0 + 1e-9):  # which all rows have
        same = row_keys(matrix_of(columns), y[np.newaxis], np.full(len(y), weight))
        assert_array_equal(same, keys)
    assert keys.dtype == np.uint32
    assert_array_equal(np.sort(keys), np.arange(100))  # equal rows, too, are told apart
    order = random.permutation(100)
    shuffled = row_keys(matrix_of(columns[:, order]), y[np.newaxis, order], NO_WEIGHT)
    assert np.any(shuffled != keys[order])  # which of equal rows is which
    expected = contents(keys, columns, y)
    assert_array_equal(contents(shuffled, columns[:, order], y[order]), expected)
    y_of_signs = np.where(y == 0, -0.0, y)[np.newaxis]
    assert_array_equal(row_keys(matrix_of(columns), y_of_signs, NO_WEIGHT), keys)


@pytest.mark.interpreted
@pytest.mark.parametrize("change", ["bins", "y", "weight"])
def test_all_of_the_content_counts(change):
    columns, y, weight = np.zeros((2, 9), dtype=np.uint8), np.zeros(9), np.ones(9)
    parts = {"bins": columns[1], "y": y, "weight": weight}
    parts[change][:] = np.arange(9) + 1
    forwards = row_keys(matrix_of(columns), y[np.newaxis], weight)
    turned = (matrix_of(columns[:, ::-1]), y[np.newaxis, ::-1].copy(), weight[::-1].copy())
    backwards = row_keys(*turned)
    assert_array_equal(forwards, backwards[::-1])


@pytest.mark.interpreted
def test_many_rows_are_known_by_number():
    columns = np.zeros((1, 4097), dtype=np.uint8)
    keys = row_keys(matrix_of(columns), np.zeros((1, 4097)), NO_WEIGHT)
    assert_array_equal(keys, np.arange(4097))
    y = np.arange(4096.0)[np.newaxis, ::-1].copy()
    assert np.any(row_keys(matrix_of(columns[:, 1:]), y, NO_WEIGHT) != np.arange(4096))


# --- rows of large gradients ---------------------------------------------------------------------


@pytest.mark.interpreted
@pytest.mark.parametrize("magnitude", [2e-38, 1e-20, 0.1, 0.999, 1.0, 1.03, 7.0, 3e38])
def test_cells_of_the_grid(magnitude):
    cell = int(magnitude_cell(np.array([magnitude], dtype=np.float32).view(np.uint32)[0]))
    assert 0 <= cell < 2**13
    assert middle_of_cell(cell) == pytest.approx(magnitude, rel=1 / 60)
    assert middle_of_cell(cell) < middle_of_cell(cell + 1)


@pytest.mark.interpreted
@pytest.mark.parametrize("tail", [0.1, 1.0, 3.0])
def test_limit_gives_the_number_of_rows(tail):
    random = np.random.default_rng(0)
    magnitudes = np.exp(tail * random.normal(size=2000)).astype(np.float32)
    cells = [magnitude_cell(bits) for bits in magnitudes.view(np.uint32)]
    counts = np.array([np.bincount(half, minlength=2**13) for half in (cells[:900], cells[900:])])
    for part in (0.01, 0.1, 0.5, 0.9, 0.999):
        limit = find_limit(counts, part * 2000)
        expected_number = np.minimum(1.0, magnitudes / limit).sum()
        assert expected_number == pytest.approx(part * 2000, rel=0.01)


@pytest.mark.interpreted
def test_limit_of_equal_magnitudes_and_of_far_apart_ones():
    counts = np.zeros((1, 2**13), dtype=np.int64)
    counts[0, 4000] = 10
    assert find_limit(counts, 4.0) == pytest.approx(middle_of_cell(4000) / 0.4)
    counts[0, 300] = 1000  # 1e30 times smaller: they share what the ten leave over
    assert find_limit(counts, 510.0) == pytest.approx(middle_of_cell(300) / 0.5)


@pytest.mark.interpreted
def test_limit_does_not_depend_on_who_counted_which_rows():
    counts = np.zeros((2, 2**13), dtype=np.int64)
    counts[0, 4000:4003] = [547_368, 63_733, 99_059]
    counts[1, 4000:4003] = [218_496, 230_612, 144_894]
    by_one = counts.sum(axis=0, keepdims=True)
    assert find_limit(counts, 49_682.82) == find_limit(by_one, 49_682.82)


def test_large_gradients_are_sure_and_the_others_make_up_for_those_left_out():
    random = np.random.default_rng(1)
    n_rows = 50_000
    gradient = (random.normal(size=n_rows) * np.exp(random.normal(size=n_rows))).astype(np.float32)
    hessian = random.uniform(0.1, 1.0, n_rows).astype(np.float32)
    data = dict(gradient=gradient, hessian=hessian, subsample=0.2)
    drawn, left_out, (after_gradient, after_hessian), sample = draw(n_rows, **data, **BY_GRADIENT)
    magnitude = np.sqrt(gradient.astype(float) ** 2 + 0.1 * hessian.astype(float) ** 2)
    chance = np.minimum(1.0, magnitude / sample.limit[0])
    assert_allclose(sample.chances, chance, rtol=1e-6)
    assert chance.sum() == pytest.approx(0.2 * n_rows, rel=0.01)
    assert len(drawn) == pytest.approx(0.2 * n_rows, abs=4.5 * np.sqrt(0.2 * n_rows))
    assert 100 < np.count_nonzero(chance == 1.0) < n_rows / 10
    assert np.isin(np.flatnonzero(chance == 1.0), drawn).all()
    assert_allclose(after_gradient[drawn], gradient[drawn] / chance[drawn], rtol=1e-5)
    assert_allclose(after_hessian[drawn], hessian[drawn] / chance[drawn], rtol=1e-5)
    assert not after_gradient[left_out].any()
    assert not after_hessian[left_out].any()
    for before, after in ((gradient, after_gradient), (hessian, after_hessian)):
        before, after = before.astype(float), after.astype(float)
        deviation = np.sqrt((before**2 * (1 - chance) / chance).sum())
        assert after.sum() == pytest.approx(before.sum(), abs=4 * deviation)


def test_weights_count_in_the_magnitude():
    random = np.random.default_rng(2)
    gradient = random.normal(size=3000).astype(np.float32)
    weight = random.exponential(size=3000)
    data = dict(gradient=gradient, weight=weight, subsample=0.3)
    *_, sample = draw(3000, **data, **BY_GRADIENT)
    magnitude = weight * np.sqrt(gradient.astype(float) ** 2 + 0.1)
    assert_allclose(sample.chances, np.minimum(1.0, magnitude / sample.limit[0]), rtol=1e-6)
    assert sample.chances.sum() == pytest.approx(900, rel=0.01)


@pytest.mark.interpreted
@pytest.mark.parametrize("scale", [0.0, 1e-45, 1e-30, 1e30])
def test_derivatives_of_any_magnitude(scale):
    gradient = np.full(200, scale, dtype=np.float32)
    drawn, _, (after, _), sample = draw(
        200, gradient=gradient, hessian=gradient, subsample=0.5, **BY_GRADIENT
    )
    assert_allclose(sample.chances, 0.5, rtol=0.02)
    assert 60 < len(drawn) < 140
    assert np.isfinite(after).all()


# --- the tree ------------------------------------------------------------------------------------


@pytest.mark.interpreted
@pytest.mark.parametrize("max_bin", [5, 256])
@pytest.mark.parametrize("growth", [dict(max_depth=3), dict(max_depth=0, pruning="full")])
@pytest.mark.parametrize("settings", [{}, BY_GRADIENT], ids=["uniform", "gradient_based"])
def test_rows_left_out_go_where_their_values_lead(settings, growth, max_bin):
    X, gradient, hessian = make_data(3, 90, n_values=40)
    X[::11, 1] = np.inf
    matrix = binned(X, max_bin)
    settings = dict(subsample=0.3) | settings
    drawn, *_ = draw(90, gradient=gradient, hessian=hessian, **settings)
    grown = grow(matrix, gradient, hessian, params(**growth, **settings))
    assert 12 < len(drawn) < 45
    assert grown.workspace.tree.growth[0].n_rows == len(drawn)
    leaves = [follow(grown.nodes, row) for row in X]
    assert_array_equal(grown.raw_score, grown.nodes["value"][leaves])
    if len(settings) == 1:
        assert grown.nodes["cover"][0] == pytest.approx(hessian[drawn].sum(), rel=1e-5)
