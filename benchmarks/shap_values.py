"""SHAP values and interactions of 2,000 rows, in sklboost and its peers, at equal settings.

100 trees of depth 6, 28 features, and one raw score; each library explains its own trees. Those of
CatBoost are symmetric, its default, for which it has an algorithm of their own.

Run `python -m benchmarks.shap_values`; it writes `shap.jsonl` and `shap.md`.
"""

import time
from functools import partial

import numpy as np

from . import datasets, peers, runner
from .runner import OURS

CALLS = {  # what is computed -> the libraries that compute it
    "values": (OURS, "xgboost", "lightgbm", "catboost_symmetric"),
    "interactions": (OURS, "xgboost"),
    "values, 100 background rows": (OURS,),
}
SETTINGS = peers.Settings(n_estimators=100, learning_rate=0.1, max_depth=6)
N_ROWS, N_BACKGROUNDS = 2_000, 100


def main(arguments=None):
    """Measure all calls, then write the table."""
    parser = runner.parser("benchmarks.shap_values", __doc__)
    add = parser.add_argument
    add("--dataset", default="binary-20000x28")
    add("--repeats", type=int, default=15)
    add("--threads", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args(arguments)
    shown = ("kind", "threads", "library", "seconds")
    runner.write_results("shap", _records(options), shown, write_table, options)


def _records(options):
    dataset = datasets.load(options.dataset)
    libraries = peers.choose(CALLS["values"])
    for n_threads in options.threads:
        models = {name: peers.fit(name, dataset, SETTINGS, n_threads) for name in libraries}
        for kind, known in CALLS.items():
            names = [name for name in libraries if name in known]
            turns = runner.Options(names, options.repeats, 120.0)
            turn_of = partial(_explain, models, dataset.X_test[:N_ROWS], n_threads, kind)
            for turn in runner.take_turns(turns, turn_of):
                facts = {"settings": SETTINGS._asdict(), "dataset": dataset.name}
                yield {"kind": kind, "threads": n_threads, **facts, **turn}


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
    with peers.quiet(library, n_threads):
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


def write_table(records):
    """Return the lines of the page `shap.md`."""
    libraries = CALLS["values"]
    head = ["call", "threads"]
    head += [f"{name}, ms" for name in libraries] + [f"{name} / ours" for name in libraries[1:]]
    rows = [head]
    for (kind, n_threads), own in runner.grouped(records, "kind", "threads").items():
        medians = {
            name: np.median([record["seconds"] for record in turns])
            for (name,), turns in runner.grouped(own, "library").items()
        }
        times = [f"{1e3 * medians[name]:.1f}" if name in medians else "" for name in libraries]
        ratios = [
            f"{medians[name] / medians[OURS]:.1f}" if name in medians else ""
            for name in libraries[1:]
        ]
        rows.append([kind, str(n_threads), *times, *ratios])
    last = records[-1]
    return [
        "# SHAP values\n",
        f"{N_ROWS:,} rows of {last['dataset']}, {last['settings']['n_estimators']} trees of depth "
        f"{last['settings']['max_depth']}. Milliseconds of one call, medians of turns. CatBoost's "
        "trees are symmetric.\n",
        *runner.markdown(rows),
        f"\n{runner.origin(records, 'shap_values')}",
    ]


if __name__ == "__main__":
    runner.start(main)
