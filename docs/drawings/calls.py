"""What is compiled apart and what together: some kernels of a fit, and how they are called.

That each name is a kernel of the kind that the drawing says is tested (tests/test_drawings.py).
"""

from svg import BOX, ORANGE, ORANGE_BOX, PALE, TEAL, TEAL_BOX, Drawing

WIDTH, HEIGHT = 640, 440
LEFT, RIGHT, WIDE, HIGH = 30, 450, 160, 30
BY_SYMBOL = ("boost_rounds", "grow_tree", "find_splits", "scan_features")
INLINED = ("scan_feature", "scan_block", "may_improve", "fill_gains", "leaf_weight")
# caller -> what it calls through cells
LATE = {"grow_tree": ("draw_rows",), "scan_features": ("scan_special_feature",)}
TOPS = dict(zip(BY_SYMBOL, (100, 158, 216, 274), strict=True))
LATE_TOPS = {"draw_rows": 158, "scan_special_feature": 274}


def draw() -> str:
    drawing = Drawing(WIDTH, HEIGHT, "Which kernels are compiled apart, and how they are called")
    _box(drawing, LEFT, 42, "boost_rounds.entry", BOX, PALE)
    drawing.text(LEFT, 30, "called from Python", anchor="start", color=PALE, size=12)
    middle, above = LEFT + WIDE / 2, 42
    for name, top in TOPS.items():
        drawing.arrow([(middle, above + HIGH), (middle, top)])
        _box(drawing, LEFT, top, name, TEAL_BOX, TEAL)
        above = top
    drawing.text(LEFT, 428, "by symbol: compiled and kept apart", anchor="start", color=TEAL)
    for row, name in enumerate(("with, inlined:", *INLINED)):
        drawing.text(LEFT + 14, 322 + 16 * row, name, anchor="start", color=PALE, size=12)
    for caller, callees in LATE.items():
        for callee in callees:
            top = LATE_TOPS[callee]
            start = (LEFT + WIDE, TOPS[caller] + HIGH / 2)
            bend = (RIGHT - 40, start[1]) if caller == "grow_tree" else (RIGHT - 70, start[1])
            drawing.arrow([start, bend, (RIGHT, top + HIGH / 2)])
            _box(drawing, RIGHT, top, callee, ORANGE_BOX, ORANGE)
    right = RIGHT + WIDE
    drawing.text(right, 428, "late: compiled when first called", anchor="end", color=ORANGE)
    return str(drawing)


def _box(drawing: Drawing, left: float, top: float, name: str, fill: str, edge: str) -> None:
    drawing.box(left, top, WIDE, HIGH, fill, edge)
    drawing.text(left + WIDE / 2, top + 20, name, size=13)
