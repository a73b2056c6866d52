"""How long a fit takes, from the lines of benchmarks/results/speed.jsonl.

The medians of the table in README.md: binary log loss, 28 features, 100 trees of depth 6, two
threads.
"""

import json
from pathlib import Path
from statistics import median

from plot import Scale
from svg import PALE, TEAL, Drawing

ROWS = {"binary-1000x28": "1,000", "binary-10000x28": "10,000"} | {
    "binary-100000x28": "100,000",
    "binary-1000000x28": "1,000,000",
}
LIBRARIES = {
    "sklboost": ("sklboost", TEAL),
    "xgboost": ("XGBoost", "#8795a1"),
    "lightgbm": ("LightGBM", "#a9b4be"),
    "hist_gb": ("HistGradientBoosting", "#c9d1d8"),
}
BAR = 15


def read_medians(path: Path) -> dict[tuple[str, str], float]:
    """Return the median seconds of a fit by workload and library."""
    seconds: dict[tuple[str, str], list[float]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["kind"] == "fit" and record["threads"] == 2:
            key = record["workload"], record["library"]
            seconds.setdefault(key, []).append(record["fit_seconds"])
    return {key: median(own) for key, own in seconds.items()}


def draw(path: Path) -> str:
    medians = read_medians(path)
    drawing = Drawing(760, 410, "Seconds to fit, as multiples of those of sklboost")
    scale = Scale(0, 9.4, 130, 580)
    drawing.text(24, 34, "Seconds to fit", anchor="start", bold=True, size=16)
    words = "bars: how many times as long as sklboost; two cores, 100 trees of depth 6, 28 features"
    drawing.text(24, 54, words, anchor="start", color=PALE, size=13)
    for k, (workload, rows) in enumerate(ROWS.items()):
        top = 78 + k * (len(LIBRARIES) * BAR + 24)
        drawing.text(118, top + 2 * BAR + 4, f"{rows} rows", anchor="end")
        for n, (library, (name, color)) in enumerate(LIBRARIES.items()):
            own, ours = medians[workload, library], medians[workload, "sklboost"]
            y, stop = top + n * BAR, scale(own / ours)
            drawing.box(scale.start, y, stop - scale.start, BAR - 2, color, color)
            words = f"{own:.3g} s" + (f"  {name}" if k == 0 else "")
            drawing.text(stop + 8, y + 11, words, anchor="start", size=12, bold=n == 0)
    return str(drawing)
