"""How compiled kernels find one another: symbols and cells.

A kernel that always runs is called by its symbol, so its code must be in the process when its
caller's is. A kernel that only some fits need is called through a *cell*, eight bytes that hold
its address. A cell is empty at first. Machine code that finds it so calls back into Python, which
compiles the kernel, or loads it from disk, and the caller goes on.
"""

import copy
import ctypes
import pickle
import weakref
from contextvars import ContextVar
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from llvmlite import ir

from sklboost.engine.compiler.caching import UNKNOWN, read_code, write_code
from sklboost.engine.compiler.numba_internals import cgutils, compiler_lock, cpu_target


class Call(NamedTuple):
    """A call of a kernel in machine code, and what the code takes for granted."""

    kernel: str  # name of the kernel that is called
    types: str  # digest of the types of the arguments
    returns: str  # type of the result
    symbol: str  # symbol of the kernel's code; of the cell if the kernel is late
    # the types of the arguments, pickled: for a process that has to compile the kernel
    arguments: bytes


class Code(NamedTuple):
    """What is kept on disk of one version of a kernel."""

    machine_code: bytes  # an object file
    symbol: str
    returns: str  # type of the result
    calls: tuple[Call, ...]
    description: bytes  # what the compiler needs to compile a call of it, pickled


# All kernels by their names.
KERNELS: "weakref.WeakValueDictionary[str, Any]" = weakref.WeakValueDictionary()
# (kernel, digest of types) -> (symbol, type of the result): the code that is in this process
LINKED: dict[tuple[str, str], tuple[str, str]] = {}


# --- symbols


def engine() -> Any:
    """Return LLVM's engine, which holds all machine code of the process."""
    return cpu_target.target_context.codegen()._engine


def address_of_symbol(symbol: str) -> int:
    """Return the address of machine code that was added."""
    engine().finalize_object()
    address: int = engine().get_function_address(symbol)
    return address


def add_code(key: tuple[str, str], code: Code) -> None:
    """Add machine code to the process; what it calls by symbols is there already."""
    engine()._ee.add_object_file(llvm.ObjectFileRef.from_data(code.machine_code))
    LINKED[key] = (code.symbol, code.returns)


def link(call: Call) -> tuple[str, str]:
    """Bring the code of a kernel, and of all that it calls, into this process.

    Returns the symbol of the code, and the type of its result.
    """
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
    return LINKED[key]


# --- files


def read(file: str) -> Code | None:
    """Read what is kept of a version, and link what it calls.

    None if there is nothing, or if a call is not what the code takes for granted.
    """
    content = read_code(file) if file != UNKNOWN else None
    if content is None:
        return None
    code = Code(*pickle.loads(content))
    code = code._replace(calls=tuple(Call(*call) for call in code.calls))
    try:
        for call in code.calls:
            kernel = KERNELS.get(call.kernel)
            if kernel is None or kernel.name != call.kernel:
                return None
            # whether a kernel is late, and what it is declared to return, is in the callers' digest
            if kernel.is_late:
                add_cell(call)
            elif link(call) != (call.symbol, call.returns):
                return None
    except (AttributeError, ModuleNotFoundError):  # the module of a group in `arguments` is gone
        return None
    return code


def keep(file: str, code: Code) -> None:
    """Write what is kept of a version to disk."""
    if file != UNKNOWN:
        # plain tuples: they are read in a third of the time
        calls = tuple(map(tuple, code.calls))
        write_code(file, pickle.dumps((*code[:3], calls, code.description)))


# --- cells


class _Cell:
    """The place of a late kernel's address; None until the kernel has been called."""

    def __init__(self, call: Call):
        self.call = call
        self.pointer = ctypes.c_void_p(None)

    def fill(self) -> None:
        with compiler_lock:  # the others of a team may come here, too
            if self.pointer.value is not None:
                return
            symbol, returns = link(self.call)
            if returns != self.call.returns:
                declared = f"it was declared as {self.call.returns}"
                raise TypeError(f"{self.call.kernel} returns {returns}; {declared}")
            self.pointer.value = address_of_symbol(symbol)


_CELLS: dict[str, _Cell] = {}  # by symbol
_CELLS_AT: dict[int, _Cell] = {}  # by address
# What went wrong in this thread while a cell was to be filled. Raised when the kernel that found it
# empty is through: until then nothing may be raised, as others of its team may wait at a barrier.
_FAILURE: ContextVar[BaseException | None] = ContextVar("failure", default=None)
# The last failure of all threads: why a stand-in is in a cell.
_LAST_FAILURE: list[BaseException] = []
# What machine code calls when it finds a cell empty.
FILL_CELL = "sklboost.fill_cell"


def add_cell(call: Call) -> None:
    """Make the cell of a late kernel, if there is none."""
    if call.symbol not in _CELLS:
        cell = _CELLS[call.symbol] = _Cell(call)
        address = ctypes.addressof(cell.pointer)
        _CELLS_AT[address] = cell
        llvm.add_symbol(call.symbol, address)


def code_behind(cell: str) -> str:
    """Return the symbol of the late kernel that a cell leads to; compile or load the kernel."""
    return link(_CELLS[cell].call)[0]


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
        if cell.pointer.value in (None, _STAND_IN):  # a try of another thread failed meanwhile
            _note(copy.copy(_LAST_FAILURE[0]))
    except BaseException as error:
        _note(error)
        # once more: a signal handler may raise what it likes
        if not isinstance(error, Exception) or n_tries == 0:
            return
        _LAST_FAILURE[:] = [copy.copy(error).with_traceback(None)]  # frames would keep their data
        cell.pointer.value = _STAND_IN


@ctypes.CFUNCTYPE(ctypes.c_int)
def _stand_in() -> int:
    """Stand in for a kernel that cannot be compiled; its result, which is not used, is 0."""
    _note(copy.copy(_LAST_FAILURE[0]))  # this thread need not be the one that tried to compile it
    return 0


_STAND_IN = ctypes.cast(_stand_in, ctypes.c_void_p).value
llvm.add_symbol(FILL_CELL, ctypes.cast(_fill_cell, ctypes.c_void_p).value)


def raise_failure() -> None:
    """Raise what went wrong within the kernel that this thread has run."""
    failure = _FAILURE.get()
    if failure is None:
        return
    _FAILURE.set(None)
    for cell in list(_CELLS.values()):
        if cell.pointer.value == _STAND_IN:
            cell.pointer.value = None
    raise failure


# --- calls by address, as LLVM code


def call_address(context: Any, builder: Any, address: Any, signature: Any, args: Any) -> Any:
    """Write the call of compiled code at an address, an int64; return its status and its result."""
    convention, returns, kinds = context.call_conv, signature.return_type, signature.args
    pointer = convention.get_function_type(returns, kinds).as_pointer()
    code = builder.inttoptr(address, pointer)
    return convention.call_function(builder, code, returns, kinds, args)


def call_cell(context: Any, builder: Any, symbol: str, signature: Any, args: Any) -> Any:
    """Write the call of a late kernel, with a loop before it that fills an empty cell.

    Returns its result. What the kernel raises, its caller raises.
    """
    word, byte_pointer = ir.IntType(64), ir.IntType(8).as_pointer()
    cell = builder.module.globals.get(symbol)
    if cell is None:
        cell = ir.GlobalVariable(builder.module, word, symbol)
    kind = ir.FunctionType(ir.VoidType(), [byte_pointer, word])
    fill = cgutils.get_or_insert_function(builder.module, kind, FILL_CELL)
    before, look = builder.block, builder.append_basic_block("cell.look")
    empty, filled = (builder.append_basic_block(f"cell.{name}") for name in ("empty", "filled"))
    builder.branch(look)
    builder.position_at_end(look)
    n_tries = builder.phi(word)
    address = builder.load_atomic(cell, "acquire", 8)
    builder.cbranch(cgutils.is_null(builder, address), empty, filled).set_weights([1, 99])
    builder.position_at_end(empty)
    builder.call(fill, [builder.bitcast(cell, byte_pointer), n_tries])
    n_tries.add_incoming(word(0), before)
    n_tries.add_incoming(builder.add(n_tries, word(1)), empty)
    builder.branch(look)
    builder.position_at_end(filled)
    status, result = call_address(context, builder, address, signature, args)
    with cgutils.if_unlikely(builder, status.is_error):
        context.call_conv.return_status_propagate(builder, status)
    return result
