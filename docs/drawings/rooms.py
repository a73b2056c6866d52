"""The rooms of the package and which imports which, read from the code.

In come the layers that import-linter holds (pyproject.toml) and the imports of all files; out goes
the drawing. Of the arrows those are left out that follow from others: a room that is reached by a
way over other rooms needs no arrow of its own.

Each room lies one row below the lowest of those that import it. An arrow over several rows has a
narrow place of its own in the rows between, so that it runs beside the rooms and not behind them.
"""

import ast
import tomllib
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from svg import BOX, PALE, TEAL, TEAL_BOX, Drawing

ROW = 76  # pixels from one row to the next
MARGIN = 24
ROOM = (128, 34)
BETWEEN = 34
PASSAGE = 12
WIDTH = 600

Arrows = dict[str, set[str]]


class Passage(NamedTuple):
    """Where an arrow passes a row."""

    room: str
    below: str
    row: int


def read_order(root: Path) -> list[str]:
    """Return the rooms in the order of the layers, the highest first."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return [room.strip() for layer in layers for room in layer.split("|")]


def read_imports(root: Path, rooms: set[str]) -> Arrows:
    """Return the other rooms that each room imports, wherever in its files."""
    package = root / "sklboost"
    imports: Arrows = {room: set() for room in rooms}
    for path in package.rglob("*.py"):
        room = path.relative_to(package).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if room in rooms and isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}".split(".") for alias in node.names]
                imports[room] |= {name[1] for name in names if name[0] == "sklboost"}
    return {room: (found & rooms) - {room} for room, found in imports.items()}


def needed_arrows(order: list[str], imports: Arrows) -> Arrows:
    """Leave out the arrows that follow from others."""
    reached: Arrows = {}
    for room in reversed(order):
        reached[room] = imports[room].union(*(reached[below] for below in imports[room]))
    return {
        room: {to for to in imports[room] if not any(to in reached[by] for by in imports[room])}
        for room in order
    }


def fill_rows(order: list[str], arrows: Arrows) -> list[list[str | Passage]]:
    """Put each room below all that import it, and arrows through the rows between."""
    depth = dict.fromkeys(order, 0)
    for room in order:
        for below in arrows[room]:
            depth[below] = max(depth[below], depth[room] + 1)
    rows: list[list[str | Passage]] = [[] for _ in range(max(depth.values()) + 1)]
    for room in order:
        rows[depth[room]].append(room)
        for below in sorted(arrows[room]):
            for row in range(depth[room] + 1, depth[below]):
                rows[row].append(Passage(room, below, row))
    return rows


def steps(room: str, below: str, rows: list[list[str | Passage]]) -> list[str | Passage]:
    """Return what an arrow goes through, both its ends included."""
    passages = [Passage(room, below, row) for row in range(len(rows))]
    return [room, *(own for row in rows for own in row if own in passages), below]


def place(rows: list[list[str | Passage]], arrows: Arrows) -> dict[str | Passage, float]:
    """Return the middle of each place: in a row, in the order of what leads there from above."""
    above: dict[str | Passage, list[str | Passage]] = {}
    for room, all_below in arrows.items():
        for below in all_below:
            way = steps(room, below, rows)
            for start, stop in pairwise(way):
                above.setdefault(stop, []).append(start)
    x: dict[str | Passage, float] = {}
    for row in rows:
        row.sort(key=lambda own: fmean(x[start] for start in above[own]) if own in above else 0)
        widths = [ROOM[0] if isinstance(own, str) else PASSAGE for own in row]
        left = (WIDTH - sum(widths) - BETWEEN * (len(row) - 1)) / 2
        for own, width in zip(row, widths, strict=True):
            x[own] = left + width / 2
            left += width + BETWEEN
    return x


def draw(root: Path) -> str:
    order = read_order(root)
    arrows = needed_arrows(order, read_imports(root, set(order)))
    rows = fill_rows(order, arrows)
    x = place(rows, arrows)
    y = {own: MARGIN + k * ROW for k, row in enumerate(rows) for own in row}
    height = 2 * MARGIN + (len(rows) - 1) * ROW + ROOM[1]
    drawing = Drawing(WIDTH, height, "The rooms of the package; an arrow means: imports")
    for room, all_below in arrows.items():
        for below in sorted(all_below):
            between = [
                (x[own], y[own] + edge)
                for own in steps(room, below, rows)[1:-1]
                for edge in (0, ROOM[1])
            ]
            drawing.arrow([(x[room], y[room] + ROOM[1]), *between, (x[below], y[below] - 2)])
    for room in order:
        is_folder = (root / "sklboost" / room).is_dir()
        fill, edge = (TEAL_BOX, TEAL) if is_folder else (BOX, PALE)
        drawing.box(x[room] - ROOM[0] / 2, y[room], *ROOM, fill, edge)
        name = room + ("/" if is_folder else ".py")
        drawing.text(x[room], y[room] + 22, name, bold=is_folder)
    return str(drawing)
