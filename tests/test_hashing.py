import numpy as np
import pytest

from sklboost.engine.elementary import hash_key, mix_bits

LOW = 0xFFFFFFFF


def plain_mix(number):
    number ^= number >> 16
    number = number * 0x7FEB352D & LOW
    number ^= number >> 15
    number = number * 0x846CA68B & LOW
    return number ^ number >> 16


@pytest.mark.interpreted
@pytest.mark.parametrize("number", [0, 1, 2, 77, 2**16, 2**31, 2**32 - 1])
def test_mix_bits_is_plain_integer_arithmetic(number):
    assert int(mix_bits(np.uint64(number))) == plain_mix(number)


@pytest.mark.interpreted
def test_every_number_and_their_order_matter_for_a_key():
    keys = [hash_key(*numbers) for numbers in [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)]]
    assert len(set(map(int, keys))) == len(keys)
    assert hash_key(3, 4, 5) == hash_key(3, 4, 5)
    assert all(0 <= key <= LOW for key in keys)
    assert hash_key(-1, 0, 0) == hash_key(LOW, 0, 0)  # the low 32 bits count


def test_keys_of_many_rounds_differ():
    keys = {int(hash_key(seed, round_, 0)) for seed in range(20) for round_ in range(500)}
    assert len(keys) > 10_000 - 5  # 0.01 chance meetings are to be expected
