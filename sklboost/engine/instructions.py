"""Instructions of the processor that NumPy and numba have no names for.

Each is a plain Python function, which runs where nothing is compiled; the LLVM instructions that
numba compiles a call of it to are further down.
"""

import functools
import sys
from pathlib import Path

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, type_callable

from sklboost.engine.compiler.digests import UNKNOWN, hash_of
from sklboost.engine.compiler.linking import call_address
from sklboost.engine.compiler.numba_internals import cgutils

_LANES = 64
# Of this module. At import: later the file may be that of a newer version.
_DIGEST = hash_of(Path(__file__).read_text("utf-8")) if Path(__file__).is_file() else UNKNOWN


# --- as Python runs them


def at_least(values, threshold):
    """Compare 64 numbers with one: bit i of the word (uint64) is 1 if ``values[i] >= threshold``.

    `values` is a contiguous array of at least 64 floats or unsigned integers, `threshold` of the
    same dtype.
    """
    return np.packbits(values[:_LANES] >= threshold, bitorder="little").view(np.uint64)[0]


def above(values, threshold):
    """Compare 64 numbers as :func:`at_least`: bit i is 1 if ``values[i] > threshold``."""
    return np.packbits(values[:_LANES] > threshold, bitorder="little").view(np.uint64)[0]


def add_where(numbers, bits, value):
    """Add `value` to those of 64 numbers (uint8) whose bit in `bits` (uint64) is 1."""
    bytes_ = np.array([bits], dtype=np.uint64).view(np.uint8)
    numbers[:_LANES] += np.unpackbits(bytes_, bitorder="little") * np.uint8(value)


def load_lanes(values, start, lanes):
    """Return a tuple of neighbouring int64 from ``values[start]`` on, as many as `lanes` has.

    `lanes` is a tuple of any whole numbers; what counts is its length, which the compiler knows.
    """
    return tuple(values[start + np.uint64(lane)] for lane in range(len(lanes)))


def add_lanes(cells, place, values, sign):
    """Add each of a tuple of int64, times `sign`, to ``cells[place]`` and the cells behind it."""
    for lane, value in enumerate(values):
        cells[place + np.uint64(lane)] += sign * value


def trailing_zeros(bits):
    """Return the position of the lowest 1 among the 64 bits of `bits` (uint64, not 0)."""
    return np.uint64((int(bits) & -int(bits)).bit_length() - 1)


def atomic_add(array, index, value):
    """Add `value` to ``array[index]`` (int64) at once and return what was there before."""
    before = array[index]
    array[index] += value
    return before


def atomic_load(array, index):
    """Return ``array[index]`` (int64) as the other threads last stored it."""
    return array[index]


def atomic_store(array, index, value):
    """Store `value` in ``array[index]`` (int64) so that the other threads see it."""
    array[index] = value


def prefetch(array, row, column):
    """Ask the processor to fetch an element of `array`; if that is 1-D, `column` is ignored."""


def yield_processor():
    """Let another thread run on this processor."""


# --- as numba compiles them


def _compiled_as(function, *details):
    """Compile calls of `function` to the code that the decorated one returns.

    That one gets the types of the arguments and returns the signature and a function that writes
    the code, which depends on `details` and the text of this module. numba's ``intrinsic`` with
    ``overload`` would do the same, and compile a function of one line around each, for each
    combination of types.
    """

    def register(type_call):
        @type_callable(function)
        def _type(context):
            @functools.wraps(function)  # numba asks for the names of the parameters
            def type_signature(*kinds):
                return type_call(*kinds)[0]

            return type_signature

        @lower_builtin(function, types.VarArg(types.Any))
        def _write(context, builder, signature, args):
            return type_call(*signature.args)[1](context, builder, signature, args)

        function.digest_part = lambda: _DIGEST and f"{function.__qualname__}{details} {_DIGEST}"
        return type_call

    return register


def by_address(*kinds):
    """Compile calls of a function to calls of the code at its first argument, an address.

    The decorated function is ``call(address, ...)``. Where nothing is compiled, the address is the
    function that is called. The code returns an int64; -2 is returned for it if it raised.

    Parameters
    ----------
    kinds : numba types
        Of the arguments after the address.
    """

    def decorate(call):
        @_compiled_as(call, *kinds)
        def _type_call(address, *arguments):
            def codegen(context, builder, signature, args):
                called = types.int64(*kinds)
                status, result = call_address(context, builder, args[0], called, args[1:])
                return builder.select(status.is_ok, result, ir.Constant(result.type, -2))

            return types.int64(types.int64, *kinds), codegen

        return call

    return decorate


def _element_pointer(context, builder, array_type, array, *indices):
    """Return the address of ``array[indices]``."""
    struct = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, array_type, struct, indices)


@_compiled_as(trailing_zeros)
def _type_trailing_zeros(bits):
    def codegen(context, builder, signature, args):
        undefined_for_zero = ir.IntType(1)(1)
        return builder.cttz(args[0], undefined_for_zero)

    return types.uint64(types.uint64), codegen


@_compiled_as(atomic_add)
def _type_atomic_add(array, index, value):
    def codegen(context, builder, signature, args):
        pointer = _element_pointer(context, builder, signature.args[0], args[0], args[1])
        return builder.atomic_rmw("add", pointer, args[2], "seq_cst")

    return types.int64(array, types.intp, types.int64), codegen


@_compiled_as(atomic_load)
def _type_atomic_load(array, index):
    def codegen(context, builder, signature, args):
        pointer = _element_pointer(context, builder, signature.args[0], args[0], args[1])
        return builder.load_atomic(pointer, "seq_cst", 8)

    return types.int64(array, types.intp), codegen


@_compiled_as(atomic_store)
def _type_atomic_store(array, index, value):
    def codegen(context, builder, signature, args):
        pointer = _element_pointer(context, builder, signature.args[0], args[0], args[1])
        builder.store_atomic(args[2], pointer, "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64), codegen


@_compiled_as(prefetch)
def _type_prefetch(array, row, column):
    def codegen(context, builder, signature, args):
        indices = args[1 : 1 + array.ndim]
        pointer = _element_pointer(context, builder, signature.args[0], args[0], *indices)
        byte_pointer = ir.IntType(8).as_pointer()
        int32 = ir.IntType(32)
        declaration = ir.FunctionType(ir.VoidType(), [byte_pointer, int32, int32, int32])
        function = cgutils.get_or_insert_function(builder.module, declaration, "llvm.prefetch.p0")
        # read access, keep in every cache level, data (not instructions)
        arguments = [builder.bitcast(pointer, byte_pointer), int32(0), int32(3), int32(1)]
        builder.call(function, arguments)
        return context.get_dummy_value()

    return types.void(array, row, column), codegen


def _lanes(builder, pointer, element, alignment):
    """Load 64 neighbouring elements as one vector."""
    vector = ir.VectorType(element, _LANES)
    loaded = builder.load(builder.bitcast(pointer, vector.as_pointer()))
    loaded.align = alignment
    return loaded


def _splat(builder, value):
    """Return a vector of 64 times the same value."""
    undefined = ir.Constant(ir.VectorType(value.type, _LANES), ir.Undefined)
    first = builder.insert_element(undefined, value, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), _LANES), [0] * _LANES)
    return builder.shuffle_vector(first, undefined, zeros)


def _compare_lanes(operator, values):
    """Return signature and code of a comparison of 64 elements with one."""

    def codegen(context, builder, signature, args):
        data = context.make_array(values)(context, builder, args[0]).data
        element = context.get_data_type(values.dtype)
        lanes = _lanes(builder, data, element, values.dtype.bitwidth // 8)
        is_float = isinstance(values.dtype, types.Float)
        compare = builder.fcmp_ordered if is_float else builder.icmp_unsigned
        return builder.bitcast(
            compare(operator, lanes, _splat(builder, args[1])), ir.IntType(_LANES)
        )

    return types.uint64(values, values.dtype), codegen


@_compiled_as(at_least)
def _type_at_least(values, threshold):
    return _compare_lanes(">=", values)


@_compiled_as(above)
def _type_above(values, threshold):
    return _compare_lanes(">", values)


@_compiled_as(add_where)
def _type_add_where(numbers, bits, value):
    def codegen(context, builder, signature, args):
        data = context.make_array(numbers)(context, builder, args[0]).data
        lanes = _lanes(builder, data, ir.IntType(8), 1)
        chosen = builder.bitcast(args[1], ir.VectorType(ir.IntType(1), _LANES))
        zeros = ir.Constant(lanes.type, [0] * _LANES)
        total = builder.add(lanes, builder.select(chosen, _splat(builder, args[2]), zeros))
        builder.store(total, builder.bitcast(data, lanes.type.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(numbers, types.uint64, types.uint8), codegen


def _vector_pointer(context, builder, array_type, array, index, n_lanes):
    """Return the address of the vector of int64 that begins at ``array[index]``, and its type.

    A vector of one is the number itself: its address can be part of the instruction that uses it.
    """
    word = ir.IntType(64)
    kind = word if n_lanes == 1 else ir.VectorType(word, n_lanes)
    pointer = _element_pointer(context, builder, array_type, array, index)
    return builder.bitcast(pointer, kind.as_pointer()), kind


@_compiled_as(load_lanes)
def _type_load_lanes(values, start, lanes):
    def codegen(context, builder, signature, args):
        array_type, n_lanes = signature.args[0], len(lanes)
        pointer, _ = _vector_pointer(context, builder, array_type, args[0], args[1], n_lanes)
        loaded = builder.load(pointer)
        loaded.align = 8
        parts = [loaded]
        if n_lanes > 1:
            parts = [builder.extract_element(loaded, ir.IntType(32)(i)) for i in range(n_lanes)]
        return context.make_tuple(builder, signature.return_type, parts)

    return types.UniTuple(types.int64, len(lanes))(values, types.uint64, lanes), codegen


@_compiled_as(add_lanes)
def _type_add_lanes(cells, place, values, sign):
    def codegen(context, builder, signature, args):
        array_type, n_lanes = signature.args[0], len(values)
        pointer, kind = _vector_pointer(context, builder, array_type, args[0], args[1], n_lanes)
        added = builder.mul(builder.extract_value(args[2], 0), args[3])
        if n_lanes > 1:
            # the compiler sees that this is the vector that was loaded
            added, signs = ir.Constant(kind, ir.Undefined), ir.Constant(kind, ir.Undefined)
            for i in map(ir.IntType(32), range(n_lanes)):
                value = builder.extract_value(args[2], i.constant)
                added = builder.insert_element(added, value, i)
                signs = builder.insert_element(signs, args[3], i)
            added = builder.mul(added, signs)
        before = builder.load(pointer)
        before.align = 8
        builder.store(builder.add(before, added), pointer, align=8)
        return context.get_dummy_value()

    return types.void(cells, types.uint64, values, types.int64), codegen


@_compiled_as(yield_processor)
def _type_yield_processor():
    name = "SwitchToThread" if sys.platform == "win32" else "sched_yield"

    def codegen(context, builder, signature, args):
        declaration = ir.FunctionType(ir.IntType(32), [])
        builder.call(cgutils.get_or_insert_function(builder.module, declaration, name), [])
        return context.get_dummy_value()

    return types.void(), codegen
