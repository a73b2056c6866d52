"""Finished trees: cut, copied, joined, and encoded as what model files and pickles hold.

The code is a few small arrays, which become the same trees again to the last bit. Nothing is kept
that follows from the rest, such as the layout that prediction reads. A leaf has nothing of a split,
siblings lie side by side so that links to left children do, and sums of gradients and hessians are
what they were added up as: integers times a power of two. So a node takes about 25 bytes instead of
118. Model files check what they hold before they are decoded, see
:mod:`sklboost.files.stored_trees`; pickles, which can be trusted or must not be opened, do not.

Whoever makes models imports this module: then ``pickle``, ``joblib`` and ``copy`` know of it.
"""

import copyreg
import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from joblib.numpy_pickle import NumpyPickler

from sklboost.engine.model import (
    LINEAR_TERM_DTYPE,
    NO_BITS,
    NODE_DTYPE,
    OUTPUT_DTYPE,
    CategoryBits,
    LinearLeaves,
    Model,
    Trees,
)
from sklboost.engine.structs import PARAMS_DTYPE, records
from sklboost.tree.predict.assembly import assemble_model
from sklboost.tree.predict.category_bits import all_listed_categories, bits_of_categories


def no_trees() -> Trees:
    """Return an empty sequence of trees."""
    return Trees(
        records(0, NODE_DTYPE),
        np.zeros(1, dtype=np.int64),
        np.empty(0, dtype=np.int64),
        records(0, PARAMS_DTYPE),
        records((0, 0), OUTPUT_DTYPE),
        NO_BITS,
    )


def trees_of(model: Model) -> Trees:
    """Return the trees of a model."""
    return Trees(
        *(model.nodes, model.tree_starts, model.n_pruned, model.params),
        *(model.outputs, model.tops.bits, model.linear, model.unpruned),
    )


def copy_trees(trees: Trees) -> Trees:
    """Copy trees with constant leaves, without those before pruning."""
    bits = trees.bits
    return Trees(
        trees.nodes.copy(),
        trees.starts.copy(),
        trees.n_pruned.copy(),
        trees.params.copy(),
        trees.outputs.copy(),
        CategoryBits(bits.starts.copy(), bits.numbers.copy(), bits.words.copy(), bits.in_use),
    )


def take_trees(trees: Trees, start: int, stop: int) -> Trees:
    """Return the trees ``[start, stop)``, or up to the last, without a copy of their nodes."""
    stop = min(stop, len(trees.n_pruned))
    first, last = trees.starts[[start, stop]].tolist()
    return Trees(
        trees.nodes[first:last],
        trees.starts[start : stop + 1] - first,
        trees.n_pruned[start:stop],
        trees.params[start:stop],
        trees.outputs[first:last],
        take_bits(trees.bits, first, last),
        None if trees.linear is None else _linear_of(trees.linear, first, last),
        None if trees.unpruned is None else take_trees(trees.unpruned, start, stop),
    )


def write_trees(trees: Trees, room: Trees) -> None:
    """Write trees with constant leaves to the front of arrays that are long enough."""
    n_trees, n_nodes, n_words = len(trees.n_pruned), len(trees.nodes), len(trees.bits.words)
    room.nodes[:n_nodes], room.outputs[:n_nodes] = trees.nodes, trees.outputs
    room.starts[: n_trees + 1], room.n_pruned[:n_trees] = trees.starts, trees.n_pruned
    if len(room.bits.starts) > 0:
        room.bits.starts[: n_nodes + 1] = trees.bits.starts if n_words > 0 else 0
        room.bits.numbers[:n_words], room.bits.words[:n_words] = trees.bits[1:3]


def join_trees(parts: Sequence[Trees]) -> Trees:
    """Put trees behind one another; all that are not empty have values for as many outputs."""
    return Trees(
        np.concatenate([part.nodes for part in parts], dtype=NODE_DTYPE),
        _join_starts([part.starts for part in parts]),
        np.concatenate([part.n_pruned for part in parts]),
        np.concatenate([part.params for part in parts], dtype=PARAMS_DTYPE),
        # empty trees do not know for how many outputs they have values
        np.concatenate(
            [part.outputs for part in parts if len(part.nodes) > 0] or [parts[0].outputs]
        ),
        join_bits([(part.bits, len(part.nodes)) for part in parts]),
        join_linear([(part.linear, len(part.nodes)) for part in parts]),
        _join_unpruned(parts),
    )


def _join_starts(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Join the starts of stretches that come behind one another."""
    return np.cumsum(np.concatenate([[0], *map(np.diff, parts)]), dtype=np.int64)


def _join_unpruned(parts: Sequence[Trees]) -> Trees | None:
    """Join trees before pruning; those that do not remember it are taken as they are."""
    if all(part.unpruned is None for part in parts):
        return None
    return join_trees([part.unpruned or part._replace(linear=None) for part in parts])


def take_bits(bits: CategoryBits, start: int, stop: int) -> CategoryBits:
    """Return the categories that the nodes ``[start, stop)`` send left, without a copy of words."""
    if len(bits.starts) == 0:
        return NO_BITS
    starts = bits.starts[start : stop + 1]
    words = slice(starts[0], starts[-1])
    return CategoryBits(starts - starts[0], bits.numbers[words], bits.words[words], (1,))


def join_bits(parts: Sequence[tuple[CategoryBits, int]]) -> CategoryBits:
    """Join sets of categories, given with their numbers of nodes."""
    known = [(bits, n_nodes) for bits, n_nodes in parts if n_nodes > 0]
    if all(len(bits.starts) == 0 for bits, _ in known):
        return NO_BITS
    starts = [
        bits.starts if len(bits.starts) > 0 else np.zeros(n_nodes + 1, dtype=np.int64)
        for bits, n_nodes in known
    ]
    return CategoryBits(
        _join_starts(starts),
        np.concatenate([bits.numbers for bits, _ in known]),
        np.concatenate([bits.words for bits, _ in known]),
        (1,),
    )


def _linear_of(linear: LinearLeaves, start: int, stop: int) -> LinearLeaves:
    """Return the linear leaves among the nodes ``[start, stop)``."""
    starts, nodes = linear.starts[start : stop + 1], slice(start, stop)
    terms = linear.terms[starts[0] : starts[-1]].view(np.recarray)
    return LinearLeaves(starts - starts[0], linear.shifts[nodes], linear.limits[nodes], terms)


def join_linear(parts: Sequence[tuple[LinearLeaves | None, int]]) -> LinearLeaves | None:
    """Join linear leaves, given with their numbers of nodes; None if all leaves are constant."""
    if all(linear is None for linear, _ in parts):
        return None
    known = []
    for linear, n in parts:  # leaves that are constant have no terms
        starts, none = np.zeros(n + 1, dtype=np.int64), records(0, LINEAR_TERM_DTYPE)
        known.append(linear or LinearLeaves(starts, np.zeros(n), np.zeros((n, 2)), none))
    return LinearLeaves(
        _join_starts([linear.starts for linear in known]),
        np.concatenate([linear.shifts for linear in known]),
        np.concatenate([linear.limits for linear in known]),
        np.concatenate([linear.terms for linear in known]).view(np.recarray),
    )


# What splits alone have, and what a leaf has instead.
OF_LEAF = dict(feature=-1, threshold=np.nan, default_left=0, gain=0.0)
# Sums over the rows of a node, which were integers.
SUMS = ("gradient", "cover")
SUMS_OF_OUTPUTS = ("gradient", "hessian")
_DIGITS = 53  # of a float64


# --- encoded


def encode_trees(trees: Trees) -> dict[str, Any]:
    """Return trees as arrays by their names, which ``docs/reference/model_file.md`` describes."""
    nodes, counts = np.asarray(trees.nodes), np.diff(trees.starts)
    is_split = nodes["left"] >= 0
    splits = nodes[is_split]
    # settings once for all trees in a row that have the same
    params = np.asarray(trees.params)
    firsts = np.flatnonzero(np.append(True, params[1:] != params[:-1])[: len(params)])
    document: dict[str, Any] = {
        "n_nodes": narrow_integers(counts),
        "left": narrow_integers(nodes["left"]),
        **{name: narrow_integers(splits[name]) for name in OF_LEAF},
        "value": np.ascontiguousarray(nodes["value"]),
        **{name: encode_sums(nodes[name], counts) for name in SUMS},
        "n_pruned": narrow_integers(trees.n_pruned),
        "settings": {
            "n_trees": narrow_integers(np.diff(firsts, append=len(params))),
            **{name: narrow_integers(params[firsts][name]) for name in PARAMS_DTYPE.names or ()},
        },
    }
    if len(trees.bits.starts) > 0:
        document["categories"] = _encode_sets(trees.bits, is_split)
    if trees.outputs.shape[1] > 0:
        outputs = np.asarray(trees.outputs)
        document["outputs"] = {
            "n_outputs": outputs.shape[1],
            "value": outputs["value"].ravel(),
            **{name: encode_sums(outputs[name], counts) for name in SUMS_OF_OUTPUTS},
        }
    if trees.linear is not None:
        terms = np.asarray(trees.linear.terms)
        document["linear"] = {
            "n_terms": narrow_integers(np.diff(trees.linear.starts)),
            **{name: narrow_integers(terms[name]) for name in LINEAR_TERM_DTYPE.names or ()},
            "shift": np.asarray(trees.linear.shifts),
            "least": np.ascontiguousarray(trees.linear.limits[:, 0]),
            "most": np.ascontiguousarray(trees.linear.limits[:, 1]),
        }
    if trees.unpruned is not None:
        document["unpruned"] = encode_trees(trees.unpruned)
    return document


def decode_trees(document: dict[str, Any]) -> Trees:
    """Return the trees of :func:`encode_trees`."""
    counts, left = document["n_nodes"], document["left"]
    is_split = left >= 0
    nodes = records(len(left), NODE_DTYPE)
    nodes.left = left
    nodes.right = nodes.left + is_split
    for name, of_leaf in OF_LEAF.items():
        nodes[name] = of_leaf
        nodes[name][is_split] = document[name]
    nodes.value = document["value"]
    for name in SUMS:
        nodes[name] = decode_sums(document[name], counts)
    outputs = records((len(nodes), 0), OUTPUT_DTYPE)
    if (of_outputs := document.get("outputs")) is not None:
        outputs = records((len(nodes), of_outputs["n_outputs"]), OUTPUT_DTYPE)
        outputs["value"] = of_outputs["value"].reshape(outputs.shape)
        for name in SUMS_OF_OUTPUTS:
            outputs[name] = decode_sums(of_outputs[name], counts).reshape(outputs.shape)
    runs = records(len(document["settings"]["n_trees"]), PARAMS_DTYPE)
    for name in PARAMS_DTYPE.names or ():
        runs[name] = document["settings"][name]
    categories = document.get("categories")
    has_sets = categories is not None or bool(np.isnan(document["threshold"]).any())
    unpruned = document.get("unpruned")
    return Trees(
        nodes=nodes,
        starts=np.append(0, np.cumsum(counts, dtype=np.int64)),
        n_pruned=document["n_pruned"].astype(np.int64),
        params=np.repeat(runs, document["settings"]["n_trees"]).view(np.recarray),
        outputs=outputs,
        bits=_decode_sets(categories, is_split, has_sets),
        linear=_decode_linear(document.get("linear")),
        unpruned=None if unpruned is None else decode_trees(unpruned),
    )


# Sets of so many categories a word take less room as words.
_MANY_OF_WORD = 32


def _encode_sets(bits: CategoryBits, is_split: np.ndarray) -> dict[str, np.ndarray]:
    """Return the sets of categories of splits: lists of codes, or the words if that is shorter."""
    listed, codes = all_listed_categories(bits)
    if len(codes) <= _MANY_OF_WORD * len(bits.words):
        return {"n_codes": narrow_integers(listed[is_split]), "codes": narrow_integers(codes)}
    return {
        "n_words": narrow_integers(np.diff(bits.starts)[is_split]),
        "places": narrow_integers(bits.numbers),
        "halves": bits.words.astype("<u8").view("<u4").astype(np.uint32),  # the low one first
    }


def _decode_sets(
    sets: dict[str, np.ndarray] | None, is_split: np.ndarray, has_sets: bool
) -> CategoryBits:
    sizes = np.zeros(len(is_split), dtype=np.int64)
    if sets is None or "codes" in sets:
        codes = np.empty(0, dtype=np.int64)
        if sets is not None:
            sizes[is_split], codes = sets["n_codes"], sets["codes"].astype(np.int64)
        return bits_of_categories(sizes, codes, has_sets)
    sizes[is_split] = sets["n_words"]
    return CategoryBits(
        np.append(0, np.cumsum(sizes)),
        sets["places"].astype(np.uint16),
        sets["halves"].astype("<u4").view("<u8").astype(np.uint64),
        (1,),
    )


def _decode_linear(document: dict[str, Any] | None) -> LinearLeaves | None:
    if document is None:
        return None
    terms = records(len(document["feature"]), LINEAR_TERM_DTYPE)
    for name in LINEAR_TERM_DTYPE.names or ():
        terms[name] = document[name]
    return LinearLeaves(
        np.append(0, np.cumsum(document["n_terms"], dtype=np.int64)),
        document["shift"],
        np.column_stack([document["least"], document["most"]]),
        terms,
    )


@np.errstate(all="ignore")
def encode_sums(values: np.ndarray, counts: np.ndarray) -> Any:
    """Return sums of nodes as integers and, for each tree and output, a power of two.

    They are returned as floats where that would not give them back: if they are too large, say.
    """
    plain = np.ascontiguousarray(values).ravel()
    if values.size == 0 or not np.isfinite(values).all():
        return plain
    fractions, exponents = np.frexp(values)
    digits = np.ldexp(fractions, _DIGITS).astype(np.int64)
    # the exponent of the last digit that is not 0
    _, last = np.frexp((digits & -digits).astype(np.float64))
    last += exponents - (_DIGITS + 1)
    last[digits == 0] = np.iinfo(last.dtype).max
    of_trees = np.minimum.reduceat(last, np.cumsum(counts) - counts)
    of_trees[of_trees == np.iinfo(last.dtype).max] = 0  # all are 0
    integers = np.ldexp(values, -np.repeat(of_trees, counts, axis=0))
    if np.abs(integers).max() >= 2.0**32:
        return plain
    document = {
        "integers": narrow_integers(integers.astype(np.int64).ravel()),
        "exponents": narrow_integers(of_trees.ravel()),
    }
    # no zero had a sign, and no power was too small or too large for a float
    return document if decode_sums(document, counts).tobytes() == plain.tobytes() else plain


@np.errstate(all="ignore")
def decode_sums(document: Any, counts: np.ndarray) -> np.ndarray:
    """Return the floats of :func:`encode_sums`; `counts` are the numbers of nodes of the trees."""
    if isinstance(document, np.ndarray):
        return document
    integers, exponents = document["integers"], document["exponents"]
    n_outputs = max(1, len(exponents) // max(1, len(counts)))
    of_nodes = np.repeat(exponents.reshape(-1, n_outputs), counts, axis=0).ravel()
    floats: np.ndarray = np.ldexp(integers.astype(np.float64), of_nodes)
    return floats


def narrow_integers(numbers: np.ndarray) -> np.ndarray:
    """Return integers in the smallest type that holds them; floats as they are, contiguous."""
    if numbers.dtype.kind == "f" or numbers.size == 0:
        return np.ascontiguousarray(numbers)
    low, high = int(numbers.min()), int(numbers.max())
    limits = [np.iinfo(kind) for kind in "BbHhIiQq"]
    return numbers.astype(next(of.dtype for of in limits if of.min <= low and high <= of.max))


# --- pickles


def _reduce_model(model: Model) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    return assemble_model, (trees_of(model), model.base_score, model.n_features)


def _reduce_trees(trees: Trees) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    trees = take_trees(trees, 0, len(trees.n_pruned))  # those of a training have room for others
    document = encode_trees(trees)
    if _are_same(decode_trees(document), trees):
        return decode_trees, (document,)
    return _restore_arrays, _plain_arrays(trees)  # with what a user has changed


def _are_same(one: Any, other: Any) -> bool:
    """Whether groups of arrays have the same bits."""
    if isinstance(one, np.ndarray):
        bits, others = (np.asarray(part).ravel().view(np.uint8) for part in (one, other))
        return one.shape == other.shape and np.array_equal(bits, others)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_are_same, one, other))
    return bool(one == other)


def _save_model(pickler: Any, model: Model) -> None:
    """Save a model for joblib: in a file that is not compressed as arrays.

    Processes that map such a file into memory share them.
    """
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


copyreg.pickle(Model, _reduce_model)
copyreg.pickle(Trees, _reduce_trees)
# no part of joblib's interface: without it, its files are as all other pickles
getattr(NumpyPickler, "dispatch", {})[Model] = _save_model
