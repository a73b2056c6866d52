"""Settings of single features: categories, constraints, weights in draws."""

import ast
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sklboost.estimators.parameters.rules import (
    FLAG,
    Rule,
    is_finite,
    is_integer,
    is_number,
    one_of,
    parameter,
)

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


def _values(value: Any) -> list[Any]:
    """Values of a dict or of a sequence, one per feature."""
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value)


def _is_by_feature(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple | np.ndarray)


def _are_signs(value: Any) -> bool:
    return _is_by_feature(value) and all(
        is_finite(sign) and sign in (-1, 0, 1) for sign in _values(value)
    )


def _are_weights(value: Any) -> bool:
    return _is_by_feature(value) and all(
        is_finite(weight) and weight >= 0 for weight in _values(value)
    )


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


@dataclass(init=False, kw_only=True, eq=False, repr=False)
class FeatureParameters:
    """Settings of single features: categories, constraints, weights in draws."""

    categorical_features: str | Collection[Any] | None = parameter(
        "from_dtype",
        Rule(
            '{"from_dtype"} or array-like',
            "None, 'from_dtype', a list of names or numbers of features, or a mask with a bool "
            "for each",
            lambda value: (
                value is None
                or (value == "from_dtype" if isinstance(value, str) else _are_features(value))
            ),
        ),
        """
        The categorical features. "from_dtype": the columns of a frame whose dtype says so.
        Otherwise names, numbers (counted from 0; names, where columns are named by numbers) or a
        mask; these features may hold text or numbers, and have the
        same categories whatever the dtype; other columns of a categorical dtype are the numbers
        that their categories are. Categories are matched by value at prediction. None: no feature
        is categorical.
        """,
    )
    enable_categorical: bool = parameter(
        True,
        FLAG,
        "Whether to accept columns with a categorical dtype; an error otherwise, as in XGBoost.",
    )
    unknown_category: str = parameter(
        "missing",
        one_of("missing", "error"),
        """
        How to treat categories that no training row has. "missing": as NaN, with an
        :class:`~sklboost.UnknownCategoryWarning` that counts them. "error": raise ValueError.
        """,
    )
    missing: float | None = parameter(
        np.nan,
        Rule(
            "float",
            "a number, or NaN",
            is_number,
        ),
        """
        An additional value that counts as missing, such as -999. NaN and what a frame marks as
        missing always do.
        """,
    )
    monotone_constraints: Mapping[Any, int] | Collection[int] | str | None = parameter(
        None,
        Rule(
            "dict, array-like of shape (n_features,) or str",
            "None, a dict of names or numbers of features to -1, 0 or 1, or one of these for "
            "each feature, such as (1, 0, -1) or the string '(1,0,-1)'",
            lambda value: value is None or _are_signs(value),
            constraints_of,
        ),
        """
        1: predictions never decrease where this feature increases and the others stay the same.
        -1: they never increase. 0: no constraint, as for features that a dict leaves out. Keys are
        names, or numbers counted from 0; where columns are named by numbers these are names. For
        several classes, the raw score of each is constrained. Missing values have no order: they go
        to the side that is learnt, or to one of their own. See :meth:`verify_monotone` for a proof.
        XGBoost's strings, such as ``"(1,0,-1)"``, are read, too.
        """,
    )
    interaction_constraints: Collection[Collection[Any]] | str | None = parameter(
        None,
        Rule(
            'list of lists, {"pairwise", "no_interactions"} or str',
            "None, 'pairwise', 'no_interactions', or a list of lists of names or numbers of "
            "features, or a string of it such as '[[0, 1], [2, 3]]'",
            lambda value: value is None or _are_groups(value),
            constraints_of,
        ),
        """
        Groups of features, by name or number as in `monotone_constraints`: all splits on the way to
        a leaf are on features of one group. A feature in no group interacts with no other, as in
        XGBoost. "pairwise": they are on at most two features. "no_interactions": on one. XGBoost's
        strings, such as ``"[[0, 1], [2, 3]]"``, are read, too.
        """,
    )
    feature_weights: Mapping[Any, float] | Collection[float] | None = parameter(
        None,
        Rule(
            "dict or array-like of shape (n_features,)",
            "None, a dict of names or numbers of features to a finite number >= 0, or one for "
            "each feature",
            lambda value: value is None or _are_weights(value),
        ),
        """
        Weights of the features in the draws of `colsample_bytree`, `colsample_bylevel` and
        `colsample_bynode`: one after the other is drawn, in proportion to its weight; those of
        weight 0 never. 1 for features that a dict, by name or number as in `monotone_constraints`,
        leaves out. Without draws of features they have
        no effect.
        """,
    )
