"""The parameters that kinds of estimators add, have no use for or declare anew.

Where a parameter is declared anew, what is left out stays as it is: its rule, or its text.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from sklboost.estimators.parameters.boosters import (
    OF_CLASSIFIERS,
    OF_REGRESSORS,
    ClassifierParameters,
    Parameters,
)
from sklboost.estimators.parameters.rules import (
    FLAG,
    Rule,
    integer,
    is_finite,
    number,
    one_of,
    optional,
    parameter,
    parameters,
    unused,
)
from sklboost.objectives.loss import Loss
from sklboost.objectives.registry import DISTRIBUTIONS


@parameters
class OwnLossParameters(Parameters):
    """The parameters of estimators without the losses of regressors and classifiers."""

    quantile_alpha: float | Sequence[float] = unused(OF_REGRESSORS)
    expectile_alpha: float | Sequence[float] = unused(OF_REGRESSORS)
    huber_slope: float = unused(OF_REGRESSORS)
    fair_c: float = unused(OF_REGRESSORS)
    tweedie_variance_power: float = unused(OF_REGRESSORS)
    focal_gamma: float = unused(OF_CLASSIFIERS)


@parameters
class RankerParameters(OwnLossParameters):
    """The parameters of rankers."""

    objective: str | None = parameter(
        default=None,
        rule=Rule(
            "str",
            "None or a name: 'rank:ndcg', 'rank:map', 'rank:pairwise', 'rank:xendcg' or "
            "'rank:yeti'",
            lambda value: value is None or isinstance(value, str),
        ),
        text="""
        The loss, by XGBoost's name or LightGBM's. None, as "rank:ndcg": pairs of documents,
        weighted by how much the NDCG changes if they change places. "rank:map": the same for the
        average precision. "rank:pairwise": all pairs have the same weight. "rank:xendcg": the cross
        entropy of whole lists. "rank:yeti": neighbours in random orders, weighted as `yeti_mode`
        says.
        """,
    )
    lambdarank_pair_method: str = parameter(
        default="topk",
        rule=one_of("topk", "mean"),
        text="""
        Which pairs of documents of a query ``"rank:ndcg"``, ``"rank:map"`` and ``"rank:pairwise"``
        learn from. "topk": each of the documents now at the top with each document below it.
        "mean": each document with some drawn at random from documents of other relevance.
        """,
    )
    lambdarank_num_pair_per_sample: int | None = parameter(
        default=None,
        rule=optional(integer(1)),
        text="""
        For "topk" the number of documents at the top, for "mean" the number of pairs drawn for each
        document. None: 32 at the top, or 1 pair.
        """,
    )
    lambdarank_normalization: bool = parameter(
        default=True,
        rule=FLAG,
        text="""
        Whether the gradients of a query grow only with the logarithm of their sum ("topk"), or are
        divided by the number of pairs of a document ("mean").
        """,
    )
    lambdarank_score_normalization: bool = parameter(
        default=True,
        rule=FLAG,
        text="Whether the weight of a pair is divided by the difference of its scores, plus 0.01.",
    )
    lambdarank_unbiased: bool = parameter(
        default=False,
        rule=FLAG,
        text="""
        Whether to estimate how positions bias clicks, and to correct it (Unbiased LambdaMART: Hu et
        al. 2019). Relevances are clicks, and the documents of a query are in the order in which
        users saw them.
        """,
    )
    lambdarank_bias_norm: float = parameter(
        default=1.0,
        rule=number(0),
        text="Regularisation of these estimates: they are taken to the power of 1 / (1 + this).",
    )
    ndcg_exp_gain: bool = parameter(
        default=True,
        rule=FLAG,
        text="""
        Whether a document of relevance l is worth 2^l - 1, and l is a whole number from 0 to 31.
        False: it is worth l.
        """,
    )
    yeti_mode: str = parameter(
        default="ndcg",
        rule=one_of("ndcg", "map", "mrr", "classic"),
        text="""
        What ``"rank:yeti"`` weighs pairs of neighbours by: what exchanging them changes in this
        metric, or "classic": the difference of their relevances, times `yeti_decay` for each
        position above the pair. With "topk", pairs begin with the first
        `lambdarank_num_pair_per_sample` documents of each order, and there are no others.
        """,
    )
    yeti_permutations: int = parameter(
        default=5,
        rule=integer(1),
        text='For "rank:yeti": how many random orders of each query are drawn in a round.',
    )
    yeti_decay: float = parameter(
        default=0.85,
        rule=Rule(
            "float", "a number >= 0 and < 1", lambda value: is_finite(value) and 0 <= value < 1
        ),
        text="""
        For ``yeti_mode="classic"``: how likely a user looks at the next document of a list.
        """,
    )


@parameters
class SurvivalParameters(OwnLossParameters):
    """The parameters of survival models."""

    objective: str | None = parameter(
        default=None,
        rule=Rule(
            "str",
            "None, 'survival:cox' or 'survival:aft'",
            lambda value: value is None or isinstance(value, str),
        ),
        text="""
        The loss, by XGBoost's name. None, as "survival:cox": the partial likelihood of Cox's model
        of proportional hazards. "survival:aft": the likelihood of accelerated failure times, for
        which times may be known by lower and upper bounds only.
        """,
    )
    base_score: float | Sequence[float] | None = parameter(
        default=None,
        text="""
        Prediction before the first tree. None: the best constant. For "survival:aft" a time, as in
        XGBoost; for "survival:cox" a risk score, which all predictions are shifted by.
        """,
    )
    ties: str = parameter(
        default="breslow",
        rule=one_of("breslow", "efron"),
        text="""
        For "survival:cox": how events at one time share the rows at risk. "efron" is closer to the
        truth if there are many ties. With "breslow", as in scikit-survival, a row of weight 2 is
        equivalent to the row twice, also if it is tied.
        """,
    )
    aft_loss_distribution: str = parameter(
        default="normal",
        rule=one_of("normal", "logistic", "extreme"),
        text="""
        For "survival:aft": the distribution of the logarithms of times around their locations.
        """,
    )
    aft_loss_distribution_scale: float = parameter(
        default=1.0,
        rule=number(0, excluded=True),
        text='For "survival:aft": the scale of this distribution.',
    )


@parameters
class DistributionParameters(OwnLossParameters):
    """The parameters of the estimator of distributions."""

    objective: str | Callable[..., Any] | Loss | None = unused(
        "the loss is the log-likelihood of `distribution`"
    )
    base_score: float | Sequence[float] | None = unused(
        "the start is the distribution of largest likelihood without features"
    )
    monotone_constraints: Mapping[Any, int] | Collection[int] | str | None = unused(
        "they would bind all parameters alike, the scale, too"
    )
    n_estimators: int | None = parameter(
        default=100,
        text="Number of boosting rounds. Each round adds one tree for all parameters.",
    )
    learning_rate: float | None = parameter(default=0.1)
    max_depth: int | None = parameter(default=4)
    gamma: float | None = parameter(
        default=10.0,
        text="""
        Minimum gain of a split, by the pruning that `pruning` selects. A gain is about twice what a
        split adds to the log-likelihood of the rows, whatever their unit; by chance alone the best
        of many splits often adds ten. The default keeps scales from becoming too small on small
        data.
        """,
    )
    min_child_samples: int | None = parameter(
        default=20,
        text="""
        Fewest training rows in a leaf, counted with their weights. A scale from few rows is often
        too small, and such errors cost most.
        """,
    )
    multi_strategy: str | None = parameter(
        default="multi_output_tree",
        text="""
        "multi_output_tree": a round grows one tree, whose leaves have a step for every parameter of
        the distribution. "one_output_per_tree": a tree for each of them.
        """,
    )
    distribution: str = parameter(
        default="normal",
        rule=one_of(*DISTRIBUTIONS),
        text="""
        The distribution of a target given its features; its parameters are learnt.
        "normal", "student_t" and "laplace" are for any numbers, "lognormal" and "gamma" for amounts
        above 0, "poisson" and "negative_binomial" for counts; the others for amounts or counts that
        are 0 more often.
        """,
    )


_ONE_ROUND = "a forest is one round"
_FIXED = f"Must have its default: {_ONE_ROUND}."


def _only(value: Any, why: str = _ONE_ROUND) -> Rule:
    """The default is all that a parameter can be."""
    shown = '"gbtree"' if value == "gbtree" else repr(value)
    return Rule(shown, f"{value!r}: {why}", lambda given: given is value or given == value)


@parameters
class ForestParameters(Parameters):
    """The parameters of random forests: other defaults, and nothing that needs several rounds."""

    n_estimators: int | None = parameter(default=100, text="Number of trees.")
    learning_rate: float | None = parameter(default=1.0)
    num_parallel_tree: int | None = parameter(
        default=1,
        rule=_only(1, "n_estimators is the number of trees"),
        text="Must have its default: n_estimators is the number of trees.",
    )
    booster: str | None = parameter(default="gbtree", rule=_only("gbtree"), text=_FIXED)
    rate_drop: float = unused(_ONE_ROUND)
    skip_drop: float = unused(_ONE_ROUND)
    one_drop: bool = unused(_ONE_ROUND)
    sample_type: str = unused(_ONE_ROUND)
    normalize_type: str = unused(_ONE_ROUND)
    focal_gamma: float = unused(OF_CLASSIFIERS)
    reg_lambda: float | None = parameter(default=1e-05)
    subsample: float | None = parameter(default=0.8)
    colsample_bynode: float | None = parameter(default=0.8)
    early_stopping_rounds: None = parameter(default=None, rule=_only(None), text=_FIXED)
    validation_fraction: float = unused(_ONE_ROUND)
    refit: bool = unused(_ONE_ROUND)
    callbacks: None = parameter(default=None, rule=_only(None), text=_FIXED)
    warm_start: bool = unused(_ONE_ROUND)


@parameters
class ForestClassifierParameters(ForestParameters, ClassifierParameters):
    """The parameters of random forests that classify."""

    quantile_alpha: float | Sequence[float] = unused(OF_REGRESSORS)
    expectile_alpha: float | Sequence[float] = unused(OF_REGRESSORS)
    huber_slope: float = unused(OF_REGRESSORS)
    fair_c: float = unused(OF_REGRESSORS)
    tweedie_variance_power: float = unused(OF_REGRESSORS)
    focal_gamma: float = parameter(default=2.0)
