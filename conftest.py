"""What is left out where there is no numba: the compiler, and the tests of what it does."""

from importlib.util import find_spec

COMPILER = ["sklboost/engine/compiler", "tests/compiler"]
# Of fits that tests/compiler/test_versions.py does, too.
ONLY_WITHOUT_COMPILER = ["tests/test_fits.py"]

collect_ignore = COMPILER if find_spec("numba") is None else ONLY_WITHOUT_COMPILER
