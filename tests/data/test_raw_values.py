import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.data.raw_values import raw_matrix

pytestmark = pytest.mark.interpreted

ORDERS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
}


def elements(raw):
    """Read all elements as the kernels do."""
    return [
        [raw.values[row * raw.row_step + f * raw.feature_step] for f in range(raw.n_features)]
        for row in range(raw.n_samples)
    ]


@pytest.mark.parametrize(
    ("shape", "dtype"), [((3, 4), np.float32), ((1, 5), float), ((5, 1), float), ((1, 1), float)]
)
@pytest.mark.parametrize("order", ORDERS)
def test_elements_are_found_in_every_layout(order, shape, dtype):
    X = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    raw = raw_matrix(ORDERS[order](X))
    assert_array_equal(elements(raw), X)
    assert raw.values.dtype == dtype
    assert (raw.n_samples, raw.n_features) == shape


@pytest.mark.parametrize("order", ["C", "Fortran"])
def test_contiguous_memory_is_shared_and_only_read(order):
    X = ORDERS[order](np.zeros((3, 4)))
    raw = raw_matrix(X)
    assert np.shares_memory(raw.values, X)
    assert not raw.values.flags.writeable
    assert X.flags.writeable  # the user's array is left as it was
