"""How compiled kernels find one another: symbols and cells.

In: machine code, from the compiler or from disk, and what it calls. Out: the same in this process,
ready to run.

A kernel that always runs is called by its symbol, so its code must be there when that of the caller
is. One that only some fits need is called through a *cell*, eight bytes that hold its address. The
cell is empty at first; machine code that finds it so calls back, and the kernel is compiled, or
loaded from disk, in the middle of the caller's run.
"""

import copy
import ctypes
import pickle
import weakref
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from sklboost.engine.compiler.caching import read_code, write_code
from sklboost.engine.compiler.digests import UNKNOWN
from sklboost.engine.compiler.numba_internals import compiler_lock, cpu_target


class Call(NamedTuple):
    """A call of a kernel in machine code, and what the code takes for granted.

    Attributes
    ----------
    kernel : str
        Its name.
    types : str
        Digest of the types of the arguments.
    returns : str
        Type of the result.
    symbol : str
        By which it is called; or what the name of its cell is made of.
    is_late : bool
        Whether it is called through a cell.
    arguments : bytes
        The types of the arguments, pickled: for a process that has to compile it.
    """

    kernel: str
    types: str
    returns: str
    symbol: str
    is_late: bool
    arguments: bytes


class Code(NamedTuple):
    """What is kept of one version of a kernel.

    Attributes
    ----------
    machine_code : bytes
        An object file.
    symbol : str
    returns : str
        Type of the result.
    calls : tuple of Call
    description : bytes
        What the compiler has to know of it to compile a call of it, pickled.
    """

    machine_code: bytes
    symbol: str
    returns: str
    calls: tuple[Call, ...]
    description: bytes


# All kernels by their names.
KERNELS: "weakref.WeakValueDictionary[str, Any]" = weakref.WeakValueDictionary()
# (kernel, digest of types) -> (symbol, type of the result): the code that is in this process
LINKED: dict[tuple[str, str], tuple[str, str]] = {}


# --- symbols


def engine() -> Any:
    """Return LLVM's engine, in which all machine code of the process is."""
    return cpu_target.target_context.codegen()._engine


def address_of_symbol(symbol: str) -> int:
    """Return where machine code that was added begins."""
    engine().finalize_object()
    return engine().get_function_address(symbol)


def add_code(key: tuple[str, str], code: Code) -> None:
    """Add machine code to the process; what it calls by symbols is there already."""
    engine()._ee.add_object_file(llvm.ObjectFileRef.from_data(code.machine_code))
    LINKED[key] = (code.symbol, code.returns)


def link(call: Call) -> str:
    """Have the code of a kernel in this process, and of all that it calls; return its symbol."""
    key = (call.kernel, call.types)
    if key not in LINKED:
        kernel = KERNELS[call.kernel]
        if kernel.name != call.kernel:
            raise LookupError(f"{call.kernel} is another kernel now")  # its module was reloaded
        code = kernel.read(call.types)
        if code is None:
            kernel.compile(pickle.loads(call.arguments))
        else:
            add_code(key, code)
    symbol, returns = LINKED[key]
    if call.is_late and returns != call.returns:
        raise TypeError(f"{call.kernel} returns {returns}; it was declared as {call.returns}")
    return symbol


def _link_all(calls: Iterable[Call]) -> bool:
    """Link what code calls; False if something is not what the code takes for granted."""
    for call in calls:
        kernel = KERNELS.get(call.kernel)
        if kernel is None or kernel.name != call.kernel or kernel.is_late != call.is_late:
            return False
        if call.is_late:
            if kernel.returns != call.returns:
                return False
            add_cell(call)
        elif (link(call), call.returns) != LINKED[call.kernel, call.types]:
            return False
    return True


# --- files


def read(file: str) -> Code | None:
    """Read what is kept of a version, and link what it calls; None if it is not to be had."""
    content = read_code(file) if file != UNKNOWN else None
    if content is None:
        return None
    code = Code(*pickle.loads(content))
    code = code._replace(calls=tuple(Call(*call) for call in code.calls))
    try:
        return code if _link_all(code.calls) else None
    except (AttributeError, ModuleNotFoundError):  # the module of a group in `arguments` is gone
        return None


def keep(file: str, code: Code) -> None:
    """Write what is kept of a version to disk."""
    if file != UNKNOWN:
        # plain tuples: they are read in a third of the time
        calls = tuple(map(tuple, code.calls))
        write_code(file, pickle.dumps((*code[:3], calls, code.description)))


# --- cells


class _Cell:
    """Where the address of a late kernel is, once it has been called."""

    def __init__(self, call: Call):
        self.call = call
        self.pointer = ctypes.c_void_p(None)

    def fill(self) -> None:
        with compiler_lock:  # the others of a team may come here, too
            if self.pointer.value is None:
                self.pointer.value = address_of_symbol(link(self.call))


_CELLS: dict[str, _Cell] = {}
_CELLS_AT: dict[int, _Cell] = {}
# What went wrong in this thread while a cell was to be filled. Raised when the kernel that found it
# empty is through: until then nothing may be raised, as others of its team may wait at a barrier.
_FAILURE: ContextVar[BaseException | None] = ContextVar("failure", default=None)
# The last one of all threads: why a stand-in is in a cell.
_LAST_FAILURE: list[BaseException] = []
# What machine code calls when it finds a cell empty.
FILL_CELL = "sklboost.fill_cell"


def cell_name(symbol: str) -> str:
    """Return the symbol of a cell."""
    return f"cell.{symbol}"


def add_cell(call: Call) -> None:
    """Make the cell of a late kernel, if it is not there."""
    name = cell_name(call.symbol)
    if name not in _CELLS:
        cell = _CELLS[name] = _Cell(call)
        address = ctypes.addressof(cell.pointer)
        _CELLS_AT[address] = cell
        llvm.add_symbol(name, address)


def fill_cells() -> None:
    """Compile or load every late kernel that machine code of this process may call."""
    n_filled = 0
    while n_filled < len(_CELLS):  # kernels that come in bring new cells
        cells = list(_CELLS.values())[n_filled:]
        n_filled += len(cells)
        for cell in cells:
            if cell.call.kernel in KERNELS:  # else it is gone, and so are all that call it
                cell.fill()


def _note(failure: BaseException) -> None:
    if _FAILURE.get() is None:
        _FAILURE.set(failure)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
def _fill_cell(address: int, n_tries: int) -> None:
    """Fill a cell, or else be called again: Ctrl-C may end a try wherever it is.

    Even before the first line, where Python looks whether Ctrl-C was pressed while the kernel ran.
    """
    if n_tries > 0:
        _note(KeyboardInterrupt())  # unless something else was noted
    cell = _CELLS_AT[address]
    try:
        cell.fill()
    except BaseException as error:
        _note(error)
        # once more: a signal handler may raise what it likes
        if not isinstance(error, Exception) or n_tries == 0:
            return
        _LAST_FAILURE[:] = [copy.copy(error).with_traceback(None)]  # frames would keep their data
        cell.pointer.value = ctypes.cast(_do_nothing, ctypes.c_void_p).value


@ctypes.CFUNCTYPE(ctypes.c_int)
def _do_nothing() -> int:
    """Stand in for a kernel that cannot be compiled; its result, which is not used, is 0."""
    _note(copy.copy(_LAST_FAILURE[0]))  # this thread need not be the one that tried to compile it
    return 0


llvm.add_symbol(FILL_CELL, ctypes.cast(_fill_cell, ctypes.c_void_p).value)


def raise_failure() -> None:
    """Raise what went wrong within the kernel that this thread has run."""
    failure = _FAILURE.get()
    if failure is None:
        return
    _FAILURE.set(None)
    stand_in = ctypes.cast(_do_nothing, ctypes.c_void_p).value
    for cell in list(_CELLS.values()):
        if cell.pointer.value == stand_in:
            cell.pointer.value = None
    raise failure
