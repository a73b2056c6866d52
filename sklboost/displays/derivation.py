"""The objective of a node as a function of its output: a parabola, whose minimum lambda moves to 0.

Source: Chen & Guestrin (2016), "XGBoost: A Scalable Tree Boosting System", equations 4 to 6.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from sklboost.displays.figures import (
    DARK,
    GREY,
    SERIES,
    Display,
    check_number,
    function_of,
    hide_frame,
    short_number,
)
from sklboost.displays.tree import tree_title
from sklboost.engine.structs import PARAMS_DTYPE, TreeParams
from sklboost.estimators.parameters.rules import number
from sklboost.estimators.predict.fitted_model import fitted_model
from sklboost.inspection.derivation.trees import grown_tree
from sklboost.tree.core.formulas import leaf_weight, similarity_at

_N_POINTS = 201
_DASHES = ("-", "--", "-.", ":")


# Of a tree that takes none: the formulas of a leaf read penalties, which replace these.
_NO_SETTINGS = TreeParams(*np.zeros((), PARAMS_DTYPE).item())


class DerivationDisplay(Display):
    """The term of a node in the objective, for every output that it could have.

    That is ``G w + (H + lambda) w^2 / 2 + alpha |w|``, with G and H the sums of gradients and of
    hessians of the node's rows. At the minimum, which is marked, w is the node's output: without
    alpha ``-G / (H + lambda)``. There the objective falls by half the similarity, ``G^2 / (H +
    lambda)``. The larger lambda, the nearer is the output to 0.

    Parameters
    ----------
    gradient, hessian : float
        G and H of the node.
    reg_lambdas : sequence of float
        Each has a parabola.
    reg_alpha : float
    max_delta_step : float
        The largest output; infinite: no limit.
    output : float, optional
        Marked if it is no minimum: what the node has because of other settings.
    title : str

    Attributes
    ----------
    outputs_, similarities_ : ndarray of float64, shape (n_reg_lambdas,)
        Where the minima are, and minus twice how low.
    lines_ : list of matplotlib.lines.Line2D
        The parabolas.

    Examples
    --------
    Residuals -10.5, 6.5 and 7.5, squared error:

    >>> from sklboost.displays import DerivationDisplay
    >>> display = DerivationDisplay(gradient=-3.5, hessian=3, reg_lambdas=[0, 4, 40]).plot()
    >>> print(display.outputs_.round(4), display.similarities_.round(4))
    [1.1667 0.5    0.0814] [4.0833 1.75   0.2849]
    """

    def __init__(
        self,
        gradient: float,
        hessian: float,
        reg_lambdas: Sequence[float],
        *,
        reg_alpha: float = 0.0,
        max_delta_step: float = np.inf,
        output: float | None = None,
        title: str = "",
    ) -> None:
        self.gradient, self.hessian = float(gradient), float(hessian)
        self.settings = [
            _NO_SETTINGS._replace(
                reg_lambda=float(reg_lambda),
                reg_alpha=float(reg_alpha),
                max_delta_step=float(max_delta_step),
            )
            for reg_lambda in reg_lambdas
        ]
        self.output = output
        self.title = title
        self.outputs_ = np.array(
            [leaf_weight(self.gradient, self.hessian, penalties) for penalties in self.settings]
        )
        self.similarities_ = np.array(
            [
                -2.0 * self._objective(w, penalties)
                for w, penalties in zip(self.outputs_, self.settings, strict=True)
            ]
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        tree: int = 0,
        node: int = 0,
        *,
        output: int = 0,
        reg_lambdas: Sequence[float] | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw what a node of a fitted estimator adds to the objective, for every output.

        Parameters
        ----------
        estimator : XGBRegressorLite or XGBClassifierLite
        tree, node : int, default=0
            Their numbers, as in ``trees_to_dataframe``.
        output : int, default=0
            Which of them, if a tree has values for several outputs (`multi_strategy`).
        reg_lambdas : sequence of float, optional
            Each has a parabola. None: 0, the model's own, and one that halves the output.

        Raises
        ------
        ValueError
            If there is no such tree, node or output; it names those that there are. If a lambda is
            no number from 0 on.
        """
        fitted = fitted_model(estimator)
        model = fitted.model
        check_number("tree", tree, model.n_trees, "the model has the trees")
        start, stop = model.tree_starts[tree], model.tree_starts[tree + 1]
        check_number("node", node, int(stop - start), f"tree {tree} has the nodes")
        check_number("output", output, len(model.values), "trees have values for outputs")
        sums = grown_tree(model._replace(unpruned=None), tree).sums
        gradient, hessian = sums[node, output, 1:].tolist()
        if hessian <= 0.0:
            raise ValueError(
                f"node={node}: no rows of this output came there in training, and without a "
                "hessian there is no parabola; choose another node"
            )
        params = model.params_of(tree)
        if reg_lambdas is None:
            fitted_lambda = params.reg_lambda
            halving = hessian + 2 * fitted_lambda if fitted_lambda > 0 else hessian
            reg_lambdas = sorted({0.0, fitted_lambda, halving})
        rule = number(0)
        for reg_lambda in reg_lambdas:
            if not rule.holds(reg_lambda):
                raise ValueError(f"reg_lambdas has {reg_lambda!r}: each must be {rule.words}")
        title = f"{tree_title(fitted, tree, output)}, node {node}"
        penalties = dict(reg_alpha=params.reg_alpha, max_delta_step=params.max_delta_step)
        rate, value = params.learning_rate, float(model.values[output, start + node])
        drawn = value / rate if rate > 0.0 else None
        return cls(gradient, hessian, reg_lambdas, **penalties, output=drawn, title=title).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 7.0, 5.0

    def _draw(self, ax: Any) -> None:
        self.lines_: list[Any] = []
        grid = self._outputs_to_draw()
        for place, penalties in enumerate(self.settings):
            colour = SERIES[place % len(SERIES)]
            w, similarity = self.outputs_[place], self.similarities_[place]
            label = (
                f"λ = {short_number(penalties.reg_lambda, 4)}: output {short_number(w, 4)}, "
                f"similarity {short_number(similarity, 4)}"
            )
            objective = [self._objective(output, penalties) for output in grid]
            # one that lies upon another is seen between the dashes
            style = dict(color=colour, linestyle=_DASHES[place % len(_DASHES)], linewidth=1.8)
            self.lines_ += ax.plot(grid, objective, label=label, **style)
            ax.plot([w], [-similarity / 2], "o", color=colour, markeredgecolor="black")
        if self.output is not None and not np.isclose(self.output, self.outputs_, rtol=1e-6).any():
            label = f"the node's output: {short_number(self.output, 4)}"
            ax.axvline(self.output, color=DARK, linestyle="--", linewidth=1, label=label)
        lowest = min(-similarity / 2 for similarity in self.similarities_)
        if lowest < 0.0:  # what rises high above 0 is of no interest
            ax.set_ylim(1.2 * lowest, -1.2 * lowest)
        ax.axhline(0.0, color=GREY, linewidth=0.8, zorder=0)
        ax.axvline(0.0, color=GREY, linewidth=0.8, zorder=0)
        has_alpha = any(penalties.reg_alpha > 0 for penalties in self.settings)
        term = " + \N{GREEK SMALL LETTER ALPHA} |w|" if has_alpha else ""
        sums = f"G = {short_number(self.gradient, 4)}, H = {short_number(self.hessian, 4)}"
        ax.set_title(f"{self.title}: {sums}" if self.title else sums, fontsize=11)
        ax.set_xlabel("output w")
        ax.set_ylabel(f"change of the objective: G w + ½ (H + λ) w²{term}")
        hide_frame(ax)
        # below, since parabolas go everywhere else
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), frameon=False)

    def _objective(self, output: float, penalties: TreeParams) -> float:
        """The term of an output in the objective: less than 0 if it is good."""
        return -0.5 * similarity_at(self.gradient, self.hessian, float(output), penalties)

    def _outputs_to_draw(self) -> np.ndarray:
        """Outputs that the parabolas are drawn for: around 0 and all minima, with some room."""
        marked = [0.0, *self.outputs_.tolist(), *([] if self.output is None else [self.output])]
        room = 0.5 * (max(marked) - min(marked)) or 1.0
        limit = min([penalties.max_delta_step for penalties in self.settings], default=np.inf)
        low, high = max(min(marked) - room, -limit), min(max(marked) + room, limit)
        return np.linspace(low, high, _N_POINTS)


plot_derivation = function_of("plot_derivation", DerivationDisplay.from_estimator)
