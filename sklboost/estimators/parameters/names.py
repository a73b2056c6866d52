"""The names under which estimators take parameters, and helpful errors for all others."""

import difflib
import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from numbers import Real
from types import MappingProxyType
from typing import Any, TypeVar

from sklboost.estimators.parameters.foreign_names import (
    ALIASES,
    ALPHA_OF,
    OTHER_ARGUMENTS,
    OTHER_NAMES,
    WITHOUT_EFFECT,
    Ignored,
    are_categories,
)

Function = TypeVar("Function", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type[Any])

# Similarity, from 0 to 1, below which a name is not the misspelling of another.
_NEAR = 0.75


class UnknownParameterError(TypeError, ValueError):
    """A parameter that the estimator does not have, or that is given under two names.

    It is a TypeError, which Python's constructors raise, and a ValueError, which scikit-learn's
    ``set_params`` raises.
    """


def read_params(cls: Any, objective: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `set_params` is given under the names of this class.

    `objective` is the one that the estimator has so far.
    """
    _check_alpha({"objective": objective, **given})
    return read_names(given, _arguments(cls.__init__), cls.__name__, _unused(cls))


def read_names(
    given: Mapping[str, Any],
    known: Collection[str],
    owner: str,
    unused: Mapping[str, Ignored] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return parameters under the names that they have here, and leave out what has no effect.

    `known` are the parameters of the class named `owner`, `unused` the parameters of other
    estimators that it has no use for. UnknownParameterError if there is no such parameter, or if
    one is given under two names.
    """
    read: dict[str, Any] = {}
    spelled: dict[str, str] = {}
    for name, value in given.items():
        own = name if name in known else ALIASES.get(name, name)
        if name == "feature_types" and are_categories(value) is not None:
            own, value = "categorical_features", are_categories(value)
        if own.partition("__")[0] not in known:
            _check_ignored(name, value, known, owner, unused)
        elif own not in read or read[own] is None:
            read[own], spelled[own] = value, name
        elif value is not None:
            raise UnknownParameterError(
                f"{spelled[own]}={read[own]!r} and {name}={value!r}: {owner} has one parameter for "
                f"both; give {own!r} alone"
            )
    return read


def _check_alpha(given: Mapping[str, Any]) -> None:
    """Raise UnknownParameterError for an `alpha` that LightGBM and XGBoost read differently."""
    objective, alpha = given.get("objective"), given.get("alpha")
    if alpha is not None and isinstance(objective, str) and objective in ALPHA_OF:
        raise UnknownParameterError(
            f"alpha={alpha!r} with objective={objective!r}: LightGBM's alpha is "
            f"{ALPHA_OF[objective]!r} here, XGBoost's is 'reg_alpha'; give one of these"
        )


def _check_ignored(
    name: str, value: Any, known: Collection[str], owner: str, unused: Mapping[str, Ignored]
) -> None:
    """Raise UnknownParameterError unless this is a value without effect of a known name."""
    ignored = unused.get(name, WITHOUT_EFFECT.get(name))
    if ignored is None:
        near = _nearest(name, {**dict.fromkeys(WITHOUT_EFFECT), **_spellings([*known, *unused])})
        remedy = "" if near is None else f" did you mean {near!r}?"
        raise UnknownParameterError(
            f"{owner} has no parameter {name!r};{remedy} help({owner}) lists its parameters"
        )
    if not ignored.accepts(value):
        raise UnknownParameterError(
            f"{name}={value!r} is not supported by {owner}: {ignored.remedy}"
        )


def checks_arguments(method: Function) -> Function:
    """Decorate a method: a helpful TypeError for an argument that it does not have.

    None for a parameter of the estimator says nothing: XGBoost's `fit` once had some of them.
    """
    check = argument_check(method)

    @functools.wraps(method)
    def checked(self: Any, *arguments: Any, **named: Any) -> Any:
        if named:
            check(self, named)
        try:
            return method(self, *arguments, **named)
        except TypeError as error:
            where, text = f"{method.__qualname__}()", str(error)
            if not text.startswith(where):
                raise
            own = f"{type(self).__name__}.{method.__name__}()"
            raise TypeError(own + text.removeprefix(where)) from None

    return checked  # type: ignore[return-value]  # the signature is the same


def methods_checked(cls: Class) -> Class:
    """Decorate the methods of a class, also inherited ones, to name unknown arguments."""
    for name in filter(lambda name: not name.startswith("_"), dir(cls)):
        method = inspect.getattr_static(cls, name)
        is_own = inspect.isfunction(method) and method.__module__.startswith("sklboost.")
        if is_own and not _takes_any(method):
            checked = checks_arguments(method)
            checked.__qualname__, checked.__module__ = f"{cls.__name__}.{name}", cls.__module__
            setattr(cls, name, checked)
    return cls


def argument_check(method: Function) -> Callable[[Any, dict[str, Any]], None]:
    """Return the check of a method's named arguments, which may take some of them out."""
    known = _arguments(method)

    def check(self: Any, named: dict[str, Any]) -> None:
        for name in [name for name in named if name not in known]:
            if named[name] is None and name in _arguments(type(self).__init__):
                del named[name]
            else:
                where = f"{type(self).__name__}.{method.__name__}()"
                remedy = _remedy(name, known, type(self))
                raise TypeError(f"{where} got an unexpected keyword argument {name!r}{remedy}")

    return check


def _remedy(name: str, known: list[str], cls: Any) -> str:
    """Name the nearest of the arguments of a method and the parameters of its class."""
    others = {other: own for other, own in OTHER_ARGUMENTS.items() if own in known}
    arguments = {**dict(zip(known, known, strict=True)), **others}
    near = _nearest(name, {**_spellings(_arguments(cls.__init__)), **arguments})
    if near is None:
        return ""
    if near in known:
        return f"; did you mean {near!r}?"
    return f": {near!r} is a parameter of the estimator, {cls.__name__}({near}=...)"


def _spellings(known: Collection[str]) -> dict[str, str]:
    """Return these parameters by all names that they have anywhere."""
    elsewhere = {**OTHER_NAMES, **ALIASES}
    return {
        **{name: own for name, own in elsewhere.items() if own in known},
        **{name: name for name in known},
    }


def _nearest(name: str, meant: Mapping[str, str | None]) -> str | None:
    """Return what a name means or may be a misspelling of; None if it is near to nothing."""
    near = [name] if name in meant else difflib.get_close_matches(name.lower(), meant, 1, _NEAR)
    return meant[near[0]] or near[0] if near else None


# --- constructors


def _unused(group: type) -> dict[str, Ignored]:
    """Return the parameters that a class has no use for: their defaults, or None, change nothing.

    A user's class need be no dataclass.
    """
    return {
        name: Ignored(functools.partial(_is_idle, known.default), known.metadata["unused"])
        for name, known in getattr(group, "__dataclass_fields__", {}).items()
        if "unused" in known.metadata
    }


def _is_idle(default: Any, value: Any) -> bool:
    if isinstance(default, float) and isinstance(value, Real):  # an equal number of any type
        return bool(value == default)
    return value is None or (type(value) is type(default) and bool(value == default))


def _arguments(method: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(method).parameters)[1:]


def wrap_constructor(estimator: type) -> None:
    """Make the constructor of a class read the names of its parameters, or show them all.

    It keeps the signature, from which scikit-learn reads the parameters.
    """
    owner = next(base for base in estimator.__mro__ if "__init__" in vars(base))
    constructor = vars(owner)["__init__"]
    if "__dataclass_fields__" in vars(owner):  # it was made of the parameters
        estimator.__init__ = _reading_names(constructor, owner)  # type: ignore[misc]
        # Python's errors name a function so, such as for a parameter given twice by a subclass
        estimator.__init__.__qualname__ = f"{estimator.__qualname__}.__init__"  # type: ignore[misc]
        estimator.__init__.__module__ = estimator.__module__  # type: ignore[misc]
    elif _takes_any(constructor):
        estimator.__init__ = _passing_on(constructor, estimator)  # type: ignore[misc]


def _reading_names(constructor: Callable[..., None], group: type) -> Callable[..., None]:
    """Wrap the constructor of a dataclass: other names for its arguments, and helpful errors."""
    parameters = inspect.signature(constructor).parameters.values()
    # help() shows names and defaults; types are in the docstring and, for type checkers, the source
    signature = inspect.Signature([own.replace(annotation=own.empty) for own in parameters])
    known, unused = list(signature.parameters)[1:], _unused(group)

    @functools.wraps(constructor)
    def __init__(self: Any, *arguments: Any, **parameters: Any) -> None:  # noqa: N807
        owner = type(self).__name__
        if arguments:
            raise TypeError(
                f"{owner} takes no positional arguments: name them, {owner}(n_estimators=100)"
            )
        _check_alpha(parameters)
        own = read_names(parameters, known, owner, unused)
        constructor(self, **own)
        self._note_given(own)

    # scikit-learn asks for it whenever it reads parameters, and making it takes 0.4 ms
    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__


def _takes_any(constructor: Callable[..., None]) -> bool:
    parameters = inspect.signature(constructor).parameters.values()
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)


def _passing_on(constructor: Callable[..., None], cls: type) -> Callable[..., None]:
    """Wrap a constructor with ``**kwargs``: its signature names the parameters of the bases, too.

    So scikit-learn finds all of them, to copy the estimator and to set them.
    """

    @functools.wraps(constructor)
    def __init__(self: Any, *arguments: Any, **parameters: Any) -> None:  # noqa: N807
        constructor(self, *arguments, **parameters)

    named: dict[str, inspect.Parameter] = {}
    for base in cls.__mro__:
        if "__init__" not in vars(base):
            continue
        of_base = inspect.signature(base.__init__).parameters  # type: ignore[misc]
        for name, parameter in of_base.items():
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                kind = parameter.KEYWORD_ONLY if named else parameter.kind
                named.setdefault(name, parameter.replace(kind=kind))
        if not _takes_any(base.__init__):  # type: ignore[misc]
            break
    __init__.__signature__ = inspect.Signature(list(named.values()))  # type: ignore[attr-defined]
    return __init__
