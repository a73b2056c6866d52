"""The decorators of methods that take a Dask collection as `X`.

What they do with one is in ``dask_collections.py``, which is imported when the first one comes.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from sklboost.data.frames import dask_kind
from sklboost.estimators.parameters.names import argument_check

Function = TypeVar("Function", bound=Callable[..., Any])


def by_partitions(method: Function) -> Function:
    """Decorate a method that returns an array with an entry for each row of `X`.

    Of a Dask collection it returns a lazy one, which has the rows of each part where that part is.
    Arguments that the method does not have are a TypeError, as :func:`checks_arguments` raises it.
    """
    check = argument_check(method)  # without a call of its own: one row is predicted in 0.1 ms

    @functools.wraps(method)
    def called(self: Any, X: Any, *arguments: Any, **named: Any) -> Any:
        if named:
            check(self, named)
        if type(X) is not np.ndarray and dask_kind(X):
            from sklboost.estimators.predict.dask_collections import lazily

            return lazily(called, self, X, *arguments, **named)
        return method(self, X, *arguments, **named)

    return called  # type: ignore[return-value]  # the signature is the same


def from_raw_scores(score: Function) -> Function:
    """Decorate a method ``score(X, y, ...)`` that needs no more of `X` than its raw scores.

    Of a Dask collection these are computed part by part; targets and weights come to the process
    that calls, and features do not.
    """

    @functools.wraps(score)
    def called(self: Any, X: Any, *arguments: Any, **named: Any) -> Any:
        if not dask_kind(X):
            return score(self, X, *arguments, **named)
        from sklboost.estimators.predict.dask_collections import computed

        X, *values = computed(self._raw_rows(X), *arguments, *named.values())
        named = dict(zip(named, values[len(arguments) :], strict=True))
        return score(self, X, *values[: len(arguments)], **named)

    return called  # type: ignore[return-value]
