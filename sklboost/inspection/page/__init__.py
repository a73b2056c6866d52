"""A model as one HTML page, which needs no other file and no network."""

import base64
import hashlib
import html
import json
import math
import re
from array import array
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

import numpy as np

from sklboost.engine.model import Model
from sklboost.inspection.derivation import Derivation, Step, number
from sklboost.inspection.derivation.nodes import derive_node, gamma_and_pruning
from sklboost.inspection.derivation.trees import GrownTree, ModelNames, grown_tree
from sklboost.inspection.importances import IMPORTANCE_TYPES, split_importances

Token = float | int | str

# Numbers that JavaScript writes as they are written here.
_PLAIN = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d*[1-9])?")


def is_same_number(text: str) -> bool:
    """Whether a float, as JavaScript writes it, is this text: no digit is lost."""
    return text != "-0" and repr(float(text)).removesuffix(".0") == text


def token(text: str) -> Token:
    """Return the number that JavaScript writes as this text, or the text if there is none."""
    if not _PLAIN.fullmatch(text) or not is_same_number(text):
        return text
    return float(text) if "." in text else int(text)


def rounded(value: float) -> Token:
    """Return a number with as many digits as derivations have."""
    return token(number(value))


def column(values: list[float]) -> list[float]:
    """Return numbers that the page computes with, in nine digits."""
    return [float(f"{value:.9g}") for value in values]


# A number in a sentence, if JavaScript writes it in the same way, and the mark in its place.
_NUMBER = re.compile(r"(?<![\w.+-])(?!-0(?!\.))-?(?:0|[1-9]\d*)(?:\.\d*[1-9])?(?![\w.]?\w|\.\.)")
MARK = "\ufffc"
# The heading and the lines of each section.
_Shape = tuple[tuple[str, tuple[Any, ...]], ...]


def fold_derivations(derivations: Iterable[Derivation]) -> dict[str, Any]:
    """Return derivations as templates and columns of numbers.

    ``kinds`` has the number of each derivation's template, ``sentences`` a mark for each number. A
    template has ``sections`` (heading and lines: of a step its name, symbol, formula and the
    symbols of its values; of a sentence how many numbers it has; the first section is the title),
    ``slots`` (for each number, in order, the number of its column; a sentence comes before its
    numbers, a result after its values) and ``columns``.
    """
    sentences: dict[str, int] = {}
    known: dict[_Shape, int] = {}
    folded: list[array[float]] = []
    kinds = []
    for derivation in derivations:
        shape, numbers = _fold(derivation, sentences)
        kind = known.setdefault(shape, len(known))
        if kind == len(folded):
            folded.append(array("d"))
        folded[kind].extend(numbers)
        kinds.append(kind)
    templates = [
        {"sections": shape, **_columns(np.array(numbers).reshape(kinds.count(kind), -1), shape)}
        for kind, (shape, numbers) in enumerate(zip(known, folded, strict=True))
    ]
    return {"kinds": kinds, "templates": templates, "sentences": list(sentences)}


def _fold(derivation: Derivation, sentences: dict[str, int]) -> tuple[_Shape, list[float]]:
    """Return what derivations of a kind have in common, and the numbers of this one."""
    numbers = _fold_sentence(derivation.title, sentences)
    shape: list[tuple[str, tuple[Any, ...]]] = [("", (len(numbers) - 1,))]
    for section in derivation.sections:
        lines: list[Any] = []
        for line in section.lines:
            if isinstance(line, Step):
                lines.append((line.name, line.symbol, line.formula, tuple(line.values)))
                numbers += [*line.values.values(), line.result]
            else:
                folded = _fold_sentence(line, sentences)
                lines.append(len(folded) - 1)
                numbers += folded
        shape.append((section.heading, tuple(lines)))
    return tuple(shape), numbers


def _fold_sentence(sentence: str, sentences: dict[str, int]) -> list[float]:
    """Return the number of a sentence without its numbers, and these."""
    if sentence in sentences:  # without numbers, and not new
        return [sentences[sentence]]
    found: list[str] = []

    def marked(match: re.Match[str]) -> str:
        if not is_same_number(match.group()):
            return match.group()
        found.append(match.group())
        return MARK

    text = sentence if MARK in sentence else _NUMBER.sub(marked, sentence)
    return [sentences.setdefault(text, len(sentences)), *map(float, found)]


def _columns(numbers: np.ndarray, shape: _Shape) -> dict[str, Any]:
    """Return the different columns, and the number of each slot's column."""
    is_exact = []  # whether a number is written with all its digits: in sentences, not in steps
    for _, lines in shape:
        for line in lines:
            is_sentence = isinstance(line, int)
            is_exact += [is_sentence] * (1 + (line if is_sentence else len(line[3])))
    different: dict[tuple[bool, bytes], int] = {}
    columns: list[Any] = []
    slots = []
    for column, exact in zip(numbers.T, is_exact, strict=True):
        key = (exact, column.tobytes())
        if key not in different:
            different[key] = len(columns)
            same = bool((column == column[0]).all())
            values = column[:1].tolist() if same else column.tolist()
            texts = [rounded(value) for value in values]
            if exact:
                texts = [int(value) if value.is_integer() else value for value in values]
            columns.append(texts[0] if same else texts)
        slots.append(different[key])
    return {"slots": slots, "columns": columns}


# In the order in which they build on one another.
SCRIPTS = (
    *("numbers.js", "elements.js", "trees.js", "layout.js", "derivations.js", "drawing.js"),
    *("view.js", "node_panel.js", "tree_section.js", "curves.js", "importances.js"),
    *("rows.js", "start.js"),
)
# Letters that could end the element of the data, or begin another, or end lines in JavaScript.
_ESCAPED = "<>&\u2028\u2029"


def html_document(title: str, data: dict[str, Any]) -> str:
    """Return the text of the document; numbers in `data` are finite."""
    style = _text_of("page.css")
    script = "\n".join(map(_text_of, SCRIPTS))
    parts = {
        "title": html.escape(title),
        "policy": f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'",
        "style": style,
        "data": as_json(data),
        "script": script,
    }
    # all at once, since the parts may contain such marks themselves
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: parts[mark[1]], _text_of("page.html"))


def as_json(data: Any) -> str:
    """Return JSON that may stand inside a script element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in _ESCAPED:
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _text_of(name: str) -> str:
    return files("sklboost.inspection.page").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return what stands for a text in a Content-Security-Policy, which then allows it alone."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


_ABOUT = {
    "gain": "Average gain of the splits on a feature",
    "total_gain": "Total gain of the splits on a feature",
    "cover": "Average cover of the splits on a feature",
    "total_cover": "Total cover of the splits on a feature",
    "weight": "Number of splits on a feature",
}
_NODE_COLUMNS = ("left", "feature", "threshold", "gain", "missing_left", "removed", "cover")


def model_contents(model: Model, names: ModelNames, with_derivations: bool) -> dict[str, Any]:
    """Return what the page shows of the trees; with derivations, nodes can be unfolded."""
    trees = [grown_tree(model, tree) for tree in range(model.n_trees)]
    columns = tree_columns(trees, names)
    gains = [gain for gain, left in zip(columns["gain"], columns["left"], strict=True) if left > 0]
    nodes = ((tree, node) for tree in trees for node in range(len(tree.nodes)))
    derivations = (derive_node(tree, node, names) for tree, node in nodes)
    values = columns["values"]
    return {
        "features": list(names.features),
        "outputs": [name or f"output {output}" for output, name in enumerate(names.outputs)],
        "n_outputs": model.n_outputs,
        "n_trees": model.n_trees,
        "is_vector": len(values) > 1,
        "gamma": gamma_and_pruning(model.params_of(0))[0],
        "least_gain": min([0.0, *gains]),
        "largest_gain": max([0.0, *gains]),
        "largest_value": max(abs(value) for of_output in values for value in of_output),
        "trees": columns,
        "derivations": fold_derivations(derivations) if with_derivations else None,
    }


def tree_columns(trees: Iterable[GrownTree], names: ModelNames) -> dict[str, Any]:
    """Return the nodes of all trees as lists with an item for each node, tree after tree.

    Splits that pruning removed are among them, if the model has kept them.

    ``starts``: where each tree begins, and the end of the last. ``left``: first child, counted from
    the tree's root, the second one follows it; 0 for a leaf. ``feature``, ``threshold`` (the rows
    below it go to the first child), ``gain``, 0 for a leaf. ``missing_left``: 1 if missing values
    go to the first child. ``removed``: 1 for a split that the model no longer has. ``cover``.
    ``values``: a list for each output of a tree. ``conditions``: the splits on categories or on
    missing values, in words, by node.
    """
    columns: dict[str, list[Any]] = {name: [] for name in _NODE_COLUMNS}
    values: list[list[float]] = []
    starts, conditions = [0], {}
    for tree in trees:
        nodes, start = tree.nodes, starts[-1]
        is_split = nodes.left >= 0
        # NaN stands for a set of categories, which is among the conditions
        thresholds = np.where(np.isfinite(nodes.threshold), nodes.threshold, 0.0).tolist()
        columns["left"] += np.maximum(nodes.left, 0).tolist()
        columns["feature"] += np.where(is_split, nodes.feature, 0).tolist()
        pairs = zip(np.where(is_split, nodes.feature, 0).tolist(), thresholds, strict=True)
        columns["threshold"] += [token(names.threshold_text(*pair)) for pair in pairs]
        columns["gain"] += [float(f"{gain:.12g}") for gain in nodes.gain.tolist()]
        columns["missing_left"] += nodes.default_left.tolist()
        columns["removed"] += (is_split & ~tree.is_split).astype(int).tolist()
        columns["cover"] += column(nodes.cover.tolist())
        values = values or [[] for _ in range(tree.values.shape[1])]
        for of_output, new in zip(values, tree.values.T.tolist(), strict=True):
            of_output += column(new)
        for node in np.flatnonzero(is_split & ~np.isfinite(nodes.threshold)).tolist():
            conditions[start + node] = names.condition(tree, node)
        starts.append(start + len(nodes))
    return {"starts": starts, **columns, "values": values, "conditions": conditions}


def importances_of_splits(model: Model) -> list[dict[str, Any]]:
    """Return importances of all XGBoost's types, which the splits of the trees give."""
    return [
        importance(kind, _ABOUT[kind], split_importances(model, kind)) for kind in IMPORTANCE_TYPES
    ]


def importance(name: str, about: str, values: np.ndarray) -> dict[str, Any]:
    """Return one type of importance, with `values` of shape (n_features,)."""
    return {"name": name, "about": about, "values": column(values.tolist())}


def curve_contents(
    log: Mapping[str, Mapping[str, Any]], first_round: int, best: int | None
) -> dict[str, Any]:
    """Return learning curves, of a log like ``evals_result_`` that begins with `first_round`."""
    by_metric: dict[str, list[dict[str, Any]]] = {}
    for rows, metrics in log.items():
        for name, values in metrics.items():
            known = [value if math.isfinite(value) else None for value in column(values)]
            by_metric.setdefault(name, []).append({"name": rows, "values": known})
    charts = [{"name": name, "sets": sets} for name, sets in by_metric.items()]
    return {"first_round": first_round, "best": best, "metrics": charts}
