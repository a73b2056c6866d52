"""Four rows, their possible splits, and the tree that they grow.

The numbers of "Where to split" in docs/explanation/how_a_tree_grows.md: all are read off the models
that are fitted here, or computed by the formulas that training calls.
"""

from plot import Scale, draw_x_axis
from svg import BOX, INK, ORANGE, ORANGE_BOX, PALE, TEAL, TEAL_BOX, Drawing, shown

from sklboost import XGBRegressorLite
from sklboost.tree.core.formulas import similarity, split_gain

DOSES, EFFECTS = [10, 20, 25, 35], [-10, 7, 8, -7]
START = 0.5
RESIDUALS = [effect - START for effect in EFFECTS]
NODE = (176, 92)
# where the nodes of the tree are drawn: the middle of their upper edges
PLACES = {0: (250, 24), 1: (110, 158), 2: (390, 158), 3: (290, 292), 4: (490, 292)}


def fit() -> XGBRegressorLite:
    model = XGBRegressorLite(
        n_estimators=1,
        learning_rate=1,
        base_score=START,
        max_depth=2,
        min_child_weight=0,
        reg_lambda=0,
    )
    return model.fit([[dose] for dose in DOSES], EFFECTS)


def draw_splits() -> str:
    """Draw the residuals, and the gain of each place between two of them."""
    drawing = Drawing(600, 400, "Four residuals and the gain of each split between them")
    x, y = Scale(5, 40, 70, 570), Scale(-13, 13, 330, 60)
    params = fit().model_.params_of(0)

    def worth(rows: list[float]) -> float:
        return similarity(-sum(rows), float(len(rows)), params)

    gains = [
        split_gain(worth(RESIDUALS[:k]), worth(RESIDUALS[k:]), worth(RESIDUALS)) for k in (1, 2, 3)
    ]
    for k, gain in enumerate(gains):
        threshold, best = (DOSES[k] + DOSES[k + 1]) / 2, gain == max(gains)
        color = TEAL if best else PALE
        width = 1.8 if best else 1.2
        drawing.line([(x(threshold), 62), (x(threshold), 330)], color, width, dashed=True)
        drawing.text(x(threshold), 34, f"< {threshold:g}", color=color, bold=best)
        drawing.text(x(threshold), 53, f"gain {gain:.2f}", color=color, bold=best, size=13)
    drawing.line([(70, y(0)), (570, y(0))])
    for dose, residual in zip(DOSES, RESIDUALS, strict=True):
        color = TEAL if residual > 0 else ORANGE
        drawing.line([(x(dose), y(0)), (x(dose), y(residual))], color, 3)
        drawing.dot(x(dose), y(residual), color, 6)
        below = y(residual) + (22 if residual < 0 else -12)
        drawing.text(x(dose), below, shown(f"{residual:.1f}"), color=color, bold=True)
    drawing.text(60, y(0) + 4, "0.5", anchor="end", color=PALE, size=12)
    drawing.text(14, 34, "residuals", anchor="start", color=PALE, size=13)
    draw_x_axis(drawing, x, 345, DOSES, "dose")
    return str(drawing)


def draw_tree() -> str:
    """Draw the tree with the numbers of each node."""
    drawing = Drawing(620, 400, "The tree of the four rows, with the numbers of each node")
    nodes = fit().trees_to_dataframe().set_index("Node")
    for node, row in nodes.iterrows():
        for side in ("Yes", "No") if row["Feature"] != "Leaf" else ():
            _draw_branch(drawing, node, int(row[side].split("-")[1]), side)
    for node, row in nodes.iterrows():
        _draw_node(drawing, node, row)
    return str(drawing)


def _draw_branch(drawing: Drawing, node: int, child: int, side: str) -> None:
    (x, y), (to_x, to_y) = PLACES[node], PLACES[child]
    drawing.arrow([(x, y + NODE[1]), (to_x, to_y - 2)])
    shift = -24 if side == "Yes" else 24
    drawing.text(
        (x + to_x) / 2 + shift,
        (y + NODE[1] + to_y) / 2 + 2,
        side.lower(),
        anchor="end" if side == "Yes" else "start",
        color=PALE,
        size=13,
    )


def _draw_node(drawing: Drawing, node: int, row) -> None:
    x, y = PLACES[node]
    is_leaf = row["Feature"] == "Leaf"
    if is_leaf:
        fill, edge = (TEAL_BOX, TEAL) if row["Output"] > 0 else (ORANGE_BOX, ORANGE)
        title = f"output {shown(format(row['Output'], '.1f'))}"
    else:
        fill, edge = BOX, INK
        title = f"dose < {row['Split']:g}?"
    drawing.box(x - NODE[0] / 2, y, *NODE, fill, edge)
    drawing.text(x, y + 24, title, bold=True, size=15)
    lines = [f"similarity {row['Similarity']:.2f}", f"cover {row['Cover']:g}"]
    if not is_leaf:
        lines.insert(0, f"gain {row['Gain']:.2f}")
    for k, line in enumerate(lines):
        drawing.text(x, y + 44 + 18 * k, line, size=13)
