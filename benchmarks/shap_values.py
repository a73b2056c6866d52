"""SHAP values and interactions of 2,000 rows, in sklboost and its peers, at equal settings.

100 trees of depth 6, 28 features, and one raw score; each library explains its own trees. Those of
CatBoost are symmetric, its default, for which it has an algorithm of their own.

Run `python -m benchmarks.shap_values`; it writes `benchmarks/results/shap.jsonl` and `shap.md`.
"""

import argparse
import json
import time
from functools import partial

import numpy as np

from . import datasets, environment, measure, peers
from .records import add_output_options, write_results
from .tables import markdown_lines
from .turns import Options, take_turns

OURS = "sklboost"
CALLS = {  # what is computed -> the libraries that compute it
    "values": (OURS, "xgboost", "lightgbm", "catboost_symmetric"),
    "interactions": (OURS, "xgboost"),
    "values, 100 background rows": (OURS,),
}
SETTINGS = peers.Settings(n_estimators=100, learning_rate=0.1, max_depth=6)
N_ROWS, N_BACKGROUNDS = 2_000, 100


def main(arguments=None):
    """Measure all calls, then write the table."""
    options = _parse(arguments)
    shown = ("kind", "threads", "library", "seconds")
    write_results("shap", _records(options), shown, write_table, options)


def _records(options):
    dataset = datasets.load(options.dataset)
    constant = environment.describe() | {"settings": SETTINGS._asdict(), "dataset": dataset.name}
    libraries = peers.choose(list(CALLS["values"]))
    for n_threads in options.threads:
        models = {name: measure.fit(name, dataset, SETTINGS, n_threads) for name in libraries}
        for kind, known in CALLS.items():
            turns = Options([name for name in libraries if name in known], options.repeats, 120.0)
            turn_of = partial(_explain, models, dataset.X_test[:N_ROWS], n_threads, kind)
            for turn in take_turns(turns, turn_of):
                common = {"kind": kind, "time": environment.now(), "threads": n_threads}
                yield common | constant | turn


def _explain(models, X, n_threads, kind, library, repeat):
    """Time one call, the making of a peer's own matrix included."""
    explain = {
        OURS: _ours,
        "xgboost": _xgboost,
        "lightgbm": _lightgbm,
        "catboost_symmetric": _catboost,
    }[library]
    call = partial(explain, models[library], X, kind, n_threads)
    if repeat == 0:
        call()  # what is compiled, or fetched, at the first call only
    with measure.quiet(library, n_threads):
        start, cpu_start = time.perf_counter(), time.process_time()
        call()
        stop, cpu_stop = time.perf_counter(), time.process_time()
    return {"seconds": stop - start, "cpu_seconds": cpu_stop - cpu_start}


def _ours(model, X, kind, n_threads):
    if kind == "interactions":
        return model.shap_interaction_values(X)
    return model.shap_values(X, X_background=None if kind == "values" else X[:N_BACKGROUNDS])


def _xgboost(model, X, kind, n_threads):
    import xgboost

    wanted = {"pred_contribs": kind == "values", "pred_interactions": kind == "interactions"}
    return model.get_booster().predict(xgboost.DMatrix(X, nthread=n_threads), **wanted)


def _lightgbm(model, X, kind, n_threads):
    return model.predict(X, pred_contrib=True)


def _catboost(model, X, kind, n_threads):
    import catboost

    pool = catboost.Pool(X, thread_count=n_threads)
    return model.get_feature_importance(pool, type="ShapValues", thread_count=n_threads)


def write_table(lines, table):
    """Write medians, and the peers' over ours, of the JSON lines in the file `lines` to `table`."""
    seconds = {}  # {(kind, threads): {library: seconds of all turns}}
    for record in map(json.loads, lines.read_text(encoding="utf-8").splitlines()):
        own = seconds.setdefault((record["kind"], record["threads"]), {})
        own.setdefault(record["library"], []).append(record["seconds"])
    libraries = CALLS["values"]
    head = ["call", "threads"]
    head += [f"{name}, ms" for name in libraries] + [f"{name} / ours" for name in libraries[1:]]
    rows = [head]
    for (kind, threads), known in seconds.items():
        medians = {name: np.median(own) for name, own in known.items()}
        times = [f"{1e3 * medians[name]:.1f}" if name in medians else "" for name in libraries]
        ratios = [
            f"{medians[name] / medians[OURS]:.1f}" if name in medians else ""
            for name in libraries[1:]
        ]
        rows.append([kind, str(threads), *times, *ratios])
    table.write_text("\n".join([_introduction(record), *markdown_lines(rows)]) + "\n", "utf-8")


def _introduction(last):
    settings = last["settings"]
    versions = ", ".join(f"{name} {version}" for name, version in last["versions"].items())
    return (
        "# SHAP values\n\n"
        f"{N_ROWS:,} rows of {last['dataset']}, {settings['n_estimators']} trees of depth "
        f"{settings['max_depth']}. Milliseconds of one call, medians of turns. CatBoost's trees "
        f"are symmetric.\n\nCommit {last['commit']}; {versions}. Written by "
        "`python -m benchmarks.shap_values` from `shap.jsonl`.\n"
    )


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shap_values", description=__doc__)
    add = parser.add_argument
    add("--dataset", default="binary-20000x28")
    add("--repeats", type=int, default=15)
    add("--threads", type=int, nargs="+", default=[1, 2])
    add_output_options(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
