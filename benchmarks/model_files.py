"""Seconds to save and to load a model, and the bytes of its file, beside other libraries.

A classifier of two classes, depth 6, 28 features, 20,000 rows, with 100 and with 1,000 trees. A
turn saves a model, loads the file twice (the second time counts) and, as long as there are turns of
new processes, loads it in one.

Run `python -m benchmarks.model_files`; it writes `model_files.jsonl` and `.md`.
"""

import importlib
import os
import pickle
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from . import datasets, peers, runner

DATASET = "binary-20000x28"

# --- the kinds of files ---------------------------------------------------------------------------


class Form(NamedTuple):
    """A kind of file of one library."""

    library: str
    suffix: str
    save: Callable  # (model, path)
    load: Callable  # (path) -> model


def _load_ours(path):
    import sklboost

    return sklboost.load_model(path)


def _save_pickle(model, path):
    with open(path, "wb") as file:
        pickle.dump(model, file, protocol=pickle.HIGHEST_PROTOCOL)


def _load_pickle(path):
    with open(path, "rb") as file:
        return pickle.load(file)


def _save_joblib(model, path):
    import joblib

    joblib.dump(model, path)


def _load_joblib(path):
    import joblib

    return joblib.load(path)


def _load_xgboost(path):
    import xgboost

    model = xgboost.XGBClassifier()
    model.load_model(path)
    return model


def _save_lightgbm(model, path):
    model.booster_.save_model(path)


def _load_lightgbm(path):
    import lightgbm

    return lightgbm.Booster(model_file=path)


def _save(model, path, **options):
    model.save_model(path, **options)


_save_alone = partial(_save, format="sklboost")
FORMS = {
    "sklboost JSON": Form("sklboost", "json", _save, _load_ours),
    "sklboost UBJSON": Form("sklboost", "ubj", _save, _load_ours),
    'sklboost JSON, format="sklboost"': Form("sklboost", "json", _save_alone, _load_ours),
    'sklboost UBJSON, format="sklboost"': Form("sklboost", "ubj", _save_alone, _load_ours),
    "sklboost pickle": Form("sklboost", "pkl", _save_pickle, _load_pickle),
    "sklboost joblib": Form("sklboost", "joblib", _save_joblib, _load_joblib),
    "XGBoost JSON": Form("xgboost", "json", _save, _load_xgboost),
    "XGBoost UBJSON": Form("xgboost", "ubj", _save, _load_xgboost),
    "XGBoost pickle": Form("xgboost", "pkl", _save_pickle, _load_pickle),
    "LightGBM text": Form("lightgbm", "txt", _save_lightgbm, _load_lightgbm),
}

# What is compared: our files, which XGBoost opens, and XGBoost's own of the same kind.
RIVALS = {
    "sklboost JSON": "XGBoost JSON",
    'sklboost JSON, format="sklboost"': "XGBoost JSON",
    "sklboost UBJSON": "XGBoost UBJSON",
    'sklboost UBJSON, format="sklboost"': "XGBoost UBJSON",
}


# --- measuring ------------------------------------------------------------------------------------


def main(arguments=None):
    """Measure all forms, then write the table."""
    parser = runner.parser("benchmarks.model_files", __doc__)
    add = parser.add_argument
    add("--trees", type=int, nargs="+", default=[100, 1_000])
    add("--repeats", type=int, default=15)
    add("--processes", type=int, default=5, help="turns that also start a process")
    add("--budget", type=float, default=600.0, help="seconds for all turns of one form")
    options = parser.parse_args(arguments)
    shown = ("trees", "library", "bytes", "save_cpu_seconds", "load_cpu_seconds")
    runner.write_results("model_files", _records(options), shown, write_table, options)


def _records(options):
    dataset = datasets.load(DATASET)
    libraries = peers.choose(["sklboost", "xgboost", "lightgbm"])
    forms = [name for name, form in FORMS.items() if form.library in libraries]
    for n_trees in options.trees:
        settings = peers.Settings(n_estimators=n_trees)
        models = {name: peers.fit(name, dataset, settings, 1) for name in libraries}
        with tempfile.TemporaryDirectory() as folder:
            turn_of = partial(_save_and_load, models, Path(folder), options.processes)
            turns = runner.Options(forms, options.repeats, options.budget)
            for turn in runner.take_turns(turns, turn_of):
                yield {"trees": n_trees, "dataset": dataset.name, **turn}


def _save_and_load(models, folder, n_processes, name, repeat):
    form = FORMS[name]
    path = str(folder / f"model.{form.suffix}")
    saved = _timed(form.save, models[form.library], path)
    form.load(path)
    loaded = _timed(form.load, path)
    first = {}
    if repeat < n_processes:
        # an installed package is not compiled to bytecode in each process
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        job = ("benchmarks.model_files", name, path)
        first = runner.in_child(*job, environment=environment)
    return {
        "bytes": Path(path).stat().st_size,
        "save_seconds": saved[0],
        "save_cpu_seconds": saved[1],
        "load_seconds": loaded[0],
        "load_cpu_seconds": loaded[1],
        **first,
    }


def _timed(call, *arguments):
    """Return the seconds of a call by the clock, and those of the processor in all threads."""
    start, cpu_start = time.perf_counter(), time.process_time()
    call(*arguments)
    return time.perf_counter() - start, time.process_time() - cpu_start


def _load_here(name, path):
    """Import the library and load a file, each timed; NumPy is there already."""
    form = FORMS[name]
    imported = _timed(importlib.import_module, form.library)
    first = _timed(form.load, path)
    return {
        "import_seconds": imported[0],
        "import_cpu_seconds": imported[1],
        "first_seconds": first[0],
        "first_cpu_seconds": first[1],
    }


# --- tables ---------------------------------------------------------------------------------------


def write_table(records):
    """Return the lines of the page `model_files.md`."""
    medians = {}  # {(trees, form): {figure: median}}; the figures of new processes are fewer
    for key, own in runner.grouped(records, "trees", "library").items():
        for record in own:
            if "first_cpu_seconds" in record:
                start = record["import_cpu_seconds"] + record["first_cpu_seconds"]
                record["start_cpu_seconds"] = start
        figures = [name for name in own[0] if name.endswith("seconds") or name == "bytes"]
        medians[key] = {
            name: np.median([record[name] for record in own if name in record]) for name in figures
        }
    shown = {
        "save": "save_cpu_seconds",
        "load": "load_cpu_seconds",
        "first load": "first_cpu_seconds",
        "import and first load": "start_cpu_seconds",
    }
    rows = [["form", "trees", "MB", *(f"{title}, ms" for title in shown)]]
    for (n_trees, name), own in medians.items():
        times = [f"{1e3 * own[column]:.3g}" for column in shown.values()]
        rows.append([name, f"{n_trees:,}", f"{own['bytes'] / 1e6:.2f}", *times])
    compared = {
        "processor": "load_cpu_seconds",
        "by the clock": "load_seconds",
        "first load, processor": "first_cpu_seconds",
        "first load, by the clock": "first_seconds",
        "import and first load, processor": "start_cpu_seconds",
    }
    ratios = [["form", "trees", *compared]]
    for (n_trees, name), own in medians.items():
        if (rival := medians.get((n_trees, RIVALS.get(name)))) is not None:
            each = [f"{rival[column] / own[column]:.2f}" for column in compared.values()]
            ratios.append([name, f"{n_trees:,}", *each])
    return [
        "# Model files\n",
        f"Classifiers of two classes on {records[-1]['dataset']}, depth 6, each library's own "
        "trees at equal settings. Milliseconds of the processor, medians of turns; the second load "
        "of a file in a process, and the first in a new one, which has imported NumPy. Without the "
        "machine code of a wheel sklboost's first load has numba's first call of a kernel in it, "
        "some 15 ms, and its import that of numba. Other work used the machine meanwhile "
        "(`others_cpu` in the JSON).\n",
        *runner.markdown(rows),
        "\n## Loading: XGBoost's time over ours\n",
        *runner.markdown(ratios),
        f"\n{runner.origin(records, 'model_files')}",
    ]


if __name__ == "__main__":
    runner.start(main, _load_here)
