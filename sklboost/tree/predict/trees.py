"""Finished trees, cut, copied and joined."""

from collections.abc import Sequence

import numpy as np

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


def first_trees(trees: Trees, n_trees: int) -> Trees:
    """Return the first `n_trees` trees, without a copy."""
    n_nodes = int(trees.starts[n_trees])
    return Trees(
        trees.nodes[:n_nodes],
        trees.starts[: n_trees + 1],
        trees.n_pruned[:n_trees],
        trees.params[:n_trees],
        trees.outputs[:n_nodes],
        first_bits(trees.bits, n_nodes),
        None if trees.linear is None else _first_linear(trees.linear, n_nodes),
        None if trees.unpruned is None else first_trees(trees.unpruned, n_trees),
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
    """Return the trees ``[start, stop)``, or up to the last, without a copy of their nodes.

    Their leaves must be constant.
    """
    trees = first_trees(trees, min(stop, len(trees.n_pruned)))
    node, bits, unpruned = int(trees.starts[start]), trees.bits, trees.unpruned
    if len(bits.starts) > 0:
        word = int(bits.starts[node])
        starts, in_use = bits.starts[node:] - word, bits.in_use
        bits = CategoryBits(starts, bits.numbers[word:], bits.words[word:], in_use)
    return Trees(
        trees.nodes[node:],
        trees.starts[start:] - node,
        trees.n_pruned[start:],
        trees.params[start:],
        trees.outputs[node:],
        bits,
        unpruned=None if unpruned is None else take_trees(unpruned, start, stop),
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


def first_bits(bits: CategoryBits, n_nodes: int) -> CategoryBits:
    """Return the categories that the first nodes send left, without a copy."""
    if len(bits.starts) == 0:
        return NO_BITS
    n_words = bits.starts[n_nodes]
    return CategoryBits(
        bits.starts[: n_nodes + 1], bits.numbers[:n_words], bits.words[:n_words], (1,)
    )


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


def _first_linear(linear: LinearLeaves, n_nodes: int) -> LinearLeaves:
    """Return the linear leaves among the first nodes, without a copy."""
    starts = linear.starts[: n_nodes + 1]
    terms = linear.terms[: starts[-1]].view(np.recarray)
    return LinearLeaves(starts, linear.shifts[:n_nodes], linear.limits[:n_nodes], terms)


def join_linear(parts: Sequence[tuple[LinearLeaves | None, int]]) -> LinearLeaves | None:
    """Join linear leaves, given with their numbers of nodes; None if all leaves are constant."""
    if all(linear is None for linear, _ in parts):
        return None
    known = [linear or _constant_leaves(n_nodes) for linear, n_nodes in parts]
    return LinearLeaves(
        _join_starts([linear.starts for linear in known]),
        np.concatenate([linear.shifts for linear in known]),
        np.concatenate([linear.limits for linear in known]),
        np.concatenate([linear.terms for linear in known]).view(np.recarray),
    )


def _constant_leaves(n_nodes: int) -> LinearLeaves:
    starts = np.zeros(n_nodes + 1, dtype=np.int64)
    limits = np.zeros((n_nodes, 2))
    return LinearLeaves(starts, np.zeros(n_nodes), limits, records(0, LINEAR_TERM_DTYPE))
