"""Groups by reference: what kernels read is what the caller has put there, each time.

Reads of fields are marked as never changing while a kernel runs, which LLVM makes use of. So most
of these tests make groups in loops, where the compiler could take an old value for a new one.
"""

import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import types

from sklboost.engine.compiler.references import holds_reference, reference_to
from sklboost.engine.compiling import inlined, kernel, late

pytestmark = pytest.mark.usefixtures("empty_cache")


class Inner(NamedTuple):
    a: float
    n: int
    values: np.ndarray


class Outer(NamedTuple):
    first: Inner
    factor: int
    second: Inner


class Numbers(NamedTuple):
    a: float
    b: float


ITEM = np.dtype([("weight", np.float64), ("n", np.int64), ("flag", np.uint8)], align=True)


class Everything(NamedTuple):
    flag: bool
    bytes_: np.ndarray
    nothing: None
    matrix: np.ndarray
    whole: int
    single: np.ndarray
    pair: tuple
    mixed: tuple
    read_only: np.ndarray
    cube: np.ndarray
    arrays: tuple
    items: np.recarray
    small: np.float32
    inner: Inner
    tiny: np.uint8
    empty: np.ndarray
    fortran: np.ndarray
    strided: np.ndarray
    number: float


def inner(a=1.5, n=2):
    return Inner(a, n, np.arange(1.0, 5.0))


def outer():
    return Outer(inner(), 10, inner(20.0, 3))


def everything():
    read_only = np.arange(4)
    read_only.flags.writeable = False
    items = np.zeros(3, dtype=ITEM).view(np.recarray)
    items.weight, items.n, items.flag = 0.5, [1, 2, 3], 1
    return Everything(
        *(True, np.array([3, 200], dtype=np.uint8), None, np.arange(6.0).reshape(2, 3), -7),
        *(np.float32([0.5, 0.25]), (4, 5), (6, 7.5), read_only, np.ones((2, 2, 2), np.float32)),
        *((np.arange(2.0), np.arange(3.0)), items, np.float32(0.1), inner(), np.uint8(9)),
        *(np.zeros((0, 3)), np.asfortranarray(np.arange(6).reshape(2, 3)), np.arange(10)[1::3]),
        2.25,
    )


def read_everything(group, out):
    out[0] = 1.0 if group.flag else 0.0
    out[1] = group.bytes_[1]
    out[2] = 1.0 if group.nothing is None else 0.0
    out[3] = group.matrix[1, 2]
    out[4] = group.whole
    out[5] = group.single[1]
    out[6] = group.pair[1]
    out[7] = group.mixed[0] + group.mixed[1]
    out[8] = group.read_only[3]
    out[9] = group.cube.shape[2] + group.cube[1, 1, 1]
    out[10] = group.arrays[1][2] + len(group.arrays)
    out[11] = group.items[2].weight * group.items[2].n + group.items[0].flag
    out[12] = group.small
    out[13] = group.inner.a * group.inner.values[3] + group.inner.n
    out[14] = group.tiny
    out[15] = group.empty.shape[0] + group.empty.shape[1]
    out[16] = group.fortran[1, 0]
    out[17] = group.strided[2]
    out[18] = group.number


class Holder(NamedTuple):
    group: Everything


@pytest.mark.parametrize("decorate", [kernel, inlined, late()])
def test_all_kinds_of_fields_can_be_read(decorate):
    read = decorate(read_everything)

    @kernel
    def read_nested(holder, out):
        read(holder.group, out)

    group, expected = everything(), np.zeros(19)
    read_everything(group, expected)
    assert np.count_nonzero(expected) == 19
    for function, argument in [(read, group), (read_nested, Holder(group))]:
        for _ in range(2):
            out = np.zeros(19)
            function(argument, out)
            assert out.tolist() == expected.tolist()


def test_arrays_of_a_group_are_not_kept_alive():
    @kernel
    def read(group):
        return group.values[0]

    group = inner()
    read(group)
    before = sys.getrefcount(group.values), sys.getrefcount(group)
    for _ in range(10):
        read(group)
    assert (sys.getrefcount(group.values), sys.getrefcount(group)) == before


# --- written through, and read again


def test_what_is_written_through_a_field_is_read_again():
    @kernel
    def write(group, index):
        group.values[index] += 1.0

    @kernel
    def write_and_read(group):
        total = 0.0
        for _ in range(5):
            write(group, 0)
            total += group.values[0]
            group.values[0] *= 2.0
            total += group.values[0]
        return total

    group, again = inner(), inner()
    assert write_and_read(group) == write_and_read.py_func(again)
    assert group.values.tolist() == again.values.tolist()


# --- groups made in kernels


@kernel
def by_symbol(group):
    return group.a * 10.0 + group.n + group.values[0]


@inlined
def in_line(group):
    return group.a * 10.0 + group.n + group.values[0]


@late("float64")
def through_cell(group):
    return group.a * 10.0 + group.n + group.values[0]


@inlined
def passes_on(group):
    return by_symbol(group) + in_line(group)


@kernel
def passes_nested(group):
    return by_symbol(group.second) - in_line(group.first) * group.factor


@inlined
def makes_another(group, i):
    changed = Inner(group.a + i, group.n, group.values)
    return by_symbol(changed) + in_line(changed)


LOOPS = {}


def loop(function):
    LOOPS[function.__name__] = function
    return function


@loop
def to_each_kind_of_kernel(group, out):
    for i in range(len(out)):
        out[i] = by_symbol(Inner(i * 1.0, i, group.first.values))
        out[i] += 3.0 * through_cell(Inner(i * 2.0, -i, group.second.values))
        out[i] -= 5.0 * in_line(Inner(i * 3.0, i + 1, group.first.values))
        out[i] += 7.0 * passes_on(Inner(i * 4.0, i + 2, group.first.values))


@loop
def nested(group, out):
    for i in range(len(out)):
        new = Inner(i * 1.0, i, group.first.values)
        out[i] = passes_nested(Outer(new, i, Inner(out[i - 1], 3, new.values)))


@loop
def made_in_line(group, out):
    for i in range(len(out)):
        out[i] = makes_another(group.first, i) + makes_another(Inner(1.0, i, group.first.values), i)


@loop
def either_given_or_made(group, out):
    for i in range(len(out)):
        one = group.second
        if i % 2 == 1:
            one = Inner(i * 1.0, i, group.first.values)
        out[i] = one.a + one.n + by_symbol(one) + in_line(one)


@loop
def given_then_made_from_itself(group, out):
    one = group.first
    for i in range(len(out)):
        out[i] = one.a + one.n * 100.0 + one.values[1]
        one = Inner(one.a + 1.0, one.n * 2, one.values)


@loop
def exchanged(group, out):
    one, two = group.first, group.second
    for i in range(len(out)):
        out[i] = one.a - two.n + by_symbol(two)
        new = Inner(two.a + 1.0, two.n + one.n, two.values)
        one, two = two, new


@loop
def exchanged_with_what_is_given(group, out):
    one, two = group.first, group.first
    for i in range(len(out)):
        new = Inner(one.a + two.a, one.n + two.n, one.values)
        if i % 3 == 2:
            new = group.second
        one = two
        two = new
        out[i] = one.a * 1000.0 + two.a + two.n


@loop
def old_ones_beside_new_ones(group, out):
    before = group.first
    for i in range(len(out)):
        now = Inner(i * 1.0, i, group.second.values)
        out[i] = by_symbol(before) * 1000.0 + by_symbol(now) + before.a
        before = now


@loop
def nested_either_given_or_made(group, out):
    both = group
    for i in range(len(out)):
        out[i] = both.first.a + both.second.n * both.factor + passes_nested(both)
        if i == 1:
            both = Outer(Inner(5.0, 6, group.first.values), 7, Inner(8.0, 9, group.first.values))
        if i == 3:
            both = Outer(both.second, i, both.first)


@pytest.mark.parametrize("name", LOOPS)
def test_groups_in_loops_are_as_python_has_them(name):
    out, expected = np.zeros(7), np.zeros(7)
    kernel(LOOPS[name])(outer(), out)
    plain = dict(vars(__import__(__name__, fromlist=["_"])))
    for key, value in list(plain.items()):
        if hasattr(value, "py_func") and value.py_func.__module__ == __name__:
            function = value.py_func
            plain[key] = type(function)(function.__code__, plain, key, function.__defaults__)
    function = LOOPS[name]
    type(function)(function.__code__, plain, name)(outer(), expected)
    assert out.tolist() == expected.tolist()


def test_a_class_that_was_made_twice_is_taken_as_one():
    def make_class():
        class Pair(NamedTuple):
            a: float
            b: float

        return Pair

    @kernel
    def difference(pair):
        return pair.a - pair.b

    def around(pair):
        @kernel
        def make(given, x):
            made = given
            if x > 0.0:
                made = pair(x, given.a)
            return difference(pair(x, 1.0)) + difference(made)

        return make

    for pair in (make_class(), make_class()):
        make = around(pair)
        assert make(pair(3.0, 2.0), 5.0) == 4.0 + 2.0
        assert make(pair(3.0, 2.0), -5.0) == -6.0 + 1.0


# --- groups returned


@inlined
def made_and_returned(x, values):
    return Inner(x, 1, values)


@inlined
def chosen(group, index):
    return group.first if index % 2 == 0 else group.second


@inlined
def chosen_or_made(group, index):
    if index % 2 == 0:
        return group.first
    return Inner(index * 1.0, index, group.first.values)


@kernel
def numbers_returned(x):
    return Numbers(x, 2.0 * x)


@kernel
def use_returned(group, out):
    before = numbers_returned(0.0)
    for i in range(len(out)):
        made = made_and_returned(i * 1.0, group.first.values)
        numbers = numbers_returned(i * 1.0)
        out[i, 0] = made.a + by_symbol(made)
        out[i, 1] = chosen(group, i).a + by_symbol(chosen(group, i))
        out[i, 2] = numbers.a + numbers.b + 100.0 * before.b
        out[i, 3] = chosen_or_made(group, i).a + by_symbol(chosen_or_made(group, i))
        before = numbers


def test_groups_can_be_returned():
    assert numbers_returned(2.0) == Numbers(2.0, 4.0)
    assert isinstance(numbers_returned(2.0), Numbers)
    out = np.zeros((5, 4))
    group = outer()
    use_returned(group, out)
    for i in range(5):
        assert out[i, 0] == i + 10 * i + 1 + 1
        given = group.first if i % 2 == 0 else group.second
        assert out[i, 1] == given.a + 10 * given.a + given.n + given.values[0]
        assert out[i, 2] == 3 * i + 200 * max(i - 1, 0)
        a, n = (group.first.a, group.first.n) if i % 2 == 0 else (i, i)
        assert out[i, 3] == a + 10 * a + n + 1


def test_a_kernel_does_not_return_a_group_that_it_was_given():
    # it may lie in the frame of a kernel that has returned by then, or has written another to it
    @kernel
    def same(group):
        return group

    @kernel
    def within(group):
        return group.factor, group.first

    @kernel
    def dangling(values):
        return same(Inner(1.5, 1, values))

    for function, argument in [(same, inner()), (within, outer()), (dangling, np.arange(3.0))]:
        for _ in range(2):
            with pytest.raises(TypeError, match="returns a group that it did not make itself"):
                function(argument)


# --- what Python calls


@pytest.mark.parametrize("decorate", [kernel, inlined])
def test_what_python_calls_reads_what_it_has_unpacked(decorate):
    # here what fills the group and what reads it are in one piece of machine code
    @decorate
    def total(group, n):
        total = 0.0
        for _ in range(n):
            total += group.a + group.b
        return total

    for i in range(5):
        assert total(Numbers(i * 1.0, 2.0 * i), 3) == 9.0 * i


class Around(NamedTuple):
    first: object
    inner: object


def test_wrong_types_raise_and_do_not_crash():
    @kernel
    def read(group):
        return group.inner.values[0] * group.inner.n + group.first

    def around(values, n=2, first=1.0):
        return Around(first, Inner(0.0, n, values))

    good, numbers = around(np.arange(1.0, 4.0)), np.arange(3.0)
    assert read(good) == 3.0
    wrong = [
        *map(around, ([1.0, 2.0], [], object(), None, "abc", {1: 2}, 2.5, iter("abc"))),
        *(around(np.array([None])), around(np.array(1.0))),
        *(around(numbers, n) for n in ("2", None, [2], 2**70)),
        *(around(numbers, first=object()), Around(1.0, None), Around(numbers, numbers)),
        *(Around(1.0, (0.0, 2, numbers)), Around(1.0, [0.0, 2, numbers])),
        *((1.0, Inner(0.0, 2, numbers)), None, 1.0, [good], Around(1.0, Around(numbers, 2))),
    ]
    for group in wrong:
        with pytest.raises(Exception) as caught:  # noqa: PT011, of many kinds
            read(group)
        assert str(caught.value) or caught.type is AssertionError, group
        assert read(good) == 3.0
    # other types that are right, each for itself
    assert read(around(np.arange(1, 4))) == 3.0
    assert read(around(np.float32([0.5]), n=True)) == 1.5
    assert read(around((3, 4), n=2.5, first=2)) == 9.5


# --- their types


def test_their_names_tell_groups_apart_by_class_fields_and_types():
    def group(name, fields, values):
        return numba.typeof(NamedTuple(name, [(field, object) for field in fields])(*values))

    groups = [group("A", "xy", (1, 2.0)), group("A", "yx", (1, 2.0)), group("B", "xy", (1, 2.0))]
    groups += [group("A", "xy", (2.0, 1)), group("A", "xy", (1, np.arange(3.0)))]
    groups += [group("A", "xy", (1, np.arange(3))), group("A", "xyz", (1, 2.0, 3))]
    names = {reference_to(kind).name for kind in groups}
    assert len(names) == len(groups)
    assert all(len(name) < 40 for name in names)  # symbols are made of them


def test_read_only_arrays_run_the_same_version():
    @kernel
    def add(group, out):
        out[0] += group.first.values.sum()

    group, out = outer(), np.zeros(1)
    values = group.first.values.copy()
    values.flags.writeable = False
    read_only = group._replace(first=group.first._replace(values=values))
    for given in (group, read_only, group, read_only):
        add(given, out)
    assert out[0] == 4 * values.sum()
    assert len(add.overloads) == len(add.entry.overloads) == 1
    assert len(add.entry._inserted) == 2  # both of which numba's own code finds then


def test_which_types_hold_a_reference():
    group = numba.typeof(inner())
    reference = reference_to(group)
    assert holds_reference(types.Tuple([types.UniTuple(reference, 2), types.int64]))
    assert holds_reference(types.Optional(reference))
    assert not holds_reference(types.UniTuple(types.int64, 2))
    assert not holds_reference(group)
    assert not holds_reference(types.none)


MOVED = """
import numpy as np
from {module} import Inner
from groups_top import Outer, add
values = np.arange(3.0)
print(add(Outer(Inner(values), 2.0)), sum(add._cache_misses.values()))
"""


def test_what_is_kept_for_a_class_that_has_moved_is_not_used(tmp_path, run_forked):
    """As after an update: the module that was pickled is not there any more."""
    inner = "from typing import NamedTuple\nclass Inner(NamedTuple):\n    values: object\n"
    (tmp_path / "before.py").write_text(inner)
    top = (
        "from typing import NamedTuple\n"
        "from sklboost.engine.compiling import kernel\n"
        "class Outer(NamedTuple):\n    inner: object\n    factor: float\n"
        "@kernel\ndef add(outer):\n    return outer.inner.values.sum() * outer.factor\n"
    )
    (tmp_path / "groups_top.py").write_text(top)
    assert run_forked(MOVED.format(module="before"), tmp_path) == "6.0 1"
    assert list(tmp_path.glob("mine/*/add-*"))
    (tmp_path / "before.py").rename(tmp_path / "after.py")
    assert run_forked(MOVED.format(module="after"), tmp_path) == "6.0 1"
