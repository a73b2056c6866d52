"""Which targets and which predictions a loss is defined for."""

import numpy as np


def check_within(
    y: np.ndarray,
    name: str,
    objective: str,
    least: float,
    most: float = np.inf,
    *,
    excluded: bool = False,
) -> None:
    """Raise ValueError for the first target outside of a range.

    Parameters
    ----------
    y : ndarray of float64, shape (n_samples,) or (n_samples, n_targets)
        NaN is let pass.
    name : str
        Of the argument.
    objective : str
    least, most : float
    excluded : bool
        Whether `least` itself is outside.
    """
    is_outside = (y < least) | (y > most) | (excluded & (y == least))
    words = f"{'>' if excluded else '>='} {least:g}"
    if most < np.inf:
        words = f"{'above' if excluded else 'from'} {least:g} to {most:g}"
    remedy = "choose another objective, or transform the targets"
    refuse_first(is_outside, y, name, f"objective={objective!r} needs targets {words}; {remedy}")


def check_labels(y: np.ndarray, name: str, objective: str) -> None:
    """Raise ValueError for the first target that is neither 0 nor 1; NaN is let pass."""
    is_other = ~np.isnan(y) & (y != 0.0) & (y != 1.0)
    remedy = "for probabilities choose 'binary:logistic'"
    refuse_first(is_other, y, name, f"objective={objective!r} needs targets 0 and 1; {remedy}")


def refuse_first(is_refused: np.ndarray, y: np.ndarray, name: str, why: str) -> None:
    """Raise ValueError for the first of the targets that are refused, if there are any.

    Parameters
    ----------
    is_refused : ndarray of bool, shape of `y`
    y : ndarray of float64, shape (n_samples,) or (n_samples, n_targets)
    name : str
        Of the argument.
    why : str
        What is wrong and what to do; the error begins with the place and value of the target.
    """
    if not is_refused.any():
        return
    place = np.unravel_index(np.argmax(is_refused), y.shape)
    position = ", ".join(str(int(index)) for index in place)
    raise ValueError(f"{name}[{position}]={y[place]:g}: {why}")


def check_base_score(prediction: float, objective: str, least: float, most: float = np.inf) -> None:
    """Raise ValueError unless a prediction lies between two numbers, both excluded."""
    if least < prediction < most:
        return
    words = f"> {least:g}" if most == np.inf else f"between {least:g} and {most:g}, both excluded"
    raise ValueError(
        f"base_score={prediction:g}: it is a prediction, and those of objective={objective!r} are "
        f"{words}; give such a number, or None for the best constant"
    )
