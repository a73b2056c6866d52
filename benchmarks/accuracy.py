"""Held-out loss of sklboost and its peers on real data, at equal settings.

200 trees, learning rate 0.1, depth 6; root mean squared error for regression, log loss otherwise.
One split is noisy (the loss moves by several per cent from split to split, the ratio of two
libraries by some tenths of one), so each figure is a mean over seeds, every library seeing the
same splits.

Run `python -m benchmarks.accuracy`; it writes `benchmarks/results/accuracy.jsonl` and `.md`.
"""

import argparse

from . import datasets, environment, measure, peers
from .accuracy_table import write_table
from .records import add_output_options, write_results

# Large sets have a large test part: fewer splits say as much. agaricus is separable, so that its
# loss is the regularisation alone and a ratio says nothing.
FEWER_SEEDS = {"covertype": 1, "weather_aus": 3, "letter": 3}
DATASETS = tuple(name for name in datasets.REAL if name != "agaricus")


def main(arguments=None):
    """Fit every library on every data set and split; then write the table."""
    environment.sleep_when_idle()
    options = _parse(arguments)
    shown = ("dataset", "seed", "variant", "test_loss")
    write_results("accuracy", _records(options), shown, write_table, options)


def _records(options):
    settings = peers.Settings(n_estimators=200, learning_rate=0.1, max_depth=6)
    constant = environment.describe() | {"settings": settings._asdict()}
    for name in options.datasets:
        n_seeds = min(options.seeds, FEWER_SEEDS.get(name, options.seeds))
        for seed in range(n_seeds):
            dataset = datasets.load(name, seed)
            for variant, library, equal in _variants(options.libraries, settings, dataset):
                measured = measure.fit_and_predict(library, dataset, equal, options.threads, seed)
                yield {
                    "kind": "accuracy",
                    "time": environment.now(),
                    **constant,
                    **dataset.facts,
                    "seed": seed,
                    "threads": options.threads,
                    "library": library,
                    "variant": variant,
                    **measured._asdict(),
                }


def _variants(libraries, settings, dataset):
    """Yield (name of the variant, library, settings).

    For softmax the same learning rate is not the same step (`peers.SOFTMAX_HESSIAN`): the libraries
    concerned are measured with both, `(same step)` taking sklboost's.
    """
    for library in libraries:
        yield library, library, settings
        if dataset.task == "multiclass" and library in peers.SOFTMAX_HESSIAN:
            n_classes = int(dataset.y_train.max()) + 1
            equal = peers.same_softmax_step(settings, library, n_classes)
            yield f"{library} (same step)", library, equal


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    add = parser.add_argument
    add("--datasets", nargs="+", default=list(DATASETS))
    add("--seeds", type=int, default=5, help="splits of each data set; fewer for the large ones")
    add("--libraries", nargs="+", default=list(peers.DEFAULT_LIBRARIES), help="or: all")
    add("--threads", type=int, default=environment.n_cores())
    add_output_options(parser)
    options = parser.parse_args(arguments)
    options.libraries = peers.choose(options.libraries)
    return options


if __name__ == "__main__":
    main()
