"""Held-out loss with each library's own categories, and with ordinal codes, at equal settings.

200 trees, learning rate 0.1, depth 6, everything about categories at each library's defaults; root
mean squared error for regression, log loss otherwise, over several splits that all libraries share.

Run `python -m benchmarks.categories`; it writes `categories.jsonl` and `.md`.
`python -m benchmarks.categories access` writes `access.jsonl` and `.md`: area under the ROC curve
and log loss where all columns are categories of many levels, at each library's defaults; and ours
with smaller steps, since the defaults of all but CatBoost overfit these data.
"""

import re
import time

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from . import datasets, peers, runner

LIBRARIES = ("sklboost", "xgboost", "lightgbm", "hist_gb", "catboost")
RIVALS = ("xgboost", "lightgbm")  # ours is compared with the better of these
# Splits: enough that the ratio of two libraries is known to 0.3 %.
SEEDS = {"ames_housing": 40, "weather_aus": 5, "zipf-5000": 5, "zipf-70000": 5, "access": 3}
DEFAULT_SEEDS = 10

# --- data: frames with columns of categories, or the same rows as ordinal codes -------------------

REAL = ("adult", "bank_marketing", "weather_aus", "ames_housing")
SYNTHETIC = ("zipf-5000", "zipf-70000", "access")
N_TRAIN, N_TEST, N_NUMBERS = 100_000, 50_000, 5  # of the synthetic data
# Levels of the columns of `access`, after those of the data set "Amazon employee access".
ACCESS_LEVELS = {
    "resource": 7500,
    "manager": 4250,
    "department": 450,
    "role": 350,
    "role_family": 70,
    "role_description": 2350,
    "rollup_1": 130,
    "rollup_2": 180,
}
ACCESS_TRAIN, ACCESS_TEST, REFUSED = 33_000, 33_000, 0.06
# Prices differ by factors: in squared errors of the price itself a few houses decide.
LOG_TARGET = ("ames_housing",)


def load(name, seed):
    """Load a data set, split (real) or drawn (synthetic) by `seed`, in both forms.

    Parameters
    ----------
    name : str
        One of `REAL`, `zipf-<levels>`, or `access`.
    seed : int

    Returns
    -------
    frames : Dataset
        ``X_train`` and ``X_test`` are data frames. Their columns of categories have all levels of
        the data set in their dtype; some may be in no training row.
    codes : Dataset
        The same rows as float64 arrays: categories are ranks of the sorted levels.
    """
    synthetic = re.fullmatch(r"zipf-(\d+)", name)
    if synthetic:
        X, y, task = _draw(int(synthetic[1]), seed)
        categorical = ["level"]
        train, test = np.split(np.arange(len(y)), [N_TRAIN])
    elif name == "access":
        X, y, task = _draw_access(seed)
        categorical = list(ACCESS_LEVELS)
        train, test = np.split(np.arange(len(y)), [ACCESS_TRAIN])
    elif name in REAL:
        X, y, task, categorical = _read(name)
        # the splits of datasets.load
        rows = np.random.default_rng(seed).permutation(len(y))
        test, train = np.split(rows, [int(datasets.TEST_FRACTION * len(y))])
    else:
        raise ValueError(
            f"{name!r}: it must be 'access', like 'zipf-5000', or one of {', '.join(REAL)}"
        )
    numbers = datasets.numeric(X, categorical)
    X = X.astype(dict.fromkeys(categorical, "category"))
    frames = datasets.Dataset(name, task, X.iloc[train], y[train], X.iloc[test], y[test])
    return frames, frames._replace(X_train=numbers[train], X_test=numbers[test])


def category_names(X):
    """List the names of a frame's columns of categories."""
    return list(X.select_dtypes("category").columns)


def _read(name):
    """Return frame, target, task and the names of categorical columns of a real data set."""
    raw = datasets.loader().load(name)
    parts = [(raw["X"], raw["y"]), raw["test"]] if "test" in raw else [(raw["X"], raw["y"])]
    X = pd.concat([part[0] for part in parts], ignore_index=True)
    y = np.concatenate([np.asarray(part[1]) for part in parts])
    if name in LOG_TARGET:
        y = np.log(y)
    return X, y, raw["task"], raw["cat"]


def _draw(n_levels, seed):
    """Draw a frame and a target of train rows, then test rows; the noise has deviation 1.

    Each level has an effect, drawn from a normal distribution, and so have the numbers, by a
    function with interactions. The k-th level has a probability in proportion to 1 / k (Zipf's
    law); besides, each is in one train row at least, if there are enough of them.
    """
    rng = np.random.default_rng(seed)
    n_rows = N_TRAIN + N_TEST
    probability = 1.0 / np.arange(1, n_levels + 1)
    level = rng.choice(n_levels, n_rows, p=probability / probability.sum())
    n_once = min(n_levels, N_TRAIN)
    level[:n_once] = np.arange(n_once)
    label = rng.permutation(n_levels)  # so that codes say nothing about effect or frequency
    latent = rng.standard_normal((n_rows, N_NUMBERS), dtype=np.float32)
    y = rng.standard_normal(n_levels)[level] + datasets.score(latent, 0)
    y += rng.standard_normal(n_rows)
    X = pd.DataFrame(latent, columns=[f"number_{column}" for column in range(N_NUMBERS)])
    X["level"] = np.char.add("level_", np.char.zfill(label[level].astype(str), 6)).astype(object)
    return X, y, "regression"


def _draw_access(seed):
    """Draw requests for access to a resource by employees: eight columns of categories.

    Departments and roles follow from the manager but for one request in ten, other columns from
    these; the k-th level has a probability in proportion to 1 / (k + 10). Whether a request is
    granted depends on the levels of each column, those of few rows most, and on pairs of levels:
    of department and resource, role and department, manager and role family.
    """
    rng = np.random.default_rng(seed)
    n_rows = ACCESS_TRAIN + ACCESS_TEST

    def draw(n_levels, size):
        probability = 1.0 / np.arange(10, n_levels + 10)
        return rng.choice(n_levels, size, p=probability / probability.sum())

    def follow(name, above):
        of_above = draw(ACCESS_LEVELS[name], above.max() + 1)[above]
        return np.where(rng.random(n_rows) < 0.1, draw(ACCESS_LEVELS[name], n_rows), of_above)

    manager = draw(ACCESS_LEVELS["manager"], n_rows)
    columns = {"manager": manager, "resource": draw(ACCESS_LEVELS["resource"], n_rows)}
    for name, above in (
        ("department", "manager"),
        ("role", "manager"),
        ("rollup_2", "department"),
        ("rollup_1", "rollup_2"),
        ("role_family", "role"),
        ("role_description", "manager"),
    ):
        columns[name] = follow(name, columns[above])
    score = np.zeros(n_rows)
    for levels in columns.values():
        rareness = np.minimum(1.0, 20.0 / np.maximum(np.bincount(levels), 1)) ** 0.5
        score += (rng.standard_normal(len(rareness)) * (0.3 + rareness))[levels]
    for first, second in (
        ("department", "resource"),
        ("role", "department"),
        ("manager", "role_family"),
    ):
        pair = np.unique(columns[first] * 10_000 + columns[second], return_inverse=True)[1]
        score += 0.8 * rng.standard_normal(pair.max() + 1)[pair]
    # granted: all but about so many, whatever the seed
    lower, upper = -30.0, 30.0
    for _ in range(60):
        shift = (lower + upper) / 2.0
        chance = 1.0 / (1.0 + np.exp(-1.5 * score - shift))
        lower, upper = (shift, upper) if chance.mean() < 1.0 - REFUSED else (lower, shift)
    y = (rng.random(n_rows) < chance).astype(np.int64)
    X = pd.DataFrame({name: columns[name] for name in ACCESS_LEVELS})
    for name in X:
        label = rng.permutation(ACCESS_LEVELS[name])
        X[name] = np.char.add("id_", np.char.zfill(label[X[name]].astype(str), 5)).astype(object)
    return X, y, "binary"


# --- how each library is told of categories -------------------------------------------------------

# HistGradientBoosting: a level is a bin, and a byte has room for 255 beside the missing values.
MOST_LEVELS = {"hist_gb": 255}


def takes(library, dataset):
    """Whether a library can be trained on a data set of frames with these categories."""
    X, most = dataset.X_train, MOST_LEVELS.get(library, np.inf)
    return all(len(X[name].cat.categories) <= most for name in category_names(X))


def prepare(library, dataset):
    """Return a data set of frames in the form that the library asks for."""
    if not library.startswith("catboost"):
        return dataset
    return dataset._replace(X_train=_as_text(dataset.X_train), X_test=_as_text(dataset.X_test))


def parameters(library, dataset):
    """Return the parameters that tell a library of the categories of a data set of frames."""
    if library.startswith("catboost"):
        return {"cat_features": category_names(dataset.X_train)}
    of_library = {
        "sklboost": {},  # both read it from the dtype
        "lightgbm": {},
        "xgboost": {"enable_categorical": True},
        "hist_gb": {"categorical_features": "from_dtype"},
    }
    return of_library[library]


def _as_text(X):
    """Return a frame whose categories are text; CatBoost takes no missing ones."""
    text = {
        name: X[name].astype("string").fillna("missing").astype("category")
        for name in category_names(X)
    }
    return X.assign(**text)


# --- the same settings for all --------------------------------------------------------------------


def main(arguments=None):
    """Fit every library on every data set and split, then write the table."""
    runner.sleep_when_idle()
    parser = runner.parser("benchmarks.categories", __doc__)
    add = parser.add_argument
    add("what", nargs="?", choices=("categories", "access"), default="categories")
    add("--datasets", nargs="+", default=[*REAL, *SYNTHETIC])
    add("--seeds", type=int, help="splits of each data set; default: as many as it needs")
    add("--trees", type=int, default=200)
    add("--threads", type=int, default=1)
    options = parser.parse_args(arguments)
    if options.what == "access":
        shown = ("seed", "run", "auc", "log_loss", "fit_cpu_seconds")
        runner.write_results("access", _accesses(options), shown, write_access, options)
        return
    shown = ("dataset", "seed", "library", "way", "test_loss")
    runner.write_results("categories", _records(options), shown, write_table, options)


def _records(options):
    settings = peers.Settings(n_estimators=options.trees)
    for name in options.datasets:
        for seed in range(options.seeds or SEEDS.get(name, DEFAULT_SEEDS)):
            for library, way, dataset, changes in _fits(name, seed):
                if seed == 0:  # compiled, and threads started, before anything is timed
                    peers.warm_up(library, dataset, settings, options.threads, **changes)
                yield {
                    "settings": settings._asdict(),
                    **dataset.facts,
                    "seed": seed,
                    "threads": options.threads,
                    "library": library,
                    "way": way,
                    **peers.fit_and_predict(
                        library, dataset, settings, options.threads, seed, **changes
                    ),
                }


def _fits(name, seed):
    """Yield library, way, data set and parameters besides the settings of each fit of a split."""
    frames, codes = load(name, seed)
    for library in peers.choose(LIBRARIES):
        if takes(library, frames):
            prepared = prepare(library, frames)
            yield library, "native", prepared, parameters(library, prepared)
        yield library, "codes", codes, {}


def write_table(records):
    """Return the lines of the page `categories.md`."""
    losses, seconds = (
        {
            key: runner.by_seed(own, figure)
            for key, own in runner.grouped(records, "dataset", "library", "way").items()
        }
        for figure in ("test_loss", "fit_cpu_seconds")
    )

    def means(name, way):
        found = (losses.get((name, library, way)) for library in LIBRARIES)
        return [f"{np.mean(list(own.values())):.5g}" if own else "" for own in found]

    head = ["data set", "train x features", "splits", *LIBRARIES]
    native = [[*head, "ours / best", "± s.e.", "fit, best / ours"]]
    codes = [["data set", *LIBRARIES, "ours, categories / codes", "± s.e.", "theirs", "± s.e."]]
    for name, fact in {record["dataset"]: record for record in records}.items():
        ours = losses[name, "sklboost", "native"]
        best = min(RIVALS, key=lambda key: np.mean(list(losses[name, key, "native"].values())))
        theirs = losses[name, best, "native"]
        spent = {
            key: np.median(list(seconds[name, key, "native"].values()))
            for key in ("sklboost", *RIVALS)
        }
        native.append(
            [
                *(name, f"{fact['n_train']:,} x {fact['n_features']}", str(len(ours))),
                *means(name, "native"),
                *runner.cells(*runner.paired_ratio(ours, theirs)),
                f"{min(spent[key] for key in RIVALS) / spent['sklboost']:.1f}",
            ]
        )
        codes.append(
            [
                *(name, *means(name, "codes")),
                *runner.cells(*runner.paired_ratio(ours, losses[name, "sklboost", "codes"])),
                *runner.cells(*runner.paired_ratio(theirs, losses[name, best, "codes"])),
            ]
        )
    last = records[-1]
    return [
        "# Held-out loss with categories\n",
        f"{last['settings']['n_estimators']} trees, learning rate 0.1, depth 6, lambda 1, "
        "min_child_weight 1, no early stopping; all that concerns categories at each library's "
        "defaults. Root mean squared error for regression (ames_housing: of the log of the price), "
        "mean log loss otherwise, mean over the splits; lower is better. `ours / best` compares "
        f"with the better of {' and '.join(RIVALS)}; its standard error is that of the paired "
        "ratios. `zipf-5000` and `zipf-70000` are synthetic: a feature of so many levels beside "
        "five numbers. HistGradientBoosting takes 255 levels at most.\n",
        "`fit, best / ours`: processor seconds of the fastest of these two over ours, "
        f"{last['threads']} thread(s) each, medians over the splits. Other work used the machine "
        "meanwhile: a rough figure.\n",
        *runner.markdown(native),
        "\nThe same rows with categories as ordinal codes, in columns that nothing tells from "
        "numbers; and the loss with categories over the loss with codes, ours and the best "
        "rival's.\n",
        *runner.markdown(codes),
        f"\n{runner.origin(records, 'categories')}",
    ]


# --- all columns are categories -------------------------------------------------------------------

# What is run: a library, and its parameters besides the defaults.
RUNS = {
    "sklboost": ("sklboost", {}),
    "sklboost, max_ctr_complexity=1": ("sklboost", {"max_ctr_complexity": 1}),
    'sklboost, preset="auto"': ("sklboost", {"preset": "auto"}),
    'sklboost, preset="auto", max_ctr_complexity=0': (
        "sklboost",
        {"preset": "auto", "max_ctr_complexity": 0},
    ),
    "sklboost, smaller steps": ("sklboost", {"learning_rate": 0.1}),
    "sklboost, smaller steps, cat_smooth=10": (
        "sklboost",
        {"learning_rate": 0.1, "cat_smooth": 10},
    ),
    "sklboost, smaller steps, cat_smooth=0": ("sklboost", {"learning_rate": 0.1, "cat_smooth": 0}),
    "xgboost": ("xgboost", {}),
    "lightgbm": ("lightgbm", {"verbose": -1}),
    "catboost": ("catboost", {"logging_level": "Silent", "allow_writing_files": False}),
}


def _accesses(options):
    for seed in range(options.seeds or SEEDS["access"]):
        frames, _ = load("access", seed)
        for run, (library, changes) in RUNS.items():
            if not peers.is_installed(library):
                continue
            data = prepare(library, frames)
            changes = parameters(library, data) | changes
            model = peers.make_estimator(library, None, data.task, options.threads, seed, **changes)
            with peers.quiet(library, options.threads):
                if seed == 0 and library == "sklboost":  # compiled before anything is timed
                    model.fit(data.X_train, data.y_train)
                start = time.process_time()
                model.fit(data.X_train, data.y_train)
                seconds = time.process_time() - start
                chances = np.asarray(model.predict_proba(data.X_test))
            yield {
                "seed": seed,
                "threads": options.threads,
                "n_train": len(data.y_train),
                "run": run,
                "auc": float(roc_auc_score(data.y_test, chances[:, 1])),
                "log_loss": peers.held_out_loss(data.task, data.y_test, chances),
                "fit_cpu_seconds": seconds,
            }


def write_access(records):
    """Return the lines of the page `access.md`."""
    losses = {
        run: runner.by_seed(own, "log_loss")
        for (run,), own in runner.grouped(records, "run").items()
    }
    rows = [["run", "AUC", "log loss", "loss / CatBoost's", "± s.e.", "fit, CPU s"]]
    for (run,), own in runner.grouped(records, "run").items():
        auc, loss = (np.mean([record[key] for record in own]) for key in ("auc", "log_loss"))
        ratio = ["", ""]
        if run != "catboost" and "catboost" in losses:
            ratio = runner.cells(*runner.paired_ratio(losses[run], losses["catboost"]))
        spent = np.median([record["fit_cpu_seconds"] for record in own])
        rows.append([run, f"{auc:.4f}", f"{loss:.4f}", *ratio, f"{spent:.1f}"])
    fact, n_seeds = records[-1], len({record["seed"] for record in records})
    return [
        "# Where all columns are categories of many levels\n",
        f"`access` of `categories.py`: {fact['n_train']:,} training rows of eight columns of 70 "
        f"to 7,500 levels, 6 % of them negative; means over {n_seeds} draw(s) of the data, as many "
        "rows held out. Each library at its defaults, with what is named.\n",
        *runner.markdown(rows),
        f"\n{runner.origin(records, 'categories access')}",
    ]


if __name__ == "__main__":
    runner.start(main)
