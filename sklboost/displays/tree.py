"""A tree as a drawing: its nodes, their places, and the display that draws them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from sklboost.displays.figures import (
    DARK,
    Display,
    check_number,
    draws_like,
    literal,
    pyplot,
    short,
    short_names,
    short_number,
)
from sklboost.engine.cached import cached_property
from sklboost.estimators.parameters.rules import check_value, integer, optional
from sklboost.estimators.predict.fitted_model import FittedModel, fitted_model
from sklboost.inspection.monotone_proof import leaves_under
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

    Values belong to one `output`; numbers have `precision` digits. Gain and cover are left out
    without `with_stats`.
    """
    model = fitted.model
    start, stop = model.tree_starts[tree], model.tree_starts[tree + 1]
    nodes = model.nodes[start:stop].view(np.recarray)
    values = model.values[output, start:stop]
    names = short_names(fitted.feature_names, _MOST_LETTERS)
    # rounding of gradients leaves as much of sums that are 0
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
                lines.append(f"… {len(leaves_under(nodes, number))} leaves")
        elif model.linear is not None:
            first, last = model.linear.starts[start + number : start + number + 2]
            if first < last:
                used = model.linear.terms["feature"][first:last]
                features = ", ".join(fitted.feature_names[feature] for feature in used)
                lines.append(f"+ line in {short(features, _MOST_LETTERS)}")
        goes_left = bool(node.default_left)
        drawn.append(DrawnNode(number, depth, tuple(lines), value, children, goes_left, is_leaf))
    return drawn


def split_text(fitted: FittedModel, names: Sequence[str], position: int, precision: int) -> str:
    """The condition of rows that go left at a node, given by its place in all trees."""
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


# All lengths are in points, 1/72 inch, before the picture is made smaller to fit.
_FONT, _SMALL = 9.0, 7.5
_LINE = 1.25 * _FONT
_PAD = 8.0  # between a text and its box
_SPACE = 12.0  # between two boxes
_DROP = 38.0  # between two depths: room for a label above a box
_MARGIN, _TITLE = 10.0, 26.0
_LONGEST_LABEL = "yes, missing"
_MOST_INCHES = 200.0  # of a figure of its own, in width; matplotlib can draw 655
# Colours of the largest values, positive and negative: light enough for black text.
_POSITIVE, _NEGATIVE = (0.965, 0.62, 0.36), (0.42, 0.70, 0.93)


@dataclass(eq=False, repr=False)
class TreeDisplay(Display):
    """A tree as a drawing: splits, gains, covers and values.

    Rows for which the condition of a split is true go to the left, along "yes". Missing values take
    the side labelled "missing". Boxes are orange where the value is above 0 and blue where it is
    below, the stronger the larger it is; leaves have a thick frame.

    It is made by :meth:`from_estimator`.

    Parameters
    ----------
    nodes : list of DrawnNode
    title : str
    rankdir : {"TB", "LR"}, default="TB"
        Whether the tree grows from top to bottom or from left to right.

    Attributes
    ----------
    node_texts_ : dict of int to matplotlib.text.Text
        By the number of the node.
    node_boxes_ : dict of int to matplotlib.patches.FancyBboxPatch
        By the number of the node.
    edge_texts_ : dict of int to matplotlib.text.Text
        By the number of the node that the edge leads to.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklboost import XGBClassifierLite
    >>> from sklboost.displays import TreeDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = XGBClassifierLite(n_estimators=5, max_depth=2).fit(X, y)
    >>> display = TreeDisplay.from_estimator(model, tree=1)
    >>> print(display.node_texts_[0].get_text().splitlines()[1])
    petal length (cm) < 2.45
    >>> display.figure_.savefig("tree.png")  # doctest: +SKIP
    """

    nodes: Sequence[DrawnNode]
    title: str = ""
    rankdir: str = "TB"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        tree: int = 0,
        *,
        output: int = 0,
        max_depth: int | None = None,
        precision: int = 4,
        with_stats: bool = True,
        rankdir: str | None = "TB",
        ax: Any = None,
    ) -> Self:
        """Draw a tree of a fitted estimator.

        Parameters
        ----------
        estimator : XGBRegressorLite or XGBClassifierLite
        tree : int, default=0
            Its number. For several targets, labels or more than two classes tree t belongs to
            number ``t % n_outputs`` of them, as the title says.
        output : int, default=0
            Which values to show, if a tree has values for several outputs (`multi_strategy`).
        max_depth : int, optional
            Draw nodes down to this depth; the deepest show their number of leaves. None: all.
        precision : int, default=4
            Digits of a number.
        with_stats : bool, default=True
            Whether nodes have their gain and cover.
        rankdir : {"TB", "LR"}, default="TB"
            Whether the tree grows from top to bottom or from left to right, as in graphviz.
        ax : matplotlib.axes.Axes, optional
            Where to draw; texts become as small as they must to fit. None: a new figure, as large
            as the tree needs.

        Raises
        ------
        ValueError
            If there is no such tree or output; it names those that there are. If an argument is
            out of range.
        """
        fitted = fitted_model(estimator)
        check_number("tree", tree, fitted.model.n_trees, "the model has the trees")
        check_number("output", output, len(fitted.model.values), "trees have values for outputs")
        check_value("max_depth", max_depth, optional(integer(0)))
        check_value("precision", precision, integer(1))
        rankdir = rankdir or "TB"
        if rankdir not in ("TB", "LR"):
            raise ValueError(f"rankdir={rankdir!r}: it must be 'TB' or 'LR'")
        most = float("inf") if max_depth is None else max_depth
        nodes = tree_nodes(fitted, tree, output, most, precision, with_stats)
        return cls(nodes, tree_title(fitted, tree, output), rankdir).plot(ax)

    @cached_property
    def _layout(self) -> "_Layout":
        """The places of the boxes, and the size of the drawing."""
        nodes, grows_right = self.nodes, self.rankdir == "LR"
        widths = [max(_text_width(line, _FONT) for line in node.lines) + 2 * _PAD for node in nodes]
        heights = [len(node.lines) * _LINE + 1.5 * _PAD for node in nodes]
        label = _text_width(_LONGEST_LABEL, _SMALL)
        if grows_right:
            across, along, drop = heights, widths, label + 30.0
        else:
            across, along, drop = [max(width, label) for width in widths], heights, _DROP
        centres, whole = place_nodes([node.children for node in nodes], across, _SPACE)
        longest = [0.0] * (nodes[-1].depth + 1)  # at each depth
        for node, length in zip(nodes, along, strict=True):
            longest[node.depth] = max(longest[node.depth], length)
        starts = [0.0]
        for length in longest:
            starts.append(starts[-1] + length + drop)
        boxes = []
        for centre, node, width, height in zip(centres, nodes, widths, heights, strict=True):
            start = starts[node.depth]
            place = (start + width / 2, centre - height / 2) if grows_right else (centre, start)
            boxes.append(_Box(*place, width, height))
        end = starts[-1] - drop
        return _Layout(boxes, end, whole) if grows_right else _Layout(boxes, whole, end)

    def _new_axes(self) -> Any:
        inches = [max(length / 72, 2.0) for length in self._layout.page]
        scale = min(1.0, _MOST_INCHES / max(inches))
        figure = pyplot().figure(figsize=[length * scale for length in inches])
        return figure.add_axes((0.0, 0.0, 1.0, 1.0))

    def _draw(self, ax: Any) -> None:
        from matplotlib.collections import LineCollection

        layout = self._layout
        self._scale = _fit(ax, layout)
        self.node_texts_: dict[int, Any] = {}
        self.node_boxes_: dict[int, Any] = {}
        self.edge_texts_: dict[int, Any] = {}
        self._write(layout.width / 2, -_TITLE / 2, literal(self.title), 1.2 * _FONT)
        largest = max(abs(node.value) for node in self.nodes) or 1.0
        ground = dict(facecolor=ax.get_facecolor(), edgecolor="none", pad=self._scale)
        edges = []
        for node, box in zip(self.nodes, layout.boxes, strict=True):
            self._draw_node(node, box, node_colour(node.value / largest))
            for child, word in zip(node.children, ("yes", "no"), strict=True):
                if child >= 0:
                    is_missing = node.default_left == (word == "yes")
                    label = f"{word}, missing" if is_missing else word
                    edge, place = self._edge(box, layout.boxes[child])
                    edges.append(edge)
                    text = self._write(*place, label, _SMALL, color=DARK, zorder=3, bbox=ground)
                    self.edge_texts_[self.nodes[child].number] = text
        style: dict[str, Any] = dict(color="#606060", linewidth=0.9 * self._scale, zorder=1)
        style |= dict(capstyle="projecting", joinstyle="round")
        ax.add_collection(LineCollection(edges, **style), autolim=False)

    def _write(self, x: float, y: float, text: str, size: float, **style: Any) -> Any:
        style |= dict(ha="center", va="center", fontsize=size * self._scale)
        return self.ax_.text(x, y, text, **style)

    def _draw_node(self, node: DrawnNode, box: "_Box", colour: tuple[float, ...]) -> None:
        from matplotlib.patches import BoxStyle, FancyBboxPatch

        corner = (box.centre - box.width / 2, box.top)
        shape = BoxStyle.Round(pad=0.0, rounding_size=_PAD / 2)
        patch = FancyBboxPatch(corner, box.width, box.height, boxstyle=shape, zorder=2)
        thickness = (1.6 if node.is_leaf else 0.7) * self._scale
        patch.set(facecolor=colour, edgecolor=DARK, linewidth=thickness)
        self.node_boxes_[node.number] = self.ax_.add_artist(patch)
        text, style = literal("\n".join(node.lines)), dict(color="black", linespacing=1.2, zorder=3)
        middle = box.top + box.height / 2
        self.node_texts_[node.number] = self._write(box.centre, middle, text, _FONT, **style)

    def _edge(self, parent: "_Box", child: "_Box") -> tuple[list[Any], tuple[float, float]]:
        """Return the corners of what leads from a node to a child, and the place of its label."""
        if self.rankdir == "LR":
            left, y = child.centre - child.width / 2, child.top + child.height / 2
            bend = left - _text_width(_LONGEST_LABEL, _SMALL) - 12.0
            xs = [parent.centre + parent.width / 2, bend, bend, left]
            ys = [parent.top + parent.height / 2] * 2 + [y, y]
            place = (bend + left) / 2, y
        else:
            bend, x = child.top - _DROP + 12.0, child.centre
            xs = [parent.centre] * 2 + [x, x]
            ys = [parent.top + parent.height, bend, bend, child.top]
            place = x, (bend + child.top) / 2 + 1.0
        return [*zip(xs, ys, strict=True)], place


@draws_like(TreeDisplay.from_estimator)
def plot_tree(
    estimator: Any,
    tree: int = 0,
    *,
    output: int = 0,
    max_depth: int | None = None,
    precision: int = 4,
    with_stats: bool = True,
    rankdir: str | None = "TB",
    ax: Any = None,
    tree_idx: int | None = None,
    num_trees: int | None = None,
) -> Any:
    """Draw a tree of a fitted estimator.

    Parameters
    ----------
    tree_idx, num_trees : int, optional
        XGBoost's names of `tree`.
    """
    given = {"tree_idx": tree_idx, "num_trees": num_trees}
    for name, value in given.items():
        if value is not None and tree not in (0, value):
            raise ValueError(f"{name}={value!r} and tree={tree!r}: give one of them")
        tree = tree if value is None else value
    return TreeDisplay.from_estimator(
        estimator,
        tree,
        output=output,
        max_depth=max_depth,
        precision=precision,
        with_stats=with_stats,
        rankdir=rankdir,
        ax=ax,
    ).ax_


def tree_title(fitted: FittedModel, tree: int, output: int = 0) -> str:
    """Name a tree, and its round and output if there are several outputs."""
    model = fitted.model
    if model.n_outputs == 1:
        return f"tree {tree}"
    is_vector = len(model.values) > 1
    name = fitted.output_names[output if is_vector else tree % model.n_outputs]
    return f"tree {tree} (round {tree // model.trees_per_round}, {name})"


def node_colour(share: float) -> tuple[float, ...]:
    """Return the colour of a value, given as a share from -1 to 1 of the largest; 0 is white."""
    strongest = _POSITIVE if share > 0 else _NEGATIVE
    return tuple(1.0 - abs(share) * (1.0 - part) for part in strongest)


class _Box(NamedTuple):
    """Where a node is drawn, in points."""

    centre: float
    top: float  # heights grow downwards
    width: float
    height: float


class _Layout(NamedTuple):
    """Where the nodes are drawn, and the size of the drawing, in points."""

    boxes: list[_Box]
    width: float
    height: float

    @property
    def page(self) -> tuple[float, float]:
        """Width and height with title and margins."""
        return self.width + 2 * _MARGIN, self.height + 2 * _MARGIN + _TITLE


def _text_width(text: str, size: float) -> float:
    """Width by the measures of the font; by the outlines of the letters it takes much longer."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    return text_to_path.get_text_width_height_descent(text, FontProperties(size=size), False)[0]


def _fit(ax: Any, layout: _Layout) -> float:
    """Make a point of the drawing the unit of the axes; return by how much it was made smaller."""
    extent = ax.get_window_extent()
    points = [length * 72 / ax.figure.dpi for length in (extent.width, extent.height)]
    least = min(own / whole for own, whole in zip(points, layout.page, strict=True))
    scale = min(1.0, least + 1e-9)  # 1 in a figure made for the tree, whatever was rounded
    middle = (layout.width / 2, (layout.height - _TITLE) / 2)
    half = [length / scale / 2 for length in points]
    ax.set_xlim(middle[0] - half[0], middle[0] + half[0])
    ax.set_ylim(middle[1] + half[1], middle[1] - half[1])
    ax.set_axis_off()
    return scale


def place_nodes(
    children: Sequence[tuple[int, int]], widths: Sequence[float], space: float = 0.0
) -> tuple[list[float], float]:
    """Return the centre of each node, and the width of the tree, which begins at 0.

    `children` are the left and right child of each node, (-1, -1) for a leaf, and come after their
    parents; node 0 is the root. `space` is left free between neighbours.
    """
    shifts = [0.0] * len(widths)  # of each node from its parent
    # the edges of subtrees at each depth, the root's first, seen from the root's centre
    outlines: dict[int, tuple[list[float], list[float]]] = {}
    for node in reversed(range(len(widths))):
        half = widths[node] / 2
        starts, ends = [-half], [half]
        if children[node][0] >= 0:
            (left_starts, left_ends), (right_starts, right_ends) = (
                outlines.pop(child) for child in children[node]
            )
            pairs = zip(left_ends, right_starts, strict=False)
            middle = (space + max(end - start for end, start in pairs)) / 2
            shifts[children[node][0]], shifts[children[node][1]] = -middle, middle
            starts += _either(left_starts, right_starts, middle)
            ends += _either(right_ends, left_ends, -middle)
        outlines[node] = starts, ends
    starts, ends = outlines[0]
    leftmost = min(starts)
    centres = [-leftmost] * len(widths)
    for node, pair in enumerate(children):
        for child in pair:
            if child >= 0:
                centres[child] = centres[node] + shifts[child]
    return centres, max(ends) - leftmost


def _either(near: list[float], far: list[float], middle: float) -> list[float]:
    """Return the edges of two subtrees: of the one on this side, and deeper of the other."""
    below = far[len(near) :]
    return [edge - middle for edge in near] + [edge + middle for edge in below]
