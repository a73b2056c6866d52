"""Turn the JSON lines of `benchmarks.run` into Markdown tables and a plot.

Run `python -m benchmarks.report benchmarks/results/speed-*.jsonl`.
"""

import argparse
import json
from pathlib import Path

import pandas as pd

from . import environment

OURS = "sklboost"


def main(arguments=None):
    """Write the report that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=environment.RESULTS / "speed.md")
    parser.add_argument("--plot", type=Path, help="image; default: beside the report, .png")
    options = parser.parse_args(arguments)

    records = read(options.files)
    sections = [_introduction(records, options.files), text(records)]
    if "fit" in set(records["kind"]):
        plot_file = options.plot or options.out.with_suffix(".png")
        plot(records, plot_file)
        sections.append(f"![Seconds to fit]({plot_file.name})")
    options.out.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    print(options.out.read_text(encoding="utf-8"))


def read(files):
    """Return the records of `files` as one DataFrame."""
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    if not lines:
        raise SystemExit(f"{', '.join(map(str, files))}: no lines there")
    return pd.DataFrame([json.loads(line) for line in lines])


def text(records):
    """Return the tables of `records`, Markdown."""
    return "\n\n".join(
        [*_fit_sections(records), *_start_section(records), *_memory_section(records)]
    )


def _introduction(records, files):
    machine, versions = records["machine"].iloc[-1], records["versions"].iloc[-1]
    settings = records["settings"].iloc[-1]
    commits = ", ".join(sorted({str(commit) for commit in records["commit"]}))
    return "\n".join(
        [
            "# Speed\n",
            f"- from {', '.join(f'`{file.name}`' for file in files)}, commit {commits}",
            f"- {machine['cpu']}, {machine['cores']} cores, {machine['system']}, Python "
            f"{machine['python']}",
            "- " + ", ".join(f"{name} {version}" for name, version in versions.items()),
            "- " + ", ".join(f"{name} {value}" for name, value in settings.items()),
            "",
            "Medians; in brackets half the interquartile range, in per cent of the median. "
            "`speed-up` is the fastest peer's median over that of sklboost.",
        ]
    )


def _fit_sections(records):
    fits = records[records["kind"] == "fit"]
    for n_threads, group in fits.groupby("threads"):
        n_threads = int(n_threads)
        where = f"n_threads = {n_threads}"
        yield f"## Fit, {where}, seconds\n\n" + _table(group, "fit_seconds")
        yield f"## Predict, {where}, seconds\n\n" + _table(group, "predict_seconds")
        yield f"## Test loss, {where}\n\n" + _table(group, "test_loss", timing=False)
    if not fits.empty and fits["others_cpu"].notna().all():
        seconds = (fits["fit_seconds"] + fits["predict_seconds"]).sum()
        share = 100 * fits["others_cpu"].sum() / seconds / fits["machine"].iloc[0]["cores"]
        yield (
            f"Meanwhile other processes used {max(share, 0):.0f} % of the processors. OpenMP "
            "libraries suffer most from them: run on a quiet machine."
        )


def _table(group, value, timing=True):
    """Return a Markdown table: a row a workload, a column a library."""
    libraries = list(dict.fromkeys(group["library"]))
    libraries.sort(key=lambda name: name != OURS)  # stable: ours first, the rest as they were run
    rows = [["workload", *libraries] + (["speed-up"] if timing else [])]
    rows.append(["---"] + ["--:"] * (len(rows[0]) - 1))
    for workload, of_workload in group.groupby("workload", sort=False):
        values = {name: part[value] for name, part in of_workload.groupby("library")}
        cells = [_cell(values.get(name), timing) for name in libraries]
        rows.append([workload, *cells] + ([_speed_up(values)] if timing else []))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(values, timing):
    if values is None:
        return ""
    median = values.median()
    if not timing:
        return f"{median:.5g}"
    spread = 50 * (values.quantile(0.75) - values.quantile(0.25)) / median
    return f"{median:.3g} ({spread:.0f} %)"


def _speed_up(values):
    medians = {name: part.median() for name, part in values.items()}
    ours = medians.pop(OURS, None)
    return f"{min(medians.values()) / ours:.2f}" if ours and medians else ""


def _start_section(records):
    starts = records[records["kind"] == "start"]
    if starts.empty:
        return
    rows = [["library", "start", "import", "first fit", "second fit"], ["---"] * 2 + ["--:"] * 3]
    columns = ["import_seconds", "first_fit_seconds", "second_fit_seconds"]
    for (library, start), part in starts.groupby(["library", "start"], sort=False):
        rows.append([library, start, *(f"{part[column].median():.3g}" for column in columns)])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    note = "`cold`: compiled in this process; `cached`: in an earlier one."
    workload = starts["workload"].iloc[0]
    yield f"## Start-up in a new process, {workload}, seconds\n\n{note}\n\n{table}"


def _memory_section(records):
    peaks = records[records["kind"] == "memory"]
    if not peaks.empty:
        table = _table(peaks, "peak_mib", timing=False)
        yield f"## Peak memory of a fit beyond the data, MiB\n\n{table}"


def plot(records, file):
    """Draw the median seconds to fit, one panel a number of threads, and save it to `file`."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fits = records[records["kind"] == "fit"]
    panels = [(int(n), group) for n, group in fits.groupby("threads")]
    figure, axes = plt.subplots(1, len(panels), figsize=(8 * len(panels), 4.5), squeeze=False)
    for axis, (n_threads, group) in zip(axes[0], panels, strict=True):
        medians = group.groupby(["workload", "library"], sort=False)["fit_seconds"].median()
        table = medians.unstack("library")
        order = sorted(table.columns, key=lambda name: name != OURS)
        table[order].plot.bar(ax=axis, rot=20, logy=True, xlabel="", ylabel="seconds (log scale)")
        axis.set_title(f"Fit, n_threads = {n_threads}")
        axis.grid(axis="y", alpha=0.3)
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    main()
