"""Predicted distributions: their likelihood beside NGBoost, and the coverage of intervals.

`python -m benchmarks.distributions` compares the normal distribution of each row, on one thread.
Each split has at most 5,000 rows to learn from and 5,000 to test on. Missing values are -999 for
all, since NGBoost takes none.

`python -m benchmarks.distributions intervals` compares intervals for nine tenths of the targets:
quantiles or distributions alone, and conformal prediction. Each split has 10,000 rows to learn from
and 5,000 to test on. What is calibrated on rows of its own learns from two thirds of the first and
is calibrated on the rest. 100 trees, learning rate 0.1, depth 6, a thread.

They write `distributions` and `intervals`, each `.jsonl` and `.md`.
"""

import time
from typing import NamedTuple

import numpy as np
from scipy import stats
from sklearn.model_selection import KFold, cross_val_predict

from sklboost import XGBDistributionLite, XGBRegressorLite, bin_features

from . import datasets, runner

DATASETS = {
    "distributions": (
        *("diabetes", "ames_housing", "bike_hour"),
        *("california_housing", "diamonds", "protein_casp"),
    ),
    "intervals": ("california_housing", "bike_hour", "protein_casp"),
}


def main(arguments=None):
    """Fit every method on every data set and split; then write the table."""
    runner.sleep_when_idle()
    parser = runner.parser("benchmarks.distributions", __doc__)
    add = parser.add_argument
    add("what", nargs="?", choices=tuple(DATASETS), default="distributions")
    add("--datasets", nargs="+")
    add("--seeds", type=int, help="splits of each data set; default: 5, of intervals 20")
    add("--methods", nargs="+", help="names of functions of this file, or of the table")
    options = parser.parse_args(arguments)
    options.datasets = options.datasets or DATASETS[options.what]
    if options.what == "intervals":
        options.seeds = options.seeds or 20
        shown = ("dataset", "seed", "method", "coverage", "width")
        runner.write_results("intervals", _coverages(options), shown, write_intervals, options)
        return
    options.seeds = options.seeds or 5
    shown = ("dataset", "seed", "method", "nll", "cpu_seconds")
    runner.write_results("distributions", _likelihoods(options), shown, write_table, options)


# --- likelihood -----------------------------------------------------------------------------------

MOST_ROWS = 5_000


def ngboost(X, y, seed):
    from ngboost import NGBRegressor

    return NGBRegressor(verbose=False, random_state=seed).fit(X, y).pred_dist


def as_ngboost(X, y, seed):
    parameters = dict(n_estimators=500, learning_rate=0.01, max_depth=3)
    model = XGBDistributionLite(**parameters, min_child_samples=0, gamma=0.0, n_jobs=1)
    return model.fit(X, y).predict_dist


def defaults(X, y, seed):
    return XGBDistributionLite(n_jobs=1).fit(X, y).predict_dist


def early_stopping(X, y, seed):
    parameters = dict(n_estimators=1000, early_stopping_rounds=20, random_state=seed)
    return XGBDistributionLite(**parameters, n_jobs=1).fit(X, y).predict_dist


LIKELIHOODS = {
    "NGBoost": ngboost,
    "sklboost, 500 rounds of NGBoost's settings": as_ngboost,
    "sklboost": defaults,
    "sklboost, early stopping": early_stopping,
}


def _likelihoods(options):
    defaults(np.zeros((9, 1)), np.arange(9.0), 0)  # compiled before it is timed
    early_stopping(np.zeros((90, 1)), np.arange(90.0), 0)
    for name in options.datasets:
        for seed in range(options.seeds):
            given = datasets.load(name, seed).cut(MOST_ROWS, MOST_ROWS)
            X, X_test = (np.nan_to_num(part, nan=-999.0) for part in (given.X_train, given.X_test))
            y, y_test = given.y_train.astype(float), given.y_test.astype(float)
            for method, fit in LIKELIHOODS.items():
                if method not in (options.methods or LIKELIHOODS):
                    continue
                begin = time.process_time()
                predict = fit(X, y, seed)
                seconds = time.process_time() - begin
                distribution = predict(X_test)
                loc, scale = np.ravel(distribution.mean()), np.ravel(distribution.std())
                yield {
                    **{"dataset": name, "seed": seed, "method": method, "n_train": len(y)},
                    **_scores(y_test, loc, scale, y.std()),
                    "cpu_seconds": seconds,
                }


def _scores(y, loc, scale, unit):
    """Return scores of normal distributions; in standard deviations of the targets."""
    r = (y - loc) / scale
    crps = scale * (r * (2 * stats.norm.cdf(r) - 1) + 2 * stats.norm.pdf(r) - 1 / np.sqrt(np.pi))
    return {
        "nll": float(-stats.norm.logpdf(y / unit, loc / unit, scale / unit).mean()),
        "crps": float(crps.mean() / unit),
        "coverage_90": float((np.abs(r) <= stats.norm.ppf(0.95)).mean()),
    }


def write_table(records):
    """Return the lines of the page `distributions.md`."""
    rows = [["data set", "method", "nll", "± s.e.", "crps", "± s.e.", "in 90%", "s"]]
    rows[0].append("times faster")
    for (dataset,), of_dataset in runner.grouped(records, "dataset").items():
        methods = runner.grouped(of_dataset, "method")
        for (method,), own in methods.items():
            row = [dataset, method]
            for key in ("nll", "crps"):
                row += runner.cells(
                    *runner.mean_and_error(record[key] for record in own), form=".3f"
                )
            row.append(f"{np.mean([record['coverage_90'] for record in own]):.3f}")
            row.append(f"{np.median([record['cpu_seconds'] for record in own]):.2f}")
            theirs, ours = (
                runner.by_seed(each, "cpu_seconds") for each in (methods.get(("NGBoost",), ()), own)
            )
            rows.append([*row, *runner.cells(runner.paired_ratio(theirs, ours)[0], form=".0f")])
    n_splits = len({record["seed"] for record in records})
    return [
        "# Distributions\n",
        f"Normal distributions, means over {n_splits} random splits with at most "
        f"{MOST_ROWS:,} rows to learn from and as many to test on. `nll`: negative log-likelihood "
        "of the test rows, `crps`: continuous ranked probability score, both for targets divided "
        "by their standard deviation; smaller is better. `in 90%`: share of the test rows within "
        "the central interval of 90%. `s`: processor seconds of a fit on one thread, medians. "
        "NGBoost has its defaults: 500 rounds, learning rate 0.01, depth 3; so has the second "
        "line, without `gamma` and `min_child_samples`.\n",
        *runner.markdown(rows, 2),
        f"\n{runner.origin(records, 'distributions')}",
    ]


# --- intervals ------------------------------------------------------------------------------------

SETTINGS = dict(n_estimators=100, learning_rate=0.1, max_depth=6, min_child_weight=20, n_jobs=1)
CONFIDENCE = 0.9
QUANTILES = (0.05, 0.5, 0.95)
N_TRAIN, N_FIT, N_TEST = 10_000, 6_667, 5_000
GROUPS = 5  # of the test rows, by what the mean is predicted to be
ROWS_AT_A_TIME = 500  # MAPIE's cross-conformal intervals take rows x N_TRAIN numbers


class Data(NamedTuple):
    """The rows to learn from, those of them to fit and to calibrate, and those to test."""

    X: np.ndarray
    y: np.ndarray
    X_fit: np.ndarray
    y_fit: np.ndarray
    X_calibrate: np.ndarray
    y_calibrate: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


class Fitted:
    """A fitted model, or one column of its predictions: MAPIE asks it for nothing else."""

    fitted_ = True

    def __init__(self, model, column=0):
        self.model, self.column = model, column

    def fit(self, X, y):
        raise NotImplementedError("it is fitted")

    def predict(self, X):
        return self.model.predict(X).reshape(len(X), -1)[:, self.column]


def mean_model():
    return XGBRegressorLite(**SETTINGS)


def quantile_model(alphas=QUANTILES):
    return XGBRegressorLite(objective="quantile", quantile_alpha=alphas, **SETTINGS)


# Methods: from data to a function that gives intervals of shape (n_samples, 2).


def quantile_alone(data):
    model = quantile_model().fit(data.X, data.y)
    return lambda X: model.predict(X)[:, [0, 2]]


def split(data):
    from mapie.regression import SplitConformalRegressor

    fitted = mean_model().fit(data.X_fit, data.y_fit)
    wrapped = SplitConformalRegressor(fitted, confidence_level=CONFIDENCE)
    return _intervals(wrapped.conformalize(data.X_calibrate, data.y_calibrate))


def split_scaled(data):
    """Divide residuals by what a second model expects them to be."""
    from crepes import WrapRegressor
    from crepes.extras import DifficultyEstimator

    B = bin_features(data.X_fit, n_jobs=1)
    folds = KFold(5, shuffle=True, random_state=0)
    residuals = data.y_fit - cross_val_predict(mean_model(), B, data.y_fit, cv=folds)
    spread = XGBRegressorLite(objective="reg:gamma", **SETTINGS).fit(B, np.abs(residuals) + 1e-9)
    wrapped = WrapRegressor(mean_model().fit(B, data.y_fit))
    difficulty = DifficultyEstimator().fit(f=spread.predict, beta=0)
    wrapped.calibrate(data.X_calibrate, data.y_calibrate, de=difficulty)
    return lambda X: wrapped.predict_int(X, confidence=CONFIDENCE)


def distribution_alone(data):
    model = XGBDistributionLite(**SETTINGS).fit(data.X, data.y)
    return lambda X: model.predict_interval(X, coverage=CONFIDENCE)


def distribution_split(data):
    """Divide residuals by the standard deviations of the predicted distributions."""
    from crepes import WrapRegressor
    from crepes.extras import DifficultyEstimator

    model = XGBDistributionLite(**SETTINGS).fit(data.X_fit, data.y_fit)
    wrapped = WrapRegressor(model)
    difficulty = DifficultyEstimator().fit(f=lambda X: model.predict_dist(X).std(), beta=0)
    wrapped.calibrate(data.X_calibrate, data.y_calibrate, de=difficulty)
    return lambda X: wrapped.predict_int(X, confidence=CONFIDENCE)


def cross(data):
    return _cross(data.X, data.y)


def cross_on_bins(data):
    return _cross(bin_features(data.X, n_jobs=1), data.y)


def _cross(X, y):
    from mapie.regression import CrossConformalRegressor

    wrapped = CrossConformalRegressor(mean_model(), confidence_level=CONFIDENCE, random_state=0)
    return _intervals(wrapped.fit_conformalize(X, y))


def quantiles_split(data):
    """Conformalised quantile regression: one model of three quantiles."""
    from mapie.regression import ConformalizedQuantileRegressor

    fitted = quantile_model().fit(data.X_fit, data.y_fit)
    lower_upper_middle = [Fitted(fitted, column) for column in (0, 2, 1)]
    wrapped = ConformalizedQuantileRegressor(
        lower_upper_middle, confidence_level=CONFIDENCE, prefit=True
    )
    wrapped.conformalize(data.X_calibrate, data.y_calibrate)
    return lambda X: wrapped.predict_interval(X, symmetric_correction=True)[1][:, :, 0]


def quantiles_cross(data):
    return _quantiles_cross(data.X, data.y)


def quantiles_cross_on_bins(data):
    return _quantiles_cross(bin_features(data.X, n_jobs=1), data.y)


def _quantiles_cross(X, y):
    from mapie.regression import CrossConformalizedQuantileRegressor as Wrapper

    Wrapper.quantile_estimator_params["XGBRegressorLite"] = {
        "loss_name": "objective",
        "alpha_name": "quantile_alpha",
    }
    wrapped = Wrapper(quantile_model(0.5), confidence_level=CONFIDENCE, random_state=0)
    return _intervals(wrapped.fit_conformalize(X, y))


def _intervals(wrapped):
    return lambda X: wrapped.predict_interval(X)[1][:, :, 0]


METHODS = {
    quantile_alone: "quantile loss alone",
    distribution_alone: "normal distribution alone",
    split: "split",
    split_scaled: "split, scaled by a model of the spread",
    distribution_split: "split, scaled by the distribution's spread",
    cross: "cross (CV+)",
    cross_on_bins: "cross (CV+), on bins",
    quantiles_split: "quantiles, split (CQR)",
    quantiles_cross: "quantiles, cross",
    quantiles_cross_on_bins: "quantiles, cross, on bins",
}


def _coverages(options):
    constant = {"settings": SETTINGS, "confidence": CONFIDENCE}
    constant |= {"n_train": N_TRAIN, "n_fit": N_FIT, "n_test": N_TEST}
    methods = [m for m in METHODS if m.__name__ in (options.methods or m.__name__)]
    for name in options.datasets:
        for seed in range(options.seeds):
            data = _divided(datasets.load(name, seed))
            if seed == 0:  # compiled before it is timed
                few = Data(*(part[:300] for part in data))
                for method in methods:
                    method(few)(few.X_test)
            middle = mean_model().fit(data.X_fit, data.y_fit).predict(data.X_test)
            groups = np.array_split(np.argsort(middle, kind="stable"), GROUPS)
            for method in methods:
                yield {
                    **constant,
                    "dataset": name,
                    "seed": seed,
                    "method": method.__name__,
                    **_measured(method, data, groups),
                }


def _divided(dataset):
    """Return the first rows of a split; those of `datasets` are in random order."""
    X = np.concatenate([dataset.X_train, dataset.X_test])
    y = np.concatenate([dataset.y_train, dataset.y_test]).astype(np.float64)
    train, fit = slice(0, N_TRAIN), slice(0, N_FIT)
    calibrate, test = slice(N_FIT, N_TRAIN), slice(N_TRAIN, N_TRAIN + N_TEST)
    return Data(*(part[rows] for rows in (train, fit, calibrate, test) for part in (X, y)))


def _measured(method, data, groups):
    begin = time.process_time()
    intervals = method(data)
    seconds = time.process_time() - begin
    parts = range(0, len(data.y_test), ROWS_AT_A_TIME)
    bounds = [intervals(data.X_test[start : start + ROWS_AT_A_TIME]) for start in parts]
    low, high = np.concatenate(bounds).T
    below, above = np.maximum(low - data.y_test, 0.0), np.maximum(data.y_test - high, 0.0)
    covered = (below == 0.0) & (above == 0.0)
    width, unit = high - low, data.y.std()
    score = width + 2.0 / (1.0 - CONFIDENCE) * (below + above)  # Gneiting & Raftery 2007, eq. 43
    return {
        "coverage": float(covered.mean()),
        "coverage_of_groups": [float(covered[rows].mean()) for rows in groups],
        "width": float(width.mean() / unit),
        "interval_score": float(score.mean() / unit),
        "cpu_seconds": seconds,
    }


def write_intervals(records):
    """Return the lines of the page `intervals.md`."""
    names = {method.__name__: name for method, name in METHODS.items()}
    head = ["data set", "method", "coverage", "± s.e.", "worst fifth", "width", "its s.e."]
    rows = [[*head, "interval score", "processor seconds"]]
    saved = [["data set", "method", "time on bins / on raw values", "± s.e."]]
    for (dataset,), of_dataset in runner.grouped(records, "dataset").items():
        methods = {method: own for (method,), own in runner.grouped(of_dataset, "method").items()}
        for method in (method for method in names if method in methods):
            own = methods[method]

            def figures(key, own=own):
                return [record[key] for record in own]

            rows.append(
                [
                    *(dataset, names[method]),
                    *runner.cells(*runner.mean_and_error(figures("coverage"))),
                    f"{np.mean(figures('coverage_of_groups'), axis=0).min():.3f}",
                    *runner.cells(*runner.mean_and_error(figures("width")), form=".3f"),
                    f"{np.mean(figures('interval_score')):.3f}",
                    f"{np.median(figures('cpu_seconds')):.2f}",
                ]
            )
        for method in ("cross", "quantiles_cross"):
            seconds = (
                runner.by_seed(methods.get(name, ()), "cpu_seconds")
                for name in (f"{method}_on_bins", method)
            )
            ratio = runner.paired_ratio(*seconds)
            saved.append([dataset, names[method], *runner.cells(*ratio, form=".3f")])
    last, n_splits = records[-1], len({record["seed"] for record in records})
    settings = last["settings"]
    return [
        "# Intervals\n",
        f"Intervals for {last['confidence']:.0%} of the targets, means over {n_splits} random "
        f"splits with {last['n_train']:,} rows to learn from and {last['n_test']:,} to test on. "
        f"What is calibrated on rows of its own learns from {last['n_fit']:,} of them and is "
        f"calibrated on the rest; cross is five folds. {settings['n_estimators']} trees, learning "
        f"rate {settings['learning_rate']}, depth {settings['max_depth']}, min_child_weight "
        f"{settings['min_child_weight']}.\n",
        "`worst fifth`: the lowest coverage of five groups of the test rows by their predicted "
        "mean, after the mean over the splits. Width and interval score (the width, plus 20 times "
        "how far a target lies outside; Gneiting & Raftery 2007, eq. 43; lower is better) are in "
        "standard deviations of the target. `processor seconds`: of fitting and calibrating on one "
        "thread, medians.\n",
        *runner.markdown(rows, 2),
        "\n## What bins that are made once save\n",
        "The same folds and settings; `bin_features` is counted. Ratio of the mean processor "
        "seconds, and the standard error of the paired ratios.\n",
        *runner.markdown(saved, 2),
        f"\n{runner.origin(records, 'distributions intervals')}",
    ]


if __name__ == "__main__":
    runner.start(main)
