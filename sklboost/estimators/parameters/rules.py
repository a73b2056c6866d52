"""What a parameter is: a field of a dataclass with a default, a rule and a text.

The estimators inherit from these dataclasses, and so have a constructor with all parameters. The
checks of ``fit`` come from the rules, the docstrings from the texts. None may be a value with a
meaning of its own; where the type has it and the rule has not, it stands for the default, as with
XGBoost's parameters.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import Field, field, fields
from numbers import Integral, Real
from types import NoneType
from typing import Any, NamedTuple, TypeVar, get_args

import numpy as np

Class = TypeVar("Class", bound=type)


class Rule(NamedTuple):
    """What a value must be."""

    kind: str  # the type, as the documentation has it
    words: str  # what follows "it must be"
    holds: Callable[[Any], bool]  # the test
    # brings a value to the form in which fits read it
    read: Callable[[Any], Any] = lambda value: value


def parameter(default: Any, rule: Rule, text: str) -> Any:
    """Declare a parameter, as a field of a dataclass."""
    return field(default=default, metadata={"rule": rule, "text": text})


def redeclared(group: type, name: str, **changes: Any) -> Any:
    """Declare a parameter of `group` for a subclass, with another `default`, `rule` or `text`."""
    known = group.__dataclass_fields__[name]  # type: ignore[attr-defined]
    return parameter(**{"default": known.default, **known.metadata, **changes})


def unused(group: type, why: str, *names: str) -> Callable[[Class], Class]:
    """Decorate a subclass, before it becomes a dataclass, that has no use for some parameters.

    Its constructor does not take them, and fits read their defaults.
    """

    def mark(subclass: Class) -> Class:
        for name in names:
            known = group.__dataclass_fields__[name]  # type: ignore[attr-defined]
            subclass.__annotations__[name] = known.type
            metadata = {**known.metadata, "unused": why}
            setattr(subclass, name, field(default=known.default, init=False, metadata=metadata))
        return subclass

    return mark


def names_of(group: type) -> list[str]:
    """Names of the parameters of a dataclass."""
    return [parameter.name for parameter in fields(group)]


def none_is_default(known: Field[Any]) -> bool:
    """Whether None stands for the default of a parameter."""
    return NoneType in get_args(known.type) and not known.metadata["rule"].holds(None)


def value_of(owner: Any, name: str) -> Any:
    """Return a parameter of an estimator as fits read it; its default if None stands for that."""
    return as_read(type(owner), name, getattr(owner, name))


def is_default(owner: Any, name: str) -> bool:
    """Whether a parameter of an estimator has its default value, given or not."""
    value, default = value_of(owner, name), type(owner).__dataclass_fields__[name].default
    if isinstance(default, int | float | str):  # an equal number of NumPy is the same
        return isinstance(value, int | float | str | np.number | np.bool_) and value == default
    return value is default


def as_read(group: Any, name: str, value: Any) -> Any:
    """Return a value of a parameter of a dataclass as fits read it."""
    known = group.__dataclass_fields__.get(name)
    if known is None or "rule" not in known.metadata:  # of a user's class
        return value
    if value is None:
        return known.default if none_is_default(known) else None
    return known.metadata["rule"].read(value)


def check_parameters(group: type, values: Mapping[str, Any]) -> None:
    """Raise ValueError for the first of these values that breaks the rule of its parameter.

    Parameters
    ----------
    group : type
        A dataclass that has these parameters.
    values : mapping of str to object
        By name; not all need be given.

    Raises
    ------
    ValueError
        Such as ``n_estimators=-3: it must be an integer >= 1``.
    """
    for known in fields(group):
        name, rule = known.name, known.metadata.get("rule")  # None: a field of a user's dataclass
        if name in values and rule is not None and not rule.holds(values[name]):
            raise ValueError(f"{name}={values[name]!r}: it must be {rule.words}")


def is_integer(value: Any) -> bool:
    """Whether a value is a whole number."""
    # a bool is an int to Python, but max_depth=True is a mistake; so is a span of time to NumPy
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_ | np.timedelta64)


def is_number(value: Any) -> bool:
    """Whether a value is a number that float64 can hold, NaN and infinite ones included."""
    # np.bool_ is no Real, bool is
    is_real = isinstance(value, int | float | Real)
    if not is_real or isinstance(value, bool | np.timedelta64):
        return False
    try:
        float(value)
    except OverflowError:  # an integer of hundreds of digits
        return False
    return True


def is_finite(value: Any) -> bool:
    """Whether a value is a finite number."""
    return is_number(value) and math.isfinite(value)


def integer(least: int, most: float = math.inf) -> Rule:
    """Whole numbers from `least` to `most`."""
    words = f">= {least}" if most == math.inf else f"from {least} to {most}"
    return Rule(
        "int",
        f"an integer {words}",
        lambda value: is_integer(value) and least <= value <= most,
    )


def number(least: float, *, excluded: bool = False) -> Rule:
    """Finite numbers from `least` on."""
    return Rule(
        "float",
        f"a finite number {'>' if excluded else '>='} {least:g}",
        lambda value: is_finite(value) and (value > least if excluded else value >= least),
    )


def one_of(*names: str) -> Rule:
    """Some strings."""
    kind = ", ".join(f'"{name}"' for name in names)
    words = "one of " + ", ".join(map(repr, names))
    return Rule(f"{{{kind}}}", words, lambda value: isinstance(value, str) and value in names)


def listed(value: Any) -> Any:
    """Return an array as a list, anything else as it is."""
    return value.tolist() if isinstance(value, np.ndarray) else value


def anything(kind: str) -> Rule:
    """Values that are checked where they are used."""
    return Rule(kind, "", lambda value: True)


FLAG = Rule("bool", "True or False", lambda value: isinstance(value, bool | np.bool_))
FRACTION = Rule("float", "a number > 0 and <= 1", lambda value: is_finite(value) and 0 < value <= 1)
PROBABILITY = Rule(
    "float", "a number from 0 to 1", lambda value: is_finite(value) and 0 <= value <= 1
)
