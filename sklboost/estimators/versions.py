"""The version of the package in pickled estimators, and a warning where another one reads them."""

import sys
from typing import Any

import sklearn.exceptions

from sklboost.estimators.input.user_warnings import warn_user

_VERSION = "_sklboost_version"


class InconsistentVersionWarning(sklearn.exceptions.InconsistentVersionWarning):
    """Warning about a pickle of another version of the package."""

    def __str__(self) -> str:
        return (
            f"{self.estimator_name} was pickled by sklboost {self.original_sklearn_version} and is "
            f"unpickled by {self.current_sklearn_version}: this may fail, or give other results. "
            "Use the same version, or fit again"
        )


class RemembersVersion:
    """Pickles estimators with the version of the package, and compares it when they are loaded."""

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {**state, _VERSION: _current_version()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        others = dict(state)
        original = others.pop(_VERSION, "before 0.1.0")
        if original != _current_version():
            warn_user(
                InconsistentVersionWarning(
                    estimator_name=type(self).__name__,
                    current_sklearn_version=_current_version(),
                    original_sklearn_version=original,
                )
            )
        super().__setstate__(others)  # type: ignore[misc]


def _current_version() -> str:
    # not by an import: the package imports this module
    version: str = sys.modules["sklboost"].__version__
    return version
