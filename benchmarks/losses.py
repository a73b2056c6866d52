"""Held-out loss of each loss, beside the libraries that have the same one, at equal settings.

100 trees, learning rate 0.1, depth 6, 256 bins; every library sees the same splits. Also the time
of a round beside that of squared error, log loss or softmax on the same data.

Peers get the parameters of `peers.py`, and what `CASES` has instead of squared error. The held-out
loss is computed by the formulas of this file from predictions, or for the losses of classes from
raw scores; nothing of it comes from any of the libraries.

Run `python -m benchmarks.losses`; it writes `losses.jsonl` and `.md`.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from . import datasets, peers, runner

OURS = "sklboost"
LIBRARIES = (OURS, "xgboost", "lightgbm", "hist_gb", "catboost")

# --- the losses, and how each library spells them -------------------------------------------------


class LossCase(NamedTuple):
    """One loss on some data sets."""

    objective: str  # ours
    value: Callable  # (y, prediction) -> loss of each row; (n_samples, n_classes) for classes
    datasets: tuple[str, ...]  # of `load`
    ours: dict[str, Any]  # parameters of the objective
    peers: dict[str, dict[str, Any]]  # each library that has the loss: what makes it the same


# a third or less of the targets' spread
SLOPE, LEVEL, POWER, FOCUS = 0.3, 0.9, 1.5, 2.0


def _huber(y, p):
    size = np.abs(y - p)
    return np.where(size <= SLOPE, 0.5 * size**2, SLOPE * (size - 0.5 * SLOPE))


def _pseudo_huber(y, p):
    return SLOPE**2 * (np.sqrt(1 + ((y - p) / SLOPE) ** 2) - 1)


def _log_cosh(y, p):
    return np.logaddexp(y - p, p - y) - np.log(2)


def _fair(y, p):
    share = np.abs(y - p) / SLOPE
    return SLOPE**2 * (share - np.log1p(share))


def _expectile(y, p):
    return np.where(y > p, LEVEL, 1 - LEVEL) * (y - p) ** 2


def _squared_log_error(y, p):
    return 0.5 * (np.log1p(np.maximum(p, -1 + 1e-6)) - np.log1p(y)) ** 2


def _percentage_error(y, p):
    return np.abs(y - p) / np.abs(y)


# Deviances: the values less those of a perfect model, so that a ratio means something.
def _poisson(y, p):
    return 2 * (np.where(y > 0, y * np.log(np.where(y > 0, y, 1) / p), 0.0) - y + p)


def _gamma(y, p):
    return 2 * (y / p - 1 - np.log(y / p))


def _tweedie(y, p):
    a, b = 1 - POWER, 2 - POWER
    return 2 * (np.maximum(y, 0) ** b / (a * b) - y * p**a / a + p**b / b)


def _focal(y, z):
    margin = np.where(y == 1, z, -z)
    return np.exp(-FOCUS * np.logaddexp(0, margin)) * np.logaddexp(0, -margin)


def _hinge(y, z):
    return np.maximum(0.0, 1 - (2 * y - 1) * z)


def _one_vs_rest(y, z):
    is_own = y[:, np.newaxis] == np.arange(z.shape[1])
    return np.logaddexp(0, np.where(is_own, -z, z)).sum(axis=1)


# not all of its losses have Newton's leaves, or a start value
_CATBOOST_CHOICES = ("leaf_estimation_method", "leaf_estimation_iterations", "boost_from_average")


def _catboost(loss, **others):
    """Return a loss of CatBoost's, with its own choice of what is made equal for squared error."""
    return {"loss_function": loss, **dict.fromkeys(_CATBOOST_CHOICES), **others}


_ROBUST_DATA = ("protein_casp", "california_100k")
CASES = (
    LossCase(
        "reg:huber",
        _huber,
        _ROBUST_DATA,
        {"huber_slope": SLOPE},
        {
            "lightgbm": {"objective": "huber", "alpha": SLOPE},
            "catboost": _catboost(f"Huber:delta={SLOPE}"),
        },
    ),
    LossCase(
        "reg:pseudohubererror",
        _pseudo_huber,
        _ROBUST_DATA,
        {"huber_slope": SLOPE},
        {"xgboost": {"objective": "reg:pseudohubererror", "huber_slope": SLOPE}},
    ),
    LossCase("reg:logcosh", _log_cosh, _ROBUST_DATA, {}, {"catboost": _catboost("LogCosh")}),
    LossCase(
        "reg:fair",
        _fair,
        _ROBUST_DATA,
        {"fair_c": SLOPE},
        {"lightgbm": {"objective": "fair", "fair_c": SLOPE}},
    ),
    LossCase(
        "reg:expectileerror",
        _expectile,
        _ROBUST_DATA,
        {"expectile_alpha": LEVEL},
        {"catboost": _catboost(f"Expectile:alpha={LEVEL}")},
    ),
    LossCase(
        "reg:mape",
        _percentage_error,
        ("bike_hour", "diamonds"),  # no target below 1, where LightGBM's loss is another
        {},
        {"lightgbm": {"objective": "mape"}, "catboost": _catboost("MAPE")},
    ),
    LossCase(
        "reg:squaredlogerror",
        _squared_log_error,
        ("bike_hour", "california_100k"),
        {},
        {"xgboost": {"objective": "reg:squaredlogerror"}},
    ),
    LossCase(
        "count:poisson",
        _poisson,
        ("bike_hour", "weather_rainfall"),
        {},
        {
            "xgboost": {"objective": "count:poisson"},
            "lightgbm": {"objective": "poisson"},
            "hist_gb": {"loss": "poisson"},
            "catboost": _catboost("Poisson"),
        },
    ),
    LossCase(
        "reg:gamma",
        _gamma,
        ("diamonds", "california_100k"),
        {},
        {
            "xgboost": {"objective": "reg:gamma"},
            "lightgbm": {"objective": "gamma"},
            "hist_gb": {"loss": "gamma"},
        },
    ),
    LossCase(
        "reg:tweedie",
        _tweedie,
        ("bike_hour", "weather_rainfall"),
        {"tweedie_variance_power": POWER},
        {
            "xgboost": {"objective": "reg:tweedie", "tweedie_variance_power": POWER},
            "lightgbm": {"objective": "tweedie", "tweedie_variance_power": POWER},
            "catboost": _catboost(f"Tweedie:variance_power={POWER}"),
        },
    ),
    LossCase(
        "binary:focal",
        _focal,
        ("adult", "bank_marketing"),
        {"focal_gamma": FOCUS},
        # its loss has weights for the classes, of which half for each halves the loss
        {"catboost": _catboost(f"Focal:focal_alpha=0.5;focal_gamma={FOCUS}", l2_leaf_reg=0.5)},
    ),
    LossCase(
        "binary:hinge",
        _hinge,
        ("adult", "bank_marketing"),
        {},
        {"xgboost": {"objective": "binary:hinge"}},
    ),
    LossCase(
        "multi:onevsrest",
        _one_vs_rest,
        ("letter", "lgb_multiclass"),
        {},
        {
            "lightgbm": {"objective": "multiclassova"},
            "catboost": _catboost("MultiClassOneVsAll"),
        },
    ),
)


# --- data -----------------------------------------------------------------------------------------

# So large that its last splits say as much as all rows.
MOST_ROWS = 60_000


def load(name, seed):
    """Load a data set of `datasets.py`, or one of those below."""
    if name == "california_100k":
        dataset = datasets.load("california_housing", seed)
        return dataset._replace(
            name=name, y_train=dataset.y_train / 1e5, y_test=dataset.y_test / 1e5
        )
    if name == "weather_rainfall":
        return _rainfall(seed)
    return datasets.load(name, seed)


def _rainfall(seed):
    """Return today's rain in mm, two thirds of which are 0, from what else was measured."""
    frame = datasets.loader().load("weather_aus")["X"]
    frame = frame[frame["Rainfall"].notna()].drop(columns="RainToday")
    y = frame.pop("Rainfall").to_numpy(dtype=np.float64)
    text = [name for name in frame.columns if frame[name].dtype.kind not in "if"]
    X = datasets.numeric(frame, text)
    order = np.random.default_rng(seed).permutation(len(y))[:MOST_ROWS]
    test, train = np.split(order, [int(datasets.TEST_FRACTION * len(order))])
    return datasets.Dataset("weather_rainfall", "regression", X[train], y[train], X[test], y[test])


# --- measuring ------------------------------------------------------------------------------------


def main(arguments=None):
    """Fit every library that has a loss, on every data set and split; then write the table."""
    runner.sleep_when_idle()
    parser = runner.parser("benchmarks.losses", __doc__)
    add = parser.add_argument
    add("--losses", nargs="+", help="names of objectives; default: all")
    add("--seeds", type=int, default=3, help="splits of each data set")
    add("--trees", type=int, default=100)
    add("--threads", type=int, default=runner.n_cores())
    options = parser.parse_args(arguments)
    shown = ("objective", "dataset", "seed", "library", "test_loss", "seconds_per_round")
    runner.write_results("losses", _records(options), shown, write_table, options)


def _records(options):
    settings = peers.Settings(n_estimators=options.trees)
    installed = peers.choose(LIBRARIES)
    for case in CASES:
        if options.losses and case.objective not in options.losses:
            continue
        fits = {OURS: {"objective": case.objective, **case.ours}, "usual": {}, **case.peers}
        for name in case.datasets:
            for seed in range(options.seeds):
                dataset = load(name, seed)
                facts = {"settings": settings._asdict(), "objective": case.objective}
                facts |= {**dataset.facts, "seed": seed, "threads": options.threads}
                for library, changes in fits.items():
                    if library == "usual" or library in installed:
                        figures = _fit(library, changes, case, dataset, settings, options.threads)
                        yield facts | {"library": library} | figures


def _fit(library, changes, case, dataset, settings, n_threads):
    """Return the figures of one fit; "usual" is sklboost with its default loss."""
    own = OURS if library == "usual" else library
    # what is changed to None is left out: the library's own default
    left_out = [name for name, value in changes.items() if value is None]
    chosen = {name: value for name, value in changes.items() if value is not None}
    model = peers.make_estimator(own, settings, dataset.task, n_threads, 0, left_out, **chosen)
    is_regression = dataset.task == "regression"
    with peers.quiet(own, n_threads):
        if own == OURS:  # compiled before it is timed
            model.set_params(n_estimators=1).fit(dataset.X_train, dataset.y_train)
            model.set_params(n_estimators=settings.n_estimators)
        begin = time.perf_counter()
        model.fit(dataset.X_train, dataset.y_train)
        seconds = time.perf_counter() - begin
        prediction = _predict(own, model, dataset.X_test, is_regression)
    loss = None
    if library != "usual":
        loss = float(np.mean(case.value(dataset.y_test, prediction)))
    return {
        "parameters": {key: str(value) for key, value in changes.items()},
        "test_loss": loss,
        "seconds_per_round": seconds / settings.n_estimators,
    }


def _predict(library, model, X, is_regression):
    """Return predictions (regression) or raw scores (classes), float64."""
    if library == OURS:
        prediction = model.predict(X) if is_regression else model.decision_function(X)
    elif is_regression:
        # losses of CatBoost's whose `predict` may give logarithms
        loss = model.get_params().get("loss_function") or ""
        has_log_link = loss.startswith(("Tweedie", "Poisson"))
        prediction = model.predict(X, **{"prediction_type": "Exponent"} if has_log_link else {})
    else:
        as_raw_score = {
            "xgboost": {"output_margin": True},
            "lightgbm": {"raw_score": True},
            "catboost": {"prediction_type": "RawFormulaVal"},
        }
        prediction = model.predict(X, **as_raw_score[library])
    return np.asarray(prediction, dtype=np.float64)


# --- the table ------------------------------------------------------------------------------------


def write_table(records):
    """Return the lines of the page `losses.md`."""
    rows = [["loss", "data set", "splits", *LIBRARIES, "ours / best", "± s.e.", "time of a round"]]
    for (objective, dataset), of_case in runner.grouped(records, "objective", "dataset").items():
        by_library = runner.grouped(of_case, "library")
        losses = {
            name: runner.by_seed(by_library.get((name,), ()), "test_loss") for name in LIBRARIES
        }
        means = {name: np.mean(list(own.values())) for name, own in losses.items() if own}
        best = min((name for name in means if name != OURS), key=means.get, default=None)
        ratio = runner.paired_ratio(losses[OURS], losses.get(best, {}))
        ours, usual = (
            runner.by_seed(by_library[name,], "seconds_per_round") for name in (OURS, "usual")
        )
        rows.append(
            [
                *(f"`{objective}`", dataset, str(len(losses[OURS]))),
                *(f"{means[name]:.5g}" if name in means else "" for name in LIBRARIES),
                *runner.cells(*ratio),
                f"{np.median([ours[seed] / usual[seed] for seed in ours]):.2f}",
            ]
        )
    settings = records[-1]["settings"]
    return [
        "# Held-out loss of each loss\n",
        f"{settings['n_estimators']} trees, learning rate 0.1, depth 6, {settings['max_bin']} "
        "bins, lambda 1, min_child_weight 1, no early stopping. The mean of the loss itself over "
        "the test rows (Poisson, gamma, Tweedie: the deviance), mean over the splits; lower is "
        "better. `ours / best` compares with the best library that has the loss; its standard "
        "error is that of the paired ratios. `time of a round`: of sklboost with this loss, over "
        "the same with squared error, log loss or softmax; the median over the splits.\n",
        *runner.markdown(rows, 2),
        f"\n{runner.origin(records, 'losses')}",
    ]


if __name__ == "__main__":
    runner.start(main)
