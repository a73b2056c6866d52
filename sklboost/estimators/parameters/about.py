"""What is known of each parameter beside its name, type and default: its rule and its text.

A parameter is a field of a dataclass in one of the files beside this; the estimators inherit from
these classes, and so have a constructor with all of them. Rule and text are the field's metadata:
from them come the checks of ``fit`` and the documentation.
"""

import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import MISSING, Field, field, fields
from typing import Any

from sklboost.estimators.parameters.attributes import ATTRIBUTES
from sklboost.estimators.parameters.rules import Rule


def about(rule: Rule, text: str) -> Mapping[str, Any]:
    """Give the metadata of a parameter's field."""
    return {"rule": rule, "text": text}


def redeclared(group: type, name: str, **changes: Any) -> Any:
    """Declare a parameter of `group` once more, for a subclass.

    Its `default`, `rule` and `text` are those of the group, unless given.
    """
    known = group.__dataclass_fields__[name]  # type: ignore[attr-defined]
    own = {"default": known.default, **known.metadata, **changes}
    return field(default=own["default"], metadata=about(own["rule"], own["text"]))


def names_of(group: type) -> list[str]:
    """Give the names of the parameters of a dataclass."""
    return [own.name for own in fields(group)]


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
    for own in fields(group):
        rule = own.metadata["rule"]
        if own.name in values and not rule.holds(values[own.name]):
            raise ValueError(f"{own.name}={values[own.name]!r}: it must be {rule.words}")


def documented(estimator: type) -> type:
    """Decorate an estimator: complete its docstring.

    Its parameters come before its attributes; of these, those that are a mere name get the type and
    the text of :data:`ATTRIBUTES`.
    """
    if estimator.__doc__ is None:  # python -OO
        return estimator
    # compilers from Python 3.13 on take the indentation away
    summary, rest = inspect.cleandoc(estimator.__doc__).split("Attributes\n", maxsplit=1)
    parameters = [
        _entry(own.name, f"{own.metadata['rule'].kind}, {_default(own)}", own.metadata["text"])
        for own in fields(estimator)
    ]
    attributes = [
        _entry(line, *ATTRIBUTES[line]) if line in ATTRIBUTES else line
        for line in rest.splitlines()
    ]
    lines = ["Parameters", "----------", *parameters, "", "Attributes", *attributes]
    estimator.__doc__ = summary + "\n".join([*lines, ""])
    return estimator


def _entry(name: str, kind: str, text: str) -> str:
    return f"{name} : {kind}\n" + textwrap.indent(inspect.cleandoc(text), "    ")


def _default(parameter: Field) -> str:
    assert parameter.default is not MISSING  # scikit-learn wants a default for all
    if parameter.default is None:
        return "optional"
    quoted = isinstance(parameter.default, str)
    return f'default="{parameter.default}"' if quoted else f"default={parameter.default!r}"
