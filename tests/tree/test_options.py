"""The kernels of tree/options that core calls by name are there."""

import pytest

from sklboost.tree.core import options


@pytest.mark.parametrize("name", options._PLACES)
def test_a_kernel_is_where_it_is_looked_for(name):
    kernel = getattr(options, name)
    function = getattr(kernel, "py_func", kernel)
    assert function.__module__ == f"sklboost.tree.options.{options._PLACES[name]}"
    assert getattr(kernel, "is_late", True)  # a plain fit does not compile it


def test_other_names_are_not_there():
    with pytest.raises(AttributeError, match="no attribute 'draw_nothing'"):
        _ = options.draw_nothing
