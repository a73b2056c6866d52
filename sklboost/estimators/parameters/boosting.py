"""The loss, the rounds of boosting that reduce it, and the weights of classes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sklboost.estimators.parameters.rules import (
    FLAG,
    PROBABILITY,
    Rule,
    integer,
    is_finite,
    is_integer,
    listed,
    number,
    one_of,
    parameter,
    value_of,
)
from sklboost.objectives.loss import Loss


def _are_finite(value: Any) -> bool:
    values = value if isinstance(value, list | tuple | np.ndarray) else [value]
    is_list = not isinstance(values, np.ndarray) or values.ndim == 1
    return is_list and all(map(is_finite, values))


def _are_alphas(value: Any) -> bool:
    values = value if isinstance(value, list | tuple | np.ndarray) else [value]
    return len(values) > 0 and all(is_finite(alpha) and 0 < alpha < 1 for alpha in values)


def _is_loss(value: Any) -> bool:
    if isinstance(value, type):  # callable, but what it gives is no pair of arrays
        return False
    return isinstance(value, str | Loss) or callable(value)


def _is_class_weight(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(is_finite(weight) and weight > 0 for weight in value.values())
    return value is None or (isinstance(value, str) and value == "balanced")


_ALPHAS = Rule(
    "float or list of float",
    "a number between 0 and 1, both excluded, or a list of such numbers",
    _are_alphas,
    listed,
)


@dataclass(init=False, kw_only=True, eq=False, repr=False)
class BoostingParameters:
    """Number of rounds, size of their steps, and where they start."""

    preset: str | None = parameter(
        None,
        Rule(
            '{"auto"} or None',
            "None or 'auto'",
            lambda value: value is None or (isinstance(value, str) and value == "auto"),
        ),
        """
        "auto": `fit` chooses values for parameters at their defaults that decide on accuracy:
        number and size of the steps, depth, thresholds, cover, sampling. It trains on parts of the
        rows to compare them, and ``chosen_params_`` has the result. A value that equals the default
        counts as not set. None: the defaults stay, as in XGBoost.
        """,
    )
    n_estimators: int | None = parameter(
        100,
        integer(1),
        """
        Number of boosting rounds. Each round adds one tree, or for more than two classes, several
        labels or several targets one tree for each of them.
        """,
    )
    learning_rate: float | None = parameter(
        0.3,
        number(0),
        "Factor by which the leaf weights of a tree are multiplied before they are added.",
    )
    base_score: float | Sequence[float] | None = parameter(
        None,
        Rule(
            "float or list of float",
            "None, a finite number, or a list of such numbers",
            lambda value: value is None or _are_finite(value),
            listed,
        ),
        """
        Prediction before the first tree: a value, or for two classes the probability of
        ``classes_[1]``. None: the best constant (the mean, or the shares of the classes). For
        several targets, labels or classes, one number for all or a list with one for each; of more
        than two classes these are raw scores, as in XGBoost, such as the logarithms of their
        shares, so one number for all means equal shares.
        """,
    )
    num_parallel_tree: int | None = parameter(
        1,
        integer(1),
        """
        Number of trees that a round grows for each output, as a random forest: all from the same
        gradients, each from its own sample of rows and features. Leaf values are divided by it.
        """,
    )
    booster: str | None = parameter(
        "gbtree",
        one_of("gbtree", "dart"),
        """
        "gbtree": each round adds trees. "dart": each round also drops some earlier rounds while its
        trees are grown, and then reduces the weights of these rounds and its own (dropout); it
        cannot continue a model.
        """,
    )
    rate_drop: float = parameter(
        0.0, PROBABILITY, 'For "dart": probability that an earlier round is dropped.'
    )
    skip_drop: float = parameter(
        0.0, PROBABILITY, 'For "dart": probability that a round drops no earlier one.'
    )
    one_drop: bool = parameter(
        False,
        Rule(
            "bool",
            "True or False",
            lambda value: FLAG.holds(value) or (is_integer(value) and value in (0, 1)),
        ),
        'For "dart": whether to drop at least one round, unless `skip_drop` decides on none.',
    )
    sample_type: str = parameter(
        "uniform",
        one_of("uniform", "weighted"),
        """
        For "dart": whether all rounds are equally likely to be dropped, or in proportion to their
        weights.
        """,
    )
    normalize_type: str = parameter(
        "tree",
        one_of("tree", "forest"),
        """
        For "dart", with k dropped rounds and learning rate eta. "tree": the new round gets weight
        1 / (k + eta), and the dropped ones are multiplied by k / (k + eta). "forest": both are
        1 / (1 + eta).
        """,
    )


@dataclass(init=False, kw_only=True, eq=False, repr=False)
class LossParameters:
    """The loss, and the parameters of some losses."""

    objective: str | Callable[..., Any] | Loss | None = parameter(
        None,
        Rule(
            "str, callable or Loss",
            "None, a name, a function (y_true, y_pred) -> (gradient, hessian), or an object "
            "(no class) that inherits from sklboost.Loss",
            lambda value: value is None or _is_loss(value),
        ),
        """
        The loss, by XGBoost's name or one of scikit-learn's or LightGBM's. None: squared error for
        regression, log loss for two classes, softmax for more. A custom loss is a function
        ``(y_true, y_pred)`` or ``(y_true, y_pred, sample_weight)`` of targets or class numbers and
        raw scores that returns gradient and hessian, or a :class:`sklboost.Loss`.
        """,
    )
    quantile_alpha: float | Sequence[float] = parameter(
        0.5,
        _ALPHAS,
        """
        Quantile that ``objective="reg:quantileerror"`` predicts. With several, predictions have a
        column for each, from the lowest quantile to the highest.
        """,
    )
    expectile_alpha: float | Sequence[float] = parameter(
        0.5,
        _ALPHAS,
        """
        Expectile that ``objective="reg:expectileerror"`` predicts, or several, as for
        `quantile_alpha`. 0.5 is squared error.
        """,
    )
    huber_slope: float = parameter(
        1.0,
        number(0, excluded=True),
        """
        For ``objective="reg:huber"`` and ``"reg:pseudohubererror"``: the residual, in the unit of
        the target, at which squared error turns into absolute error.
        """,
    )
    fair_c: float = parameter(
        1.0,
        number(0, excluded=True),
        'For ``objective="reg:fair"``: the same as `huber_slope` for the Huber loss.',
    )
    tweedie_variance_power: float = parameter(
        1.5,
        Rule("float", "a number from 1 to 2", lambda value: is_finite(value) and 1 <= value <= 2),
        """
        For ``objective="reg:tweedie"``: the variance of the targets is proportional to this power
        of their mean. 1 is the Poisson distribution, 2 the gamma distribution.
        """,
    )
    focal_gamma: float = parameter(
        2.0,
        number(0),
        """
        For ``objective="binary:focal"``: how much the weight of rows that are predicted well is
        reduced. 0 is log loss.
        """,
    )


def rounds_and_trees(owner: Any, is_forest: bool) -> tuple[int, int]:
    """Return the rounds of a fit, and the trees that each of them adds to each output.

    Those of a warm start are included. A forest is one round of `n_estimators` trees.
    """
    n_estimators = value_of(owner, "n_estimators")
    return (1, n_estimators) if is_forest else (n_estimators, value_of(owner, "num_parallel_tree"))


@dataclass(init=False, kw_only=True, eq=False, repr=False)
class ClassParameters:
    """Weights of the classes."""

    class_weight: Mapping[Any, float] | Literal["balanced"] | None = parameter(
        None,
        Rule(
            'dict, "balanced" or None',
            "None, 'balanced' or a dict that gives labels a finite number > 0 (to leave a "
            "class out, leave its rows out)",
            _is_class_weight,
        ),
        """
        Factors by which the weights of the rows of each class are multiplied: a dict of labels to
        numbers, or "balanced" for factors that give all classes the same weight. Validation data is
        weighted too.
        """,
    )
    scale_pos_weight: float | None = parameter(
        1.0,
        number(0, excluded=True),
        """
        For two classes, factor for the weight of ``classes_[1]``, in addition to `class_weight`.
        With more classes it is ignored, with a warning.
        """,
    )
    calibrated_prior: bool = parameter(
        False,
        FLAG,
        """
        Whether to shift raw scores after training so that probabilities are those of the data, not
        of the weighted classes (prior correction: King & Zeng 2001).
        """,
    )


@dataclass(init=False, kw_only=True, eq=False, repr=False)
class LambdaParameters:
    """Which pairs of documents are learnt from, and what they weigh."""

    lambdarank_pair_method: str = parameter(
        "topk",
        one_of("topk", "mean"),
        """
        Which pairs of documents of a query ``"rank:ndcg"``, ``"rank:map"`` and ``"rank:pairwise"``
        learn from. "topk": each of the documents now at the top with each document below it.
        "mean": each document with some drawn at random among those of other relevance.
        """,
    )
    lambdarank_num_pair_per_sample: int | None = parameter(
        None,
        Rule(
            "int", "None or an integer >= 1", lambda value: value is None or integer(1).holds(value)
        ),
        """
        For "topk" the number of documents at the top, for "mean" that of pairs drawn for each
        document. None: 32 at the top, or 1 pair.
        """,
    )
    lambdarank_normalization: bool = parameter(
        True,
        FLAG,
        """
        Whether the gradients of a query grow with the logarithm of their sum only ("topk"), or are
        divided by the number of pairs of a document ("mean").
        """,
    )
    lambdarank_score_normalization: bool = parameter(
        True,
        FLAG,
        "Whether the weight of a pair is divided by the difference of its scores, plus 0.01.",
    )
    lambdarank_unbiased: bool = parameter(
        False,
        FLAG,
        """
        Whether to estimate how positions bias clicks, and to correct it (Unbiased LambdaMART: Hu et
        al. 2019). Relevances are clicks, and the documents of a query are in the order in which
        users saw them.
        """,
    )
    lambdarank_bias_norm: float = parameter(
        1.0,
        number(0),
        "Regularisation of these estimates: they are taken to the power of 1 / (1 + this).",
    )
    ndcg_exp_gain: bool = parameter(
        True,
        FLAG,
        """
        Whether a document of relevance l is worth 2^l - 1, and l is a whole number from 0 to 31.
        False: it is worth l.
        """,
    )
