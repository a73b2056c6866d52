"""The preset beside tuned models: 50 trials of Optuna for LightGBM, CatBoost and ours.

Each trial draws parameters from the library's space (`SPACES`) with the TPE sampler and is judged
by five folds of the training rows, in which training stops 50 rounds after the best loss, at 1,000
rounds at most. Optuna's median pruner ends a trial whose mean over the folds so far is above the
median of those before. The best parameters are fitted on all training rows, with the mean of the
folds' best rounds times 5/4, since a fold trains on four fifths of them. The test rows are looked
at once. Ours has its bins made once for all trials and folds.

Categories are each library's own on the data sets of `categories.py`, and ordinal codes on the
others. One thread; each model is measured in a process of its own, after a small search that
imports, compiles and starts what is needed.

Run `python -m benchmarks.tuned`; it writes `tuned.jsonl` and `.md`. With `--append` what is there
is not measured again, so that a run of hours can be continued.
"""

import math
import time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold, StratifiedKFold

from sklboost import bin_features

from . import categories, datasets, peers, runner
from .runner import OURS

N_TRIALS, N_FOLDS, PATIENCE, MOST_ROUNDS = 50, 5, 50, 1_000
MOST_TEST_ROWS = 10_000
# CatBoost takes hours on more rows, most of all for several classes.
MOST_ROWS = {
    "california_housing": 2_000,
    "bike_hour": 2_000,
    "bank_marketing": 2_000,
    "weather_aus": 2_000,
    "protein_casp": 2_000,
    "lgb_multiclass": 1_000,
}

# What is searched: (least, most), with "log" by the logarithm, or a list of values.
SPACES = {
    # of Optuna's example of LightGBM (without the logarithm of the leaves), and the learning rate
    "lightgbm": {
        "learning_rate": (0.01, 0.3, "log"),
        "num_leaves": (2, 256, "log"),
        "min_child_samples": (5, 100),
        "feature_fraction": (0.4, 1.0),
        "bagging_fraction": (0.4, 1.0),
        "bagging_freq": (1, 7),
        "lambda_l1": (1e-8, 10.0, "log"),
        "lambda_l2": (1e-8, 10.0, "log"),
    },
    # the parameters of CatBoost's page on tuning; smaller steps and deeper trees take many hours
    "catboost": {
        "learning_rate": (0.03, 0.3, "log"),
        "depth": (4, 8),
        "l2_leaf_reg": (0.5, 30.0, "log"),
        "random_strength": (0.01, 10.0, "log"),
        "bagging_temperature": (0.0, 1.0),
    },
    # XGBoost's usual ones, and those that the preset compares
    OURS: {
        "learning_rate": (0.01, 0.3, "log"),
        "max_depth": (3, 10),
        "min_child_weight": (0.1, 20.0, "log"),
        "subsample": (0.5, 1.0),
        "colsample_bylevel": (0.3, 1.0),
        "reg_lambda": (0.1, 10.0, "log"),
        "extra_trees": [False, True],
        "grow_policy": ["depthwise", "symmetric"],
        "max_ctr_complexity": [0, 1],
    },
}
# Symmetric trees take no categories, and statistics of the target need some.
WITHOUT_CATEGORIES, WITH_CATEGORIES = ("grow_policy",), ("max_ctr_complexity",)
SILENT = {
    "lightgbm": {"verbosity": -1},
    "catboost": {"allow_writing_files": False, "logging_level": "Silent"},
    OURS: {"verbose": 0},
}


class Model(NamedTuple):
    """A library at its defaults but for `changes`, or tuned."""

    library: str
    is_tuned: bool = False
    changes: dict[str, Any] = {}  # noqa: RUF012 - of a tuple, and read only


PRESET, BEST = "preset", "best of theirs"
MODELS = {  # in the order in which they are measured: CatBoost takes longest
    PRESET: Model(OURS, changes={"preset": "auto"}),
    "lightgbm": Model("lightgbm"),
    "catboost": Model("catboost"),
    "ours-tuned": Model(OURS, is_tuned=True),
    "lightgbm-tuned": Model("lightgbm", is_tuned=True),
    "catboost-tuned": Model("catboost", is_tuned=True),
}


def main(arguments=None):
    """Measure every model on every data set and split; then write the table."""
    parser = runner.parser("benchmarks.tuned", __doc__)
    add = parser.add_argument
    add("--datasets", nargs="+", choices=tuple(MOST_ROWS), default=list(MOST_ROWS))
    add("--models", nargs="+", choices=tuple(MODELS), default=list(MODELS))
    add("--seeds", nargs="+", type=int, default=[0], help="of the splits")
    add("--trials", type=int, default=N_TRIALS)
    options = parser.parse_args(arguments)
    shown = ("dataset", "seed", "model", "test_loss", "cpu_seconds")
    runner.write_results("tuned", _records(options), shown, write_table, options)


def _records(options):
    lines = options.out / "tuned.jsonl"
    done = runner.read(lines) if options.append and lines.exists() else []
    done = {(record["dataset"], record["seed"], record["model"]) for record in done}
    for seed in options.seeds:
        for model in options.models:
            if not peers.is_installed(MODELS[model].library):
                continue
            for name in options.datasets:
                if (name, seed, model) not in done:
                    yield runner.in_child("benchmarks.tuned", name, seed, model, options.trials)


def measure(name, seed, model, n_trials):
    """Return the record of a model on a split of a data set, cut to `MOST_ROWS`."""
    runner.sleep_when_idle()
    if name in categories.REAL:
        dataset = categories.load(name, seed)[0]
    else:
        dataset = datasets.load(name, seed)
    dataset = dataset.cut(MOST_ROWS[name], MOST_TEST_ROWS)
    few = dataset.cut(200, 200)
    fit_and_judge(model, few, seed, n_trials=10, most_rounds=2)
    return {
        **dataset.facts,
        "seed": seed,
        "model": model,
        **fit_and_judge(model, dataset, seed, n_trials=n_trials),
    }


def fit_and_judge(model, dataset, seed, n_trials=N_TRIALS, most_rounds=MOST_ROUNDS):
    """Return a model's loss on the test rows, and the processor seconds of search and fit."""
    library, is_tuned, changes = MODELS[model]
    if library == "catboost" and _categories_of(dataset):
        dataset = categories.prepare(library, dataset)
    with peers.quiet(library, 1):
        start, cpu_start = time.perf_counter(), time.process_time()
        found = {}
        if is_tuned:
            changes, found = search(library, dataset, seed, n_trials, most_rounds)
        fitted = _make(library, dataset, seed, **changes)
        fitted.fit(dataset.X_train, dataset.y_train)
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
        prediction = peers.predict(library, fitted, dataset.X_test, dataset.task, 1)
    if "preset" in changes:
        changes = changes | fitted.chosen_params_
    return {
        "parameters": changes,
        **found,
        "test_loss": peers.held_out_loss(dataset.task, dataset.y_test, prediction),
        "cpu_seconds": cpu_seconds,
        "seconds": seconds,
    }


def search(library, dataset, seed, n_trials=N_TRIALS, most_rounds=MOST_ROUNDS):
    """Search the space of a library on folds of the training rows.

    Returns
    -------
    parameters : dict
        Of the best trial, with the number of rounds for all training rows.
    facts : dict
        ``validation_loss``, the mean over the folds of the best trial, and ``n_pruned`` trials.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    X, y = dataset.X_train, dataset.y_train
    if library == OURS:
        X = bin_features(X, n_jobs=1, verbose=0)
    splitter = KFold if dataset.task == "regression" else StratifiedKFold
    folds = list(splitter(N_FOLDS, shuffle=True, random_state=seed).split(np.zeros(len(y)), y))
    fixed, space = _fixed(library, dataset.task), _space_of(library, dataset)

    def judge(trial):
        changes = fixed | {name: _draw(trial, name, values) for name, values in space.items()}
        changes |= {"n_estimators": most_rounds, "early_stopping_rounds": PATIENCE}
        losses, rounds = [], []
        for step, (train, held_out) in enumerate(folds):
            fitted = _make(library, dataset, seed, **changes)
            X_held_out, y_held_out = _rows(X, held_out), y[held_out]
            fitted.fit(_rows(X, train), y[train], eval_set=[(X_held_out, y_held_out)])
            # all three predict with the rounds up to the best one
            prediction = peers.predict(library, fitted, X_held_out, dataset.task, 1)
            losses.append(peers.held_out_loss(dataset.task, y_held_out, prediction))
            rounds.append(_best_round(library, fitted))
            trial.report(float(np.mean(losses)), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        trial.set_user_attr("rounds", float(np.mean(rounds)))
        return float(np.mean(losses))

    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=seed), pruner=optuna.pruners.MedianPruner()
    )
    study.optimize(judge, n_trials=n_trials)
    best = study.best_trial
    n_rounds = math.ceil(best.user_attrs["rounds"] * N_FOLDS / (N_FOLDS - 1))
    parameters = {**fixed, **best.params, "n_estimators": n_rounds}
    pruned = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.PRUNED])
    return parameters, {"validation_loss": best.value, "n_pruned": len(pruned)}


def _space_of(library, dataset):
    left_out = WITHOUT_CATEGORIES if _categories_of(dataset) else WITH_CATEGORIES
    return {name: values for name, values in SPACES[library].items() if name not in left_out}


def _fixed(library, task):
    """Return what all trials of a library have in common with the fit after them."""
    if library != "catboost":
        return {}
    # bagging_temperature belongs to the bootstrap. 128 borders, not 254: on so few rows half the
    # time, and no other loss.
    fixed = {"bootstrap_type": "Bayesian", "border_count": 128}
    # Its default, but only of 200 rounds or more: the last fit, of fewer, would be worse.
    return fixed | ({"leaf_estimation_iterations": 10} if task == "binary" else {})


def _draw(trial, name, values):
    """Return a trial's value of a parameter of `SPACES`."""
    if isinstance(values, list):
        return trial.suggest_categorical(name, values)
    suggest = trial.suggest_int if isinstance(values[0], int) else trial.suggest_float
    return suggest(name, *values[:2], log="log" in values)


def _make(library, dataset, seed, **changes):
    own = SILENT[library] | changes
    if _categories_of(dataset):
        own |= categories.parameters(library, dataset)
    return peers.make_estimator(library, None, dataset.task, 1, seed, **own)


def _categories_of(dataset):
    X = dataset.X_train
    return categories.category_names(X) if isinstance(X, pd.DataFrame) else []


def _rows(X, rows):
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def _best_round(library, fitted):
    """Return the number of rounds with which the loss on the held-out rows was least."""
    if library == "lightgbm":
        return fitted.best_iteration_  # counted from 1, by the others from 0
    return fitted.best_iteration_ + 1


# --- the table ------------------------------------------------------------------------------------


def write_table(records):
    """Return the lines of the page `tuned.md`."""
    loss, seconds = _means(records, "test_loss"), _means(records, "cpu_seconds")
    of_loss, of_seconds = _of_preset(loss), _of_preset(seconds)
    of_loss[BEST] = _of_best(loss)
    others = list(of_loss)
    ratios = [["preset's loss / that of", *others]]
    losses, spent = ([["data set", *head, *MODELS]] for head in (["train x features"], []))
    n_splits = {}
    for name, own in runner.grouped(records, "dataset").items():
        name, fact = name[0], own[0]
        n_splits[name] = len({record["seed"] for record in own})
        size = f"{fact['n_train']:,} x {fact['n_features']}"
        losses.append([name, size, *runner.cells(*loss[name].values(), form=".5g")])
        spent.append([name, *runner.cells(*seconds[name].values(), form=".1f")])
        ratios.append([name, *runner.cells(*(of_loss[model][name] for model in others))])
    ratios.append(["geometric mean", *runner.cells(*map(_middle, of_loss.values()))])
    of_times = (1.0 / _middle(own) for own in of_seconds.values())
    ratios.append(["its seconds / preset's", *runner.cells(*of_times, form=".1f"), ""])
    spaces = [["library", "parameter", "values"]]
    for library, space in SPACES.items():
        spaces += [[library, f"`{name}`", _text(values)] for name, values in space.items()]
    return [
        "# The preset beside tuned models\n",
        *_standing(of_loss, of_seconds),
        "",
        *runner.markdown(ratios),
        f"\nBelow 1 the preset is better. {_text_of_splits(n_splits)} of each data set, so "
        "differences of one or two per cent may be chance. `lightgbm` and `catboost` are at their "
        f"defaults; `{BEST}` is the least loss of LightGBM and CatBoost, tuned or not, chosen on "
        "the test rows. Seconds: geometric means over the data sets.\n",
        "## Loss\n",
        "Root mean squared error for regression, mean log loss otherwise, on at most "
        f"{MOST_TEST_ROWS:,} test rows. So few training rows because the search of CatBoost takes "
        "long.\n",
        *runner.markdown(losses, 2),
        "\n## Processor seconds\n",
        "Of search and fit, one thread, while other work used the machine.\n",
        *runner.markdown(spent),
        "\n## The search\n",
        f"{N_TRIALS} trials of Optuna's TPE sampler, judged by {N_FOLDS} folds of the training "
        f"rows; at most {MOST_ROUNDS:,} rounds, fewer if the loss has not improved for {PATIENCE}. "
        "The median pruner ends a trial whose mean over the folds so far is above the median of "
        "the trials before. Then a fit on all training rows with the mean of the folds' best "
        "rounds times 5/4; the test rows are looked at once. `ours-tuned` has its bins made once "
        "(`bin_features`). bank_marketing and weather_aus have categories, which each library "
        "takes in its own way; those of the other data sets are ordinal codes.\n",
        *runner.markdown(spaces, 3),
        "\nLightGBM's are those of Optuna's example, but for the logarithm of the leaves, and the "
        "learning rate. CatBoost's are of "
        "its page on tuning, without steps below 0.03 and trees deeper than 8, for the time they "
        'take, with `bootstrap_type="Bayesian"`, which `bagging_temperature` belongs to, and '
        "`border_count=128`. Ours are XGBoost's usual ones and those that the preset compares; "
        "`grow_policy` is left out where there are categories, and `max_ctr_complexity` where "
        "there are none.\n",
        "Searches that ended at a bound of a whole number, so that a wider space may be better: "
        f"{_at_bounds(records)}.",
        f"\n{runner.origin(records, 'tuned')}",
    ]


def _means(records, figure):
    """Return {data set: {model: mean over the splits that all its models have}}; NaN: none."""
    means = {}
    for (name,), own in runner.grouped(records, "dataset").items():
        by_model = {
            model: runner.by_seed(of_model, figure)
            for (model,), of_model in runner.grouped(own, "model").items()
        }
        shared = set.intersection(*map(set, by_model.values()))
        means[name] = {
            model: float(np.mean([by_model[model][seed] for seed in shared]))
            if shared and model in by_model
            else np.nan
            for model in MODELS
        }
    return means


def _of_preset(means):
    """Return {model: {data set: the preset's figure over the model's}}."""
    return {
        model: {name: own[PRESET] / own[model] for name, own in means.items()}
        for model in MODELS
        if model != PRESET
    }


def _of_best(means):
    """Return {data set: the preset's loss over the least of LightGBM's and CatBoost's}."""
    of_peers = [model for model in MODELS if MODELS[model].library != OURS]
    return {
        name: own[PRESET] / np.fmin.reduce([own[model] for model in of_peers])
        for name, own in means.items()
    }


def _middle(ratios):
    """Return the geometric mean of those that were measured; NaN: none."""
    measured = [math.log(ratio) for ratio in ratios.values() if not np.isnan(ratio)]
    return math.exp(np.mean(measured)) if measured else np.nan


def _standing(of_loss, of_seconds):
    """Say where the preset stands beside each tuned model."""
    yield 'The loss of `preset="auto"` on test rows, beside 50 trials of each library:\n'
    for model in (name for name in of_seconds if MODELS[name].is_tuned):
        ratios = [ratio for ratio in of_loss[model].values() if not np.isnan(ratio)]
        if not ratios:
            continue
        n_better = sum(ratio < 1.0 for ratio in ratios)
        yield (
            f"- {_middle(of_loss[model]):.3f} times that of `{model}`, {min(ratios):.3f} to "
            f"{max(ratios):.3f}, lower on {n_better} of {len(ratios)} data sets, for 1/"
            f"{1.0 / _middle(of_seconds[model]):.0f} of the processor seconds"
        )


def _at_bounds(records):
    """List the parameters, whole numbers, that a search would perhaps have chosen beyond."""
    ends = {}
    for record in records:
        library, is_tuned, _ = MODELS[record["model"]]
        for name, values in SPACES[library].items() if is_tuned else ():
            value = record["parameters"].get(name)
            if isinstance(values[0], int) and value in values[:2] and isinstance(values, tuple):
                ends[record["model"], record["dataset"], f"`{name}={value}`"] = None
    found = [f"{end} of {model} on {name}" for model, name, end in ends]
    return "; ".join(found) if found else "none"


def _text_of_splits(n_splits):
    least, most = min(n_splits.values()), max(n_splits.values())
    if least < most:
        return f"{least} to {most} splits"
    return "One split" if most == 1 else f"{most} splits"


def _text(values):
    if isinstance(values, list):
        return ", ".join(f"`{value!r}`" for value in values)
    least, most, *log = values
    return f"{least:g} to {most:g}" + (", by the logarithm" if log else "")


if __name__ == "__main__":
    runner.start(main, measure)
