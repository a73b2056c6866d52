"""Docstrings of the estimators, completed when they are imported.

The docstring of an estimator gets its parameters from their fields. A parameter or an attribute of
several docstrings is described once, in :data:`SHARED`, or where the method is first defined; the
others need not mention it.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any, Literal, dataclass_transform

from sklboost.docstrings import (
    ATTRIBUTES,
    PARAMETERS,
    Class,
    arranged,
    describe_methods,
    entries_of,
    entry,
)
from sklboost.estimators.parameters.rules import none_is_default, parameter, unused

# Name of an attribute, in their order, or of a parameter of methods -> type and text.
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
    """Decorate an estimator: complete its docstring by parameters and attributes, and the methods.

    To editors that read the source it is a dataclass without a constructor of its own, so they show
    the constructor of its parameters; jedi looks no further than a decorator.
    """

    def complete(estimator: Class) -> Class:
        if estimator.__doc__ is not None:  # as it is with python -OO
            # compilers from Python 3.13 on take the indentation away
            about, _, own = inspect.cleandoc(estimator.__doc__).partition(ATTRIBUTES)
            names = [name for name in SHARED if name.endswith("_")]
            if getattr(estimator, "_is_forest", False):  # which has one round
                names = [name for name in names if not name.startswith("best_")]
            place = names.index("model_")  # what is its own comes before
            names[place:place] = [name for name in entries_of(own) if name not in names]
            attributes = ATTRIBUTES + arranged(own, names, _SHARED_ENTRIES)
            entries = [_field_entry(own) for own in fields(estimator) if own.init]
            parameters = PARAMETERS + "\n".join(entries)
            estimator.__doc__ = "\n\n".join([about.rstrip(), parameters, attributes]) + "\n"
        return methods_documented(estimator)

    return complete


def methods_documented(cls: Class) -> Class:
    """Decorate a class: complete the docstrings of its methods by the shared entries."""
    return describe_methods(cls, _SHARED_ENTRIES)


_SHARED_ENTRIES = {name: entry(name, *of_name) for name, of_name in SHARED.items()}


@functools.cache  # estimators share most parameters
def _field_entry(field: Field[Any]) -> str:
    assert field.default is not MISSING  # scikit-learn wants a default for all
    quoted = f'"{field.default}"' if isinstance(field.default, str) else repr(field.default)
    default = "optional" if field.default is None else f"default={quoted}"
    kind = field.metadata["rule"].kind + (" or None" if none_is_default(field) else "")
    return entry(field.name, f"{kind}, {default}", field.metadata["text"])
