"""The Markdown table of `benchmarks.categories`, from its JSON lines."""

import json

import numpy as np

from .ratios import as_text, mean_of, paired_ratio
from .tables import markdown_lines

OURS = "sklboost"
RIVALS = ("xgboost", "lightgbm")  # ours is compared with the better of these
LIBRARIES = (OURS, *RIVALS, "hist_gb", "catboost")


def write_table(lines, table):
    """Write the tables of the JSON lines in the file `lines` to the file `table`."""
    records = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    losses, seconds = _by_split(records, "test_loss"), _by_split(records, "fit_cpu_seconds")
    facts = {record["dataset"]: record for record in records}
    head = ["data set", "train x features", "splits", *LIBRARIES]
    native = [[*head, "ours / best", "± s.e.", "fit, best / ours"]]
    codes = [["data set", *LIBRARIES, "ours, categories / codes", "± s.e.", "theirs", "± s.e."]]
    for name, fact in facts.items():
        ours, rivals = losses[name, OURS, "native"], _rivals(losses, name)
        best = min(rivals, key=lambda library: mean_of(rivals[library]))
        own_codes, best_codes = (losses[name, library, "codes"] for library in (OURS, best))
        native.append(
            [
                name,
                f"{fact['n_train']:,} x {fact['n_features']}",
                str(len(ours)),
                *_means(losses, name, "native"),
                *as_text(*paired_ratio(ours, rivals[best])),
                _speed(seconds, name),
            ]
        )
        codes.append(
            [
                name,
                *_means(losses, name, "codes"),
                *as_text(*paired_ratio(ours, own_codes)),
                *as_text(*paired_ratio(rivals[best], best_codes)),
            ]
        )
    text = [
        _introduction(records[-1]),
        *markdown_lines(native),
        "",
        _CODES,
        "",
        *markdown_lines(codes),
    ]
    table.write_text("\n".join(text) + "\n", encoding="utf-8")


_CODES = (
    "The same rows with categories as ordinal codes, in columns that nothing tells from numbers; "
    "and the loss with categories over that with codes, ours and that of the best rival."
)


def _by_split(records, key):
    """Return {(data set, library, way): {seed: figure}}."""
    figures = {}
    for record in records:
        own = figures.setdefault((record["dataset"], record["library"], record["way"]), {})
        own[record["seed"]] = record[key]
    return figures


def _rivals(figures, name):
    return {library: figures[name, library, "native"] for library in RIVALS}


def _means(losses, name, way):
    """Return a cell for each library, empty for one that cannot be trained so."""
    return [
        f"{mean_of(losses[name, library, way]):.5g}" if (name, library, way) in losses else ""
        for library in LIBRARIES
    ]


def _speed(seconds, name):
    """Return the seconds of the fastest rival over ours, medians over the splits."""
    fastest = min(np.median(list(own.values())) for own in _rivals(seconds, name).values())
    return f"{fastest / np.median(list(seconds[name, OURS, 'native'].values())):.1f}"


def _introduction(last):
    settings = last["settings"]
    versions = ", ".join(f"{name} {version}" for name, version in last["versions"].items())
    return (
        "# Held-out loss with categories\n\n"
        f"{settings['n_estimators']} trees, learning rate {settings['learning_rate']}, depth "
        f"{settings['max_depth']}, lambda {settings['reg_lambda']}, min_child_weight "
        f"{settings['min_child_weight']}, no early stopping; all that concerns categories at each "
        "library's defaults. Root mean squared error for regression (ames_housing: of the log of "
        "the price), mean log loss otherwise, mean over the splits; lower is better. `ours / best` "
        f"compares with the better of {' and '.join(RIVALS)}; its standard error is that of the "
        "paired ratios. `zipf-5000` and `zipf-70000` are synthetic: a feature of so many levels "
        "beside five numbers. HistGradientBoosting takes 255 levels at most.\n\n"
        "`fit, best / ours`: processor seconds of the fastest of these two over ours, "
        f"{last['threads']} thread(s) each, medians over the splits. Other work used the machine "
        f"meanwhile: a rough figure.\n\nCommit {last['commit']}; {versions}. Written by `python -m "
        "benchmarks.categories` from `categories.jsonl`.\n"
    )
