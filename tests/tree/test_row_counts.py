"""Counts of rows: where they lie, and which nodes and splits they leave."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.tree.core.quantization import allocate_gradients
from sklboost.tree.core.workspace import LEFT, OWN, allocate_workspace
from sklboost.tree.options.row_counts import fill_counts, has_rows_for_two, row_counts
from tests.tree.growth import binned, grow, params, run

pytestmark = pytest.mark.interpreted

ONE = 2**20
X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
GRADIENT = np.array([-9.0, 1.0, 1.0, 1.0, 1.0, 5.0], dtype=np.float32)
HESSIAN = np.array([0.1, 0.2, 0.1, 0.3, 0.1, 0.2], dtype=np.float32)


@pytest.mark.parametrize("n_outputs", [1, 2, 4, 5])
def test_counts_come_after_the_last_output(n_outputs):
    gradients = allocate_gradients(n_outputs, 3, n_outputs + 1)
    gradients.strips[:] = 0
    gradients.packed[:] = [5, 6, 0]  # the target of the last row is not known
    gradients.counts[:] = row_counts(np.array([1.0, 9.0, 1.0]), 4)
    run(fill_counts, gradients)
    n_lanes = 1 if n_outputs == 1 else 4
    of_rows = gradients.strips.reshape(-1, 3, n_lanes).transpose(0, 2, 1).reshape(-1, 3)
    assert_array_equal(of_rows[n_outputs], [ONE, 4 * ONE, 0])
    assert not of_rows[max(n_outputs + 1, 2) :].any()


def test_counts_of_weights():
    weight = np.array([1.0, 0.25, 1 / 3, 9.0])
    assert_array_equal(row_counts(weight, 4), [ONE, ONE / 4, ONE // 3 + 1, 4 * ONE])


def counted(least, n_outputs=1):
    """Grow a tree of one split whose children have so many rows; return it."""
    settings = params(max_depth=1, min_child_samples=least)
    gradient, hessian = GRADIENT, HESSIAN
    if n_outputs > 1:
        gradient, hessian = (np.tile(values, (n_outputs, 1)) for values in (gradient, hessian))
    matrix = binned(X)
    workspace = allocate_workspace(matrix, settings, n_outputs, 1)
    workspace.gradients.counts[:] = row_counts(np.ones(6), least)
    return grow(matrix, gradient, hessian, settings, workspace=workspace), settings


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize(("least", "threshold"), [(1, 0.5), (2, 1.5), (3, 2.5)])
def test_the_best_split_that_leaves_rows_enough(least, threshold, n_outputs):
    grown, _ = counted(least, n_outputs)
    assert grown.nodes[0]["threshold"] == threshold
    sums = grown.workspace.tree.sums
    assert_array_equal(sums[:3, OWN, n_outputs], np.array([6, least, 6 - least]) * ONE)
    assert sums[0, LEFT, n_outputs] == least * ONE


def test_nodes_that_have_rows_for_two_children():
    grown, settings = counted(3)
    tree = grown.workspace.tree
    assert has_rows_for_two(0, settings, tree)
    assert not has_rows_for_two(1, settings, tree)
    grown, _ = counted(4)
    assert len(grown.nodes) == 1
