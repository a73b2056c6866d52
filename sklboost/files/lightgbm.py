"""LightGBM's text models: their sections, categories, trees, and what they mean."""

import itertools
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from sklboost.data.encoding import MOST_CATEGORIES, Encoding
from sklboost.files.documents import read_json
from sklboost.files.foreign import (
    ForeignTree,
    ModelInfo,
    add_up,
    encoding_of,
    with_equal_left,
    with_gradients,
)
from sklboost.files.sections import DocumentSection, ModelFileError


class Objective(NamedTuple):
    """A loss of LightGBM that is here, too."""

    name: str  # ours
    task: str = "regression"
    parameter: tuple[str, str] | None = None  # the names of its parameter there and here
    # whether training starts where the gradients of all rows add up to 0
    starts_at_root: bool = False


OBJECTIVES = {
    "regression": Objective("reg:squarederror", starts_at_root=True),
    "regression_l1": Objective("reg:absoluteerror"),
    "huber": Objective("reg:huber", parameter=("alpha", "huber_slope")),
    "fair": Objective("reg:fair", parameter=("fair_c", "fair_c")),
    "quantile": Objective("reg:quantileerror", parameter=("alpha", "quantile_alpha")),
    "mape": Objective("reg:mape"),
    "poisson": Objective("count:poisson", starts_at_root=True),
    "gamma": Objective("reg:gamma", starts_at_root=True),
    "tweedie": Objective(
        "reg:tweedie",
        parameter=("tweedie_variance_power", "tweedie_variance_power"),
        starts_at_root=True,
    ),
    "cross_entropy": Objective("reg:logistic", starts_at_root=True),
    "binary": Objective("binary:logistic", "binary", starts_at_root=True),
    "multiclass": Objective("multi:softprob", "multiclass", starts_at_root=True),
    "multiclassova": Objective("multi:onevsrest", "multiclass", starts_at_root=True),
}


class Header(NamedTuple):
    """The header of a text model."""

    objective: Objective
    n_outputs: int
    sigmoid: float  # what log-odds are, in raw scores; 1 for other losses
    is_forest: bool  # whether raw scores are the mean of the rounds
    names: list[str] | None  # of the features; None if the user gave none
    infos: list[str]  # of the features: ``[least:most]``, the categories ``2:0:1``, or ``none``


class ModelText(NamedTuple):
    """The sections of a text model."""

    # of texts
    header: DocumentSection
    parameters: DocumentSection
    trees: list[DocumentSection]  # of arrays, int64 and float64
    # the categories of the pandas columns, in a list of lists; null if the file has none
    pandas_categorical: DocumentSection


@np.errstate(all="ignore")
def read_lightgbm(data: bytes, name: str) -> tuple[list[ForeignTree], list[str], ModelInfo]:
    """Return the trees of a text model, their places for errors, and what they mean.

    ModelFileError if it is no text model, is damaged, or has what cannot be represented.
    """
    text = read_text(data, name)
    header = read_header(text.header)
    n_trees, places = len(text.trees), [section.place for section in text.trees]
    if n_trees == 0 or n_trees % header.n_outputs > 0:
        text.header.fail(f"there are {n_trees} trees, and {header.n_outputs} in each round")
    trees, missing = read_trees(text.trees, len(header.infos))
    trees, encodings = encode_categories(trees, text, header.infos)
    parameters = read_parameters(text.parameters, header.objective)
    if missing == 0.0 and sends_zero_left(trees, encodings):
        text.header.fail("zero is missing, and a category as well: not possible here")
    if any(tree.linear for tree in trees):
        if missing == 0.0:
            text.header.fail("zero is missing, but linear leaves multiply it: not possible here")
        parameters["linear_tree"] = True
    n_rounds = n_trees // header.n_outputs
    if header.is_forest:
        parameters |= {"learning_rate": 1.0, "num_parallel_tree": n_rounds}
    trees, base_score = _without_start(trees, header, parameters)
    trees = _with_gradients(trees, header, parameters)
    factor = header.sigmoid / (n_rounds if header.is_forest else 1)
    task = header.objective.task
    info = ModelInfo(
        task=task,
        objective=header.objective.name,
        base_score=header.sigmoid * base_score,
        n_targets=1,
        n_features=len(header.infos),
        feature_names=header.names,
        encodings=encodings,
        classes=None if task == "regression" else np.arange(max(2, header.n_outputs)),
        missing=missing,
        parameters=parameters,
    )
    return [_scaled(tree, factor) for tree in trees], places, info


def _without_start(
    trees: list[ForeignTree], header: Header, parameters: dict[str, Any]
) -> tuple[list[ForeignTree], np.ndarray]:
    """Take from the leaves of the first round what training started from; return it, too.

    LightGBM adds it to them and sets their learning rate to 1. It is taken to be their mean, which
    it is where the gradients of all rows add up to 0 at the start.
    """
    start = np.zeros(header.n_outputs)
    rate, reg_lambda = parameters.get("learning_rate", 1.0), parameters.get("reg_lambda", 0.0)
    changed = list(trees)
    for output, tree in enumerate(trees[: header.n_outputs]):
        if header.is_forest or tree.learning_rate != 1.0 or rate == 1.0:
            continue
        is_leaf = tree.left < 0
        weights = tree.cover[is_leaf] + reg_lambda
        start[output] = np.average(tree.value[is_leaf, 0], weights=weights)
        changed[output] = tree._replace(value=tree.value - start[output], learning_rate=rate)
    return changed, start


def _with_gradients(
    trees: list[ForeignTree], header: Header, parameters: dict[str, Any]
) -> list[ForeignTree]:
    """Return the trees with the sums of gradients of their nodes, where they are known."""
    in_other_units = header.is_forest or header.sigmoid != 1.0
    if in_other_units or "linear_tree" in parameters or "reg_lambda" not in parameters:
        return trees
    # where the start is not known exactly, all weights of the first round may be off by a constant
    has_start = header.objective.starts_at_root and "subsample" not in parameters
    has_start &= parameters.get("learning_rate") != 1.0
    n_unknown = 0 if has_start else header.n_outputs
    reg_lambda = parameters["reg_lambda"]
    return trees[:n_unknown] + [with_gradients(tree, reg_lambda) for tree in trees[n_unknown:]]


def _scaled(tree: ForeignTree, factor: float) -> ForeignTree:
    """Return a tree whose values are multiplied by a factor."""
    return tree._replace(
        value=factor * tree.value,
        linear={
            node: (features, [factor * slope for slope in slopes])
            for node, (features, slopes) in tree.linear.items()
        },
        shifts={node: factor * shift for node, shift in tree.shifts.items()},
    )


# --- the text

# The arrays of a tree that are read; all else is not looked at.
_INTEGERS = (
    *("num_leaves", "num_cat", "split_feature", "decision_type", "left_child", "right_child"),
    *("leaf_count", "cat_boundaries", "cat_threshold"),
    *("is_linear", "num_features", "leaf_features"),
)
_NUMBERS = (
    *("split_gain", "threshold", "leaf_value", "leaf_weight", "internal_value", "shrinkage"),
    *("leaf_const", "leaf_coeff"),
)
_KINDS: dict[str, Any] = {**dict.fromkeys(_INTEGERS, int), **dict.fromkeys(_NUMBERS, float)}
_NO_ARRAYS: Mapping[str, Any] = MappingProxyType({})


def read_text(data: bytes, name: str) -> ModelText:
    """Divide a text model into its sections; `name` is the file, for errors."""
    try:
        text = data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{name}: byte {error.start} is no UTF-8 text") from None
    if not text.startswith("tree\n"):
        raise ModelFileError(f"{name}: no text model of LightGBM, whose first line is 'tree'")
    body, end, rest = text.partition("\nend of trees\n")
    if not end:
        raise ModelFileError(f"{name}: the file ends before the line 'end of trees'")
    header, *trees = body.split("\nTree=")
    parameters = rest.partition("\nparameters:\n")[2].partition("\nend of parameters")[0]
    listed = [line[1:-1] for line in parameters.split("\n") if line]
    categories = f"\n{rest}".partition("\npandas_categorical:")[2].partition("\n")[0]
    return ModelText(
        _section(header.split("\n")[1:], "=", f"{name}: the header"),
        _section(listed, ":", f"{name}: the parameters"),
        # the first line is the number of the tree
        [
            _section(tree.split("\n")[1:], "=", f"{name}: tree {number}", _KINDS)
            for number, tree in enumerate(trees)
        ],
        DocumentSection(
            read_json(categories.encode("utf-8") or b"null", f"{name}: pandas_categorical"),
            f"{name}: pandas_categorical",
        ),
    )


def _section(
    lines: list[str], separator: str, place: str, kinds: Mapping[str, Any] = _NO_ARRAYS
) -> DocumentSection:
    """Return the keys and values of lines; a line without a value has an empty text."""
    found: dict[str, Any] = {}
    for line in lines:
        key, _, text = line.partition(separator)
        if key in found:
            raise ModelFileError(f"{place} has the key {key!r} more than once")
        if key:
            kind = kinds.get(key)
            found[key] = text.strip() if kind is None else _array(text, kind, f"{place}.{key}")
    return DocumentSection(found, place)


def _array(text: str, kind: type, place: str) -> np.ndarray:
    """Return the numbers in a text; more digits than an int64 has are none."""
    try:
        return np.array(list(map(kind, text.split())), dtype=np.dtype(kind))
    except (ValueError, OverflowError) as error:
        raise ModelFileError(f"{place}: {error}") from None


# --- header and parameters

_VERSIONS = ("v2", "v3", "v4")
_MOST = 2**31 - 1
# LightGBM's names of parameters that are taken over as they are, and ours.
_SAME = {
    "learning_rate": "learning_rate",
    "lambda_l2": "reg_lambda",
    "lambda_l1": "reg_alpha",
    "min_gain_to_split": "gamma",
    "min_sum_hessian_in_leaf": "min_child_weight",
    "path_smooth": "path_smooth",
    "feature_fraction": "colsample_bytree",
    "feature_fraction_bynode": "colsample_bynode",
    "linear_lambda": "linear_lambda",
}
_INTEGER_PARAMETERS = {
    "num_leaves": "max_leaves",
    "max_depth": "max_depth",
    "min_data_in_leaf": "min_child_samples",
}
_OF_DART = {"drop_rate": "rate_drop", "skip_drop": "skip_drop"}
# Of what versions before 4 do not write, or files that are not written by LightGBM.
_DEFAULTS = {
    **{"boosting": "gbdt", "num_leaves": "31", "max_depth": "-1", "max_delta_step": "0"},
    **{"bagging_freq": "0", "bagging_fraction": "1", "extra_trees": "0"},
    **{"min_data_in_leaf": "20"},
    **{"drop_rate": "0.1", "skip_drop": "0.5", "monotone_constraints": ""},
}


def read_header(header: DocumentSection) -> Header:
    """Read the header; ModelFileError if something is missing or makes no sense."""
    header["version"].text(_VERSIONS)
    if header.get("objective") is None:
        header.fail("has no objective, so it was the user's own: what raw scores mean is not known")
    words = header["objective"].text().split()
    if not words or words[0] not in OBJECTIVES:
        header["objective"].text(OBJECTIVES)
    if "sqrt" in words:
        header["objective"].fail("reg_sqrt: predictions are squares of raw scores, unknown here")
    objective = OBJECTIVES[words[0]]
    given = dict(word.partition(":")[::2] for word in words[1:])
    sigmoid = float_of(
        DocumentSection(given.get("sigmoid", "1"), f"{header.place}.objective sigmoid")
    )
    if sigmoid == 0.0:
        header["objective"].fail("sigmoid 0: it must be a positive number")
    n_outputs = header["num_tree_per_iteration"].written_integer(1, _MOST)
    n_classes = header["num_class"].written_integer(1, _MOST)
    if n_outputs != n_classes or (n_outputs > 1) != (objective.task == "multiclass"):
        header.fail(
            f"objective {words[0]!r} with {n_classes} class(es) and {n_outputs} tree(s) a round: "
            "it must be one of both, or for more classes more than one, and as many of each"
        )
    if n_outputs == 2:
        header.fail(
            f"objective {words[0]!r} with two classes, which have one raw score here: "
            "train it with 'binary'"
        )
    names, infos = (header[key].text().split(" ") for key in ("feature_names", "feature_infos"))
    n_features = header["max_feature_idx"].written_integer(0, _MOST) + 1
    for key, listed in (("feature_names", names), ("feature_infos", infos)):
        if len(listed) != n_features:
            header[key].fail(f"has {len(listed)} features, and max_feature_idx says {n_features}")
    has_names = names != [f"Column_{i}" for i in range(n_features)]
    is_forest = header.get("average_output") is not None
    return Header(objective, n_outputs, sigmoid, is_forest, names if has_names else None, infos)


def read_parameters(parameters: DocumentSection, objective: Objective) -> dict[str, Any]:
    """Return the parameters of the training as ours; empty if the file has none."""
    if not parameters.value:
        return {}
    parameters = DocumentSection({**_DEFAULTS, **parameters.value}, parameters.place)
    there = {**_SAME, **dict(filter(None, [objective.parameter]))}
    found: dict[str, Any] = {
        ours: float_of(parameters[theirs])
        for theirs, ours in there.items()
        if theirs in parameters.value
    }
    for theirs, ours in _INTEGER_PARAMETERS.items():
        found[ours] = max(0, parameters[theirs].written_integer(-_MOST, _MOST))
    found["max_delta_step"] = max(0.0, float_of(parameters["max_delta_step"], -np.inf))
    found["extra_trees"] = parameters["extra_trees"].written_integer(0, _MOST) == 1
    if parameters["boosting"].text() == "dart":
        found["booster"] = "dart"
        found |= {ours: float_of(parameters[theirs]) for theirs, ours in _OF_DART.items()}
    if parameters["bagging_freq"].written_integer(0, _MOST) > 0:
        found["subsample"] = float_of(parameters["bagging_fraction"])
    signs = parameters["monotone_constraints"]
    if signs.text():
        words = signs.text().split(",")
        found["monotone_constraints"] = [
            DocumentSection(w, signs.place).written_integer(-1, _MOST) for w in words
        ]
    return {**found, "grow_policy": "lossguide", "pruning": "pre"}


def float_of(section: DocumentSection, low: float = 0.0) -> float:
    """Return the number that a text is: finite, and at least `low`."""
    try:
        number = float(section.text())
    except ValueError:
        number = np.nan
    if not low <= number < np.inf:
        section.fail(f"must be a finite number >= {low:g}, and is {section.value[:40]!r}")
    return number


# --- categories

_PLAIN = (str, int, float, bool)
_MOST_CHOICES = 1000  # of columns of one value that may be categories
_MOST_DIGITS = 10


class Categories(NamedTuple):
    """The categories of a feature."""

    # int64, shape (n_categories,): lightGBM's, increasing: code k is the k-th of them
    integers: np.ndarray
    encoding: Encoding  # of the values that users have


def encode_categories(
    trees: list[ForeignTree], text: ModelText, infos: list[str]
) -> tuple[list[ForeignTree], tuple[Encoding, ...] | None]:
    """Return the trees with codes for categories, and the encodings of the features."""
    split_on = {
        feature for tree in trees for feature in tree.feature[list(tree.categories)].tolist()
    }
    # of other features: the range of the numbers in brackets, or "none" if there is one value only
    listed = {i for i, info in enumerate(infos) if not info.startswith(("[", "none"))}
    features = sorted(split_on | listed)
    lists = text.pandas_categorical
    if not lists.is_null and len(lists) > 0:
        known = _of_pandas(lists, features, infos)
    else:
        of_splits: dict[int, list[np.ndarray]] = {}
        for tree in trees:
            for node, codes in tree.categories.items():
                of_splits.setdefault(int(tree.feature[node]), []).append(codes)
        known = {i: _of_integers(i, of_splits.get(i, []), infos[i], text.header) for i in features}
    if not known:
        return trees, None
    coded = [
        _with_codes(tree, known, section.place)
        for tree, section in zip(trees, text.trees, strict=True)
    ]
    plain = Encoding()
    return coded, tuple(known[i].encoding if i in known else plain for i in range(len(infos)))


def _of_pandas(
    lists: DocumentSection, features: list[int], infos: list[str]
) -> dict[int, Categories]:
    """Return the categories of the features that were pandas columns of categories."""
    # features of one value may be categories, too
    constant = [i for i, info in enumerate(infos) if info == "none" and i not in features]
    sections, n_more = list(lists), len(lists) - len(features)
    if n_more == 0:
        return {i: _of_list(values) for i, values in zip(features, sections, strict=True)}
    choices = itertools.combinations(constant, n_more) if n_more >= 0 else ()
    fitting: dict[tuple[int, ...], list[int]] = {}
    digits = [re.findall(r"\d+", info) if not info.startswith("[") else [] for info in infos]
    header_codes = [[code for code in codes if len(code) < _MOST_DIGITS] for codes in digits]
    for chosen in itertools.islice(choices, _MOST_CHOICES):
        columns = sorted([*features, *chosen])
        # each list must have all codes that the header lists for its feature
        pairs = zip(columns, sections, strict=True)
        if all(int(code) < len(values) for i, values in pairs for code in header_codes[i]):
            # constant ones are split nowhere: what matters is which list the others have
            fitting[tuple(i for i, column in enumerate(columns) if column not in chosen)] = columns
    if len(fitting) == 1:
        (columns,) = fitting.values()
        return {i: _of_list(values) for i, values in zip(columns, sections, strict=True)}
    lists.fail(
        f"these are of {len(lists)} pandas columns, but {len(features)} features are categories, "
        "and the file does not say which are which: train with the codes of ordered categories, "
        "without integers that are declared as categories, and without columns of one value"
    )


def _of_list(values: DocumentSection) -> Categories:
    categories = [value.value for value in values]
    if not all(isinstance(value, _PLAIN) and value == value for value in categories):
        values.fail("must be a list of texts and numbers")
    # in other columns than pandas' all numbers are places: these are their own
    is_declared = categories == list(range(len(categories)))
    encoding = encoding_of(categories, values.place, is_declared=is_declared)
    return Categories(np.arange(len(categories)), encoding)


def _of_integers(
    feature: int, of_splits: list[np.ndarray], info: str, header: DocumentSection
) -> Categories:
    """Return the categories of a feature of integers, from its splits and the header."""
    place = f"{header.place}.feature_infos"
    try:
        known = [int(word) for word in info.split(":") if info != "none"]
    except ValueError:
        raise ModelFileError(f"{place}: feature {feature}: no categories: {info[:40]!r}") from None
    integers = np.unique(np.concatenate([np.array(known, dtype=np.int64), *of_splits]))
    integers = integers[integers >= 0]  # -1 is a missing value
    return Categories(integers, encoding_of(integers.tolist(), place, is_declared=True))


def _with_codes(tree: ForeignTree, known: dict[int, Categories], place: str) -> ForeignTree:
    is_number = tree.left >= 0
    is_number[list(tree.categories)] = False
    both = set(tree.feature[is_number].tolist()) & known.keys()
    if both:
        raise ModelFileError(f"{place}: feature {min(both)} is a category, and split by a number")
    codes = {}
    for node, integers in tree.categories.items():
        categories = known[int(tree.feature[node])].integers
        if not np.isin(integers, categories).all():
            raise ModelFileError(f"{place}: split {node}: more categories than the feature has")
        codes[node] = np.searchsorted(categories, integers)
    return tree._replace(categories=codes)


def sends_zero_left(trees: list[ForeignTree], encodings: tuple[Encoding, ...] | None) -> bool:
    """Whether zero is a category, and one that goes left at some split."""
    zeros = {i: known.code_of[0] for i, known in enumerate(encodings or ()) if 0 in known.code_of}
    return any(
        zeros.get(int(tree.feature[node]), -1) in codes
        for tree in trees
        for node, codes in tree.categories.items()
    )


# --- trees

# decision_type: bit 0, the split is on categories; bit 1, missing values go left; bits 2 and 3,
# what counts as missing. For NONE, NaN is 0; for ZERO both are missing.
_BY_CATEGORY, _DEFAULT_LEFT = 1, 2
_NONE, _ZERO, _NAN = 0, 1, 2
_MOST_LEAVES = 2**30


def read_trees(
    sections: Sequence[DocumentSection], n_features: int
) -> tuple[list[ForeignTree], float]:
    """Return the trees, and which value is missing besides NaN (NaN: none).

    Values are LightGBM's, categories its integers, and sums of gradients NaN.
    """
    is_missing = any(map(_tells_zero_from_numbers, sections))
    trees = [_read_tree(section, n_features, is_missing) for section in sections]
    return trees, 0.0 if is_missing else np.nan


def _tells_zero_from_numbers(section: DocumentSection) -> bool:
    """Whether a split sends zero, which is missing, another way than its threshold would."""
    decisions = section["decision_type"].integers(0, 4 * _NAN + 3)
    thresholds = section["threshold"].numbers(len(decisions), finite=False)
    is_zero = (decisions >> 2 == _ZERO) & (decisions & _BY_CATEGORY == 0)
    return bool((is_zero & ((decisions & _DEFAULT_LEFT > 0) != (thresholds >= 0.0))).any())


def _read_tree(section: DocumentSection, n_features: int, zero_is_missing: bool) -> ForeignTree:
    n_leaves = int(section["num_leaves"].integers(1, _MOST_LEAVES, 1)[0])
    n_splits = n_leaves - 1
    decisions = section["decision_type"].integers(0, 4 * _NAN + 3, n_splits)
    thresholds = section["threshold"].numbers(n_splits, finite=False)
    by_category = decisions & _BY_CATEGORY > 0
    default_left = decisions & _DEFAULT_LEFT > 0
    zero_left = thresholds >= 0.0
    if zero_is_missing:
        is_number = ~by_category & (decisions >> 2 == _NAN) & (default_left != zero_left)
        if is_number.any():
            section["decision_type"].fail(
                f"split {is_number.argmax()} takes zero for a number and others for a missing "
                "value: one model cannot do both here"
            )
    default_left = np.where(decisions >> 2 == _NONE, zero_left, default_left) & ~by_category
    nodes = np.full((3, n_splits + n_leaves), -1)
    for row, key in enumerate(("left_child", "right_child")):
        child = section[key].integers(-n_leaves, n_splits - 1, n_splits)
        nodes[row, :n_splits] = np.where(child >= 0, child, n_splits + ~child)
        if (nodes[row, :n_splits] <= np.arange(n_splits)).any():
            section[key].fail("a child comes before its parent")
    nodes[2, :n_splits] = section["split_feature"].integers(0, n_features - 1, n_splits)
    left, right, feature = nodes
    of_leaf = np.zeros(n_leaves)
    inner = section["internal_value"].numbers(n_splits)
    linear, shifts = _read_linear(section, n_leaves, n_features)
    tree = ForeignTree(
        left=left,
        right=right,
        feature=feature,
        threshold=np.append(thresholds, of_leaf),
        default_left=np.append(default_left, of_leaf > 0),
        value=np.append(inner, section["leaf_value"].numbers(n_leaves))[:, np.newaxis],
        gain=np.append(np.maximum(section["split_gain"].numbers(n_splits), 0.0), of_leaf),
        cover=add_up(left, right, _covers(section, n_leaves)),
        gradient=np.full(n_splits + n_leaves, np.nan),
        categories=_read_categories(section, by_category, thresholds),
        linear=linear,
        shifts=shifts,
        learning_rate=float(section["shrinkage"].numbers(1)[0]),
    )
    return with_equal_left(tree)


def _covers(section: DocumentSection, n_leaves: int) -> np.ndarray:
    """Return the sums of hessians of the leaves; else the numbers of rows, else 1."""
    for key in ("leaf_weight", "leaf_count"):
        known = section.get(key)
        if known is not None and len(known) == n_leaves:
            covers = known.numbers()
            if (covers > 0.0).all():
                return covers
    return np.ones(n_leaves)


def _read_categories(
    section: DocumentSection, by_category: np.ndarray, thresholds: np.ndarray
) -> dict[int, np.ndarray]:
    """Return the categories that go left at splits on them, by split."""
    splits = np.flatnonzero(by_category)
    n_sets = int(section["num_cat"].integers(len(splits), len(splits), 1)[0])
    if n_sets == 0:
        return {}
    # each set once: a short file could have a large one for all of its splits
    numbers = thresholds[splits]
    if not np.array_equal(np.sort(numbers), np.arange(n_sets)):
        section["threshold"].fail(
            f"the splits by category must have the sets 0 to {n_sets - 1}, each of them once"
        )
    words = section["cat_threshold"].integers(0, 2**32 - 1)
    starts = section["cat_boundaries"].integers(0, len(words), n_sets + 1)
    if starts[0] != 0 or starts[-1] != len(words) or (np.diff(starts) < 0).any():
        section["cat_boundaries"].fail("does not divide cat_threshold")
    found = {}
    for split, number in zip(splits.tolist(), numbers.astype(int).tolist(), strict=True):
        chosen = words[starts[number] : starts[number + 1]].astype("<u4")
        # before its bits take 8 bytes each
        if int(np.bitwise_count(chosen).sum()) > MOST_CATEGORIES:
            section["cat_threshold"].fail(
                f"split {split}: more than {MOST_CATEGORIES} categories are not supported"
            )
        found[split] = np.flatnonzero(np.unpackbits(chosen.view(np.uint8), bitorder="little"))
    return found


def _read_linear(
    section: DocumentSection, n_leaves: int, n_features: int
) -> tuple[dict[int, tuple[list[int], list[float]]], dict[int, float]]:
    """Return the terms of linear leaves, and the constants that are added with them."""
    is_linear = section.get("is_linear")
    if is_linear is None or is_linear.integers(0, 1, 1)[0] == 0:
        return {}, {}
    counts = section["num_features"].integers(0, n_features, n_leaves)
    features = section["leaf_features"].integers(0, n_features - 1, int(counts.sum()))
    slopes = section["leaf_coeff"].numbers(len(features))
    shifts = section["leaf_const"].numbers(n_leaves) - section["leaf_value"].numbers(n_leaves)
    starts = np.append(0, np.cumsum(counts)).tolist()
    terms = {
        n_leaves - 1 + leaf: (features[start:stop].tolist(), slopes[start:stop].tolist())
        for leaf, (start, stop) in enumerate(pairwise(starts))
        if start < stop
    }
    return terms, dict(enumerate(shifts.tolist(), start=n_leaves - 1))
