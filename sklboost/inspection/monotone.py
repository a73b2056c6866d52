"""Proof that a model is monotone in a feature, from its finished trees.

In: a model. Out: for each feature that was asked about, the trees that are not monotone in it.

The one idea: a leaf's way says which values each feature may have there: an interval, or a set of
levels, and whether missing values come along. Two leaves can be reached by rows that differ in one
feature only if their ways agree in all others, and then they lie on the two sides of a split on
that feature. So of each such split, every leaf on the left that agrees with a leaf on the right is
compared with it. A tree passes if and only if it is monotone. The raw score is a sum of trees,
added in the same order for all rows, and rounding keeps order: where all trees pass, so does the
sum, to the last bit. The other way round this does not hold: trees may fail that make up for one
another.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sklboost.engine.model import Model
from sklboost.tree.predict.category_bits import listed_categories


class Violation(NamedTuple):
    """Two leaves of a tree in the wrong order: of all such pairs, one of the largest difference.

    Attributes
    ----------
    tree : int
        Counted from 0 over all rounds and outputs.
    lower_leaf, upper_leaf : int
        Nodes of that tree: where rows come with a smaller, and with a larger value.
    step : float
        Value of the upper leaf less that of the lower one.
    """

    tree: int
    lower_leaf: int
    upper_leaf: int
    step: float


@dataclass(frozen=True)
class FeatureProof:
    """What was found out about one feature.

    Attributes
    ----------
    sign : int
        1: the model was to rise with it, -1: to fall.
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
        """Give a line for each feature."""
        lines = [f"MonotoneReport: {'holds' if self.holds else 'does not hold'}"]
        for name, proof in self.features.items():
            line = f"  {name} ({proof.sign:+d}): "
            if proof.holds:
                line += f"all {proof.n_trees} trees"
            else:
                worst = max(proof.violations, key=lambda own: abs(own.step))
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
    """Check every tree of a model.

    Parameters
    ----------
    model : Model
    signs : mapping of int to int
        1 or -1 by the number of the feature.
    names : sequence of str
        Of all features, for the report; one that several have gets its number.
    n_categories : sequence of int
        Of all features, 0 for numbers. Empty: all are numbers.
    """
    starts = model.tree_starts
    violations: dict[int, list[Violation]] = {feature: [] for feature in signs}
    for tree in range(model.n_trees):
        nodes = model.nodes[starts[tree] : starts[tree + 1]].view(np.recarray)
        on_categories = np.flatnonzero((nodes.left >= 0) & np.isnan(nodes.threshold)).tolist()
        listed = {
            node: listed_categories(model.tops.bits, starts[tree] + node) for node in on_categories
        }
        ways = _ways(nodes, listed, n_categories)
        values = model.values[:, starts[tree] : starts[tree + 1]]
        for feature, sign in signs.items():
            pairs = [_worst_pair(nodes, own, ways, feature, sign) for own in values]
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


class _Ways(NamedTuple):
    """What the way to each node of a tree says of the features that the tree is split on.

    The thresholds of a feature cut its values into pieces, numbered from 0. The pieces of a
    category are its levels, and they can come to a node in any selection.

    Attributes
    ----------
    features : ndarray of int32, shape (n_own,)
    start, stop : ndarray of int64, shape (n_nodes, n_own)
        A node's pieces. Of categories they mean nothing, and are the same for all nodes.
    missing : ndarray of bool, shape (n_nodes, n_own)
        Whether missing values come there.
    levels : dict of int to ndarray of bool, shape (n_nodes, n_pieces)
        For each place in `features` of a category, which of the levels come there that some split
        lists; then, as one, all the others, if there are any.
    """

    features: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    missing: np.ndarray
    categories: dict[int, np.ndarray]


def _ways(
    nodes: np.recarray, listed: Mapping[int, np.ndarray], n_categories: Sequence[int]
) -> _Ways:
    """Follow all ways; `listed` are the levels that go left where a node is split on a category."""
    splits = np.flatnonzero(nodes.left >= 0)  # a leaf's feature is -1
    features = np.unique(nodes.feature[splits])
    shape = (len(nodes), len(features))
    ways = _Ways(features, np.zeros(shape, int), np.zeros(shape, int), np.ones(shape, bool), {})
    of_feature = [splits[nodes.feature[splits] == feature] for feature in features]
    thresholds = [np.unique(nodes.threshold[own]) for own in of_feature]
    pieces = {}  # the levels that are listed, of each category
    for own, cuts in enumerate(thresholds):
        # nothing is less than -inf: the piece before that threshold has no values
        ways.start[0, own], ways.stop[0, own] = int(cuts[0] == -np.inf), len(cuts) + 1
        if np.isnan(cuts[0]):
            pieces[own] = np.unique(
                np.concatenate([listed[node] for node in of_feature[own].tolist()])
            )
            n_pieces = min(len(pieces[own]) + 1, n_categories[features[own]])
            ways.categories[own] = np.ones((len(nodes), n_pieces), bool)
    for node in splits.tolist():  # parents come before their children
        left, right = nodes.left[node], nodes.right[node]
        own = int(np.searchsorted(features, nodes.feature[node]))
        for of_all in (ways.start, ways.stop, ways.missing, *ways.categories.values()):
            of_all[left], of_all[right] = of_all[node], of_all[node]
        if own in pieces:
            goes_left = np.isin(pieces[own], listed[node])
            goes_left = np.append(goes_left, False)[: ways.categories[own].shape[1]]
            ways.categories[own][left] &= goes_left
            ways.categories[own][right] &= ~goes_left
        else:
            cut = 1 + np.searchsorted(thresholds[own], nodes.threshold[node])
            ways.stop[left, own] = min(ways.stop[node, own], cut)
            ways.start[right, own] = max(ways.start[node, own], cut)
        ways.missing[right if nodes.default_left[node] else left, own] = False
    return ways


def _worst_pair(
    nodes: np.recarray, values: np.ndarray, ways: _Ways, feature: int, sign: int
) -> tuple[int, int, float] | None:
    """Find, of the pairs of leaves in the wrong order, one whose `values` differ the most.

    Gives the leaf of the smaller feature values, that of the larger ones, and the step in value.
    """
    worst = None
    own = int(np.searchsorted(ways.features, feature))
    if own == len(ways.features) or ways.features[own] != feature:
        return None
    has_values = ways.start[:, own] < ways.stop[:, own]
    for split in np.flatnonzero(nodes.feature == feature):
        left, right = (
            [leaf for leaf in _leaves_under(nodes, child) if has_values[leaf]]
            for child in (nodes.left[split], nodes.right[split])
        )
        if not left or not right or (sign * values[left]).max() <= (sign * values[right]).min():
            continue
        for lower in left:
            steps = values[right] - values[lower]
            is_wrong = (sign * steps < 0) & _agree(ways, lower, right, own)
            for upper, step in zip(np.array(right)[is_wrong], steps[is_wrong], strict=True):
                if worst is None or abs(step) > abs(worst[2]):
                    worst = lower, int(upper), float(step)
    return worst


def _agree(ways: _Ways, leaf: int, others: list[int], except_for: int) -> np.ndarray:
    """Tell for each of the other leaves whether a row may differ from one here in one feature."""
    first = np.maximum(ways.start[leaf], ways.start[others])
    agrees = first < np.minimum(ways.stop[leaf], ways.stop[others])
    for own, categories in ways.categories.items():
        agrees[:, own] = (categories[leaf] & categories[others]).any(axis=1)
    agrees |= ways.missing[leaf] & ways.missing[others]
    agrees[:, except_for] = True
    return agrees.all(axis=1)


def _leaves_under(nodes: np.recarray, top: int) -> list[int]:
    """List the leaves that lie under a node, or the node if it is one."""
    leaves, waiting = [], [int(top)]
    while waiting:
        node = waiting.pop()
        if nodes.left[node] < 0:
            leaves.append(node)
        else:
            waiting += [int(nodes.left[node]), int(nodes.right[node])]
    return leaves
