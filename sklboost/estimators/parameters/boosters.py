"""The parameters of all estimators, in the order of their signatures, and of classifiers.

Each is a field with a default, a rule that `fit` checks and the text of the docstrings, see
``rules.py``. The parameters of other kinds of estimators are in ``kinds.py``.
"""

import ast
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from sklboost.boosting.callbacks import TrainingCallback, as_callback
from sklboost.estimators.parameters.names import (
    CALLBACKS_OF_LIGHTGBM,
    read_params,
    wrap_constructor,
)
from sklboost.estimators.parameters.rules import (
    FLAG,
    FRACTION,
    PROBABILITY,
    Rule,
    anything,
    integer,
    is_finite,
    is_integer,
    is_number,
    listed,
    names_of,
    number,
    one_of,
    optional,
    parameter,
    parameters,
    unused,
    value_of,
)
from sklboost.inspection.importances import IMPORTANCE_TYPES
from sklboost.objectives.loss import Loss


def _are_finite(value: Any) -> bool:
    values = value if isinstance(value, list | tuple | np.ndarray) else [value]
    is_list = not isinstance(values, np.ndarray) or values.ndim == 1
    return is_list and all(map(is_finite, values))


def _are_alphas(value: Any) -> bool:
    values = value if isinstance(value, list | tuple | np.ndarray) else [value]
    return len(values) > 0 and all(is_finite(alpha) and 0 < alpha < 1 for alpha in values)


_ALPHAS = Rule(
    "float or list of float",
    "a number between 0 and 1, both excluded, or a list of such numbers",
    _are_alphas,
    listed,
)


def _is_loss(value: Any) -> bool:
    if isinstance(value, type):  # callable, but it returns no pair of arrays
        return False
    return isinstance(value, str | Loss) or callable(value)


def _is_class_weight(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(is_finite(weight) and weight > 0 for weight in value.values())
    return value is None or (isinstance(value, str) and value == "balanced")


_WORDS = ("pairwise", "no_interactions")


# Of a string of constraints: Python's parser takes 250 times as much memory.
_MOST_LETTERS = 200_000


def constraints_of(value: Any) -> Any:
    """Return what a string of XGBoost's stands for, such as ``"(1,0,-1)"`` or ``"[[0, 1], [2]]"``.

    Without constraints None. All else is returned as it is.
    """
    if not isinstance(value, str) or value in _WORDS or len(value) > _MOST_LETTERS:
        return value
    if value.strip() in ("", "()"):
        return None
    try:
        written = ast.literal_eval(value.strip())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return value
    return (written,) if is_integer(written) else written  # (1) is no tuple to Python


def _by_feature(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return the test of None, and of a dict or a sequence with such a value for each feature."""

    def test(value: Any) -> bool:
        values = value.values() if isinstance(value, Mapping) else value
        is_listed = isinstance(value, Mapping | list | tuple | np.ndarray)
        return value is None or (is_listed and all(map(holds, values)))

    return test


def _are_groups(value: Any) -> bool:
    if isinstance(value, str):
        return value in _WORDS
    return isinstance(value, Sequence | set | frozenset) and all(
        isinstance(group, Iterable) and not isinstance(group, str) for group in value
    )


def _are_features(value: Any) -> bool:
    # a pandas index, too, such as X.select_dtypes("object").columns
    is_listed = isinstance(value, Sequence | set | frozenset) or (
        hasattr(value, "__array__") and np.ndim(value) == 1
    )
    return is_listed and all(isinstance(feature, Hashable) for feature in value)


def _read_callbacks(value: Any) -> Any:
    """Return callbacks as trainings call them, what is no list as it is."""
    if not isinstance(value, list | tuple):
        return value
    for callback in value:
        kind = type(callback)
        if kind.__module__.partition(".")[0] == "lightgbm":
            remedy = CALLBACKS_OF_LIGHTGBM.get(kind.__name__, "inherit from TrainingCallback")
            raise ValueError(f"callbacks has a callback of LightGBM, {callback!r}: {remedy}")
    return [as_callback(callback) for callback in value]


@parameters
class Parameters:
    """The parameters of all estimators."""

    # --- rounds: their number, the size of their steps, where they start, dropout

    preset: str | None = parameter(
        default=None,
        rule=Rule(
            '{"auto"} or None',
            "None or 'auto'",
            lambda value: value is None or (isinstance(value, str) and value == "auto"),
        ),
        text="""
        "auto": `fit` chooses the parameters that you have not set and that matter for accuracy:
        number and size of the steps, depth, thresholds, cover, sampling. It compares candidates on
        parts of the rows; ``chosen_params_`` has the result. A parameter counts as set if the
        constructor, `set_params` or a grid has given it a value, even its default, but not if the
        value is None or was assigned to the attribute. `max_time` limits the whole fit, and allows
        smaller steps where they take long. "auto" implies ``categorical_features="auto"``. None:
        the defaults stay, as in XGBoost.
        """,
    )
    n_estimators: int | None = parameter(
        default=100,
        rule=integer(1),
        text="""
        Number of boosting rounds. Each round adds one tree, or for more than two classes, several
        labels or several targets one tree for each of them.
        """,
    )
    learning_rate: float | None = parameter(
        default=0.3,
        rule=number(0),
        text="Factor by which the leaf weights of a tree are multiplied before they are added.",
    )
    base_score: float | Sequence[float] | None = parameter(
        default=None,
        rule=Rule(
            "float or list of float",
            "None, a finite number, or a list of such numbers",
            lambda value: value is None or _are_finite(value),
            listed,
        ),
        text="""
        Prediction before the first tree: a value, or for two classes the probability of
        ``classes_[1]``. None: the best constant (the mean, or the shares of the classes). For
        several targets, labels or classes, one number for all or a list with one for each; of more
        than two classes these are raw scores, as in XGBoost, such as the logarithms of their
        shares, so one number for all means equal shares.
        """,
    )
    num_parallel_tree: int | None = parameter(
        default=1,
        rule=integer(1),
        text="""
        Number of trees that a round grows for each output, as a random forest: all from the same
        gradients, each from its own sample of rows and features. Leaf values are divided by it.
        """,
    )
    booster: str | None = parameter(
        default="gbtree",
        rule=one_of("gbtree", "dart"),
        text="""
        "gbtree": each round adds trees. "dart": each round also drops some earlier rounds while its
        trees are grown, and then reduces the weights of these rounds and its own (dropout); it
        cannot continue a model.
        """,
    )
    rate_drop: float = parameter(
        default=0.0,
        rule=PROBABILITY,
        text='For "dart": probability that an earlier round is dropped.',
    )
    skip_drop: float = parameter(
        default=0.0,
        rule=PROBABILITY,
        text='For "dart": probability that a round drops no earlier one.',
    )
    one_drop: bool = parameter(
        default=False,
        rule=Rule(
            "bool",
            "True or False",
            lambda value: FLAG.holds(value) or (is_integer(value) and value in (0, 1)),
        ),
        text='For "dart": whether to drop at least one round, unless `skip_drop` decides on none.',
    )
    sample_type: str = parameter(
        default="uniform",
        rule=one_of("uniform", "weighted"),
        text="""
        For "dart": whether all rounds are equally likely to be dropped, or in proportion to their
        weights.
        """,
    )
    normalize_type: str = parameter(
        default="tree",
        rule=one_of("tree", "forest"),
        text="""
        For "dart", with k dropped rounds and learning rate eta. "tree": the new round gets weight
        1 / (k + eta), and the dropped ones are multiplied by k / (k + eta). "forest": both are
        1 / (1 + eta).
        """,
    )

    # --- the loss, and the parameters of some losses

    objective: str | Callable[..., Any] | Loss | None = parameter(
        default=None,
        rule=Rule(
            "str, callable or Loss",
            "None, a name, a function (y_true, y_pred) -> (gradient, hessian), or an object "
            "(no class) that inherits from sklboost.Loss",
            lambda value: value is None or _is_loss(value),
        ),
        text="""
        The loss, by XGBoost's name or one of scikit-learn's or LightGBM's. None: squared error for
        regression, log loss for two classes, softmax for more. A custom loss is a function
        ``(y_true, y_pred)`` or ``(y_true, y_pred, sample_weight)`` of targets or class numbers and
        raw scores that returns gradient and hessian, or a :class:`sklboost.Loss`.
        """,
    )
    quantile_alpha: float | Sequence[float] = parameter(
        default=0.5,
        rule=_ALPHAS,
        text="""
        Quantile that ``objective="reg:quantileerror"`` predicts. With several, predictions have a
        column for each, from the lowest quantile to the highest.
        """,
    )
    expectile_alpha: float | Sequence[float] = parameter(
        default=0.5,
        rule=_ALPHAS,
        text="""
        Expectile that ``objective="reg:expectileerror"`` predicts, or several, as for
        `quantile_alpha`. 0.5 is squared error.
        """,
    )
    huber_slope: float = parameter(
        default=1.0,
        rule=number(0, excluded=True),
        text="""
        For ``objective="reg:huber"`` and ``"reg:pseudohubererror"``: the residual, in the unit of
        the target, at which squared error turns into absolute error.
        """,
    )
    fair_c: float = parameter(
        default=1.0,
        rule=number(0, excluded=True),
        text='For ``objective="reg:fair"``: the same as `huber_slope` for the Huber loss.',
    )
    tweedie_variance_power: float = parameter(
        default=1.5,
        rule=number(1, 2),
        text="""
        For ``objective="reg:tweedie"``: the variance of the targets is proportional to this power
        of their mean. 1 is the Poisson distribution, 2 the gamma distribution.
        """,
    )
    focal_gamma: float = parameter(
        default=2.0,
        rule=number(0),
        text="""
        For ``objective="binary:focal"``: how much the weight of rows that are predicted well is
        reduced. 0 is log loss.
        """,
    )

    # --- how each tree is grown and pruned

    max_depth: int | None = parameter(
        default=6,
        rule=integer(0)._replace(words="an integer >= 0 (0: no limit)"),
        text="""
        Maximum depth of a tree: the number of splits on the way from the root to a leaf. 0: no
        limit.
        """,
    )
    max_leaves: int | None = parameter(
        default=0,
        rule=Rule(
            "int",
            "0 (no limit) or an integer >= 2",
            lambda value: is_integer(value) and value >= 0 and value != 1,
        ),
        text="Maximum number of leaves of a tree. 0: no limit.",
    )
    grow_policy: str | None = parameter(
        default="depthwise",
        rule=one_of("depthwise", "lossguide", "symmetric"),
        text="""
        "depthwise": split all nodes of a depth before those below. "lossguide": always split the
        leaf of largest gain. "symmetric": split all nodes of a depth by one feature and threshold,
        as CatBoost does; `max_depth` is from 1 to 16 then.
        """,
    )
    max_bin: int | None = parameter(
        default=256,
        rule=integer(2, 65_535),
        text="""
        Maximum number of bins of a feature, from 2 to 65,535. A feature with more distinct values
        is divided into this many bins of about equal weight, one of them for missing values. If a
        feature has more than 256 bins (256 values and missing ones, for instance), the bins of all
        features take twice the memory.
        """,
    )
    reg_lambda: float | None = parameter(
        default=1.0,
        rule=number(0),
        text="L2 penalty on leaf weights: similarity is ``G^2 / (H + reg_lambda)``.",
    )
    reg_alpha: float | None = parameter(
        default=0.0,
        rule=number(0),
        text="L1 penalty on leaf weights: G is moved towards 0 by this much.",
    )
    gamma: float | None = parameter(
        default=0.0,
        rule=number(0),
        text="""
        Minimum gain of a split: splits of smaller gain are pruned, from the bottom up. 0 still
        prunes negative gains.
        """,
    )
    min_child_weight: float | None = parameter(
        default=1.0,
        rule=number(0),
        text="""
        Minimum cover (sum of hessians) of a child: the number of rows for squared error,
        ``sum p (1 - p)`` for log loss.
        """,
    )
    min_child_samples: int | None = parameter(
        default=0,
        rule=integer(0, 2**31 - 1),
        text="""
        Minimum number of rows of a child: the sum of their sample weights, so a row of weight 2
        counts as two. Rows that `subsample` leaves out do not count.
        """,
    )
    max_delta_step: float | None = parameter(
        default=0.0,
        rule=number(0),
        text="""
        Maximum leaf weight in absolute value, before the learning rate. 0: only the limit of the
        loss, which is 10 for log losses and 2 for Poisson, gamma and Tweedie.
        """,
    )
    pruning: str = parameter(
        default="post",
        rule=one_of("post", "full", "pre"),
        text="""
        "post": grow every split of positive gain, then prune with `gamma`. "full": also grow splits
        without gain, since those beneath them may justify them, then prune. "pre": make no split of
        gain below `gamma`, as XGBoost's ``hist`` does.
        """,
    )
    ccp_alpha: float = parameter(
        default=0.0,
        rule=number(0),
        text="""
        Complexity parameter of minimal cost-complexity pruning, as in scikit-learn: a branch is
        removed if its splits gain less than this on average, for each unit of the root's cover
        (each row, for squared error). Unlike it, `gamma` looks at one split at a time and does not
        grow with the data. See :meth:`cost_complexity_pruning_path`. 0: no such pruning.
        """,
    )
    keep_pruned: bool = parameter(
        default=False,
        rule=FLAG,
        text="""
        Whether to keep the splits that pruning removes, for :meth:`explain_split`. The trees stay
        the same; the model also holds each tree as it was before pruning.
        """,
    )
    path_smooth: float = parameter(
        default=0.0,
        rule=number(0),
        text="""
        Smoothing of leaf weights towards their parents': ``s w + (1 - s) w_parent`` with
        ``s = H / (H + path_smooth)``, as in LightGBM, but with the cover H in place of the number
        of rows. 0: no smoothing.
        """,
    )
    extra_trees: bool = parameter(
        default=False,
        rule=FLAG,
        text="""
        Whether to consider a single random threshold of each feature in a node, as in LightGBM.
        Trees are rougher and vary more.
        """,
    )
    linear_tree: bool = parameter(
        default=False,
        rule=FLAG,
        text="""
        Whether leaves are linear functions of the features on the way to them, as in LightGBM,
        instead of constants: better for smooth targets, slower. Rows without a finite value of one
        of these features get the constant.
        """,
    )
    linear_lambda: float = parameter(
        default=1.0,
        rule=number(0),
        text="""
        L2 penalty on the slopes of linear leaves, each times the largest distance of its feature
        from the mean of the leaf: like `reg_lambda`, it is measured in cover.
        """,
    )
    max_cat_to_onehot: int | None = parameter(
        default=4,
        rule=integer(1),
        text="""
        A categorical feature with fewer categories is split into one category and all others. A
        feature with more is split into two sets of categories, ordered by their leaf weights.
        """,
    )
    max_cat_threshold: int | None = parameter(
        default=64,
        rule=integer(1),
        text="""
        Maximum number of categories on one side of a split, of those that occur in the node. The
        other side has all others.
        """,
    )
    cat_smooth: float = parameter(
        default=2.0,
        rule=number(0),
        text="""
        Least smoothing of categories. They are ordered by ``G / (H + cat_smooth)``. For splits on
        more than three of them, their means are also moved towards the overall mean, by
        ``k / (H + k)``: the more, the smaller and the noisier a category is. k is estimated in each
        node and at least `cat_smooth`. 0: no smoothing.
        """,
    )
    max_ctr_complexity: int = parameter(
        default=0,
        rule=integer(0, 1),
        text="""
        Whether statistics of the target help to find splits on categories, as in CatBoost. 1: a
        categorical feature of 30 categories or more is also searched as numbers, the mean target of
        each category and how many rows it has, unless the means are but noise. The mean of a
        training row leaves out the fifth of the rows that it belongs to. The splits that are found
        are sets of categories like all others, of any size. 0: no statistics.
        """,
    )
    multi_strategy: str | None = parameter(
        default="one_output_per_tree",
        rule=one_of("one_output_per_tree", "multi_output_tree"),
        text="""
        What to grow where there are several raw scores per row. "one_output_per_tree": a tree for
        each. "multi_output_tree": one tree per round, with a value for each of them in its leaves;
        gains are summed over the outputs, and the cover is the mean of theirs.
        """,
    )

    # --- which rows and features a tree is grown from

    subsample: float | None = parameter(
        default=1.0,
        rule=FRACTION,
        text="""
        Fraction of the rows that a tree is grown from, greater than 0, at most 1. Rows are drawn
        anew for each round, and for each of its parallel trees; independently of one another, so
        their number varies a little. If all sample weights are whole and their sum is at most
        4,096, a row of weight 2 is drawn as two rows, unless the loss treats it differently;
        otherwise a row is drawn as a whole, whatever its weight.
        """,
    )
    sampling_method: str | None = parameter(
        default="uniform",
        rule=one_of("uniform", "gradient_based"),
        text="""
        "uniform": every row is drawn with probability `subsample`. "gradient_based": with a
        probability proportional to ``sqrt(g^2 + 0.1 h^2)``, at most 1, about `subsample` of the
        rows in all; gradient and hessian of a row drawn with probability p count 1 / p times, for
        `min_child_weight` too. Useful where `subsample` is small.
        """,
    )
    colsample_bytree: float | None = parameter(
        default=1.0,
        rule=FRACTION,
        text="""
        Fraction of the features that a tree may split on, drawn anew for each tree: greater than 0,
        at most 1; rounded down, at least one feature.
        """,
    )
    colsample_bylevel: float | None = parameter(
        default=1.0,
        rule=FRACTION,
        text="Fraction of the features of a tree that splits of one depth may use.",
    )
    colsample_bynode: float | None = parameter(
        default=1.0,
        rule=FRACTION,
        text="Fraction of the features of a depth that the split of a node may use.",
    )

    # --- single features: categories, constraints, weights in draws

    categorical_features: str | Collection[Any] | None = parameter(
        default="from_dtype",
        rule=Rule(
            '{"from_dtype", "auto"} or array-like',
            "None, 'from_dtype', 'auto', a list of names or numbers of features, or a mask with a "
            "bool for each",
            lambda value: (
                value is None
                or (
                    value in ("from_dtype", "auto")
                    if isinstance(value, str)
                    else _are_features(value)
                )
            ),
        ),
        text="""
        The categorical features. "from_dtype": the columns of a frame whose dtype says so. "auto":
        columns of text, bools and Python objects, too, with dates among them read as times. A list:
        names, positions counted from 0 (or names, if columns are named by numbers), or a mask. The
        features in it may hold text or numbers, and have the same categories whatever the dtype;
        other columns of a categorical dtype are read as the numbers that their categories are.
        Categories are matched by value at prediction. None: no feature is categorical.
        """,
    )
    enable_categorical: bool = parameter(
        default=True,
        rule=FLAG,
        text="""
        Whether to accept columns with a categorical dtype; an error otherwise, as in XGBoost.
        """,
    )
    unknown_category: str = parameter(
        default="missing",
        rule=one_of("missing", "error"),
        text="""
        How to treat categories that no training row has. "missing": as NaN, with an
        :class:`~sklboost.UnknownCategoryWarning` that counts them. "error": raise ValueError.
        """,
    )
    missing: float | None = parameter(
        default=np.nan,
        rule=Rule("float", "a number, or NaN", is_number),
        text="""
        An additional value that counts as missing, such as -999. NaN and what a frame marks as
        missing always do.
        """,
    )
    monotone_constraints: Mapping[Any, int] | Collection[int] | str | None = parameter(
        default=None,
        rule=Rule(
            "dict, array-like of shape (n_features,) or str",
            "None, a dict of names or numbers of features to -1, 0 or 1, or one of these for "
            "each feature, such as (1, 0, -1) or the string '(1,0,-1)'",
            _by_feature(lambda sign: is_finite(sign) and sign in (-1, 0, 1)),
            constraints_of,
        ),
        text="""
        1: predictions never decrease where this feature increases and the others stay the same. -1:
        they never increase. 0: no constraint, as for features that a dict leaves out. Keys are
        names, or positions counted from 0; if columns are named by numbers, numbers are names. For
        several classes, the raw score of each is constrained. Missing values have no order: they go
        to the side that the split has learnt, or to a side of their own. See
        :meth:`verify_monotone` for a proof. XGBoost's strings, such as ``"(1,0,-1)"``, are
        accepted, too.
        """,
    )
    interaction_constraints: Collection[Collection[Any]] | str | None = parameter(
        default=None,
        rule=Rule(
            'list of lists, {"pairwise", "no_interactions"} or str',
            "None, 'pairwise', 'no_interactions', or a list of lists of names or numbers of "
            "features, or a string of it such as '[[0, 1], [2, 3]]'",
            lambda value: value is None or _are_groups(value),
            constraints_of,
        ),
        text="""
        Groups of features, by name or number as in `monotone_constraints`: all splits on the way to
        a leaf are on features of one group. A feature in no group interacts with no other, as in
        XGBoost. "pairwise": they are on at most two features. "no_interactions": on one. XGBoost's
        strings, such as ``"[[0, 1], [2, 3]]"``, are accepted, too.
        """,
    )
    feature_weights: Mapping[Any, float] | Collection[float] | None = parameter(
        default=None,
        rule=Rule(
            "dict or array-like of shape (n_features,)",
            "None, a dict of names or numbers of features to a finite number >= 0, or one for "
            "each feature",
            _by_feature(lambda weight: is_finite(weight) and weight >= 0),
        ),
        text="""
        Weights of the features in the draws of `colsample_bytree`, `colsample_bylevel` and
        `colsample_bynode`: features are drawn one after the other, in proportion to their weights,
        and never one of weight 0. A dict has names or numbers as in `monotone_constraints`, and
        features that it leaves out have weight 1. Without draws of features, the weights have no
        effect.
        """,
    )

    # --- how training is watched, when it ends, what it runs on

    early_stopping_rounds: int | None = parameter(
        default=None,
        rule=optional(integer(1), "None (no early stopping)"),
        text="""
        Stop when the last metric on the last validation data has not improved for this many rounds,
        and keep the rounds up to the best. Without validation data given to `fit`, part of `X` is
        held out. None: do all rounds.
        """,
    )
    validation_fraction: float = parameter(
        default=0.1,
        rule=number(0, 1, excluded=True),
        text='Fraction of the rows held out for early stopping; for "random", of their weight.',
    )
    validation_split: str = parameter(
        default="random",
        rule=one_of("random", "time"),
        text="""
        Which rows to hold out for early stopping. "random": drawn with `random_state`, for a
        classifier the same fraction of every class, or whole `groups`. A row is held out whole,
        whatever its weight. "time": the last ones.
        """,
    )
    eval_metric: str | Callable[..., Any] | Sequence[str | Callable[..., Any]] | None = parameter(
        default=None,
        rule=anything("str, callable or list of them"),
        text="""
        Metrics computed on the validation data after every round: names of metrics (XGBoost's),
        scikit-learn scorers or their names, functions ``(y_true, y_pred)`` or
        ``(y_true, y_pred, sample_weight)``. None: the metric of the objective, such as ``"rmse"``,
        ``"logloss"``, or ``"mlogloss"`` for more than two classes.
        """,
    )
    refit: bool = parameter(
        default=False,
        rule=FLAG,
        text="""
        Whether to train once more after early stopping, for the best number of rounds, on all rows,
        including held-out rows (or the last validation data).
        """,
    )
    max_time: float | None = parameter(
        default=None,
        rule=Rule(
            "float",
            "None (no limit) or a number of seconds > 0",
            lambda value: value is None or (is_finite(value) and value > 0),
        ),
        text="""
        Seconds after which no further round is started; the rounds so far are kept. With `preset`
        these are the seconds of the whole fit: trials may take half of them.
        """,
    )
    callbacks: Sequence[TrainingCallback] | None = parameter(
        default=None,
        rule=Rule(
            "list of TrainingCallback",
            "None or a list of objects (no functions, no classes) that inherit from "
            "sklboost.TrainingCallback, or have the four methods of XGBoost's callbacks: "
            "before_training, before_iteration, after_iteration, after_training",
            lambda value: (
                value is None
                or (isinstance(value, list) and all(isinstance(v, TrainingCallback) for v in value))
            ),
            _read_callbacks,
        ),
        text="""
        Objects that follow the training; see :class:`sklboost.TrainingCallback`. Callbacks written
        for XGBoost are taken, too.
        """,
    )
    warm_start: bool = parameter(
        default=False,
        rule=FLAG,
        text="""
        Whether `fit` adds rounds to the model of the last `fit`, up to `n_estimators`, instead of
        starting anew. With early stopping the best round of all is kept, old or new.
        """,
    )
    n_jobs: int | None = parameter(
        default=None,
        rule=Rule(
            "int",
            "None, a positive integer, or a negative one (-1: all processors)",
            lambda value: value is None or (is_integer(value) and value != 0),
        ),
        text="""
        Maximum number of threads; small data uses fewer, and one on a busy machine. None: as many
        as this process may use without oversubscribing the processors, -1: all processors. The
        model has the same bits for any number.
        """,
    )
    random_state: int | np.random.RandomState | np.random.Generator | None = parameter(
        default=None,
        rule=anything("int, RandomState instance, Generator or None"),
        text="""
        Determines which rows and features are drawn, which rows are held out, and the random
        rounding of gradients (beyond about 4,000 rows). None: the seed 0, as in XGBoost, so the
        same data and parameters give the same model. A RandomState or Generator gives other draws
        in each fit.
        """,
    )
    verbose: int = parameter(
        default=0,
        rule=Rule(
            "int",
            "True, False or an integer >= 0",
            lambda value: isinstance(value, bool) or (is_integer(value) and value >= 0),
        ),
        text="""
        0: silent. 1: a progress bar (of tqdm if it is installed, else lines of text). 2: a line for
        every round. n: a line for every n rounds. Text goes through ``logging``. If it is not set,
        ``preset="auto"`` shows a line in a terminal or notebook while it compares; cross-validation
        and searches do not.
        """,
    )

    # --- how a finished model is looked at

    importance_type: str | None = parameter(
        default="gain",
        rule=one_of(*IMPORTANCE_TYPES),
        text="""
        What `feature_importances_` measures. "weight": the number of splits on a feature. "gain"
        and "cover": the mean gain of these splits, and the mean cover of the nodes that they split.
        "total_gain" and "total_cover": sums of these.
        """,
    )

    # --- their names, and which were given

    _given = tuple[str, ...]()  # those that were set, also to their defaults, which presets leave
    _is_clone = False  # whether scikit-learn's clone made the estimator
    _copied = tuple[Any, ...]()  # callbacks that clone made; users may set others later

    def __init_subclass__(cls, **arguments: Any):
        super().__init_subclass__(**arguments)
        if issubclass(cls, BaseEstimator):  # a class of parameters alone is to get a constructor
            wrap_constructor(cls)

    def __dir__(self) -> list[str]:
        """Return the names of all members, without parameters that the class has no use for."""
        unused = {own.name for own in fields(self) if not own.init}
        return sorted({*super().__dir__()} - unused)

    def set_params(self, **params: Any) -> Self:
        """Set parameters.

        Parameters
        ----------
        **params : dict
            Their values, by name.

        Returns
        -------
        estimator
            Itself.

        Raises
        ------
        UnknownParameterError
            If there is no such parameter: a ValueError and a TypeError, which names the nearest.
        """
        own = read_params(type(self), getattr(self, "objective", None), params)
        super().set_params(**own)  # type: ignore[misc]  # of BaseEstimator
        self._note_given(own)
        return self

    def _note_given(self, values: Mapping[str, Any]) -> None:
        """Note which parameters were set: None stands for the default, so it takes one back.

        A call with all parameters copies those of another estimator, as ``get_params`` has them,
        and says nothing of which were set there.
        """
        names = {own.name for own in fields(self) if own.init}
        if values.keys() >= names:
            self._given = ()
        elif values:
            kept = {name for name in self._given if name not in values}
            kept |= {name for name, value in values.items() if value is not None}
            self._given = tuple(sorted(kept))

    def __sklearn_clone__(self) -> Self:
        cloned: Self = super().__sklearn_clone__()  # type: ignore[misc]  # of BaseEstimator
        cloned._given, cloned._is_clone = self._given, True
        if isinstance(cloned.callbacks, Sequence):
            cloned._copied = tuple(cloned.callbacks)
        return cloned

    def _copied_callbacks(self) -> tuple[Any, ...]:
        """Return which of its callbacks clone made."""
        own = self.callbacks if isinstance(self.callbacks, Sequence) else ()
        return tuple(one for one in own if any(one is copied for copied in self._copied))


OF_CLASSIFIERS = "it is a parameter of classifiers"
OF_REGRESSORS = "it is a parameter of regressors"


@parameters
class RegressorParameters(Parameters):
    """The parameters of regressors."""

    focal_gamma: float = unused(OF_CLASSIFIERS)


@parameters
class ClassifierParameters(Parameters):
    """The parameters of classifiers."""

    quantile_alpha: float | Sequence[float] = unused(OF_REGRESSORS)
    expectile_alpha: float | Sequence[float] = unused(OF_REGRESSORS)
    huber_slope: float = unused(OF_REGRESSORS)
    fair_c: float = unused(OF_REGRESSORS)
    tweedie_variance_power: float = unused(OF_REGRESSORS)
    class_weight: Mapping[Any, float] | Literal["balanced"] | None = parameter(
        default=None,
        rule=Rule(
            'dict, "balanced" or None',
            "None, 'balanced' or a dict that gives labels a finite number > 0 (to leave a "
            "class out, leave its rows out)",
            _is_class_weight,
        ),
        text="""
        Factors by which the weights of the rows of each class are multiplied: a dict of labels to
        numbers, or "balanced" for factors that give all classes the same weight. Validation metrics
        are not weighted by them.
        """,
    )
    scale_pos_weight: float | None = parameter(
        default=1.0,
        rule=number(0, excluded=True),
        text="""
        For two classes, factor for the weight of ``classes_[1]``, in addition to `class_weight`.
        With more classes it is ignored, with a warning.
        """,
    )
    calibrated_prior: bool = parameter(
        default=False,
        rule=FLAG,
        text="""
        Whether to shift raw scores after training so that probabilities hold for the data, not
        for the weighted classes (prior correction: King & Zeng 2001).
        """,
    )


def rounds_and_trees(owner: Any, is_forest: bool) -> tuple[int, int]:
    """Return the rounds of a fit, and the trees that each of them adds to each output.

    Those of a warm start are included. A forest is one round of `n_estimators` trees.
    """
    n_estimators = value_of(owner, "n_estimators")
    return (1, n_estimators) if is_forest else (n_estimators, value_of(owner, "num_parallel_tree"))


_LARGEST_SEED = 2**31 - 1


def seeds(random_state: Any, is_sampling: bool) -> tuple[int, int]:
    """Return the seed of the rounding of gradients and that of the draws of rows and features.

    None draws as the seed 0 does, as in XGBoost: the same fit gives the same model. The module
    ``numpy.random`` stands for NumPy's global state, as in scikit-learn. If nothing is drawn, the
    second seed is 0, and no state moves for it.
    """
    if isinstance(random_state, np.random.Generator):
        draw = random_state.integers
    else:
        try:
            draw = check_random_state(0 if random_state is None else random_state).randint
        except ValueError as error:
            raise ValueError(
                f"random_state={random_state!r}: it must be None, an integer from 0 to 2**32 - 1, "
                "a RandomState or a Generator of NumPy"
            ) from error
    rounding = int(draw(_LARGEST_SEED))
    # without a seed rounding is that of earlier versions
    return 0 if random_state is None else rounding, int(draw(_LARGEST_SEED)) if is_sampling else 0


# The parameters of losses, and their defaults.
LOSS_DEFAULTS = {
    name: Parameters.__dataclass_fields__[name].default
    for name in names_of(Parameters, "objective", "focal_gamma")
}
