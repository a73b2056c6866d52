"""What a shared library exports, as LLVM code: functions that Python can call, and their table.

Python gives a *packed function* the arguments of a kernel as words, laid out as
:mod:`sklboost.engine.library.packing` says; it takes them apart and calls the kernel. It returns 0,
or 1 if the kernel raised.
"""

import platform
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types

from sklboost.engine.compiler.digests import Types
from sklboost.engine.compiler.linking import FILL_CELL
from sklboost.engine.compiler.numba_internals import cgutils, cpu_target
from sklboost.engine.compiler.references import Reference, at, load, size_of
from sklboost.engine.library.kernels import RESULTS
from sklboost.engine.library.loading import FUNCTIONS
from sklboost.engine.library.processor import PROCESSOR, REGISTERS_KEPT

IS_X86_64 = platform.machine().lower() in ("x86_64", "amd64")

_WORD, _INT32, _POINTER = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()


class Packed(NamedTuple):
    """A kernel that Python calls."""

    symbol: str
    returns: Any  # of the result
    types: Types
    # of the words that packing makes of each argument, in a group those of its fields
    n_words: tuple[int, ...]


def table_module(functions: Iterable[Packed | str], cells: Mapping[str, str]) -> bytes:
    """Return the bitcode of packed functions, of the table of all functions, and of cells.

    Parameters
    ----------
    functions : iterable of Packed or str
        Str: the symbol of code whose address goes into the table as it is.
    cells : mapping of str to str
        The symbols of cells, and of the code that each leads to.
    """
    module = ir.Module("functions")
    module.triple = llvm.get_process_triple()
    addresses = []
    for number, function in enumerate(functions):
        if isinstance(function, Packed):
            code = _packed_function(module, f"packed.{number}", function)
        else:
            code = _symbol(module, function)
        addresses.append(code.bitcast(_POINTER))
    table = ir.ArrayType(_POINTER, len(addresses))
    _constant(module, FUNCTIONS, ir.Constant(table, addresses))
    for cell, symbol in cells.items():
        _constant(module, cell, _symbol(module, symbol).ptrtoint(_WORD))
    _fill_cell(module)
    return _bitcode(module)


def _bitcode(module: ir.Module) -> bytes:
    bitcode: bytes = llvm.parse_assembly(str(module)).as_bitcode()
    return bitcode


def _constant(module: ir.Module, name: str, value: Any) -> None:
    variable = ir.GlobalVariable(module, value.type, name)
    variable.global_constant = True
    variable.initializer = value


def _symbol(module: ir.Module, symbol: str) -> Any:
    """Return the code that goes by a symbol, whatever its type."""
    if symbol in module.globals:
        return module.globals[symbol]
    return ir.Function(module, ir.FunctionType(ir.VoidType(), []), symbol)


def _fill_cell(module: ir.Module) -> None:
    """Write what machine code calls if a cell is empty: none is."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_POINTER, _WORD]), FILL_CELL)
    builder = ir.IRBuilder(function.append_basic_block())
    builder.call(cgutils.get_or_insert_function(module, _TRAP, "llvm.trap"), [])
    builder.unreachable()


_TRAP = ir.FunctionType(ir.VoidType(), [])


def _packed_function(module: ir.Module, name: str, packed: Packed) -> ir.Function:
    """Write ``int32 function(void *arguments, void *result)``."""
    context, convention = cpu_target.target_context, cpu_target.target_context.call_conv
    function = ir.Function(module, ir.FunctionType(_INT32, [_POINTER, _POINTER]), name)
    words, result = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    values = []
    for kind, n_words in zip(packed.types, packed.n_words, strict=True):
        size = _size_of_words(kind)
        expected = size_of(context, kind.group) if isinstance(kind, Reference) else size
        if 8 * n_words != expected:
            raise TypeError(f"{packed.symbol} takes {kind}, of which packing makes {n_words} words")
        values.append(_value(builder, kind, words))
        words = at(builder, words, size)
    returns = packed.returns
    if returns.name not in RESULTS:
        known = ", ".join(RESULTS)
        raise TypeError(f"{packed.symbol} returns {returns}, and Python can read {known}")
    kind = convention.get_function_type(returns, packed.types)
    code = cgutils.get_or_insert_function(module, kind, packed.symbol)
    status, value = convention.call_function(builder, code, returns, packed.types, values)
    if returns != types.none:
        builder.store(value, builder.bitcast(result, value.type.as_pointer()))
    builder.ret(builder.zext(status.is_error, _INT32))
    return function


def _size_of_words(kind: Any) -> int:
    """Return the number of bytes that the words of an argument take."""
    if isinstance(kind, types.BaseTuple):
        return sum(map(_size_of_words, kind.types))
    size: int = size_of(cpu_target.target_context, kind)
    return size


def _value(builder: Any, kind: Any, words: Any) -> Any:
    """Write what makes the value of an argument of its words."""
    context = cpu_target.target_context
    if not isinstance(kind, types.BaseTuple):
        return load(context, builder, kind, words)
    items = []
    for inner in kind.types:
        items.append(_value(builder, inner, words))
        words = at(builder, words, _size_of_words(inner))
    return context.make_tuple(builder, kind, items)


def processor_module() -> bytes:
    """Return the bitcode of what asks the processor for its features.

    ``void sklboost_processor(int64 leaf, int64 subleaf, int32 registers[4])`` gives what the
    instruction CPUID does, of leaf -1 what XGETBV does; zeros on other architectures than x86-64.
    """
    module = ir.Module("processor")
    module.triple = llvm.get_process_triple()
    kind = ir.FunctionType(ir.VoidType(), [_WORD, _WORD, _INT32.as_pointer()])
    function = ir.Function(module, kind, PROCESSOR)
    leaf, subleaf, registers = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    if not IS_X86_64:
        _store_all(builder, [_INT32(0)] * 4, registers)
    else:
        selectors = [builder.trunc(number, _INT32) for number in (leaf, subleaf)]
        asks_for_kept = builder.icmp_signed("==", leaf, _WORD(REGISTERS_KEPT))
        with builder.if_else(asks_for_kept) as (kept, features):
            with kept:
                _store_all(builder, _ask(builder, "xgetbv", "ad", "c", selectors[1:]), registers)
            with features:
                _store_all(builder, _ask(builder, "cpuid", "abcd", "ac", selectors), registers)
    builder.ret_void()
    return _bitcode(module)


def _ask(builder: Any, instruction: str, outputs: str, inputs: str, values: list[Any]) -> list[Any]:
    """Write an instruction that takes and gives registers eax to edx, named by their letters."""
    constraints = [f"={{{letter}x}}" for letter in outputs]
    constraints += [f"{{{letter}x}}" for letter in inputs]
    gives = ir.LiteralStructType([_INT32] * len(outputs))
    kind = ir.FunctionType(gives, [_INT32] * len(inputs))
    given = builder.asm(kind, instruction, ",".join(constraints), values, side_effect=True)
    return [builder.extract_value(given, index) for index in range(len(outputs))]


def _store_all(builder: Any, values: list[Any], registers: Any) -> None:
    for index, value in enumerate(values):
        builder.store(value, builder.gep(registers, [_WORD(index)]))
