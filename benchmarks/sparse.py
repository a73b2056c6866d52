"""Fit time, peak memory and held-out loss on sparse matrices, at equal settings.

100 trees, learning rate 0.1, depth 6. Each fit is in a process of its own (Linux), and each repeat
has data of its own, which all libraries share. To XGBoost an absent entry is a missing value, to
the others it is 0.

Run `python -m benchmarks.sparse`; it writes `benchmarks/results/sparse.jsonl` and `.md`.
"""

import argparse
import tempfile
from pathlib import Path

from . import environment, peers, sparse_data, sparse_fit
from .records import add_output_options, write_results
from .sparse_table import LIBRARIES, write_table
from .turns import Options, take_turns


def main(arguments=None):
    """Fit every library on every data set, then write the table."""
    environment.sleep_when_idle()
    options = _parse(arguments)
    shown = ("dataset", "repeat", "library", "fit_cpu_seconds", "peak_mib", "test_loss")
    write_results("sparse", _records(options), shown, write_table, options)


def _records(options):
    settings = peers.Settings(n_estimators=100, learning_rate=0.1, max_depth=6)
    constant = environment.describe() | {"settings": settings._asdict()}
    turns = Options(options.libraries, options.repeats, options.budget)
    for name in options.datasets:
        with tempfile.TemporaryDirectory() as folder:
            facts = [
                _prepare(name, repeat, Path(folder) / str(repeat))
                for repeat in range(options.repeats)
            ]

            def fit(library, repeat, folder=folder, facts=facts):
                saved, task = Path(folder) / str(repeat), facts[repeat]["task"]
                return sparse_fit.measure_fit(library, saved, task, settings, options.threads)

            for turn in take_turns(turns, fit):
                common = {"kind": "sparse", "time": environment.now(), "threads": options.threads}
                yield common | constant | facts[turn["repeat"]] | turn


def _prepare(name, seed, folder):
    """Save a data set to a new folder; return what records say of it."""
    dataset = sparse_data.load(name, seed)
    folder.mkdir()
    sparse_fit.save(dataset, folder)
    return {
        "dataset": name,
        "task": dataset.task,
        "n_train": dataset.X_train.shape[0],
        "n_test": dataset.X_test.shape[0],
        "n_features": dataset.X_train.shape[1],
        "n_entries": int(dataset.X_train.nnz),
    }


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sparse", description=__doc__)
    add = parser.add_argument
    add("--datasets", nargs="+", default=list(sparse_data.SETS))
    add("--repeats", type=int, default=3, help="draws or splits of each data set")
    add("--libraries", nargs="+", default=list(LIBRARIES))
    add("--threads", type=int, default=1)
    add("--budget", type=float, default=900.0, help="seconds for a library and a data set")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    options.libraries = peers.choose(options.libraries)
    return options


if __name__ == "__main__":
    main()
