"""What the model is to be good at: the loss, and the parameters of some losses."""

from dataclasses import dataclass, field
from typing import Any

from sklboost.estimators.parameters.about import about
from sklboost.estimators.parameters.rules import Rule, is_finite, number
from sklboost.objectives.losses.base import Loss


def _are_alphas(value: Any) -> bool:
    values = value if isinstance(value, list | tuple) else [value]
    return len(values) > 0 and all(is_finite(one) and 0 < one < 1 for one in values)


def _is_loss(value: Any) -> bool:
    if isinstance(value, type):  # callable, but what it gives is no pair of arrays
        return False
    return isinstance(value, str | Loss) or callable(value)


_ALPHAS = Rule(
    "float or list of float",
    "a number between 0 and 1, both excluded, or a list of such numbers",
    _are_alphas,
)


@dataclass(kw_only=True, eq=False, repr=False)
class LossParameters:
    """What the model is to be good at: the loss, and the parameters of some losses."""

    objective: Any = field(
        default=None,
        metadata=about(
            Rule(
                "str, callable or Loss",
                "None, a name, a function (y_true, y_pred) -> (gradient, hessian), or an object "
                "(no class) that inherits from sklboost.Loss",
                lambda value: value is None or _is_loss(value),
            ),
            """
            The loss, by XGBoost's name or one of scikit-learn's or LightGBM's. None: squared error
            for regression, log loss for two classes, softmax for more. Or your own: a function
            ``(y_true, y_pred)`` or ``(y_true, y_pred, sample_weight)`` of targets or class numbers
            and raw scores that returns gradient and hessian, or a :class:`sklboost.Loss`.
            """,
        ),
    )
    quantile_alpha: Any = field(
        default=0.5,
        metadata=about(
            _ALPHAS,
            """
            Level of ``objective="reg:quantileerror"``. Of several levels each is a column of the
            predictions, from the lowest to the highest.
            """,
        ),
    )
    expectile_alpha: Any = field(
        default=0.5,
        metadata=about(
            _ALPHAS,
            """
            Level of ``objective="reg:expectileerror"``, or several, as for `quantile_alpha`. 0.5 is
            squared error.
            """,
        ),
    )
    huber_slope: float = field(
        default=1.0,
        metadata=about(
            number(0, excluded=True),
            """
            Of ``objective="reg:huber"`` and ``"reg:pseudohubererror"``: the residual, in the unit
            of the target, at which squared error turns into absolute error.
            """,
        ),
    )
    fair_c: float = field(
        default=1.0,
        metadata=about(
            number(0, excluded=True),
            """
            The same of ``objective="reg:fair"``.
            """,
        ),
    )
    tweedie_variance_power: float = field(
        default=1.5,
        metadata=about(
            Rule(
                "float", "a number from 1 to 2", lambda value: is_finite(value) and 1 <= value <= 2
            ),
            """
            Of ``objective="reg:tweedie"``: the variance of targets is in proportion to this power
            of their mean. 1 is Poisson, 2 gamma.
            """,
        ),
    )
    focal_gamma: float = field(
        default=2.0,
        metadata=about(
            number(0),
            """
            Of ``objective="binary:focal"``: how much less rows count that are predicted well. 0 is
            log loss.
            """,
        ),
    )
