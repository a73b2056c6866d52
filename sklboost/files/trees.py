"""Our trees as a section of a model file, and back, with every link checked.

Numbers of nodes and of splits follow one another, tree after tree. A split has its children side by
side, so only the left one is written; leaves have nothing of a split. ``docs/reference/
model_file.md`` is the description for readers.
"""

import math
from typing import Any

import numpy as np

from sklboost.engine.model import (
    LINEAR_TERM_DTYPE,
    NODE_DTYPE,
    OUTPUT_DTYPE,
    LinearLeaves,
    Trees,
)
from sklboost.engine.structs import PARAMS_DTYPE, records
from sklboost.files.sections import LARGEST_SCORE, Section
from sklboost.tree.predict.category_bits import all_listed_categories, bits_of_categories
from sklboost.tree.predict.trees import Sums, narrow_integers, pack_sums

_OF_SPLITS = ("feature", "threshold", "default_left", "gain")
_SUMS = ("gradient", "cover")
_SUMS_OF_OUTPUTS = ("gradient", "hessian")
# Of sums: as large as they become, and beyond the powers of two that float64 has.
_LARGEST_SUM, _LARGEST_POWER = 2**32, 1200
_SETTINGS = PARAMS_DTYPE.names or ()
_MOST = 2**31 - 2  # nodes are numbered by int32
SCORES = (-LARGEST_SCORE, LARGEST_SCORE)
_NOT_NEGATIVE = (0.0, np.finfo(np.float64).max)
_SHARE = (math.nextafter(0.0, 1.0), 1.0)
_GAIN = (-np.inf, np.inf)
_FLAG, _COUNT = (0, 1), (0, np.iinfo(np.int64).max)
# Of the settings of trees, the least and the most.
_LIMITS: dict[str, tuple[Any, Any]] = {
    **{name: _COUNT if PARAMS_DTYPE[name].kind == "i" else _NOT_NEGATIVE for name in _SETTINGS},
    **dict.fromkeys(("grow_gain", "prune_gain"), _GAIN),
    **dict.fromkeys(("gradient_based", "extra_trees", "best_first"), _FLAG),
    **dict.fromkeys(("linear_tree", "multi_output"), _FLAG),
    **dict.fromkeys(("subsample", "colsample_bytree", "colsample_bylevel"), _SHARE),
    "colsample_bynode": _SHARE,
    "max_delta_step": (0.0, np.inf),
    "num_parallel_tree": (1, _MOST),
}
# Of those that older files do not have.
_DEFAULTS = {"min_child_samples": 0}


# --- to documents


def trees_document(trees: Trees) -> dict[str, Any]:
    """Return the document of trees."""
    nodes, counts = np.asarray(trees.nodes), np.diff(trees.starts)
    is_split = nodes["left"] >= 0
    splits = nodes[is_split]
    document: dict[str, Any] = {
        "n_nodes": _narrow(counts),
        "left": _narrow(nodes["left"]),
        **{name: _narrow(splits[name]) for name in _OF_SPLITS},
        "value": np.ascontiguousarray(nodes["value"]),
        **{name: _sums_document(nodes[name], counts) for name in _SUMS},
        "n_pruned": _narrow(trees.n_pruned),
        "settings": _settings_document(np.asarray(trees.params)),
    }
    listed, codes = all_listed_categories(trees.bits)
    if len(codes) > 0:
        document["categories"] = {
            "n_codes": _narrow(listed[is_split]),
            "codes": _narrow(codes),
        }
    if trees.outputs.shape[1] > 0:
        outputs = np.asarray(trees.outputs)
        document["outputs"] = {
            "n_outputs": outputs.shape[1],
            "value": outputs["value"].ravel(),
            **{name: _sums_document(outputs[name], counts) for name in _SUMS_OF_OUTPUTS},
        }
    if trees.linear is not None:
        document["linear"] = _linear_document(trees.linear)
    if trees.unpruned is not None:
        document["unpruned"] = trees_document(trees.unpruned)
    return document


def _narrow(numbers: np.ndarray) -> np.ndarray:
    """Return integers in a small type; XGBoost 2 does not open a UBJSON with int8 or int16."""
    narrowed = narrow_integers(numbers)
    return narrowed.astype(np.int32) if narrowed.dtype in (np.int8, np.int16) else narrowed


def _sums_document(values: np.ndarray, counts: np.ndarray) -> Any:
    """Return sums of the nodes as integers and, for each tree, a power of two if that is exact."""
    packed = pack_sums(np.ascontiguousarray(values), counts)
    if not isinstance(packed, Sums):
        return packed.ravel()
    integers, exponents = (_narrow(part.ravel()) for part in packed)
    return {"integers": integers, "exponents": exponents}


def _settings_document(params: np.ndarray) -> dict[str, Any]:
    """Return the settings of trees; those of trees in a row that have the same once."""
    is_new = np.append(True, params[1:] != params[:-1])[: len(params)]
    firsts = np.flatnonzero(is_new)
    columns = {name: _narrow(params[firsts][name]) for name in params.dtype.names or ()}
    return {"n_trees": _narrow(np.diff(firsts, append=len(params))), **columns}


def _linear_document(linear: LinearLeaves) -> dict[str, Any]:
    terms = np.asarray(linear.terms)
    return {
        "n_terms": _narrow(np.diff(linear.starts)),
        **{name: _narrow(terms[name]) for name in LINEAR_TERM_DTYPE.names or ()},
        "shift": linear.shifts,
        "least": np.ascontiguousarray(linear.limits[:, 0]),
        "most": np.ascontiguousarray(linear.limits[:, 1]),
    }


# --- from documents


def read_trees(section: Section, n_categories: np.ndarray, n_outputs: int) -> Trees:
    """Return the trees of a section.

    Parameters
    ----------
    section : Section
    n_categories : ndarray of int64, shape (n_features,)
        Number of codes of each feature; 0 for a feature of numbers.
    n_outputs : int
        Raw scores per row.

    Raises
    ------
    ModelFileError
        If a number is out of range, or nodes are no trees.
    """
    trees, unpruned = _read_trees(section, n_categories, n_outputs), section.get("unpruned")
    if unpruned is None:
        return trees
    grown = _read_trees(unpruned, n_categories, n_outputs)
    _check_pruned(unpruned, trees, grown)
    return trees._replace(unpruned=grown)


def _read_trees(section: Section, n_categories: np.ndarray, n_outputs: int) -> Trees:
    counts = section["n_nodes"].integers(1, _MOST)
    if len(counts) == 0:
        section["n_nodes"].fail("there is no tree")
    n_nodes = int(counts.sum())
    left = section["left"].integers(-1, _MOST, n_nodes)
    _check_links(section["left"], left, counts)
    is_split = left >= 0
    n_splits = int(is_split.sum())
    nodes = records(n_nodes, NODE_DTYPE)
    nodes.left, nodes.right = left, np.where(is_split, left + 1, -1)
    feature = section["feature"].integers(0, len(n_categories) - 1, n_splits)
    default_left = section["default_left"].integers(0, 1, n_splits)
    threshold = section["threshold"].numbers(n_splits, finite=False)
    gain = section["gain"].numbers(n_splits, limits=SCORES)
    of_leaf = dict(feature=-1, default_left=0, threshold=np.nan, gain=0.0)
    of_split = dict(feature=feature, default_left=default_left, threshold=threshold, gain=gain)
    for name, of_leaves in of_leaf.items():
        nodes[name] = of_leaves
        nodes[name][is_split] = of_split[name]
    nodes.value = section["value"].numbers(n_nodes, limits=SCORES)
    nodes.cover = _read_hessians(section["cover"], counts, 1)[:, 0]
    nodes.gradient = _read_gradients(section["gradient"], counts, 1)[:, 0]
    settings = _read_settings(section["settings"], len(counts), n_outputs)
    n_tree_outputs = n_outputs if settings.multi_output[0] == 1 and n_outputs > 1 else 0
    linear = _read_linear(section.get("linear"), n_nodes, len(n_categories))
    if linear is not None and n_tree_outputs > 0:
        section["linear"].fail("vector trees have constant leaves")
    return Trees(
        nodes=nodes,
        starts=np.append(0, np.cumsum(counts)),
        n_pruned=section["n_pruned"].integers(0, _MOST, len(counts)),
        params=settings,
        outputs=_read_outputs(section, nodes, counts, n_tree_outputs),
        bits=_read_categories(section, is_split, threshold, n_categories[feature]),
        linear=linear,
    )


def _check_pruned(section: Section, trees: Trees, grown: Trees) -> None:
    """Check that pruning trees gives these: from the roots down all splits that are left."""
    if not np.array_equal(trees.params, grown.params):
        section.fail("must have the settings of the trees after pruning")
    splits = np.flatnonzero(trees.nodes["left"] >= 0)
    children = (trees.nodes["left"] + np.repeat(trees.starts[:-1], np.diff(trees.starts))).tolist()
    grown_left = grown.nodes["left"]
    grown_roots = np.repeat(grown.starts[:-1], np.diff(grown.starts))
    grown_children = np.where(grown_left < 0, -1, grown_left + grown_roots).tolist()
    # of each node the place among those before pruning; parents come before their children
    places = np.zeros(len(trees.nodes), dtype=np.int64).tolist()
    for root, place in zip(trees.starts[:-1].tolist(), grown.starts[:-1].tolist(), strict=True):
        places[root] = place
    for node in splits.tolist():
        child = grown_children[places[node]]
        places[children[node]], places[children[node] + 1] = child, child + 1
        if child < 0:
            section.fail("must have all splits of the trees after pruning")
    after = trees.nodes[splits]
    before = grown.nodes[np.array(places, dtype=np.int64)[splits]]
    same = (before["threshold"] == after["threshold"]) | np.isnan(after["threshold"])
    if not (same & (before["feature"] == after["feature"])).all():
        section.fail("must have all splits of the trees after pruning")


def _check_links(section: Section, left: np.ndarray, counts: np.ndarray) -> None:
    """Check that each node but the root is the child of one node, which comes before it.

    With siblings side by side the left children are the odd numbers, each once.
    """
    starts = np.cumsum(counts) - counts
    splits = np.flatnonzero(left >= 0)
    tree_of = np.repeat(np.arange(len(counts)), counts)
    own = splits - starts[tree_of[splits]]
    behind = left[splits] > own
    if not behind.all():
        i = int(splits[behind.argmin()])
        section.fail(f"node {i} of all comes behind its child")
    n_splits = np.bincount(tree_of[splits], minlength=len(counts))
    is_odd = left[splits] % 2 == 1
    inside = left[splits] + 1 < counts[tree_of[splits]]
    children = np.sort(left[splits] + starts[tree_of[splits]])
    is_tree = is_odd.all() and inside.all() and (np.diff(children) > 0).all()
    if not is_tree or (counts != 2 * n_splits + 1).any():
        section.fail("the nodes of a tree must each be the child of one other node, but the root")


def _read_settings(section: Section, n_trees: int, n_outputs: int) -> np.recarray:
    repeats = section["n_trees"].integers(1, n_trees)
    if repeats.sum() != n_trees:
        section["n_trees"].fail(f"must add up to {n_trees} trees")
    runs = records(len(repeats), PARAMS_DTYPE)
    for name, limits in _LIMITS.items():
        if name in _DEFAULTS and section.get(name) is None:
            runs[name] = _DEFAULTS[name]
        elif PARAMS_DTYPE[name].kind == "i":
            runs[name] = section[name].integers(*limits, len(repeats))
        else:
            runs[name] = section[name].numbers(len(repeats), finite=False, limits=limits)
    for name in ("num_parallel_tree", "multi_output"):
        if len(set(runs[name].tolist())) > 1:
            section[name].fail("must be the same for all trees")
    per_output = int(runs.num_parallel_tree[0])
    per_round = per_output if runs.multi_output[0] == 1 else per_output * n_outputs
    if n_trees % per_round != 0:
        section.fail(f"{n_trees} trees are no whole number of rounds of {per_round}")
    return np.repeat(runs, repeats).view(np.recarray)


def _read_gradients(section: Section, counts: np.ndarray, n_outputs: int) -> np.ndarray:
    """Return sums of gradients, NaN where they are not known, as in models of other libraries."""
    sums = _read_sums(section, counts, n_outputs)
    if np.isinf(sums).any():
        section.fail("a sum is infinite")
    return sums


def _read_hessians(section: Section, counts: np.ndarray, n_outputs: int) -> np.ndarray:
    """Return sums of hessians."""
    sums = _read_sums(section, counts, n_outputs)
    if not ((sums >= 0.0) & (sums < np.inf)).all():
        section.fail("a sum is negative, or not finite")
    return sums


def _read_sums(section: Section, counts: np.ndarray, n_outputs: int) -> np.ndarray:
    """Return sums of the nodes, float64 of shape (n_nodes, n_outputs)."""
    size = int(counts.sum()) * n_outputs
    if not isinstance(section.value, dict):
        return section.numbers(size, finite=False).reshape(-1, n_outputs)
    integers = section["integers"].integers(-_LARGEST_SUM, _LARGEST_SUM, size)
    exponents = section["exponents"].integers(
        -_LARGEST_POWER, _LARGEST_POWER, len(counts) * n_outputs
    )
    parts = (part.reshape(-1, n_outputs) for part in (integers, exponents))
    return Sums(*parts).floats(counts)


def _read_outputs(
    section: Section, nodes: np.recarray, counts: np.ndarray, n_tree_outputs: int
) -> np.recarray:
    if n_tree_outputs == 0:
        return records((len(nodes), 0), OUTPUT_DTYPE)
    given = section["outputs"]
    given["n_outputs"].integer(n_tree_outputs, n_tree_outputs)
    size = len(nodes) * n_tree_outputs
    values = given["value"].numbers(size, limits=SCORES)  # before room is made for so many
    outputs = records((len(nodes), n_tree_outputs), OUTPUT_DTYPE)
    outputs["value"] = values.reshape(outputs.shape)
    outputs["gradient"] = _read_gradients(given["gradient"], counts, n_tree_outputs)
    outputs["hessian"] = _read_hessians(given["hessian"], counts, n_tree_outputs)
    if (outputs["value"][:, 0] != nodes.value).any():
        given["value"].fail("those of the first output must be the values of the nodes")
    return outputs


def _read_categories(
    section: Section, is_split: np.ndarray, threshold: np.ndarray, n_categories: np.ndarray
) -> Any:
    """Return the sets of categories; splits without threshold have one, of numbers there is none.

    `threshold` and `n_categories` are those of the splits.
    """
    by_category = np.isnan(threshold)
    given = section.get("categories")
    n_codes = np.zeros(len(threshold), dtype=np.int64)
    codes = np.empty(0, dtype=np.int64)
    if given is not None:
        n_codes = given["n_codes"].integers(0, _MOST, len(threshold))
        codes = given["codes"].integers(0, _MOST, int(n_codes.sum()))
    if ((n_codes > 0) & ~by_category).any() or (by_category & (n_categories == 0)).any():
        section["threshold"].fail(
            "must be a number where a split has no set of categories, NaN where it has one"
        )
    split_of = np.repeat(np.arange(len(n_codes)), n_codes)
    if given is not None and (codes >= n_categories[split_of]).any():
        given["codes"].fail("a category is not one of its feature")
    if given is not None and ((np.diff(codes) <= 0) & (np.diff(split_of) == 0)).any():
        given["codes"].fail("the categories of a split must increase")
    of_nodes = np.zeros(len(is_split), dtype=np.int64)
    of_nodes[is_split] = n_codes
    return bits_of_categories(of_nodes, codes, bool(by_category.any()))


def _read_linear(section: Section | None, n_nodes: int, n_features: int) -> LinearLeaves | None:
    if section is None:
        return None
    n_terms = section["n_terms"].integers(0, n_features, n_nodes)
    feature = section["feature"].integers(0, n_features - 1, int(n_terms.sum()))
    terms = records(len(feature), LINEAR_TERM_DTYPE)
    terms.feature, terms.slope = feature, section["slope"].numbers(len(terms))
    terms.centre = section["centre"].numbers(len(terms))
    # not limited in models of other libraries
    least = section["least"].numbers(n_nodes, finite=False, limits=(-np.inf, SCORES[1]))
    most = section["most"].numbers(n_nodes, finite=False, limits=(SCORES[0], np.inf))
    if not (least <= most).all():
        section["least"].fail("must not be above 'most'")
    shifts, starts = section["shift"].numbers(n_nodes), np.append(0, np.cumsum(n_terms))
    return LinearLeaves(starts, shifts, np.column_stack([least, most]), terms)
