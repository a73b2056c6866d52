"""Training on worker processes beside one process with as many threads, and beside xgboost.dask.

`python -m benchmarks.cluster` writes `benchmarks/results/cluster.jsonl` and `.md`. A fit of one
process has two threads; the cluster, on this machine, has two worker processes of one thread each.
There the rows, in memory of the workers before the time begins, are in as many partitions as there
are workers. The three take turns, after a fit of two trees each.
"""

import argparse
import gc
import json
import time
from statistics import median

import numpy as np

from . import environment, peers
from .fits import describe, load_float32
from .measure import test_loss
from .records import add_output_options, write_results
from .tables import markdown_lines

ONE, CLUSTER, PEER = "sklboost, one process", "sklboost, workers", "xgboost.dask, workers"


def main(arguments=None):
    """Fit in turns, then write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    add("--rows", type=int, default=1_000_000)
    add("--features", type=int, default=28)
    add("--trees", type=int, default=100)
    add("--workers", type=int, default=2, help="and threads of the one process")
    add("--repeats", type=int, default=5)
    add("--ways", nargs="+", choices=(ONE, CLUSTER, PEER), default=(ONE, CLUSTER, PEER))
    add_output_options(parser)
    options = parser.parse_args(arguments)
    shown = ("way", "repeat", "seconds", "test_loss")
    write_results("cluster", _records(options), shown, write_table, options)


def _records(options):
    import distributed

    dataset = load_float32(f"binary-{options.rows}x{options.features}")
    settings = peers.Settings(n_estimators=options.trees)
    facts = {
        **{"kind": "cluster", **environment.describe(), **describe(dataset)},
        **{"n_workers": options.workers, "settings": settings._asdict()},
    }
    facts["versions"]["distributed"] = distributed.__version__
    own = dict(n_workers=options.workers, threads_per_worker=1, memory_limit=0)
    with (
        distributed.LocalCluster(**own, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        rows = _persisted(client, dataset, options.workers)
        for way in options.ways:
            _fit(way, client, dataset, rows, settings._replace(n_estimators=2), options.workers)
        for repeat in range(options.repeats):
            first = repeat % len(options.ways)
            for way in (*options.ways[first:], *options.ways[:first]):
                others = environment.others_seconds()
                measured = _fit(way, client, dataset, rows, settings, options.workers)
                others = None if others is None else environment.others_seconds() - others
                when = {"time": environment.now(), "way": way, "repeat": repeat}
                yield {**facts, **when, **measured, "others_cpu": others}


def _persisted(client, dataset, n_workers):
    """Return features and targets as arrays whose partitions are on the workers."""
    import dask.array as da
    import distributed

    chunk = -(-len(dataset.y_train) // n_workers)
    X = da.from_array(dataset.X_train, chunks=(chunk, dataset.X_train.shape[1]))
    rows = client.persist((X, da.from_array(dataset.y_train, chunks=chunk)))
    distributed.wait(rows)
    return rows


def _fit(way, client, dataset, rows, settings, n_workers):
    """Fit in one of the ways; return seconds, the loss, and what the fit reports of itself."""
    task = dataset.task
    if way == PEER:
        from xgboost.dask import DaskXGBClassifier

        parameters = peers.LIBRARIES["xgboost"].parameters(settings, task)
        model = DaskXGBClassifier(**parameters, random_state=0)
        model.client = client
    else:
        model = peers.make_estimator("sklboost", settings, task, n_workers)
    gc.collect()
    start = time.perf_counter()
    model.fit(*((dataset.X_train, dataset.y_train) if way == ONE else rows))
    seconds = time.perf_counter() - start
    if way == PEER:
        of_class_1 = model.get_booster().inplace_predict(dataset.X_test)
        prediction = np.column_stack([1.0 - of_class_1, of_class_1])
        report = {}
    else:
        prediction = model.predict_proba(dataset.X_test)
        found = model.fit_report_
        report = {"phase_seconds": found.seconds, "traffic": found.traffic}
        report["n_threads"] = found.n_threads
    loss = test_loss(task, dataset.y_test, prediction)
    return {"seconds": seconds, "test_loss": loss, **report}


def write_table(lines, table):
    """Write the medians of the JSON lines in the file `lines` to the file `table`."""
    records = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    last = records[-1]
    kept = [
        record
        for record in records
        if all(record[key] == last[key] for key in ("n_train", "n_workers", "settings"))
    ]
    of_way = {}
    for record in kept:
        of_way.setdefault(record["way"], []).append(record)
    seconds = {way: median(r["seconds"] for r in found) for way, found in of_way.items()}
    rows = [["way", "fits", "seconds", "least", "most", "over ours on workers", "test loss"]]
    for way, found in of_way.items():
        each = [record["seconds"] for record in found]
        ratio = f"{seconds[way] / seconds[CLUSTER]:.2f}" if CLUSTER in seconds else ""
        numbers = [f"{number:.2f}" for number in (seconds[way], min(each), max(each))]
        rows.append([way, str(len(found)), *numbers, ratio, f"{found[-1]['test_loss']:.6f}"])
    text = [
        "# Training on worker processes\n",
        f"{last['n_train']:,} rows, {last['n_features']} features, two classes, "
        f"{last['settings']['n_estimators']} trees of depth {last['settings']['max_depth']}. One "
        f"process with {last['n_workers']} threads, and a cluster of {last['n_workers']} worker "
        "processes of one thread each on the same machine, which have the rows in memory. Median "
        "seconds of a fit.\n",
        *markdown_lines(rows),
        *_traffic(of_way.get(CLUSTER, ())),
        f"\nCommit {last['commit']}, {last['machine']['cpu']}, versions "
        f"{', '.join(' '.join(each) for each in last['versions'].items())}. Written by "
        "`python -m benchmarks.cluster` from `cluster.jsonl`.",
    ]
    table.write_text("\n".join(text) + "\n", encoding="utf-8")


def _traffic(records):
    """Return lines that tell what the workers sent in the last fit, and its time by phase."""
    if not records:
        return []
    last = records[-1]
    rows = [["sent, by all workers", "messages", "bytes"]]
    rows += [[what, f"{n:,}", f"{size:,}"] for what, (n, size) in last["traffic"].items()]
    spent = ", ".join(f"{phase} {value:.2f}" for phase, value in last["phase_seconds"].items())
    return ["", *markdown_lines(rows), f"\nSeconds of this fit: {spent}."]


if __name__ == "__main__":
    main()
