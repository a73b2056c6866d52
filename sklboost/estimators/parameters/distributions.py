"""The parameters of the estimator of distributions: those of boosters, some with other defaults."""

from dataclasses import dataclass

from sklboost.estimators.parameters.groups import (
    Parameters,
    without_class_losses,
    without_regression_losses,
)
from sklboost.estimators.parameters.rules import one_of, parameter, redeclared, unused
from sklboost.objectives.registry import DISTRIBUTIONS


@dataclass(kw_only=True, eq=False, repr=False)
@without_class_losses
@without_regression_losses
@unused(Parameters, "the loss is the log-likelihood of `distribution`", "objective")
@unused(
    Parameters,
    "the start is the distribution of largest likelihood without features",
    "base_score",
)
@unused(Parameters, "they would bind all parameters alike, the scale, too", "monotone_constraints")
class DistributionParameters(Parameters):
    """The parameters of the estimator of distributions."""

    n_estimators: int | None = redeclared(
        Parameters,
        "n_estimators",
        text="Number of boosting rounds. Each round adds one tree for all parameters.",
    )
    learning_rate: float | None = redeclared(Parameters, "learning_rate", default=0.1)
    max_depth: int | None = redeclared(Parameters, "max_depth", default=4)
    gamma: float | None = redeclared(
        Parameters,
        "gamma",
        default=10.0,
        text="""
        Minimum gain of a split, by the pruning that `pruning` selects. A gain is about twice what a
        split adds to the log-likelihood of the rows, whatever their unit; by chance alone the best
        of many splits often adds ten. So small data does not make scales too small.
        """,
    )
    min_child_samples: int | None = redeclared(
        Parameters,
        "min_child_samples",
        default=20,
        text="""
        Fewest training rows in a leaf, counted with their weights. Of few rows a scale is soon too
        small, and costs most where it is wrong.
        """,
    )
    multi_strategy: str | None = redeclared(
        Parameters,
        "multi_strategy",
        default="multi_output_tree",
        text="""
        "multi_output_tree": a round grows one tree, whose leaves have a step for every parameter of
        the distribution. "one_output_per_tree": a tree for each of them.
        """,
    )
    distribution: str = parameter(
        "normal",
        one_of(*DISTRIBUTIONS),
        """
        The distribution of a target given its features; its parameters are what is learnt.
        "normal", "student_t" and "laplace" are for any numbers, "lognormal" and "gamma" for amounts
        above 0, "poisson" and "negative_binomial" for counts; the others for amounts or counts that
        are 0 more often.
        """,
    )
