"""The kernels of tree/options that core calls by name are there, as they are announced."""

import inspect

import pytest

from sklboost.engine.compiling import found_in
from sklboost.tree.core import options

FOUND_LATER = type(found_in("math")(lambda: None))
ANNOUNCED = {name: own for name, own in vars(options).items() if isinstance(own, FOUND_LATER)}


def test_all_are_tested():
    assert len(ANNOUNCED) > 10


@pytest.mark.parametrize("name", ANNOUNCED)
def test_a_kernel_is_as_it_is_announced(name):
    announced, kernel = ANNOUNCED[name], ANNOUNCED[name].kernel
    function = getattr(kernel, "py_func", kernel)
    assert inspect.signature(announced) == inspect.signature(function)
    assert function.__module__.startswith("sklboost.tree.options.")
    assert getattr(kernel, "is_late", True)  # a plain fit does not compile it
