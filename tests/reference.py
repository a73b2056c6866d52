"""The oracle: the whole booster in slow, plain NumPy float64, importing nothing of the package.

Every sum is taken anew over the set of rows it speaks of, with ``math.fsum``, which rounds the
exact sum once: the same rows give the same number in any order and for any feature, so ties between
splits are exact here as they are in the package. No histograms, no bins, no threads, no tricks.
"""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np

LARGEST_STEP = {"squared_error": math.inf, "log_loss": 10.0, "softmax": 10.0}  # leaf weights
ROUNDING = 1e-12  # a gain below this part of the similarities it comes from is rounding error


@dataclass
class Settings:
    """The parameters of the estimators, with their defaults."""

    n_estimators: int = 100
    learning_rate: float = 0.3
    max_depth: int = 6
    max_leaves: int = 0
    grow_policy: str = "depthwise"
    reg_lambda: float = 1.0
    reg_alpha: float = 0.0
    gamma: float = 0.0
    ccp_alpha: float = 0.0
    min_child_weight: float = 1.0
    min_child_samples: int = 0
    max_delta_step: float = 0.0
    pruning: str = "post"
    path_smooth: float = 0.0
    monotone_constraints: tuple = ()
    interaction_constraints: list | None = None
    base_score: float | None = None
    linear_tree: bool = False
    linear_lambda: float = 1.0
    n_categories: tuple = ()  # of each feature: 0 for numbers, k for categories 0 to k - 1
    max_cat_to_onehot: int = 4
    max_cat_threshold: int = 64
    cat_smooth: float = 2.0


@dataclass
class Node:
    """A node: the rows it owns, their sums, and the split if it has one."""

    rows: np.ndarray
    depth: int
    gradient: float
    hessian: float
    weight: float
    similarity: float
    lower: float = -math.inf  # bounds of the leaf weights beneath
    upper: float = math.inf
    path: frozenset = frozenset()  # features of the splits above
    feature: int = -1
    threshold: float = math.nan
    categories: frozenset | None = None  # of a split on categories: those that go left
    default_left: bool = False
    gain: float = 0.0
    children: list["Node"] = field(default_factory=list)
    line: "Line | None" = None

    def output(self, x):
        return self.weight if self.line is None else self.line.output(x)


class Line:
    """The ridge regression of a leaf: weight and slopes as one system; no reg_alpha."""

    def __init__(self, node, X, g, h, features, settings):
        X = np.where(np.isfinite(X[node.rows]), X[node.rows], np.nan)
        g, h = g[node.rows], h[node.rows]
        self.constant, self.least, self.most = node.weight, -math.inf, math.inf
        self.features = [f for f in sorted(features) if np.isfinite(X[:, f]).any()]
        self.features = [f for f in self.features if np.nanmin(X[:, f]) < np.nanmax(X[:, f])]
        whole = ~np.isnan(X[:, self.features]).any(axis=1)
        # what varies, but not in the rows that have all values, gets slope 0, and is not asked
        self.features = [f for f in self.features if len(np.unique(X[whole, f])) > 1]
        if not self.features or h[whole].sum() < settings.min_child_weight:
            self.features = []
            return
        own = X[:, self.features]
        self.centre = np.average(own[whole], axis=0, weights=h[whole])
        self.reach = np.nanmax(np.abs(own - self.centre), axis=0)
        design = np.array([self.design(x) for x in own[whole]])
        penalty = np.diag([settings.reg_lambda] + [settings.linear_lambda] * len(self.features))
        matrix = design.T @ (h[whole, np.newaxis] * design) + penalty
        self.solution = np.linalg.solve(matrix, -design.T @ g[whole])
        outputs, limit = [self.output(x) for x in X], settings.max_delta_step or math.inf
        self.least = max(min(node.weight, *outputs), -limit)
        self.most = min(max(node.weight, *outputs), limit)

    def design(self, x):
        return np.array([1.0, *((x - self.centre) / self.reach)])

    def output(self, x):
        if not self.features or not np.isfinite(x[self.features]).all():
            return self.constant
        value = self.design(x[self.features]) @ self.solution
        return min(max(value, self.least), self.most)


# --- the formulas --------------------------------------------------------------------------------


def soft_threshold(gradient, alpha):
    return math.copysign(max(abs(gradient) - alpha, 0.0), gradient)


def leaf_weight(gradient, hessian, settings):
    weight = -soft_threshold(gradient, settings.reg_alpha) / (hessian + settings.reg_lambda)
    limit = settings.max_delta_step or math.inf
    return min(max(weight, -limit), limit)


def similarity(gradient, hessian, weight, settings):
    squares = (hessian + settings.reg_lambda) * weight**2
    return -(2.0 * gradient * weight + squares + 2.0 * settings.reg_alpha * abs(weight))


def midpoint(low, high):
    middle = low / 2 + high / 2  # NaN between the two infinities
    return middle if low < middle <= high else high


# --- losses: start value, gradients and hessians of all outputs, shape (n_outputs, n_rows) -------


def start_score(loss, y, sample_weight, base_score):
    mean = math.fsum(y * sample_weight) / math.fsum(sample_weight)
    if loss == "squared_error":
        return np.array([mean if base_score is None else base_score])
    if loss == "log_loss":
        p = mean if base_score is None else base_score
        return np.array([math.log(p / (1.0 - p))])
    classes = range(int(y.max()) + 1)
    shares = [math.fsum(sample_weight[y == k]) / math.fsum(sample_weight) for k in classes]
    return np.log(shares) if base_score is None else np.full(len(classes), base_score)


def derivatives(loss, y, raw):
    if loss == "squared_error":
        return raw - y, np.ones_like(raw)
    if loss == "log_loss":
        p = 1.0 / (1.0 + np.exp(-raw))
        return p - y, np.maximum(p * (1.0 - p), 1e-16)
    p = np.exp(raw - raw.max(axis=0))
    p /= p.sum(axis=0)
    is_class = y == np.arange(len(raw))[:, np.newaxis]
    factor = len(raw) / (len(raw) - 1.0)
    return p - is_class, np.maximum(factor * p * (1.0 - p), 1e-16)


# --- one tree ------------------------------------------------------------------------------------


class Tree:
    """A tree grown on gradients `g` and hessians `h`, weights included.

    `features(number, depth)` gives those that a node may be split on; None: all.
    """

    def __init__(self, X, g, h, settings, features=None, weight=None):
        self.X, self.g, self.h, self.settings = X, g, h, settings
        self.weight = np.ones(len(X)) if weight is None else weight
        self.features = features or (lambda number, depth: range(X.shape[1]))
        self.nodes = [self.make_node(np.arange(len(X)), depth=0)]  # in the order they are made
        self.grow()
        if settings.pruning != "pre":
            self.prune(self.nodes[0])
        if settings.ccp_alpha > 0:
            self.prune_weakest_links(self.nodes[0])
        kept = self.reachable(self.nodes[0])
        self.nodes = [node for node in self.nodes if any(node is other for other in kept)]
        if settings.linear_tree:
            self.fit_lines(self.nodes[0], set())

    def make_node(self, rows, depth, parent=None, gradient=None):
        gradient = math.fsum(self.g[rows].tolist()) if gradient is None else gradient
        hessian = math.fsum(self.h[rows].tolist())
        weight = leaf_weight(gradient, hessian, self.settings) if hessian > 0 else 0.0
        node = Node(rows, depth, gradient, hessian, weight, 0.0)
        if parent is not None:
            if smoothing := self.settings.path_smooth:
                node.weight = (weight * hessian + parent.weight * smoothing) / (hessian + smoothing)
            node.lower, node.upper = parent.lower, parent.upper
            node.weight = min(max(node.weight, node.lower), node.upper)
        node.similarity = similarity(gradient, hessian, node.weight, self.settings)
        return node

    def allowed(self, node):
        """Return the features that may follow on the path: one group must have them all."""
        groups = self.settings.interaction_constraints
        if groups is None or node.depth == 0:
            return set(range(self.X.shape[1]))
        return node.path.union(*(group for group in map(set, groups) if node.path <= group))

    def sign(self, feature, threshold):
        """Return the monotone constraint of a split; missing values alone have no order."""
        if isinstance(threshold, frozenset):
            return 0
        signs = self.settings.monotone_constraints
        return signs[feature] if signs and threshold > -math.inf else 0

    def candidates(self, node, like=None):
        """Yield (feature, threshold, default_left, goes_left, G left) of each split, in order.

        The threshold is a frozenset of levels where the feature is a category. G is given where the
        split is judged by another one than that of the rows. In a symmetric tree `like` is the
        depth: its number and the rows of all of its nodes, between whose values thresholds lie.
        """
        rows = node.rows
        number, depth, around = like or (self.number(node), node.depth, rows)
        for feature in self.features(number, depth):
            if feature not in self.allowed(node):
                continue
            x = self.X[rows, feature]
            is_missing, values = np.isnan(x), self.X[around, feature]
            some_missing = np.isnan(values).any()
            values = np.unique(values[~np.isnan(values)])
            if self.settings.n_categories and self.settings.n_categories[feature]:
                yield from self.category_candidates(rows, feature, x, is_missing)
                continue
            if some_missing and len(values) > 0:
                yield feature, -math.inf, True, is_missing, None
            for low, high in itertools.pairwise(values):
                threshold = midpoint(float(low), float(high))
                yield feature, threshold, False, x < threshold, None
                if some_missing:
                    yield feature, threshold, True, (x < threshold) | is_missing, None

    def category_candidates(self, rows, feature, x, is_missing):
        """Yield the same for a category: divisions of its levels into two sets, one of them listed.

        The shorter list of the two goes left.
        """
        settings = self.settings
        categories = [float(category) for category in np.unique(x[~is_missing])]
        is_one_hot = settings.n_categories[feature] < settings.max_cat_to_onehot
        if is_one_hot:
            divisions = [[], *([category] for category in categories)]
        else:
            divisions = self.ordered_divisions(rows, x, categories)
            shrunk = self.shrunken_gradients(rows, x, categories)
        most = settings.max_cat_threshold
        for below in divisions:
            above = [category for category in categories if category not in below]
            if min(len(below), len(above)) > most and not is_one_hot:
                continue
            for missing_below in (False, True)[: 1 + is_missing.any()]:
                left, default_left, gradient = below, missing_below, None
                if not is_one_hot and len(above) < len(below):
                    left, default_left = above, is_missing.any() and not missing_below
                goes_left = np.isin(x, left) | (is_missing & default_left)
                if not is_one_hot:
                    of_missing = self.g[rows][is_missing & default_left]
                    gradient = math.fsum([*of_missing, *(shrunk[category] for category in left)])
                yield feature, frozenset(left), bool(default_left), goes_left, gradient

    def ordered_divisions(self, rows, x, categories):
        """Return the sets of levels below each place in their order."""
        smooth = self.settings.cat_smooth
        keys = {}
        for category in categories:
            g, h = (math.fsum(own[rows][x == category].tolist()) for own in (self.g, self.h))
            keys[category] = g / (h + smooth)
        order = sorted(categories, key=keys.get)
        return [order[:place] for place in range(len(order))]

    def shrunken_gradients(self, rows, x, categories):
        """Return G of each level as it would be without noise: an analysis of variance."""
        g, h, weight = self.g[rows], self.h[rows], self.weight[rows]
        sums = {c: (math.fsum(g[x == c]), math.fsum(h[x == c])) for c in categories}
        smooth, n_levels = self.settings.cat_smooth, len(categories)
        if smooth == 0 or n_levels <= 3:
            return {c: own[0] for c, own in sums.items()}
        G, H = np.array(list(sums.values())).T
        missing = np.isnan(x)
        between = (G**2 / H).sum() - G.sum() ** 2 / H.sum()
        within = (g**2 / h).sum() - (G**2 / H).sum()
        if missing.any():
            within -= g[missing].sum() ** 2 / h[missing].sum()
        freedom = max(weight.sum() - n_levels - missing.any(), 0)
        noise = (within + (within + between) / max(weight.sum() - 1, 1)) / (freedom + 1)
        variance = max(between - (n_levels - 1) * noise, 0) / (H.sum() - (H**2).sum() / H.sum())
        strength = min(variance / noise if noise > 0 else math.inf, 1 / smooth)
        left = 1 - (1 - 2 / (n_levels - 1)) / (1 + strength * H)
        middle = (left * G).sum() / (left * H).sum()
        shrunken = H * G.sum() / H.sum() + left * (G - H * middle)
        return dict(zip(sums, shrunken.tolist(), strict=True))

    def best_split(self, node):
        """Return (gain, feature, threshold, default_left, left, right), or None if none is allowed.

        The gain is the one that the split is judged by. A later candidate must be strictly better.
        """
        best = None
        for split in self.allowed_splits(node):
            if best is None or split[0] > best[0]:
                best = split
        return best

    def allowed_splits(self, node, like=None):
        """Yield the candidates of a node that are allowed, as :meth:`best_split` returns one."""
        settings = self.settings
        for feature, threshold, default_left, goes_left, gradient in self.candidates(node, like):
            left = self.make_node(node.rows[goes_left], node.depth + 1, node)
            right = self.make_node(node.rows[~goes_left], node.depth + 1, node)
            fewer = min(math.fsum(self.weight[child.rows]) for child in (left, right))
            if fewer < settings.min_child_samples:
                continue
            smaller = min(left.hessian, right.hessian)
            if smaller <= 0 or smaller < settings.min_child_weight:
                continue
            sign = self.sign(feature, threshold)
            if np.any(sign * (right.weight - left.weight) < 0):
                continue
            if sign and np.isnan(self.X[left.rows, feature]).all():
                continue  # they have no order, but the threshold of a symmetric tree would give one
            gain = self.gain_of(node, left, right)
            if gradient is not None:
                of_sides = (gradient, left), (node.gradient - gradient, right)
                gain = self.gain_of(
                    node, *(self.make_node(side.rows, 0, node, own) for own, side in of_sides)
                )
            yield gain, feature, threshold, default_left, left, right

    def gain_of(self, node, left, right):
        gain = left.similarity + right.similarity - node.similarity
        return (
            gain if abs(gain) > ROUNDING * (abs(left.similarity) + abs(right.similarity)) else 0.0
        )

    def wanted(self, node):
        """Return the split to grow at this node, or None if it stays a leaf."""
        settings = self.settings
        if settings.max_depth and node.depth >= settings.max_depth:
            return None
        split = self.best_split(node)
        return split if split is not None and self.is_worth(split[0]) else None

    def is_worth(self, gain):
        least = self.settings.gamma if self.settings.pruning == "pre" else 0.0
        return self.settings.pruning == "full" or (gain > 0 and gain >= least)

    def apply_split(self, node, split):
        node.feature, node.threshold, node.default_left = split[1:4]
        if isinstance(node.threshold, frozenset):
            node.categories, node.threshold = node.threshold, math.nan
        node.children = left, right = list(split[4:])
        node.gain = self.gain_of(node, left, right)
        left.path = right.path = node.path | {node.feature}
        sign = self.sign(node.feature, node.threshold)
        if sign != 0:
            below, above = (left, right) if sign > 0 else (right, left)
            below.upper = above.lower = (left.weight + right.weight) / 2
        self.nodes += node.children

    def grow(self):
        """Split nodes in the order of the policy while the leaves do not exceed the limit."""
        if self.settings.grow_policy == "symmetric":
            self.grow_by_common_splits()
            return
        n_leaves, limit = 1, self.settings.max_leaves or math.inf
        waiting = [(node, split) for node in self.nodes if (split := self.wanted(node))]
        while waiting and n_leaves < limit:
            # sorted() keeps the order of equals: the lower node number comes first
            best_first = sorted(waiting, key=lambda pair: -pair[1][0])
            if self.settings.grow_policy == "lossguide":
                turn, waiting = best_first[:1], [p for p in waiting if p is not best_first[0]]
            else:  # a whole level, or the best of it
                budget = limit - n_leaves
                turn = waiting if len(waiting) <= budget else best_first[: int(budget)]
                waiting = []
            for node, split in turn:
                self.apply_split(node, split)
                n_leaves += 1
            children = [child for node, _ in turn for child in node.children]
            waiting += [(child, split) for child in children if (split := self.wanted(child))]

    def grow_by_common_splits(self):
        """Split nodes by the split that gains most in all of them; others wait for the next one."""
        waiting = [node for node in self.nodes if self.can_be_split(node)]
        for depth in range(self.settings.max_depth):
            around = np.concatenate([np.array([], int), *(node.rows for node in waiting)])
            splits = {}  # by what they have in common: those of the nodes
            for node in waiting:
                for split in self.allowed_splits(node, (depth, depth, around)):
                    if self.is_worth(split[0]):
                        splits.setdefault(split[1:4], []).append((node, split))
            if not splits:
                return
            # ties: the lower feature, the lower threshold, missing values right
            made = max(
                sorted(splits), key=lambda common: math.fsum(own[0] for _, own in splits[common])
            )
            for node, split in splits[made]:
                self.apply_split(node, split)
            waiting = [node for node in waiting if not node.children]
            made = [child for node, _ in splits[made] for child in node.children]
            waiting += [child for child in made if self.can_be_split(child)]

    def can_be_split(self, node):
        """Whether it has rows and cover for two children: else it is a leaf for good."""
        settings, n_rows = self.settings, math.fsum(self.weight[node.rows])
        is_large = node.hessian >= 2 * settings.min_child_weight
        return len(node.rows) > 1 and is_large and n_rows >= 2 * settings.min_child_samples

    def prune(self, node):
        """Collapse, from the bottom up, every split of two leaves whose gain is below gamma."""
        for child in node.children:
            self.prune(child)
        is_last = node.children and not any(child.children for child in node.children)
        if is_last and node.gain < self.settings.gamma:
            node.children = []

    def prune_weakest_links(self, node):
        """Collapse branches that gain no more than alpha a split; return what a branch is worth."""
        if not node.children:
            return 0.0
        alpha = self.settings.ccp_alpha * self.nodes[0].hessian
        worth = node.gain - alpha + sum(self.prune_weakest_links(own) for own in node.children)
        if worth <= 0:
            node.children = []
        return max(worth, 0.0)

    def reachable(self, node):
        return [node] + [below for child in node.children for below in self.reachable(child)]

    def fit_lines(self, node, features):
        """Return each leaf below the node a line on the features of its path."""
        if not node.children:
            node.line = Line(node, self.X, self.g, self.h, features, self.settings)
        for child in node.children:
            self.fit_lines(child, features | {node.feature})

    def number(self, node):
        return next(i for i, other in enumerate(self.nodes) if other is node)

    def leaf_of(self, x):
        node = self.nodes[0]
        while node.children:
            value = x[node.feature]
            left = value < node.threshold if node.categories is None else value in node.categories
            left = node.default_left if math.isnan(value) else left
            node = node.children[0 if left else 1]
        return node


# --- boosting ------------------------------------------------------------------------------------


class ReferenceBooster:
    """Trees fitted one round after the other; `loss` is squared_error, log_loss or softmax."""

    def __init__(self, loss, **settings):
        self.loss, self.settings = loss, Settings(**settings)
        step = min(self.settings.max_delta_step or math.inf, LARGEST_STEP[loss])
        self.settings.max_delta_step = step

    def fit(self, X, y, sample_weight=None, rows=None, features=None):
        """Train; `rows(round)` gives a mask, `features(round, output)` what :class:`Tree` takes."""
        X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
        X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
        self.start = start_score(self.loss, y, weight, self.settings.base_score)
        self.trees = []
        raw = np.repeat(self.start[:, np.newaxis], len(y), axis=1)
        for round_ in range(self.settings.n_estimators):
            drawn = np.ones(len(y), dtype=bool) if rows is None else rows(round_)
            g, h = derivatives(self.loss, y, raw)
            for output in range(len(raw)):
                own = [(weight * values[output])[drawn] for values in (g, h)]
                chosen = features and features(round_, output)
                tree = Tree(X[drawn], *own, self.settings, chosen, weight[drawn])
                self.trees.append(tree)
                raw[output] += [self.leaf_value(tree, x) for x in X]
        return self

    def leaf_value(self, tree, x):
        return self.settings.learning_rate * tree.leaf_of(x).output(x)

    def raw_score(self, X):
        """Return the raw scores, shape (n_outputs, n_rows)."""
        raw = np.repeat(self.start[:, np.newaxis], len(X), axis=1)
        for index, tree in enumerate(self.trees):
            raw[index % len(raw)] += [self.leaf_value(tree, x) for x in np.asarray(X, float)]
        return raw

    def apply(self, X):
        X = np.asarray(X, float)
        return np.array([[tree.number(tree.leaf_of(x)) for tree in self.trees] for x in X])
