"""Docstrings of the estimators, completed when they are imported.

The docstring of an estimator gets its parameters from their fields. A parameter or an attribute of
several docstrings is described once, in :data:`SHARED`, or where the method is first defined; the
others have its name alone, on a line of its own.
"""

import functools
import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any, Literal, TypeVar, dataclass_transform

from sklboost.estimators.parameters.rules import none_is_default, parameter, unused

Class = TypeVar("Class", bound=type[Any])
# An entry of a section: a line that begins with a name, and indented ones.
_ENTRIES = re.compile(r"^(\w+)\b.*(?:\n .*)+", re.MULTILINE)

# Name of an attribute, or of a parameter of methods -> type and text.
SHARED = {
    "n_features_in_": ("int", "Number of features seen during `fit`."),
    "feature_names_in_": (
        "ndarray of str, shape (n_features,)",
        "Names of the features seen during `fit`. Only if all of them are strings.",
    ),
    "categories_": (
        "dict of str or int to ndarray",
        "Categories of each categorical feature, by its name or number. Only if there are any.",
    ),
    "model_": ("Model", "The trees, as :class:`sklboost.engine.model.Model`."),
    "n_estimators_": (
        "int",
        """
        Number of rounds of the model: fewer than `n_estimators` if training stopped early, more if
        it continued another model.
        """,
    ),
    "stop_reason_": (
        "str",
        """
        Why training ended: ``"completed"``, ``"early_stopping"`` (also by a callback),
        ``"max_time"`` or ``"interrupted"`` (Ctrl-C).
        """,
    ),
    "best_iteration_": (
        "int",
        "The best round, from 0, as in XGBoost; the last of the model. Only with early stopping.",
    ),
    "best_score_": ("float", "The metric at that round. Only with early stopping."),
    "evals_result_": (
        "dict",
        """
        Metrics after each round, such as ``{"validation_0": {"logloss": [0.61, 0.55]}}``. With
        `init_model` after each new one.
        """,
    ),
    "fit_report_": (
        "FitReport",
        "Time by phase, rows, bins, trees, leaves, pruned splits, constant features, threads.",
    ),
    "chosen_params_": (
        "ChosenParams",
        """
        Values of parameters by name, a dict; printed, with reasons. Only with `preset`. The same
        model is fitted with ``set_params(**chosen_params_, preset=None)``.
        """,
    ),
    "X": ("array-like of shape (n_samples, n_features)", "Rows, in any form that `fit` takes."),
    "base_margin": (
        "array-like of shape (n_samples,) or (n_samples, n_outputs), optional",
        "Raw scores to start from, in place of the scores that the training started from.",
    ),
    "iteration_range": (
        "tuple of int, optional",
        """
        Rounds to use: the first and the one after the last, ``(0, k)`` for the first k rounds;
        ``(0, 0)``: all.
        """,
    ),
    "output_margin": (
        "bool, default=False",
        """
        Return raw scores instead, as the trees add up to them: log-odds, logarithms, or a score per
        class; float64 of shape (n_samples,) or (n_samples, n_outputs). Rankers and survival models
        predict these in any case.
        """,
    ),
    "validate_features": (
        "bool, default=True",
        """
        Whether the columns of a frame are matched by name. False: they are in the order of the fit,
        whatever their names.
        """,
    ),
    "pred_contribs": (
        "bool, default=False",
        """
        Return what each feature adds to the raw score instead (:meth:`shap_values`), the mean raw
        score in the last column.
        """,
    ),
    "pred_interactions": (
        "bool, default=False",
        """
        Return what each pair of features adds instead (:meth:`shap_interaction_values`), the mean
        raw score in the last row and column.
        """,
    ),
    "X_background": (
        "array-like of shape (n_backgrounds, n_features), optional",
        "Rows to compare with, often a hundred; the time grows with their number.",
    ),
    "sample_weight": ("array-like of shape (n_samples,), optional", "Weights of the rows."),
}


@dataclass_transform(kw_only_default=True, field_specifiers=(parameter, unused))
def documented(*, init: Literal[False]) -> Callable[[Class], Class]:
    """Decorate an estimator: add its parameters to its docstring, and complete the methods.

    To editors that read the source it is a dataclass without a constructor of its own, so they show
    the constructor of its parameters; jedi looks no further than a decorator.
    """

    def complete(estimator: Class) -> Class:
        if estimator.__doc__ is not None:  # as it is with python -OO
            before, after = _completed(estimator.__doc__).split("Attributes\n", maxsplit=1)
            entries = [_field_entry(own) for own in fields(estimator) if own.init]
            parameters = "\n".join(["Parameters", "----------", *entries, ""])
            estimator.__doc__ = f"{before}{parameters}\nAttributes\n{after}"
        return methods_documented(estimator)

    return complete


def methods_documented(cls: Class) -> Class:
    """Decorate a class: complete the docstrings of its methods."""
    ours = [base for base in cls.__mro__[1:] if base.__module__.startswith("sklboost.")]
    for name, method in vars(cls).items():
        if inspect.isfunction(method) and method.__doc__ is not None:
            overridden = next((vars(base)[name] for base in ours if name in vars(base)), None)
            method.__doc__ = _completed(method.__doc__, getattr(overridden, "__doc__", None) or "")
    return cls


def _completed(docstring: str, overridden: str = "") -> str:
    """Replace lines that are a name alone by the entry of the overridden docstring, or the shared.

    Of a name with lines of its own below it the shared entry comes first.
    """
    # compilers from Python 3.13 on take the indentation away
    lines = inspect.cleandoc(docstring).splitlines()
    inherited = {match[1]: match[0] for match in _ENTRIES.finditer(inspect.cleandoc(overridden))}
    entries = list(lines)
    for at, line in enumerate(lines):
        if line in inherited and not "".join(lines[at + 1 : at + 2]).startswith(" "):
            entries[at] = inherited[line]
        elif line in SHARED:
            entries[at] = _entry(line, *SHARED[line])
    return "\n".join([*entries, ""] if len(lines) > 1 else lines)


def _entry(name: str, kind: str, text: str) -> str:
    return f"{name} : {kind}\n" + textwrap.indent(inspect.cleandoc(text), "    ")


@functools.cache  # estimators share most parameters
def _field_entry(field: Field[Any]) -> str:
    assert field.default is not MISSING  # scikit-learn wants a default for all
    quoted = f'"{field.default}"' if isinstance(field.default, str) else repr(field.default)
    default = "optional" if field.default is None else f"default={quoted}"
    kind = field.metadata["rule"].kind + (" or None" if none_is_default(field) else "")
    return _entry(field.name, f"{kind}, {default}", field.metadata["text"])
