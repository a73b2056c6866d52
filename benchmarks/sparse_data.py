"""Sparse data sets: two synthetic ones, drawn by a seed, and two real ones, split by it."""

import numpy as np
from scipy import sparse

from . import datasets


def load(name, seed):
    """Load a data set of `SETS`; its ``X_train`` and ``X_test`` are CSR matrices of float32."""
    if name not in SETS:
        raise ValueError(f"{name!r}: it must be one of {', '.join(SETS)}")
    X, y, task, n_test = SETS[name](np.random.default_rng(seed))
    X = sparse.csr_matrix(X, dtype=np.float32)  # LightGBM warns of the newer arrays
    train, test = slice(n_test, None), slice(n_test)
    return datasets.Dataset(name, task, X[train], y[train], X[test], y[test])


def _wide(rng):
    """Draw 20,000 x 20,000 and as many test rows, 0.1 % stored: a column has 20 values.

    One column of a hundred has an effect, which is large beside the noise.
    """
    n_rows, n_features, n_test = 40_000, 20_000, 20_000
    n_entries = n_rows * n_features // 1000
    places = rng.integers(n_rows, size=n_entries), rng.integers(n_features, size=n_entries)
    X = sparse.coo_array((rng.normal(size=n_entries), places), shape=(n_rows, n_features)).tocsr()
    effect = 5.0 * rng.normal(size=n_features) * (rng.random(n_features) < 0.01)
    y = X @ effect + rng.normal(size=n_rows)
    return X, y, "regression", n_test


def _counts(rng):
    """Draw texts as counts of words: 200,000 x 5,000 and 50,000 test rows, some 50 words in each.

    The k-th word has a probability in proportion to 1 / (10 + k), as words of a language; each has
    an effect on the log-odds.
    """
    n_rows, n_words, n_test, length = 250_000, 5_000, 50_000, 56
    probability = 1.0 / (10.0 + np.arange(n_words))
    words = rng.choice(n_words, (n_rows, length), p=probability / probability.sum()).ravel()
    rows = np.repeat(np.arange(n_rows), length)
    X = sparse.coo_array((np.ones(len(rows)), (rows, words)), shape=(n_rows, n_words)).tocsr()
    score = X.sqrt() @ rng.normal(size=n_words)
    score = 2.0 * (score - score.mean()) / score.std()
    return X, (rng.logistic(size=n_rows) < score).astype(np.int64), "binary", n_test


def _agaricus(rng):
    """Split one-hot columns: as many entries in each row as there were categories."""
    return _split("agaricus", "binary", rng)


def _lambdarank(rng):
    """Split the data of a ranking, whose grades are learnt here as numbers."""
    return _split("lgb_lambdarank", "regression", rng)


def _split(name, task, rng):
    raw = datasets.loader().load(name)
    X = sparse.vstack([raw["X"], raw["test"][0]]).tocsr()
    y = np.concatenate([raw["y"], raw["test"][1]]).astype(
        np.float64 if task == "regression" else np.int64
    )
    order = rng.permutation(len(y))
    return X[order], y[order], task, int(datasets.TEST_FRACTION * len(y))


SETS = {
    "wide": _wide,
    "counts": _counts,
    "agaricus": _agaricus,
    "lgb_lambdarank": _lambdarank,
}
