"""Numbers of float32 in JSON text."""

import numpy as np

from sklboost.files.json_text import read_json, write_json


def test_float32_numbers_are_short_in_json_and_the_same():
    random = np.random.default_rng(0)
    bits = random.integers(0, 2**32, 10_000, dtype=np.uint32)
    numbers = np.append(bits, [0, 1, 2**31]).astype(np.uint32).view(np.float32)
    numbers = numbers[np.isfinite(numbers)]
    read = np.array(read_json(write_json({"a": numbers}), "")["a"]).astype(np.float32)
    assert (read == numbers).all()
    assert write_json(np.array([0.1, 16.82], dtype=np.float32)) == b"[0.1,16.82]"
