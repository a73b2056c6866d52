"""How each tree is grown and pruned."""

from dataclasses import dataclass, field

from sklboost.estimators.parameters.about import about
from sklboost.estimators.parameters.rules import FLAG, Rule, integer, is_integer, number, one_of


@dataclass(kw_only=True, eq=False, repr=False)
class TreeParameters:
    """How each tree is grown and pruned."""

    max_depth: int = field(
        default=6,
        metadata=about(
            integer(0),
            """
            Most splits on the way from the root to a leaf. 0: no limit.
            """,
        ),
    )
    max_leaves: int = field(
        default=0,
        metadata=about(
            Rule(
                "int",
                "0 (no limit) or an integer >= 2",
                lambda value: is_integer(value) and value >= 0 and value != 1,
            ),
            """
            Most leaves of a tree. 0: no limit.
            """,
        ),
    )
    grow_policy: str = field(
        default="depthwise",
        metadata=about(
            one_of("depthwise", "lossguide"),
            """
            Split level by level, or always the leaf of largest gain.
            """,
        ),
    )
    max_bin: int = field(
        default=256,
        metadata=about(
            integer(2, 65_535),
            """
            A feature with more distinct values than this is cut into so many bins of about
            equal weight, one of them for missing values. 2 to 65,535; if a feature has more
            than 256 (256 values and missing ones, for instance), the bins of all take twice the
            memory.
            """,
        ),
    )
    reg_lambda: float = field(
        default=1.0,
        metadata=about(
            number(0),
            """
            L2 penalty on leaf weights: similarity is ``G^2 / (H + reg_lambda)``.
            """,
        ),
    )
    reg_alpha: float = field(
        default=0.0,
        metadata=about(
            number(0),
            """
            L1 penalty on leaf weights: moves G towards 0 by so much.
            """,
        ),
    )
    gamma: float = field(
        default=0.0,
        metadata=about(
            number(0),
            """
            Splits of smaller gain are pruned, from the bottom up. 0 still prunes negative
            gains.
            """,
        ),
    )
    min_child_weight: float = field(
        default=1.0,
        metadata=about(
            number(0),
            """
            Least cover (sum of hessians) of a child: rows for squared error, ``sum p (1 - p)``
            for log loss.
            """,
        ),
    )
    max_delta_step: float = field(
        default=0.0,
        metadata=about(
            number(0),
            """
            Largest leaf weight in absolute value, before the learning rate. 0: no limit.
            """,
        ),
    )
    pruning: str = field(
        default="post",
        metadata=about(
            one_of("post", "full", "pre"),
            """
            "post": grow every split of positive gain, then prune with `gamma`. "full": grow
            through splits without gain too, so that what lies beneath can justify them. "pre":
            refuse a split of gain below `gamma` at once, as XGBoost's ``hist`` does.
            """,
        ),
    )
    ccp_alpha: float = field(
        default=0.0,
        metadata=about(
            number(0),
            """
            Cost of a leaf in minimal cost-complexity pruning, scikit-learn's: a branch goes if its
            splits gain less than this each, on average, for each unit of the root's cover (each
            row, for squared error). `gamma` looks at one split after the other and does not
            grow with the data. See :meth:`cost_complexity_pruning_path`. 0: no such pruning.
            """,
        ),
    )
    keep_pruned: bool = field(
        default=False,
        metadata=about(
            FLAG,
            """
            Whether the splits that pruning removes are remembered, for :meth:`explain_split`. The
            trees are the same; the model is as much larger as it was before pruning.
            """,
        ),
    )
    path_smooth: float = field(
        default=0.0,
        metadata=about(
            number(0),
            """
            Leaf weights lean on those of their parents: ``s w + (1 - s) w_parent`` with
            ``s = H / (H + path_smooth)``, as LightGBM's, but with the cover H where LightGBM has
            the number of rows. 0: they stand alone.
            """,
        ),
    )
    extra_trees: bool = field(
        default=False,
        metadata=about(
            FLAG,
            """
            Look at one random threshold of each feature in a node instead of all: rougher trees
            that vary more, as in LightGBM.
            """,
        ),
    )
    linear_tree: bool = field(
        default=False,
        metadata=about(
            FLAG,
            """
            Whether leaves are linear functions of the features on the way to them, as in
            LightGBM, instead of constants: better for smooth targets, slower. Rows without a
            finite value of one of these features get the constant.
            """,
        ),
    )
    linear_lambda: float = field(
        default=1.0,
        metadata=about(
            number(0),
            """
            L2 penalty on the slopes of linear leaves, each times the largest distance of its
            feature from the leaf's mean: like `reg_lambda`, it is measured in cover.
            """,
        ),
    )
    max_cat_to_onehot: int = field(
        default=4,
        metadata=about(
            integer(1),
            """
            A categorical feature of fewer levels is split one level against the others; one of
            more into two sets of levels, in the order of their leaf weights.
            """,
        ),
    )
    max_cat_threshold: int = field(
        default=64,
        metadata=about(
            integer(1),
            """
            Most levels of a categorical feature that one side of a split may have, of those that
            occur in the node. The other side has all others.
            """,
        ),
    )
    cat_smooth: float = field(
        default=10.0,
        metadata=about(
            number(0),
            """
            Levels of less than half that cover in a node are one for its split; the others are
            ordered by ``G / (H + cat_smooth)``. Rare levels are noise: the more smoothing, the less
            overfitting.
            """,
        ),
    )
    multi_strategy: str = field(
        default="one_output_per_tree",
        metadata=about(
            one_of("one_output_per_tree", "multi_output_tree"),
            """
            What is grown where there are several raw scores a row. "one_output_per_tree": a tree
            for each. "multi_output_tree": one tree a round with a value for each in its leaves;
            gains are summed over them, and the cover is the mean of theirs.
            """,
        ),
    )
