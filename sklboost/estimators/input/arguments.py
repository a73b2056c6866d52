"""The arguments of `fit` as users give them, and validation data of either form brought to one.

``X_val, y_val`` and XGBoost's ``eval_set`` become :class:`GivenSet` records, named
``validation_0``, ``validation_1``, ... as in XGBoost.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sklboost.data.frames import dask_kind


class GivenSet(NamedTuple):
    """One set of validation rows, not checked yet.

    Attributes
    ----------
    name : str
        In `evals_result_`.
    argument : str
        Of fit that `X` is from, for errors.
    X, y : array-like
    sample_weight, base_margin : array-like or None
    """

    name: str
    argument: str
    X: Any
    y: Any
    sample_weight: Any
    base_margin: Any


def computed(given: Any) -> Any:
    """Return what was given, with the values of each Dask collection in it, lists of pairs too."""
    if dask_kind(given):
        return given.compute()
    if isinstance(given, list | tuple) and any(map(_holds_collection, given)):
        return [computed(part) for part in given]
    return given


def _holds_collection(given: Any) -> bool:
    is_pair = isinstance(given, list | tuple) and len(given) == 2
    return dask_kind(given) != "" or (is_pair and any(map(dask_kind, given)))


class FitArguments(NamedTuple):
    """The arguments of fit beside X and y, as they were given."""

    sample_weight: Any = None
    X_val: Any = None
    y_val: Any = None
    sample_weight_val: Any = None
    base_margin_val: Any = None
    eval_set: Any = None
    sample_weight_eval_set: Any = None
    base_margin_eval_set: Any = None
    groups: Any = None
    base_margin: Any = None
    init_model: Any = None
    verbose: Any = None

    def computed(self) -> "FitArguments":
        """Return the arguments with the values of Dask collections."""
        return FitArguments(*map(computed, self))


def given_sets(given: FitArguments) -> list[GivenSet]:
    """Return the validation sets, none if none were given.

    Raises
    ------
    ValueError
        If both forms are given, or only half of one.
    TypeError
        If `eval_set` is no list of pairs.
    """
    if given.X_val is not None and given.eval_set is not None:
        raise ValueError("both X_val and eval_set are given: pass validation data in one of them")
    if given.eval_set is not None:
        return _of_eval_set(given)
    for name in ("sample_weight_eval_set", "base_margin_eval_set"):
        if getattr(given, name) is not None:
            raise ValueError(f"{name} is given without eval_set")
    if given.X_val is None:
        for name in ("y_val", "sample_weight_val", "base_margin_val"):
            if getattr(given, name) is not None:
                raise ValueError(f"{name} is given without X_val")
        return []
    if given.y_val is None:
        raise ValueError("X_val is given without y_val")
    return [
        GivenSet(
            name="validation_0",
            argument="X_val",
            X=given.X_val,
            y=given.y_val,
            sample_weight=given.sample_weight_val,
            base_margin=given.base_margin_val,
        )
    ]


def _of_eval_set(given: FitArguments) -> list[GivenSet]:
    pairs = given.eval_set
    if not isinstance(pairs, list | tuple):
        raise TypeError(
            f"eval_set is a {type(pairs).__name__}: it must be a list of pairs, "
            "eval_set=[(X_val, y_val)]"
        )
    for name in ("sample_weight_val", "base_margin_val", "y_val"):
        if getattr(given, name) is not None:
            raise ValueError(f"{name} goes with X_val; for eval_set there is {_TWINS[name]}")
    weights = _one_each(given.sample_weight_eval_set, len(pairs), "sample_weight_eval_set")
    margins = _one_each(given.base_margin_eval_set, len(pairs), "base_margin_eval_set")
    sets = []
    for index, pair in enumerate(pairs):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise TypeError(
                f"eval_set[{index}] must be a pair (X, y), not a {type(pair).__name__}: "
                "eval_set=[(X_val, y_val)]"
            )
        X, y = pair
        name, argument = f"validation_{index}", f"eval_set[{index}]"
        sets.append(GivenSet(name, argument, X, y, weights[index], margins[index]))
    return sets


_TWINS = {
    "sample_weight_val": "sample_weight_eval_set",
    "base_margin_val": "base_margin_eval_set",
    "y_val": "the pair (X, y) itself",
}


def _one_each(given: Any, n_sets: int, name: str) -> Sequence[Any]:
    if given is None:
        return [None] * n_sets
    if not isinstance(given, list | tuple) or len(given) != n_sets:
        raise ValueError(
            f"{name} must be a list with one entry (or None) for each of the {n_sets} pairs of "
            "eval_set"
        )
    return given
