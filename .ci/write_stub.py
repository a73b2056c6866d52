"""Write the stubs from which type checkers and editors know the parameters of the estimators.

Constructors are made by dataclasses at import; whoever only reads the source would see calls of
``parameter()`` for defaults. Run this after a change of a parameter; a test compares.
"""

import ast
import inspect
import math
import re
from dataclasses import fields
from pathlib import Path

from sklboost.estimators.parameters import distributions, forests, groups, ranking, survival
from sklboost.estimators.parameters.rules import none_is_default

GROUPS = {
    groups: (groups.Parameters, groups.RegressorParameters, groups.ClassifierParameters),
    distributions: (distributions.DistributionParameters,),
    forests: (forests.ForestParameters, forests.ForestClassifierParameters),
    ranking: (ranking.RankerParameters,),
    survival: (survival.SurvivalParameters,),
}
ALL = [group for some in GROUPS.values() for group in some]


def stubs():
    """Return the texts of the stubs, by their paths."""
    return {Path(module.__file__).with_suffix(".pyi"): stub_of(module) for module in GROUPS}


def stub_of(module):
    """Return the text of the stub of a module."""
    source = Path(module.__file__).read_text(encoding="utf-8")
    groups_lines = [line for group in GROUPS[module] for line in ["", *lines_of(group)]]
    body = "\n".join([*groups_lines, ""])
    imports = [
        "from collections.abc import Callable, Collection, Mapping, Sequence",
        f"from typing import Any{', Literal' * ('Literal' in body)}",
        "",
        "import numpy as np",
        "",
        "from sklboost.boosting.callbacks import TrainingCallback",
        *(ast.unparse(one) for one in ast.parse(source).body if is_own_import(one)),
        "from sklboost.objectives.loss import Loss",
    ]
    head = ['"""The parameters of the estimators; made by .ci/write_stub.py."""', ""]
    return "\n".join([*head, *needed(imports, body), body])


def needed(imports, body):
    """Yield the imports of names that a stub has."""
    for line in imports:
        module, is_of_names, names = line.partition(" import ")
        if not is_of_names:
            yield line
            continue
        used = [name for name in names.split(", ") if re.search(rf"\b{name.split()[-1]}\b", body)]
        short = f"{module} import {', '.join(used)}"
        if len(short) > 100:
            yield from (f"{module} import (", *(f"    {name}," for name in used), ")")
        elif used:
            yield short


def is_own_import(statement):
    return isinstance(statement, ast.ImportFrom) and statement.module.startswith("sklboost")


def lines_of(group):
    """Yield the lines of a group: the attributes that are not None in a fit, the constructor."""
    types = annotations_of(group)
    bases = [base.__name__ for base in group.__bases__]
    yield from (f"class {group.__name__}(", *(f"    {base}," for base in bases), "):")
    yield f'    """{group.__doc__}"""'
    if fields(group) == fields(group.__bases__[0]):
        return
    yield ""
    known = {own.name for base in group.__bases__ if base in ALL for own in fields(base)}
    for own in fields(group):
        is_new = none_is_default(own) or own.name in vars(group).get("__annotations__", ())
        if is_new and own.init and own.name not in known:
            yield f"    {own.name}: {types[own.name].removesuffix(' | None')}"
    yield from ("    def __init__(", "        self,", "        *,")
    for own in (own for own in fields(group) if own.init):
        yield f"        {own.name}: {types[own.name]} = {default_of(own)},"
    yield "    ) -> None: ..."


def annotations_of(group):
    """Return the types of the parameters of a group, as the source has them."""
    found = {}
    for base in reversed(group.__mro__[:-1]):
        (definition,) = ast.parse(inspect.getsource(base)).body
        for line in definition.body:
            if isinstance(line, ast.AnnAssign):
                found[line.target.id] = ast.unparse(line.annotation).replace("'", '"')
    return found


def default_of(own):
    if isinstance(own.default, float) and math.isnan(own.default):
        return "np.nan"
    return f'"{own.default}"' if isinstance(own.default, str) else repr(own.default)


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text, encoding="utf-8")
