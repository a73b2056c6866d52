"""What the classes of a classifier count."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sklboost.estimators.parameters.about import about
from sklboost.estimators.parameters.rules import FLAG, Rule, is_finite, number


def _is_class_weight(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(is_finite(weight) and weight > 0 for weight in value.values())
    return value is None or (isinstance(value, str) and value == "balanced")


@dataclass(kw_only=True, eq=False, repr=False)
class ClassParameters:
    """What the classes of a classifier count."""

    class_weight: Any = field(
        default=None,
        metadata=about(
            Rule(
                'dict, "balanced" or None',
                "None, 'balanced' or a dict that gives labels a finite number > 0 (to leave a "
                "class out, leave its rows out)",
                _is_class_weight,
            ),
            """
            What the weights of a class's rows are multiplied by: a dict of labels to numbers,
            or "balanced" for weights that make the classes count alike. Validation data is
            weighted too.
            """,
        ),
    )
    scale_pos_weight: float = field(
        default=1.0,
        metadata=about(
            number(0, excluded=True),
            """
            For two classes, multiplies the weight of ``classes_[1]``, on top of `class_weight`.
            """,
        ),
    )
    calibrated_prior: bool = field(
        default=False,
        metadata=about(
            FLAG,
            """
            Whether raw scores are shifted back after training so that probabilities are those
            of the data, not of the weighted classes (prior correction: King & Zeng 2001).
            """,
        ),
    )
