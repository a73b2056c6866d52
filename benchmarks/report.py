"""Turn the JSON lines of `benchmarks.run` into Markdown tables, with aims and ratios, and plots.

Run `python -m benchmarks.report benchmarks/results/speed-*.jsonl`.
"""

import argparse
import json
from pathlib import Path

import pandas as pd

from . import aims, environment, plots, tables, workloads

# by the name of the report
TITLES = {
    "speed-zen3": "Speed, Zen 3",
    "speed-zen4": "Speed, Zen 4",
    "waits": "Waiting",
    "memory": "Memory",
    "validation": "Time added by validation rows",
}


def main(arguments=None):
    """Write the report that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=environment.RESULTS / "speed.md")
    options = parser.parse_args(arguments)
    records = read(options.files)
    title = TITLES.get(options.out.stem, "Speed")
    sections = [f"# {title}", _introduction(records, options.files), *text(records)]
    sections += [f"![{title}]({file.name})" for title, file in plots.draw(records, options.out)]
    options.out.write_text("\n\n".join(filter(None, sections)) + "\n", encoding="utf-8")
    print(f"\n{options.out.read_text(encoding='utf-8')}\nwritten to {options.out}")


def read(files):
    """Return the records of `files` as one DataFrame."""
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    if not lines:
        raise SystemExit(f"{', '.join(map(str, files))}: no lines there")
    return pd.DataFrame([json.loads(line) for line in lines])


def text(records):
    """Yield the sections of the report, Markdown."""
    for kind, section in SECTIONS.items():
        of_kind = records[records["kind"] == kind]
        if not of_kind.empty:
            yield from section(of_kind)
            yield f"{tables.others(of_kind)} {tables.meetings(of_kind)}".strip()


def _introduction(records, files):
    machine, versions = records["machine"].iloc[-1], records["versions"].iloc[-1]
    commits = ", ".join(sorted({str(commit) for commit in records["commit"]}))
    return "\n".join(
        [
            f"- from {', '.join(f'`{file.name}`' for file in files)}, commit {commits}",
            f"- {machine['cpu']}, {_cores(machine)}, {machine['system']}, Python "
            f"{machine['python']}",
            "- " + ", ".join(f"{name} {version}" for name, version in versions.items()),
            "- but where a table says otherwise: "
            + ", ".join(f"{name} {value}" for name, value in tables.DEFAULTS.items()),
            "",
            "Medians; in brackets half the interquartile range, in per cent of the median. "
            "`fastest / ours` is the median of the fastest peer over that of sklboost, beside what "
            "it should be; bold where it falls short. LightGBM with quantised gradients, which are "
            "less precise, counts apart.",
        ]
    )


def _cores(machine):
    n_processors = machine.get("processors", machine["cores"])
    return f"{machine['cores']} of {n_processors} cores"


def _fit(records):
    yield "## Fit, seconds\n\n" + tables.compare(
        records, "fit_seconds", lambda name: aims.fit_ratios(workloads.fit_aim(name))
    )
    yield (
        "## Test loss\n\nRoot mean squared error for regression, mean log loss otherwise. "
        f"`ours / best`: of {', '.join(aims.ACCURATE)}. For several classes the same learning rate "
        "is not the same step, see `benchmarks/README.md`.\n\n"
        + tables.losses(records, "test_loss")
    )


def _predict(records):
    n_rows = int(records["n_test"].iloc[0])
    yield f"## Predict, {n_rows:,} rows, seconds\n\n" + tables.compare(
        records, "predict_seconds", lambda name: aims.PREDICT
    )


def _predict_row(records):
    records = records.assign(microseconds=1e6 * records["row_seconds"])
    ours = records.loc[records["library"] == aims.OURS]
    limits = [
        f"{tables.threads(n_threads)}: "
        + aims.judge_limit(group["microseconds"].median(), 1e6 * aims.MAX_ROW_SECONDS)
        for n_threads, group in ours.groupby("threads", sort=False)
    ]
    yield (
        "## Predict, one row, microseconds\n\n"
        + tables.compare(records, "microseconds", lambda name: aims.PREDICT_ROW)
        + f"\n\nLimit, {'; '.join(limits)}."
    )


def _grid(records):
    yield (
        "## Grid search, 12 candidates x 5 folds, seconds\n\n"
        f'In so many processes of joblib or, where it says "{aims.THREADING.strip()}", threads of '
        'one process (`parallel_config("threading")`). Ratios are over the fastest peer in '
        "either.\n\n" + tables.compare(records, "search_seconds", lambda name: aims.GRID)
    )
    in_processes = records[~records["library"].str.endswith(aims.THREADING)]
    yield "### Best mean log loss of the folds\n\n" + tables.losses(in_processes, "search_loss")


def _memory(records):
    yield "## Peak memory of a fit above the data, MiB\n\n" + tables.compare(
        records, "peak_mib", lambda name: aims.MEMORY
    )


def _validation(records):
    rows = []
    for where, group in tables.groups(records):
        added = group.groupby("library", sort=False)["added_ratio"].median()
        cells = {name: f"{100 * value:.1f} %" for name, value in added.items()}
        if aims.OURS in added:
            percent = aims.judge_limit(100 * added[aims.OURS], 100 * aims.MAX_ADDED)
            cells[aims.OURS] = f"{percent} %"
        rows.append(where | cells)
    yield (
        "## Time added by scoring validation rows after every round\n\n"
        "One row for every four of the training, the default metric; median over pairs of fits "
        "with and without.\n\n" + tables.markdown(rows)
    )


def _start(records):
    rows = []
    for (library, start), group in records.groupby(["library", "start"], sort=False):
        seconds = {
            title: tables.spread(group[column])
            for title, column in (
                ("import", "import_seconds"),
                ("first fit", "first_fit_seconds"),
                ("second fit", "second_fit_seconds"),
            )
        }
        limit = ""
        if library == aims.OURS:
            first = group["first_fit_seconds"].median()
            limit = aims.judge_limit(first, aims.MAX_FIRST_FIT_SECONDS[start])
        rows.append({"library": library, "start": start, **seconds, "limit of the first": limit})
    yield (
        f"## Start-up in a new process, {records['workload'].iloc[0]}, seconds\n\n"
        "`cold`: nothing compiled on this machine yet; `cached`: in an earlier process.\n\n"
        + tables.markdown(rows, text=("library", "start"))
    )


def _growth(records):
    records = records.assign(per_row=1e6 * records["fit_seconds"] / records["n_train"])
    for n_threads, of_threads in records.groupby("threads"):
        rows, medians = [], []
        for n_rows, group in of_threads.groupby("n_train"):
            medians.append(group["per_row"].median())
            rows.append(
                {
                    "rows": f"{int(n_rows):,}",
                    "fit, seconds": tables.spread(group["fit_seconds"]),
                    "microseconds a row": f"{medians[-1]:.3g}",
                }
            )
        ratio = aims.judge_limit(max(medians) / min(medians), aims.MAX_GROWTH)
        yield (
            f"## Growth of a fit with the rows, {tables.threads(n_threads)}\n\n"
            f"{tables.markdown(rows)}\n\nSlowest row / fastest: {ratio}."
        )


def _floor(records):
    rows = []
    for where, group in tables.groups(records):
        seconds = {
            title: tables.spread(group[column])
            for title, column in (
                ("one update, ns", "update_nanoseconds"),
                ("floor, s", "floor_seconds"),
                ("fit, s", "fit_seconds"),
            )
        }
        ratio = aims.judge_limit(group["floor_ratio"].median(), aims.MAX_FLOOR_RATIO)
        rows.append(where | seconds | {"fit / floor": ratio})
    yield (
        "## The floor\n\nThe histogram updates alone: rows x features x (1 + depth / 2) x trees x "
        "the time of one update, measured beside the fit on one thread / threads.\n\n"
        + tables.markdown(rows)
    )


def _kernels(records):
    rows = [
        {
            "kernel": name,
            "per": group["unit"].iloc[0],
            "nanoseconds": tables.spread(group["nanoseconds"]),
        }
        for name, group in records.groupby("kernel", sort=False)
    ]
    yield (
        f"## Kernels, {records['workload'].iloc[0]}, one thread\n\n"
        + tables.markdown(rows, text=("kernel", "per"))
    )


def _phases(records):
    for where, group in tables.groups(records):
        medians = tables.phase_medians(group)
        total, fit = medians.sum(), group["fit_seconds"].median()
        rows = [
            {"phase": name, "seconds": f"{seconds:.3g}", "share": f"{100 * seconds / total:.0f} %"}
            for name, seconds in medians.items()
        ]
        yield (
            f"## Phases of a fit, {where['workload']}, {tables.threads(where['threads'])}\n\n"
            + tables.markdown(rows, text=("phase",))
            + f"\n\nTogether {total:.3g} s, called one by one; a plain fit takes {fit:.3g} s."
        )


def _waits(records):
    for where, group in tables.groups(records):
        median = group.sort_values("fit_seconds").iloc[(len(group) - 1) // 2]
        rows = [
            {
                "members meet for": phase,
                "meetings": f"{each['meetings']:,}",
                "waiting": f"{100 * each['wait_seconds'] / median['fit_seconds']:.1f} %",
                "last one late, µs: median": f"{each['late_microseconds'][0]:.1f}",
                "of 99 %": f"{each['late_microseconds'][2]:,.0f}",
                "release, µs": f"{each['release_microseconds']:.1f}",
            }
            for phase, each in median["phases"].items()
        ]
        yield (
            f"## Waiting, {where['workload']}, a team of {where['threads']} on two processors\n\n"
            f"{tables.markdown(rows, text=('members meet for',))}\n\n"
            f"Of {median['fit_seconds']:.3g} s, the median of the fits, a member waits "
            f"{100 * median['wait_ratio']:.0f} %."
        )


def _expected(records):
    for workload, group in records.groupby("workload", sort=False):
        latest = group.drop_duplicates(["threads", "latency"], keep="last")
        alone = latest.loc[latest["threads"] == 1, "seconds"].median()
        rows = [
            {
                "members": str(each["threads"]),
                "a cache line comes in": f"{1e9 * each['latency']:.0f} ns",
                "seconds": f"{each['seconds']:.3g}",
                "speed-up": f"{alone / each['seconds']:.1f}",
            }
            | {
                f"{part}, %": f"{100 * each[part] / each['seconds']:.0f}"
                for part in ("work", "python", "serial", "uneven", "merging", "meetings")
            }
            for _, each in latest[latest["threads"] > 1].iterrows()
        ]
        settings = tables.describe_settings(group["settings"].iloc[0])
        yield (
            f"## Expected of many cores, {workload}{settings}\n\nBy a model, not measured; see "
            f"docs/explanation/threads.md.\n\n{tables.markdown(rows, text=())}"
        )


SECTIONS = {
    "fit": _fit,
    "predict": _predict,
    "predict_row": _predict_row,
    "grid": _grid,
    "memory": _memory,
    "validation": _validation,
    "start": _start,
    "growth": _growth,
    "floor": _floor,
    "kernel": _kernels,
    "phases": _phases,
    "waits": _waits,
    "cores": _expected,
}


if __name__ == "__main__":
    main()
