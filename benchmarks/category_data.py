"""Data sets with categories: frames with columns of dtype category, or the same as ordinal codes.

Four real ones, split as `datasets.py` splits them, and synthetic ones: with a feature of many
levels, such as `zipf-5000`, the number being that of the levels; and `access`, all of categories.
"""

import re

import numpy as np
import pandas as pd

from . import datasets

REAL = ("adult", "bank_marketing", "weather_aus", "ames_housing")
SYNTHETIC = ("zipf-5000", "zipf-70000", "access")
N_TRAIN, N_TEST, N_NUMBERS = 100_000, 50_000, 5  # of the synthetic data
# Levels of the columns of `access`, after those of the data set "Amazon employee access".
ACCESS_LEVELS = {
    "resource": 7500,
    "manager": 4250,
    "department": 450,
    "role": 350,
    "role_family": 70,
    "role_description": 2350,
    "rollup_1": 130,
    "rollup_2": 180,
}
ACCESS_TRAIN, ACCESS_TEST, REFUSED = 33_000, 33_000, 0.06
# Prices differ by factors: in squared errors of the price itself a few houses decide.
LOG_TARGET = ("ames_housing",)


def load(name, seed):
    """Load a data set, split (real) or drawn (synthetic) by `seed`, in both forms.

    Parameters
    ----------
    name : str
        One of `REAL`, `zipf-<levels>`, or `access`.
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
    elif name == "access":
        X, y, task = _draw_access(seed)
        categorical = list(ACCESS_LEVELS)
        train, test = np.split(np.arange(len(y)), [ACCESS_TRAIN])
    elif name in REAL:
        X, y, task, categorical = _read(name)
        # the splits of datasets.load
        rows = np.random.default_rng(seed).permutation(len(y))
        test, train = np.split(rows, [int(datasets.TEST_FRACTION * len(y))])
    else:
        raise ValueError(
            f"{name!r}: it must be 'access', like 'zipf-5000', or one of {', '.join(REAL)}"
        )
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


def _draw_access(seed):
    """Draw requests for access to a resource by employees: eight columns of categories.

    Departments and roles follow from the manager but for one request in ten, other columns from
    these; the k-th level has a probability in proportion to 1 / (k + 10). Whether a request is
    granted depends on the levels of each column, those of few rows most, and on pairs of levels:
    of department and resource, role and department, manager and role family.
    """
    rng = np.random.default_rng(seed)
    n_rows = ACCESS_TRAIN + ACCESS_TEST

    def draw(n_levels, size):
        probability = 1.0 / np.arange(10, n_levels + 10)
        return rng.choice(n_levels, size, p=probability / probability.sum())

    def follow(name, above):
        of_above = draw(ACCESS_LEVELS[name], above.max() + 1)[above]
        return np.where(rng.random(n_rows) < 0.1, draw(ACCESS_LEVELS[name], n_rows), of_above)

    manager = draw(ACCESS_LEVELS["manager"], n_rows)
    columns = {"manager": manager, "resource": draw(ACCESS_LEVELS["resource"], n_rows)}
    for name, above in (
        ("department", "manager"),
        ("role", "manager"),
        ("rollup_2", "department"),
        ("rollup_1", "rollup_2"),
        ("role_family", "role"),
        ("role_description", "manager"),
    ):
        columns[name] = follow(name, columns[above])
    score = np.zeros(n_rows)
    for levels in columns.values():
        rareness = np.minimum(1.0, 20.0 / np.maximum(np.bincount(levels), 1)) ** 0.5
        score += (rng.standard_normal(len(rareness)) * (0.3 + rareness))[levels]
    for first, second in (
        ("department", "resource"),
        ("role", "department"),
        ("manager", "role_family"),
    ):
        pair = np.unique(columns[first] * 10_000 + columns[second], return_inverse=True)[1]
        score += 0.8 * rng.standard_normal(pair.max() + 1)[pair]
    # granted: all but about so many, whatever the seed
    lower, upper = -30.0, 30.0
    for _ in range(60):
        shift = (lower + upper) / 2.0
        chance = 1.0 / (1.0 + np.exp(-1.5 * score - shift))
        lower, upper = (shift, upper) if chance.mean() < 1.0 - REFUSED else (lower, shift)
    y = (rng.random(n_rows) < chance).astype(np.int64)
    X = pd.DataFrame({name: columns[name] for name in ACCESS_LEVELS})
    for name in X:
        label = rng.permutation(ACCESS_LEVELS[name])
        X[name] = np.char.add("id_", np.char.zfill(label[X[name]].astype(str), 5)).astype(object)
    return X, y, "binary"
