"""What the tests leave out where there is no numba: the compiler, and the tests of what it does."""

from importlib.util import find_spec

COMPILER = ["sklboost/engine/compiler", "tests/compiler"]

collect_ignore = COMPILER if find_spec("numba") is None else []
