"""The instructions of :mod:`sklboost.engine.instructions` as numba compiles them."""

import functools
import platform
import sys

from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, type_callable

from sklboost.engine.compiler.linking import call_address
from sklboost.engine.compiler.numba_internals import cgutils, normalize_signature
from sklboost.engine.instructions import (
    FEW_LANES,
    LANES,
    WORDS,
    above,
    add_lanes,
    add_where,
    at_least,
    atomic_add,
    atomic_load,
    atomic_store,
    call_packed,
    count_at_most,
    descend,
    item_bytes,
    load_lanes,
    load_word,
    pause,
    prefetch,
    prefetch_l2,
    sum_eight,
    trailing_zeros,
    yield_processor,
)


@functools.cache  # a fit asks for the address of its loss, and numba evaluates the text as Python
def types_of(text):
    """Return numba's types for their names, as in ``"int64, float64[:, ::1]"``."""
    return normalize_signature(f"({text},)")[0]


def _compiled_as(function, *details):
    """Compile calls of `function` to the code that the decorated one returns.

    That one gets the types of the arguments and returns the signature and a function that writes
    the code, which depends on `details`. numba's ``intrinsic`` with ``overload`` would do the same,
    and compile a function of one line around each, for each combination of types.
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

        function.digest_part = lambda: f"{function.__qualname__}{details}"
        return type_call

    return register


def call_by_address(call, types_):
    """Compile calls of a function to calls of the code at its first argument, an address.

    The code returns an int64; -2 is returned for it if it raised. `types_` are the types of
    the arguments after the address, as text.
    """
    kinds = types_of(types_)

    @_compiled_as(call, *kinds)
    def _type_call(address, *arguments):
        def codegen(context, builder, signature, args):
            called = types.int64(*kinds)
            status, result = call_address(context, builder, args[0], called, args[1:])
            return builder.select(status.is_ok, result, ir.Constant(result.type, -2))

        return types.int64(types.int64, *kinds), codegen


def _element_pointer(context, builder, array_type, array, *indices):
    """Return the address of ``array[indices]``."""
    struct = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, array_type, struct, indices)


@_compiled_as(item_bytes)
def _type_item_bytes(array):
    def codegen(context, builder, signature, args):
        return context.get_constant(types.int64, array.dtype.bitwidth // 8)

    return types.int64(array), codegen


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


def _compile_prefetch(function, locality):
    """Compile calls of a function to an instruction that fetches an element of an array.

    LLVM's `locality` is 3 for all levels of cache, 2 for all but the first.
    """

    @_compiled_as(function, locality)
    def _type_prefetch(array, row, column):
        def codegen(context, builder, signature, args):
            indices = args[1 : 1 + array.ndim]
            pointer = _element_pointer(context, builder, signature.args[0], args[0], *indices)
            byte_pointer, int32 = ir.IntType(8).as_pointer(), ir.IntType(32)
            declaration = ir.FunctionType(ir.VoidType(), [byte_pointer, int32, int32, int32])
            llvm_prefetch = cgutils.get_or_insert_function(
                builder.module, declaration, "llvm.prefetch.p0"
            )
            # read access, data (not instructions)
            options = int32(0), int32(locality), int32(1)
            builder.call(llvm_prefetch, [builder.bitcast(pointer, byte_pointer), *options])
            return context.get_dummy_value()

        return types.void(array, row, column), codegen


_compile_prefetch(prefetch, 3)
_compile_prefetch(prefetch_l2, 2)


def _lanes(builder, pointer, element, alignment, n_lanes=LANES):
    """Load neighbouring elements as one vector."""
    vector = ir.VectorType(element, n_lanes)
    loaded = builder.load(builder.bitcast(pointer, vector.as_pointer()))
    loaded.align = alignment
    return loaded


def _splat(builder, value, n_lanes=LANES):
    """Return a vector of so many times the same value."""
    undefined = ir.Constant(ir.VectorType(value.type, n_lanes), ir.Undefined)
    first = builder.insert_element(undefined, value, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), n_lanes), [0] * n_lanes)
    return builder.shuffle_vector(first, undefined, zeros)


def _take(builder, values, others, places):
    """Return the elements at `places` of two vectors; those of `others` come after `values`."""
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), list(places))
    return builder.shuffle_vector(values, others, mask)


def _halves(builder, values):
    """Return the first and the second half of a vector."""
    middle, stop = len(values.type) // 2, len(values.type)
    places = range(middle), range(middle, stop)
    return [_take(builder, values, values, half) for half in places]


def _compare_lanes(operator, values):
    """Return signature and code of a comparison of 64 elements with one."""

    def codegen(context, builder, signature, args):
        pointer = _element_pointer(context, builder, signature.args[0], args[0], args[1])
        element = context.get_data_type(values.dtype)
        lanes = _lanes(builder, pointer, element, values.dtype.bitwidth // 8)
        is_float = isinstance(values.dtype, types.Float)
        compare = builder.fcmp_ordered if is_float else builder.icmp_unsigned
        return builder.bitcast(
            compare(operator, lanes, _splat(builder, args[2])), ir.IntType(LANES)
        )

    return types.uint64(values, types.uint64, values.dtype), codegen


@_compiled_as(at_least)
def _type_at_least(values, start, threshold):
    return _compare_lanes(">=", values)


@_compiled_as(above)
def _type_above(values, start, threshold):
    return _compare_lanes(">", values)


@_compiled_as(count_at_most)
def _type_count_at_most(numbers, start, value):
    def codegen(context, builder, signature, args):
        pointer = _element_pointer(context, builder, signature.args[0], args[0], args[1])
        element = context.get_data_type(numbers.dtype)
        lanes = _lanes(builder, pointer, element, numbers.dtype.bitwidth // 8, FEW_LANES)
        are_at_most = builder.fcmp_ordered("<=", lanes, _splat(builder, args[2], FEW_LANES))
        bits = builder.bitcast(are_at_most, ir.IntType(FEW_LANES))
        return builder.zext(builder.ctpop(bits), ir.IntType(64))

    return types.uint64(numbers, types.uint64, numbers.dtype), codegen


@_compiled_as(add_where)
def _type_add_where(numbers, bits, value):
    def codegen(context, builder, signature, args):
        data = context.make_array(numbers)(context, builder, args[0]).data
        element = context.get_data_type(numbers.dtype)
        lanes = _lanes(builder, data, element, numbers.dtype.bitwidth // 8)
        chosen = builder.bitcast(args[1], ir.VectorType(ir.IntType(1), LANES))
        zeros = ir.Constant(lanes.type, [0] * LANES)
        total = builder.add(lanes, builder.select(chosen, _splat(builder, args[2]), zeros))
        pointer = builder.bitcast(data, lanes.type.as_pointer())
        builder.store(total, pointer, align=numbers.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(numbers, types.uint64, numbers.dtype), codegen


@_compiled_as(descend)
def _type_descend(decisions, places, landings):
    vector = ir.VectorType(ir.IntType(64), WORDS)

    def codegen(context, builder, signature, args):
        data = context.make_array(decisions)(context, builder, args[0]).data
        vectors = builder.bitcast(data, vector.as_pointer())

        def decisions_at(place):
            row = ir.IntType(64)(place)
            if isinstance(places, types.Array):
                pointer = _element_pointer(context, builder, places, args[1], row)
                row = builder.sext(builder.load(pointer), row.type)
            loaded = builder.load(builder.gep(vectors, [row]))
            loaded.align = 8
            return loaded

        def digits_below(place, half):
            # the bits of the landings below a split: each is that of the side a row goes to
            goes_right = decisions_at(place)
            digits = []
            if half > 1:
                left = digits_below(place - half // 2, half // 2)
                right = digits_below(place + half // 2, half // 2)
                for one, other in zip(left, right, strict=True):
                    differ = builder.and_(builder.xor(one, other), goes_right)
                    digits.append(builder.xor(one, differ))
            return [*digits, goes_right]

        digits = digits_below(LANES // 2, LANES // 2)
        zeros = ir.Constant(ir.VectorType(ir.IntType(8), LANES), [0] * LANES)
        first = context.make_array(landings)(context, builder, args[2]).data
        found = builder.bitcast(first, zeros.type.as_pointer())
        for word in range(WORDS):
            total = zeros
            for number, bits in enumerate(digits):
                bit = builder.extract_element(bits, ir.IntType(32)(word))
                is_one = builder.bitcast(bit, ir.VectorType(ir.IntType(1), LANES))
                digit = ir.Constant(zeros.type, [1 << number] * LANES)
                total = builder.or_(total, builder.select(is_one, digit, zeros))
            builder.store(total, builder.gep(found, [ir.IntType(32)(word)]), align=1)
        return context.get_dummy_value()

    return types.void(decisions, places, landings), codegen


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


@_compiled_as(sum_eight)
def _type_sum_eight(cells, start):
    def codegen(context, builder, signature, args):
        n_lanes = 4
        pointer = _element_pointer(context, builder, signature.args[0], args[0], args[1])
        both = _lanes(builder, pointer, ir.IntType(64), 8, 2 * n_lanes)

        zeros = ir.Constant(both.type, [0] * 2 * n_lanes)
        is_negative = builder.icmp_signed("<", both, zeros)
        totals = builder.add(*_halves(builder, both))
        positives = builder.add(*_halves(builder, builder.select(is_negative, zeros, both)))
        # sums and positive sums side by side, so that both are added up by the same instructions
        even = _take(builder, totals, positives, [0, 4, 2, 6])
        odd = _take(builder, totals, positives, [1, 5, 3, 7])
        sums = builder.add(*_halves(builder, builder.add(even, odd)))
        parts = [builder.extract_element(sums, ir.IntType(32)(place)) for place in range(2)]
        return context.make_tuple(builder, signature.return_type, parts)

    return types.UniTuple(types.int64, 2)(cells, types.uint64), codegen


@_compiled_as(load_word)
def _type_load_word(array, row, column):
    def codegen(context, builder, signature, args):
        pointer = _element_pointer(context, builder, signature.args[0], args[0], *args[1:])
        loaded = builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()))
        loaded.align = array.dtype.bitwidth // 8
        return loaded

    return types.uint64(array, types.uint64, types.uint64), codegen


@_compiled_as(call_packed)
def _type_call_packed(function, words):
    def codegen(context, builder, signature, args):
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.IntType(32), [pointer, pointer]).as_pointer()
        room = builder.bitcast(cgutils.alloca_once(builder, ir.IntType(64)), pointer)
        given = [builder.inttoptr(args[1], pointer), room]
        return builder.sext(builder.call(builder.inttoptr(args[0], kind), given), ir.IntType(64))

    return types.int64(types.int64, types.int64), codegen


@_compiled_as(pause)
def _type_pause():
    machine, arguments = platform.machine().lower(), []
    name = "llvm.x86.sse2.pause" if machine in ("x86_64", "amd64") else ""
    if machine in ("aarch64", "arm64"):
        name, arguments = "llvm.aarch64.hint", [ir.IntType(32)(1)]  # the instruction YIELD

    def codegen(context, builder, signature, args):
        if name:
            declaration = ir.FunctionType(ir.VoidType(), [number.type for number in arguments])
            function = cgutils.get_or_insert_function(builder.module, declaration, name)
            builder.call(function, arguments)
        return context.get_dummy_value()

    return types.void(), codegen


@_compiled_as(yield_processor)
def _type_yield_processor():
    name = "SwitchToThread" if sys.platform == "win32" else "sched_yield"

    def codegen(context, builder, signature, args):
        declaration = ir.FunctionType(ir.IntType(32), [])
        builder.call(cgutils.get_or_insert_function(builder.module, declaration, name), [])
        return context.get_dummy_value()

    return types.void(), codegen
