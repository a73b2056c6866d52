import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklboost.inspection.shap.factors import N_PLACES, fill_row_tables, fill_table, quadrature

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("n_different", [0, 1, 2, 5, 6, 60])
def test_points_integrate_products_of_so_many_features(n_different):
    points = quadrature(n_different, 1)
    assert len(points) == max(1, (n_different + 1) // 2)
    for degree in range(max(1, n_different)):
        assert_allclose(points[:, 0] ** degree @ points[:, 1], 1.0 / (degree + 1), rtol=1e-12)
    assert points.min() > 0.0


def test_weights_are_divided_among_backgrounds():
    assert_allclose(quadrature(6, 4)[:, 1].sum(), 0.25)


def test_factors_and_differences_follow_from_shares():
    points, table = np.array([[0.25, 0.5]]), np.empty((1, N_PLACES))
    fill_table(0.8, 0.2, 0.25, points, table)
    before = {0: 0.75 * 0.8, 1: 0.25 + 0.75 * 0.8}  # by whether a row meets the condition
    here = {0: 0.75 * 0.2, 1: 0.25 + 0.75 * 0.2}
    factors = [here[0] / before[0], here[0] / before[1], here[1] / before[1]]
    c_before, c = (1 - 0.8) / before[1], {0: -0.2 / here[0], 1: (1 - 0.2) / here[1]}
    differences = [0.0, 0.5 * (c[0] - c_before), 0.5 * (c[1] - c_before)]
    assert_allclose(table[0], [*factors, *differences, c[0], c[1]], rtol=1e-14)


def test_a_background_row_lets_all_pass_or_nothing():
    points, tables = np.array([[0.25, 1.0]]), np.empty((3, 1, N_PLACES))
    fill_row_tables(points, tables)
    assert np.isfinite(tables).all()
    # the background row goes elsewhere: only a row that stays gets through, by its own feature
    assert_allclose(tables[1, 0, 1:3], [0.0, 0.25])
    assert_allclose(tables[1, 0, 5], 1.0 / 0.25)
    # the background row stays: a row that leaves gets through while its feature is not known
    assert_allclose(tables[2, 0, 1:3], [0.75, 1.0])
    assert_allclose(tables[2, 0, 4:6], [-1.0 / 0.75, 0.0])
