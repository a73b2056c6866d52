"""The real data sets of `benchmarks.losses`: targets in other units, or another column for them."""

import numpy as np

from . import datasets

# So large that its last splits say as much as all rows.
MOST_ROWS = 60_000


def load(name, seed):
    """Load a data set of `datasets.py`, or one of those below."""
    if name == "california_100k":
        dataset = datasets.load("california_housing", seed)
        return dataset._replace(
            name=name, y_train=dataset.y_train / 1e5, y_test=dataset.y_test / 1e5
        )
    if name == "weather_rainfall":
        return _rainfall(seed)
    return datasets.load(name, seed)


def _rainfall(seed):
    """Return today's rain in mm, two thirds of which are 0, from what else was measured."""
    frame = datasets.loader().load("weather_aus")["X"]
    frame = frame[frame["Rainfall"].notna()].drop(columns="RainToday")
    y = frame.pop("Rainfall").to_numpy(dtype=np.float64)
    text = [name for name in frame.columns if frame[name].dtype.kind not in "if"]
    X = datasets.numeric(frame, text)
    order = np.random.default_rng(seed).permutation(len(y))[:MOST_ROWS]
    test, train = np.split(order, [int(datasets.TEST_FRACTION * len(order))])
    return datasets.Dataset("weather_rainfall", "regression", X[train], y[train], X[test], y[test])
