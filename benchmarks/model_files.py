"""Seconds to save and to load a model, and the bytes of its file, beside other libraries.

A classifier of two classes, depth 6, 28 features, 20,000 rows, with 100 and with 1,000 trees. A
turn saves a model, loads the file twice (the second time counts) and, as long as there are turns of
new processes, loads it in one.

Run `python -m benchmarks.model_files`; it writes `benchmarks/results/model_files.jsonl` and `.md`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import pandas as pd

from . import datasets, environment, measure, peers
from .model_forms import FORMS, timed
from .records import add_output_options, write_results
from .tables import markdown_lines
from .turns import Options, take_turns

DATASET = "binary-20000x28"
# What is compared: our files, which XGBoost opens, and XGBoost's own of the same kind.
RIVALS = {
    "sklboost JSON": "XGBoost JSON",
    'sklboost JSON, format="sklboost"': "XGBoost JSON",
    "sklboost UBJSON": "XGBoost UBJSON",
    'sklboost UBJSON, format="sklboost"': "XGBoost UBJSON",
}


def main(arguments=None):
    """Measure all forms, then write the table."""
    options = _parse(arguments)
    shown = ("trees", "library", "bytes", "save_cpu_seconds", "load_cpu_seconds")
    write_results("model_files", _records(options), shown, write_table, options)


def _records(options):
    dataset = datasets.load(DATASET)
    constant = environment.describe() | {"dataset": dataset.name}
    libraries = peers.choose(["sklboost", "xgboost", "lightgbm"])
    forms = [name for name, form in FORMS.items() if form.library in libraries]
    for n_trees in options.trees:
        settings = peers.Settings(n_estimators=n_trees)
        models = {name: measure.fit(name, dataset, settings, 1) for name in libraries}
        with tempfile.TemporaryDirectory() as folder:
            turn_of = partial(_save_and_load, models, Path(folder), options.processes)
            for turn in take_turns(Options(forms, options.repeats, options.budget), turn_of):
                common = {"kind": "model_files", "time": environment.now(), "trees": n_trees}
                yield common | constant | turn


def _save_and_load(models, folder, n_processes, name, repeat):
    form = FORMS[name]
    path = str(folder / f"model.{form.suffix}")
    saved = timed(form.save, models[form.library], path)
    form.load(path)
    loaded = timed(form.load, path)
    return {
        "bytes": Path(path).stat().st_size,
        "save_seconds": saved[0],
        "save_cpu_seconds": saved[1],
        "load_seconds": loaded[0],
        "load_cpu_seconds": loaded[1],
        **(_in_new_process(name, path) if repeat < n_processes else {}),
    }


def _in_new_process(name, path):
    command = (sys.executable, "-m", "benchmarks.model_forms", name, path)
    done = subprocess.run(
        command,
        cwd=environment.REPOSITORY,
        # an installed package is not compiled to bytecode in each process
        env={key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def write_table(lines, table):
    """Write medians of the JSON lines in the file `lines`, and ratios, to the file `table`."""
    records = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    frame = pd.DataFrame(records)
    frame["start_cpu_seconds"] = frame["import_cpu_seconds"] + frame["first_cpu_seconds"]
    medians = frame.groupby(["trees", "library"], sort=False).median(numeric_only=True)
    text = [
        _introduction(records[-1]),
        *markdown_lines(_rows_of_figures(medians), (False, True)),
        "\n## Loading: XGBoost's time over ours\n",
        *markdown_lines(_rows_of_ratios(medians), (False, True)),
    ]
    table.write_text("\n".join(text) + "\n", encoding="utf-8")


def _rows_of_figures(medians):
    columns = {
        "save": "save_cpu_seconds",
        "load": "load_cpu_seconds",
        "first load": "first_cpu_seconds",
        "import and first load": "start_cpu_seconds",
    }
    rows = [["trees", "form", "MB", *(f"{title}, ms" for title in columns)]]
    for (n_trees, name), of_form in medians.iterrows():
        times = [f"{1e3 * of_form[column]:.3g}" for column in columns.values()]
        rows.append([f"{n_trees:,}", name, f"{of_form['bytes'] / 1e6:.2f}", *times])
    return rows


def _rows_of_ratios(medians):
    columns = {
        "processor": "load_cpu_seconds",
        "by the clock": "load_seconds",
        "first load, processor": "first_cpu_seconds",
        "by the clock ": "first_seconds",
        "import and first load, processor": "start_cpu_seconds",
    }
    rows = [["trees", "form", *(title.strip() for title in columns)]]
    for n_trees in medians.index.unique("trees"):
        of_trees = medians.loc[n_trees]
        for ours, theirs in RIVALS.items():
            if {ours, theirs} <= set(of_trees.index):
                ratios = (
                    of_trees.loc[theirs, column] / of_trees.loc[ours, column]
                    for column in columns.values()
                )
                rows.append([f"{n_trees:,}", ours, *(f"{ratio:.2f}" for ratio in ratios)])
    return rows


def _introduction(last):
    versions = ", ".join(f"{name} {version}" for name, version in last["versions"].items())
    return (
        "# Model files\n\n"
        f"Classifiers of two classes on {last['dataset']}, depth 6, each library's own trees at "
        "equal settings. Milliseconds of the processor, medians of turns; the second load of a "
        "file in a process, and the first in a new one, which has imported NumPy. Without the "
        "machine code of a wheel sklboost's first load has numba's first call of a kernel in it, "
        "some 15 ms, and its import that of numba. Other work used the machine meanwhile "
        "(`others_cpu` in the JSON).\n\n"
        f"Commit {last['commit']}; {versions}. Written by `python -m benchmarks.model_files` from "
        "`model_files.jsonl`.\n"
    )


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model_files", description=__doc__)
    add = parser.add_argument
    add("--trees", type=int, nargs="+", default=[100, 1_000])
    add("--repeats", type=int, default=15)
    add("--processes", type=int, default=5, help="turns that also start a process")
    add("--budget", type=float, default=600.0, help="seconds for all turns of one form")
    add_output_options(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
