"""Pickled models: trees without what follows from the rest, restored to the last bit.

What prediction reads is laid out again. A leaf has nothing of a split, links are small numbers, and
sums of gradients and hessians are what they were added up as: integers times a power of two. So a
node takes about 25 bytes instead of 118.

Only a file of joblib that is not compressed has the arrays of a model as they are: processes that
map it into memory share them.

Whoever makes models imports this module; then ``pickle``, ``joblib`` and ``copy`` know of it.
"""

import copyreg
import io
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from joblib.numpy_pickle import NumpyPickler

from sklboost.engine.model import NODE_DTYPE, OUTPUT_DTYPE, CategoryBits, LinearLeaves, Model, Trees
from sklboost.tree.predict.assembly import assemble_model
from sklboost.tree.predict.trees import Sums, narrow_integers, pack_sums, trees_of

_Reduced = tuple[Callable[..., Any], tuple[Any, ...]]
# What a leaf has instead of a split; the right child comes after the left one.
_NO_SPLIT = dict(threshold=np.nan, gain=0.0, feature=-1, left=-1, default_left=0)
_OF_ALL_NODES = ["value", "gradient", "cover"]
# Sums over the rows of a node, which were integers.
_SUMS = ("gradient", "cover", "hessian")


class _Columns(NamedTuple):
    """Records of nodes, field by field."""

    shape: tuple[int, ...]
    columns: dict[str, Any]

    def records(self, dtype: np.dtype, counts: np.ndarray) -> np.ndarray:
        """Return the records; fields that there is no column of are not set."""
        table = np.empty(self.shape, dtype=dtype)
        for name, column in self.columns.items():
            table[name] = column.floats(counts) if isinstance(column, Sums) else column
        return table


class _Nodes(NamedTuple):
    """Nodes: which are splits, what these have, and what all have."""

    is_split: np.ndarray
    of_splits: dict[str, np.ndarray]
    of_all: _Columns

    def records(self, dtype: np.dtype, counts: np.ndarray) -> np.ndarray:
        """Return the nodes."""
        nodes = self.of_all.records(dtype, counts)
        is_split = np.unpackbits(self.is_split, count=len(nodes)).astype(bool)
        for name, of_leaf in _NO_SPLIT.items():
            nodes[name] = of_leaf
            nodes[name][is_split] = self.of_splits[name]
        nodes["right"] = nodes["left"] + is_split
        return nodes


# --- to pickles


def _reduce_model(model: Model) -> _Reduced:
    return assemble_model, (trees_of(model), model.base_score, model.n_features)


def _reduce_trees(trees: Trees) -> _Reduced:
    counts, params = np.diff(trees.starts), np.asarray(trees.params)
    # settings, which are long, once for all trees in a row that have the same
    is_new = np.append(True, params[1:] != params[:-1])[: len(params)]
    firsts = np.flatnonzero(is_new)
    return _restore_trees, (
        narrow_integers(counts),
        _packed_nodes(np.asarray(trees.nodes), counts),
        narrow_integers(trees.n_pruned),
        params[firsts],
        narrow_integers(np.diff(firsts, append=len(params))),
        _packed(np.asarray(trees.outputs), counts),
        (trees.bits, trees.linear, trees.unpruned),
    )


def _reduce_bits(bits: CategoryBits) -> _Reduced:
    return _restore_bits, (narrow_integers(np.diff(bits.starts, prepend=0)), *bits[1:])


def _reduce_linear(linear: LinearLeaves) -> _Reduced:
    # plain arrays: protocol 5 passes these on without a copy, and no others
    others = map(np.asarray, linear[1:])
    return _restore_linear, (narrow_integers(np.diff(linear.starts, prepend=0)), *others)


def _packed_nodes(nodes: np.ndarray, counts: np.ndarray) -> _Nodes | np.ndarray:
    """Return what is kept of nodes: themselves, if they cannot be restored from less."""
    is_split = nodes["left"] >= 0
    of_splits = {name: narrow_integers(nodes[name][is_split]) for name in _NO_SPLIT}
    packed = _Nodes(np.packbits(is_split), of_splits, _packed(nodes[_OF_ALL_NODES], counts))
    return packed if packed.records(nodes.dtype, counts).tobytes() == nodes.tobytes() else nodes


def _packed(table: np.ndarray, counts: np.ndarray) -> _Columns:
    columns: dict[str, Any] = {
        name: np.ascontiguousarray(table[name]) for name in table.dtype.names or ()
    }
    for name in set(columns).intersection(_SUMS):
        columns[name] = pack_sums(columns[name], counts)
    return _Columns(table.shape, columns)


# --- from pickles


def _restore_trees(
    counts: np.ndarray,
    nodes: _Nodes | np.ndarray,
    n_pruned: np.ndarray,
    params: np.ndarray,
    repeats: np.ndarray,
    outputs: _Columns,
    others: tuple[Any, ...],
) -> Trees:
    return Trees(
        nodes if isinstance(nodes, np.ndarray) else nodes.records(NODE_DTYPE, counts),
        np.append(0, np.cumsum(counts, dtype=np.int64)),
        n_pruned.astype(np.int64),
        np.repeat(params, repeats),
        outputs.records(OUTPUT_DTYPE, counts),
        *others,
    )


def _restore_bits(steps: np.ndarray, *others: Any) -> CategoryBits:
    return CategoryBits(np.cumsum(steps, dtype=np.int64), *others)


def _restore_linear(
    steps: np.ndarray, shifts: np.ndarray, limits: np.ndarray, terms: np.ndarray
) -> LinearLeaves:
    return LinearLeaves(np.cumsum(steps, dtype=np.int64), shifts, limits, terms.view(np.recarray))


# --- files of joblib


def _save_model(pickler: Any, model: Model) -> None:
    """Save a model for joblib: where it can be mapped into memory, as arrays."""
    is_file = isinstance(getattr(pickler.file_handle, "raw", None), io.FileIO)
    reduced = (_restore_arrays, _plain_arrays(model)) if is_file else _reduce_model(model)
    pickler.save_reduce(*reduced, obj=model)


def _plain_arrays(group: Any) -> tuple[Any, ...]:
    """Return the type and the fields of a group, groups in it alike, arrays as joblib maps them."""
    fields = (
        np.asarray(field)
        if isinstance(field, np.ndarray)
        else _plain_arrays(field)
        if hasattr(field, "_fields")
        else field
        for field in group
    )
    return type(group), *fields


def _restore_arrays(kind: Callable[..., Any], *fields: Any) -> Any:
    """Return a group of these fields, whose arrays may be memory maps."""
    restored = []
    for field in fields:
        if isinstance(field, np.ndarray):
            restored.append(field.view(np.ndarray if field.dtype.names is None else np.recarray))
        else:
            is_group = isinstance(field, tuple) and len(field) > 0 and isinstance(field[0], type)
            restored.append(_restore_arrays(*field) if is_group else field)
    return kind(*restored)


for _group, _reduce in [
    (Model, _reduce_model),
    (Trees, _reduce_trees),
    (CategoryBits, _reduce_bits),
    (LinearLeaves, _reduce_linear),
]:
    copyreg.pickle(_group, _reduce)  # type: ignore[arg-type]
# no part of joblib's interface: without it, its files are as all other pickles
getattr(NumpyPickler, "dispatch", {})[Model] = _save_model
