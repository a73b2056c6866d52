"""e^x for x <= 0, in plain arithmetic.

The compiler turns a polynomial into vector instructions but not a call of the C library: less than
half the time a row. And C libraries differ in the last bit where this does not.
"""

import math

import numpy as np

from sklboost.compiling import kernel

_INVERSE_LOG_2 = 1.4426950408889634
# log 2 in two parts; the first has 20 trailing zero bits, so its product with k is exact
_LOG_2_HIGH = 0.693145751953125
_LOG_2_LOW = 1.4286068203094173e-06
# e^-700 is 1e-304; below, the power of two would leave the range of normal numbers
_SMALLEST = -700.0


@kernel
def exp_of_negative(x):
    """Give e^x for x <= 0 with a relative error below 4e-16; e^-700 for smaller x.

    ``e^x = 2^k e^r`` with whole k and ``|r| <= log(2) / 2``; e^r is its Taylor series up to
    r^12 / 12!.
    """
    x = max(x, _SMALLEST)
    k = math.floor(x * _INVERSE_LOG_2 + 0.5)
    r = (x - k * _LOG_2_HIGH) - k * _LOG_2_LOW
    series = 1.0 / 479001600.0
    series = series * r + 1.0 / 39916800.0
    series = series * r + 1.0 / 3628800.0
    series = series * r + 1.0 / 362880.0
    series = series * r + 1.0 / 40320.0
    series = series * r + 1.0 / 5040.0
    series = series * r + 1.0 / 720.0
    series = series * r + 1.0 / 120.0
    series = series * r + 1.0 / 24.0
    series = series * r + 1.0 / 6.0
    series = series * r + 0.5
    series = series * r + 1.0
    series = series * r + 1.0
    # the bits of a float64 whose exponent is k and whose mantissa is 1
    bits = np.int64((np.int64(k) + np.int64(1023)) << np.int64(52))
    return series * bits.view(np.float64)
