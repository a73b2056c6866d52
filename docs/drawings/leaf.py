"""The loss of three rows as the output of their leaf changes, and how lambda moves its minimum.

Targets -10, 7 and 8, prediction so far 0.5; the numbers of "One leaf" in
docs/explanation/how_a_tree_grows.md. Minimum and depth come from the package's own formulas.
"""

from plot import Scale, draw_x_axis, draw_y_axis
from svg import INK, ORANGE, PALE, PURPLE, TEAL, Drawing

from sklboost import XGBRegressorLite
from sklboost.tree.core.formulas import leaf_weight, similarity

GRADIENT, HESSIAN = -3.5, 3.0  # sums over the rows of p - y and of 1
COLORS = {0: TEAL, 4: ORANGE, 40: PURPLE}
LOWEST, HIGHEST = -0.6, 2.9
STEPS = 175


def change(output: float, reg_lambda: float) -> float:
    """By how much an output changes the loss, with its penalty."""
    return GRADIENT * output + (HESSIAN + reg_lambda) * output**2 / 2


def draw() -> str:
    drawing = Drawing(660, 450, "The loss of a leaf as its output changes, for lambda 0, 4 and 40")
    x, y = Scale(LOWEST, HIGHEST, 70, 630), Scale(-2.6, 3.0, 380, 110)
    draw_x_axis(drawing, x, 390, [-0.5, 0, 0.5, 1, 1.5, 2, 2.5], "output of the leaf")
    draw_y_axis(drawing, 60, y, [-2, -1, 0, 1, 2, 3], "change of the loss")
    drawing.line([(60, y(0)), (630, y(0))], dashed=True)
    drawing.dot(x(0), y(0), INK, 3)
    for k, (reg_lambda, color) in enumerate(COLORS.items()):
        params = _params(reg_lambda)
        outputs = [LOWEST + step * (HIGHEST - LOWEST) / STEPS for step in range(STEPS + 1)]
        seen = [output for output in outputs if change(output, reg_lambda) <= 3.0]
        drawing.line([(x(w), y(change(w, reg_lambda))) for w in seen], color, 2.2)
        best, worth = leaf_weight(GRADIENT, HESSIAN, params), similarity(GRADIENT, HESSIAN, params)
        drawing.dot(x(best), y(-worth / 2), color)
        drawing.line([(x(best), y(-worth / 2)), (x(best), y(0))], color, 1.3, dashed=True)
        line = f"λ = {reg_lambda}: output {best:.4f}, similarity {worth:.4f}"
        drawing.text(625, 30 + 22 * k, line, anchor="end", color=color, bold=True)
    drawing.text(x(1.22), y(-1.1), "half the similarity", anchor="start", color=PALE, size=12)
    return str(drawing)


def _params(reg_lambda: float) -> tuple:
    model = XGBRegressorLite(n_estimators=1, reg_lambda=reg_lambda)
    return model.fit([[0.0], [1.0]], [0.0, 1.0]).model_.params_of(0)
