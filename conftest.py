"""What is left out where there is no numba, and which examples of docstrings are slow."""

from importlib.util import find_spec

import pytest

COMPILER = ["sklboost/engine/compiler", "tests/compiler"]
# Of fits that tests/compiler/test_versions.py does, too.
ONLY_WITHOUT_COMPILER = ["tests/test_fits.py"]

collect_ignore = COMPILER if find_spec("numba") is None else ONLY_WITHOUT_COMPILER

SLOW_EXAMPLES = {"sklboost.warmup.warmup"}  # compiles everything


def pytest_collection_modifyitems(items):
    """Give the marker to examples, which cannot have a decorator."""
    for item in items:
        if item.name in SLOW_EXAMPLES:
            item.add_marker(pytest.mark.slow)
