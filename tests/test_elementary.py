import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special

from sklboost.engine.elementary import (
    digamma,
    exp,
    exp_of_negative,
    float_of,
    log_of_factorial,
    log_of_one_plus,
    low_bits,
    power_of_2,
    power_of_2_in,
    trigamma,
    zero_unless,
)

# --- the exponential -----------------------------------------------------------------------------


def exact_exp(x):
    with localcontext(prec=50):
        return Fraction(Decimal(x).exp())


@pytest.mark.interpreted
def test_exponential_has_a_relative_error_below_4e_16():
    random = np.random.default_rng(0)
    for scale in (1e-300, 1e-10, 1e-3, 0.3, 1.0, 30.0, 700.0):
        for x in -random.uniform(0, scale, 200):
            exact = exact_exp(float(x))
            assert abs(Fraction(float(exp_of_negative(x))) - exact) < Fraction(4e-16) * exact
    for k in range(1, 1000):  # where the whole part changes
        for factor in (1 - 1e-15, 1.0, 1 + 1e-15):
            x = -0.5 * k * math.log(2) * factor
            assert_allclose(exp_of_negative(x), math.exp(x), rtol=5e-16)


@pytest.mark.interpreted
def test_exponential_at_its_ends():
    assert exp_of_negative(0.0) == exp_of_negative(-0.0) == 1.0
    for x in (-700.0, -701.0, -1e300, -math.inf):
        assert_allclose(exp_of_negative(x), math.exp(-700.0), rtol=5e-16)
    assert exp_of_negative(-5e-324) == 1.0
    assert exp_of_negative(math.nan) == exp(math.nan) == exp(-700.0)


# --- the logarithm -------------------------------------------------------------------------------


def exact_log_of_one_plus(x):
    with localcontext(prec=400):  # 1 + 1e-300 has 300 digits
        return Fraction((1 + Decimal(x)).ln())


@pytest.mark.interpreted
def test_logarithm_has_a_relative_error_below_5e_16():
    random = np.random.default_rng(0)
    negative = -(random.uniform(0.0, 1.0, 200) ** 3)
    scales = (1e-16, 1e-8, 1e-3, 0.3, 1.0, 3.0, 1e3, 1e15)
    tiny = random.uniform(0, 1e-300, 5)
    for x in [*negative, *tiny, *(x for scale in scales for x in random.uniform(0, scale, 100))]:
        exact = exact_log_of_one_plus(float(x))
        assert abs(Fraction(float(log_of_one_plus(x))) - exact) < Fraction(5e-16) * abs(exact)
    for k in range(52):  # where the whole part changes
        for factor in (1 - 1e-15, 1.0, 1 + 1e-15):
            x = 2.0**k * math.sqrt(2.0) * factor - 1.0
            assert_allclose(log_of_one_plus(x), math.log1p(x), rtol=5e-16)


@pytest.mark.interpreted
def test_logarithm_at_its_ends():
    assert log_of_one_plus(0.0) == log_of_one_plus(-0.0) == 0.0
    assert log_of_one_plus(1e-307) == 1e-307
    assert log_of_one_plus(1.0) == math.log(2.0)
    assert_allclose(log_of_one_plus(-1.0 + 2.0**-53), math.log(2.0**-53), rtol=5e-16)


# --- the factorial -------------------------------------------------------------------------------


@pytest.mark.interpreted
def test_logarithm_of_factorials():
    for x in [*range(100), *np.geomspace(1e-9, 1e9, 200)]:
        value, exact = float(log_of_factorial(float(x))), math.lgamma(x + 1.0)
        assert abs(value - exact) < max(2e-14, 2e-15 * exact)
    for x in (1e20, 1e40, 1e100, 1e299):
        assert_allclose(log_of_factorial(x), x * (math.log(x) - 1.0), rtol=1e-14)


# --- powers of two -------------------------------------------------------------------------------


@pytest.mark.interpreted
def test_powers_of_two_are_those_of_the_c_library():
    for exponent in range(-1022, 1024):
        power = math.ldexp(1.0, exponent)
        assert power_of_2(np.int64(exponent)) == power
        for x in (power, math.nextafter(2.0 * power, 0.0), 1.3 * power):
            assert power_of_2_in(np.float64(x)) == math.ldexp(1.0, math.frexp(x)[1] - 1)


# --- derivatives of the logarithm of the gamma function ------------------------------------------


@pytest.mark.interpreted
def test_digamma_and_trigamma_agree_with_scipy():
    for x in np.geomspace(1e-8, 1e12, 401):
        expected = special.digamma(x)
        assert_allclose(digamma(x), expected, rtol=2e-15, atol=2e-15 * max(1.0, abs(expected)))
        assert_allclose(trigamma(x), special.polygamma(1, x), rtol=1e-14)
    # where digamma is 0, and the constants of Euler and of Basel
    assert abs(digamma(1.4616321449683623)) < 2e-15
    assert_allclose([digamma(1.0), trigamma(1.0)], [-np.euler_gamma, np.pi**2 / 6.0])


# --- whole numbers -------------------------------------------------------------------------------


@pytest.mark.interpreted
def test_whole_numbers_as_floats():
    for number in (0, 1, 2, 255, 2**31, 2**32 - 1, 2**51 + 1, 2**52 - 1):
        assert float_of(np.int64(number)) == float(number)


@pytest.mark.interpreted
def test_floats_as_whole_numbers():
    for number in (0, 1, -1, 77, -1022, 2**31 - 1, -(2**31), 2**32 - 1, 2**40 + 5, -(2**50) - 3):
        assert low_bits(np.float64(number)) & 0xFFFFFFFF == number & 0xFFFFFFFF
    assert low_bits(np.float64(-0.0)) & 0xFFFFFFFF == 0


@pytest.mark.interpreted
@pytest.mark.parametrize("number", [1.5, -2.0, 0.0, math.inf, math.nan, 5e-324])
def test_a_number_or_zero(number):
    kept = zero_unless(np.bool_(True), np.float64(number))
    assert np.float64(kept).tobytes() == np.float64(number).tobytes()
    assert np.float64(zero_unless(np.bool_(False), np.float64(number))).tobytes() == bytes(8)
