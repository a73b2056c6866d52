"""Held-out loss and time on real data of every library at its defaults, and of `preset="auto"`.

At most 20,000 training and 10,000 test rows of each split. Every library sees the same splits, one
after the other on each.

Run `python -m benchmarks.defaults`, and with `--tried --append` for variants of the preset on the
data sets that it was developed on; both write `benchmarks/results/defaults.jsonl` and `.md`. With
`--append` what is there is not measured again.
"""

import argparse
import itertools
import json

from . import accuracy, datasets, environment, measure, peers
from .defaults_table import LEFT_OUT, write_table
from .preset_variants import LIBRARIES, OURS, TRIED
from .records import add_output_options, write_results

MOST_TRAIN, MOST_TEST = 20_000, 10_000  # CatBoost takes seconds
DATASETS = (*datasets.BUNDLED, *accuracy.DATASETS)


def main(arguments=None):
    """Fit every variant on every split; then write the tables."""
    environment.sleep_when_idle()
    options = _parse(arguments)
    shown = ("dataset", "seed", "variant", "test_loss", "fit_cpu_seconds")
    write_results("defaults", _records(options), shown, write_table, options)


def _records(options):
    constant = environment.describe() | {"threads": options.threads}
    variants, done = _chosen_variants(options), _done(options)
    _warm_up(variants, options.threads)
    for seed, name in itertools.product(range(options.seeds), options.datasets):
        missing = [variant for variant in variants if (name, seed, variant) not in done]
        if not missing:
            continue
        dataset = cut(datasets.load(name, seed), MOST_TRAIN, MOST_TEST)
        for variant in missing:
            measured = fit_and_predict(variants[variant], dataset, options.threads, seed)
            yield {
                "kind": "defaults",
                "time": environment.now(),
                **constant,
                **dataset.facts,
                "seed": seed,
                "variant": variant,
                **measured._asdict(),
            }


def fit_and_predict(variant, dataset, n_threads, seed):
    """Return the measurement of one fit."""
    changes = variant.parameters_for(dataset.task)
    with variant.in_place():
        return measure.fit_and_predict(variant.library, dataset, None, n_threads, seed, **changes)


def cut(dataset, most_train, most_test):
    """Return a data set with at most so many rows; they are in random order."""
    return dataset._replace(
        X_train=dataset.X_train[:most_train],
        y_train=dataset.y_train[:most_train],
        X_test=dataset.X_test[:most_test],
        y_test=dataset.y_test[:most_test],
    )


def _warm_up(variants, n_threads):
    """Fit ours on a few rows of each task, so that no compilation is measured."""
    for name in ("diabetes", "breast_cancer", "wine"):
        dataset = cut(datasets.load(name), 100, 100)
        for variant in variants.values():
            if variant.library == OURS:
                fit_and_predict(variant, dataset, n_threads, seed=0)


def _chosen_variants(options):
    variants = TRIED if options.tried else LIBRARIES
    installed = peers.choose(dict.fromkeys(variant.library for variant in variants.values()))
    return {name: own for name, own in variants.items() if own.library in installed}


def _done(options):
    lines = options.out / "defaults.jsonl"
    if not options.append or not lines.exists():
        return set()
    records = map(json.loads, lines.read_text(encoding="utf-8").splitlines())
    return {(record["dataset"], record["seed"], record["variant"]) for record in records}


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.defaults", description=__doc__)
    add = parser.add_argument
    add("--tried", action="store_true", help="variants of the preset instead of the libraries")
    add("--datasets", nargs="+", help="default: all, with --tried those of the development")
    add("--seeds", type=int, default=5, help="splits of each data set")
    add("--threads", type=int, default=environment.n_cores())
    add_output_options(parser)
    options = parser.parse_args(arguments)
    left_out = LEFT_OUT if options.tried else ()
    options.datasets = options.datasets or [name for name in DATASETS if name not in left_out]
    return options


if __name__ == "__main__":
    main()
