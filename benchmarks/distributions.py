"""Held-out likelihood of distributions, and the time to learn them, beside NGBoost.

The normal distribution of each row. Each split has at most 5,000 rows to learn from and 5,000 to
test on; on one thread. Missing values are -999 for all, since NGBoost takes none.

Run `python -m benchmarks.distributions`; it writes `benchmarks/results/distributions.jsonl` and
`.md`.
"""

import argparse
import json
import time

import numpy as np
from scipy import stats

from sklboost import XGBDistributionLite

from . import datasets, environment
from .ratios import paired_ratio
from .records import add_output_options, write_results
from .tables import markdown_lines

DATASETS = (
    *("diabetes", "ames_housing", "bike_hour", "california_housing", "diamonds", "protein_casp"),
)
MOST_ROWS = 5_000


def ngboost(X, y, seed):
    from ngboost import NGBRegressor

    return NGBRegressor(verbose=False, random_state=seed).fit(X, y).pred_dist


def as_ngboost(X, y, seed):
    parameters = dict(n_estimators=500, learning_rate=0.01, max_depth=3)
    model = XGBDistributionLite(**parameters, min_child_samples=0, gamma=0.0, n_jobs=1)
    return model.fit(X, y).predict_dist


def defaults(X, y, seed):
    return XGBDistributionLite(n_jobs=1).fit(X, y).predict_dist


def early_stopping(X, y, seed):
    parameters = dict(n_estimators=1000, early_stopping_rounds=20, random_state=seed)
    return XGBDistributionLite(**parameters, n_jobs=1).fit(X, y).predict_dist


METHODS = {
    "NGBoost": ngboost,
    "sklboost, 500 rounds of NGBoost's settings": as_ngboost,
    "sklboost": defaults,
    "sklboost, early stopping": early_stopping,
}


def main(arguments=None):
    """Fit every method on every data set and split; then write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.distributions", description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--seeds", type=int, default=5, help="splits of each data set")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    shown = ("dataset", "seed", "method", "nll", "cpu_seconds")
    write_results("distributions", _records(options), shown, write_table, options)


def _records(options):
    constant = environment.describe()
    defaults(np.zeros((9, 1)), np.arange(9.0), 0)  # compiled before it is timed
    early_stopping(np.zeros((90, 1)), np.arange(90.0), 0)
    for name in options.datasets:
        for seed in range(options.seeds):
            given = datasets.load(name, seed)
            X, X_test = (
                np.nan_to_num(part[:MOST_ROWS], nan=-999.0)
                for part in (given.X_train, given.X_test)
            )
            y, y_test = (part[:MOST_ROWS].astype(float) for part in (given.y_train, given.y_test))
            for method, fit in METHODS.items():
                begin = time.process_time()
                predict = fit(X, y, seed)
                seconds = time.process_time() - begin
                distribution = predict(X_test)
                loc, scale = np.ravel(distribution.mean()), np.ravel(distribution.std())
                yield {
                    "kind": "distributions",
                    "time": environment.now(),
                    **constant,
                    **{"dataset": name, "seed": seed, "method": method, "n_train": len(y)},
                    **_measured(y_test, loc, scale, y.std()),
                    "cpu_seconds": seconds,
                }


def _measured(y, loc, scale, unit):
    """Return scores of normal distributions; in standard deviations of the targets."""
    r = (y - loc) / scale
    crps = scale * (r * (2 * stats.norm.cdf(r) - 1) + 2 * stats.norm.pdf(r) - 1 / np.sqrt(np.pi))
    return {
        "nll": float(-stats.norm.logpdf(y / unit, loc / unit, scale / unit).mean()),
        "crps": float(crps.mean() / unit),
        "coverage_90": float((np.abs(r) <= stats.norm.ppf(0.95)).mean()),
    }


# --- the table ------------------------------------------------------------------------------------


def write_table(lines, table):
    """Write the table of the JSON lines in the file `lines` to the file `table`."""
    records = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    cases = {}
    for record in records:
        methods = cases.setdefault(record["dataset"], {})
        methods.setdefault(record["method"], {})[record["seed"]] = record
    rows = [
        ["data set", "method", "nll", "± s.e.", "crps", "± s.e.", "in 90%", "s", "times faster"]
    ]
    for dataset, methods in cases.items():
        for method in METHODS:
            rows.append([dataset, method, *_cells(methods, method)])
    versions = ", ".join(f"{name} {version}" for name, version in records[-1]["versions"].items())
    n_splits = max(len(found) for methods in cases.values() for found in methods.values())
    text = (
        "# Distributions\n\n"
        f"Normal distributions, means over {n_splits} random splits with at most "
        f"{MOST_ROWS:,} rows to learn from and as many to test on. `nll`: negative log-likelihood "
        "of the test rows, `crps`: continuous ranked probability score, both for targets divided "
        "by their standard deviation; smaller is better. `in 90%`: share of the test rows within "
        "the central interval of 90%. `s`: processor seconds of a fit on one thread, medians. "
        "NGBoost has its defaults: 500 rounds, learning rate 0.01, depth 3; so has the second "
        "line, without `gamma` and `min_child_samples`.\n\n"
        f"Commit {records[-1]['commit']}; {versions}. Written by "
        "`python -m benchmarks.distributions` from `distributions.jsonl`.\n"
    )
    body = "\n".join([text, *markdown_lines(rows, [True, True])])
    table.write_text(f"{body}\n", encoding="utf-8")


def _cells(methods, method):
    def of(key, name=method):
        return {seed: record[key] for seed, record in methods[name].items()}

    cells = []
    for key in ("nll", "crps"):
        values = np.array(list(of(key).values()))
        cells += [f"{values.mean():.3f}", f"{values.std(ddof=1) / np.sqrt(len(values)):.3f}"]
    ratio, _ = paired_ratio(of("cpu_seconds", "NGBoost"), of("cpu_seconds"))
    inside = np.mean(list(of("coverage_90").values()))
    seconds = np.median(list(of("cpu_seconds").values()))
    return [*cells, f"{inside:.3f}", f"{seconds:.2f}", f"{ratio:.0f}"]


if __name__ == "__main__":
    main()
