"""What each part of the preset is good for: `python -m benchmarks.preset --csv FOLDER`.

Data sets of R packages that took no part in its development: FOLDER has a CSV file for each, by
package, as the Python package pydataset does in `resources/rdata/csv`. Categories are codes. The
preset is trained as it is and with one of its parts changed; CatBoost at its defaults where it is
installed. One thread, processor seconds.
"""

import time
from pathlib import Path

import numpy as np
import pandas as pd

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.estimators.fit import preset

from . import peers, runner

# the column that is predicted, of each data set
TARGETS = {
    **{"Ecdat/Computers": "price", "car/SLID": "wages", "Ecdat/Wages1": "wage"},
    **{"Ecdat/OFP": "ofp", "Ecdat/DoctorContacts": "mdu", "Ecdat/BudgetFood": "wfood"},
    **{"Ecdat/HI": "whrswk", "Ecdat/Star": "tmathssk", "robustbase/NOxEmissions": "LNOx"},
    **{"ggplot2/movies": "rating", "Ecdat/Males": "wage", "Ecdat/Benefits": "ui"},
    **{"Ecdat/PSID": "earnings", "Ecdat/Workinghours": "hours", "Ecdat/LaborSupply": "lnhr"},
    **{"COUNT/azpro": "los", "COUNT/rwm5yr": "docvis", "survival/nwtco": "rel"},
    **{"Ecdat/Schooling": "wage76", "Ecdat/RetSchool": "wage76", "Ecdat/CPSch3": "ahe"},
    **{"plyr/baseball": "hr", "car/Chile": "vote", "MASS/Aids2": "status"},
    **{"Ecdat/Train": "choice", "Ecdat/VietNamI": "pharvis", "survival/flchain": "death"},
    **{"Ecdat/VietNamH": "lntotal", "MASS/Boston": "medv", "Ecdat/Hedonic": "mv"},
    **{"car/Prestige": "prestige", "MASS/Pima.te": "type", "Ecdat/Mroz": "hearnw"},
    **{"MASS/biopsy": "class", "Ecdat/Fatality": "mrall", "Ecdat/Catsup": "choice"},
    **{"datasets/infert": "case", "HistData/Galton": "child", "Ecdat/Car": "choice"},
}
# columns that tell the target, or are names of rows
LEFT_OUT = {
    "ggplot2/movies": ("title", *(f"r{i}" for i in range(1, 11))),
    "survival/flchain": ("futime", "chapter"),
    "plyr/baseball": ("X2b", "X3b"),
    "MASS/biopsy": ("ID",),
}
MOST_ROWS, FEWEST_OF_A_CLASS = 20_000, 20
MOST_LABELS = 10  # a column of more numbers is a target of regression


def _without(parameter):
    def plan_for(task, plan_for=preset.plan_for):
        plan = plan_for(task)
        return plan._replace(stages=[s for s in plan.stages if s.parameter != parameter])

    return {"plan_for": plan_for}


def _with_large_covers(task, plan_for=preset.plan_for):
    """Compare leaves of a cover of 8 rows, too, which the preset once did."""
    plan = plan_for(task)
    covers = [stage.values for stage in plan.stages if stage.parameter == "min_child_weight"]
    values = (*(covers[0] if covers else (1.0,)), 8.0)
    stage = preset.Stage("min_child_weight", values, "")
    others = [stage for stage in plan.stages if stage.parameter != "min_child_weight"]
    return plan._replace(stages=[*others[:2], stage, *others[2:]])


# by what is changed: names in `preset`, or in its `Trials`, and their values
AS_IT_IS, CATBOOST = "as it is", "CatBoost"
NEVER_ENDED = ({"_BEFORE_RACE": 10**9}, {"_is_behind": lambda *_: False})
VARIANTS = {
    AS_IT_IS: ({}, {}),
    "without symmetric trees": (_without("grow_policy"), {}),
    "without extra_trees": (_without("extra_trees"), {}),
    "without colsample_bylevel": (_without("colsample_bylevel"), {}),
    "with min_child_weight 8": ({"plan_for": _with_large_covers}, {}),
    "every trial to its end": NEVER_ENDED,
    "patience of 30 rounds": ({"_PATIENCE": 30}, {}),
    CATBOOST: ({}, {}),
}


def main(arguments=None):
    """Fit every variant on every data set and split; then write the table."""
    runner.sleep_when_idle()
    parser = runner.parser("benchmarks.preset", __doc__)
    parser.add_argument("--csv", type=Path, help="folder of the data sets")
    parser.add_argument("--datasets", nargs="+", default=list(TARGETS))
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS))
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args(arguments)
    if options.csv is None and not options.table_only:
        parser.error("--csv: the folder of the data sets is needed")
    shown = ("dataset", "seed", "variant", "loss", "cpu_seconds")
    runner.write_results("preset", _records(options), shown, write_table, options)


def load(folder, name):
    """Return the features, the target, and whether it is a number to be predicted."""
    frame = pd.read_csv(folder / f"{name}.csv", index_col=0)
    frame = frame.drop(columns=[column for column in LEFT_OUT.get(name, ()) if column in frame])
    frame = frame[frame[TARGETS[name]].notna()]
    y = frame.pop(TARGETS[name]).to_numpy()
    for column in frame:
        if not pd.api.types.is_numeric_dtype(frame[column]):
            codes = pd.factorize(frame[column], sort=True)[0]
            frame[column] = np.where(codes < 0, np.nan, codes)
    X = frame.to_numpy(dtype=np.float64)
    if y.dtype.kind in "fi" and len(np.unique(y)) > MOST_LABELS:
        return X, y.astype(np.float64), True
    labels, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    is_kept = counts[codes] > FEWEST_OF_A_CLASS
    return X[is_kept], np.unique(labels[codes[is_kept]], return_inverse=True)[1], False


def _records(options):
    for seed in range(options.seeds):
        for name in options.datasets:
            X, y, is_regression = load(options.csv, name)
            order = np.random.default_rng(seed).permutation(len(y))
            n_train = min(7 * len(y) // 10, MOST_ROWS)
            train, test = order[:n_train], order[n_train:]
            task = "regression" if is_regression else "multiclass"
            facts = {"dataset": name, "n_train": n_train, "n_features": X.shape[1], "seed": seed}
            for variant in options.variants:
                start = time.process_time()
                try:
                    model = _fit(variant, is_regression, X[train], y[train])
                except ImportError:
                    continue
                seconds = time.process_time() - start
                predict = model.predict if is_regression else model.predict_proba
                loss = peers.held_out_loss(task, y[test], predict(X[test]))
                yield {**facts, "variant": variant, "loss": loss, "cpu_seconds": seconds}


def _fit(variant, is_regression, X, y):
    """Return a fitted model of a variant: the preset is changed for the time of the fit."""
    if variant == CATBOOST:
        import catboost

        kind = catboost.CatBoostRegressor if is_regression else catboost.CatBoostClassifier
        model = kind(thread_count=1, allow_writing_files=False, logging_level="Silent")
        return model.fit(X, y)
    own, of_trials = VARIANTS[variant]
    before = [(part, name, getattr(part, name)) for part, name in _places(own, of_trials)]
    for part, changes in ((preset, own), (preset.Trials, of_trials)):
        for name, value in changes.items():
            setattr(part, name, value)
    try:
        kind = XGBRegressorLite if is_regression else XGBClassifierLite
        return kind(preset="auto", n_jobs=1, verbose=0).fit(X, y)
    finally:
        for part, name, value in before:
            setattr(part, name, value)


def _places(own, of_trials):
    return [*((preset, name) for name in own), *((preset.Trials, name) for name in of_trials)]


def write_table(records):
    """Return the lines of the page `preset.md`."""
    by_key = {(r["dataset"], r["seed"], r["variant"]): r for r in records}
    datasets = list(dict.fromkeys(r["dataset"] for r in records))
    variants = [v for v in VARIANTS if any(key[2] == v for key in by_key)]
    summary = [["variant", "loss, %", "± s.e.", "better on", "worse on", "time, median"]]
    ratios = {variant: _ratios(by_key, datasets, variant) for variant in variants}
    for variant in variants[1:]:
        losses, times = (np.array([pair[i] for pair in ratios[variant].values()]) for i in (0, 1))
        mean, error = runner.mean_and_error(100.0 * (losses - 1.0))
        counts = (str((losses < 1.0).sum()), str((losses > 1.0).sum()))
        time_ratio = f"{np.median(times):.2f}"
        summary.append([variant, f"{mean:+.2f}", f"{error:.2f}", *counts, time_ratio])
    rows = [["data set", "train x features", "loss", "s"]]
    rows[0] += [f"{variant}, %" for variant in variants[1:]]
    rows[0] += [f"s / {CATBOOST}'s"] if CATBOOST in variants else []
    for name in datasets:
        own = [r for r in by_key.values() if r["dataset"] == name and r["variant"] == AS_IT_IS]
        rows.append(
            [
                name,
                f"{own[0]['n_train']:,} x {own[0]['n_features']}",
                f"{np.mean([r['loss'] for r in own]):.4g}",
                f"{np.mean([r['cpu_seconds'] for r in own]):.2f}",
                *(f"{100.0 * (ratios[v][name][0] - 1.0):+.1f}" for v in variants[1:]),
                *([f"{1.0 / ratios[CATBOOST][name][1]:.2f}"] if CATBOOST in variants else []),
            ]
        )
    return [
        "# What each part of the preset is good for\n",
        f"{len(datasets)} data sets of R packages, which took no part in the development of the "
        f"preset before these variants; {1 + max(r['seed'] for r in records)} splits, 70 % of the "
        f"rows, at most {MOST_ROWS:,}, to train; categories as codes. Root mean squared error for "
        "regression, log loss for classes. The preset is changed in one part, and its loss and "
        "time are compared with the preset as it is, by data set: above 0, the part is of use.\n",
        *runner.markdown(summary),
        "",
        *runner.markdown(rows),
        f"\n{runner.origin(records, 'preset --csv FOLDER')}",
    ]


def _ratios(by_key, datasets, variant):
    """Return {data set: (loss, seconds) over the preset's as it is}, means over the splits."""
    ratios = {}
    for name in datasets:
        pairs = [
            (record, by_key[name, seed, AS_IT_IS])
            for (of, seed, which), record in by_key.items()
            if of == name and which == variant
        ]
        ratios[name] = tuple(
            np.mean([other[figure] / own[figure] for other, own in pairs])
            for figure in ("loss", "cpu_seconds")
        )
    return ratios


if __name__ == "__main__":
    runner.start(main)
