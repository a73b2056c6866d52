"""Data sets with categories: frames with columns of dtype category, or the same as ordinal codes.

Four real ones, split as `datasets.py` splits them, and synthetic ones with a feature of many
levels: `zipf-5000`, the number being that of the levels.
"""

import re

import numpy as np
import pandas as pd

from . import datasets

REAL = ("adult", "bank_marketing", "weather_aus", "ames_housing")
SYNTHETIC = ("zipf-5000", "zipf-70000")
N_TRAIN, N_TEST, N_NUMBERS = 100_000, 50_000, 5  # of the synthetic data
# Prices differ by factors: in squared errors of the price itself a few houses decide.
LOG_TARGET = ("ames_housing",)


def load(name, seed):
    """Load a data set, split (real) or drawn (synthetic) by `seed`, in both forms.

    Parameters
    ----------
    name : str
        One of `REAL`, or `zipf-<levels>`.
    seed : int

    Returns
    -------
    frames : Dataset
        ``X_train`` and ``X_test`` are data frames. Their columns of categories have all levels of
        the data set in their dtype; some may be in no training row.
    codes : Dataset
        The same rows as float64 arrays: categories are ranks of the sorted levels.
    """
    synthetic = re.fullmatch(r"zipf-(\d+)", name)
    if synthetic:
        X, y, task = _draw(int(synthetic[1]), seed)
        categorical = ["level"]
        train, test = np.split(np.arange(len(y)), [N_TRAIN])
    elif name in REAL:
        X, y, task, categorical = _read(name)
        # the splits of datasets.load
        rows = np.random.default_rng(seed).permutation(len(y))
        test, train = np.split(rows, [int(datasets.TEST_FRACTION * len(y))])
    else:
        raise ValueError(f"{name!r}: it must be like 'zipf-5000' or one of {', '.join(REAL)}")
    numbers = datasets.numeric(X, categorical)
    X = X.astype(dict.fromkeys(categorical, "category"))
    frames = datasets.Dataset(name, task, X.iloc[train], y[train], X.iloc[test], y[test])
    return frames, frames._replace(X_train=numbers[train], X_test=numbers[test])


def category_names(X):
    """List the names of a frame's columns of categories."""
    return list(X.select_dtypes("category").columns)


def _read(name):
    """Return frame, target, task and the names of categorical columns of a real data set."""
    raw = datasets.loader().load(name)
    parts = [(raw["X"], raw["y"]), raw["test"]] if "test" in raw else [(raw["X"], raw["y"])]
    X = pd.concat([part[0] for part in parts], ignore_index=True)
    y = np.concatenate([np.asarray(part[1]) for part in parts])
    if name in LOG_TARGET:
        y = np.log(y)
    return X, y, raw["task"], raw["cat"]


def _draw(n_levels, seed):
    """Draw a frame and a target of train rows, then test rows; the noise has deviation 1.

    Each level has an effect, drawn from a normal distribution, and so have the numbers, by a
    function with interactions. The k-th level has a probability in proportion to 1 / k (Zipf's
    law); besides, each is in one train row at least, if there are enough of them.
    """
    rng = np.random.default_rng(seed)
    n_rows = N_TRAIN + N_TEST
    probability = 1.0 / np.arange(1, n_levels + 1)
    level = rng.choice(n_levels, n_rows, p=probability / probability.sum())
    n_once = min(n_levels, N_TRAIN)
    level[:n_once] = np.arange(n_once)
    label = rng.permutation(n_levels)  # so that codes say nothing about effect or frequency
    latent = rng.standard_normal((n_rows, N_NUMBERS), dtype=np.float32)
    y = rng.standard_normal(n_levels)[level] + datasets.score(latent, 0)
    y += rng.standard_normal(n_rows)
    X = pd.DataFrame(latent, columns=[f"number_{column}" for column in range(N_NUMBERS)])
    X["level"] = np.char.add("level_", np.char.zfill(label[level].astype(str), 6)).astype(object)
    return X, y, "regression"
