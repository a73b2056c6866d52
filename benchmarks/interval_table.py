"""The Markdown table of `benchmarks.intervals`, from its JSON lines."""

import json

import numpy as np

from .ratios import paired_ratio
from .tables import markdown_lines

NAMES = {
    "quantile_alone": "quantile loss alone",
    "distribution_alone": "normal distribution alone",
    "split": "split",
    "split_scaled": "split, scaled by a model of the spread",
    "distribution_split": "split, scaled by the distribution's spread",
    "cross": "cross (CV+)",
    "cross_on_bins": "cross (CV+), on bins",
    "quantiles_split": "quantiles, split (CQR)",
    "quantiles_cross": "quantiles, cross",
    "quantiles_cross_on_bins": "quantiles, cross, on bins",
}


def write_table(lines, table):
    """Write the table of the JSON lines in the file `lines` to the file `table`."""
    cases, last = _read(lines)
    head = ["data set", "method", "coverage", "± s.e.", "worst fifth", "width", "its s.e."]
    rows = [[*head, "interval score", "processor seconds"]]
    for dataset, methods in cases.items():
        rows += [[dataset, *_cells(methods, name)] for name in NAMES if name in methods]
    saved = [["data set", "method", "time on bins / on raw values", "± s.e."]]
    for dataset, methods in cases.items():
        for name in ("cross", "quantiles_cross"):
            ratio = paired_ratio(_seconds(methods, f"{name}_on_bins"), _seconds(methods, name))
            saved.append([dataset, NAMES[name], *(f"{number:.3f}" for number in ratio)])
    text = [_introduction(cases, last), *markdown_lines(rows, [True, True])]
    text += ["\n## What bins that are made once save\n", _ABOUT_BINS]
    text += markdown_lines(saved, [True, True])
    table.write_text("\n".join(text) + "\n", encoding="utf-8")


def _read(lines):
    """Return {data set: {method: {seed: record}}} and the last record."""
    cases, record = {}, {}
    for line in lines.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        methods = cases.setdefault(record["dataset"], {})
        methods.setdefault(record["method"], {})[record["seed"]] = record
    return cases, record


def _cells(methods, name):
    records = list(methods[name].values())
    coverage, width, score, seconds = (
        np.array([record[key] for record in records])
        for key in ("coverage", "width", "interval_score", "cpu_seconds")
    )
    worst = np.mean([record["coverage_of_groups"] for record in records], axis=0).min()
    return [
        NAMES[name],
        *(f"{coverage.mean():.4f}", f"{_error(coverage):.4f}", f"{worst:.3f}"),
        *(f"{width.mean():.3f}", f"{_error(width):.3f}", f"{score.mean():.3f}"),
        f"{np.median(seconds):.2f}",
    ]


def _error(values):
    return np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan


def _seconds(methods, name):
    return {seed: record["cpu_seconds"] for seed, record in methods[name].items()}


_ABOUT_BINS = (
    "The same folds and settings; `bin_features` is counted. Ratio of the mean processor seconds, "
    "and the standard error of the paired ratios.\n"
)


def _introduction(cases, last):
    settings = last["settings"]
    n_splits = max(len(records) for methods in cases.values() for records in methods.values())
    versions = ", ".join(f"{name} {version}" for name, version in last["versions"].items())
    return (
        "# Intervals\n\n"
        f"Intervals for {last['confidence']:.0%} of the targets, means over {n_splits} random "
        f"splits with {last['n_train']:,} rows to learn from and {last['n_test']:,} to test on. "
        f"What is calibrated on rows of its own learns from {last['n_fit']:,} of them and is "
        f"calibrated on the rest; cross is five folds. {settings['n_estimators']} trees, learning "
        f"rate {settings['learning_rate']}, depth {settings['max_depth']}, min_child_weight "
        f"{settings['min_child_weight']}.\n\n"
        "`worst fifth`: the lowest coverage of five groups of the test rows by their predicted "
        "mean, after the mean over the splits. Width and interval score (the width, plus 20 times "
        "how far a target lies outside; Gneiting & Raftery 2007, eq. 43; lower is better) are in "
        "standard deviations of the target. `processor seconds`: of fitting and calibrating on one "
        f"thread, medians.\n\nCommit {last['commit']}; {versions}. Written by "
        "`python -m benchmarks.intervals` from `intervals.jsonl`.\n"
    )
