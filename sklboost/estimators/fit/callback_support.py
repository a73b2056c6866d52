"""scikit-learn's callbacks, where the installed version has them.

In: nothing. Out: a base class and a decorator, scikit-learn's own or ones that do nothing. The one
idea: what is there is found by looking for it, not by a version number.
"""

from collections.abc import Callable
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: this scikit-learn has no callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Give the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "detach", "open_context", "with_callbacks"]


def open_context(estimator: Any) -> Any:
    """Begin a fit for scikit-learn's callbacks; None if there are none to be told of it.

    A fit that nobody listens to takes part in the tree of tasks of the pipeline or search around
    it, too, but costs nothing more.
    """
    if not hasattr(estimator, "_init_callback_context"):
        return None
    # how many rounds there will be is known once the arguments of fit are checked
    context = estimator._init_callback_context(max_subtasks=None)
    # should this attribute be gone one day, all fits are told of
    return context if getattr(context, "_callbacks", True) else None


def detach(estimator: Any) -> None:
    """Take from a copy of an estimator what ties it to the fit that is under way.

    scikit-learn keeps it in private attributes; a model saved during the fit would take them, and
    all that callbacks hold, along.
    """
    for name in [name for name in vars(estimator) if name.startswith("_") and "callback" in name]:
        delattr(estimator, name)
