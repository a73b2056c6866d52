"""Helpful errors for misspelt parameters."""

import difflib
import inspect
from collections.abc import Iterable
from typing import Any, Self


class UnknownParameterError(TypeError, ValueError):
    """A parameter that the estimator does not have.

    Python's constructors raise TypeError for it, scikit-learn's ``set_params`` ValueError: whoever
    catches either catches this.
    """


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
