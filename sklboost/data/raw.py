"""Raw feature values, whatever their layout in memory, as one kind of argument for kernels.

In: a 2-D float32 or float64 array. Out: :class:`RawMatrix`, its memory as a read-only 1-D array
and two strides, so that C order, Fortran order, writable arrays and read-only memory maps all
compile to one version of a kernel, and nothing is copied.
"""

from typing import NamedTuple

import numpy as np


class RawMatrix(NamedTuple):
    """Element (row, feature) is ``values[row * row_step + feature * feature_step]``.

    Attributes
    ----------
    values : ndarray of float32 or float64, read-only, shape (n_samples * n_features,)
    n_samples, n_features, row_step, feature_step : int
    """

    values: np.ndarray
    n_samples: int
    n_features: int
    row_step: int
    feature_step: int


def raw_matrix(X: np.ndarray) -> RawMatrix:
    """Describe `X` (2-D, float32 or float64); copied only if contiguous in neither order."""
    n_samples, n_features = X.shape
    if X.flags.f_contiguous and not X.flags.c_contiguous:
        values, row_step, feature_step = X.T.reshape(-1), 1, n_samples
    else:
        values, row_step, feature_step = np.ascontiguousarray(X).reshape(-1), n_features, 1
    return RawMatrix(read_only(values), n_samples, n_features, row_step, feature_step)


def array_of(raw: RawMatrix) -> np.ndarray:
    """Give raw values as the 2-D array that they are, without a copy."""
    if raw.feature_step == 1:
        return raw.values.reshape(raw.n_samples, raw.n_features)
    return raw.values.reshape(raw.n_features, raw.n_samples).T


def read_only(array: np.ndarray) -> np.ndarray:
    """Give a plain, read-only view. What kernels only read has this one type, memory map or not."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
