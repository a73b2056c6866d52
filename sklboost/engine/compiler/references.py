"""Groups of arrays by reference: a kernel gets a pointer to a group, not its hundreds of fields.

A group (a NamedTuple) lies in memory as a C struct whose members take 8 bytes or several of them. A
group within it lies there as well, so that reading that one is adding a number to the pointer. A
field is loaded where a kernel reads it. The memory is a caller's, and nothing writes to it while
the kernel runs; LLVM is told so (``invariant.load``) and can keep what it has read.

Whether Python may write to the arrays of a group does not count: a model that is mapped into memory
runs the kernels that all models run.
"""

import functools
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import NativeValue, lower_cast, models, register_model, unbox

from sklboost.engine.compiler.caching import full_name, hash_of
from sklboost.engine.compiler.numba_internals import (
    AttributeTemplate,
    BaseNamedTuple,
    Conversion,
    infer_getattr,
    lower_getattr_generic,
)

_WORD = 8
_BYTE_POINTER = ir.IntType(8).as_pointer()


class Reference(types.Type):
    """A pointer to a group, a NamedTuple type of numba."""

    def __init__(self, group: Any):
        self.group = group
        # References are compared by name, where numba compares and hashes the types of all fields.
        # Short, since symbols are made of it; the same in every process.
        super().__init__(f"Reference({group.instance_class.__name__}-{hash_of(full_name(group))})")

    def can_convert_from(self, typingctx: Any, other: Any) -> Any:
        """Return safe for a group itself, which can be given where a pointer is asked for."""
        return Conversion.safe if self._is_to(other) else None

    def unify(self, typingctx: Any, other: Any) -> Any:
        """Return the type of a variable that is either this or a group made here: a group.

        Not a pointer: what a kernel makes in a loop is in the same place each time.
        """
        return other if self._is_to(other) else None

    def _is_to(self, other: Any) -> bool:
        # not `other == self.group`: of two classes that were made alike, references are the same
        return isinstance(other, BaseNamedTuple) and reference_to(other) == self


def by_reference(kind: Any) -> Any:
    """Return the type of a pointer to a group for a group's type; others as they are."""
    return reference_to(kind) if isinstance(kind, BaseNamedTuple) else kind


@functools.cache
def reference_to(group: Any) -> Reference:
    """Return the type of a pointer to a group: the same for arrays that are read-only."""
    return Reference(_writable(group))


def _writable(kind: Any) -> Any:
    """Return the type that a field has in a group."""
    if isinstance(kind, types.Array):
        return kind.copy(readonly=False)
    if isinstance(kind, BaseNamedTuple):
        return types.BaseTuple.from_types(map(_writable, kind.types), kind.instance_class)
    return kind


def holds_reference(kind: Any) -> bool:
    """Whether values of a type are or contain pointers to groups."""
    inner = [*getattr(kind, "types", ()), *filter(None, [getattr(kind, "type", None)])]
    return isinstance(kind, Reference) or any(map(holds_reference, inner))


@register_model(Reference)
class _ReferenceModel(models.PrimitiveModel):
    """In machine code a reference is a pointer to bytes."""

    def __init__(self, manager, reference):
        super().__init__(manager, reference, _BYTE_POINTER)


@functools.cache
def size_of(context, kind):
    """Return the number of bytes that a value of this type takes within a group."""
    if isinstance(kind, BaseNamedTuple):
        return sum(size_of(context, field) for field in kind.types)
    size = context.get_abi_sizeof(context.get_value_type(kind))
    return -(-size // _WORD) * _WORD


@functools.cache
def _offset(context, group, index):
    return sum(size_of(context, field) for field in group.types[:index])


def at(builder, pointer, offset):
    """Return a pointer to so many bytes behind what a pointer to bytes points to."""
    return builder.gep(pointer, [ir.IntType(64)(offset)], inbounds=True) if offset else pointer


def _store(context, builder, kind, value, pointer):
    """Write a value, a group field by field, to where a pointer to bytes points."""
    if not isinstance(kind, BaseNamedTuple):
        place = builder.bitcast(pointer, context.get_value_type(kind).as_pointer())
        builder.store(value, place, align=_WORD)
        return
    for index, field in enumerate(kind.types):
        item = builder.extract_value(value, index)
        _store(context, builder, field, item, at(builder, pointer, _offset(context, kind, index)))


def load(context, builder, kind, pointer):
    """Return the value, not a group, to whose words a pointer to bytes points."""
    place = builder.bitcast(pointer, context.get_value_type(kind).as_pointer())
    return builder.load(place, align=_WORD)


def _allocate(context, builder, group):
    """Return a pointer to room for a group in the frame of the function that is being built."""
    n_words = max(1, size_of(context, group) // _WORD)
    # Not numba's alloca_once, which fills what it allocates with zeros: in an inlined kernel that
    # would be at each call, a seventh of the time of split search at 1,000 rows.
    with builder.goto_entry_block():
        slot = builder.alloca(ir.ArrayType(ir.IntType(64), n_words))
        slot.align = _WORD
        return builder.bitcast(slot, _BYTE_POINTER)


# --- in kernels


@infer_getattr
class _ReferenceAttributes(AttributeTemplate):
    """A reference has the fields of the group; groups in it are references again."""

    key = Reference

    def generic_resolve(self, reference, name):
        group = reference.group
        if name in group.fields:
            return by_reference(group.types[group.fields.index(name)])
        return None


@lower_getattr_generic(Reference)
def _load_field(context, builder, reference, pointer, name):
    group = reference.group
    index = group.fields.index(name)
    kind = group.types[index]
    place = at(builder, pointer, _offset(context, group, index))
    if isinstance(kind, BaseNamedTuple):
        return place
    loaded = load(context, builder, kind, place)
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


@lower_cast(BaseNamedTuple, Reference)
def _refer(context, builder, group, reference, value):
    pointer = _allocate(context, builder, reference.group)
    _store(context, builder, group, value, pointer)
    return pointer


@lower_cast(Reference, BaseNamedTuple)
def _copy(context, builder, reference, group, pointer):
    fields = []
    for name, kind in zip(group.fields, group.types, strict=True):
        field = _load_field(context, builder, reference, pointer, name)
        fields.append(context.cast(builder, field, by_reference(kind), kind))
    return context.make_tuple(builder, group, fields)


# --- from Python


@unbox(Reference)
def _unpack(reference, group, c):
    pointer = _allocate(c.context, c.builder, reference.group)
    fill = _filler(c, reference.group)
    return NativeValue(pointer, is_error=c.builder.call(fill, [group, pointer]))


def _filler(c, group):
    """Return a function that writes a NamedTuple of Python's to memory; it returns 1 if it cannot.

    One function for each type of group: in a single one for all fields of all arguments LLVM takes
    many times as long.
    """
    name = f"fill.{reference_to(group).name}"
    module = c.builder.module
    if name in module.globals:
        return module.globals[name]
    kind = ir.FunctionType(ir.IntType(1), [c.pyapi.pyobj, _BYTE_POINTER])
    function = ir.Function(module, kind, name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    pyapi = c.context.get_python_api(builder)
    within = c._replace(builder=builder, pyapi=pyapi)
    python, pointer = function.args
    has_failed = ir.IntType(1)(0)
    for index, field in enumerate(group.types):
        item = pyapi.tuple_getitem(python, index)
        place = at(builder, pointer, _offset(c.context, group, index))
        if isinstance(field, BaseNamedTuple):
            failed = builder.call(_filler(within, field), [item, place])
        else:
            native = within.unbox(field, item)
            _store(c.context, builder, field, native.value, place)
            failed = native.is_error
        has_failed = builder.or_(has_failed, failed)
    builder.ret(has_failed)
    return function
