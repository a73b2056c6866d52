import numba
import numpy as np
import pytest

from sklboost import caching
from sklboost.compiling import kernel
from sklboost.hashing import mix_bits


@kernel
def double(x):
    return 2 * x


@kernel
def quadruple(x):
    return double(double(x))


def test_kernels_are_called_by_kernels_and_from_python(monkeypatch, tmp_path):
    # not what an earlier run has left on disk: then nothing need be compiled
    monkeypatch.setattr(caching, "_FOLDERS", [tmp_path])
    assert quadruple(3) == 12
    assert double(3.5) == 7.0
    assert [str(s) for s in double.signatures] == ["(int64,)"]  # what quadruple calls
    assert [str(s) for s in double.entry.signatures] == ["(float64,)"]
    assert quadruple.signatures == []  # no kernel calls it


def test_a_kernel_that_allocates_does_not_compile():
    @kernel
    def allocate(n):
        return np.zeros(n).sum()

    with pytest.raises(numba.TypingError, match="array passed into the function"):
        allocate(3)


def test_division_by_zero_is_that_of_numpy():
    @kernel
    def divide(a, b):
        return a / b

    assert divide(1.0, 0.0) == float("inf")


def test_kernels_release_the_lock_of_the_interpreter_and_keep_strict_arithmetic():
    assert mix_bits.targetoptions["nogil"]
    assert not mix_bits.targetoptions.get("fastmath")
