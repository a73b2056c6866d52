"""The Markdown table of `benchmarks.sparse`, from its JSON lines."""

import json

import numpy as np

from .ratios import as_text, mean_of, paired_ratio
from .tables import markdown_lines

OURS = "sklboost"
RIVALS = ("xgboost", "lightgbm")
LIBRARIES = (OURS, *RIVALS)
FIGURES = ("fit_cpu_seconds", "peak_mib", "test_loss")


def write_table(lines, table):
    """Write the table of the JSON lines in the file `lines` to the file `table`."""
    records = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    figures = {}  # {(data set, library, figure): {repeat: number}}
    for record in records:
        for key in FIGURES:
            own = figures.setdefault((record["dataset"], record["library"], key), {})
            own[record["repeat"]] = record[key]
    head = ["data set", "train x features", "entries a row"]
    head += [f"{name}, s" for name in LIBRARIES] + ["best / ours"]
    head += [f"{name}, MiB" for name in LIBRARIES] + ["best / ours"]
    head += [f"{name}, loss" for name in LIBRARIES] + ["ours / best", "± s.e."]
    rows = [head]
    for name, fact in {record["dataset"]: record for record in records}.items():
        shape = f"{fact['n_train']:,} x {fact['n_features']:,}"
        rows.append(
            [
                name,
                shape,
                f"{fact['n_entries'] / fact['n_train']:.1f}",
                *_medians(figures, name, "fit_cpu_seconds"),
                *_medians(figures, name, "peak_mib"),
                *_losses(figures, name),
            ]
        )
    text = [_introduction(records[-1]), *markdown_lines(rows)]
    table.write_text("\n".join(text) + "\n", encoding="utf-8")


def _medians(figures, name, key):
    """Return the median of each library, and the least of the rivals' over ours."""
    medians = [np.median(list(figures[name, library, key].values())) for library in LIBRARIES]
    return [f"{median:.3g}" for median in medians] + [f"{min(medians[1:]) / medians[0]:.1f}"]


def _losses(figures, name):
    """Return the mean of each library; ours over the best rival's, with its standard error."""
    ours, *rivals = (figures[name, library, "test_loss"] for library in LIBRARIES)
    ratio = paired_ratio(ours, min(rivals, key=mean_of))
    return [f"{mean_of(own):.5g}" for own in (ours, *rivals)] + as_text(*ratio)


def _introduction(last):
    settings = last["settings"]
    versions = ", ".join(f"{name} {version}" for name, version in last["versions"].items())
    return (
        "# Sparse matrices\n\n"
        f"{settings['n_estimators']} trees, learning rate {settings['learning_rate']}, depth "
        f"{settings['max_depth']}, {last['threads']} thread(s). Processor seconds of `fit(X, y)` "
        "on CSR of float32 and the MiB by which the resident set rose at most meanwhile, medians "
        "over processes of their own; held-out loss (root mean squared error for regression, mean "
        "log loss otherwise), mean over draws or splits. To XGBoost an absent entry is a missing "
        "value, to the others it is 0. Other work used the machine meanwhile (`others_cpu` in the "
        "JSON), so seconds are rough. "
        f"\n\nCommit {last['commit']}; {versions}. Written by `python -m benchmarks.sparse` from "
        "`sparse.jsonl`.\n"
    )
