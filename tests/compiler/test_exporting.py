"""From kernels to shared libraries: the same bits as the compiler's, and nothing else in them."""

import shutil
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

from sklboost.engine import backend
from sklboost.engine.backend import BACKEND, Backend, Library, LibraryError, LibraryKernel
from sklboost.engine.compiling import address_of, by_address, inlined, kernel, late, made_kernel
from sklboost.engine.parallel import Team, ThreadTeam, assemble, barrier, state_size
from sklboost.engine.structs import records
from tests.conftest import ROOT, run_python

if BACKEND is not Backend.COMPILER:
    pytest.skip("nothing is compiled here", allow_module_level=True)

import numba

import export_machine_code as exporting
from export_machine_code import LEVELS, PackedFunction, table_module
from sklboost.engine.compiler.references import reference_to

pytestmark = pytest.mark.skipif(
    shutil.which(exporting.compiler()[0]) is None, reason="there is no C compiler"
)

VALUES = "float64[::1]"
ITEM_DTYPE = np.dtype([("weight", np.float64), ("place", np.int64)], align=True)


class Scale(NamedTuple):
    factor: float
    offsets: np.ndarray


class Task(NamedTuple):
    scale: Scale
    counts: np.ndarray
    is_doubled: bool
    nothing: None
    single: np.float32
    ends: tuple[int, int]
    items: np.recarray


class Answers(NamedTuple):
    pair: tuple[bool, bool]


@inlined
def polynomial(x):
    return (1.25 * x - 0.3) * x + 0.1


@late("float64")
def sum_late(values, scale):
    total = 0.0
    for value in values:
        total += value * scale.factor + scale.offsets[0]
    return total


@kernel
def fill_values(task, values):
    start, stop = task.ends
    for place in range(start, stop):
        count = np.float64(task.counts[place, 1])
        values[place] = polynomial(count) * task.scale.factor + np.float64(task.single)
        if task.is_doubled:
            values[place] *= 2.0
        if task.nothing is None:
            values[place] += task.items[place].weight * values[task.items[place].place]


@kernel
def total_of(task, values, single, is_late, pair):
    scratch, scale = pair
    total = sum_late(values, task.scale) if is_late else np.float64(single)
    return total + scratch[0] * scale.factor


@kernel
def place_of(values, value):
    for place in range(len(values)):
        if values[place] == value:
            return place
    raise ValueError("it is not there")


@kernel
def other_bits(bits):
    return ~bits


@kernel
def minus_one(values):
    return -1  # to numba a type of its own


@by_address(VALUES)
def call(address, values):
    return address(values)


def count_above(limit):
    def count(values):
        n_above = 0
        for value in values:
            n_above += value > limit
        return n_above

    return made_kernel(count, str(limit))


COUNTS = [count_above(limit) for limit in (0.0, 0.5)]


@kernel
def count_by(address, values):
    return call(address, values)


@kernel
def add_ranks(team, items, totals):
    """Add up the ranks of the team, each member for itself, in which all have met."""
    if not assemble(team):
        return
    items.counts[team.rank, 0] = team.rank
    barrier(team)
    for rank in range(team.size):
        totals[team.rank] += items.counts[rank, 0]


KERNELS = [polynomial, fill_values, total_of, place_of, other_bits, minus_one, count_by, add_ranks]


def calls():
    """Return the arguments of each call, by title; the title begins with the kernel's name."""
    random = np.random.default_rng(0)
    items = records(50, ITEM_DTYPE)
    items.weight, items.place = random.random(50), random.integers(50, size=50)
    scale = Scale(1.0 / 3.0, random.random(3))
    counts = random.integers(9, size=(50, 2)).astype(np.uint16)
    task = Task(scale, counts, True, None, np.float32(0.7), (1, 49), items)
    plain = task._replace(is_doubled=False, counts=np.asfortranarray(counts))
    values, single = random.random(50), np.float32(0.1)
    return {
        "polynomial": (0.7,),
        "fill_values": (task, values.copy()),
        "fill_values of Fortran order": (plain, values.copy()),
        "total_of": (task, values, single, False, (values, scale)),
        "total_of by a late kernel": (task, values, single, True, (values[1:], scale)),
        "place_of": (values, values[7]),
        "place_of float32": (values.astype(np.float32), 0.3),
        "place_of every other one": (values[::2], values[8]),
        "other_bits": (np.uint64(1),),
        "minus_one": (values,),
        "count_by": (0, values),
        "add_ranks": (Team(0, 1, np.zeros(state_size(1), np.int64)), task, np.zeros(1)),
    }


def results(kernels, addresses):
    """Return the result of each call, and the bytes of all arrays after it."""
    found = {}
    for title, arguments in calls().items():
        if title == "count_by":
            arguments = (addresses[1], *arguments[1:])
        try:
            result = kernels[title.split()[0]](*arguments)
        except (ValueError, RuntimeError):
            result = "raised"
        arrays = [value.tobytes() for value in arguments if isinstance(value, np.ndarray)]
        found[title] = result if result is None else repr(result), arrays
    return found


def results_here():
    kernels = {kernel.__name__: kernel for kernel in KERNELS}
    return results(kernels, [address_of(count, VALUES) for count in COUNTS])


SCRIPT = """
import sys
from pathlib import Path
from export_machine_code import export
from tests.compiler.test_exporting import results_here
export(Path(sys.path[0], "library"), results_here)
print("done")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return exported(tmp_path_factory.mktemp("first"))


def exported(folder):
    """Export from a copy of this file, which is elsewhere each time."""
    (folder / "library").mkdir()
    (folder / "tests" / "compiler").mkdir(parents=True)
    for name in (
        "__init__.py",
        "conftest.py",
        "compiler/__init__.py",
        "compiler/test_exporting.py",
    ):
        shutil.copy(ROOT / "tests" / name, folder / "tests" / name)
    run_python(SCRIPT, folder)
    return folder / "library"


def library_at(level, folder):
    try:
        return Library(folder, level)
    except LibraryError as error:
        pytest.skip(str(error))


def not_in_the_library():
    raise AssertionError("the library does not have it")


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_gives_the_bits_of_the_compiler(folder, level):
    library = library_at(level, folder)
    kernels = {
        made.__name__: LibraryKernel(made.py_func, library, not_in_the_library) for made in KERNELS
    }
    blocks = [LibraryKernel(count.py_func, library, not_in_the_library) for count in COUNTS]
    addresses = [block.address(VALUES) for block in blocks]
    assert results(kernels, addresses) == results_here()


def test_what_kernels_return():
    """The test above compares something."""
    found = {title: result for title, (result, _) in results_here().items()}
    assert found["fill_values"] is None
    assert found["place_of"] == "7"
    assert found["place_of every other one"] == "4"
    assert found["place_of float32"] == "'raised'"
    assert found["other_bits"] == str(2**64 - 2)
    assert found["minus_one"] == "-1"
    assert 0 < int(found["count_by"]) < 50
    assert found["total_of"] != found["total_of by a late kernel"]


def test_a_packed_function_says_that_the_kernel_raised(folder):
    library = library_at(None, folder)
    place = LibraryKernel(place_of.py_func, library, not_in_the_library)
    with pytest.raises(RuntimeError, match="place_of failed"):
        place(np.zeros(3), 1.0)


@pytest.mark.parametrize("size", [2, 5])
def test_a_team_packs_the_arguments_of_a_call_once_and_helpers_begin_without_python(
    folder, size, monkeypatch
):
    add = LibraryKernel(add_ranks.py_func, library_at(None, folder), not_in_the_library)
    _, task, _ = calls()["add_ranks"]
    totals, packed, pack = np.zeros(size), [], backend.pack

    def noted_pack(arguments):
        packed.append(len(arguments))
        return pack(arguments)

    monkeypatch.setattr(backend, "pack", noted_pack)
    with ThreadTeam(size) as team:
        for n_calls in range(1, 11):
            team.run(add, task, totals)
            assert list(totals) == [n_calls * sum(range(size))] * size
        n_served = team._n_served
    assert packed == 10 * [3, *[1] * size]  # all for member 0, then the team of each
    assert n_served >= 8 * (size - 1)  # helpers may be late for the first


@pytest.mark.skipif(sys.platform != "linux", reason="asks a tool of Linux")
@pytest.mark.parametrize("level", LEVELS)
def test_a_library_shows_two_names_and_asks_only_the_c_library(folder, level):
    symbols = subprocess.run(
        ["nm", "--dynamic", "--format=posix", folder / f"{level}{exporting.SUFFIX}"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    kinds = dict(line.split()[:2] for line in symbols.splitlines())
    shown = {name for name, kind in kinds.items() if kind not in "Uw"}
    asked = {name.partition("@")[0] for name, kind in kinds.items() if kind in "Uw"}
    assert shown == {"sklboost_functions", "sklboost_processor"}
    assert asked <= {"memcpy", "memset", "memmove", "sched_yield"}


def test_a_library_names_no_file_of_the_machine_it_was_made_on(folder):
    for path in folder.iterdir():
        assert not any(part in path.read_bytes() for part in (b".py", b"/tmp", b"/home"))


@pytest.mark.slow  # the test above finds what depends on the place
def test_an_export_gives_the_same_bytes_twice_wherever_the_sources_are(folder, tmp_path):
    again = exported(tmp_path)
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted([*(f"{level}{exporting.SUFFIX}" for level in LEVELS), "index.json"])
    for name in names:
        assert (folder / name).read_bytes() == (again / name).read_bytes(), name


def test_words_that_do_not_fit_are_an_error():
    """Two bool in a tuple take a word each where they are packed, and two bytes in a group."""
    group = reference_to(numba.typeof(Answers((True, False))))
    packed = PackedFunction("code", numba.types.none, (group,), n_words=(2,))
    with pytest.raises(TypeError, match=r"code takes .*Answers.*of which packing makes 2 words"):
        table_module([packed], {})


def test_a_result_that_python_cannot_read_is_an_error():
    packed = PackedFunction("code", numba.types.float32, (), ())
    with pytest.raises(TypeError, match="code returns float32, and Python can read none, int64"):
        table_module([packed], {})


def test_without_a_c_compiler_there_is_one_error(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler -m64")
    with pytest.raises(RuntimeError, match=r"no C compiler.*no-such-compiler -m64.*variable CC"):
        exporting.link([], tmp_path / "library.so")


def test_what_the_c_library_does_not_have_is_an_error(tmp_path):
    module = table_module(["numba_frexp"], {})
    with pytest.raises(RuntimeError, match="numba_frexp"):
        exporting.link(exporting.emit("", [module]), tmp_path / "library.so")
