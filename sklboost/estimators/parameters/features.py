"""What is laid down for single features: categories, constraints, how likely they are drawn."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from sklboost.estimators.parameters.about import about
from sklboost.estimators.parameters.rules import FLAG, Rule, is_finite, is_integer, one_of


def _values(value: Any) -> list:
    """Give the values of a dict or of a sequence, one a feature."""
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
        is_finite(weight) and weight > 0 for weight in _values(value)
    )


def _are_groups(value: Any) -> bool:
    if isinstance(value, str):
        return value in ("pairwise", "no_interactions")
    return isinstance(value, Sequence | set | frozenset) and all(
        isinstance(group, Iterable) and not isinstance(group, str) for group in value
    )


def _are_features(value: Any) -> bool:
    # a pandas index, too, such as X.select_dtypes("object").columns
    is_listed = isinstance(value, Sequence | set | frozenset) or (
        hasattr(value, "__array__") and np.ndim(value) == 1
    )
    return is_listed and all(
        isinstance(own, str | bool | np.bool_) or is_integer(own) for own in value
    )


@dataclass(kw_only=True, eq=False, repr=False)
class FeatureParameters:
    """What is laid down for single features."""

    categorical_features: Any = field(
        default="from_dtype",
        metadata=about(
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
            Which features are categories: "from_dtype", those of a frame whose dtype says so; or
            names, numbers or a mask. Those may hold text or numbers, and have the same levels
            whatever the dtype. Levels are matched by value at prediction. None: no feature is one.
            """,
        ),
    )
    enable_categorical: bool = field(
        default=True,
        metadata=about(
            FLAG,
            """
            False: columns that are categories by their dtype are an error, as in XGBoost.
            """,
        ),
    )
    unknown_category: str = field(
        default="missing",
        metadata=about(
            one_of("missing", "error"),
            """
            What a level is that no row of the training has: "missing", as NaN is, with an
            :class:`~sklboost.UnknownCategoryWarning` that counts them; or an error.
            """,
        ),
    )
    missing: float = field(
        default=np.nan,
        metadata=about(
            Rule(
                "float",
                "a number, or NaN",
                lambda value: isinstance(value, Real) and not isinstance(value, bool),
            ),
            """
            A further value that counts as missing, such as -999. NaN always does, and what a frame
            says is missing.
            """,
        ),
    )
    monotone_constraints: Any = field(
        default=None,
        metadata=about(
            Rule(
                "dict or array-like of shape (n_features,)",
                "None, a dict of names or numbers of features to -1, 0 or 1, or one of these for "
                "each feature",
                lambda value: value is None or _are_signs(value),
            ),
            """
            1: predictions never fall where this feature rises and the others stay as they are;
            -1: they never rise; 0: free, as is every feature that a dict leaves out. Of several
            classes, each one's raw score is held. Missing values have no order: they go to the
            side that is learnt, or to one of their own. :meth:`verify_monotone` proves it.
            """,
        ),
    )
    interaction_constraints: Any = field(
        default=None,
        metadata=about(
            Rule(
                'list of lists or {"pairwise", "no_interactions"}',
                "None, 'pairwise', 'no_interactions', or a list of lists of names or numbers of "
                "features",
                lambda value: value is None or _are_groups(value),
            ),
            """
            Groups of features, by name or number: the splits on the way to a leaf are all on
            features of one group. A feature of no group interacts with no other, as in XGBoost.
            "pairwise": on two features at most; "no_interactions": on one.
            """,
        ),
    )
    feature_weights: Any = field(
        default=None,
        metadata=about(
            Rule(
                "dict or array-like of shape (n_features,)",
                "None, a dict of names or numbers of features to a finite number > 0, or one for "
                "each feature",
                lambda value: value is None or _are_weights(value),
            ),
            """
            How likely each feature is drawn by `colsample_bytree`, `colsample_bylevel` and
            `colsample_bynode`: in proportion to its weight, one after the other. 1 for those
            that a dict leaves out. Without draws of features they do nothing.
            """,
        ),
    )
