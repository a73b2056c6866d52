"""Symmetric trees beside depthwise ones: `python -m benchmarks.symmetric_trees`.

Of each split of real data, a fifth of the training rows is held out. Early stopping finds the
rounds on it, and for each policy the depth is the one that is best on it. Then both are judged by
the test rows. A round is timed at equal depth, on all training rows: the least of five fits.
"""

import time

import numpy as np

from . import datasets, peers, runner
from .runner import OURS

POLICIES = ("depthwise", "symmetric")
DEPTHS, EQUAL_DEPTH, N_TIMED, N_FITS = (4, 6, 8), 6, 30, 5
MOST_ROWS = (10_000, 20_000)  # to train, a fifth of them being held out, and to test
NAMES = (
    *("california_housing", "bike_hour", "protein_casp", "ames_housing", "diamonds", "adult"),
    *("bank_marketing", "weather_aus", "lgb_binary_higgs", "letter"),
)


def main(arguments=None):
    """Fit both policies on every data set and split; then write the table."""
    parser = runner.parser("benchmarks.symmetric_trees", __doc__)
    parser.add_argument("--datasets", nargs="+", default=NAMES)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args(arguments)
    shown = ("dataset", "seed", "policy", "max_depth", "validation_loss", "test_loss")
    runner.write_results("symmetric_trees", _records(options), shown, write_table, options)


def _records(options):
    for name in options.datasets:
        for seed in range(options.seeds):
            dataset = datasets.load(name, seed).cut(*MOST_ROWS)
            seconds = _round_seconds(dataset)
            for policy in POLICIES:
                for depth in DEPTHS:
                    yield {
                        **dataset.facts,
                        "seed": seed,
                        "policy": policy,
                        "max_depth": depth,
                        "round_seconds": seconds[policy] if depth == EQUAL_DEPTH else None,
                        **_judged(dataset, policy, depth, seed),
                    }


def _judged(dataset, policy, depth, seed):
    """Fit with early stopping; return both losses and the number of rounds."""
    n_held_out = len(dataset.y_train) // 5
    held_out, kept = slice(n_held_out), slice(n_held_out, None)
    settings = peers.Settings(n_estimators=1000, learning_rate=0.1, max_depth=depth)
    changes = {"grow_policy": policy, "early_stopping_rounds": 30, "refit": False}
    model = peers.make_estimator(OURS, settings, dataset.task, 1, seed, **changes)
    X, y = dataset.X_train, dataset.y_train
    model.fit(X[kept], y[kept], X_val=X[held_out], y_val=y[held_out])

    def loss(X, y):
        return peers.held_out_loss(
            dataset.task, y, peers.predict(OURS, model, X, dataset.task, n_threads=1)
        )

    return {
        "validation_loss": loss(X[held_out], y[held_out]),
        "test_loss": loss(dataset.X_test, dataset.y_test),
        "n_rounds": model.best_iteration_ + 1,
    }


def _round_seconds(dataset):
    """Return the processor seconds of a round of each policy, fits of both being made in turn."""
    settings = peers.Settings(n_estimators=N_TIMED, learning_rate=0.1, max_depth=EQUAL_DEPTH)
    least = dict.fromkeys(POLICIES, np.inf)
    for turn in range(1 + N_FITS):
        for policy in POLICIES:
            model = peers.make_estimator(OURS, settings, dataset.task, 1, grow_policy=policy)
            start = time.process_time()
            model.fit(dataset.X_train, dataset.y_train)
            if turn > 0:  # the first one may compile
                least[policy] = min(least[policy], (time.process_time() - start) / N_TIMED)
    return least


def _chosen(records, policy):
    """Return the record of the depth that is best on the held-out rows."""
    return min(
        (record for record in records if record["policy"] == policy),
        key=lambda record: record["validation_loss"],
    )


def write_table(records):
    """Return the lines of the page `symmetric_trees.md`."""
    rows = [["data set", "train x features", *POLICIES, "difference", "by split", "depths"]]
    rows[0] += ["rounds", "time of a round"]
    everything = []
    for (name,), own in runner.grouped(records, "dataset").items():
        pairs = [
            [_chosen(of_seed, policy) for policy in POLICIES]
            for of_seed in runner.grouped(own, "seed").values()
        ]
        losses = np.array([[record["test_loss"] for record in pair] for pair in pairs])
        differences = 100.0 * (losses[:, 1] / losses[:, 0] - 1.0)
        everything.append(differences.mean())
        seconds = [
            np.mean([r["round_seconds"] for r in own if r["policy"] == p and r["round_seconds"]])
            for p in POLICIES
        ]
        told = [
            ", ".join("/".join(str(record[key]) for record in pair) for pair in pairs)
            for key in ("max_depth", "n_rounds")
        ]
        rows.append(
            [
                name,
                f"{own[0]['n_train']:,} x {own[0]['n_features']}",
                *(f"{mean:.5g}" for mean in losses.mean(axis=0)),
                f"{everything[-1]:+.1f} %",
                ", ".join(f"{difference:+.1f}" for difference in differences),
                *told,
                f"{seconds[1] / seconds[0]:.2f}",
            ]
        )
    n_better = sum(difference < 0 for difference in everything)
    return [
        "# Held-out loss of symmetric trees\n",
        "Learning rate 0.1, early stopping after 30 rounds on a fifth of the training rows, "
        f"`max_depth` of {', '.join(map(str, DEPTHS))} chosen on the same rows; "
        f"{1 + max(record['seed'] for record in records)} splits. Root mean squared error for "
        "regression, log loss for classes, of the test rows. Depths and rounds are those chosen, "
        f"depthwise/symmetric, of each split. The last column is symmetric / depthwise at depth "
        f"{EQUAL_DEPTH}, in processor seconds.\n",
        *runner.markdown(rows),
        f"\nThe loss of symmetric trees is lower on {n_better} of {len(everything)} data sets, by "
        f"{-np.mean(everything):.1f} % on average.",
        f"\n{runner.origin(records, 'symmetric_trees')}",
    ]


if __name__ == "__main__":
    runner.start(main)
