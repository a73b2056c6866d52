"""Which rows and features a tree is grown from."""

from dataclasses import dataclass, field

from sklboost.estimators.parameters.about import about
from sklboost.estimators.parameters.rules import fraction, one_of


@dataclass(kw_only=True, eq=False, repr=False)
class SamplingParameters:
    """Which rows and features a tree is grown from."""

    subsample: float = field(
        default=1.0,
        metadata=about(
            fraction(),
            """
            Part of the rows that each round's trees are grown from, drawn anew for each round
            (for each of `num_parallel_tree`): greater than 0, at most 1. Each row is drawn or
            not by itself, so the number varies a little. Weight 2 is the row twice here, too,
            if the weights are whole and their sum is at most 4,096; else a row is drawn whole,
            whatever its weight.
            """,
        ),
    )
    sampling_method: str = field(
        default="uniform",
        metadata=about(
            one_of("uniform", "gradient_based"),
            """
            "uniform": every row is drawn with probability `subsample`. "gradient_based": with
            one proportional to ``sqrt(g^2 + 0.1 h^2)``, at most 1, about `subsample` of the
            rows in all; gradient and hessian of a row drawn with probability p count 1 / p
            times, for `min_child_weight` too. Of use where `subsample` is small.
            """,
        ),
    )
    colsample_bytree: float = field(
        default=1.0,
        metadata=about(
            fraction(),
            """
            Part of the features that a tree may split on, drawn anew for each tree: greater
            than 0, at most 1; rounded down, at least one feature.
            """,
        ),
    )
    colsample_bylevel: float = field(
        default=1.0,
        metadata=about(
            fraction(),
            """
            Part of these that splits of one depth may be on.
            """,
        ),
    )
    colsample_bynode: float = field(
        default=1.0,
        metadata=about(
            fraction(),
            """
            Part of the latter that the split of one node may be on.
            """,
        ),
    )
