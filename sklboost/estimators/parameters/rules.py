"""Parameters are fields of a dataclass, with a default, a rule and a text.

The estimators inherit from classes of parameters, and so have a constructor with all of them. The
checks of ``fit`` come from the rules, the docstrings from the texts; type checkers and editors read
names, types and defaults from the source, since :func:`parameters` is a decorator of dataclasses to
them (:func:`typing.dataclass_transform`). None may be a value with a meaning of its own; where the
type has it and the rule has not, it stands for the default, as with XGBoost's parameters.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from numbers import Integral, Real
from types import NoneType
from typing import Any, Literal, NamedTuple, TypeVar, dataclass_transform, get_args

import numpy as np

T = TypeVar("T")


class Rule(NamedTuple):
    """A condition on values, in code and in words."""

    kind: str  # the type, as the documentation has it
    words: str  # what follows "it must be"
    holds: Callable[[Any], bool]  # the test
    # brings a value to the form in which fits read it
    read: Callable[[Any], Any] = lambda value: value


def parameter(*, default: Any, rule: Rule | None = None, text: str | None = None) -> Any:
    """Declare a parameter. Without a rule or a text it has the base class's."""
    return field(default=default, metadata={"rule": rule, "text": text})


def unused(why: str, *, init: Literal[False] = False) -> Any:
    """Declare that a class has no use for a parameter of its base class.

    Its constructor does not take it, and fits read its default.
    """
    return field(init=init, metadata={"unused": why})


@dataclass_transform(kw_only_default=True, field_specifiers=(parameter, unused))
def parameters(cls: type[T]) -> type[T]:
    """Decorate a class of parameters: make its constructor."""
    inherited = getattr(cls, "__dataclass_fields__", {})
    for name, own in list(vars(cls).items()):
        if not isinstance(own, Field) or name not in inherited:
            continue
        given = {key: value for key, value in own.metadata.items() if value is not None}
        of_base = {key: inherited[name].metadata[key] for key in ("rule", "text")}
        default = inherited[name].default if own.default is MISSING else own.default
        setattr(cls, name, field(default=default, init=own.init, metadata={**of_base, **given}))
    return dataclass(kw_only=True, eq=False, repr=False)(cls)


def names_of(group: type, first: str | None = None, last: str | None = None) -> list[str]:
    """Names of the parameters of a class in their order, from the first to the last of these."""
    names = [own.name for own in fields(group)]
    start = 0 if first is None else names.index(first)
    return names[start:] if last is None else names[start : names.index(last) + 1]


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
    """Return a value of a parameter of a class as fits read it."""
    known = group.__dataclass_fields__.get(name)
    if known is None or value is known.default or "rule" not in known.metadata:
        return value  # "rule" is missing in the dataclass of a user
    if value is None:
        return known.default if none_is_default(known) else None
    return known.metadata["rule"].read(value)


def check_value(name: str, value: Any, rule: Rule) -> None:
    """Raise ValueError for what breaks a rule: ``n_estimators=-3: it must be an integer >= 1``."""
    if not rule.holds(value):
        raise ValueError(f"{name}={value!r:.200}: it must be {rule.words}")


def check_parameters(group: type, values: Mapping[str, Any]) -> None:
    """Raise ValueError for the first of these values that breaks the rule of its parameter."""
    for known in fields(group):
        name, rule = known.name, known.metadata.get("rule")  # None: a field of a user's dataclass
        if name not in values or rule is None or values[name] is known.default:
            continue
        check_value(name, values[name], rule)


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


def number(least: float, most: float = math.inf, *, excluded: bool = False) -> Rule:
    """Finite numbers from `least` to `most`; if `excluded`, neither of these."""
    if most == math.inf:
        words = f"a finite number {'>' if excluded else '>='} {least:g}"
    elif excluded:
        words = f"a number between {least:g} and {most:g}, both excluded"
    else:
        words = f"a number from {least:g} to {most:g}"

    def holds(value: Any) -> bool:
        return is_finite(value) and (least < value < most if excluded else least <= value <= most)

    return Rule("float", words, holds)


def optional(rule: Rule, none: str = "None") -> Rule:
    """None, or what a rule is for; `none` may say what None means."""
    return rule._replace(
        words=f"{none} or {rule.words}", holds=lambda value: value is None or rule.holds(value)
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
PROBABILITY = number(0, 1)
