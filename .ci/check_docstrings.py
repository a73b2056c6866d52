"""Validate the docstrings of the public API with numpydoc.

``numpydoc lint`` reads files, and so cannot see which parameters and methods a class inherits. This
imports the package and looks at what a user sees. The checks are those of
``[tool.numpydoc_validation]`` in pyproject.toml.
"""

import inspect
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from numpydoc.validate import ERROR_MSGS, validate

import sklboost.displays
import sklboost.onnx
import sklboost.shap

ROOT = Path(__file__).parents[1]


def active_checks() -> set[str]:
    """Read which of numpydoc's checks are on: "all" and those to leave out, or those to run."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = set(config["tool"]["numpydoc_validation"]["checks"])
    return set(ERROR_MSGS) - named if "all" in named else named


def public_objects() -> Iterator[str]:
    """Name what the package exports, and the public methods and properties it gives its classes."""
    for module in (sklboost, sklboost.displays, sklboost.onnx, sklboost.shap):
        for name in module.__all__:
            full_name = f"{module.__name__}.{name}"
            yield full_name
            thing = getattr(module, name)
            if inspect.isclass(thing):
                yield from (f"{full_name}.{member}" for member in own_members(thing))


def own_members(cls: type) -> set[str]:
    """Name the public members that come from this package, not from scikit-learn's base classes.

    Without those that override a method and leave its description as it is.
    """
    members: dict[str, object] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("sklboost."):
            members.update(vars(base))
    return {
        name
        for name, member in members.items()
        if not name.startswith("_")
        and (callable(member) or isinstance(member, property))
        and (member.__doc__ or not inspect.getdoc(member))
    }


def main() -> int:
    checks = active_checks()
    names = sorted(public_objects())
    complaints = [
        f"{name}: {code} {message}"
        for name in names
        for code, message in validate(name)["errors"]
        if code in checks
    ]
    print("\n".join(complaints) or f"The docstrings of {len(names)} public objects are complete.")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
