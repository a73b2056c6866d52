"""How many rounds of boosting, how far each goes, and where they start."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sklboost.estimators.parameters.about import about
from sklboost.estimators.parameters.rules import FLAG, Rule, integer, is_finite, number, one_of

_PROBABILITY = Rule(
    "float", "a number from 0 to 1", lambda value: is_finite(value) and 0 <= value <= 1
)


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
    num_parallel_tree: int = field(
        default=1,
        metadata=about(
            integer(1),
            """
            Trees that a round grows for each output, all from the same gradients, each with rows
            and features drawn anew and with so many times smaller leaf values: a forest a round.
            """,
        ),
    )
    booster: str = field(
        default="gbtree",
        metadata=about(
            one_of("gbtree", "dart"),
            """
            "gbtree": a round adds trees. "dart": it also leaves out some earlier rounds while its
            trees are grown, and then gives less weight to them and to itself (dropout); it cannot
            continue a model.
            """,
        ),
    )
    rate_drop: float = field(
        default=0.0,
        metadata=about(
            _PROBABILITY,
            """
            For "dart": probability with which an earlier round is left out.
            """,
        ),
    )
    skip_drop: float = field(
        default=0.0,
        metadata=about(
            _PROBABILITY,
            """
            For "dart": probability with which a round leaves out none.
            """,
        ),
    )
    one_drop: bool = field(
        default=False,
        metadata=about(
            FLAG,
            """
            For "dart": whether at least one is left out, unless `skip_drop` says none.
            """,
        ),
    )
    sample_type: str = field(
        default="uniform",
        metadata=about(
            one_of("uniform", "weighted"),
            """
            For "dart": whether all rounds are as likely to be left out, or each in proportion to
            its weight.
            """,
        ),
    )
    normalize_type: str = field(
        default="tree",
        metadata=about(
            one_of("tree", "forest"),
            """
            For "dart", when k rounds were left out and eta is the learning rate. "tree": the new
            round has weight 1 / (k + eta), those are multiplied by k / (k + eta). "forest": both
            1 / (1 + eta).
            """,
        ),
    )
