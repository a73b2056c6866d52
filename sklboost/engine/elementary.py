"""Elementary functions in plain arithmetic, and pseudo-random bits as hashes."""

import numpy as np

from sklboost.engine.compiling import inlined

_INVERSE_LOG_2 = 1.4426950408889634
# log 2 in two parts; the first has 20 trailing zero bits, so its product with k is exact
_LOG_2_HIGH = 0.693145751953125
_LOG_2_LOW = 1.4286068203094173e-06
_SQUARE_ROOT_OF_2 = 1.4142135623730951
HALF_LOG_2_PI = 0.9189385332046727
# A whole number n below 2^52, added to 2^52, stands in the mantissa of the sum, whose bits are
# then those of 2^52 plus n. From -2^51 to 2^51 the same holds for 1.5 * 2^52, where the lowest bits
# are those of n in two's complement.
_TWO_52, _SIGNED_TWO_52 = 4503599627370496.0, 6755399441055744.0
_BITS_OF_TWO_52 = np.int64(0x4330000000000000)
# e^-700 is 1e-304; beyond, the power of two would leave the range of normal numbers
_SMALLEST, _LARGEST = -700.0, 700.0
# All that :func:`mix_bits` and :func:`hash_key` return is below.
TWO_32 = 2.0**32


@inlined
def exp_of_negative(x):
    """Return e^x for x <= 0 with a relative error below 4e-16; e^-700 for smaller x.

    One comparison less than :func:`exp`. Of NaN, as for a target that is not known, e^-700.
    """
    return _exp_within(max(_SMALLEST, x))  # in this order, which decides about NaN


@inlined
def exp(x):
    """Return e^x with a relative error below 4e-16; x is clipped to [-700, 700], NaN to -700."""
    return _exp_within(min(max(_SMALLEST, x), _LARGEST))


@inlined
def _exp_within(x):
    """Return e^x for x from -700 to 700.

    ``e^x = 2^k e^r`` with whole k and ``|r| <= log(2) / 2``; e^r is its Taylor series up to
    r^12 / 12!, its even and its odd powers apart: so the processor has two sums to add to at once.
    """
    k = np.floor(x * _INVERSE_LOG_2 + 0.5)
    r = (x - k * _LOG_2_HIGH) - k * _LOG_2_LOW
    square = r * r
    even, odd = 1.0 / 479001600.0, 1.0 / 39916800.0
    even, odd = even * square + 1.0 / 3628800.0, odd * square + 1.0 / 362880.0
    even, odd = even * square + 1.0 / 40320.0, odd * square + 1.0 / 5040.0
    even, odd = even * square + 1.0 / 720.0, odd * square + 1.0 / 120.0
    even, odd = even * square + 1.0 / 24.0, odd * square + 1.0 / 6.0
    even = even * square + 0.5
    # the large terms last, so that little of the small ones is lost
    series = 1.0 + (r + square * (even + r * odd))
    return series * power_of_2(low_bits(k))


@inlined
def log(x):
    """Return log(x) for x from 2^-1022 to 2^1022 with a relative error below 5e-16."""
    bits = np.float64(x * _SQUARE_ROOT_OF_2).view(np.int64)
    k = (bits >> np.int64(52)) - np.int64(1023)
    return _log_of_parts(x * power_of_2(-k) - 1.0, k)


@inlined
def log_of_one_plus(x):
    """Return log(1 + x) for -1 < x < 2^1022 with a relative error below 5e-16.

    ``1 + x = 2^k (1 + f)``. For small x, k is 0 and f is x itself: no digit of it is lost.
    """
    bits = np.float64((1.0 + x) * _SQUARE_ROOT_OF_2).view(np.int64)
    k = (bits >> np.int64(52)) - np.int64(1023)
    return _log_of_parts((x - (power_of_2(k) - 1.0)) * power_of_2(-k), k)


@inlined
def log_of_factorial(x):
    """Return log x!, the logarithm of the gamma function at x + 1, for x from 0 to 1e299.

    Stirling's series at x + 8, less the logarithm of (x + 1) (x + 2) ... (x + 7). The error is
    below 2e-14 for x < 10 and relatively below 2e-15 above.
    """
    near = min(x, 1e30)  # above, the rest swallows the product, and would overflow
    product = (near + 1.0) * (near + 2.0) * (near + 3.0) * (near + 4.0)
    product *= (near + 5.0) * (near + 6.0) * (near + 7.0)
    z = x + 8.0
    inverse = 1.0 / z
    square = inverse * inverse
    series = 1.0 / 156.0
    series = series * square - 691.0 / 360360.0
    series = series * square + 1.0 / 1188.0
    series = series * square - 1.0 / 1680.0
    series = series * square + 1.0 / 1260.0
    series = series * square - 1.0 / 360.0
    series = series * square + 1.0 / 12.0
    return (z - 0.5) * log(z) - z + HALF_LOG_2_PI + series * inverse - log(product)


@inlined
def digamma(x):
    """Return the first derivative of log gamma(x) for x from 1e-100 to 1e100.

    The asymptotic series at x + 8, less 1 / x + 1 / (x + 1) + ... + 1 / (x + 7) (Abramowitz &
    Stegun 1964, 6.3.6 and 6.3.18). The error is below 2e-15 of the largest of these terms.
    """
    z = x + 8.0
    inverse = 1.0 / z
    square = inverse * inverse
    series = 1.0 / 12.0
    series = series * square - 691.0 / 32760.0
    series = series * square + 1.0 / 132.0
    series = series * square - 1.0 / 240.0
    series = series * square + 1.0 / 252.0
    series = series * square - 1.0 / 120.0
    series = series * square + 1.0 / 12.0
    below = 1.0 / (x + 7.0) + 1.0 / (x + 6.0) + 1.0 / (x + 5.0) + 1.0 / (x + 4.0)
    below += 1.0 / (x + 3.0) + 1.0 / (x + 2.0) + 1.0 / (x + 1.0) + 1.0 / x
    return log(z) - 0.5 * inverse - series * square - below


@inlined
def trigamma(x):
    """Return the second derivative of log gamma(x) for x from 1e-100 to 1e100.

    The asymptotic series at x + 8, and 1 / x^2 + 1 / (x + 1)^2 + ... + 1 / (x + 7)^2 (Abramowitz &
    Stegun 1964, 6.4.6 and 6.4.12). The relative error is below 1e-14.
    """
    inverse = 1.0 / (x + 8.0)
    square = inverse * inverse
    series = 7.0 / 6.0
    series = series * square - 691.0 / 2730.0
    series = series * square + 5.0 / 66.0
    series = series * square - 1.0 / 30.0
    series = series * square + 1.0 / 42.0
    series = series * square - 1.0 / 30.0
    series = series * square + 1.0 / 6.0
    a, b, c, d = 1.0 / (x + 7.0), 1.0 / (x + 6.0), 1.0 / (x + 5.0), 1.0 / (x + 4.0)
    below = a * a + b * b + c * c + d * d
    a, b, c, d = 1.0 / (x + 3.0), 1.0 / (x + 2.0), 1.0 / (x + 1.0), 1.0 / x
    below += a * a + b * b + c * c + d * d
    return inverse + 0.5 * square + series * square * inverse + below


@inlined
def _log_of_parts(f, k):
    """Return log(2^k (1 + f)) for whole k and 1 + f between the square roots of 1/2 and 2.

    ``log(1 + f) = 2 artanh s`` with ``s = f / (2 + f)``, so that s^2 < 0.03; artanh s is its Taylor
    series up to s^19 / 19.
    """
    s = f / (2.0 + f)
    t = s * s
    series = 1.0 / 19.0
    series = series * t + 1.0 / 17.0
    series = series * t + 1.0 / 15.0
    series = series * t + 1.0 / 13.0
    series = series * t + 1.0 / 11.0
    series = series * t + 1.0 / 9.0
    series = series * t + 1.0 / 7.0
    series = series * t + 1.0 / 5.0
    series = series * t + 1.0 / 3.0
    # s + s t (1/3 + ...): the large part is not rounded a second time
    rest = s * t * series
    return k * _LOG_2_HIGH + (2.0 * s + (2.0 * rest + k * _LOG_2_LOW))


@inlined
def float_of(number):
    """Return a whole number (int64) from 0 to 2^52 - 1 as float64."""
    return np.int64(number | _BITS_OF_TWO_52).view(np.float64) - _TWO_52


@inlined
def zero_unless(condition, x):
    """Return x, a float64, or 0 where the condition (bool) does not hold.

    By its bits. With a branch the compiler loads only what is used then, which for vectors takes
    longer than loading all.
    """
    bits = np.int64(np.float64(x).view(np.int64) & -np.int64(condition))
    return bits.view(np.float64)


@inlined
def low_bits(x):
    """Return an int64 with the lowest 32 bits of x, a whole float64 within 2^51 of 0."""
    return np.float64(x + _SIGNED_TWO_52).view(np.int64)


@inlined
def power_of_2(k):
    """Return 2^k, a float64, for whole k (int64) from -1022 to 1023, or :func:`low_bits` of k."""
    # the bits of a float64 whose exponent is k and whose mantissa is 1
    bits = np.int64((k + np.int64(1023)) << np.int64(52))
    return bits.view(np.float64)


@inlined
def power_of_2_in(x):
    """Return the largest power of 2 that is not above x, for x from 2^-1022 on."""
    # x without its mantissa
    bits = np.int64((np.float64(x).view(np.int64) >> np.int64(52)) << np.int64(52))
    return bits.view(np.float64)


@inlined
def mix_bits(number):
    """Return 32 pseudo-random bits for a 32-bit number, a uint64 below 2^32.

    Two rounds of xor-shift and multiply. Products stay below 2^64, so nothing wraps, compiled or
    interpreted.
    """
    low = np.uint64(0xFFFFFFFF)
    number ^= number >> np.uint64(16)
    number = (number * np.uint64(0x7FEB352D)) & low
    number ^= number >> np.uint64(15)
    number = (number * np.uint64(0x846CA68B)) & low
    return number ^ (number >> np.uint64(16))


@inlined
def hash_key(seed, round_, output):
    """Return a 32-bit key of three whole numbers; each of them, and their order, matters."""
    key = np.uint64(0)
    for number in (seed, round_, output):
        key = mix_bits(key ^ np.uint64(number & 0xFFFFFFFF)) ^ np.uint64(0x9E3779B9)
    return key
