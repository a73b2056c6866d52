import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.engine.elementary import hash_key
from sklboost.tree.core.machines import one_machine
from sklboost.tree.core.quantization import (
    AT_RANDOM,
    TO_NEAREST,
    allocate_gradients,
    gradient_of,
    hessian_of,
    pack,
    round_by_bits,
    unpack,
    weigh,
)
from sklboost.tree.options.scanning import fill_counts, row_counts
from tests.tree.growth import NO_WEIGHT, quantize_together, run

NEAREST_UP_TO = 4096  # rows, or rows times weights


def quantized(gradient, hessian=None, weight=NO_WEIGHT, *, key=0, n_threads=1, room=None):
    gradient = np.asarray(gradient, dtype=np.float32)
    hessian = np.ones_like(gradient) if hessian is None else np.asarray(hessian, dtype=np.float32)
    derivatives = weigh(
        *np.atleast_2d(gradient, hessian), np.asarray(weight, dtype=float), n_threads
    )
    if room is not None:
        derivatives = derivatives._replace(rounding_room=room)
    gradients = allocate_gradients(1, len(gradient), 1)
    key, machines = np.uint64(hash_key(key, 0, 0)), one_machine(len(gradient), 1)
    run(quantize_together, derivatives, key, gradients, machines, n_threads=n_threads)
    return gradients._replace(packed=gradients.packed[0], scales=gradients.scales[0])


def integers(packed):
    """Return the whole-number gradients and hessians of packed values."""
    return packed >> 32, packed & 0xFFFFFFFF


# --- bits ----------------------------------------------------------------------------------------

CASES = [(0, 0), (-1, 0), (1, 0), (-1, 2**32 - 1), (2**31 - 1, 2**32 - 1), (-(2**31), 5)]


@pytest.mark.interpreted
@pytest.mark.parametrize(("gradient", "hessian"), CASES)
def test_pack_and_unpack(gradient, hessian):
    packed = pack(float(gradient), float(hessian))
    assert gradient_of(packed) == gradient
    assert hessian_of(packed) == hessian
    assert unpack(packed, (0.5, 0.25)) == (gradient * 0.5, hessian * 0.25)


@pytest.mark.interpreted
def test_sums_and_differences_of_packed_values_are_packed_sums():
    pairs = [(-5, 7), (3, 1), (-2_000_000_000, 4_000_000_000), (1_999_999_999, 100)]
    for chosen in range(1, 16):
        some = [pair for index, pair in enumerate(pairs) if chosen >> index & 1]
        total = np.int64(0)
        for gradient, hessian in some:
            total += pack(float(gradient), float(hessian))
        assert gradient_of(total) == sum(gradient for gradient, _ in some)
        assert hessian_of(total) == sum(hessian for _, hessian in some)
        rest = total - pack(*map(float, some[0]))
        assert gradient_of(rest) == sum(gradient for gradient, _ in some[1:])
        assert hessian_of(rest) == sum(hessian for _, hessian in some[1:])


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("value", "uniform", "expected"),
    [(2.5, 0.5, 3), (-2.5, 0.5, -3), (2.4, 0.5, 2), (2.4, 0.61, 3), (-2.4, 0.59, -2), (0, 0.9, 0)],
)
def test_rounding_by_bits(value, uniform, expected):
    bits = np.uint64(uniform * 2**16)
    assert round_by_bits(value, bits, AT_RANDOM) == expected
    if uniform == 0.5:
        assert round_by_bits(value, bits, TO_NEAREST) == expected


# --- scales --------------------------------------------------------------------------------------


@pytest.mark.interpreted
@pytest.mark.parametrize("weight", [NO_WEIGHT, np.full(5000, 0.3)], ids=["all 1", "weights"])
def test_only_a_row_without_derivatives_counts_for_nothing(weight):
    gradient, hessian = np.zeros(5000), np.full(5000, 1e-16)
    hessian[1::2], gradient[1] = 0.0, 1e-30  # hessians of 0: targets that are not known, but one
    gradient[0] = hessian[0] = 1e6  # all others are far below a step
    packed = quantized(gradient, hessian, weight).packed
    assert (packed[2::2] == 1).all()
    assert packed[1] == 1
    assert (packed[3::2] == 0).all()


@pytest.mark.interpreted
def test_worked_scales_of_three_rows():
    gradients = quantized([-10.5, 6.5, 7.5])
    # 24.5 * 2^26 is below 2^31 - 4, and 24.5 * 2^27 is not; 3 * 2^30 is below 2^32 - 4
    assert list(gradients.scales) == [2.0**-26, 2.0**-30]
    gradient, hessian = integers(gradients.packed)
    assert list(gradient) == [-10.5 * 2**26, 6.5 * 2**26, 7.5 * 2**26]
    assert list(hessian) == [2**30] * 3
    assert unpack(gradients.packed.sum(), tuple(gradients.scales)) == (3.5, 3.0)


def examples():
    """Yield (name, gradient, hessian, weight) that strain the scales."""
    random = np.random.default_rng(0)
    for n in (1, 100, 4096, 4097):
        normal, no = random.normal(size=n), NO_WEIGHT
        wide = 10.0 ** random.uniform(-9, 9, n)
        one_heavy = np.where(np.arange(n) == 0, 1e9, 1.0)
        yield f"normal, {n}", normal, np.ones(n), no
        yield f"one sign, {n}", np.abs(normal), np.abs(normal), no
        yield f"heavy tails, {n}", np.tan(1.5707 * random.uniform(-1, 1, n)), wide, no
        yield f"one row dominates, {n}", normal * one_heavy, one_heavy, no
        yield f"tiny, {n}", normal * 1e-30, np.full(n, 1e-16), no
        yield f"huge, {n}", np.abs(normal) * 1e34, np.full(n, 1e34), no
        yield f"all equal, {n}", np.full(n, 0.7), np.full(n, 0.3), no
        yield f"no gradient, {n}", np.zeros(n), np.ones(n), no
        yield f"wide weights, {n}", normal, np.ones(n), wide
        yield f"wide weights, one sign, {n}", np.abs(normal), np.ones(n), wide
        yield f"one heavy row, {n}", normal, np.ones(n), one_heavy
        yield f"heavy rows, {n}", np.abs(normal), np.ones(n), np.full(n, 1e9)
        yield f"light rows, {n}", np.abs(normal), np.ones(n), np.full(n, 1e-9)
        yield f"weights of one half, {n}", np.abs(normal), np.ones(n), np.full(n, 0.5)
        yield f"many heavy rows, {n}", np.abs(normal), np.ones(n), random.uniform(0, 1e6, n) + 1


@pytest.mark.parametrize(
    ("gradient", "hessian", "weight"), [pytest.param(*rest, id=name) for name, *rest in examples()]
)
def test_no_sum_over_any_rows_leaves_its_bits_and_hardly_a_bit_is_wasted(gradient, hessian, weight):
    for key in range(2):
        gradients = quantized(gradient, hessian, weight, key=key)
        g, h = integers(gradients.packed)
        assert g[g > 0].sum() < 2**31
        assert g[g < 0].sum() >= -(2**31)
        assert h.min() >= 1  # so a bin without content is a bin without rows
        assert h.sum() < 2**32
        assert_array_equal(np.frexp(gradients.scales)[0], 0.5)  # powers of two
        exact_weight = weight if len(weight) > 0 else np.ones(len(gradient))
        for index, (values, limit) in enumerate([(gradient, 2**31), (hessian, 2**32)]):
            total = float((np.abs(values.astype(np.float32)).astype(float) * exact_weight).sum())
            if total > 0.0:
                assert total / gradients.scales[index] > 0.49 * limit * (1 - 1e-4)


def test_rows_that_are_all_rounded_up():
    # each row is rounded up by one half: without room for that the sum would be 2^31
    gradients = quantized(np.full(4096, 2.0**19 - 0.5), np.full(4096, 2.0**20 - 0.5))
    g, h = integers(gradients.packed)
    assert g.sum() < 2**31
    assert h.sum() < 2**32
    assert gradient_of(gradients.packed.sum()) == g.sum()


@pytest.mark.parametrize("n_rows", [10**6, 10**8, 10**9, 2 * 10**9])
def test_room_for_the_rounding_of_more_rows_than_fit_here(n_rows):
    random = np.random.default_rng(0)
    gradient, hessian = np.abs(random.normal(size=500)), random.uniform(size=500)
    gradients = quantized(gradient, hessian, room=float(n_rows))
    g, h = integers(gradients.packed)
    assert g.sum() + n_rows < 2**31 + 500  # these 500 rows themselves are rounded
    assert h.sum() + n_rows < 2**32 + 500


# --- weights -------------------------------------------------------------------------------------


def test_the_room_for_what_rounding_can_add():
    ones = np.ones((1, 4), dtype=np.float32)
    plain = weigh(ones, ones, NO_WEIGHT, 1)
    assert (plain.weight_scale, plain.rounding_room, len(plain.weight)) == (1.0, 4.0, 0)
    whole = weigh(ones, ones, np.array([1.0, 2.0, 3.0, 1.0]), 1)
    assert (whole.weight_scale, whole.rounding_room) == (1.0, 7.0)
    broken = weigh(ones, ones, np.array([1.0, 2.5, 0.25, 1.0]), 1)
    assert (broken.weight_scale, broken.rounding_room) == (
        1.0,
        4.75 + 2,
    )  # two rows are rounded twice
    heavy = weigh(ones, ones, np.full(4, 4096.0), 1)  # four times as many as 4096 rows
    assert (heavy.weight_scale, heavy.rounding_room) == (4.0, 4096.0)
    assert_array_equal(heavy.weight, 1024.0)


@pytest.mark.interpreted
@pytest.mark.parametrize("n_copies", [10, 500, 4096])
def test_weight_two_is_the_row_twice_exactly(n_copies):
    random = np.random.default_rng(n_copies)
    copied = np.sort(random.integers(0, max(2, n_copies // 2), n_copies))
    rows, weight = np.unique(copied, return_counts=True)
    gradient = random.standard_cauchy(len(rows))
    hessian = random.uniform(0, 1, len(rows))
    weighted = quantized(gradient, hessian, weight)
    each = np.repeat(np.arange(len(rows)), weight)
    copies = quantized(gradient[each], hessian[each])
    assert_array_equal(weighted.scales, copies.scales)
    packed_sums = np.add.reduceat(copies.packed, np.cumsum(weight) - weight)
    assert_array_equal(weighted.packed, packed_sums)


# --- rounding ------------------------------------------------------------------------------------


def scattered(n_rows=5000):
    """Return gradients and hessians of a few units, so that rounding matters, and one large row.

    The hessians are more than a step, below which they are rounded up.
    """
    random = np.random.default_rng(0)
    gradient, hessian = random.uniform(-2, 2, n_rows), random.uniform(1.0, 3.0, n_rows)
    gradient[0] = hessian[0] = 1e9
    return gradient, hessian


@pytest.mark.parametrize("kind", ["plain", "weights", "light", "heavy"])
def test_random_rounding_is_unbiased(kind):
    gradient, hessian = scattered()
    random = np.random.default_rng(1)
    weight = {
        "plain": NO_WEIGHT,
        "weights": random.uniform(1.1, 2.5, len(gradient)),
        "light": np.full(len(gradient), 0.99),
        "heavy": np.full(len(gradient), 37.0),
    }[kind]
    n_keys, exact_weight = 200, weight if len(weight) > 0 else np.ones(len(gradient))
    packed = [quantized(gradient, hessian, weight, key=key) for key in range(n_keys)]
    scales = packed[0].scales
    sums = np.array([integers(gradients.packed) for gradients in packed]) * scales[:, np.newaxis]
    exact = np.array([gradient.astype(np.float32), hessian.astype(np.float32)]) * exact_weight
    error = (sums.mean(axis=0) - exact)[:, 1:]
    spread = sums.std(axis=0)[:, 1:].max()
    assert spread > 0.2 * scales.min()  # it is random
    assert np.abs(error).max() < 6 * spread / np.sqrt(n_keys)
    assert np.abs(error.mean(axis=1)).max() < 5 * spread / np.sqrt(error.size / 2 * n_keys)


def test_rounding_to_nearest_up_to_4096_rows_and_at_random_beyond():
    gradient, hessian = scattered(NEAREST_UP_TO + 1)
    few = [quantized(gradient[:-1], hessian[:-1], key=key) for key in range(2)]
    assert_array_equal(few[0].packed, few[1].packed)
    scales = few[0].scales
    for exact, rounded, step in zip(
        (gradient, hessian), integers(few[0].packed), scales, strict=True
    ):
        nearest = exact[:-1].astype(np.float32) / step
        assert_array_equal(rounded, np.copysign(np.floor(np.abs(nearest) + 0.5), nearest))
    many = [quantized(gradient, hessian, key=key) for key in range(2)]
    assert (many[0].packed != many[1].packed).mean() > 0.3


def test_gradient_and_hessian_are_rounded_independently():
    gradient, hessian = scattered(50_000)
    gradients = quantized(np.abs(gradient), hessian)
    g, h = integers(gradients.packed)
    up = np.array([g * gradients.scales[0] - np.abs(gradient), h * gradients.scales[1] - hessian])
    assert abs(np.corrcoef(up[:, 1:])[0, 1]) < 5 / np.sqrt(50_000)


def test_a_row_is_rounded_by_its_number_whatever_the_others_are():
    gradient, hessian = scattered()
    changed = gradient.copy()
    changed[1::2] *= -1  # the same scale
    one, other = quantized(gradient, hessian), quantized(changed, hessian)
    assert_array_equal(one.packed[::2], other.packed[::2])
    assert_array_equal(integers(one.packed)[0][1::2], -integers(other.packed)[0][1::2])


# --- counts of rows, beside the sums of derivatives ----------------------------------------------

A_ROW = 2**20


@pytest.mark.interpreted
@pytest.mark.parametrize("n_outputs", [1, 2, 4, 5])
def test_counts_come_after_the_last_output(n_outputs):
    gradients = allocate_gradients(n_outputs, 3, n_outputs + 1)
    gradients.strips[:] = 0
    gradients.packed[:] = [5, 6, 0]  # the target of the last row is not known
    gradients.counts[:] = row_counts(np.array([1.0, 9.0, 1.0]), 4)
    fill_counts(gradients, (0, 3))
    n_lanes = 1 if n_outputs == 1 else 4
    of_rows = gradients.strips.reshape(-1, 3, n_lanes).transpose(0, 2, 1).reshape(-1, 3)
    assert_array_equal(of_rows[n_outputs], [A_ROW, 4 * A_ROW, 0])
    assert not of_rows[max(n_outputs + 1, 2) :].any()


@pytest.mark.interpreted
def test_counts_of_weights():
    weight = np.array([1.0, 0.25, 1 / 3, 9.0])
    assert_array_equal(row_counts(weight, 4), [A_ROW, A_ROW / 4, A_ROW // 3 + 1, 4 * A_ROW])
