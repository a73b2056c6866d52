"""``check_loss``: a look at the derivatives of a loss before training uses them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import check_array

from sklboost.estimators.input.rows import row_values
from sklboost.estimators.input.user_warnings import warn_user
from sklboost.estimators.parameters.boosters import LOSS_DEFAULTS
from sklboost.objectives.custom import FunctionLoss, compare_derivatives, values_by_rows
from sklboost.objectives.loss import Loss, by_rows
from sklboost.objectives.registry import find_objective, make_loss


def check_loss(
    loss: Any,
    y: Any,
    raw_score: Any = None,
    *,
    value: Callable[..., Any] | None = None,
    n_outputs: int | None = None,
    tolerance: float = 1e-4,
    **parameters: Any,
) -> None:
    """Compare the gradient and the hessian of a loss with finite differences.

    Parameters
    ----------
    loss : str, callable or Loss
        What `objective` may be.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Targets, or numbers of classes, 0 to ``n_classes - 1``.
    raw_score : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
        Where to compare. None: random numbers, the same ones at each call, around the targets, or
        around where training starts if raw scores are no predictions. At a kink there is nothing
        to compare.
    value : callable, optional
        ``value(y_true, y_pred)`` gives the loss of each row, shape (n_samples,). A function given
        as `loss` has none otherwise, so that its gradient cannot be compared with anything.
    n_outputs : int, optional
        Raw scores per row of a function, for more than two classes their number. None: as many as
        `raw_score` has, or `y`.
    tolerance : float, default=1e-4
        Largest difference let pass, in parts of the derivative, or of the root of their mean square
        over the rows if that is larger.
    **parameters : object
        Those of the estimators that the loss depends on, such as ``quantile_alpha``.

    Raises
    ------
    AssertionError
        If a derivative is off. The text has the row that is off most, and both numbers.
    ValueError
        If a derivative is no finite number, or a hessian negative, or arguments do not fit.

    Warns
    -----
    UserWarning
        If the loss has no value: only its hessian is compared then, with its gradient.

    See Also
    --------
    Loss : What a loss is.

    Notes
    -----
    The hessian may be larger than the second derivative where the loss says so
    (``hessian_is_bound``): for the absolute error, where that is 0, and for softmax.

    Examples
    --------
    >>> import numpy as np
    >>> from sklboost import check_loss
    >>> check_loss("reg:squarederror", y=[1.0, 2.0, 3.0])
    >>> def turned_round(y_true, y_pred):
    ...     return y_true - y_pred, np.ones_like(y_pred)
    >>> def half_the_square(y_true, y_pred):
    ...     return (y_true - y_pred) ** 2 / 2
    >>> try:
    ...     check_loss(turned_round, [1.0, 2.0], raw_score=[0.0, 0.5], value=half_the_square)
    ... except AssertionError as error:
    ...     print(error)
    the gradient of turned_round is off in 2 of 2 rows, most in row 1 (y_true=2, y_pred=0.5): it is 1.5, and should be -1.5 by finite differences of the loss
    """  # noqa: E501
    targets = _by_outputs(y, "y", "targets")
    given = None if raw_score is None else _by_outputs(raw_score, "raw_score", "raw scores")
    if given is not None and n_outputs is None:
        n_outputs = len(given)
    checked = _loss_of(loss, targets, n_outputs, parameters)
    scores = _some_scores(checked, targets) if given is None else given
    if scores.shape != (checked.n_outputs, targets.shape[1]):
        raise ValueError(
            f"raw_score has shape {np.shape(raw_score)}: {checked.name} needs "
            f"{checked.n_outputs} raw score(s) for each of the {targets.shape[1]} rows of y"
        )
    values = values_by_rows(checked, targets)
    if value is not None:

        def values(moved: np.ndarray) -> np.ndarray:
            return np.asarray(value(by_rows(targets), by_rows(moved)), dtype=np.float64)

    if values is None:
        warn_user(
            f"{checked.name} has no value, so only its hessian is compared, with its gradient, and "
            "the gradient with nothing: pass value="
        )
    compare_derivatives(checked, targets, scores, values, tolerance)


def _by_outputs(given: Any, name: str, what: str) -> np.ndarray:
    """Return float64, shape (n_columns, n_samples)."""
    values = row_values(given, name, what, unknown=True)
    array = check_array(
        values, dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", input_name=name
    )
    return np.require(array.reshape(len(array), -1).T, requirements=["C", "W"])  # for kernels


def _loss_of(
    loss: Any, targets: np.ndarray, n_outputs: int | None, parameters: dict[str, Any]
) -> Loss:
    if callable(loss) and not isinstance(loss, type):
        size = len(targets) if n_outputs is None else n_outputs
        return FunctionLoss(loss, "regression" if size == len(targets) else "multiclass", size)
    known = LOSS_DEFAULTS
    unknown = parameters.keys() - known.keys()
    if unknown:
        raise TypeError(f"check_loss has no parameters {sorted(unknown)}")
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str):
        raise TypeError(f"{loss!r}: it must be a name, a function or an object of a Loss")
    n_classes = int(np.nanmax(targets)) + 1
    task, size = ("multiclass", n_classes) if n_classes > 2 else ("binary", len(targets))
    try:
        find_objective(loss, task)
    except ValueError:
        task, size = "regression", len(targets)
    return make_loss(loss, task, size, known | parameters)


def _some_scores(loss: Loss, targets: np.ndarray) -> np.ndarray:
    shape = (loss.n_outputs, targets.shape[1])
    noise = np.random.default_rng(0).normal(size=shape)
    if loss.link != "identity":
        return loss.start(targets, np.empty(0))[:, np.newaxis] + noise
    target = np.arange(loss.n_outputs) % len(targets)  # the target of each output
    spread = np.nanstd(targets, axis=1, keepdims=True)
    middle = np.nanmean(targets, axis=1, keepdims=True)
    return middle[target] + np.where(spread > 0.0, spread, 1.0)[target] * noise
