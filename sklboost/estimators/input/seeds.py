"""Seeds from `random_state`."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

_LARGEST_SEED = 2**31 - 1


def seeds(random_state: Any, is_sampling: bool) -> tuple[int, int]:
    """Return the seed of the rounding of gradients and that of the draws of rows and features.

    None draws as the seed 0 does, as in XGBoost: the same fit gives the same model. The module
    ``numpy.random`` stands for NumPy's global state, as in scikit-learn. If nothing is drawn, the
    second seed is 0, and no state moves for it.

    Raises
    ------
    ValueError
        If `random_state` is none of what scikit-learn takes, nor a Generator.
    """
    if isinstance(random_state, np.random.Generator):
        draw = random_state.integers
    else:
        try:
            draw = check_random_state(0 if random_state is None else random_state).randint
        except ValueError as error:
            raise ValueError(
                f"random_state={random_state!r}: it must be None, an integer from 0 to 2**32 - 1, "
                "a RandomState or a Generator of NumPy"
            ) from error
    rounding = int(draw(_LARGEST_SEED))
    # without a seed rounding is that of earlier versions
    return 0 if random_state is None else rounding, int(draw(_LARGEST_SEED)) if is_sampling else 0
