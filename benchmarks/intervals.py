"""Coverage and width of intervals: quantiles or distributions alone, and conformal prediction.

Nine tenths of the targets should lie within. Each split has 10,000 rows to learn from and 5,000 to
test on. What is calibrated on rows of its own learns from two thirds of the first and is calibrated
on the rest. 100 trees, learning rate 0.1, depth 6, a thread.

Run `python -m benchmarks.intervals`; it writes `benchmarks/results/intervals.jsonl` and `.md`.
"""

import argparse
import time
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import KFold, cross_val_predict

from sklboost import XGBDistributionLite, XGBRegressorLite, bin_features

from . import datasets, environment
from .interval_table import write_table
from .records import add_output_options, write_results

REAL = ("california_housing", "bike_hour", "protein_casp")
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


# --- methods: from data to a function that gives intervals of shape (n_samples, 2) ----------------


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


METHODS = (
    *(quantile_alone, distribution_alone, split, split_scaled, distribution_split),
    *(cross, cross_on_bins, quantiles_split, quantiles_cross, quantiles_cross_on_bins),
)


# --- measuring ------------------------------------------------------------------------------------


def main(arguments=None):
    """Make intervals with every method, on every data set and split; then write the table."""
    environment.sleep_when_idle()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.intervals", description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=REAL)
    parser.add_argument("--seeds", type=int, default=20, help="splits of each data set")
    names = [method.__name__ for method in METHODS]
    parser.add_argument("--methods", nargs="+", default=names, choices=names)
    add_output_options(parser)
    options = parser.parse_args(arguments)
    shown = ("dataset", "seed", "method", "coverage", "width")
    write_results("intervals", _records(options), shown, write_table, options)


def _records(options):
    constant = environment.describe() | {"settings": SETTINGS, "confidence": CONFIDENCE}
    constant |= {"n_train": N_TRAIN, "n_fit": N_FIT, "n_test": N_TEST}
    methods = [method for method in METHODS if method.__name__ in options.methods]
    for name in options.datasets:
        for seed in range(options.seeds):
            data = _divided(datasets.load(name, seed))
            if seed == 0:  # compiled before it is timed
                _warm_up(methods, data)
            middle = mean_model().fit(data.X_fit, data.y_fit).predict(data.X_test)
            groups = np.array_split(np.argsort(middle, kind="stable"), GROUPS)
            for method in methods:
                yield {
                    "kind": "intervals",
                    "time": environment.now(),
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


def _warm_up(methods, data):
    few = Data(*(part[:300] for part in data))
    for method in methods:
        method(few)(few.X_test)


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


if __name__ == "__main__":
    main()
