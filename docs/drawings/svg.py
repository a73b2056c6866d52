"""Drawings as SVG: boxes, lines, arrows, curves and text, with a light ground of their own.

Nothing but strings, so that a drawing is the same file wherever it is made, and a test can compare
it with the one that is kept.
"""

from collections.abc import Iterable
from html import escape

INK = "#1f2933"
PALE = "#6b7785"
GROUND = "#ffffff"
BOX = "#eef2f5"
TEAL = "#0a7d91"
TEAL_BOX = "#d9eff2"
ORANGE = "#b34700"
ORANGE_BOX = "#fbe6d6"
PURPLE = "#6a3d9a"

HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" \
height="{height}" role="img" font-family="system-ui, sans-serif" font-size="14" fill="{ink}">
<title>{title}</title>
<defs>
<marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" \
orient="auto"><path d="M0 0 10 5 0 10z" fill="{pale}"/></marker>
</defs>
<rect width="{width}" height="{height}" rx="8" fill="{ground}"/>
"""


def short(number: float) -> str:
    """Return a coordinate with one digit after the point, or none."""
    return f"{number:.1f}".removesuffix(".0").replace("-0", "0" if number > -0.05 else "-0")


def shown(number: str) -> str:
    """Return a formatted number as it is set in print, with a proper minus sign."""
    return number.replace("-", "\N{MINUS SIGN}")


class Drawing:
    """A drawing of `width` times `height` pixels; y runs downwards."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._parts = [
            HEAD.format(
                width=width, height=height, title=escape(title), ink=INK, pale=PALE, ground=GROUND
            )
        ]

    def box(
        self, x: float, y: float, width: float, height: float, fill: str = BOX, edge: str = PALE
    ) -> None:
        self._add(
            f'<rect x="{short(x)}" y="{short(y)}" width="{short(width)}" '
            f'height="{short(height)}" rx="5" fill="{fill}" stroke="{edge}"/>'
        )

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        anchor: str = "middle",
        color: str = INK,
        size: int = 14,
        bold: bool = False,
    ) -> None:
        weight = ' font-weight="600"' if bold else ""
        self._add(
            f'<text x="{short(x)}" y="{short(y)}" text-anchor="{anchor}" fill="{color}" '
            f'font-size="{size}"{weight}>{escape(words)}</text>'
        )

    def arrow(self, points: Iterable[tuple[float, float]], color: str = PALE) -> None:
        self._path(points, color, 1.3, ' marker-end="url(#head)"')

    def line(
        self,
        points: Iterable[tuple[float, float]],
        color: str = PALE,
        width: float = 1.3,
        *,
        dashed: bool = False,
    ) -> None:
        self._path(points, color, width, ' stroke-dasharray="4 4"' if dashed else "")

    def dot(self, x: float, y: float, color: str = INK, radius: float = 4.5) -> None:
        self._add(f'<circle cx="{short(x)}" cy="{short(y)}" r="{short(radius)}" fill="{color}"/>')

    def _path(
        self, points: Iterable[tuple[float, float]], color: str, width: float, more: str
    ) -> None:
        steps = " ".join(f"{short(x)} {short(y)}" for x, y in points)
        self._add(f'<path d="M{steps}" fill="none" stroke="{color}" stroke-width="{width}"{more}/>')

    def _add(self, part: str) -> None:
        self._parts.append(part + "\n")

    def __str__(self) -> str:
        return "".join([*self._parts, "</svg>\n"])
