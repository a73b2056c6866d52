"""XGBoost's models: its document, JSON or UBJSON, as trees and what they mean."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sklboost.data.encoding import Encoding
from sklboost.files.errors import ModelFileError
from sklboost.files.foreign import ForeignTree
from sklboost.files.meaning import Meaning
from sklboost.files.sections import LARGEST_SCORE, Section
from sklboost.files.xgboost.categories import read_categories
from sklboost.files.xgboost.objectives import LOG, LOG_ODDS, SHARED
from sklboost.files.xgboost.training_settings import find_settings
from sklboost.files.xgboost.tree_reading import XGBoostTree, read_tree

_MOST = 2**31 - 1
_MOST_DIGITS = 20
_MOST_FEATURES = 2**20  # a file says their number, and may have room for no more than that
_WEIGHTS = (0.0, LARGEST_SCORE)  # of the rounds of dart
_OLDEST = (1, 7)
_DEFAULT_RATE = 0.3
_SAME_FOR_CLASSES = {"multi:softmax": "multi:softprob", "reg:logistic": "binary:logistic"}
_NO_REMEDY = "sklboost has no objective of that name and meaning"
_REFUSED = {
    "binary:logitraw": "its raw scores are not probabilities; train with binary:logistic",
    "reg:squaredlogerror": "its raw scores are predictions there, and logarithms here",
    "rank": "models of rankings are not read; train an XGBRankerLite",
    "survival": "models of survival times are not read; train an XGBSurvivalLite",
}


class Known(NamedTuple):
    """What is known of a model beside its document."""

    is_classifier: bool | None = None  # None: the objective says it
    missing: float = np.nan
    # pairs of learning rate and lambda that the training may have had
    settings: Sequence[tuple[float, float]] = ()
    parameters: dict[str, Any] = {}  # noqa: RUF012, never modified


NOTHING_KNOWN = Known()


def read_model(
    document: Section, known: Known = NOTHING_KNOWN
) -> tuple[list[ForeignTree], list[str], Meaning]:
    """Return the trees, their places, and what they mean.

    Only rounds up to ``best_iteration`` are kept, those that XGBoost's estimators predict with.

    Raises
    ------
    ModelFileError
        If the document is damaged, or has what cannot be represented.
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
    if (task == "multiclass") != (n_classes > 1):
        shapes["num_class"].fail(f"{n_classes} classes, but the objective is {objective!r}")
    parameters = _objective_parameters(learner["objective"], task, objective)
    n_alphas = np.size(parameters.get("quantile_alpha", 0.0))
    trees, n_parallel, best = _rounds(booster, weights, n_outputs, learner)
    is_vector = len(trees) > 0 and trees[0][0].values.shape[1] > 1
    found = find_settings([tree for tree, _ in trees], known.settings)
    # a leaf that is not explained still has a value; λ of NaN says that G is not known
    rate, reg_lambda = found or (_likely_rate(known, n_parallel), np.nan)
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
    meaning = Meaning(
        task=task,
        objective=objective,
        base_score=_base_score(shapes["base_score"], objective, n_outputs),
        n_targets=max(n_outputs // n_alphas, 1) if task == "regression" else 1,
        n_features=n_features,
        feature_names=[name.text() for name in names] or None if names is not None else None,
        encodings=_encodings(
            booster, learner.get("feature_types"), [tree for tree, _ in trees], n_features
        ),
        classes=_classes(task, n_outputs),
        missing=known.missing,
        parameters=parameters,
        best_iteration=best,
    )
    if names is not None and meaning.feature_names and len(meaning.feature_names) != n_features:
        names.fail(f"must have {n_features} elements, and has {len(meaning.feature_names)}")
    foreign = [tree.foreign(weight, rate, reg_lambda) for tree, weight in trees]
    return foreign, [tree.place for tree, _ in trees], meaning


def _likely_rate(known: Known, n_parallel: int) -> float:
    """Return the learning rate that leaf values were probably multiplied by."""
    rates = [rate for rate, _ in known.settings if rate > 0.0]
    return rates[0] if rates else _DEFAULT_RATE / n_parallel


def _count(section: Section | None, least: int = 0, most: int = _MOST) -> int:
    """Return a number that is written as text; 0 where there is none."""
    if section is None:
        return 0
    text = section.text()
    count = int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else -1
    if not least <= count <= most:
        section.fail(f"must be an integer from {least} to {most}, and is {text[:40]!r}")
    return count


def _floats(section: Section) -> list[float]:
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


def _task(learner: Section, known: Known) -> tuple[str, str]:
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
        task = "regression"
    if name not in SHARED[task]:
        why = _REFUSED.get(name, _REFUSED.get(name.partition(":")[0], _NO_REMEDY))
        kind = "a classifier" if is_classifier else "a regressor"
        section.fail(f"the objective {section.text()!r} of {kind}: {why}")
    return task, name


def _objective_parameters(section: Section, task: str, objective: str) -> dict[str, Any]:
    shared = SHARED[task][objective]
    if not shared.parameter:
        return {}
    values = _floats(section[shared.section][shared.parameter])
    # 1.29999995 is the float32 of 1.3
    values = [float(str(np.float32(value))) for value in values]
    return {shared.parameter: values if len(values) > 1 else values[0]}


def _base_score(section: Section, objective: str, n_outputs: int) -> np.ndarray:
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
            f"{only[0]:g} is that of a training on the single class {only[0]:g}: its raw scores "
            "are infinite; train on rows of both classes"
            if only
            else "must be between 0 and 1"
        )
    if objective in LOG:
        return np.log(scores)
    return np.log(scores) - np.log1p(-scores) if objective in LOG_ODDS else scores


def _classes(task: str, n_outputs: int) -> np.ndarray | None:
    if task == "regression":
        return None
    return np.arange(2 if task == "binary" else n_outputs)


def _encodings(
    booster: Section, types: Section | None, trees: Sequence[XGBoostTree], n_features: int
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


def _booster(section: Section) -> tuple[Section, np.ndarray | None]:
    """Return the section of the trees, and the weights of dart's."""
    name = section["name"].text()
    if name == "gblinear":
        section["name"].fail("booster='gblinear' has no trees, and sklboost has nothing but trees")
    section["name"].text(("gbtree", "dart"))
    if name == "gbtree":
        return section["model"], None
    return section["gbtree"]["model"], section["weight_drop"].numbers(limits=_WEIGHTS)


def _rounds(
    booster: Section, weights: np.ndarray | None, n_outputs: int, learner: Section
) -> tuple[list[tuple[XGBoostTree, float]], int, int | None]:
    """Return trees in our order with their weights, the parallel trees, and the best round.

    In a round XGBoost has all parallel trees of an output, then those of the next; tree t of ours
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
            size.fail(f"must be {n_leaf_outputs}, as that of the first tree")
        trees.append((read_tree(sections[number], n_leaf_outputs), float(factors[number])))
    return trees, n_parallel, best_round
