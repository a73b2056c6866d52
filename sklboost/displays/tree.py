"""A tree as a drawing."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sklboost.displays.figures import literal, pyplot
from sklboost.displays.tree_layout import lay_out
from sklboost.displays.tree_nodes import DrawnNode, tree_nodes
from sklboost.estimators.parameters.rules import integer
from sklboost.estimators.predict.fitted_model import FittedModel, fitted_model

# All lengths are in points, 1/72 inch, before the picture is made smaller to fit.
_FONT, _SMALL = 9.0, 7.5
_LINE = 1.25 * _FONT
_PAD = 6.0  # between a text and its box
_SPACE = 12.0  # between two boxes
_DROP = 38.0  # between two levels: room for a label above a box
_MARGIN, _TITLE = 10.0, 26.0
_MOST_INCHES = 200.0  # of a figure of its own, in width; matplotlib can draw 655
# What nodes of the largest value are filled with: light enough for black text.
_POSITIVE, _NEGATIVE = (0.965, 0.62, 0.36), (0.42, 0.70, 0.93)


class TreeDisplay:
    """A tree as a drawing: splits, gains, covers and values.

    Rows for which what a split says is true go to the left, along "yes". Missing values take the
    side with "missing" beside it. Boxes are orange where the value is above 0 and blue where it is
    below, the stronger the larger it is; leaves have a thick frame.

    It is made by :meth:`from_estimator`.

    Parameters
    ----------
    nodes : list of DrawnNode
    title : str

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    node_texts_ : dict of int to matplotlib.text.Text
        By the number of the node.
    node_boxes_ : dict of int to matplotlib.patches.FancyBboxPatch
        By the number of the node.
    edge_texts_ : dict of int to matplotlib.text.Text
        By the number of the node that the edge leads to.

    See Also
    --------
    plot_tree : The same as a function, which gives the axes.

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

    ax_: Any
    figure_: Any
    node_texts_: dict[int, Any]
    node_boxes_: dict[int, Any]
    edge_texts_: dict[int, Any]

    def __init__(self, nodes: Sequence[DrawnNode], title: str = "") -> None:
        self.nodes = nodes
        self.title = title

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        tree: int = 0,
        *,
        output: int = 0,
        max_depth: int | None = None,
        precision: int = 4,
        ax: Any = None,
    ) -> "TreeDisplay":
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
            Draw nodes down to this depth; the deepest say how many leaves they have. None: all.
        precision : int, default=4
            Digits of a number.
        ax : matplotlib.axes.Axes, optional
            Where to draw; texts become as small as they must to fit. None: a new figure, as large
            as the tree needs.

        Returns
        -------
        TreeDisplay

        Raises
        ------
        ValueError
            If there is no such tree or output; it names those that there are.
        ImportError
            If matplotlib is not installed.
        """
        fitted = fitted_model(estimator)
        check_number("tree", tree, fitted.model.n_trees, "the model has the trees")
        check_number("output", output, len(fitted.model.values), "trees have values for outputs")
        for name, value, least in (("max_depth", max_depth, 0), ("precision", precision, 1)):
            rule = integer(least)
            if not (value is None and name == "max_depth") and not rule.holds(value):
                raise ValueError(f"{name}={value!r}: it must be {rule.words}")
        most = float("inf") if max_depth is None else max_depth
        nodes = tree_nodes(fitted, tree, output, most, precision)
        return cls(nodes, tree_title(fitted, tree, output)).plot(ax)

    def plot(self, ax: Any = None) -> "TreeDisplay":
        """Draw it once more.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            None: a new figure.

        Returns
        -------
        TreeDisplay
            Itself.
        """
        boxes, width, height = _boxes(self.nodes)
        self.ax_, scale = _canvas(ax, width, height)
        self.figure_ = self.ax_.figure
        self.ax_.text(
            *(width / 2, -_TITLE / 2, literal(self.title)),
            **dict(fontsize=1.2 * _FONT * scale, ha="center", va="center"),
        )
        largest = max(abs(node.value) for node in self.nodes) or 1.0
        self.node_texts_, self.node_boxes_, self.edge_texts_ = {}, {}, {}
        for node, box in zip(self.nodes, boxes, strict=True):
            self._draw_node(node, box, scale, node_colour(node.value / largest))
            for child, word in zip(node.children, ("yes", "no"), strict=True):
                if child >= 0:
                    is_missing = node.default_left == (word == "yes")
                    words = f"{word}, missing" if is_missing else word
                    self._draw_edge(box, boxes[child], self.nodes[child].number, words, scale)
        return self

    def _draw_node(
        self, node: DrawnNode, box: "_Box", scale: float, colour: tuple[float, ...]
    ) -> None:
        from matplotlib.patches import BoxStyle, FancyBboxPatch

        corner = (box.centre - box.width / 2, box.top)
        thickness = (1.6 if node.is_leaf else 0.7) * scale
        shape = BoxStyle.Round(pad=0.0, rounding_size=_PAD / 2)
        patch = FancyBboxPatch(corner, box.width, box.height, boxstyle=shape, zorder=2)
        patch.set(facecolor=colour, edgecolor="#303030", linewidth=thickness)
        self.node_boxes_[node.number] = self.ax_.add_patch(patch)
        self.node_texts_[node.number] = self.ax_.text(
            *(box.centre, box.top + box.height / 2, literal("\n".join(node.lines))),
            **dict(ha="center", va="center", fontsize=_FONT * scale, color="black", zorder=3),
            linespacing=1.2,
        )

    def _draw_edge(
        self, parent: "_Box", child: "_Box", number: int, words: str, scale: float
    ) -> None:
        bottom, middle = parent.top + parent.height, child.top - _DROP + 12.0
        self.ax_.plot(
            [parent.centre, parent.centre, child.centre, child.centre],
            [bottom, middle, middle, child.top],
            **dict(color="#606060", linewidth=0.9 * scale, solid_joinstyle="round", zorder=1),
        )
        self.edge_texts_[number] = self.ax_.text(
            *(child.centre, (middle + child.top) / 2 + 1.0, words),
            **dict(ha="center", va="center", fontsize=_SMALL * scale, color="#303030", zorder=3),
            bbox=dict(facecolor=self.ax_.get_facecolor(), edgecolor="none", pad=1.0 * scale),
        )


def plot_tree(estimator: Any, tree: int = 0, **settings: Any) -> Any:
    """Draw a tree of a fitted estimator.

    Parameters
    ----------
    estimator : XGBRegressorLite or XGBClassifierLite
    tree : int, default=0
    **settings : dict
        `output`, `max_depth`, `precision`, `ax`: see :meth:`TreeDisplay.from_estimator`.

    Returns
    -------
    matplotlib.axes.Axes
    """
    return TreeDisplay.from_estimator(estimator, tree, **settings).ax_


def check_number(name: str, value: Any, stop: int, words: str) -> None:
    """Raise ValueError unless a value is one of the integers from 0 on, `stop` excluded."""
    if not integer(0, stop - 1).holds(value):
        valid = "0" if stop == 1 else f"0 to {stop - 1}"
        raise ValueError(f"{name}={value!r}: {words} {valid}")


def tree_title(fitted: FittedModel, tree: int, output: int = 0) -> str:
    """Say which tree it is, and what of, if there are several outputs."""
    model = fitted.model
    if model.n_outputs == 1:
        return f"tree {tree}"
    is_vector = len(model.values) > 1
    name = fitted.output_names[output if is_vector else tree % model.n_outputs]
    return f"tree {tree} (round {tree // model.trees_per_round}, {name})"


def node_colour(share: float) -> tuple[float, ...]:
    """Give the colour of a value, as a share from -1 to 1 of the largest; 0 is white."""
    strongest = _POSITIVE if share > 0 else _NEGATIVE
    return tuple(1.0 - abs(share) * (1.0 - part) for part in strongest)


class _Box(NamedTuple):
    """Where a node is drawn, in points."""

    centre: float
    top: float  # heights grow downwards
    width: float
    height: float


def _boxes(nodes: Sequence[DrawnNode]) -> tuple[list[_Box], float, float]:
    """Place the boxes of all nodes; give them, and width and height of the picture, in points."""
    widths = [max(_text_width(line, _FONT) for line in node.lines) + 2 * _PAD for node in nodes]
    label = _text_width("yes, missing", _SMALL)
    room = [max(width, label) for width in widths]
    layout = lay_out([node.children for node in nodes], room, _SPACE)
    heights = [len(node.lines) * _LINE + 1.5 * _PAD for node in nodes]
    of_level = [0.0] * (max(layout.depths) + 1)
    for depth, height in zip(layout.depths, heights, strict=True):
        of_level[depth] = max(of_level[depth], height)
    tops = [0.0]
    for height in of_level:
        tops.append(tops[-1] + height + _DROP)
    boxes = [
        _Box(centre, tops[depth], width, height)
        for centre, depth, width, height in zip(
            layout.centres, layout.depths, widths, heights, strict=True
        )
    ]
    return boxes, layout.width, tops[-1] - _DROP


def _text_width(text: str, size: float) -> float:
    from matplotlib.textpath import TextPath

    return TextPath((0, 0), literal(text), size=size).get_extents().width


def _canvas(ax: Any, width: float, height: float) -> tuple[Any, float]:
    """Give axes whose unit is a point of the drawing, and by how much it is smaller than one."""
    plt = pyplot()
    whole = (width + 2 * _MARGIN, height + 2 * _MARGIN + _TITLE)
    if ax is None:
        inches = [max(length / 72, 2.0) for length in whole]
        scale = min(1.0, _MOST_INCHES / max(inches))
        figure = plt.figure(figsize=[length * scale for length in inches])
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    extent = ax.get_window_extent()
    points = [length * 72 / ax.figure.dpi for length in (extent.width, extent.height)]
    scale = min(1.0, points[0] / whole[0], points[1] / whole[1])
    middle = (width / 2, (height - _TITLE) / 2)
    half = [length / scale / 2 for length in points]
    ax.set_xlim(middle[0] - half[0], middle[0] + half[0])
    ax.set_ylim(middle[1] + half[1], middle[1] - half[1])
    ax.set_axis_off()
    return ax, scale
