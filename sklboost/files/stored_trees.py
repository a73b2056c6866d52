"""Trees as a section of a model file, and back, with every link and number checked.

Numbers of nodes and of splits follow one another, tree after tree. A split has its children side by
side, so only the left one is written; leaves have nothing of a split. ``docs/reference/
model_file.md`` is the description for readers.
"""

import math
from typing import Any

import numpy as np

from sklboost.engine.model import Trees
from sklboost.engine.structs import PARAMS_DTYPE
from sklboost.files.sections import LARGEST_SCORE, DocumentSection
from sklboost.tree.predict.trees import (
    SUMS,
    SUMS_OF_OUTPUTS,
    decode_sums,
    decode_trees,
    encode_trees,
)

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
    **dict.fromkeys(("gradient_based", "extra_trees", "best_first", "symmetric"), _FLAG),
    **dict.fromkeys(("linear_tree", "multi_output"), _FLAG),
    **dict.fromkeys(("subsample", "colsample_bytree", "colsample_bylevel"), _SHARE),
    "colsample_bynode": _SHARE,
    "max_delta_step": (0.0, np.inf),
    "num_parallel_tree": (1, _MOST),
}
# Of settings that older files do not have.
_DEFAULTS = {"min_child_samples": 0, "symmetric": 0}


def trees_document(trees: Trees) -> dict[str, Any]:
    """Return the document of trees."""
    document: dict[str, Any] = _widened(encode_trees(trees))
    return document


def _widened(value: Any) -> Any:
    """Return arrays without int8 and int16: XGBoost 2 does not open a UBJSON that has them."""
    if isinstance(value, dict):
        return {key: _widened(part) for key, part in value.items()}
    if isinstance(value, np.ndarray) and value.dtype in (np.int8, np.int16):
        return value.astype(np.int32)
    return value


def read_trees(section: DocumentSection, n_categories: np.ndarray, n_outputs: int) -> Trees:
    """Return the trees of a section; ModelFileError if they are none, or a number is out of range.

    `n_categories` is the number of codes of each feature, 0 for a feature of numbers.
    """
    trees = decode_trees(_checked(section, n_categories, n_outputs))
    if (unpruned := section.get("unpruned")) is None:
        return trees
    grown = decode_trees(_checked(unpruned, n_categories, n_outputs))
    _check_pruned(unpruned, trees, grown)
    return trees._replace(unpruned=grown)


def _checked(section: DocumentSection, n_categories: np.ndarray, n_outputs: int) -> dict[str, Any]:
    """Return the arrays of a section for :func:`decode_trees`, without "unpruned"."""
    counts = section["n_nodes"].integers(1, _MOST)
    if len(counts) == 0:
        section["n_nodes"].fail("there is no tree")
    n_nodes = int(counts.sum())
    left = section["left"].integers(-1, _MOST, n_nodes)
    _check_links(section["left"], left, counts)
    n_splits = int((left >= 0).sum())
    settings = _checked_settings(section["settings"], len(counts), n_outputs)
    document: dict[str, Any] = {
        "n_nodes": counts,
        "left": left,
        "feature": section["feature"].integers(0, len(n_categories) - 1, n_splits),
        "threshold": section["threshold"].numbers(n_splits, finite=False),
        "default_left": section["default_left"].integers(0, 1, n_splits),
        "gain": section["gain"].numbers(n_splits, limits=SCORES),
        "value": section["value"].numbers(n_nodes, limits=SCORES),
        **{name: _checked_sums(section, name, counts, 1) for name in SUMS},
        "n_pruned": section["n_pruned"].integers(0, _MOST, len(counts)),
        "settings": settings,
    }
    n_listed = np.zeros(n_splits, dtype=np.int64)
    if (categories := section.get("categories")) is not None:
        document["categories"] = _checked_categories(categories, n_categories[document["feature"]])
        n_listed = document["categories"].get("n_codes", document["categories"].get("n_words"))
    # splits without threshold have a set of categories, of numbers there is none
    by_category = np.isnan(document["threshold"])
    is_number = n_categories[document["feature"]] == 0
    if ((n_listed > 0) & ~by_category).any() or (by_category & is_number).any():
        section["threshold"].fail(
            "must be a number where a split has no set of categories, NaN where it has one"
        )
    is_vector = settings["multi_output"][0] == 1 and n_outputs > 1
    if is_vector:
        document["outputs"] = _checked_outputs(section["outputs"], document, n_outputs)
    if (linear := section.get("linear")) is not None:
        if is_vector:
            linear.fail("vector trees have constant leaves")
        document["linear"] = _checked_linear(linear, n_nodes, len(n_categories))
    return document


def _checked_sums(
    section: DocumentSection, name: str, counts: np.ndarray, n_outputs: int
) -> np.ndarray:
    """Return the sums of that name of all nodes and outputs as floats."""
    given, size = section[name], int(counts.sum()) * n_outputs
    if isinstance(given.value, dict):
        n_exponents = len(counts) * n_outputs
        integers = given["integers"].integers(-_LARGEST_SUM, _LARGEST_SUM, size)
        exponents = given["exponents"].integers(-_LARGEST_POWER, _LARGEST_POWER, n_exponents)
        sums = decode_sums({"integers": integers, "exponents": exponents}, counts)
    else:
        sums = given.numbers(size, finite=False)
    # sums of gradients are NaN where they are not known, as in models of other libraries
    if name == "gradient" and np.isinf(sums).any():
        given.fail("a sum is infinite")
    if name != "gradient" and not ((sums >= 0.0) & (sums < np.inf)).all():
        given.fail("a sum is negative, or not finite")
    return sums


def _checked_categories(
    section: DocumentSection, n_categories: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the sets of categories of splits; `n_categories` are the numbers of their features."""
    if section.get("n_words") is not None:
        return _checked_words(section, n_categories)
    n_codes = section["n_codes"].integers(0, _MOST, len(n_categories))
    codes = section["codes"].integers(0, _MOST, int(n_codes.sum()))
    split_of = np.repeat(np.arange(len(n_codes)), n_codes)
    if (codes >= n_categories[split_of]).any():
        section["codes"].fail("a category is not one of its feature")
    if ((np.diff(codes) <= 0) & (np.diff(split_of) == 0)).any():
        section["codes"].fail("the categories of a split must increase")
    return {"n_codes": n_codes, "codes": codes}


def _checked_words(section: DocumentSection, n_categories: np.ndarray) -> dict[str, np.ndarray]:
    """Return the sets of categories of splits as words of 64 categories, each in two halves."""
    n_words = section["n_words"].integers(0, _MOST, len(n_categories))
    places = section["places"].integers(0, _MOST, int(n_words.sum()))
    halves = section["halves"].integers(0, 2**32 - 1, 2 * len(places))
    split_of = np.repeat(np.arange(len(n_words)), n_words)
    if ((np.diff(places) <= 0) & (np.diff(split_of) == 0)).any():
        section["places"].fail("the words of a split must increase")
    # of each word the last category that is listed
    low, high = halves.reshape(-1, 2).T
    last = np.where(high > 0, 32 + np.frexp(high)[1], np.frexp(low)[1]) - 1
    if (last < 0).any():
        section["halves"].fail("a word lists no category")
    if (64 * places + last >= n_categories[split_of]).any():
        section["halves"].fail("a category is not one of its feature")
    return {"n_words": n_words, "places": places, "halves": halves}


def _checked_outputs(
    section: DocumentSection, document: dict[str, Any], n_outputs: int
) -> dict[str, Any]:
    section["n_outputs"].integer(n_outputs, n_outputs)
    counts, of_nodes = document["n_nodes"], document["value"]
    values = section["value"].numbers(len(of_nodes) * n_outputs, limits=SCORES)
    if (values[::n_outputs] != of_nodes).any():
        section["value"].fail("the values of the first output must be the values of the nodes")
    sums = {name: _checked_sums(section, name, counts, n_outputs) for name in SUMS_OF_OUTPUTS}
    return {"n_outputs": n_outputs, "value": values, **sums}


def _checked_linear(
    section: DocumentSection, n_nodes: int, n_features: int
) -> dict[str, np.ndarray]:
    n_terms = section["n_terms"].integers(0, n_features, n_nodes)
    size = int(n_terms.sum())
    # not limited in models of other libraries
    least = section["least"].numbers(n_nodes, finite=False, limits=(-np.inf, SCORES[1]))
    most = section["most"].numbers(n_nodes, finite=False, limits=(SCORES[0], np.inf))
    if not (least <= most).all():
        section["least"].fail("must not be above 'most'")
    return {
        "n_terms": n_terms,
        "feature": section["feature"].integers(0, n_features - 1, size),
        "slope": section["slope"].numbers(size),
        "centre": section["centre"].numbers(size),
        "shift": section["shift"].numbers(n_nodes),
        "least": least,
        "most": most,
    }


def _checked_settings(
    section: DocumentSection, n_trees: int, n_outputs: int
) -> dict[str, np.ndarray]:
    repeats = section["n_trees"].integers(1, n_trees)
    if repeats.sum() != n_trees:
        section["n_trees"].fail(f"must add up to {n_trees} trees")
    settings = {"n_trees": repeats}
    for name, limits in _LIMITS.items():
        if name in _DEFAULTS and section.get(name) is None:
            settings[name] = np.full(len(repeats), _DEFAULTS[name])
        elif PARAMS_DTYPE[name].kind == "i":
            settings[name] = section[name].integers(*limits, len(repeats))
        else:
            settings[name] = section[name].numbers(len(repeats), finite=False, limits=limits)
    for name in ("num_parallel_tree", "multi_output"):
        if len(set(settings[name].tolist())) > 1:
            section[name].fail("must be the same for all trees")
    per_output = int(settings["num_parallel_tree"][0])
    per_round = per_output if settings["multi_output"][0] == 1 else per_output * n_outputs
    if n_trees % per_round != 0:
        section.fail(f"{n_trees} trees are no whole number of rounds of {per_round}")
    return settings


def _check_pruned(section: DocumentSection, trees: Trees, grown: Trees) -> None:
    """Check that pruning trees gives these: from the roots down all splits that are left."""
    if not np.array_equal(trees.params, grown.params):
        section.fail("must have the settings of the trees after pruning")
    splits = np.flatnonzero(trees.nodes["left"] >= 0)
    children = (trees.nodes["left"] + np.repeat(trees.starts[:-1], np.diff(trees.starts))).tolist()
    grown_left = grown.nodes["left"]
    grown_roots = np.repeat(grown.starts[:-1], np.diff(grown.starts))
    grown_children = np.where(grown_left < 0, -1, grown_left + grown_roots).tolist()
    # of each node the place among the nodes before pruning; parents come before their children
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


def _check_links(section: DocumentSection, left: np.ndarray, counts: np.ndarray) -> None:
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
