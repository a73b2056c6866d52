"""SHAP values by their definition: sums over all sets of features. Slow, plain, the oracle."""

from fractions import Fraction
from itertools import combinations
from math import factorial

import numpy as np

from sklboost.tree.predict.category_bits import listed_categories


def goes_left(model, position, value):
    node = model.nodes[position]
    if np.isnan(value):
        return node.default_left == 1
    if np.isnan(node.threshold):
        return int(value) in listed_categories(model.tops.bits, position)
    return value < node.threshold


def tree_value(model, tree, output, row, known, background):
    """Return what a tree adds to an output where only some features of a row are known."""
    root = model.tree_starts[tree]

    def below(position):
        node = model.nodes[position]
        if node.left < 0:
            return model.values[output, position]
        left, right = root + node.left, root + node.right
        if node.feature in known:
            return below(left if goes_left(model, position, row[node.feature]) else right)
        if background is not None:
            return below(left if goes_left(model, position, background[node.feature]) else right)
        covers = model.nodes[left].cover, model.nodes[right].cover
        return (covers[0] * below(left) + covers[1] * below(right)) / sum(covers)

    return below(root)


def game(model, row, trees, X_background=None):
    """Return a function from sets of features to raw scores less the base score, (n_outputs,)."""

    def value(known):
        total = np.zeros(model.n_outputs)
        backgrounds = [None] if X_background is None else X_background
        for tree in range(*trees):
            first = tree * len(model.values) % model.n_outputs
            for index in range(len(model.values)):
                for other in backgrounds:
                    own = tree_value(model, tree, index, row, known, other)
                    total[first + index] += own / len(backgrounds)
        return total

    values = {}

    def remembered(known):
        if known not in values:
            values[known] = value(known)
        return values[known]

    return remembered


def subsets(features):
    for size in range(len(features) + 1):
        yield from map(frozenset, combinations(features, size))


def shapley_values(game, n_features):
    """Return shape (n_outputs, n_features)."""
    result = []
    for feature in range(n_features):
        total = 0.0
        for known in subsets([f for f in range(n_features) if f != feature]):
            orders = factorial(len(known)) * factorial(n_features - len(known) - 1)
            total += orders / factorial(n_features) * (game(known | {feature}) - game(known))
        result.append(total)
    return np.array(result).T


def interaction_values(game, n_features):
    """Return shape (n_outputs, n_features, n_features)."""
    single = shapley_values(game, n_features)
    result = np.zeros((len(single), n_features, n_features))
    for i, k in combinations(range(n_features), 2):
        for known in subsets([f for f in range(n_features) if f not in (i, k)]):
            orders = factorial(len(known)) * factorial(n_features - len(known) - 2)
            joint = game(known | {i, k}) - game(known | {i}) - game(known | {k}) + game(known)
            result[:, i, k] += orders / (2 * factorial(n_features - 1)) * joint
        result[:, k, i] = result[:, i, k]
    for i in range(n_features):
        result[:, i, i] = single[:, i] - result[:, i].sum(axis=1)
    return result


def exact_values(model, row):
    """Return the SHAP values of a row in one tree, of any depth, in exact rational arithmetic.

    Leaf by leaf: the sets of k features are counted by how much they let through.
    """
    result = np.zeros(model.n_features)
    waiting = [(0, {})]
    while waiting:
        position, conditions = waiting.pop()
        node = model.nodes[position]
        if node.left >= 0:
            to_left = goes_left(model, position, row[node.feature])
            covers = [Fraction(model.nodes[child].cover) for child in (node.left, node.right)]
            for child, cover, meets in zip(
                (node.left, node.right), covers, (to_left, not to_left), strict=True
            ):
                x, z = conditions.get(node.feature, (1, Fraction(1)))
                own = (x * int(meets), z * cover / sum(covers))
                waiting.append((child, conditions | {int(node.feature): own}))
            continue
        n = len(conditions)
        for feature, (x, z) in conditions.items():
            by_size = [Fraction(1)]
            for other, (other_x, other_z) in conditions.items():
                if other != feature:
                    longer = [Fraction(0)] * (len(by_size) + 1)
                    for size, through in enumerate(by_size):
                        longer[size] += through * other_z
                        longer[size + 1] += through * other_x
                    by_size = longer
            mean = sum(
                through * Fraction(factorial(size) * factorial(n - 1 - size), factorial(n))
                for size, through in enumerate(by_size)
            )
            result[feature] += float(Fraction(float(node.value)) * (x - z) * mean)
    return result
