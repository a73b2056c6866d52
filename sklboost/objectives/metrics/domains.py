"""Which targets and predictions a metric is defined for, and what is said about others."""

from typing import NamedTuple

import numpy as np


class Domain(NamedTuple):
    """A range of numbers.

    Attributes
    ----------
    bound : float
    has_bound : bool
        Whether the bound itself belongs to it.
    words : str
        What it is called.
    remedy : str
        What somebody can do whose numbers are outside, besides choosing another metric.
    most : float
        The other end, which belongs to it.
    """

    bound: float
    has_bound: bool
    words: str
    remedy: str
    most: float = np.inf

    def check(self, metric: str, kind: str, values: np.ndarray) -> None:
        """Raise an error for the first row that is outside; NaN is unknown, and passes.

        Parameters
        ----------
        metric : str
            Its name.
        kind : str
            What the values are: ``"target"`` or ``"prediction"``.
        values : ndarray of float64, shape (n_samples,) or (n_samples, n_columns)

        Raises
        ------
        ValueError
        """
        outside = values < self.bound if self.has_bound else values <= self.bound
        outside |= values > self.most
        if not outside.any():
            return
        first = tuple(np.argwhere(outside)[0])
        raise ValueError(
            f"{metric} of a {kind} of {values[first]:g} in row {first[0]}: it needs {kind}s "
            f"{self.words}; choose another eval_metric, or {self.remedy}"
        )


ANYWHERE = Domain(-np.inf, True, "of any size", "")
LOG_1P = Domain(-1.0, False, "above -1", "fit log1p(y) with the metric rmse")
COUNTS = Domain(0.0, True, "of 0 or more", "leave these rows out")
POSITIVE_TARGETS = Domain(0.0, False, "above 0", "leave these rows out")
POSITIVE_MEANS = Domain(
    0.0, False, "above 0", "an objective of positive predictions, such as 'count:poisson'"
)
SHARES = Domain(
    0.0, True, "from 0 to 1", "an objective of probabilities, such as 'reg:logistic'", most=1.0
)
