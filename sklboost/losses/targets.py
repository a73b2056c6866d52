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
    if not is_outside.any():
        return
    place = np.unravel_index(np.argmax(is_outside), y.shape)
    position = ", ".join(str(int(index)) for index in place)
    words = f"{'>' if excluded else '>='} {least:g}"
    if most < np.inf:
        words = f"{'above' if excluded else 'from'} {least:g} to {most:g}"
    raise ValueError(
        f"{name}[{position}]={y[place]:g}: objective={objective!r} needs targets {words}; choose "
        "another objective, or transform the targets"
    )


def check_labels(y: np.ndarray, name: str, objective: str) -> None:
    """Raise ValueError for the first target that is neither 0 nor 1; NaN is let pass."""
    is_other = ~np.isnan(y) & (y != 0.0) & (y != 1.0)
    if is_other.any():
        place = np.unravel_index(np.argmax(is_other), y.shape)
        position = ", ".join(str(int(index)) for index in place)
        raise ValueError(
            f"{name}[{position}]={y[place]:g}: objective={objective!r} needs targets 0 and 1; for "
            "probabilities choose 'binary:logistic'"
        )


def check_base_score(prediction: float, objective: str, least: float, most: float = np.inf) -> None:
    """Raise ValueError unless a prediction lies between two numbers, both excluded."""
    if least < prediction < most:
        return
    words = f"> {least:g}" if most == np.inf else f"between {least:g} and {most:g}, both excluded"
    raise ValueError(
        f"base_score={prediction:g}: it is a prediction, and those of objective={objective!r} are "
        f"{words}; give such a number, or None for the best constant"
    )
