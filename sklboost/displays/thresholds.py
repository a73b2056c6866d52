"""Thresholds as the user knows the feature: times as times, large integers as themselves.

In: thresholds as the nodes of a model have them. Out: values of the feature.
"""

import numpy as np

from sklboost.data.encoding import Encoding


def as_values(thresholds: np.ndarray, encoding: Encoding) -> np.ndarray:
    """Give the values that stand for thresholds: ``x < value`` says the same of the rows seen.

    Parameters
    ----------
    thresholds : ndarray of float64, shape (n_thresholds,)
        Finite.
    encoding : Encoding
        Of a feature that is no category.

    Returns
    -------
    ndarray of float64, int64, uint64, datetime64 or timedelta64, shape (n_thresholds,)
    """
    if encoding.is_plain:
        return thresholds
    # all values are integers: none lies between a threshold and the next integer
    numbers = np.ceil(thresholds)
    if len(encoding.ranks) > 0:
        last = len(encoding.ranks) - 1
        values = encoding.ranks[np.clip(numbers, 0, last).astype(np.int64)]
    else:
        values = numbers.astype(np.int64)
    return values.astype(encoding.unit) if encoding.kind == "time" else values
