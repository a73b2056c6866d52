"""Area under the ROC curve and log loss where all columns are categories of many levels.

The data set `access` of `category_data.py`, at each library's defaults; and ours with smaller
steps, since these data are overfitted by the defaults of everyone but CatBoost.

Run `python -m benchmarks.access`; it writes `benchmarks/results/access.jsonl` and `.md`.
"""

import argparse
import json
import time

import numpy as np
from sklearn.metrics import roc_auc_score

from . import category_data, category_peers, environment, measure, peers
from .records import add_output_options, write_results
from .tables import markdown_lines

# What is run: a library, and its parameters besides the defaults.
RUNS = {
    "sklboost": ("sklboost", {}),
    'sklboost, preset="auto"': ("sklboost", {"preset": "auto"}),
    "sklboost, smaller steps": ("sklboost", {"learning_rate": 0.1}),
    "sklboost, smaller steps, cat_smooth=10": (
        "sklboost",
        {"learning_rate": 0.1, "cat_smooth": 10},
    ),
    "sklboost, smaller steps, cat_smooth=0": ("sklboost", {"learning_rate": 0.1, "cat_smooth": 0}),
    "xgboost": ("xgboost", {}),
    "lightgbm": ("lightgbm", {"verbose": -1}),
    "catboost": ("catboost", {"logging_level": "Silent", "allow_writing_files": False}),
}


def main(arguments=None):
    """Fit every library on every draw of the data; then write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.access", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="draws of the data")
    parser.add_argument("--threads", type=int, default=1)
    add_output_options(parser)
    options = parser.parse_args(arguments)
    shown = ("seed", "run", "auc", "log_loss", "fit_cpu_seconds")
    write_results("access", _records(options), shown, _write_table, options)


def _records(options):
    for seed in range(options.seeds):
        frames, _ = category_data.load("access", seed)
        for run, (library, changes) in RUNS.items():
            data = category_peers.prepare(library, frames)
            changes = category_peers.parameters(library, data) | changes
            model = peers.make_estimator(library, None, data.task, options.threads, seed, **changes)
            with measure.quiet(library, options.threads):
                if seed == 0 and library == "sklboost":  # compiled before anything is timed
                    model.fit(data.X_train, data.y_train)
                start = time.process_time()
                model.fit(data.X_train, data.y_train)
                seconds = time.process_time() - start
                chances = np.asarray(model.predict_proba(data.X_test))
            yield {
                "kind": "access",
                "time": environment.now(),
                **environment.describe(),
                "seed": seed,
                "threads": options.threads,
                "n_train": len(data.y_train),
                "run": run,
                "auc": float(roc_auc_score(data.y_test, chances[:, 1])),
                "log_loss": measure.test_loss(data.task, data.y_test, chances),
                "fit_cpu_seconds": seconds,
            }


def _write_table(lines, table):
    records = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    rows = [["run", "AUC", "log loss", "fit, processor seconds"]]
    for run in dict.fromkeys(record["run"] for record in records):
        own = [record for record in records if record["run"] == run]
        means = [np.mean([record[key] for record in own]) for key in ("auc", "log_loss")]
        seconds = np.median([record["fit_cpu_seconds"] for record in own])
        rows.append([run, *(f"{mean:.4f}" for mean in means), f"{seconds:.1f}"])
    fact, n_seeds = records[-1], len({record["seed"] for record in records})
    text = [
        "# Where all columns are categories of many levels",
        "",
        f"`access` of `category_data.py`: {fact['n_train']:,} training rows of eight columns of 70 "
        f"to 7,500 levels, 6 % of them negative; means over {n_seeds} draw(s) of the data, as many "
        "rows held out. Each library at its defaults but for what is named; "
        f"{fact['threads']} thread(s). "
        "Other work used the machine meanwhile: rough times.",
        "",
        f"Commit {fact['commit'][:10]}. Written by `python -m benchmarks.access` from "
        "`access.jsonl`.",
        "",
        *markdown_lines(rows),
    ]
    table.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
