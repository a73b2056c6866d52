"""Why a split was kept or pruned, and why a leaf was not split: sentences, and their numbers."""

import math
from typing import NamedTuple

from sklboost.engine.structs import TreeParams
from sklboost.inspection.derivation.grown_tree import GrownTree
from sklboost.inspection.derivation.steps import Line, Step, given, number


class PruningSettings(NamedTuple):
    """The user's settings of pruning, from those of a tree."""

    gamma: float
    pruning: str


def settings_of(params: TreeParams) -> PruningSettings:
    """`gamma` and `pruning`, which a tree knows as two gains."""
    if params.prune_gain == -math.inf:
        # the least gain that is grown is above 0 whatever gamma is
        smallest = math.nextafter(0.0, 1.0)
        return PruningSettings(0.0 if params.grow_gain == smallest else params.grow_gain, "pre")
    return PruningSettings(params.prune_gain, "full" if params.grow_gain == -math.inf else "post")


def gain_beneath(tree: GrownTree, top: int) -> tuple[float, int]:
    """Sum of the gains of a branch without what gamma removed, and its number of splits."""
    total, n_splits, waiting = 0.0, 0, [top]
    while waiting:
        node = waiting.pop()
        if tree.nodes.left[node] >= 0 and not tree.goes_by_gamma[node]:
            total += float(tree.nodes.gain[node])
            n_splits += 1
            waiting += tree.children(node)
    return total, n_splits


def verdict(tree: GrownTree, node: int) -> list[Line]:
    """Whether a split was kept, and why."""
    settings = settings_of(tree.params)
    gamma = given("gamma", "γ", settings.gamma)
    if not tree.is_split[node]:
        return [gamma, *_why_removed(tree, node), where_rows_end(tree, node)]
    return [gamma, _why_kept(tree, node, settings)]


def _why_kept(tree: GrownTree, node: int, settings: PruningSettings) -> str:
    gain, gamma = float(tree.nodes.gain[node]), settings.gamma
    if settings.pruning == "pre":
        return f'Kept: gain {number(gain)} > 0 and ≥ gamma {number(gamma)} (pruning="pre").'
    if gain >= gamma:
        return f"Kept: gain {number(gain)} ≥ gamma {number(gamma)}."
    below = [child for child in tree.children(node) if tree.is_split[child]]
    names = " and ".join(f"node {child}" for child in below)
    return (
        f"Kept, although gain {number(gain)} < gamma {number(gamma)}: pruning goes from the "
        f"bottom up, and the split of {names} beneath it stays."
    )


def where_rows_end(tree: GrownTree, node: int) -> str:
    """Which leaf has the rows of a node that pruning removed, or made a leaf."""
    top = _leaf_above(tree, node)
    return "Its rows end here: it is a leaf." if top == node else f"Its rows end in node {top}."


def _leaf_above(tree: GrownTree, node: int) -> int:
    """The leaf of the model that a node removed by pruning is part of."""
    return next(above for above in tree.path(node) if not tree.is_split[above])


def _why_removed(tree: GrownTree, node: int) -> list[Line]:
    gain, gamma = float(tree.nodes.gain[node]), tree.params.prune_gain
    if tree.goes_by_gamma[node]:
        gains = f"gain {number(gain)} < gamma {number(gamma)}"
        return [f"Pruned: {gains}, and no split beneath it stays."]
    top = _leaf_above(tree, node)
    if top not in tree.known:
        tree.known[top] = gain_beneath(tree, top)
    total, n_splits = tree.known[top]
    alpha, cover = tree.params.ccp_alpha, float(tree.nodes.cover[0])
    where = "its branch" if top == node else f"the branch of node {top}, which it is part of,"
    values = {"n": float(n_splits), "a": alpha, "H_0": cover}
    name = "what n splits have to gain together, a being ccp_alpha and H_0 the cover of the root"
    splits = f"{n_splits} split{'s' * (n_splits > 1)}"
    return [
        f"Pruned: the {splits} of {where} gain {number(total)} together, too little for "
        "cost-complexity pruning.",
        Step(name, "cost", "n · a · H_0", values, n_splits * alpha * cover),
    ]


def why_leaf(tree: GrownTree, node: int) -> str:
    """Why a node was never split, as far as the model tells."""
    params, cover = tree.params, float(tree.nodes.cover[node])
    if node >= tree.n_kept:
        return f"Removed by pruning. {where_rows_end(tree, node)}"
    n_leaves = (len(tree.nodes) + 1) // 2
    if tree.n_forgotten > 0:
        return (
            f"A leaf. Pruning removed {tree.n_forgotten} split{'s' * (tree.n_forgotten > 1)} of "
            "this tree, perhaps the one of this node: keep_pruned=True keeps them."
        )
    if tree.depths[node] >= params.max_depth:
        return f"A leaf: it lies at max_depth, {params.max_depth} splits below the root."
    if n_leaves >= params.max_leaves:
        return f"A leaf: the tree has max_leaves, {n_leaves}, leaves."
    if cover < 2.0 * params.min_child_weight:
        return (
            f"A leaf: its cover {number(cover)} is not enough for two children of "
            f"min_child_weight {number(params.min_child_weight)} each."
        )
    settings, rows = settings_of(params), ""
    if params.min_child_samples > 0:  # a model keeps no numbers of rows to compare it with
        rows = f" and leaves min_child_samples, {params.min_child_samples}, rows on both sides"
    if settings.pruning == "full":
        return f"A leaf: no split of it{rows} is possible."
    least = f" and at least gamma {number(settings.gamma)}" if settings.pruning == "pre" else ""
    return f"A leaf: no split that is allowed{rows} gains more than 0{least}."


def cover_lines(tree: GrownTree, node: int) -> list[Line]:
    """Compare the covers of the children with min_child_weight."""
    least, n_outputs = tree.params.min_child_weight, tree.n_outputs
    mean = f", the mean of {n_outputs} outputs," if n_outputs > 1 else ""
    lines: list[Line] = [
        f"Cover H of the {side} child{mean} is {number(float(tree.nodes.cover[child]))} ≥ "
        f"min_child_weight {number(least)}: the split is allowed."
        for child, side in zip(tree.children(node), ("left", "right"), strict=True)
    ]
    if tree.params.min_child_samples > 0:
        rows = tree.params.min_child_samples
        lines.append(f"Both children have at least min_child_samples, {rows}, rows.")
    return lines
