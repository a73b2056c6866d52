"""Held-out loss of each loss, beside the libraries that have the same one, at equal settings.

100 trees, learning rate 0.1, depth 6, 256 bins; every library sees the same splits. Also the time
of a round beside that of squared error, log loss or softmax on the same data.

Run `python -m benchmarks.losses`; it writes `benchmarks/results/losses.jsonl` and `.md`.
"""

import argparse
import importlib
import time

import numpy as np

from . import environment, loss_data, measure, peers
from .loss_cases import CASES
from .loss_table import write_table
from .records import add_output_options, write_results

OURS = "sklboost"


def main(arguments=None):
    """Fit every library that has a loss, on every data set and split; then write the table."""
    environment.sleep_when_idle()
    options = _parse(arguments)
    shown = ("objective", "dataset", "seed", "library", "test_loss", "seconds_per_round")
    write_results("losses", _records(options), shown, write_table, options)


def _records(options):
    settings = peers.Settings(n_estimators=100, learning_rate=0.1, max_depth=6)
    constant = environment.describe() | {"settings": settings._asdict()}
    for case in CASES:
        if options.losses and case.objective not in options.losses:
            continue
        for name in case.datasets:
            for seed in range(options.seeds):
                dataset = loss_data.load(name, seed)
                facts = {
                    "kind": "losses",
                    "time": environment.now(),
                    **constant,
                    "objective": case.objective,
                    "dataset": name,
                    "n_train": len(dataset.y_train),
                    "n_features": dataset.X_train.shape[1],
                    "seed": seed,
                    "threads": options.threads,
                }
                for library, changes in _libraries(case, options):
                    yield facts | _fit(library, changes, case, dataset, settings, options.threads)


def _libraries(case, options):
    """Yield libraries and what they are given besides the settings; ours also the usual loss."""
    yield OURS, {"objective": case.objective, **case.ours}
    yield "usual", {}
    for library, changes in case.peers.items():
        if library in options.libraries and peers.is_installed(library):
            yield library, changes


def _fit(library, changes, case, dataset, settings, n_threads):
    """Return the record of one fit."""
    spec = peers.LIBRARIES[OURS if library == "usual" else library]
    parameters = spec.parameters(settings, dataset.task) | {spec.seed: 0}
    if spec.threads is not None:
        parameters[spec.threads] = n_threads
    # what is changed to None is left out: the library's own default
    parameters = {
        k: v for k, v in (parameters | changes).items() if k not in changes or v is not None
    }
    is_regression = dataset.task == "regression"
    estimator = getattr(
        importlib.import_module(spec.module), spec.regressor if is_regression else spec.classifier
    )
    with measure.quiet(OURS if library == "usual" else library, n_threads):
        if library in (OURS, "usual"):  # compiled before it is timed
            estimator(**parameters | {"n_estimators": 1}).fit(dataset.X_train, dataset.y_train)
        begin = time.perf_counter()
        model = estimator(**parameters).fit(dataset.X_train, dataset.y_train)
        seconds = time.perf_counter() - begin
        prediction = _predict(library, model, dataset.X_test, is_regression)
    loss = None
    if library != "usual":
        loss = float(np.mean(case.value(dataset.y_test, prediction)))
    return {
        "library": library,
        "parameters": {key: str(value) for key, value in changes.items()},
        "test_loss": loss,
        "seconds_per_round": seconds / settings.n_estimators,
    }


def _predict(library, model, X, is_regression):
    """Return predictions (regression) or raw scores (classes), float64."""
    if library in (OURS, "usual"):
        prediction = model.predict(X) if is_regression else model.decision_function(X)
    elif is_regression:
        as_mean = {"prediction_type": "Exponent"} if _has_log_link(model) else {}
        prediction = model.predict(X, **as_mean)
    elif library == "xgboost":
        prediction = model.predict(X, output_margin=True)
    elif library == "lightgbm":
        prediction = model.predict(X, raw_score=True)
    else:
        prediction = model.predict(X, prediction_type="RawFormulaVal")
    return np.asarray(prediction, dtype=np.float64)


def _has_log_link(model):
    """Whether it is a loss of CatBoost's whose `predict` may give logarithms."""
    loss = model.get_params().get("loss_function") or ""
    return loss.startswith(("Tweedie", "Poisson"))


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.losses", description=__doc__)
    add = parser.add_argument
    add("--losses", nargs="+", help="names of objectives; default: all")
    add("--seeds", type=int, default=3, help="splits of each data set")
    add("--libraries", nargs="+", default=["xgboost", "lightgbm", "hist_gb", "catboost"])
    add("--threads", type=int, default=environment.n_cores())
    add_output_options(parser)
    options = parser.parse_args(arguments)
    options.libraries = peers.choose(options.libraries)
    return options


if __name__ == "__main__":
    main()
