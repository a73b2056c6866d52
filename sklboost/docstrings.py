"""Docstrings in numpydoc that say once what several have in common.

A docstring has its own parameters; those that are described elsewhere come from there, in the order
of the signature, when the module is imported.
"""

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type[Any])
Function = TypeVar("Function", bound=Callable[..., Any])
PARAMETERS, ATTRIBUTES = "Parameters\n----------\n", "Attributes\n----------\n"
_HEADING = re.compile(r"^\w[\w ]*\n---+$", re.MULTILINE)


def described_like(other: Any) -> Callable[[Function], Function]:
    """Decorate a function: its docstring has parameters of the same names from another one's."""

    def describe(function: Function) -> Function:
        if function.__doc__ is not None:  # as it is with python -OO
            shared = entries_of(divided(inspect.cleandoc(other.__doc__))[1])
            names = inspect.signature(function).parameters
            function.__doc__ = completed(function.__doc__, names, shared)
        return function

    return describe


def describe_methods(cls: Class, shared: Mapping[str, str]) -> Class:
    """Complete the docstrings of the public methods of a class by entries of parameters."""
    ours = [base for base in cls.__mro__[1:] if base.__module__.startswith("sklboost.")]
    for name, method in vars(cls).items():
        is_public = inspect.isfunction(method) and not name.startswith("_")
        if is_public and method.__doc__ is not None:
            overridden = next((vars(base)[name] for base in ours if name in vars(base)), None)
            inherited = inspect.cleandoc(getattr(overridden, "__doc__", None) or "")
            names = inspect.signature(method).parameters
            method.__doc__ = completed(method.__doc__, names, shared, inherited)
    return cls


def completed(
    docstring: str, names: Iterable[str], shared: Mapping[str, str], overridden: str = ""
) -> str:
    """Return a docstring whose section of parameters has those names that it does not mention, too.

    Their entries are those of the overridden docstring, or the shared ones. Of what it gives
    further lines the shared entry comes first. Without a section of its own behind the parameters
    it has all those of the overridden one.
    """
    about, section, others = divided(inspect.cleandoc(docstring))
    _, inherited, rest = divided(overridden)
    parameters = arranged(section, names, {**shared, **entries_of(inherited)})
    parts = [about, PARAMETERS + parameters if parameters else "", others or rest]
    text = "\n\n".join(filter(None, parts))
    return f"{text}\n" if "\n" in text else text


def divided(docstring: str) -> tuple[str, str, str]:
    """Return what comes before the parameters, their entries, and the sections behind them."""
    first = _HEADING.search(docstring)
    about, sections = docstring, ""
    if first is not None:
        about, sections = docstring[: first.start()], docstring[first.start() :]
    entries = ""
    if sections.startswith(PARAMETERS):
        entries, _, sections = sections.removeprefix(PARAMETERS).partition("\n\n")
    return about.rstrip(), entries.rstrip(), sections.rstrip()


def entries_of(section: str) -> dict[str, str]:
    """Return the entries of a section by their names; one may be of several."""
    entries = re.split(r"\n(?=\S)", section.rstrip()) if section else []
    return {
        name.strip("* "): entry
        for entry in entries
        for name in re.split(" : |\n", entry, maxsplit=1)[0].split(",")
    }


def arranged(section: str, names: Iterable[str], known: Mapping[str, str]) -> str:
    """Return the entries of these names in their order: a section's own, or known ones."""
    own = entries_of(section)
    # of a name alone the lines below it are what it adds
    whole = {
        name: known[name] + entry.removeprefix(name)
        for name, entry in own.items()
        if name in known and entry.partition("\n")[0] == name
    }
    found = {**known, **own, **whole}
    return "\n".join(dict.fromkeys(found[name] for name in names if name in found))


def entry(name: str, kind: str, text: str) -> str:
    """Return the entry of a parameter or an attribute."""
    return f"{name} : {kind}\n" + textwrap.indent(inspect.cleandoc(text), "    ")
