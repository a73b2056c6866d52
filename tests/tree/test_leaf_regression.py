"""One leaf at a time, by hand."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost.data.raw_values import raw_matrix
from sklboost.engine.parallel import ThreadTeam
from sklboost.engine.structs import TreeParams
from sklboost.tree.core.quantization import weigh
from sklboost.tree.options.linear_leaves import fit_linear_leaves, solve
from sklboost.tree.predict.prediction import linear_part
from tests.tree.growth import NO_WEIGHT, as_trees, make_nodes, params

pytestmark = pytest.mark.interpreted
inf, nan = np.inf, np.nan


# --- the system of equations ---------------------------------------------------------------------


def solved(matrix, target, penalty=0.0):
    slopes = np.full(len(target), nan)
    lower = np.where(np.tri(len(target)), matrix, nan)  # the rest is not looked at
    solve(lower, penalty, 1e-14, np.array(target, dtype=float), slopes)
    return slopes


@pytest.mark.parametrize("penalty", [0.0, 0.7])
def test_solution(penalty):
    random = np.random.default_rng(0)
    for size in range(1, 7):
        half = random.normal(size=(size + 3, size))
        matrix, target = half.T @ half, random.normal(size=size)
        expected = np.linalg.solve(matrix + penalty * np.eye(size), target)
        assert_allclose(solved(matrix, target, penalty), expected, rtol=1e-9)


def test_what_does_not_vary_gets_no_slope():
    # whatever the penalty is, and though the centre is a rounding error away
    X = np.column_stack([X4[:, 0], [0.3, 0.3, 0.3, 0.3]])
    X = np.vstack([X, [[nan, 77.7]]])
    linear, _ = fit(X, [*G4, 0.0], hessian=[0.1, 0.7, 0.1, 0.3, 0.1], linear_lambda=1.0)
    assert [feature for *_, feature in terms_of(linear)] == [0]


def test_what_others_determine_gets_no_slope():
    half = np.random.default_rng(0).normal(size=(9, 3))
    half = np.column_stack([half[:, :2], half[:, 0] - half[:, 1], half[:, 2], np.zeros(9)])
    matrix, target = half.T @ half, half.T @ np.arange(9.0)
    slopes = solved(matrix, target)
    assert slopes[2] == slopes[4] == 0.0
    assert_allclose(matrix @ slopes, target, rtol=1e-9, atol=1e-9)


# --- a leaf --------------------------------------------------------------------------------------

# only infinite values go right
NODES = (
    dict(feature=0, threshold=inf, left=1, right=2, default_left=1),
    dict(feature=1, threshold=inf, left=3, right=4, default_left=1),
    dict(value=7.0),
    dict(value=0.5, gradient=-2.0, cover=4.0),
    dict(value=-3.0),
)
LEAF = 3


def fit(X, gradient, hessian=None, weight=NO_WEIGHT, n_threads=1, **settings):
    """Return the lines and the raw scores of the rows, which had the leaves' values."""
    gradient = np.array([gradient], dtype=np.float32)
    hessian = np.ones_like(gradient) if hessian is None else np.array([hessian], dtype=np.float32)
    trees = as_trees([make_nodes(*NODES)], params(**settings))
    settings, raw_score = TreeParams(*trees.params[0].item()), np.zeros((1, len(X)))
    with ThreadTeam(n_threads) as team:
        arguments = (raw_matrix(np.asarray(X)), weigh(gradient, hessian, weight, n_threads))
        linear = fit_linear_leaves(team, trees, *arguments, settings, raw_score, len(X), None)
    return linear, raw_score[0]


def terms_of(linear, leaf=LEAF):
    return linear.terms[linear.starts[leaf] : linear.starts[leaf + 1]].tolist()


def parts(linear, X):
    """Return what the leaf adds to its value."""
    raw = raw_matrix(np.asarray(X, dtype=float))
    return [linear_part(linear, LEAF, raw, row) for row in range(len(X))]


X4 = np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0], [4.0, 5.0]])
G4 = [3.0, 1.0, -1.0, -3.0]  # falls by 2 for each step of x, so the line rises by 2


@pytest.mark.parametrize(("linear_lambda", "slope"), [(0.0, 2.0), (20 / 9, 1.0), (20 / 3, 0.5)])
def test_a_line(linear_lambda, slope):
    # the reach is 1.5, and the sum of squares (1.5^2 + 0.5^2 + 0.5^2 + 1.5^2) / 1.5^2 = 20/9
    linear, raw_score = fit(X4, G4, linear_lambda=linear_lambda)
    ((found, centre, feature),) = terms_of(linear)  # the other feature does not vary
    assert_allclose((found, centre, feature), (slope, 2.5, 0))
    assert_allclose(raw_score, slope * np.array([-1.5, -0.5, 0.5, 1.5]))
    assert_allclose(linear.limits[LEAF], [-1.5 * slope, 1.5 * slope])
    assert linear.shifts[LEAF] == 0.0
    assert terms_of(linear, 2) == terms_of(linear, 4) == terms_of(linear, 0) == []


def test_the_line_ends_where_the_rows_end():
    linear, _ = fit(X4, G4)
    rows = [[2.25, 5.0], [4.0, 5.0], [50.0, 5.0], [-1e300, 5.0], [2.5, 90.0]]
    assert_allclose(parts(linear, rows), [-0.5, 3.0, 3.0, -3.0, 0.0], atol=1e-12)


def test_learning_rate_hessians_and_weights():
    plain, _ = fit(X4, G4)
    slow, _ = fit(X4, G4, learning_rate=0.25)
    assert_allclose(terms_of(slow), np.array(terms_of(plain)) * [0.25, 1, 1])
    # twice the hessian is half the step; with twice the gradient, or as a weight, the same step
    steep, _ = fit(X4, G4, hessian=[2.0] * 4)
    assert_allclose(terms_of(steep)[0][0], 1.0)
    heavy, _ = fit(X4, G4, weight=np.full(4, 2.0))
    assert_allclose(terms_of(heavy), terms_of(plain))


def test_rows_without_hessian_are_not_counted():
    X, gradient = np.vstack([X4, [[90.0, 3.0]]]), [*G4, 1e6]
    linear, raw_score = fit(X, gradient, hessian=[1, 1, 1, 1, 0])
    assert terms_of(linear) == terms_of(fit(X4, G4)[0])
    assert_allclose(raw_score[4], 3.0)  # yet they get their value


def test_missing_and_infinite_values_get_the_constant():
    extra = np.array([[nan, 5.0], [-inf, 5.0], [5.0, nan]])
    # the second feature does not vary, so it has no term, and may be missing
    linear, raw_score = fit(np.vstack([X4, extra]), [*G4, 5.0, 5.0, -6.0])
    ((slope, centre, feature),) = terms_of(linear)
    assert feature == 0
    assert_allclose(centre, 3.0)
    assert_array_equal(raw_score[4:6], 0.0)
    assert_allclose(raw_score[6], linear.shifts[LEAF] + slope * (5.0 - centre))
    assert raw_score[6] == linear.limits[LEAF, 1] > 3.0
    assert_array_equal(parts(linear, [*extra, [inf, 5.0], [inf, inf]]), [*raw_score[4:], 0, 0])


def test_the_shift_is_the_constant_of_complete_rows():
    X = np.vstack([X4, [[nan, 5.0], [nan, 5.0]]])
    linear, raw_score = fit(X, [4.0, 2.0, 0.0, -2.0, -8.0, -8.0], learning_rate=0.5)
    # complete rows: G = 4, H = 4; the leaf, as the node has it: G = -2, H = 4
    assert_allclose(linear.shifts[LEAF], 0.5 * (-4.0 / 4.0 - 2.0 / 4.0))
    assert_allclose(raw_score[:4], linear.shifts[LEAF] + np.array([-1.5, -0.5, 0.5, 1.5]))
    assert_array_equal(raw_score[4:], 0.0)
    assert_allclose(linear.limits[LEAF], [-2.25, 0.75])


def test_max_delta_step_holds_for_values_and_lines_together():
    linear, raw_score = fit(X4, G4, learning_rate=0.5, max_delta_step=2.0)
    # learning rate times 2 at most; the value is 0.5 already
    assert_allclose(linear.limits[LEAF], [-1.5, 0.5])
    assert_allclose(raw_score, [-1.5, -0.5, 0.5, 0.5])


@pytest.mark.parametrize(
    "x",
    [
        [5.0] * 4,
        [nan] * 4,
        [nan, 3.0, nan, nan],
        [inf, 3.0, -inf, nan],
        [1.0, 1.7e308, -1.7e308, 0],
    ],
)
def test_a_feature_that_gives_no_line(x):
    X = np.column_stack([np.full(4, 5.0), x])
    linear, raw_score = fit(X, G4)
    assert len(linear.terms) == 0
    assert_array_equal(raw_score, 0.0)
    assert_array_equal(linear.shifts, 0.0)


def test_complete_rows_of_too_little_cover_give_no_line():
    X = np.vstack([X4[:2], [[nan, 5.0]] * 3])
    linear, _ = fit(X, [1.0, 2.0, 0.0, 0.0, 0.0], min_child_weight=2.0)
    assert len(terms_of(linear)) == 1
    linear, raw_score = fit(X, [1.0, 2.0, 0.0, 0.0, 0.0], min_child_weight=2.5)
    assert len(linear.terms) == 0
    assert_array_equal(raw_score, 0.0)


@pytest.mark.parametrize(("scale", "offset"), [(1e-12, 1e9), (1.0, -1e6), (1.0, 1e9), (1e12, 0.0)])
def test_units_do_not_matter(scale, offset):
    offset *= scale  # seconds since 1970 that differ by a minute, for instance
    X = np.random.default_rng(0).integers(0, 90, (12, 2)).astype(float)
    gradient = X[:, 0] * 0.1 - X[:, 1] * 0.3
    expected, _ = fit(X, gradient, linear_lambda=1.0)
    linear, _ = fit(X * scale + offset, gradient, linear_lambda=1.0)
    slopes = np.array(terms_of(linear))[:, 0] * scale
    assert_allclose(slopes, np.array(terms_of(expected))[:, 0], rtol=1e-6)
    assert_allclose(linear.limits, expected.limits, rtol=1e-6)


# --- whole numbers -------------------------------------------------------------------------------


def exact_line(X, gradient, hessian, centres, linear_lambda):
    """Return the weighted means and the slopes of a leaf, as fractions rounded once."""
    X, gradient, hessian = (np.vectorize(Fraction)(each) for each in (X, gradient, hessian))
    means = (hessian[:, np.newaxis] * X).sum(axis=0) / hessian.sum()
    distances = X - np.vectorize(Fraction)(centres)
    reach = np.abs(distances).max(axis=0)
    values = distances / reach
    system = values.T @ (hessian[:, np.newaxis] * values)
    system += np.diag([Fraction(linear_lambda)] * len(reach))
    system = np.column_stack([system, -values.T @ gradient])
    for pivot in range(len(system)):  # by Gauss and Jordan
        system[pivot] /= system[pivot, pivot]
        for row in set(range(len(system))) - {pivot}:
            system[row] -= system[row, pivot] * system[pivot]
    return means.astype(float), (system[:, -1] / reach).astype(float)


@pytest.mark.parametrize("scale", [1.0, 1e-25, 1e25])
def test_slopes_are_those_of_fractions(scale):
    random = np.random.default_rng(0)
    X = np.column_stack([random.exponential(size=400) ** 3, random.normal(1e4, 1.0, 400)])
    gradient = (X[:, 0] * 0.1 - X[:, 1] + 1e4 + random.normal(size=400)).astype(np.float32)
    hessian = random.exponential(size=400).astype(np.float32)
    weight = random.exponential(size=400).round(3) * scale
    linear, _ = fit(X, gradient, hessian, weight, linear_lambda=3.0 * scale)
    slopes, centres, features = zip(*terms_of(linear), strict=True)
    weighted = (values.astype(float) * weight for values in (gradient, hessian))
    means, exact = exact_line(X[:, features], *weighted, centres, 3.0 * scale)
    assert_allclose(centres, means, rtol=1e-13)
    assert_allclose(slopes, exact, rtol=1e-11)


def test_bits_depend_on_no_order_of_rows_and_no_threads():
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 2)) ** 3
    X[random.random(X.shape) < 0.1] = nan
    X[::7] = inf, 1.0
    gradient, weight = random.normal(size=3000), random.exponential(size=3000)
    linear, raw_score = fit(X, gradient, weight=weight, linear_lambda=0.1)
    assert len(terms_of(linear)) == 2
    for n_threads in range(1, 6):
        order = random.permutation(3000)
        other, scores = fit(
            X[order], gradient[order], None, weight[order], n_threads, linear_lambda=0.1
        )
        for one, another in zip(linear, other, strict=True):
            assert one.tobytes() == another.tobytes()
        assert_array_equal(scores, raw_score[order])
