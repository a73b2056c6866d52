import enum
import importlib
import json
import math
import os
import pkgutil
import subprocess
import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest

import sklboost
from sklboost.engine.compiler import kernels
from sklboost.engine.compiler.caching import UNKNOWN, digest_of
from sklboost.engine.compiler.linking import KERNELS
from sklboost.engine.compiling import by_address, inlined, kernel, late
from sklboost.engine.instructions import trailing_zeros, yield_processor
from tests.conftest import ROOT


def defined(text, **names):
    """Run the text of a function ``f`` where it finds `names`, and return it."""
    scope = dict(names, __name__="some_module")
    exec(compile(text, "some_module.py", "exec"), scope)
    return scope["f"]


def edited(decorate, text, name="f", **names):
    """Decorate the function as a later process does, after its text has been edited."""
    function = defined(text, **names)
    function.__qualname__ = name
    return decorate(function)


def digest(text, **names):
    for known in [name for name in kernels._DIGESTS if name.startswith("some_module.")]:
        del kernels._DIGESTS[known]  # as in a new process
    return digest_of(defined(text, **names))


def group(fields):
    return NamedTuple("Group", [(name, float) for name in fields.split()])


def aligned(align):
    return np.dtype([("a", np.int8), ("b", np.int64)], align=align)


# --- what changes it

PLAIN = "def f(x):\n    return x + 1\n"


def test_it_changes_with_what_a_function_does():
    texts = [
        PLAIN,
        "def f(x):\n    return x + 2\n",
        "def f(x):\n    return x + 1.0\n",
        "def f(x):\n    return x - 1\n",
        "def f(x):\n    return x + True\n",
        "def f(y):\n    return y + 1\n",  # kernels can be called with names of arguments
        "def f(x, y=1):\n    return x + 1\n",
        "def f(x, y=2):\n    return x + 1\n",
        "def f(x):\n    return abs(x + 1)\n",
    ]
    assert len({UNKNOWN, *map(digest, texts)}) == 1 + len(texts)


def test_signs_and_types_of_constants_count():
    constants = ["0.0", "-0.0", "0", "False", "(0, 1)", "(0, 1.0)", "(0, -0.0)", "'0'", "b'0'"]
    digests = {digest(f"def f(x):\n    return x == {constant}\n") for constant in constants}
    assert len(digests) == len(constants)


@pytest.mark.parametrize(
    "values",
    [
        (1, 2, 1.0, True, "1", b"1", None, np.float64(1), np.float32(1), np.int64(1)),
        (1e-12, 1e-13, math.inf, -math.inf, math.nan, 0.0, -0.0),
        ((1, 2), (2, 1), (1, (2,)), ("1", 2)),
        (np.arange(3), np.arange(4), np.arange(3.0), np.arange(3).reshape(3, 1)),
        (np.dtype(np.int64), np.dtype(np.float64), aligned(True), aligned(False)),
        (np.sin, np.cos, math.sin, math.cos, abs, max),
        (np, math, np.linalg),
        (group("a b"), group("b a"), group("a b c")),
        (ValueError, TypeError, int),
        (slice(1), slice(2), ...),
    ],
)
def test_it_changes_with_what_a_name_stands_for(values):
    text = "def f(x):\n    return x + VALUE\n"
    digests = [digest(text, VALUE=value) for value in values]
    assert len(set(digests)) == len(values)
    assert UNKNOWN not in digests


def test_it_changes_with_the_values_of_a_closure():
    def around(value):
        def f(x):
            return x + value

        return f

    digests = [digest_of(around(value)) for value in (1, 2, 1.5)]
    assert len({*digests, UNKNOWN}) == 4
    assert digest_of(around(1)) == digests[0]


def test_names_within_inner_functions_count():
    text = "def f(x):\n    def inner(y):\n        return y + VALUE\n    return inner(x)\n"
    assert digest(text, VALUE=1) != digest(text, VALUE=2)


def test_it_changes_with_what_is_inlined_however_deep():
    def f_calling(bottom_text, decorate):
        bottom = edited(decorate, bottom_text)
        middle = edited(inlined, "def f(x):\n    return bottom(x)\n", "middle", bottom=bottom)
        return digest("def f(x):\n    return middle(x)\n", middle=middle)

    changed = "def f(x):\n    return x + 2\n"
    assert f_calling(PLAIN, inlined) != f_calling(changed, inlined)
    assert f_calling(PLAIN, kernel) == f_calling(changed, kernel)
    assert f_calling(PLAIN, inlined) != f_calling(PLAIN, kernel)


def test_it_changes_with_the_declared_result_of_a_late_kernel():
    text = "def f(x):\n    return g(x)\n"
    kinds = (late("int64"), late("float64"), kernel)
    digests = {digest(text, g=edited(decorate, PLAIN)) for decorate in kinds}
    assert len(digests) == 3


def test_instructions_count_by_name():
    text = "def f(x):\n    return g(x)\n"
    digests = {digest(text, g=instruction) for instruction in (trailing_zeros, yield_processor)}
    assert len(digests) == 2
    assert UNKNOWN not in digests


def test_the_types_of_a_call_by_address_are_in_the_digest_of_its_caller():
    def digest_with(types):
        call = by_address(types)(lambda address, number: address(number))

        def caller(address):
            return call(address, 1)

        return digest_of(caller)

    digests = {digest_with(types) for types in ("int64", "float64", "int64")}
    assert len(digests) == 2
    assert UNKNOWN not in digests


# --- what does not


def test_it_does_not_change_with_comments_lines_and_docstrings():
    texts = [
        PLAIN,
        "\n\n\ndef f(x):\n\n    return x + 1\n",
        "def f(x):\n    # a comment\n    return x + 1  # another\n",
        "def f(x):\n    return (\n        x\n        + 1\n    )\n",
    ]
    assert len(set(map(digest, texts))) == 1
    docs = ["Add 1.", "Add one,\n\n    not two.\n    ", "1"]
    assert len({digest(f'def f(x):\n    """{doc}"""\n    return x + 1\n') for doc in docs}) == 1


def test_it_changes_with_the_parameters_of_a_kernel_that_is_called():
    # a caller knows the places of named arguments, and the defaults
    text = "def f(x):\n    return g(y=x)\n"
    texts = [
        f"def f({parameters}):\n    return y\n"
        for parameters in ("x, y", "y, x", "y, x=1", "y, x=2")
    ]
    for decorate in (kernel, late("int64")):
        assert len({digest(text, g=edited(decorate, called)) for called in texts}) == 4


def test_it_changes_with_the_names_of_the_fields_of_a_constant_group():
    pairs = [NamedTuple("Pair", [(name, int) for name in names])(1, 2) for names in ("xy", "yx")]
    assert len({digest("def f():\n    return PAIR.x\n", PAIR=pair) for pair in pairs}) == 2


def test_it_does_not_change_with_names_that_the_function_does_not_use():
    assert digest(PLAIN, other=1) == digest(PLAIN, other=object())


# --- what has none


class Colour(enum.IntEnum):
    RED = 1


class Settings:
    FACTOR = 2


@numba.njit
def compiled_by_user(x):
    return x


@pytest.mark.parametrize(
    "value",
    [
        object(),
        Settings(),
        compiled_by_user,
        [compiled_by_user],
        (1, object()),
        defined,
        Settings,  # its attributes may change
        Colour,
        sklboost,  # so may those of a module
        {"a": 1},
    ],
    ids=[
        *("object", "instance", "of a user", "list of such", "tuple of such", "function"),
        *("class", "enum", "module", "dict"),
    ],
)
def test_what_has_no_digest(value):
    text = "def f(x):\n    return x + VALUE\n"
    assert digest(text, VALUE=value) == UNKNOWN
    inner = edited(inlined, text, VALUE=value)
    assert digest("def f(x):\n    return inner(x)\n", inner=inner) == UNKNOWN


# --- the package's

PROCESS = """
import json
from tests.compiler.test_digests import digests_of_the_package
print(json.dumps(digests_of_the_package()))
"""
VALUES = frozenset("efgh")


def with_sets(x):
    return x in {"a", "b", "c", "d"} or x in VALUES


def digests_of_the_package():
    """Return the digests of its kernels, of all modules, and of a function with sets."""
    for module in pkgutil.walk_packages(sklboost.__path__, "sklboost."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    kernels = {name: k.digest for name, k in KERNELS.items() if name.startswith("sklboost.")}
    return kernels | {"sets": digest_of(with_sets)}


def test_every_kernel_of_the_package_has_the_same_digest_in_every_process():
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"  # not that of this process
    settings = dict(env=dict(os.environ, PYTHONHASHSEED=seed), cwd=ROOT, text=True)
    digests = json.loads(subprocess.check_output([sys.executable, "-c", PROCESS], **settings))
    here = digests_of_the_package()  # and of kernels that other tests have made
    assert digests == {name: here[name] for name in digests}
    assert len(digests) > 300
    assert UNKNOWN not in digests.values()
