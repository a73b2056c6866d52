"""Where the seeds of a fit come from."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

_LARGEST_SEED = 2**31 - 1


def seeds(random_state: Any, is_sampling: bool) -> tuple[int, int]:
    """Give the seed of the rounding of gradients and that of the draws of rows and features.

    Parameters
    ----------
    random_state : int, RandomState instance, Generator or None
        None: the rounding is fixed, the draws come from NumPy's global state, as scikit-learn
        defines it. The same data and parameters then give the same model if nothing is drawn.
    is_sampling : bool
        Whether anything is drawn. If not, the second seed is 0 and nobody's state moves for it.

    Raises
    ------
    ValueError
        For anything else.
    """
    if isinstance(random_state, np.random.Generator):
        draw = random_state.integers
    else:
        draw = check_random_state(random_state).randint
    rounding = 0 if random_state is None else int(draw(_LARGEST_SEED))
    return rounding, int(draw(_LARGEST_SEED)) if is_sampling else 0
