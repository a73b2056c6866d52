"""Helpful errors for parameters that an estimator does not have."""

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, Self

# Parameters of XGBoost that no name here is near to.
_ELSEWHERE = {
    "tree_method": "leave it out, trees are always grown from histograms.",
    "device": "leave it out, there is only the CPU.",
    "feature_types": "did you mean 'categorical_features'?",
}


class UnknownParameterError(TypeError, ValueError):
    """A parameter that the estimator does not have.

    It is a TypeError, which Python's constructors raise, and a ValueError, which scikit-learn's
    ``set_params`` raises.
    """


class ChecksNames:
    """Checks the names of parameters, in the constructor and in `set_params`.

    The constructor's arguments are checked in ``__new__``, which sees them first: ``__init__``
    keeps the explicit signature from which scikit-learn reads the parameters.
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
            Their values, by name.

        Returns
        -------
        estimator
            Itself.

        Raises
        ------
        UnknownParameterError
            If there is no such parameter: a ValueError and a TypeError, which names the nearest.
        """
        self._check_names(params)
        return super().set_params(**params)  # type: ignore[misc]  # of BaseEstimator

    @classmethod
    def _check_names(cls, names: Iterable[str]) -> None:
        known = _arguments(cls.__init__)
        for name in names:
            if name not in known:
                nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
                remedy = _ELSEWHERE.get(name, f"did you mean {nearest!r}?")
                raise UnknownParameterError(
                    f"{cls.__name__} has no parameter {name!r}; {remedy} Its parameters are "
                    f"{', '.join(known)}"
                )


def _arguments(method: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(method).parameters)[1:]


def checks_arguments(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method: a helpful TypeError for an argument that it does not have."""
    known = _arguments(method)

    @functools.wraps(method)
    def checked(self: Any, *arguments: Any, **named: Any) -> Any:
        for name in named:
            if name not in known:
                where = f"{type(self).__name__}.{method.__name__}()"
                remedy = _remedy(name, known, type(self))
                raise TypeError(f"{where} got an unexpected keyword argument {name!r}{remedy}")
        return method(self, *arguments, **named)

    return checked


def _remedy(name: str, known: list[str], cls: Any) -> str:
    """Name the nearest of the arguments of a method and the parameters of its class."""
    near = difflib.get_close_matches(name, known + _arguments(cls.__init__), n=1)
    if not near:
        return ""
    if near[0] in known:
        return f"; did you mean {near[0]!r}?"
    return f": {near[0]!r} is a parameter of the estimator, {cls.__name__}({near[0]}=...)"
