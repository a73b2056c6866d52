"""Survival times: concordance and integrated Brier score on rows held out, beside other libraries.

The data sets come with scikit-survival. Each split has a third of the rows to test on, with as many
events in proportion; of the largest, 2,000 rows are drawn for training and 1,000 for testing.
Categories are 0 and 1 for each level, missing numbers the median. Boosters have 100 trees, learning
rate 0.1, depth 3, one thread, nothing tuned.

Run `python -m benchmarks.survival`; it writes `survival.jsonl` and `.md`. It needs scikit-survival,
lifelines and xgboost.
"""

import time
import warnings

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from sklboost import XGBSurvivalLite

from . import runner

DATASETS = ("gbsg2", "whas500", "veterans_lung_cancer", "aids", "flchain")
SETTINGS = dict(n_estimators=100, learning_rate=0.1, max_depth=3)
MOST_TRAIN, MOST_TEST = 2000, 1000


def load(name, seed):
    """Return training and test features and targets of a split."""
    from sksurv import datasets

    X, y = getattr(datasets, f"load_{name}")()
    X = X.drop(columns="chapter", errors="ignore")  # of flchain: the cause of death
    X = pd.get_dummies(X, drop_first=True).astype(float)
    X = X.fillna(X.median()).to_numpy()
    event, time_ = y.dtype.names
    y = np.array(list(zip(y[event], y[time_], strict=True)), [("event", "?"), ("time", "f8")])
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=1 / 3, stratify=y["event"], random_state=seed
    )
    return X[:MOST_TRAIN], y[:MOST_TRAIN], X_test[:MOST_TEST], y_test[:MOST_TEST]


# --- models: from training rows to risks and survival functions of others ------------------------


def ours(X, y, **settings):
    """Return risks and functions of XGBSurvivalLite."""
    model = XGBSurvivalLite(**SETTINGS, n_jobs=1, **settings).fit(X, y)
    return model.predict, model.predict_survival_function


def ours_efron(X, y):
    return ours(X, y, ties="efron")


def ours_aft(X, y):
    y = y.copy()
    y["time"] = np.maximum(y["time"], 0.5)  # of days: the logarithm of 0 is infinite
    return ours(X, y, objective="survival:aft")


def gradient_boosting(X, y):
    """Return those of scikit-survival."""
    from sksurv.ensemble import GradientBoostingSurvivalAnalysis

    model = GradientBoostingSurvivalAnalysis(**SETTINGS, random_state=0).fit(X, y)
    return model.predict, model.predict_survival_function


def random_forest(X, y):
    from sksurv.ensemble import RandomSurvivalForest

    model = RandomSurvivalForest(100, min_samples_leaf=15, random_state=0, n_jobs=1).fit(X, y)
    return model.predict, model.predict_survival_function


def cox_model(X, y):
    """Return those of the linear model, with a small penalty."""
    from sksurv.linear_model import CoxPHSurvivalAnalysis

    spread = X.std(axis=0) + 1e-9
    model = CoxPHSurvivalAnalysis(alpha=0.1).fit(X / spread, y)
    return (
        lambda rows: model.predict(rows / spread),
        lambda rows: model.predict_survival_function(rows / spread),
    )


def xgboost(X, y):
    """Return the risks of XGBoost, and the survival functions of scikit-survival's baseline."""
    from sksurv.linear_model.coxph import BreslowEstimator
    from xgboost import XGBRegressor

    labels = np.where(y["event"], y["time"], -y["time"])
    model = XGBRegressor(objective="survival:cox", base_score=1.0, n_jobs=1, **SETTINGS)
    model.fit(X, labels)

    def risk(rows):
        return model.predict(rows, output_margin=True).astype(float)

    baseline = BreslowEstimator().fit(risk(X), y["event"], y["time"])
    return risk, lambda rows: baseline.get_survival_function(risk(rows))


MODELS = {
    ours: "sklboost, `survival:cox`",
    ours_efron: 'sklboost, `ties="efron"`',
    ours_aft: "sklboost, `survival:aft`",
    gradient_boosting: "scikit-survival, gradient boosting",
    xgboost: "XGBoost, `survival:cox`",
    random_forest: "scikit-survival, random forest",
    cox_model: "scikit-survival, linear Cox model",
}


# --- measuring ------------------------------------------------------------------------------------


def main(arguments=None):
    """Fit every model to every split of every data set; then write the table."""
    runner.sleep_when_idle()
    parser = runner.parser("benchmarks.survival", __doc__)
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--seeds", type=int, default=20, help="splits of each data set")
    options = parser.parse_args(arguments)
    shown = ("dataset", "seed", "model", "concordance", "brier_score")
    runner.write_results("survival", _records(options), shown, write_table, options)


def _records(options):
    for name in options.datasets:
        for seed in range(options.seeds):
            X, y, X_test, y_test = load(name, seed)
            for fit in MODELS:
                begin = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    risk, functions = fit(X, y)
                seconds = time.process_time() - begin
                yield {
                    "settings": SETTINGS,
                    "dataset": name,
                    "n_train": len(X),
                    "n_test": len(X_test),
                    "events": float(y["event"].mean()),
                    "seed": seed,
                    "model": fit.__name__,
                    **_scores(risk(X_test), functions(X_test), y, y_test),
                    "cpu_seconds": seconds,
                }


def _scores(risk, functions, y, y_test):
    """Return concordance, as three libraries have it, and the integrated Brier score."""
    from lifelines.utils import concordance_index
    from sksurv.metrics import brier_score, concordance_index_censored

    from sklboost.objectives.metrics import concordance

    event, time_ = y_test["event"], y_test["time"]
    ours_ = concordance(
        np.column_stack(
            [time_, np.where(event, time_, np.inf), np.full(len(risk), -np.inf), 0.0 * time_]
        ),
        risk,
        np.empty(0),
    )
    theirs = concordance_index_censored(event, time_, risk, tied_tol=0.0)[0]
    # inside of the times of both parts, where the estimate of censoring is not 0
    known = time_ < y["time"].max()
    low, high = np.percentile(time_[event & known], [10, 80])
    times = np.linspace(low, min(high, time_[known].max() * 0.999), 50)
    survival = np.array([function(times) for function in functions])
    # integrated here: scikit-survival 0.26 does it with a function that NumPy 2.4 has no more
    _, scores = brier_score(y, y_test[known], survival[known], times)
    brier = np.trapezoid(scores, times) / (times[-1] - times[0])
    return {
        "concordance": float(ours_),
        "concordance_of_scikit_survival": float(theirs),
        "concordance_of_lifelines": float(concordance_index(time_, -risk, event)),
        "brier_score": float(brier),
    }


# --- the table ------------------------------------------------------------------------------------


def write_table(records):
    """Return the lines of the page `survival.md`."""
    names = {fit.__name__: name for fit, name in MODELS.items()}
    rows = [["data set", "model", "concordance", "± s.e.", "integrated Brier score", "± s.e."]]
    rows[0].append("processor seconds")
    for (dataset, model), own in runner.grouped(records, "dataset", "model").items():
        row = [dataset, names[model]]
        for key in ("concordance", "brier_score"):
            row += runner.cells(*runner.mean_and_error(record[key] for record in own))
        rows.append([*row, f"{np.median([record['cpu_seconds'] for record in own]):.2f}"])
    off = max(abs(r["concordance"] - r["concordance_of_scikit_survival"]) for r in records)
    return [
        "# Survival times\n",
        f"Means over {len({record['seed'] for record in records})} random splits of the data sets "
        "that come with scikit-survival, a third of the rows held out (of flchain 2,000 rows to "
        "train and 1,000 to test, without the cause of death). Boosters have 100 trees, learning "
        "rate 0.1 and depth 3, the forest 100 trees of 15 rows a leaf; nothing is tuned. XGBoost "
        "has no survival functions: its risks get scikit-survival's Breslow estimator.\n",
        "Concordance: greater is better, 0.5 is chance. Integrated Brier score (of "
        "scikit-survival, between the tenth and the eightieth percentile of the events): smaller "
        "is better. Standard errors are over the splits, which share rows. Processor seconds of a "
        f"fit, medians. Our concordance differs from scikit-survival's by {off:.1g} at most.\n",
        *runner.markdown(rows, 2),
        f"\n{runner.origin(records, 'survival')}",
    ]


if __name__ == "__main__":
    runner.start(main)
