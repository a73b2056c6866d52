"""Markdown tables of records: medians, their spread, ratios beside their aims."""

import pandas as pd

from . import aims, peers

DEFAULTS = peers.Settings()._asdict()
LEAST_SECONDS = 1.0  # processor time is counted in hundredths of a second: below, it says little


def markdown(rows, text=("workload",)):
    """Return a table of rows, dicts of cells by column; columns without any content are left out.

    Columns are aligned to the right, as numbers are, but for those named in `text`.
    """
    columns = dict.fromkeys(column for row in rows for column, cell in row.items() if cell)
    cells = [list(columns), *([row.get(column, "") for column in columns] for row in rows)]
    is_text = [column in text for column in columns]
    return "\n".join(markdown_lines(cells, is_text))


def markdown_lines(rows, is_text=(True,)):
    """Return the lines of a table of rows, lists of cells, the first of them the head.

    Columns are aligned to the right, but for those that `is_text` marks; behind its end none is.
    """
    marks = [*is_text, *[False] * (len(rows[0]) - len(is_text))]
    rule = ["---" if own else "--:" for own in marks]
    return [f"| {' | '.join(row)} |" for row in [rows[0], rule, *rows[1:]]]


def compare(records, value, ratios_of):
    """Return a table: a row a workload and number of threads, a column a library, then ratios.

    Parameters
    ----------
    records : DataFrame
        Of one kind.
    value : str
        The column that is compared.
    ratios_of : callable
        ``ratios_of(name of the workload)`` gives the `aims.Ratio` that it has.
    """
    rows = []
    for where, group in groups(records):
        by_library = group.groupby("library")[value]
        values = {library: by_library.get_group(library) for library in libraries(group)}
        medians = {library: series.median() for library, series in values.items()}
        cells = {library: spread(series) for library, series in values.items()}
        ratios = {
            ratio.title: aims.judge_ratio(aims.ratio_of(medians, ratio), ratio.at_least)
            for ratio in ratios_of(group["workload"].iloc[0])
        }
        rows.append(where | cells | ratios)
    return markdown(rows)


def losses(records, value):
    """Return a table of median losses, the last column ours over the best of the accurate peers."""
    rows = []
    for where, group in groups(records):
        medians = group.groupby("library")[value].median().to_dict()
        cells = {library: f"{medians[library]:.5g}" for library in libraries(group)}
        ratio = aims.judge_limit(aims.loss_ratio(medians), aims.MAX_LOSS_RATIO, form=".4f")
        rows.append(where | cells | {"ours / best": ratio})
    return markdown(rows)


def groups(records):
    """Yield the first two cells of a row, workload and threads, and the records it is made of."""
    label = records["workload"] + records["settings"].map(describe_settings)
    for (workload, n_threads), group in records.groupby([label, "threads"], sort=False):
        yield {"workload": workload, "threads": str(int(n_threads))}, group


def threads(number):
    """Return "1 thread" or "2 threads"."""
    return f"{int(number)} thread{'' if int(number) == 1 else 's'}"


def describe_settings(settings):
    """Return the settings that are not the default ones, in brackets; nothing if there are none."""
    changed = [f"{name} {value}" for name, value in settings.items() if value != DEFAULTS.get(name)]
    return f" ({', '.join(changed)})" if changed else ""


def libraries(records):
    """Return the names of the libraries: ours first, the rest as they come."""
    names = records["library"].unique()
    return sorted(names, key=lambda name: not name.startswith(aims.OURS))


def spread(values):
    """Return "median (spread %)" of a Series; the bare value of a single one."""
    median = values.median()
    if len(values) == 1:
        return f"{median:.3g}"
    half = 50 * (values.quantile(0.75) - values.quantile(0.25)) / median
    return f"{median:.3g} ({half:.0f} %)"


def phase_medians(records):
    """Return the median seconds of every phase, a Series in the order of the fit."""
    return pd.DataFrame(list(records["phase_seconds"])).median()


def others(records):
    """Return one sentence on how busy other processes kept the machine; nothing if not known."""
    if "elapsed_seconds" not in records or records["others_cpu"].isna().any():
        return ""
    if (seconds := records["elapsed_seconds"].sum()) < LEAST_SECONDS:
        return ""
    n_processors = records["machine"].iloc[0]["processors"]
    share = 100 * records["others_cpu"].sum() / seconds / n_processors
    text = f"Meanwhile other processes used {max(share, 0):.0f} % of the processors"
    long = records[records["elapsed_seconds"] >= LEAST_SECONDS]
    if long.empty:
        return f"{text}."
    worst = (100 * long["others_cpu"] / long["elapsed_seconds"] / n_processors).max()
    return f"{text}, in the worst turn {max(worst, 0):.0f} %."


def meetings(records):
    """Return one sentence on how long two threads took to meet; nothing if not measured."""
    if "meeting_ns" not in records or records["meeting_ns"].isna().any():
        return ""
    low, middle, high = records["meeting_ns"].quantile([0.1, 0.5, 0.9])
    return (
        f"A meeting of two threads took {middle:.0f} ns (median), {low:.0f} to {high:.0f} ns "
        "in eight of ten turns."
    )
