"""The pictures of the report: seconds to fit, and the phases of a fit."""

from . import tables

MIN_LABELLED = 0.03  # of the longest bar: narrower phases have no room for a number


def draw(records, report):
    """Draw what the records have figures for; yield (title, file), the files beside the report."""
    import matplotlib

    matplotlib.use("Agg")
    for kind, title, function, suffix in (
        ("fit", "Seconds to fit", draw_fits, ".png"),
        ("phases", "Phases of a fit", draw_phases, "-phases.png"),
    ):
        of_kind = records[records["kind"] == kind]
        if not of_kind.empty:
            file = report.with_name(report.stem + suffix)
            figure = function(of_kind)
            figure.savefig(file, dpi=120)
            yield title, file


def draw_fits(records):
    """Return a figure of the median seconds to fit, one panel a number of threads."""
    from matplotlib.figure import Figure

    panels = [(int(n_threads), group) for n_threads, group in records.groupby("threads")]
    figure = Figure(figsize=(12, 4.5 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), squeeze=False)[:, 0]
    for axis, (n_threads, group) in zip(axes, panels, strict=True):
        medians = group.groupby(["workload", "library"], sort=False)["fit_seconds"].median()
        table = medians.unstack("library")[tables.libraries(group)]
        table.plot.bar(ax=axis, rot=20, logy=True, xlabel="", ylabel="seconds (log scale)")
        axis.set_title(f"Fit, {tables.threads(n_threads)}")
        axis.grid(axis="y", alpha=0.3)
        axis.get_legend().remove()
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=6)
    return figure


def draw_phases(records):
    """Return a figure with a bar for each workload and number of threads, a colour a phase."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    bars = {
        f"{where['workload']}\n{tables.threads(where['threads'])}": tables.phase_medians(group)
        for where, group in tables.groups(records)
    }
    figure = Figure(figsize=(10, 1.6 + 0.8 * len(bars)), layout="constrained")
    axis = figure.subplots()
    starts = dict.fromkeys(bars, 0.0)
    longest = max(seconds.sum() for seconds in bars.values())
    phases = next(iter(bars.values())).index
    for phase, color in zip(phases, colormaps["tab20"].colors, strict=False):
        for name, seconds in bars.items():
            bar = axis.barh(name, seconds[phase], left=starts[name], color=color)
            starts[name] += seconds[phase]
            if seconds[phase] > MIN_LABELLED * longest:
                axis.bar_label(bar, [f"{seconds[phase]:.2g}"], label_type="center", fontsize=8)
        bar.set_label(phase)
    axis.invert_yaxis()  # the first bar on top
    axis.set_xlabel("seconds")
    figure.legend(loc="outside upper center", ncols=5, frameon=False)
    return figure
