"""Fit time, peak memory and held-out loss on sparse matrices, at equal settings.

100 trees, learning rate 0.1, depth 6. Each fit is in a process of its own, and each repeat has data
of its own, which all libraries share. To XGBoost an absent entry is a missing value, to the others
it is 0.

Run `python -m benchmarks.sparse`; it writes `sparse.jsonl` and `.md`.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse

from . import datasets, peers, runner
from .memory import load_first, peak_mebibytes

RIVALS = ("xgboost", "lightgbm")
LIBRARIES = ("sklboost", *RIVALS)

# --- data -----------------------------------------------------------------------------------------


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


def _real(name, task):
    def split(rng):
        raw = datasets.loader().load(name)
        X = sparse.vstack([raw["X"], raw["test"][0]]).tocsr()
        y = np.concatenate([raw["y"], raw["test"][1]])
        y = y.astype(np.float64 if task == "regression" else np.int64)
        order = rng.permutation(len(y))
        return X[order], y[order], task, int(datasets.TEST_FRACTION * len(y))

    return split


SETS = {
    "wide": _wide,
    "counts": _counts,
    "agaricus": _real("agaricus", "binary"),  # one-hot columns: as many entries in each row
    "lgb_lambdarank": _real("lgb_lambdarank", "regression"),  # grades, learnt as numbers
}

# --- measuring ------------------------------------------------------------------------------------


def main(arguments=None):
    """Fit every library on every data set, then write the table."""
    runner.sleep_when_idle()
    parser = runner.parser("benchmarks.sparse", __doc__)
    add = parser.add_argument
    add("--datasets", nargs="+", default=list(SETS))
    add("--repeats", type=int, default=3, help="draws or splits of each data set")
    add("--trees", type=int, default=100)
    add("--threads", type=int, default=1)
    add("--budget", type=float, default=900.0, help="seconds for a library and a data set")
    options = parser.parse_args(arguments)
    shown = ("dataset", "repeat", "library", "fit_cpu_seconds", "peak_mib", "test_loss")
    runner.write_results("sparse", _records(options), shown, write_table, options)


def _records(options):
    settings = peers.Settings(n_estimators=options.trees)
    turns = runner.Options(peers.choose(LIBRARIES), options.repeats, options.budget)
    for name in options.datasets:
        with tempfile.TemporaryDirectory() as folder:
            facts = []
            for repeat in range(options.repeats):
                dataset = load(name, repeat)
                save(dataset, Path(folder) / str(repeat))
                facts.append(dataset.facts | {"n_entries": int(dataset.X_train.nnz)})

            def fit(library, repeat, folder=folder, facts=facts):
                saved, task = f"{folder}/{repeat}", facts[repeat]["task"]
                job = (library, saved, task, settings._asdict(), options.threads)
                return runner.in_child("benchmarks.sparse", *job)

            for turn in runner.take_turns(turns, fit):
                common = {"threads": options.threads, "settings": settings._asdict()}
                yield common | facts[turn["repeat"]] | turn


def save(dataset, folder):
    """Write a data set to files of a new folder, so that processes can load no more than it."""
    folder.mkdir()
    for part in ("train", "test"):
        sparse.save_npz(folder / f"X_{part}.npz", getattr(dataset, f"X_{part}"), compressed=False)
        np.save(folder / f"y_{part}.npy", getattr(dataset, f"y_{part}"))


def measure_here(library, folder, task, settings, n_threads):
    """Fit the data set saved in `folder`; return seconds, peak memory and loss."""
    (X, y), settings = _load_part(folder, "train"), peers.Settings(**settings)
    load_first(library, X, y, task, settings, n_threads)
    model, seconds = peers.make_estimator(library, settings, task, n_threads), []

    def fit():
        start, cpu_start = time.perf_counter(), time.process_time()
        model.fit(X, y)
        seconds.extend([time.perf_counter() - start, time.process_time() - cpu_start])

    with peers.quiet(library, n_threads):
        peak = peak_mebibytes(fit)
        X_test, y_test = _load_part(folder, "test")
        prediction = peers.predict(library, model, X_test, task, n_threads)
    loss = peers.held_out_loss(task, y_test, prediction)
    figures = {"fit_seconds": seconds[0], "fit_cpu_seconds": seconds[1]}
    return figures | {"peak_mib": peak, "test_loss": loss}


def _load_part(folder, part):
    X = sparse.load_npz(Path(folder) / f"X_{part}.npz")
    return X, np.load(Path(folder) / f"y_{part}.npy")


# --- the table ------------------------------------------------------------------------------------


def write_table(records):
    """Return the lines of the page `sparse.md`."""
    head = ["data set", "train x features", "entries a row"]
    head += [f"{name}, s" for name in LIBRARIES] + ["best / ours"]
    head += [f"{name}, MiB" for name in LIBRARIES] + ["best / ours"]
    head += [f"{name}, loss" for name in LIBRARIES] + ["ours / best", "± s.e."]
    rows = [head]
    for (name,), of_dataset in runner.grouped(records, "dataset").items():
        fact, by_library = of_dataset[-1], runner.grouped(of_dataset, "library")
        row = [name, f"{fact['n_train']:,} x {fact['n_features']:,}"]
        row.append(f"{fact['n_entries'] / fact['n_train']:.1f}")
        for figure in ("fit_cpu_seconds", "peak_mib"):
            medians = [np.median([r[figure] for r in by_library[key,]]) for key in LIBRARIES]
            row += [f"{median:.3g}" for median in medians]
            row.append(f"{min(medians[1:]) / medians[0]:.1f}")
        losses = {key: runner.by_seed(by_library[key,], "test_loss", "repeat") for key in LIBRARIES}
        means = {key: np.mean(list(own.values())) for key, own in losses.items()}
        best = min(RIVALS, key=means.get)
        row += [f"{mean:.5g}" for mean in means.values()]
        rows.append(row + runner.cells(*runner.paired_ratio(losses["sklboost"], losses[best])))
    last = records[-1]
    return [
        "# Sparse matrices\n",
        f"{last['settings']['n_estimators']} trees, learning rate 0.1, depth 6, "
        f"{last['threads']} thread(s). Processor seconds of `fit(X, y)` on CSR of float32 and the "
        "MiB by which the resident set rose at most meanwhile, medians over processes of their "
        "own; held-out loss (root mean squared error for regression, mean log loss otherwise), "
        f"mean over {1 + max(record['repeat'] for record in records)} draws or splits. To XGBoost "
        "an absent entry is a missing value, to the others it is 0.\n",
        *runner.markdown(rows),
        f"\n{runner.origin(records, 'sparse')}",
    ]


if __name__ == "__main__":
    runner.start(main, measure_here)
