"""Where the nodes of a binary tree are drawn.

In: the children and the width of each node. Out: horizontal positions: no two nodes of a level
overlap, parents stand in the middle above their children, and subtrees as close as they fit.

The one idea: of a finished subtree only its outline matters, the leftmost and the rightmost edge of
each of its levels. Two subtrees are moved together until their outlines touch.

Source: Reingold & Tilford (1981), "Tidier Drawings of Trees", with nodes of any width.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Layout(NamedTuple):
    """Where nodes are, in the unit of their widths.

    Attributes
    ----------
    centres : list of float
        Of each node; the tree begins at 0.
    depths : list of int
        Of each node, 0 for the root.
    width : float
        Of the tree.
    """

    centres: list[float]
    depths: list[int]
    width: float


def lay_out(
    children: Sequence[tuple[int, int]], widths: Sequence[float], space: float = 0.0
) -> Layout:
    """Place the nodes of a tree.

    Parameters
    ----------
    children : sequence of (int, int)
        Of each node its left and right child, (-1, -1) for a leaf. Children come after their
        parents; node 0 is the root.
    widths : sequence of float
    space : float
        To be left free between neighbours.
    """
    shifts = [0.0] * len(widths)  # of each node from its parent
    outlines: dict[int, _Outline] = {}
    for node in reversed(range(len(widths))):
        half = widths[node] / 2
        starts, ends = [-half], [half]
        if children[node][0] >= 0:
            left, right = (outlines.pop(child) for child in children[node])
            pairs = zip(left.ends, right.starts, strict=False)
            middle = (space + max(end - start for end, start in pairs)) / 2
            shifts[children[node][0]], shifts[children[node][1]] = -middle, middle
            starts += _either(left.starts, right.starts, middle)
            ends += _either(right.ends, left.ends, -middle)
        outlines[node] = _Outline(starts, ends)
    leftmost = min(outlines[0].starts)
    centres, depths = [-leftmost] * len(widths), [0] * len(widths)
    for node, pair in enumerate(children):
        for child in pair:
            if child >= 0:
                centres[child] = centres[node] + shifts[child]
                depths[child] = depths[node] + 1
    return Layout(centres, depths, max(outlines[0].ends) - leftmost)


class _Outline(NamedTuple):
    """The edges of the levels of a subtree, seen from its root's centre; the root's level first."""

    starts: list[float]
    ends: list[float]


def _either(near: list[float], far: list[float], middle: float) -> list[float]:
    """Give the edges of two subtrees: those of the one on this side, and below it of the other."""
    below = far[len(near) :]
    return [edge - middle for edge in near] + [edge + middle for edge in below]
