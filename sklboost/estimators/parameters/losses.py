"""What the model is to be good at: the loss, and the parameters of some losses."""

from dataclasses import dataclass, field
from typing import Any

from sklboost.estimators.parameters.about import about
from sklboost.estimators.parameters.rules import Rule, is_finite


def _are_levels(value: Any) -> bool:
    values = value if isinstance(value, list | tuple) else [value]
    return len(values) > 0 and all(is_finite(one) and 0 < one < 1 for one in values)


@dataclass(kw_only=True, eq=False, repr=False)
class LossParameters:
    """What the model is to be good at: the loss, and the parameters of some losses."""

    objective: Any = field(
        default=None,
        metadata=about(
            Rule("str", "None or a name", lambda value: value is None or isinstance(value, str)),
            """
            The loss, by XGBoost's name or one of scikit-learn's or LightGBM's. None: squared error
            for regression, log loss for two classes, softmax for more.
            """,
        ),
    )
    quantile_alpha: Any = field(
        default=0.5,
        metadata=about(
            Rule(
                "float or list of float",
                "a number between 0 and 1, both excluded, or a list of such numbers",
                _are_levels,
            ),
            """
            Level of ``objective="reg:quantileerror"``. Of several levels each is a column of the
            predictions, from the lowest to the highest.
            """,
        ),
    )
