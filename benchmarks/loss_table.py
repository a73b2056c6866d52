"""The Markdown table of `benchmarks.losses`, from its JSON lines."""

import json

import numpy as np

from .tables import markdown_lines

LIBRARIES = ("sklboost", "xgboost", "lightgbm", "hist_gb", "catboost")


def write_table(lines, table):
    """Write the table of the JSON lines in the file `lines` to the file `table`."""
    cases, last = _read(lines)
    rows = [["loss", "data set", "splits", *LIBRARIES, "ours / best", "± s.e.", "time of a round"]]
    for (objective, dataset), libraries in cases.items():
        losses = {name: _column(libraries, name, "test_loss") for name in LIBRARIES}
        cells = [f"{own.mean():.5g}" if len(own) else "" for own in losses.values()]
        ratio, error = _ratio(losses)
        seconds = [_column(libraries, name, "seconds_per_round") for name in ("sklboost", "usual")]
        times = f"{np.median(seconds[0] / seconds[1]):.2f}"
        n_splits = str(len(losses["sklboost"]))
        rows.append([f"`{objective}`", dataset, n_splits, *cells, ratio, error, times])
    text = [_introduction(last), *markdown_lines(rows, [True, True])]
    table.write_text("\n".join(text) + "\n", encoding="utf-8")


def _read(lines):
    """Return {(objective, data set): {library: {seed: record}}} and the last record."""
    cases, record = {}, {}
    for line in lines.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        libraries = cases.setdefault((record["objective"], record["dataset"]), {})
        libraries.setdefault(record["library"], {})[record["seed"]] = record
    return cases, record


def _column(libraries, name, key):
    """Return one figure of a library for each split, in order."""
    records = libraries.get(name, {})
    return np.array([records[seed][key] for seed in sorted(records)], dtype=np.float64)


def _ratio(losses):
    """Return ours over the best peer (the lowest mean), and the standard error over the splits."""
    ours = losses["sklboost"]
    rivals = [own for name, own in losses.items() if name != "sklboost" and len(own) == len(ours)]
    if not rivals:
        return "", ""
    best = min(rivals, key=np.mean)
    error = np.std(ours / best, ddof=1) / np.sqrt(len(ours)) if len(ours) > 1 else np.nan
    return f"{ours.mean() / best.mean():.4f}", f"{error:.4f}" if np.isfinite(error) else ""


def _introduction(last):
    settings = last["settings"]
    versions = ", ".join(f"{name} {version}" for name, version in last["versions"].items())
    return (
        "# Held-out loss of each loss\n\n"
        f"{settings['n_estimators']} trees, learning rate {settings['learning_rate']}, depth "
        f"{settings['max_depth']}, {settings['max_bin']} bins, lambda {settings['reg_lambda']}, "
        f"min_child_weight {settings['min_child_weight']}, no early stopping. The mean of the loss "
        "itself over the test rows (Poisson, gamma, Tweedie: the deviance), mean over the splits; "
        "lower is better. `ours / best` compares with the best library that has the loss; its "
        "standard error is that of the paired ratios. `time of a round`: of sklboost with this "
        "loss, over the same with squared error, log loss or softmax; the median over the splits."
        f"\n\nCommit {last['commit']}; {versions}. Written by `python -m benchmarks.losses` from "
        "`losses.jsonl`.\n"
    )
