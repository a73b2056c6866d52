"""Which targets a loss is defined for."""

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
