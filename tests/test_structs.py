"""Arrays that begin with a cache line."""

import numpy as np
import pytest

from sklboost.engine.structs import aligned_zeros


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int64])
@pytest.mark.parametrize("shape", [(0, 4), (1,), (3, 5), (2, 3, 100_000)])
def test_aligned_zeros(shape, dtype):
    values = aligned_zeros(shape, dtype)
    assert (values.shape, values.dtype) == (shape, dtype)
    assert values.ctypes.data % 64 == 0
    assert values.flags.c_contiguous
    assert values.flags.writeable
    assert not values.any()
