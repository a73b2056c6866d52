"""How each tree is grown and pruned, and which rows and features it is grown from."""

from dataclasses import dataclass

from sklboost.estimators.parameters.rules import (
    FLAG,
    FRACTION,
    Rule,
    integer,
    is_integer,
    number,
    one_of,
    parameter,
)


@dataclass(init=False, kw_only=True, eq=False, repr=False)
class TreeParameters:
    """How each tree is grown and pruned."""

    max_depth: int | None = parameter(
        6,
        integer(0)._replace(words="an integer >= 0 (0: no limit)"),
        "Maximum depth of a tree: of splits on the way from the root to a leaf. 0: no limit.",
    )
    max_leaves: int | None = parameter(
        0,
        Rule(
            "int",
            "0 (no limit) or an integer >= 2",
            lambda value: is_integer(value) and value >= 0 and value != 1,
        ),
        "Maximum number of leaves of a tree. 0: no limit.",
    )
    grow_policy: str | None = parameter(
        "depthwise",
        one_of("depthwise", "lossguide"),
        """
        "depthwise": split all nodes of a depth before those below. "lossguide": always split the
        leaf of largest gain.
        """,
    )
    max_bin: int | None = parameter(
        256,
        integer(2, 65_535),
        """
        Maximum number of bins of a feature, from 2 to 65,535. A feature with more distinct values
        is divided into this many bins of about equal weight, one of them for missing values. If a
        feature has more than 256 bins (256 values and missing ones, for instance), the bins of all
        features take twice the memory.
        """,
    )
    reg_lambda: float | None = parameter(
        1.0, number(0), "L2 penalty on leaf weights: similarity is ``G^2 / (H + reg_lambda)``."
    )
    reg_alpha: float | None = parameter(
        0.0, number(0), "L1 penalty on leaf weights: G is moved towards 0 by this much."
    )
    gamma: float | None = parameter(
        0.0,
        number(0),
        """
        Minimum gain of a split: splits of smaller gain are pruned, from the bottom up. 0 still
        prunes negative gains.
        """,
    )
    min_child_weight: float | None = parameter(
        1.0,
        number(0),
        """
        Minimum cover (sum of hessians) of a child: the number of rows for squared error,
        ``sum p (1 - p)`` for log loss.
        """,
    )
    min_child_samples: int | None = parameter(
        0,
        integer(0, 2**31 - 1),
        """
        Minimum number of rows of a child: the sum of their sample weights, so a row of weight 2 is
        two. Rows that `subsample` leaves out do not count.
        """,
    )
    max_delta_step: float | None = parameter(
        0.0,
        number(0),
        """
        Maximum leaf weight in absolute value, before the learning rate. 0: no limit but that of the
        loss: 10 for log losses, 2 for Poisson, gamma and Tweedie.
        """,
    )
    pruning: str = parameter(
        "post",
        one_of("post", "full", "pre"),
        """
        "post": grow every split of positive gain, then prune with `gamma`. "full": also grow splits
        without gain, since those beneath them may justify them, then prune. "pre": make no split of
        gain below `gamma`, as XGBoost's ``hist`` does.
        """,
    )
    ccp_alpha: float = parameter(
        0.0,
        number(0),
        """
        Complexity parameter of minimal cost-complexity pruning, as in scikit-learn: a branch is
        removed if its splits gain less than this on average, for each unit of the root's cover
        (each row, for squared error). Unlike it, `gamma` looks at one split at a time and does not
        grow with the data. See :meth:`cost_complexity_pruning_path`. 0: no such pruning.
        """,
    )
    keep_pruned: bool = parameter(
        False,
        FLAG,
        """
        Whether to keep the splits that pruning removes, for :meth:`explain_split`. The trees stay
        the same; the model also holds each tree as it was before pruning.
        """,
    )
    path_smooth: float = parameter(
        0.0,
        number(0),
        """
        Smoothing of leaf weights towards those of their parents: ``s w + (1 - s) w_parent`` with
        ``s = H / (H + path_smooth)``, as in LightGBM, but with the cover H in place of the number
        of rows. 0: no smoothing.
        """,
    )
    extra_trees: bool = parameter(
        False,
        FLAG,
        """
        Whether to consider a single random threshold of each feature in a node, as in LightGBM.
        Trees are rougher and vary more.
        """,
    )
    linear_tree: bool = parameter(
        False,
        FLAG,
        """
        Whether leaves are linear functions of the features on the way to them, as in LightGBM,
        instead of constants: better for smooth targets, slower. Rows without a finite value of one
        of these features get the constant.
        """,
    )
    linear_lambda: float = parameter(
        1.0,
        number(0),
        """
        L2 penalty on the slopes of linear leaves, each times the largest distance of its feature
        from the mean of the leaf: like `reg_lambda`, it is measured in cover.
        """,
    )
    max_cat_to_onehot: int | None = parameter(
        4,
        integer(1),
        """
        A categorical feature with fewer categories is split into one category and all others. A
        feature with more is split into two sets of categories, ordered by their leaf weights.
        """,
    )
    max_cat_threshold: int | None = parameter(
        64,
        integer(1),
        """
        Maximum number of categories on one side of a split, of those that occur in the node. The
        other side has all others.
        """,
    )
    cat_smooth: float = parameter(
        2.0,
        number(0),
        """
        Least smoothing of categories. They are ordered by ``G / (H + cat_smooth)``; and a split on
        more than three of them is judged by their means moved towards that of all, the more the
        smaller H is and the more of what they differ in is noise: by ``k / (H + k)``, where k is
        estimated in each node and at least `cat_smooth`. 0: no smoothing.
        """,
    )
    multi_strategy: str | None = parameter(
        "one_output_per_tree",
        one_of("one_output_per_tree", "multi_output_tree"),
        """
        What to grow where there are several raw scores per row. "one_output_per_tree": a tree for
        each. "multi_output_tree": one tree per round, with a value for each of them in its leaves;
        gains are summed over the outputs, and the cover is the mean of theirs.
        """,
    )


@dataclass(init=False, kw_only=True, eq=False, repr=False)
class SamplingParameters:
    """Which rows and features a tree is grown from."""

    subsample: float | None = parameter(
        1.0,
        FRACTION,
        """
        Fraction of the rows that a tree is grown from, greater than 0, at most 1. Rows are drawn
        anew for each round, and for each of its parallel trees; independently of one another, so
        their number varies a little. Where weight 2 is equivalent to the row twice for the loss,
        it is here if all weights are whole and their sum is at most 4,096, whatever those of the
        classes are; otherwise a row is drawn as a whole, whatever its weight.
        """,
    )
    sampling_method: str | None = parameter(
        "uniform",
        one_of("uniform", "gradient_based"),
        """
        "uniform": every row is drawn with probability `subsample`. "gradient_based": with a
        probability proportional to ``sqrt(g^2 + 0.1 h^2)``, at most 1, about `subsample` of the
        rows in all; gradient and hessian of a row drawn with probability p count 1 / p times, for
        `min_child_weight` too. Useful where `subsample` is small.
        """,
    )
    colsample_bytree: float | None = parameter(
        1.0,
        FRACTION,
        """
        Fraction of the features that a tree may split on, drawn anew for each tree: greater than 0,
        at most 1; rounded down, at least one feature.
        """,
    )
    colsample_bylevel: float | None = parameter(
        1.0, FRACTION, "Fraction of the features of a tree that splits of one depth may use."
    )
    colsample_bynode: float | None = parameter(
        1.0, FRACTION, "Fraction of the features of a depth that the split of a node may use."
    )
