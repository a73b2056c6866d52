"""How many rounds of boosting, how far each goes, and where they start."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sklboost.estimators.parameters.about import about
from sklboost.estimators.parameters.rules import Rule, integer, is_finite, number


def _are_finite(value: Any) -> bool:
    values = value if isinstance(value, list | tuple | np.ndarray) else [value]
    return np.ndim(values) == 1 and all(map(is_finite, values))


@dataclass(kw_only=True, eq=False, repr=False)
class BoostingParameters:
    """How many rounds, how far each goes, and where they start."""

    n_estimators: int = field(
        default=100,
        metadata=about(
            integer(1),
            """
            Number of boosting rounds: trees, or for more than two classes, several labels or
            several targets trees of each.
            """,
        ),
    )
    learning_rate: float = field(
        default=0.3,
        metadata=about(
            number(0, excluded=True),
            """
            What a tree's leaf weights are multiplied by before they are added.
            """,
        ),
    )
    base_score: Any = field(
        default=None,
        metadata=about(
            Rule(
                "float or list of float",
                "None, a finite number, or a list of such numbers",
                lambda value: value is None or _are_finite(value),
            ),
            """
            Prediction before the first tree: a value, or for two classes the probability of
            ``classes_[1]``. None: the best constant (mean, or shares of the classes). For more
            than two classes a number stands for equal shares. For several targets or labels one
            number, or a list of one for each.
            """,
        ),
    )
