"""The nodes of a tree as they are drawn: the texts in each, and which nodes are its children."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sklboost.displays.figures import short, short_names, short_number
from sklboost.estimators.predict.fitted_model import FittedModel
from sklboost.tree.predict.category_bits import listed_categories

_MOST_LETTERS = 26  # of a name, and of the categories of a split
_FEW_DIGITS = 1e9  # from here on a short number does not say which integer it is


class DrawnNode(NamedTuple):
    """A node of the picture."""

    number: int  # of the node in its tree, as in ``apply`` and ``trees_to_dataframe``
    depth: int  # 0 for the root
    lines: tuple[str, ...]  # the text in it
    # learning rate times leaf weight; of an inner node what it would add if it were a leaf
    value: float
    # left and right, as places in the list; (-1, -1) for a leaf and where the drawing ends
    children: tuple[int, int]
    default_left: bool  # whether missing values go left
    is_leaf: bool


def tree_nodes(
    fitted: FittedModel,
    tree: int,
    output: int,
    max_depth: float,
    precision: int,
    with_stats: bool = True,
) -> list[DrawnNode]:
    """Return the nodes that are drawn, down to depth `max_depth`, parents before their children.

    Values are those of one `output`; numbers have `precision` digits. Gain and cover are left out
    without `with_stats`.
    """
    model = fitted.model
    start, stop = model.tree_starts[tree], model.tree_starts[tree + 1]
    nodes = model.nodes[start:stop]
    values = model.values[output, start:stop]
    names = short_names(fitted.feature_names, _MOST_LETTERS)
    # what is left of sums that are 0, since gradients were rounded
    nothing = 1e-6 * float(np.abs(values).max())
    drawn: list[DrawnNode] = []
    waiting, place = [(0, 0)], 0  # node and depth; in the order of the list, depth by depth
    for number, depth in waiting:
        node = nodes[number]
        value = float(values[number]) if abs(values[number]) > nothing else 0.0
        is_leaf, children = bool(node.left < 0), (-1, -1)
        lines = [f"{'leaf' if is_leaf else 'node'} {number}"]
        if not is_leaf:
            lines.append(split_text(fitted, names, start + number, precision))
        if with_stats:
            lines += [] if is_leaf else [f"gain {short_number(node.gain, precision)}"]
            lines.append(f"cover {short_number(node.cover, precision)}")
        lines.append(f"value {short_number(value, precision)}")
        if not is_leaf:
            if depth < max_depth:
                children = (place + 1, place + 2)
                place += 2
                waiting += [(int(child), depth + 1) for child in (node.left, node.right)]
            else:
                lines.append(f"… {_count_leaves(nodes, number)} leaves")
        elif model.linear is not None:
            lines += _line_texts(fitted, start + number)
        goes_left = bool(node.default_left)
        drawn.append(DrawnNode(number, depth, tuple(lines), value, children, goes_left, is_leaf))
    return drawn


def split_text(fitted: FittedModel, names: Sequence[str], position: int, precision: int) -> str:
    """The condition of rows that go left at a node, given by its place among those of all trees."""
    node = fitted.model.nodes[position]
    name = names[node.feature]
    encoding = fitted.names.encoding(node.feature)
    if np.isnan(node.threshold):
        codes = listed_categories(fitted.model.tops.bits, position)
        by_code = fitted.categories[node.feature]
        texts = [encoding.text(category) for code in codes for category in by_code[code]]
        return f"{name} in {_categories_text(texts)}"
    if node.threshold == -np.inf:
        return f"{name} is missing"
    if np.isinf(node.threshold) or (encoding.is_plain and abs(node.threshold) < _FEW_DIGITS):
        return f"{name} < {short_number(float(node.threshold), precision + 1)}"
    return f"{name} < {encoding.text(encoding.threshold(node.threshold))}"


def _categories_text(categories: list[str]) -> str:
    """As many categories as there is room for, and the number of the others, within braces."""
    shown: list[str] = []
    for category in categories:
        text = short(category, _MOST_LETTERS // 2)
        if shown and sum(map(len, shown)) + len(text) + 2 * len(shown) > _MOST_LETTERS:
            break
        shown.append(text)
    more = len(categories) - len(shown)
    return "{" + ", ".join(shown + ([f"+{more}"] if more else [])) + "}"


def _line_texts(fitted: FittedModel, position: int) -> list[str]:
    linear = fitted.model.linear
    assert linear is not None
    terms = linear.terms[linear.starts[position] : linear.starts[position + 1]]
    if len(terms) == 0:
        return []
    names = ", ".join(fitted.feature_names[feature] for feature in terms["feature"])
    return [f"+ line in {short(names, _MOST_LETTERS)}"]


def _count_leaves(nodes: np.ndarray, top: int) -> int:
    n_leaves, waiting = 0, [top]
    while waiting:
        node = nodes[waiting.pop()]
        if node.left < 0:
            n_leaves += 1
        else:
            waiting += [int(node.left), int(node.right)]
    return n_leaves
