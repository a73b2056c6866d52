"""Training on worker processes: measured on this machine, and a formula for many machines.

`python -m benchmarks.cluster` compares one process of two threads with two worker processes of one
thread each, and with xgboost.dask on the same workers, one loss after the other. There the rows, in
memory of the workers before the time begins, are in as many partitions as there are workers. The
three take turns, after a fit of two trees each.

`python -m benchmarks.cluster scale` compares the formula of the traffic with fits on 2, 3 and 4
workers, measures what a message costs, takes the time of a row from `results/kernels.jsonl`, and
computes what 10, 100 and 1,000 workers would take; `docs/explanation/scale.md` explains it.

They write `cluster` and `scale`, each `.jsonl` and `.md`. They need dask, distributed and, for
the comparison, xgboost.
"""

import contextlib
import gc
import math
import time
from statistics import median
from typing import NamedTuple

import numpy as np
from sklearn.metrics import mean_pinball_loss

from sklboost.objectives.metrics import mean_over_queries

from . import datasets, peers, runner

ONE, CLUSTER, PEER = "sklboost, one process", "sklboost, workers", "xgboost.dask, workers"
ALPHA = 0.9
LOSSES = {
    "binary": "log loss, two classes",
    "regression": "squared error",
    "quantile": f"quantile {ALPHA}",
    "ranking": "rank:ndcg, queries of 50 rows",
}
# Shares of rows whose relevances are 0; 0 or 1; 0, 1 or 2; of others they are 3.
RELEVANCES = (0.5, 0.8, 0.95)


def main(arguments=None):
    """Measure what the command line asks for, then write its tables."""
    parser = runner.parser("benchmarks.cluster", __doc__)
    add = parser.add_argument
    add("what", nargs="?", choices=("cluster", "scale"), default="cluster")
    add("--rows", type=int, help="default: 1,000,000; of the fits whose bytes count 50,000")
    add("--features", type=int, default=28)
    add("--trees", type=int, default=100)
    add("--workers", type=int, default=2, help="and threads of the one process")
    add("--repeats", type=int, default=3)
    add("--losses", nargs="+", choices=LOSSES, default=tuple(LOSSES))
    add("--ways", nargs="+", choices=(ONE, CLUSTER, PEER), default=(ONE, CLUSTER, PEER))
    options = parser.parse_args(arguments)
    if options.what == "scale":
        records = _scale(options.rows or 50_000)
        runner.write_results("scale", records, ("kind",), write_scale, options)
        return
    options.rows = options.rows or 1_000_000
    shown = ("task", "way", "repeat", "seconds", "test_loss")
    runner.write_results("cluster", _records(options), shown, write_table, options)


@contextlib.contextmanager
def _workers(n_workers):
    """Start worker processes of one thread on this machine; give their client."""
    import distributed

    own = dict(n_workers=n_workers, threads_per_worker=1, memory_limit=0)
    with (
        distributed.LocalCluster(**own, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


# --- measured -------------------------------------------------------------------------------------


def _records(options):
    settings = peers.Settings(n_estimators=options.trees)
    facts = {"n_workers": options.workers, "settings": settings._asdict()}
    with _workers(options.workers) as client:
        for loss in options.losses:
            kind = "binary" if loss == "binary" else "regression"
            dataset = datasets.load(f"{kind}-{options.rows}x{options.features}").as_float32()
            dataset = dataset._replace(task=loss)
            if loss == "ranking":
                bounds = np.quantile(dataset.y_train, RELEVANCES)
                train, test = (np.digitize(y, bounds) for y in (dataset.y_train, dataset.y_test))
                dataset = dataset._replace(y_train=train, y_test=test)
            rows = _persisted(client, dataset, options.workers)
            for way in options.ways:
                _fit(way, client, dataset, rows, settings._replace(n_estimators=2), options.workers)
            for repeat in range(options.repeats):
                first = repeat % len(options.ways)
                for way in (*options.ways[first:], *options.ways[:first]):
                    others = runner.others_seconds()
                    measured = _fit(way, client, dataset, rows, settings, options.workers)
                    others = None if others is None else runner.others_seconds() - others
                    turn = {"way": way, "repeat": repeat, **measured, "others_cpu": others}
                    yield {**dataset.facts, **facts, **turn}


def _queries(y):
    return np.arange(len(y)) // 50


def _persisted(client, dataset, n_workers):
    """Return features, targets and queries as arrays whose partitions are on the workers."""
    import dask.array as da
    import distributed

    chunk = -(-len(dataset.y_train) // n_workers)
    X = da.from_array(dataset.X_train, chunks=(chunk, dataset.X_train.shape[1]))
    columns = dataset.y_train, _queries(dataset.y_train)
    rows = client.persist((X, *(da.from_array(column, chunks=chunk) for column in columns)))
    distributed.wait(rows)
    return rows


def _fit(way, client, dataset, rows, settings, n_workers):
    """Fit in one of the ways; return seconds, the loss, and what the fit reports of itself."""
    task = "regression" if dataset.task == "quantile" else dataset.task  # the estimator's kind
    changes = {}
    if dataset.task == "quantile":
        changes = {"objective": "reg:quantileerror", "quantile_alpha": ALPHA}
    if way == PEER:
        import xgboost.dask

        peer = peers.LIBRARIES["xgboost"]
        name = peer.classifier if task == "binary" else peer.regressor
        parameters = peer.parameters(settings, task) | changes
        if task == "ranking":
            name, parameters["allow_group_split"] = "XGBRanker", True
        model = getattr(xgboost.dask, f"Dask{name}")(**parameters, random_state=0)
        model.client = client
    else:
        model = peers.make_estimator("sklboost", settings, task, n_workers, **changes)
    X, y, qid = rows
    if way == ONE:
        X, y, qid = dataset.X_train, dataset.y_train, _queries(dataset.y_train)
    given = {"qid": qid} if task == "ranking" else {}
    gc.collect()
    start = time.perf_counter()
    model.fit(X, y, **given)
    seconds = time.perf_counter() - start
    if way == PEER:
        prediction, report = model.get_booster().inplace_predict(dataset.X_test), {}
        if task == "binary":
            prediction = np.column_stack([1.0 - prediction, prediction])
    else:
        predict = model.predict_proba if task == "binary" else model.predict
        prediction = predict(dataset.X_test)
        found = model.fit_report_
        report = {"phase_seconds": found.seconds, "traffic": found.traffic}
        report["n_threads"] = found.n_threads
    if task == "ranking":
        y = np.column_stack([dataset.y_test, _queries(dataset.y_test)])
        loss = 1.0 - mean_over_queries("ndcg", y, prediction, np.empty(0), True)
    elif changes:
        loss = float(mean_pinball_loss(dataset.y_test, prediction, alpha=ALPHA))
    else:
        loss = peers.held_out_loss(task, dataset.y_test, prediction)
    return {"seconds": seconds, "test_loss": loss, **report}


def write_table(records):
    """Return the lines of the page `cluster.md`."""
    of_way = runner.grouped(records, "task", "way")
    seconds = {key: median(r["seconds"] for r in found) for key, found in of_way.items()}
    rows = [["loss", "way", "fits", "seconds", "least", "most", "over ours on workers"]]
    rows[0].append("test loss")
    sent, spent = [["loss", "sent, by all workers", "messages", "bytes"]], []
    for (task, way), found in of_way.items():
        loss, last, each = LOSSES[task], found[-1], [record["seconds"] for record in found]
        ours = seconds.get((task, CLUSTER))
        numbers = [f"{number:.2f}" for number in (seconds[task, way], min(each), max(each))]
        numbers += [f"{seconds[task, way] / ours:.2f}" if ours else "", f"{last['test_loss']:.6f}"]
        rows.append([loss, way, str(len(found)), *numbers])
        if way == CLUSTER:
            for what, (n, size) in last["traffic"].items():
                sent.append([loss, what, f"{n:,}", f"{size:,}"])
            parts = ", ".join(f"{name} {own:.2f}" for name, own in last["phase_seconds"].items())
            spent.append(f"\nSeconds of this fit, {loss}: {parts}.")
    last = records[-1]
    return [
        "# Training on worker processes\n",
        f"{last['n_train']:,} rows, {last['n_features']} features, "
        f"{last['settings']['n_estimators']} trees of depth {last['settings']['max_depth']}. One "
        f"process with {last['n_workers']} threads, and a cluster of {last['n_workers']} worker "
        "processes of one thread each on the same machine, which have the rows in memory. Median "
        "seconds of a fit. The test loss of a ranking is 1 less the NDCG.\n",
        *runner.markdown(rows, 2),
        "",
        *(runner.markdown(sent, 2) if spent else ()),
        *spent,
        f"\n{runner.origin(records, 'cluster')} {last['machine']['cpu']}.",
    ]


# --- the formula ----------------------------------------------------------------------------------

BLOCK_ROWS = 4096
CELL, SCALES, BEST_SPLIT = 8, 16, 64  # bytes of a cell, of a block's scales, of a node's best split
FEATURES, BINS, DEPTH, TREES = 28, 256, 6, 100
THREADS = 16  # of a worker, in the model
LATENCY = 25e-6  # seconds of a message on the network, assumed
N_WORKERS = (1, 10, 100, 1000)
N_ROWS = (10**8, 10**9)
GBITS = (10, 100)


class Constants(NamedTuple):
    """Seconds that were measured."""

    row: float  # of a row and tree, on one thread
    search: float  # of the split search of a tree, on one thread
    message: float  # of the processor, to send and receive one
    cell: float  # to add a cell that has come
    call: float  # of the client, to ask all workers for a tree


def traffic(n_rows, n_workers, n_cells=FEATURES * BINS, depth=DEPTH, nodes=None):
    """Return for each exchange of a tree the (messages, bytes) that one worker sends.

    `nodes` are the histograms built and the nodes searched. None: those of a full tree.
    """
    built, searched = (2 ** (depth - 1), 2**depth - 1) if nodes is None else nodes
    others, steps = n_workers - 1, (n_workers - 1).bit_length()
    return {
        "scales": (steps, SCALES * math.ceil(n_rows / BLOCK_ROWS) / n_workers * others),
        "histograms": (
            depth * steps,
            CELL * (built * n_cells / n_workers + 1) * others,  # and the sum of all rows
        ),
        "splits": (depth * steps, BEST_SPLIT * searched * others),
    }


def seconds(n_rows, n_workers, gbit, constants):
    """Return the seconds of a tree in its parts."""
    sent = traffic(n_rows, n_workers)
    n_messages = sum(count for count, _ in sent.values())
    added = sent["histograms"][1] / CELL  # as many cells come as go
    return {
        "rows": n_rows * constants.row / (n_workers * THREADS),
        "search": constants.search / (n_workers * THREADS),
        "adding": added * constants.cell,
        "messages": n_messages * (constants.message + LATENCY),
        "call": constants.call if n_workers > 1 else 0.0,
        "bytes": 8 * sum(size for _, size in sent.values()) / (gbit * 1e9),
    }


def best_number(n_rows, constants):
    """Return of how many workers the rows and the messages of a tree take least time together."""
    of_step = (1 + 2 * DEPTH) * (constants.message + LATENCY)  # log2 of the workers, each tree
    return max(1, round(math.log(2.0) * n_rows * constants.row / (THREADS * of_step)))


def _scale(n_rows):
    checks = [_check(n_workers, n_rows) for n_workers in (2, 3, 4)]
    for check, _ in checks:
        yield {"kind": "traffic", **check}
    constants = _constants(*zip(*(probed for _, probed in checks), strict=True))
    yield {"kind": "constants", **constants._asdict(), "latency": LATENCY}
    for n_rows in N_ROWS:
        yield {"kind": "best", "n_rows": n_rows, "n_workers": best_number(n_rows, constants)}
        for gbit in GBITS:
            for n_workers in N_WORKERS:
                job = {"n_rows": n_rows, "gbit": gbit, "n_workers": n_workers}
                parts = seconds(n_rows, n_workers, gbit, constants)
                yield {"kind": "model", **job, **parts, "fit": TREES * sum(parts.values())}


class Probe:
    """Exchanges small messages, on a worker."""

    def __init__(self, peers):
        self.peers = peers

    def exchange(self, n_times):
        """Return the seconds of the processor for a message."""
        part, n_steps = np.zeros(64, dtype=np.uint8), (self.peers.size - 1).bit_length()
        start = time.thread_time()
        for _ in range(n_times):
            self.peers.gather(part)
        return (time.thread_time() - start) / max(1, n_times) / n_steps


def _check(n_workers, n_rows):
    """Fit on worker processes; return its traffic beside the formula's, and seconds of messages."""
    import dask.array as da

    from sklboost.distributed.worker_group import WorkerGroup

    dataset = datasets.load(f"binary-{n_rows}x{FEATURES}").as_float32()
    with _workers(n_workers) as client:
        X, y = dataset.X_train, dataset.y_train
        rows = da.from_array(X, chunks=(-(-n_rows // n_workers), FEATURES))
        settings = peers.Settings(n_estimators=10, max_depth=DEPTH, max_bin=BINS)
        model = peers.make_estimator("sklboost", settings, "binary", 1)
        report = model.fit(rows, y).fit_report_
        group = WorkerGroup(client)
        group.start(Probe, dict.fromkeys(group.workers(), ()))
        group.call("exchange", 100)
        message = median(spent for _ in range(5) for spent in group.call("exchange", 500))
        calls = []
        for _ in range(100):
            start = time.perf_counter()
            group.call("exchange", 0)
            calls.append(time.perf_counter() - start)
        group.stop()
    per_tree = {
        what: [count / n_workers / 10 for count in counts]
        for what, counts in report.traffic.items()
    }
    searched = per_tree["splits"][1] / BEST_SPLIT / (n_workers - 1)
    full = traffic(n_rows, n_workers, report.n_bins)
    check = {"n_workers": n_workers, "n_rows": n_rows, "n_bins": report.n_bins}
    check |= {"measured": per_tree, "full_trees": full, "searched": searched}
    return check, (message, median(calls))


def _constants(messages, calls):
    """Return the measured constants."""
    fits, searches = [], []
    for record in runner.read(runner.RESULTS / "kernels.jsonl"):
        job = record["kind"], record.get("workload"), record.get("library"), record.get("threads")
        if job == ("phases", "binary-1000000x28", "sklboost", 1):
            fits.append(record["fit_seconds"])  # of a plain fit beside the one by phases
            searches.append(record["phase_seconds"]["split search"])
    search = median(searches) / TREES
    cells = np.arange(FEATURES * BINS, dtype=np.int64)
    sums, spent = np.zeros_like(cells), []
    for _ in range(200):
        start = time.thread_time()
        sums += cells
        spent.append(time.thread_time() - start)
    return Constants(
        row=(median(fits) / TREES - search) / 10**6,
        search=search,
        message=median(messages),
        cell=median(spent) / len(cells),
        call=median(calls),
    )


def write_scale(records):
    """Return the lines of the page `scale.md`."""
    kinds = {kind: own for (kind,), own in runner.grouped(records, "kind").items()}
    found = kinds["constants"][-1]
    checks = [["workers", "exchange", "messages", "formula", "bytes", "formula, full trees"]]
    for check in kinds["traffic"]:
        for what, (n, size) in check["full_trees"].items():
            own = check["measured"][what]
            numbers = (f"{value:,.0f}" for value in (own[0], n, own[1], size))
            checks.append([str(check["n_workers"]), what, *numbers])
    parts = ("rows", "adding", "messages", "call", "bytes")
    model = [["rows", "Gbit/s", "workers", *(f"{part}, ms" for part in parts), "fit, s"]]
    model += [
        [
            *(f"{each[name]:,}" for name in ("n_rows", "gbit", "n_workers")),
            *(f"{1000 * each[part]:,.2f}" for part in parts),
            f"{each['fit']:,.1f}",
        ]
        for each in kinds["model"]
    ]
    return [
        "# Training on many workers\n",
        "What one worker sends for a tree, measured in fits of "
        f"{kinds['traffic'][0]['n_rows']:,} rows, and by the "
        "[formula](../../docs/explanation/scale.md), in which all trees are full.\n",
        *runner.markdown(checks, 2),
        f"\nThe model: {FEATURES} features of {BINS} bins, {TREES} trees of depth {DEPTH}, workers "
        f"of {THREADS} threads. {1e9 * found['row']:.1f} ns a row and tree on a thread, "
        f"{1e6 * found['message']:.1f} µs of the processor a message, "
        f"{1e9 * found['cell']:.2f} ns a cell added, {1e3 * found['call']:.1f} ms a call of the "
        f"client, {1e6 * found['latency']:.0f} µs latency "
        "(assumed). Milliseconds of a tree, and seconds of a fit. Targets are on the workers.\n",
        *runner.markdown(model, 0),
        "\nRows and messages of a tree take least time together with "
        + ", ".join(f"{e['n_workers']} workers for {e['n_rows']:,} rows" for e in kinds["best"])
        + ".",
        f"\n{runner.origin(kinds['constants'], 'cluster scale')}",
    ]


if __name__ == "__main__":
    runner.start(main)
