"""The rules that parameters must keep, checked before any work.

One table for both estimators. An error names the value, the rule and, for a misspelt name, the
nearest parameter.
"""

import difflib
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np

from sklboost.boosting.callbacks import TrainingCallback


class Rule(NamedTuple):
    """What a value must be, in words and as a test."""

    words: str
    holds: Callable[[Any], bool]


def _integer(least: int, most: float = math.inf) -> Rule:
    words = f">= {least}" if most == math.inf else f"from {least} to {most}"
    return Rule(
        f"an integer {words}",
        lambda value: _is_integer(value) and least <= value <= most,
    )


def _number(least: float, *, excluded: bool = False) -> Rule:
    return Rule(
        f"a finite number {'>' if excluded else '>='} {least:g}",
        lambda value: _is_finite(value) and (value > least if excluded else value >= least),
    )


def _fraction() -> Rule:
    return Rule(
        "a number > 0 and <= 1",
        lambda value: _is_finite(value) and 0 < value <= 1,
    )


def _one_of(*names: str) -> Rule:
    return Rule("one of " + ", ".join(map(repr, names)), lambda value: value in names)


def _is_integer(value: Any) -> bool:
    # a bool is an int to Python, but max_depth=True is a mistake
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def _is_finite(value: Any) -> bool:
    # np.bool_ is no Real, bool is
    return isinstance(value, int | float | Real) and not isinstance(value, bool) and isfinite(value)


def _is_class_weight(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(_is_finite(weight) and weight > 0 for weight in value.values())
    return value is None or (isinstance(value, str) and value == "balanced")


_FLAG = Rule("True or False", lambda value: isinstance(value, bool | np.bool_))


def _are_callbacks(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(callback, TrainingCallback) for callback in value
    )


RULES: Mapping[str, Rule] = {
    "n_estimators": _integer(1),
    "learning_rate": _number(0, excluded=True),
    "max_depth": _integer(0),
    "max_leaves": Rule(
        "0 (no limit) or an integer >= 2",
        lambda value: _is_integer(value) and value >= 0 and value != 1,
    ),
    "grow_policy": _one_of("depthwise", "lossguide"),
    "max_bin": _integer(2, 65_535),
    "reg_lambda": _number(0),
    "reg_alpha": _number(0),
    "gamma": _number(0),
    "min_child_weight": _number(0),
    "max_delta_step": _number(0),
    "pruning": _one_of("post", "full", "pre"),
    "subsample": _fraction(),
    "sampling_method": _one_of("uniform", "gradient_based"),
    "colsample_bytree": _fraction(),
    "colsample_bylevel": _fraction(),
    "colsample_bynode": _fraction(),
    "base_score": Rule("None or a finite number", lambda value: value is None or _is_finite(value)),
    "class_weight": Rule(
        "None, 'balanced' or a dict that gives labels a finite number > 0 (to leave a class out, "
        "leave its rows out)",
        _is_class_weight,
    ),
    "scale_pos_weight": _number(0, excluded=True),
    "calibrated_prior": _FLAG,
    "early_stopping_rounds": Rule(
        "None (no early stopping) or an integer >= 1",
        lambda value: value is None or (_is_integer(value) and value >= 1),
    ),
    "validation_fraction": Rule(
        "a number between 0 and 1, both excluded",
        lambda value: _is_finite(value) and 0 < value < 1,
    ),
    "validation_split": _one_of("random", "time"),
    "refit": _FLAG,
    "max_time": Rule(
        "None (no limit) or a number of seconds > 0",
        lambda value: value is None or (_is_finite(value) and value > 0),
    ),
    "warm_start": _FLAG,
    "n_jobs": Rule(
        "None, a positive integer, or a negative one (-1: all processors)",
        lambda value: value is None or (_is_integer(value) and value != 0),
    ),
    "callbacks": Rule(
        "None or a list of objects (no classes) that inherit from sklboost.TrainingCallback",
        lambda value: value is None or _are_callbacks(value),
    ),
    "verbose": Rule(
        "True, False or an integer >= 0",
        lambda value: isinstance(value, bool) or (_is_integer(value) and value >= 0),
    ),
}


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise ValueError for the first of these parameters that breaks its rule.

    Raises
    ------
    ValueError
        Such as ``n_estimators=-3: it must be an integer >= 1``.
    """
    for name, rule in RULES.items():
        if name in parameters and not rule.holds(parameters[name]):
            raise ValueError(f"{name}={parameters[name]!r}: it must be {rule.words}")


class UnknownParameterError(TypeError, ValueError):
    """A parameter that the estimator does not have.

    Python's constructors raise TypeError for it, scikit-learn's ``set_params`` ValueError: whoever
    catches either catches this.
    """


def check_iteration_range(iteration_range: Any, n_rounds: int) -> None:
    """Raise ValueError unless it is a pair of round numbers of a model with so many rounds."""
    is_pair = isinstance(iteration_range, tuple | list) and len(iteration_range) == 2
    if is_pair and all(map(_is_integer, iteration_range)):
        first, stop = iteration_range
        if 0 <= first < (stop or n_rounds) <= n_rounds:
            return
    raise ValueError(
        f"iteration_range={iteration_range!r}: it must be the first round and the one after the "
        f"last, 0 <= first < last <= {n_rounds}; a last of 0 stands for {n_rounds}, all rounds"
    )


class ChecksNames:
    """Gives an estimator a helpful error for a misspelt parameter.

    The constructor's arguments are checked in ``__new__``, which sees them first: ``__init__``
    keeps the explicit signature that scikit-learn reads the parameters from.
    """

    def __new__(cls, *arguments: Any, **parameters: Any) -> Self:
        """Raise UnknownParameterError for an unknown parameter, naming the nearest known one."""
        cls._check_names(parameters)
        return super().__new__(cls)

    def set_params(self, **params: Any) -> Self:
        """Set parameters.

        Parameters
        ----------
        **params : dict
            Names and values.

        Returns
        -------
        estimator
            Itself.

        Raises
        ------
        UnknownParameterError
            A ValueError and a TypeError, which names the nearest parameter.
        """
        self._check_names(params)
        return super().set_params(**params)  # type: ignore[misc]  # of BaseEstimator

    @classmethod
    def _check_names(cls, names: Iterable[str]) -> None:
        known = list(inspect.signature(cls.__init__).parameters)[1:]
        for name in names:
            if name not in known:
                nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
                raise UnknownParameterError(
                    f"{cls.__name__} has no parameter {name!r}; did you mean {nearest!r}? "
                    f"Its parameters are {', '.join(known)}"
                )
