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


def _compiled_as(function, type_signature, *details):
    """Compile calls of `function` to the code that the decorated function writes.

    `type_signature` gives the signature for the types of the arguments; the code depends on
    `details`. numba's ``intrinsic`` with ``overload`` would do the same, and compile a function of
    one line around each, for each combination of types.
    """

    def register(write):
        @type_callable(function)
        def _type(context):
            # numba asks for the names of the parameters
            return functools.wraps(function)(lambda *kinds: type_signature(*kinds))

        lower_builtin(function, types.VarArg(types.Any))(write)
        function.digest_part = lambda: f"{function.__qualname__}{details}"
        return write

    return register


def call_by_address(call, types_):
    """Compile calls of a function to calls of the code at its first argument, an address.

    The code returns an int64; -2 is returned for it if it raised. `types_` are the types of
    the arguments after the address, as text.
    """
    kinds = types_of(types_)

    @_compiled_as(call, lambda address, *arguments: types.int64(types.int64, *kinds), *kinds)
    def _write(context, builder, signature, args):
        called = types.int64(*kinds)
        status, result = call_address(context, builder, args[0], called, args[1:])
        return builder.select(status.is_ok, result, ir.Constant(result.type, -2))


def _element_pointer(context, builder, array_type, array, *indices):
    """Return the address of ``array[indices]``."""
    struct = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, array_type, struct, indices)


def _first_pointer(context, builder, signature, args):
    """Return the address of the element of the first argument that the second one says."""
    return _element_pointer(context, builder, signature.args[0], args[0], args[1])


@_compiled_as(item_bytes, lambda array: types.int64(array))
def _write_item_bytes(context, builder, signature, args):
    return context.get_constant(types.int64, signature.args[0].dtype.bitwidth // 8)


@_compiled_as(trailing_zeros, lambda bits: types.uint64(types.uint64))
def _write_trailing_zeros(context, builder, signature, args):
    undefined_for_zero = ir.IntType(1)(1)
    return builder.cttz(args[0], undefined_for_zero)


@_compiled_as(atomic_add, lambda array, *_: types.int64(array, types.intp, types.int64))
def _write_atomic_add(context, builder, signature, args):
    pointer = _first_pointer(context, builder, signature, args)
    return builder.atomic_rmw("add", pointer, args[2], "seq_cst")


@_compiled_as(atomic_load, lambda array, index: types.int64(array, types.intp))
def _write_atomic_load(context, builder, signature, args):
    pointer = _first_pointer(context, builder, signature, args)
    return builder.load_atomic(pointer, "seq_cst", 8)


@_compiled_as(atomic_store, lambda array, *_: types.void(array, types.intp, types.int64))
def _write_atomic_store(context, builder, signature, args):
    pointer = _first_pointer(context, builder, signature, args)
    builder.store_atomic(args[2], pointer, "seq_cst", 8)
    return context.get_dummy_value()


def _compile_prefetch(function, locality):
    """Compile calls of a function to an instruction that fetches an element of an array.

    LLVM's `locality` is 3 for all levels of cache, 2 for all but the first.
    """

    @_compiled_as(function, types.void, locality)
    def _write_prefetch(context, builder, signature, args):
        indices = args[1 : 1 + signature.args[0].ndim]
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


_compile_prefetch(prefetch, 3)
_compile_prefetch(prefetch_l2, 2)


def _lanes(builder, pointer, element, alignment, n_lanes=LANES):
    """Load neighbouring elements as one vector."""
    vector = ir.VectorType(element, n_lanes)
    return builder.load(builder.bitcast(pointer, vector.as_pointer()), align=alignment)


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


def _compile_comparison(function, operator):
    """Compile calls of a function to a comparison of 64 elements with one."""

    @_compiled_as(function, _of_elements)
    def _write_comparison(context, builder, signature, args):
        values = signature.args[0]
        pointer = _first_pointer(context, builder, signature, args)
        element = context.get_data_type(values.dtype)
        lanes = _lanes(builder, pointer, element, values.dtype.bitwidth // 8)
        is_float = isinstance(values.dtype, types.Float)
        compare = builder.fcmp_ordered if is_float else builder.icmp_unsigned
        return builder.bitcast(
            compare(operator, lanes, _splat(builder, args[2])), ir.IntType(LANES)
        )


def _of_elements(values, start, one):
    """Return the signature of what looks at elements of an array, from one on, and at a number."""
    return types.uint64(values, types.uint64, values.dtype)


_compile_comparison(at_least, ">=")
_compile_comparison(above, ">")


@_compiled_as(count_at_most, _of_elements)
def _write_count_at_most(context, builder, signature, args):
    dtype = signature.args[0].dtype
    pointer = _first_pointer(context, builder, signature, args)
    element = context.get_data_type(dtype)
    lanes = _lanes(builder, pointer, element, dtype.bitwidth // 8, FEW_LANES)
    are_at_most = builder.fcmp_ordered("<=", lanes, _splat(builder, args[2], FEW_LANES))
    bits = builder.bitcast(are_at_most, ir.IntType(FEW_LANES))
    return builder.zext(builder.ctpop(bits), ir.IntType(64))


@_compiled_as(add_where, lambda numbers, *_: types.void(numbers, types.uint64, numbers.dtype))
def _write_add_where(context, builder, signature, args):
    numbers = signature.args[0]
    data = context.make_array(numbers)(context, builder, args[0]).data
    element = context.get_data_type(numbers.dtype)
    lanes = _lanes(builder, data, element, numbers.dtype.bitwidth // 8)
    chosen = builder.bitcast(args[1], ir.VectorType(ir.IntType(1), LANES))
    zeros = ir.Constant(lanes.type, [0] * LANES)
    total = builder.add(lanes, builder.select(chosen, _splat(builder, args[2]), zeros))
    pointer = builder.bitcast(data, lanes.type.as_pointer())
    builder.store(total, pointer, align=numbers.dtype.bitwidth // 8)
    return context.get_dummy_value()


@_compiled_as(descend, types.void)
def _write_descend(context, builder, signature, args):
    decisions, places, landings = signature.args
    vector = ir.VectorType(ir.IntType(64), WORDS)
    data = context.make_array(decisions)(context, builder, args[0]).data
    vectors = builder.bitcast(data, vector.as_pointer())

    def decisions_at(place):
        row = ir.IntType(64)(place)
        if isinstance(places, types.Array):
            pointer = _element_pointer(context, builder, places, args[1], row)
            row = builder.sext(builder.load(pointer), row.type)
        return builder.load(builder.gep(vectors, [row]), align=8)

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


def _vector_pointer(context, builder, signature, args, n_lanes):
    """Return the address of the vector of int64 that begins at ``args[0][args[1]]``, and its type.

    A vector of one is the number itself: its address can be part of the instruction that uses it.
    """
    word = ir.IntType(64)
    kind = word if n_lanes == 1 else ir.VectorType(word, n_lanes)
    pointer = _first_pointer(context, builder, signature, args)
    return builder.bitcast(pointer, kind.as_pointer()), kind


def _of_lanes(values, start, lanes):
    return types.UniTuple(types.int64, len(lanes))(values, types.uint64, lanes)


@_compiled_as(load_lanes, _of_lanes)
def _write_load_lanes(context, builder, signature, args):
    n_lanes = len(signature.args[2])
    pointer, _ = _vector_pointer(context, builder, signature, args, n_lanes)
    loaded = builder.load(pointer, align=8)
    parts = [loaded]
    if n_lanes > 1:
        parts = [builder.extract_element(loaded, ir.IntType(32)(i)) for i in range(n_lanes)]
    return context.make_tuple(builder, signature.return_type, parts)


@_compiled_as(
    add_lanes, lambda cells, _, values, sign: types.void(cells, types.uint64, values, types.int64)
)
def _write_add_lanes(context, builder, signature, args):
    n_lanes = len(signature.args[2])
    pointer, kind = _vector_pointer(context, builder, signature, args, n_lanes)
    added = builder.mul(builder.extract_value(args[2], 0), args[3])
    if n_lanes > 1:
        # the compiler sees that this is the vector that was loaded
        added, signs = ir.Constant(kind, ir.Undefined), ir.Constant(kind, ir.Undefined)
        for i in map(ir.IntType(32), range(n_lanes)):
            value = builder.extract_value(args[2], i.constant)
            added = builder.insert_element(added, value, i)
            signs = builder.insert_element(signs, args[3], i)
        added = builder.mul(added, signs)
    before = builder.load(pointer, align=8)
    builder.store(builder.add(before, added), pointer, align=8)
    return context.get_dummy_value()


@_compiled_as(sum_eight, lambda cells, start: types.UniTuple(types.int64, 2)(cells, types.uint64))
def _write_sum_eight(context, builder, signature, args):
    n_lanes = 4
    pointer = _first_pointer(context, builder, signature, args)
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


@_compiled_as(load_word, lambda array, *_: types.uint64(array, types.uint64, types.uint64))
def _write_load_word(context, builder, signature, args):
    pointer = _element_pointer(context, builder, signature.args[0], args[0], *args[1:])
    word = builder.bitcast(pointer, ir.IntType(64).as_pointer())
    return builder.load(word, align=signature.args[0].dtype.bitwidth // 8)


@_compiled_as(call_packed, lambda function, words: types.int64(types.int64, types.int64))
def _write_call_packed(context, builder, signature, args):
    pointer = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.IntType(32), [pointer, pointer]).as_pointer()
    room = builder.bitcast(cgutils.alloca_once(builder, ir.IntType(64)), pointer)
    given = [builder.inttoptr(args[1], pointer), room]
    return builder.sext(builder.call(builder.inttoptr(args[0], kind), given), ir.IntType(64))


def _call_of_system(context, builder, returns, name, arguments):
    declaration = ir.FunctionType(returns, [number.type for number in arguments])
    builder.call(cgutils.get_or_insert_function(builder.module, declaration, name), arguments)
    return context.get_dummy_value()


@_compiled_as(pause, types.void)
def _write_pause(context, builder, signature, args):
    machine = platform.machine().lower()
    if machine in ("x86_64", "amd64"):
        return _call_of_system(context, builder, ir.VoidType(), "llvm.x86.sse2.pause", [])
    if machine in ("aarch64", "arm64"):
        hint = [ir.IntType(32)(1)]  # the instruction YIELD
        return _call_of_system(context, builder, ir.VoidType(), "llvm.aarch64.hint", hint)
    return context.get_dummy_value()


@_compiled_as(yield_processor, types.void)
def _write_yield_processor(context, builder, signature, args):
    name = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
    return _call_of_system(context, builder, ir.IntType(32), name, [])
