"""XGBoost's models: its document, JSON or UBJSON, as trees and what they mean."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sklboost.data.encoding import MOST_CATEGORIES, Encoding
from sklboost.files.foreign import ForeignTree, ModelInfo, encoding_of
from sklboost.files.sections import LARGEST_SCORE, DocumentSection, ModelFileError


class SharedObjective(NamedTuple):
    """An objective of XGBoost that means the same here."""

    section: str = ""  # the key of its parameters in XGBoost's files; empty: it has none
    parameters: tuple[str, ...] = ()  # ours, of the same name there
    is_list: bool = False  # whether there may be several values, such as ``[0.1,0.9]``
    written: dict[str, str] = {}  # noqa: RUF012, never modified
    sign: float = 1.0  # of our raw scores by XGBoost's


_OF_WEIGHTS = SharedObjective("reg_loss_param", written={"scale_pos_weight": "1"})
# By the task here, then by the name, which is the same in both. Raw scores of reg:squaredlogerror
# are predictions there and logarithms here, so it is another objective.
SHARED: dict[str, dict[str, SharedObjective]] = {
    "regression": {
        "reg:squarederror": _OF_WEIGHTS,
        "reg:absoluteerror": SharedObjective(),
        "reg:quantileerror": SharedObjective("quantile_loss_param", ("quantile_alpha",), True),
        "reg:pseudohubererror": SharedObjective("pseudo_huber_param", ("huber_slope",)),
        "reg:logistic": _OF_WEIGHTS,
        "reg:gamma": _OF_WEIGHTS,
        "reg:tweedie": SharedObjective("tweedie_regression_param", ("tweedie_variance_power",)),
        "count:poisson": SharedObjective(
            "poisson_regression_param", written={"max_delta_step": "0.7"}
        ),
    },
    "binary": {"binary:logistic": _OF_WEIGHTS, "binary:hinge": SharedObjective()},
    "multiclass": {"multi:softprob": SharedObjective("softmax_multiclass_param")},
    # what only training reads is left at its default
    "ranking": dict.fromkeys(
        ("rank:ndcg", "rank:map", "rank:pairwise"), SharedObjective("lambdarank_param")
    ),
    "survival": {
        "survival:cox": SharedObjective(),
        # raw scores are logarithms of times there, and risks here
        "survival:aft": SharedObjective(
            "aft_loss_param", ("aft_loss_distribution", "aft_loss_distribution_scale"), sign=-1.0
        ),
    },
}
SHARED["multilabel"] = SHARED["binary"]
# Objectives whose raw scores have the unit of predictions, the logarithm of it, or log-odds.
LOG = {"reg:gamma", "reg:tweedie", "count:poisson", "survival:cox", "survival:aft"}
LOG_ODDS = {"reg:logistic", "binary:logistic"}
_MOST = 2**31 - 1
_MOST_NODES = 2**30


class XGBoostTree(NamedTuple):
    """A tree as it is in the file."""

    place: str  # for errors
    # int64, shape (n_nodes,)
    left: np.ndarray
    right: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray  # float64, shape (n_nodes,)
    default_left: np.ndarray  # bool, shape (n_nodes,)
    # float64, shape (n_nodes, n_tree_outputs): of inner nodes without the learning rate, of leaves
    # with it; before leaves are renewed
    weights: np.ndarray
    # float64, shape (n_nodes, n_tree_outputs): the same, with the values that leaves add to raw
    # scores
    values: np.ndarray
    # float64, shape (n_nodes,)
    cover: np.ndarray
    gain: np.ndarray
    listed: dict[int, np.ndarray]  # dict of int to ndarray of int64: the categories that go right

    def foreign(self, factor: float, rate: float, reg_lambda: float) -> ForeignTree:
        """Return the tree with its leaves multiplied by a factor, the weight of dart's rounds.

        XGBoost sends listed categories right and all others left: children change sides.
        `rate` is the learning rate in the weights of leaves, and NaN for `reg_lambda` means that
        sums of gradients are not known.
        """
        left, right, default_left = self.left.copy(), self.right.copy(), self.default_left.copy()
        by_category = list(self.listed)
        left[by_category], right[by_category] = right[by_category], left[by_category]
        default_left[by_category] = ~default_left[by_category]
        is_leaf = (self.left < 0)[:, np.newaxis]
        bare_weights = np.where(is_leaf, self.weights / rate, self.weights)
        return ForeignTree(
            left=left,
            right=right,
            feature=self.feature,
            threshold=boundaries(self.threshold),
            default_left=default_left,
            value=factor * np.where(is_leaf, self.values, rate * self.values),
            gain=np.maximum(self.gain, 0.0),
            cover=self.cover,
            gradient=-bare_weights * (self.cover[:, np.newaxis] + reg_lambda),
            categories=self.listed,
            learning_rate=factor * rate,
        )


_MOST_FEATURES = 2**20  # a file says their number, and may have room for no more than that
_WEIGHTS = (0.0, LARGEST_SCORE)  # of the rounds of dart
_OLDEST = (1, 7)
_DEFAULT_RATE = 0.3
_SAME_FOR_CLASSES = {"multi:softmax": "multi:softprob", "reg:logistic": "binary:logistic"}
_NO_REMEDY = "sklboost has no objective of that name and meaning"
_REFUSED = {
    "binary:logitraw": "its raw scores are not probabilities; train with binary:logistic",
    "reg:squaredlogerror": "its raw scores are predictions there, and logarithms here",
}


class Known(NamedTuple):
    """Settings of a model that its document does not have."""

    is_classifier: bool | None = None  # None: the objective says it
    missing: float = np.nan
    # pairs of learning rate and lambda that the training may have had
    settings: Sequence[tuple[float, float]] = ()
    parameters: dict[str, Any] = {}  # noqa: RUF012, never modified


NOTHING_KNOWN = Known()


def read_model(
    document: DocumentSection, known: Known = NOTHING_KNOWN
) -> tuple[list[ForeignTree], list[str], ModelInfo]:
    """Return the trees, their places, and what they mean.

    Only rounds up to ``best_iteration`` are kept, with which XGBoost's estimators predict.
    ModelFileError if the document is damaged, or has what cannot be represented.
    """
    version = document["version"].integers(0, _MOST)
    if tuple(version) < _OLDEST:
        document["version"].fail("models before XGBoost 1.7: save it again with a later one")
    learner = document["learner"]
    task, objective = _task(learner, known)
    booster, weights = _booster(learner["gradient_booster"])
    shapes = learner["learner_model_param"]
    n_features = _count(shapes["num_feature"], 1, _MOST_FEATURES)
    n_classes, n_targets = _count(shapes["num_class"]), _count(shapes.get("num_target"))
    n_outputs = max(n_classes, n_targets, 1)
    if task == "binary" and n_outputs > 1:
        task = "multilabel"
    # labels of a classifier are 0, 1, and so on
    n_labels = {"binary": 2, "multiclass": n_outputs, "multilabel": n_outputs}.get(task, 0)
    if (task == "multiclass") != (n_classes > 1):
        shapes["num_class"].fail(f"{n_classes} classes, but the objective is {objective!r}")
    if task in ("ranking", "survival") and n_outputs > 1:
        shapes["num_target"].fail(f"{n_outputs} targets, but the objective is {objective!r}")
    sign = SHARED[task][objective].sign
    parameters = _objective_parameters(learner["objective"], SHARED[task][objective])
    n_alphas = np.size(parameters.get("quantile_alpha", 0.0))
    trees, n_parallel, best = _rounds(booster, weights, n_outputs, learner)
    is_vector = len(trees) > 0 and trees[0][0].values.shape[1] > 1
    found = find_settings([tree for tree, _ in trees], known.settings)
    # a leaf that is not explained still has a value; λ of NaN says that G is not known
    rates = [rate for rate, _ in known.settings if rate > 0.0] or [_DEFAULT_RATE / n_parallel]
    rate, reg_lambda = found or (rates[0], np.nan)
    parameters["learning_rate"] = float(f"{rate * n_parallel:.9g}")
    if found is not None:
        parameters["reg_lambda"] = reg_lambda
    parameters = {
        **known.parameters,
        **parameters,
        "num_parallel_tree": n_parallel,
        "multi_strategy": "multi_output_tree" if is_vector else "one_output_per_tree",
        "booster": "dart" if weights is not None else "gbtree",
    }
    names = learner.get("feature_names")
    info = ModelInfo(
        task=task,
        objective=objective,
        base_score=sign * _base_score(shapes["base_score"], objective, n_outputs),
        n_targets=max(n_outputs // n_alphas, 1) if task == "regression" else 1,
        n_features=n_features,
        feature_names=[name.text() for name in names] or None if names is not None else None,
        encodings=_encodings(
            booster, learner.get("feature_types"), [tree for tree, _ in trees], n_features
        ),
        classes=np.arange(n_labels) if n_labels > 0 else None,
        missing=known.missing,
        parameters=parameters,
        best_iteration=best,
    )
    if names is not None and info.feature_names and len(info.feature_names) != n_features:
        names.fail(f"must have {n_features} elements, and has {len(info.feature_names)}")
    foreign = [tree.foreign(weight, rate, reg_lambda) for tree, weight in trees]
    if sign != 1.0:
        foreign = [
            tree._replace(value=sign * tree.value, gradient=sign * tree.gradient)
            for tree in foreign
        ]
    return foreign, [tree.place for tree, _ in trees], info


def _count(section: DocumentSection | None, least: int = 0, most: int = _MOST) -> int:
    """Return a number that is written as text; 0 where there is none."""
    return 0 if section is None else section.written_integer(least, most)


def _floats(section: DocumentSection) -> list[float]:
    """Return numbers that are written as text, such as ``[1E-1,9E-1]`` or ``5E-1``."""
    text = section.text()
    try:
        values = [float(part) for part in text.strip("[]()").split(",")]
    except ValueError:
        values = [np.nan]
    if not np.isfinite(values).all():
        section.fail(f"must be numbers, and is {text[:40]!r}")
    return values


# --- what it means


def _task(learner: DocumentSection, known: Known) -> tuple[str, str]:
    """Return the task and the objective, by our names."""
    section = learner["objective"]["name"]
    name, is_classifier = section.text(), known.is_classifier
    if is_classifier is None:
        said = learner["attributes"].get("scikit_learn")
        is_regressor = said is not None and '"regressor"' in said.text()
        is_classifier = name.startswith(("binary:", "multi:")) and not is_regressor
    if is_classifier:
        name = _SAME_FOR_CLASSES.get(name, name)
        task = "multiclass" if name.startswith("multi:") else "binary"
    else:
        name = {"binary:logistic": "reg:logistic"}.get(name, name)
        task = {"rank": "ranking", "survival": "survival"}.get(name.partition(":")[0], "regression")
    if name not in SHARED[task]:
        others = " and ".join(other for other in SHARED if name in SHARED[other])
        remedy = f"sklboost has it for models of {others} only" if others else _NO_REMEDY
        why = _REFUSED.get(name, remedy)
        kind = "a classifier" if is_classifier else "a regressor"
        section.fail(f"the objective {section.text()!r} of {kind}: {why}")
    return task, name


def _objective_parameters(section: DocumentSection, shared: SharedObjective) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in shared.parameters:
        part = section[shared.section][name]
        if name == "aft_loss_distribution":
            found[name] = part.text()
            continue
        # 1.29999995 is the float32 of 1.3
        values = [float(str(np.float32(value))) for value in _floats(part)]
        found[name] = values if len(values) > 1 else values[0]
    return found


def _base_score(section: DocumentSection, objective: str, n_outputs: int) -> np.ndarray:
    """Return raw scores; in files they are predictions, one for all outputs or one for each."""
    scores = np.array(_floats(section), dtype=np.float32).astype(np.float64)
    if len(scores) not in (1, n_outputs):
        section.fail(f"must be 1 or {n_outputs} numbers, and is {len(scores)}")
    scores = np.broadcast_to(scores, (n_outputs,)).copy()
    if objective in LOG and (scores <= 0.0).any():
        section.fail("must be above 0")
    if objective in LOG_ODDS and ((scores <= 0.0) | (scores >= 1.0)).any():
        only = [score for score in scores if score in (0.0, 1.0)]
        section.fail(
            f"{only[0]:g} comes from a training on the single class {only[0]:g}: its raw scores "
            "are infinite; train on rows of both classes"
            if only
            else "must be between 0 and 1"
        )
    if objective in LOG:
        return np.log(scores)
    return np.log(scores) - np.log1p(-scores) if objective in LOG_ODDS else scores


def _encodings(
    booster: DocumentSection,
    types: DocumentSection | None,
    trees: Sequence[XGBoostTree],
    n_features: int,
) -> tuple[Encoding, ...] | None:
    kinds = [kind.text() for kind in types or ()] or [""] * n_features
    if types is not None and len(kinds) != n_features:
        types.fail(f"must have {n_features} elements, and has {len(kinds)}")
    most = [-1] * n_features
    for tree in trees:
        for node, codes in tree.listed.items():
            feature = int(tree.feature[node])
            if feature < n_features:  # others are refused later
                most[feature] = max(most[feature], int(codes.max(initial=0)))
    # values are stored since XGBoost 3.1
    return read_categories(booster.get("cats"), [kind == "c" for kind in kinds], most)


# --- the trees


def _booster(section: DocumentSection) -> tuple[DocumentSection, np.ndarray | None]:
    """Return the section of the trees, and the weights of dart's."""
    name = section["name"].text()
    if name == "gblinear":
        section["name"].fail("booster='gblinear' has no trees, and sklboost has nothing but trees")
    section["name"].text(("gbtree", "dart"))
    if name == "gbtree":  # dart's, too, since XGBoost 3.4
        weights = section["model"].get("weight_drop")
        return section["model"], None if weights is None else weights.numbers(limits=_WEIGHTS)
    return section["gbtree"]["model"], section["weight_drop"].numbers(limits=_WEIGHTS)


def _rounds(
    booster: DocumentSection, weights: np.ndarray | None, n_outputs: int, learner: DocumentSection
) -> tuple[list[tuple[XGBoostTree, float]], int, int | None]:
    """Return trees in our order with their weights, the parallel trees, and the best round.

    In a round XGBoost has all parallel trees of an output, then all of the next; tree t of ours
    adds to output ``t % n_outputs``.
    """
    sections = list(booster["trees"])
    if not sections:
        booster["trees"].fail("there are none")
    n_parallel = max(_count(booster["gbtree_model_param"]["num_parallel_tree"]), 1)
    n_leaf_outputs = max(_count(sections[0]["tree_param"]["size_leaf_vector"]), 1)
    if n_leaf_outputs not in (1, n_outputs):
        sections[0]["tree_param"]["size_leaf_vector"].fail(f"must be 1 or {n_outputs}")
    groups = booster["tree_info"].integers(0, n_outputs - 1, len(sections))
    n_groups = n_outputs // n_leaf_outputs
    per_round = n_parallel * n_groups
    if weights is not None and len(weights) != len(sections):
        raise ModelFileError(f"{booster.place}: dart needs a weight for each tree")
    if len(sections) % per_round > 0:
        booster["trees"].fail(f"there are {len(sections)} trees, but a round has {per_round}")
    expected = np.tile(np.repeat(np.arange(n_groups), n_parallel), len(sections) // per_round)
    if (groups != expected).any():
        booster["tree_info"].fail(f"a round must have {n_parallel} tree(s) of each output in turn")
    best = learner["attributes"].get("best_iteration")
    n_rounds, best_round = len(sections) // per_round, None
    if best is not None:
        best_round = _count(best)
        n_rounds = min(n_rounds, best_round + 1)
    order = np.arange(n_rounds * per_round).reshape(-1, n_groups, n_parallel).swapaxes(1, 2)
    factors = np.ones(len(sections)) if weights is None else weights
    trees = []
    for number in order.ravel().tolist():
        size = sections[number]["tree_param"]["size_leaf_vector"]
        if max(_count(size), 1) != n_leaf_outputs:
            size.fail(f"must be {n_leaf_outputs}, as in the first tree")
        trees.append((read_tree(sections[number], n_leaf_outputs), float(factors[number])))
    return trees, n_parallel, best_round


# --- trees


def read_tree(section: DocumentSection, n_outputs: int) -> XGBoostTree:
    """Return a tree of the file, whose leaves have `n_outputs` values."""
    left = section["left_children"].integers(-1, _MOST)
    n_nodes = len(left)
    if not 0 < n_nodes <= _MOST_NODES:
        section.fail("has no nodes")
    right = section["right_children"].integers(-1, _MOST, n_nodes)
    is_leaf = left < 0
    threshold = _float32(section["split_conditions"], n_nodes, finite=False)
    weights = _float32(section["base_weights"], n_nodes * n_outputs).reshape(n_nodes, n_outputs)
    values = weights.copy()
    if n_outputs == 1:
        values[is_leaf, 0] = threshold[is_leaf]
    elif (of_leaves := section.get("leaf_weights")) is not None:  # since XGBoost 3.2
        table = _float32(of_leaves, int(is_leaf.sum()) * n_outputs).reshape(-1, n_outputs)
        places = right[is_leaf]
        if ((places < 0) | (places >= len(table))).any():
            of_leaves.fail("has no values for some leaves")
        values[is_leaf] = table[places]
    unknown = np.zeros(n_nodes)  # XGBoost 2 does not store them for trees of several outputs
    covers, gains = section.get("sum_hessian"), section.get("loss_changes")
    if covers is not None and (covers.numbers(n_nodes) < 0.0).any():
        covers.fail("a sum of hessians is below 0")
    return XGBoostTree(
        place=section.place,
        left=left,
        right=np.where(is_leaf, -1, right),
        feature=section["split_indices"].integers(0, _MOST, n_nodes),
        threshold=threshold,
        default_left=section["default_left"].integers(0, 1, n_nodes) == 1,
        weights=weights,
        values=values,
        cover=unknown if covers is None else _float32(covers, n_nodes) / n_outputs,
        gain=unknown if gains is None else _float32(gains, n_nodes),
        listed=_listed_categories(section, is_leaf),
    )


@np.errstate(over="ignore")
def _float32(section: DocumentSection, size: int, *, finite: bool = True) -> np.ndarray:
    """Return numbers as XGBoost reads them: JSON may have more digits, or fewer, than float32."""
    numbers = section.numbers(size, finite=finite)
    rounded = numbers.astype(np.float32).astype(np.float64)
    return rounded if np.isfinite(rounded).all() or not finite else numbers


def _listed_categories(section: DocumentSection, is_leaf: np.ndarray) -> dict[int, np.ndarray]:
    """Return the categories of each split on a category."""
    n_nodes = len(is_leaf)
    by_category = np.flatnonzero((section["split_type"].integers(0, 1, n_nodes) == 1) & ~is_leaf)
    if len(by_category) == 0:
        return {}
    codes = section["categories"].integers(0, _MOST)
    nodes = section["categories_nodes"].integers(0, n_nodes - 1)
    starts = section["categories_segments"].integers(0, len(codes), len(nodes))
    sizes = section["categories_sizes"].integers(0, len(codes), len(nodes))
    if (starts + sizes > len(codes)).any() or sizes.sum() > len(codes):
        section["categories_sizes"].fail(f"more than the {len(codes)} categories there are")
    listed = {
        node: np.unique(codes[start : start + size])
        for node, start, size in zip(nodes.tolist(), starts.tolist(), sizes.tolist(), strict=True)
    }
    if set(by_category.tolist()) != set(listed):
        section["categories_nodes"].fail("are others than the splits on categories")
    if any(len(of_node) > 0 and of_node[-1] >= MOST_CATEGORIES for of_node in listed.values()):
        section["categories"].fail(f"a category above {MOST_CATEGORIES - 1} is not supported")
    return listed


def boundaries(thresholds: np.ndarray) -> np.ndarray:
    """Return the float64 below which a value, rounded to float32, is below a float32 threshold.

    That is halfway from the threshold to the float32 below it, or the next float64 where a value
    just there is rounded down, to an even last digit.
    """
    with np.errstate(over="ignore"):  # in JSON numbers may be longer
        above = thresholds.astype(np.float32)
        below = np.nextafter(above, np.float32(-np.inf))
    # as if float32 went on beyond its range: there infinity stands for 2^128
    ends = np.clip(above.astype(np.float64), -(2.0**128), 2.0**128)
    halfway = 0.5 * (ends + np.clip(below.astype(np.float64), -(2.0**128), 2.0**128))
    goes_down = below.view(np.int32) % 2 == 0
    halfway = np.where(goes_down, np.nextafter(halfway, np.inf), halfway)
    return np.where(above == -np.inf, -np.inf, halfway)


# --- learning rate and lambda, which files do not have

_SAME = 1e-5  # of the largest term; terms are products of float32
_NOISE = 1e-7  # of the largest term of all splits
_MOST_TREES = 200  # that are looked at
_DIGITS = (2, 3, 4, 6)  # of what users write, and of what float32 knows


@np.errstate(all="ignore")
def find_settings(
    trees: Sequence[XGBoostTree], candidates: Sequence[tuple[float, float]]
) -> tuple[float, float] | None:
    """Return η of leaf values, and λ; None if nothing explains all leaf weights.

    `candidates` are pairs of η and λ that the training may have had.
    """
    splits = [_equations(tree) for tree in trees[:_MOST_TREES]]
    terms = np.concatenate(splits, axis=1)
    if terms.shape[1] == 0:
        return None
    return next((pair for pair in [*candidates, *_solve(terms)] if _explains(terms, *pair)), None)


def _equations(tree: XGBoostTree) -> np.ndarray:
    """Return the weight, cover and "is a leaf" of each split, its left and its right child.

    Shape (9, n_splits * n_outputs).
    """
    is_leaf = tree.left < 0
    parents = np.flatnonzero(~is_leaf)
    # links are checked later; links that lead nowhere say nothing
    parents = parents[np.maximum(tree.left, tree.right)[parents] < len(is_leaf)]
    parents = parents[tree.right[parents] >= 0]
    rows = []
    for nodes in (parents, tree.left[parents], tree.right[parents]):
        weights = tree.weights[nodes]
        covers = np.broadcast_to(tree.cover[nodes, np.newaxis], weights.shape)
        leaves = np.broadcast_to(is_leaf[nodes, np.newaxis], weights.shape)
        rows += [weights.ravel(), covers.ravel(), leaves.ravel()]
    return np.array(rows, dtype=np.float64)


def _explains(terms: np.ndarray, rate: float, reg_lambda: float) -> bool:
    if not (rate > 0.0 and reg_lambda >= 0.0):
        return False
    w, H, is_leaf = terms[0::3], terms[1::3], terms[2::3]
    sums = np.where(is_leaf == 1.0, w / rate, w) * (H + reg_lambda)
    size = np.abs(sums).max(axis=0)
    return bool((np.abs(sums[0] - sums[1] - sums[2]) <= _SAME * size + _NOISE * size.max()).all())


def _solve(terms: np.ndarray) -> list[tuple[float, float]]:
    """Return η and λ of least squares, rounded to a few digits and to more."""
    w, H, is_leaf = terms[0::3], terms[1::3], terms[2::3]
    sign = np.array([[1.0], [-1.0], [-1.0]])
    inner, leaves = sign * w * (1.0 - is_leaf), sign * w * is_leaf
    matrix = np.column_stack([inner.sum(axis=0), (leaves * H).sum(axis=0), leaves.sum(axis=0)])
    target = -(inner * H).sum(axis=0)
    if not (np.isfinite(matrix).all() and np.isfinite(target).all()):
        return []
    solution, _, rank, _ = np.linalg.lstsq(matrix, target, rcond=1e-6)
    if rank < 3 or solution[1] <= 0.0:
        return []
    rate, reg_lambda = 1.0 / solution[1], max(solution[0], 0.0)
    return [(float(f"{rate:.{n}g}"), float(f"{reg_lambda:.{n}g}")) for n in _DIGITS]


# --- categories

# The values of categories in XGBoost's files, since its version 3.1: text or integers.
#
# ``enc`` has an entry for each feature, empty for numbers. Text is stored as bytes, all one after
# the other, and where each begins. ``sorted_idx`` are the places of the values in increasing order,
# feature after feature, by which XGBoost finds them.
#
# XGBoost looks up the values of columns of a categorical dtype, and takes all other numbers for
# places in the list. So small integers are in the list at their own places, with the integers
# between them: either way they are the same category.

# The types of arrays of integers, as XGBoost numbers them: from int8 to int64.
INT8, INT64 = 9, 15
# It counts characters where it should count bytes, so that other values are found.
CUT_OFF = "XGBoost 3.2 cuts text off that is not ASCII"


def read_categories(
    section: DocumentSection | None, is_category: Sequence[bool], most_listed: Sequence[int]
) -> tuple[Encoding, ...] | None:
    """Return how the values of features become numbers; None if all are numbers.

    `section` has the stored values; it may be None or empty. `is_category` says which features are
    categories, as far as the file does; `most_listed` is the largest code in the splits of each
    feature, -1 if there is none.
    """
    columns: list[Encoding | None] = [None] * len(is_category)
    entries = None if section is None else section.get("enc")
    if entries is not None and len(entries) > 0:
        if len(entries) != len(columns):
            entries.fail(f"must have {len(columns)} elements, and has {len(entries)}")
        columns = [_read_encoding(entry) for entry in entries]
    plain, codes = Encoding(), np.arange(max(most_listed, default=-1) + 1)  # shared
    encodings = []
    for listed, is_declared, most in zip(columns, is_category, most_listed, strict=True):
        if listed is not None:
            if most >= listed.n_categories:
                raise ModelFileError(f"cats.enc: there is no category {most}, as splits have")
            encodings.append(listed)
        elif is_declared or most >= 0:  # codes that the user has made
            own = codes[: most + 1]
            encodings.append(Encoding("category", "", codes[:0], own, own, True, True))
        else:
            encodings.append(plain)
    return None if all(encoding.is_plain for encoding in encodings) else tuple(encodings)


def _read_encoding(entry: DocumentSection) -> Encoding | None:
    """Return the encoding of listed categories; None for numbers."""
    values = entry["values"]
    if len(values) == 0:
        return None
    if (kind := entry.get("type")) is not None:
        kind.integer(INT8, INT64)
        found: list[Any] = values.integers(-(2**63), 2**63 - 1).tolist()
    else:
        data = values.integers(-128, 127).astype(np.int8).tobytes()
        if not data.isascii():
            values.fail(f"text of categories beyond ASCII: {CUT_OFF}; train with other names")
        ends = entry["offsets"].integers(0, len(data))
        if (np.diff(ends) < 0).any():
            entry["offsets"].fail("do not increase")
        found = [data[i:j].decode("ascii") for i, j in itertools.pairwise(ends.tolist())]
    if not found:
        entry["offsets"].fail("there is no category")
    is_declared = found == list(range(len(found)))  # a number is the category it is the place of
    return encoding_of(found, values.place, is_declared=is_declared)
