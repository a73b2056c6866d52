"""Targets as users give them: what is found before scikit-learn has a look, in clearer words.

In: `y`, a column of any library. Out: nothing, or an error.
"""

from datetime import date, time, timedelta
from typing import Any

import numpy as np

from sklboost.data.frames.numpy_arrays import ObjectColumn

_TIMES = (date, time, timedelta, np.datetime64, np.timedelta64)


def check_targets(y: Any, name: str, *, numeric: bool) -> None:
    """Raise ValueError for a target that is missing in some rows, or no number where it must be.

    Parameters
    ----------
    y : array-like
        NaN among floats is left to scikit-learn, as are wrong shapes.
    name : str
        Of the argument, for the errors.
    numeric : bool
        Whether targets are numbers and not labels.
    """
    try:
        values = np.asarray(y)
    except ValueError:  # rows of different lengths
        return
    if values.ndim == 0 or values.size != len(values) or values.dtype.kind not in "OmMU":
        return
    values = values.ravel()
    examples = [*values[:1]]
    if values.dtype.kind == "O":
        column = ObjectColumn(values)
        if column.missing.any():
            row = int(np.argmax(column.missing))
            raise ValueError(
                f"{name} has no value in {np.count_nonzero(column.missing)} row(s), the first is "
                f"row {row}, {values[row]!r}: leave out rows without a target"
            )
        examples = column.examples()
    for own in examples if numeric else ():
        if isinstance(own, _TIMES):
            raise ValueError(
                f"{name} holds times, such as {own!r}: targets are numbers; subtract a date and "
                "divide by np.timedelta64(1, 'D'), say, to count days"
            )
        if isinstance(own, str) and not _is_written_number(own):
            raise ValueError(
                f"{name} holds text, such as {str(own)!r}: targets of a regressor are numbers; "
                "labels are for XGBClassifierLite"
            )


def _is_written_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
