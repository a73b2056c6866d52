"""Held-out loss of linear leaves and of constant ones, in sklboost and in LightGBM.

200 trees, learning rate 0.1, depth 6, at most 20,000 rows to train on; root mean squared error for
regression, log loss for classes. Each figure is a mean over splits, the same for all.

Run `python -m benchmarks.linear_leaves`; it writes `benchmarks/results/linear_leaves.md`.
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.metrics import log_loss, root_mean_squared_error

from . import datasets, environment
from .datasets import Dataset

SETTINGS = dict(n_estimators=200, learning_rate=0.1, max_depth=6)
LIGHTGBM = dict(
    num_leaves=64, min_child_weight=1.0, min_child_samples=1, reg_lambda=1.0, verbose=-1
)
MOST_ROWS = 20_000
REAL = (
    *("california_housing", "protein_casp", "diamonds", "bike_hour", "ames_housing"),
    *("adult", "bank_marketing", "weather_aus", "lgb_binary_higgs", "lgb_multiclass"),
)


def friedman(seed):
    """Return Friedman's first problem (1991): smooth in five features of ten."""
    rng = np.random.default_rng(seed)
    X = rng.random((MOST_ROWS, 10))
    signal = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2
    signal += 10.0 * X[:, 3] + 5.0 * X[:, 4]
    return _divided("friedman", X, signal + rng.normal(size=MOST_ROWS), 5_000)


def waves(seed):
    """Return a sum of waves with little noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(MOST_ROWS, 4))
    signal = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + np.cos(X[:, 3])
    return _divided("waves", X, signal + 0.1 * rng.normal(size=MOST_ROWS), 10_000)


SMOOTH = {"friedman": friedman, "waves": waves}


def main(arguments=None):
    """Fit all variants on all data sets and splits; write the table."""
    environment.sleep_when_idle()
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--datasets", nargs="+", default=[*SMOOTH, *REAL])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    lines = []
    for name in options.datasets:
        losses = np.array([_losses(_load(name, seed), options) for seed in range(options.seeds)])
        lines.append(_line(name, losses))
        print(lines[-1], flush=True)
    head = ["data set", "constant", "linear", *(f"{name} / constant" for name in NAMES[1:])]
    rows = [head, ["---"] + ["--:"] * (len(head) - 1)]
    table = [*(f"| {' | '.join(row)} |" for row in rows), *lines]
    page = "\n".join(["# Held-out loss of linear leaves", "", *table, ""])
    (options.out / "linear_leaves.md").write_text(page, encoding="utf-8")


NAMES = ("constant", "linear", "LightGBM", "LightGBM linear", "LightGBM linear, lambda 0")


def _losses(dataset, options):
    """Return the loss of each of `NAMES`."""
    import lightgbm

    import sklboost

    if dataset.task == "regression":
        own, peer = sklboost.XGBRegressorLite, lightgbm.LGBMRegressor
    else:
        own, peer = sklboost.XGBClassifierLite, lightgbm.LGBMClassifier
    common = SETTINGS | dict(n_jobs=options.threads)
    linear = dict(linear_tree=True, linear_lambda=1.0)
    variants = (
        own(**common),
        own(**common, **linear),
        peer(**common, **LIGHTGBM),
        peer(**common, **LIGHTGBM, **linear),
        peer(**common, **LIGHTGBM, **(linear | dict(linear_lambda=0.0))),
    )
    return [_loss(model, dataset) for model in variants]


def _loss(model, dataset):
    model.fit(dataset.X_train, dataset.y_train)
    if dataset.task == "regression":
        return root_mean_squared_error(dataset.y_test, model.predict(dataset.X_test))
    return log_loss(dataset.y_test, model.predict_proba(dataset.X_test))


def _line(name, losses):
    """Return the line of a data set; ratios are paired, so with little noise of the splits."""
    means, ratios = losses.mean(axis=0), (losses / losses[:, :1]).mean(axis=0)
    cells = [*(f"{loss:.5g}" for loss in means[:2]), *(f"{ratio:.3f}" for ratio in ratios[1:])]
    return f"| {name} | {' | '.join(cells)} |"


def _load(name, seed):
    if name in SMOOTH:
        return SMOOTH[name](seed)
    dataset = datasets.load(name, seed)
    return dataset._replace(
        X_train=dataset.X_train[:MOST_ROWS], y_train=dataset.y_train[:MOST_ROWS]
    )


def _divided(name, X, y, n_train):
    return Dataset(name, "regression", X[:n_train], y[:n_train], X[n_train:], y[n_train:])


if __name__ == "__main__":
    main()
