"""Named, seeded data sets: a name and a seed go in, a split into train and test comes out.

Synthetic names spell their shape: `binary-1000x28`, `regression-100000x28`, `softmax-100000x28`.
The real ones are read by the `load.py` of a data folder that is not part of the package: the
environment variable `SKLBOOST_DATA`, or `../shared/data` beside the repository.
"""

import importlib.util
import os
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

REAL = (
    "california_housing",
    "diamonds",
    "bike_hour",
    "ames_housing",
    "protein_casp",
    "adult",
    "bank_marketing",
    "weather_aus",
    "lgb_binary_higgs",
    "agaricus",
    "letter",
    "lgb_multiclass",
    "covertype",
)
BUNDLED = ("diabetes", "breast_cancer", "digits", "wine")  # with scikit-learn
N_CLASSES = 7  # of the synthetic softmax data
TEST_FRACTION = 0.2  # of the real data


class Dataset(NamedTuple):
    """One split of one data set; classes are coded 0 .. K - 1."""

    name: str
    task: str  # "regression" | "binary" | "multiclass"
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @property
    def facts(self):
        """What a record of a measurement says of it."""
        return {
            "dataset": self.name,
            "task": self.task,
            "n_train": len(self.y_train),
            "n_test": len(self.y_test),
            "n_features": self.X_train.shape[1],
        }

    def cut(self, most_train, most_test):
        """Return a data set with at most so many rows; they are in random order."""
        return self._replace(
            X_train=self.X_train[:most_train],
            y_train=self.y_train[:most_train],
            X_test=self.X_test[:most_test],
            y_test=self.y_test[:most_test],
        )

    def as_float32(self):
        """Return C-contiguous float32, whatever the file holds: what timed fits are given."""
        return self._replace(
            X_train=np.ascontiguousarray(self.X_train, dtype=np.float32),
            X_test=np.ascontiguousarray(self.X_test, dtype=np.float32),
        )


class NoDataError(FileNotFoundError):
    """The real data sets, which are not part of the repository, are not where they should be."""


def load(name, seed=0):
    """Load the data set `name`, drawn (synthetic) or split (real) by `seed`.

    Parameters
    ----------
    name : str
        One of `REAL` or `BUNDLED`, or `binary|regression|softmax-<rows>x<features>`.
    seed : int
        The same seed gives the same bits.

    Returns
    -------
    Dataset
    """
    shape = re.fullmatch(r"(binary|regression|softmax)-(\d+)x(\d+)", name)
    if shape:
        return _synthetic(name, shape[1], int(shape[2]), int(shape[3]), seed)
    if name in REAL:
        return _split(name, *_real(name), seed)
    if name in BUNDLED:
        return _split(name, *_bundled(name), seed)
    known = ", ".join((*REAL, *BUNDLED))
    raise ValueError(f"{name!r}: it must be like 'binary-1000x28' or one of {known}")


# --- synthetic ------------------------------------------------------------------------------


def _synthetic(name, kind, n_rows, n_features, seed):
    # Enough test rows that the loss of a small model is measured well, and prediction timed.
    n_test = min(max(n_rows, 10_000), 100_000)
    rng = np.random.default_rng(seed)
    latent = rng.standard_normal((n_rows + n_test, n_features), dtype=np.float32)

    if kind == "regression":
        task = "regression"
        y = score(latent, 0) + 0.5 * rng.standard_normal(len(latent), dtype=np.float32)
    elif kind == "binary":
        task = "binary"
        y = (rng.logistic(size=len(latent)) < 2.0 * score(latent, 0)).astype(np.int64)
    else:
        task = "multiclass"
        scores = np.stack([2.0 * score(latent, k) for k in range(N_CLASSES)], axis=1)
        y = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)  # softmax sampling

    X = _observed(latent)
    return Dataset(name, task, X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])


def score(latent, structure):
    """Return a fixed non-linear function with interactions, of mean 0 and about unit spread.

    `structure` chooses the function and the seed of the data does not, so that train, test and
    every seed share one truth.
    """
    n_features = latent.shape[1]
    rng = np.random.default_rng([9, structure])
    n_terms = max(1, n_features // 2)
    weights = rng.normal(size=(n_terms, 2)).astype(np.float32)
    weights /= np.float32(0.47) * np.linalg.norm(weights)  # 0.47: the spread of either kind of term
    score = np.zeros(len(latent), dtype=np.float32)
    for interaction, step in weights:
        a, b, c = rng.integers(n_features, size=3)
        score += interaction * np.tanh(latent[:, a] * latent[:, b])
        score += step * ((np.abs(latent[:, c]) > 1.0) - np.float32(0.317))  # 0.317: its probability
    return score


def _observed(latent):
    """Turn normal latent values into the kinds of column of the Higgs data, float32.

    Low-level columns are heavy-tailed momenta, bounded angles, plain normals and, rarely, tags of
    three values; the last quarter are mass-like functions of two others.
    """
    X = np.empty_like(latent)
    n_features = latent.shape[1]
    n_low = n_features - n_features // 4
    for column in range(n_low):
        z = latent[:, column]
        if column % 7 == 6:
            X[:, column] = np.float32(1.087) * ((z > 0).astype(np.float32) + (z > 1))
        elif column % 3 == 0:
            X[:, column] = np.exp(np.float32(0.6) * z)
        elif column % 3 == 1:
            X[:, column] = np.float32(np.pi) * np.tanh(z)
        else:
            X[:, column] = z
    for column in range(n_low, n_features):
        X[:, column] = np.hypot(latent[:, column], latent[:, column - n_low])
    return X


# --- real -----------------------------------------------------------------------------------


def _real(name):
    raw = loader().load(name)
    X = numeric(raw["X"], raw["cat"])
    y = np.asarray(raw["y"])
    if "test" in raw:  # several seeds need several splits: ours replaces the published one
        X = np.concatenate([X, numeric(raw["test"][0], raw["cat"], like=raw["X"])])
        y = np.concatenate([y, np.asarray(raw["test"][1])])
    return raw["task"], X, y


def _bundled(name):
    import sklearn.datasets

    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    tasks = {"diabetes": "regression", "breast_cancer": "binary"}
    return tasks.get(name, "multiclass"), X, y


def _split(name, task, X, y, seed):
    y = y.astype(np.float64) if task == "regression" else _codes(y)
    order = np.random.default_rng(seed).permutation(len(y))  # several files are sorted
    test, train = np.split(order, [int(TEST_FRACTION * len(y))])
    return Dataset(name, task, X[train], y[train], X[test], y[test])


def numeric(X, categorical, like=None):
    """Return X as float64: categories as ordinal codes, missing values as NaN.

    float64 is what a user's table holds. Codes are the ranks of the sorted categories of `like`
    (default X); no library is told which columns are categories, so all see the same numbers.
    """
    import pandas as pd

    if not isinstance(X, pd.DataFrame):  # scipy CSR
        return X.toarray().astype(np.float64)
    like = X if like is None else like
    columns = []
    for column in X.columns:
        if column in categorical:
            categories = np.sort(like[column].dropna().unique())
            codes = pd.Categorical(X[column], categories=categories).codes.astype(np.float64)
            columns.append(np.where(codes < 0, np.nan, codes))
        else:
            columns.append(X[column].to_numpy(dtype=np.float64, na_value=np.nan))
    return np.ascontiguousarray(np.column_stack(columns))


def _codes(y):
    return np.unique(y, return_inverse=True)[1]


def loader():
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SKLBOOST_DATA", beside))
    if not (folder / "load.py").is_file():
        raise NoDataError(
            f"{folder}: no load.py there; set SKLBOOST_DATA to the folder of the real data sets"
        )
    spec = importlib.util.spec_from_file_location("sklboost_benchmark_data", folder / "load.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
