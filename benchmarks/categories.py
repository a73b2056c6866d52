"""Held-out loss with each library's own categories, and with ordinal codes, at equal settings.

200 trees, learning rate 0.1, depth 6, everything about categories at each library's defaults; root
mean squared error for regression, log loss otherwise, over several splits that all libraries share.

Run `python -m benchmarks.categories`; it writes `benchmarks/results/categories.jsonl` and `.md`.
"""

import argparse

from . import category_data, category_peers, environment, measure, peers
from .category_table import write_table
from .records import add_output_options, write_results

LIBRARIES = ("sklboost", "xgboost", "lightgbm", "hist_gb", "catboost")
# Enough that the ratio of two libraries is known to 0.3 %.
SEEDS = {"ames_housing": 40, "weather_aus": 5, "zipf-5000": 5, "zipf-70000": 5, "access": 3}
DEFAULT_SEEDS = 10


def main(arguments=None):
    """Fit every library on every data set and split, in both ways; then write the table."""
    environment.sleep_when_idle()
    options = _parse(arguments)
    shown = ("dataset", "seed", "library", "way", "test_loss")
    write_results("categories", _records(options), shown, write_table, options)


def _records(options):
    settings = peers.Settings(n_estimators=200, learning_rate=0.1, max_depth=6)
    constant = environment.describe() | {"settings": settings._asdict()}
    for name in options.datasets:
        for seed in range(options.seeds or SEEDS.get(name, DEFAULT_SEEDS)):
            for library, way, dataset, changes in _fits(name, seed, options.libraries):
                if seed == 0:  # compiled, and threads started, before anything is timed
                    measure.warm_up(library, dataset, settings, options.threads, **changes)
                measured = measure.fit_and_predict(
                    library, dataset, settings, options.threads, seed, **changes
                )
                yield {
                    "kind": "categories",
                    "time": environment.now(),
                    **constant,
                    **dataset.facts,
                    "seed": seed,
                    "threads": options.threads,
                    "library": library,
                    "way": way,
                    **measured._asdict(),
                }


def _fits(name, seed, libraries):
    """Yield library, way, data set and parameters besides the settings of each fit of a split."""
    frames, codes = category_data.load(name, seed)
    for library in libraries:
        if category_peers.takes(library, frames):
            prepared = category_peers.prepare(library, frames)
            yield library, "native", prepared, category_peers.parameters(library, prepared)
        yield library, "codes", codes, {}


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.categories", description=__doc__)
    add = parser.add_argument
    names = [*category_data.REAL, *category_data.SYNTHETIC]
    add("--datasets", nargs="+", default=names)
    add("--seeds", type=int, help="splits of each data set; default: as many as it needs")
    add("--libraries", nargs="+", default=list(LIBRARIES))
    add("--threads", type=int, default=1)
    add_output_options(parser)
    options = parser.parse_args(arguments)
    options.libraries = peers.choose(options.libraries)
    return options


if __name__ == "__main__":
    main()
