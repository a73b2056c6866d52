"""Proof that a model is monotone in a feature, from its finished trees.

The path to a leaf says which values each feature may have there: an interval, or a set of
categories, and whether missing values are among them. Two leaves can be reached by rows that differ
in one feature only if their paths agree in all others, and then they lie on the two sides of a
split on that feature. So for each such split, every leaf on the left is compared with every leaf on
the right that it agrees with. A tree passes if and only if it is monotone.

The raw score is a sum of trees, added in the same order for all rows, and rounding keeps order:
where all trees pass, so does the sum, to the last bit. The converse does not hold: trees that fail
may make up for one another.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sklboost.engine.model import Model
from sklboost.tree.predict.category_bits import listed_categories


class Violation(NamedTuple):
    """Two leaves of a tree in the wrong order: of all such pairs, one of the largest difference."""

    tree: int  # counted from 0 over all rounds and outputs
    # nodes of that tree: the leaves of rows with the smaller, and with the larger value
    lower_leaf: int
    upper_leaf: int
    step: float  # value of the upper leaf less the value of the lower one


@dataclass(frozen=True)
class FeatureProof:
    """Whether all trees are monotone in one feature, and the violations if not.

    Attributes
    ----------
    sign : int
        1: checked to be increasing, -1: decreasing.
    n_trees : int
        Trees that were checked.
    violations : tuple of Violation
        One for each tree that is not monotone in it.
    """

    sign: int
    n_trees: int
    violations: tuple[Violation, ...]

    @property
    def holds(self) -> bool:
        """Whether all trees are monotone in the feature."""
        return not self.violations


@dataclass(frozen=True)
class MonotoneReport:
    """Whether a model is monotone in some features.

    Attributes
    ----------
    features : dict of str to FeatureProof
        By name.
    """

    features: dict[str, FeatureProof]

    @property
    def holds(self) -> bool:
        """Whether all trees are monotone in all of the features."""
        return all(proof.holds for proof in self.features.values())

    def __repr__(self) -> str:
        """Return a line for each feature."""
        lines = [f"MonotoneReport: {'holds' if self.holds else 'does not hold'}"]
        for name, proof in self.features.items():
            line = f"  {name} ({proof.sign:+d}): "
            if proof.holds:
                line += f"all {proof.n_trees} trees"
            else:
                worst = max(proof.violations, key=lambda violation: abs(violation.step))
                line += (
                    f"not in {len(proof.violations)} of {proof.n_trees} trees; worst in tree "
                    f"{worst.tree}, from leaf {worst.lower_leaf} to leaf {worst.upper_leaf}: "
                    f"{worst.step:+.4g}"
                )
            lines.append(line)
        return "\n".join(lines)


def prove_monotone(
    model: Model, signs: Mapping[int, int], names: Sequence[str], n_categories: Sequence[int]
) -> MonotoneReport:
    """Check every tree of a model; `signs` are 1 or -1 by the number of the feature."""
    starts = model.tree_starts
    violations: dict[int, list[Violation]] = {feature: [] for feature in signs}
    for tree in range(model.n_trees):
        nodes = model.nodes[starts[tree] : starts[tree + 1]].view(np.recarray)
        on_categories = np.flatnonzero((nodes.left >= 0) & np.isnan(nodes.threshold)).tolist()
        listed = {
            node: listed_categories(model.tops.bits, starts[tree] + node) for node in on_categories
        }
        paths = _paths(nodes, listed, n_categories)
        values = model.values[:, starts[tree] : starts[tree + 1]]
        for feature, sign in signs.items():
            pairs = [_worst_pair(nodes, output, paths, feature, sign) for output in values]
            wrong = [pair for pair in pairs if pair is not None]
            if wrong:
                worst = max(wrong, key=lambda pair: abs(pair[2]))
                violations[feature].append(Violation(tree, *worst))
    proofs = {}
    for feature, sign in signs.items():
        is_alone = names.count(names[feature]) == 1
        name = names[feature] if is_alone else f"{names[feature]} (column {feature})"
        proofs[name] = FeatureProof(int(sign), model.n_trees, tuple(violations[feature]))
    return MonotoneReport(proofs)


class _Paths(NamedTuple):
    """The values that each node of a tree can have of the features that the tree is split on.

    The thresholds of a feature cut its values into pieces, numbered from 0. The pieces of a feature
    with categories are these, and any set of them can reach a node.
    """

    features: np.ndarray  # int32, shape (n_split,)
    # int64, shape (n_nodes, n_split): A node's pieces. Of categories they mean nothing, and are the
    # same for all nodes.
    start: np.ndarray
    stop: np.ndarray
    missing: np.ndarray  # bool, shape (n_nodes, n_split): whether missing values reach a node
    # dict of int to ndarray of bool, shape (n_nodes, n_pieces): by the place in `features`: which
    # categories reach a node, of those that some split lists; then, as one piece, all others, if
    # there are any
    categories: dict[int, np.ndarray]


def _paths(
    nodes: np.recarray, listed: Mapping[int, np.ndarray], n_categories: Sequence[int]
) -> _Paths:
    """Follow all paths; `listed` are the categories that go left, by node."""
    splits = np.flatnonzero(nodes.left >= 0)  # a leaf's feature is -1
    features = np.unique(nodes.feature[splits])
    shape = (len(nodes), len(features))
    paths = _Paths(features, np.zeros(shape, int), np.zeros(shape, int), np.ones(shape, bool), {})
    of_feature = [splits[nodes.feature[splits] == feature] for feature in features]
    thresholds = [np.unique(nodes.threshold[of_one]) for of_one in of_feature]
    pieces = {}  # the listed categories, by place in `features`
    for place, cuts in enumerate(thresholds):
        # nothing is less than -inf: the piece before that threshold has no values
        paths.start[0, place], paths.stop[0, place] = int(cuts[0] == -np.inf), len(cuts) + 1
        if np.isnan(cuts[0]):
            pieces[place] = np.unique(
                np.concatenate([listed[node] for node in of_feature[place].tolist()])
            )
            n_pieces = min(len(pieces[place]) + 1, n_categories[features[place]])
            paths.categories[place] = np.ones((len(nodes), n_pieces), bool)
    for node in splits.tolist():  # parents come before their children
        left, right = nodes.left[node], nodes.right[node]
        place = int(np.searchsorted(features, nodes.feature[node]))
        for values in (paths.start, paths.stop, paths.missing, *paths.categories.values()):
            values[left], values[right] = values[node], values[node]
        if place in pieces:
            goes_left = np.isin(pieces[place], listed[node])
            goes_left = np.append(goes_left, False)[: paths.categories[place].shape[1]]
            paths.categories[place][left] &= goes_left
            paths.categories[place][right] &= ~goes_left
        else:
            cut = 1 + np.searchsorted(thresholds[place], nodes.threshold[node])
            paths.stop[left, place] = min(paths.stop[node, place], cut)
            paths.start[right, place] = max(paths.start[node, place], cut)
        paths.missing[right if nodes.default_left[node] else left, place] = False
    return paths


def _worst_pair(
    nodes: np.recarray, values: np.ndarray, paths: _Paths, feature: int, sign: int
) -> tuple[int, int, float] | None:
    """Find, of the pairs of leaves in the wrong order, one whose `values` differ the most.

    Returns the leaf of the smaller feature values, that of the larger ones, and the step in value.
    """
    worst = None
    place = int(np.searchsorted(paths.features, feature))
    if place == len(paths.features) or paths.features[place] != feature:
        return None
    has_values = paths.start[:, place] < paths.stop[:, place]
    for split in np.flatnonzero(nodes.feature == feature):
        left, right = (
            np.array([leaf for leaf in leaves_under(nodes, child) if has_values[leaf]], int)
            for child in (nodes.left[split], nodes.right[split])
        )
        largest = (sign * values[left]).max(initial=-np.inf)
        if largest <= (sign * values[right]).min(initial=np.inf):
            continue
        for lower in left.tolist():
            steps = values[right] - values[lower]
            least = 0.0 if worst is None else -abs(worst[2])
            worse = np.flatnonzero(sign * steps < least)
            worse = worse[_agree(paths, lower, right[worse], place)]
            if len(worse) > 0:
                upper = worse[np.argmin(sign * steps[worse])]
                worst = lower, int(right[upper]), float(steps[upper])
    return worst


def _agree(paths: _Paths, leaf: int, others: np.ndarray, except_for: int) -> np.ndarray:
    """Whether rows of a leaf and of each other leaf may be alike in all features but one."""
    first = np.maximum(paths.start[leaf], paths.start[others])
    agrees = first < np.minimum(paths.stop[leaf], paths.stop[others])
    for place, categories in paths.categories.items():
        agrees[:, place] = (categories[leaf] & categories[others]).any(axis=1)
    agrees |= paths.missing[leaf] & paths.missing[others]
    agrees[:, except_for] = True
    return agrees.all(axis=1)


def leaves_under(nodes: np.recarray, top: int) -> list[int]:
    """Return the leaves under a node, or the node if it is a leaf."""
    leaves, waiting = [], [int(top)]
    while waiting:
        node = waiting.pop()
        if nodes.left[node] < 0:
            leaves.append(node)
        else:
            waiting += [int(nodes.left[node]), int(nodes.right[node])]
    return leaves
