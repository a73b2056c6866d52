"""The formulas of SHAP values: what an edge multiplies products by, and sums on the way back.

A leaf of value v, whose feature j has a condition that the explained row meets (x_j = 1) or not (0)
and that a row without this feature meets with probability z_j, is a game: v times the product of
x_j over the features that are known and of z_j over those that are not. Its Shapley values are

    phi_i = v (x_i - z_i) integral of prod_{j != i} m_j(t) dt from 0 to 1
    m_j(t) = t x_j + (1 - t) z_j

since of all orders of features it is those that have j before i with probability t, if i comes at
the time t (Owen 1972). Likewise, half of the interaction of i and k for each of them:

    phi_ik = v/2 (x_i - z_i) (x_k - z_k) integral of prod_{j != i, k} m_j(t) dt from 0 to 1

These are polynomials in t of a degree below the number of features d, and ceil(d / 2) points of
Gauss and Legendre integrate them exactly. At a point, let c_i be (x_i - z_i) / m_i, and p the
product of all m_j: phi_i is the sum of v p c_i over leaves and points, times the points' weights.

On the way down an edge multiplies p by m / m', m' being that of its feature before. Below the edge
c changes from c' to c, so it adds ``(c - c') sum of v p`` over the leaves below. Both follow from
the shares z and z' of edge and previous edge::

    state     x' x   m / m'                               c - c'
    GONE      0  0   z / z'                               0
    LEAVES    1  0   (1 - t) z / (t + (1 - t) z')         -1 / ((1 - t) (t + (1 - t) z'))
    STAYS     1  1   (t + (1 - t) z) / (t + (1 - t) z')   (z' - z) / (m m')

No factor is above 1 and nothing cancels, so deep trees lose no digits.

Sources: Lundberg et al. (2020), "From local explanations to global understanding with explainable
AI for trees"; Yu et al. (2022), "Linear TreeShap", for products that are kept up to date along a
walk; Wettenstein, Mitchell & Yu (2026), "Quadrature-TreeSHAP", for the integral.
"""

import numpy as np

from sklboost.engine.compiling import kernel

# Places in a table: factors by state, differences by state, then c itself.
FIRST_DIFFERENCE, NOT_MET, MET = 3, 6, 7
N_PLACES = 8
# With single background rows z and z' are 0 or 1, by the state of the row.
N_ROW_TABLES = 3


def quadrature(n_different: int, n_backgrounds: int) -> np.ndarray:
    """Return points and weights that integrate products over `n_different` features exactly.

    float64, shape (n_points, 2): points in (0, 1), and weights that add up to
    ``1 / n_backgrounds``, since integrals are averaged over background rows.
    """
    points, weights = np.polynomial.legendre.leggauss(max(1, -(-n_different // 2)))
    return np.stack([(points + 1.0) / 2.0, weights / (2.0 * n_backgrounds)], axis=1)


@kernel
def fill_table(before, share, fraction, points, table):
    """Fill the factors of one edge, shape (n_points, N_PLACES).

    `before` and `share` are z of the previous edge with its feature, 1 if there is none, and of the
    edge itself; `fraction` is ``share / before``.
    """
    for index in range(len(points)):
        t, weight = points[index, 0], points[index, 1]
        product_before, product = t + (1.0 - t) * before, t + (1.0 - t) * share
        table[index, 0] = fraction
        table[index, 1] = (1.0 - t) * share / product_before
        table[index, 2] = product / product_before
        table[index, 3] = 0.0
        table[index, 4] = -weight / ((1.0 - t) * product_before)
        table[index, 5] = weight * (before - share) / (product * product_before)
        table[index, 6] = -1.0 / (1.0 - t)
        table[index, 7] = (1.0 - share) / product


@kernel
def fill_tables(edges, tree, points, tables):
    """Fill the factors of all edges of a tree, with unknown features spreading rows by cover."""
    nodes = edges.edges[edges.starts[tree] : edges.starts[tree + 1]]
    for node in range(1, len(nodes)):
        edge = nodes[node]
        before = nodes[edge.previous].share
        fill_table(before, edge.share, edge.fraction, points, tables[node])


@kernel
def fill_row_tables(points, tables):
    """Fill the factors of any edge, a table for each state of a single background row."""
    fill_table(0.0, 0.0, 1.0, points, tables[0])  # any fraction: these products are 0
    fill_table(1.0, 0.0, 0.0, points, tables[1])
    fill_table(1.0, 1.0, 1.0, points, tables[2])
