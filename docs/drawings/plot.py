"""Axes for the drawings: numbers to places, an axis with ticks."""

from collections.abc import Iterable
from typing import NamedTuple

from svg import PALE, Drawing, shown


class Scale(NamedTuple):
    """Numbers from `low` to `high` on a line from pixel `start` to pixel `stop`."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, number: float) -> float:
        share = (number - self.low) / (self.high - self.low)
        return self.start + share * (self.stop - self.start)


def draw_x_axis(
    drawing: Drawing, scale: Scale, y: float, ticks: Iterable[float], label: str
) -> None:
    drawing.line([(scale.start, y), (scale.stop, y)])
    for tick in ticks:
        drawing.line([(scale(tick), y), (scale(tick), y + 5)])
        drawing.text(scale(tick), y + 20, shown(f"{tick:g}"), color=PALE, size=12)
    drawing.text((scale.start + scale.stop) / 2, y + 40, label, color=PALE, size=13)


def draw_y_axis(
    drawing: Drawing, x: float, scale: Scale, ticks: Iterable[float], label: str
) -> None:
    drawing.line([(x, scale.start), (x, scale.stop)])
    for tick in ticks:
        drawing.line([(x - 5, scale(tick)), (x, scale(tick))])
        number = shown(f"{tick:g}")
        drawing.text(x - 9, scale(tick) + 4, number, anchor="end", color=PALE, size=12)
    drawing.text(x - 40, scale.stop - 14, label, anchor="start", color=PALE, size=13)
