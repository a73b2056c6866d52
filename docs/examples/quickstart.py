"""First steps with sklboost, on scikit-learn's bundled data or on a CSV file of your own.

    python docs/examples/quickstart.py
    python docs/examples/quickstart.py houses.csv --target price

Prints a table of scores and times beside scikit-learn's HistGradientBoosting, a small grid search
with a progress bar, and the first tree of a model with the numbers behind each of its splits.

Needs ``pip install "sklboost[demo]"``, which adds pandas and tqdm.
"""

import argparse
import difflib
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OrdinalEncoder
from tqdm import tqdm

from sklboost import XGBClassifierLite, XGBRegressorLite

N_TREES = 50
LEARNING_RATE = 0.2
MAX_DEPTH = 3
N_FOLDS = 5
N_TIMED_FITS = 3
GRID = {"model__max_depth": [2, 4], "model__learning_rate": [0.1, 0.3]}
SEARCH_FOLDS = 3
# A column of whole numbers with no more distinct values than this is taken for a set of classes.
MOST_CLASSES = 20


class Problem(NamedTuple):
    """A table, what is to be predicted from it, and which kind of task that is."""

    name: str
    X: pd.DataFrame
    y: pd.Series
    task: str  # "regression" or "classification"

    @property
    def scoring(self) -> str:
        return "r2" if self.task == "regression" else "accuracy"


class DataError(Exception):
    """The user's data cannot be used; the message says why and what to do."""


# --- data ----------------------------------------------------------------------------------------


def bundled_problems() -> list[Problem]:
    """Load the real data that comes with scikit-learn."""
    loaders = {
        "breast cancer": (datasets.load_breast_cancer, "classification"),
        "diabetes": (datasets.load_diabetes, "regression"),
        "digits": (datasets.load_digits, "classification"),
    }
    return [
        Problem(name, *load(return_X_y=True, as_frame=True), task)
        for name, (load, task) in loaders.items()
    ]


def read_problem(path: Path, target: str, task: str | None) -> Problem:
    """Read a CSV file; `task` None: guess it from the target column."""
    table = read_table(path)
    if target not in table.columns:
        raise DataError(no_such_column(target, list(table.columns)))
    known = table[target].notna()
    if not known.all():
        print(f"{(~known).sum()} rows without a value of {target!r} are left out.")
    X, y = table.loc[known].drop(columns=target), table.loc[known, target]
    if task is None:
        task = guess_task(y)
        print(f"{target!r} has {y.nunique()} distinct values: taken for {task} (--task overrides).")
    if task == "classification":
        frequent = has_enough_rows(y)
        X, y = X[frequent], y[frequent]
    check(X, y, task)
    return Problem(path.stem, X, y, task)


def read_table(path: Path) -> pd.DataFrame:
    try:
        # low_memory=False: one type for a whole column, not one for each chunk of the file.
        return pd.read_csv(path, low_memory=False)
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except (OSError, ValueError) as error:  # pandas' own errors are ValueErrors
        raise DataError(f"{path}: cannot be read as CSV: {error}") from None


def no_such_column(target: str, columns: list[str]) -> str:
    near = difflib.get_close_matches(target, columns, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"the columns are {', '.join(columns)}"
    return f"--target {target}: there is no such column; {hint}"


def guess_task(y: pd.Series) -> str:
    if is_text(y) or y.dtype == bool:
        return "classification"
    few_whole_numbers = y.nunique() <= MOST_CLASSES and (y % 1 == 0).all()
    return "classification" if few_whole_numbers else "regression"


def is_text(column: pd.Series) -> bool:
    return not pd.api.types.is_numeric_dtype(column)


def has_enough_rows(y: pd.Series) -> pd.Series:
    """Mark the rows whose class has a row for every fold, and say which classes have not."""
    counts = y.value_counts()
    rare = counts.index[counts < N_FOLDS]
    if 0 < len(rare) < len(counts):
        names = ", ".join(str(name) for name in rare)
        print(f"Classes of fewer than {N_FOLDS} rows are left out: {names}.")
    return ~y.isin(rare)


def check(X: pd.DataFrame, y: pd.Series, task: str) -> None:
    """Say what is wrong with the user's data before any model does."""
    if X.shape[1] == 0:
        raise DataError("there is no column left to predict from")
    if len(y) < 2 * N_FOLDS:
        raise DataError(f"{len(y)} rows usable for {task}: {2 * N_FOLDS} are needed at least")
    if task == "regression" and is_text(y):
        raise DataError(f"--task regression: {y.name!r} is text; its first value is {y.iloc[0]!r}")
    if task == "regression" and not np.isfinite(y.to_numpy(dtype=float)).all():
        raise DataError(f"{y.name!r} has infinite values; leave out those rows")
    if y.nunique() == 1:
        raise DataError(f"{y.name!r} is {y.iloc[0]} in every row: there is nothing to predict")


# --- models --------------------------------------------------------------------------------------


def pipeline(X: pd.DataFrame, model: BaseEstimator) -> Pipeline:
    """Put a coder of text columns before `model`; numbers and missing values pass as they are."""
    coder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    columns = ColumnTransformer(
        [("codes", coder, text_columns(X))],
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")  # keeps the names of the features for the tree printed below
    return Pipeline([("columns", columns), ("model", model)])


def text_columns(X: pd.DataFrame) -> list[str]:
    return [name for name in X.columns if is_text(X[name])]


def our_model(problem: Problem, **settings: object) -> Pipeline:
    model = XGBRegressorLite if problem.task == "regression" else XGBClassifierLite
    defaults = dict(n_estimators=N_TREES, learning_rate=LEARNING_RATE, max_depth=MAX_DEPTH)
    return pipeline(problem.X, model(**defaults | settings))


def scikit_learn_model(problem: Problem) -> Pipeline:
    """Return the HistGradientBoosting that comes nearest to the same settings."""
    regression = problem.task == "regression"
    model = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    settings = dict(
        max_iter=N_TREES,
        learning_rate=LEARNING_RATE,
        max_depth=MAX_DEPTH,
        max_leaf_nodes=None,
        min_samples_leaf=1,
        l2_regularization=1.0,
        early_stopping=False,
    )
    return pipeline(problem.X, model(**settings))


# --- scores and times ----------------------------------------------------------------------------


def seconds(function: Callable, *arguments: object) -> float:
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def compile_kernels(problems: list[Problem]) -> float:
    """Fit and predict once with each kind of model, and give the seconds that took.

    numba compiles in the first fit and keeps the result on disk for later processes.
    """

    def first_use() -> None:
        for problem in problems:
            model = our_model(problem, n_estimators=1).fit(problem.X, problem.y)
            model.predict(problem.X)

    return seconds(first_use)


def shuffled_folds(problem: Problem, n_folds: int) -> KFold | StratifiedKFold:
    """Divide the rows at random: many files are sorted."""
    folds = KFold if problem.task == "regression" else StratifiedKFold
    return folds(n_folds, shuffle=True, random_state=0)


def compare(problem: Problem) -> dict[str, object]:
    """Make a row of the table: both models, the same folds, fits timed in turn."""
    cv = shuffled_folds(problem, N_FOLDS)
    models = {"sklboost": our_model(problem), "HistGB": scikit_learn_model(problem)}
    row: dict[str, object] = {
        "data": problem.name,
        "rows": len(problem.X),
        "columns": problem.X.shape[1],
        "score": problem.scoring,
    }
    for name, model in models.items():
        scores = cross_val_score(model, problem.X, problem.y, cv=cv, scoring=problem.scoring)
        row[name] = f"{scores.mean():.3f} +- {scores.std():.3f}"
    for name, fit_seconds in time_fits(models, problem).items():
        row[f"{name} fit"] = f"{fit_seconds:.3f} s"
    return row


def time_fits(models: dict[str, Pipeline], problem: Problem) -> dict[str, float]:
    """Return the median seconds of a fit, the models taken in turn: all see the same machine."""
    times: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(N_TIMED_FITS):
        for name, model in models.items():
            times[name].append(seconds(model.fit, problem.X, problem.y))
    return {name: median(taken) for name, taken in times.items()}


# --- grid search ---------------------------------------------------------------------------------


def search(problem: Problem) -> GridSearchCV:
    """Try a small grid of parameters, with a bar that moves at every model fitted and scored."""
    n_fits = SEARCH_FOLDS * int(np.prod([len(values) for values in GRID.values()]))
    scorer = get_scorer(problem.scoring)
    with tqdm(total=n_fits, desc="grid search", unit="fit") as bar:

        def scorer_with_bar(model: Pipeline, X: pd.DataFrame, y: pd.Series) -> float:
            score = scorer(model, X, y)
            bar.update()
            return score

        # One model after the other (n_jobs is left alone): each of them uses all the cores.
        cv = shuffled_folds(problem, SEARCH_FOLDS)
        grid = GridSearchCV(our_model(problem), GRID, cv=cv, scoring=scorer_with_bar)
        return grid.fit(problem.X, problem.y)


# --- a tree --------------------------------------------------------------------------------------


def print_first_tree(problem: Problem) -> None:
    """Print the first tree of a small model: similarity, gain, cover and output of each node."""
    model = our_model(problem, n_estimators=1, max_depth=3)
    nodes = model.fit(problem.X, problem.y)["model"].trees_to_dataframe()
    has_missing = problem.X.isna().to_numpy().any()
    lines = tree_lines(nodes[nodes["Tree"] == 0].set_index("ID"), has_missing)
    width = max(len(text) for text, _ in lines)
    columns = ["Similarity", "Gain", "Cover", "Output"]
    print(f"{'node':{width}}" + "".join(f"{name.lower():>13}" for name in columns))
    for text, node in lines:
        print(f"{text:{width}}" + "".join(f"{number(node, name):>13}" for name in columns))


def tree_lines(nodes: pd.DataFrame, has_missing: bool) -> list[tuple[str, pd.Series]]:
    """List the nodes from the root down, each with its text, indented by its depth."""
    lines = []
    waiting = [("0-0", "", 0)]
    while waiting:
        node_id, branch, depth = waiting.pop()
        node = nodes.loc[node_id]
        lines.append(("  " * depth + branch + node_text(node), node))
        if node["Feature"] != "Leaf":
            for answer in ("No", "Yes"):  # a stack: the last one in comes out first
                missing = has_missing and node["Missing"] == node[answer]
                branch = answer.lower() + (" or missing: " if missing else ": ")
                waiting.append((node[answer], branch, depth + 1))
    return lines


def number(node: pd.Series, column: str) -> str:
    if column == "Gain" and node["Feature"] == "Leaf":
        return ""  # a leaf has none: the column holds the leaf's value there, as in XGBoost
    value = round(node[column], 4) + 0.0  # + 0.0 turns -0.0 into 0.0
    return f"{value:.4f}" if abs(value) < 1e7 else f"{value:.4e}"


def node_text(node: pd.Series) -> str:
    if node["Feature"] == "Leaf":
        return "leaf"
    return f"{node['Feature']} < {node['Split']:.6g}?"


# --- the tour ------------------------------------------------------------------------------------


def tour(problems: list[Problem]) -> None:
    for problem in problems:
        if coded := text_columns(problem.X):
            print(f"Text columns, coded as whole numbers by the pipeline: {', '.join(coded)}.")

    first_use = compile_kernels(problems)
    print(f"First use: {first_use:.1f} s, in which numba compiles its kernels or loads them.\n")

    print(f"{N_TREES} trees, depth {MAX_DEPTH}, learning rate {LEARNING_RATE}, {N_FOLDS} folds:\n")
    print(pd.DataFrame([compare(problem) for problem in problems]).to_string(index=False))

    problem = problems[0]
    print(f"\nGrid search on {problem.name}:\n", flush=True)
    found = search(problem)
    best = ", ".join(f"{name.split('__')[1]}={value}" for name, value in found.best_params_.items())
    print(f"Best of the grid: {best}; {problem.scoring} {found.best_score_:.3f}")

    print(f"\nThe first tree of a model of {problem.name}:\n")
    print_first_tree(problem)


def main() -> None:
    parser = argparse.ArgumentParser(description="First steps with sklboost.")
    parser.add_argument("csv", nargs="?", type=Path, help="a CSV file; none: bundled data")
    parser.add_argument("--target", help="the column of the CSV file to predict")
    parser.add_argument("--task", choices=["regression", "classification"], help="none: guessed")
    arguments = parser.parse_args()
    if (arguments.csv is None) != (arguments.target is None):
        parser.error("a CSV file and --target go together")
    try:
        if arguments.csv is None:
            problems = bundled_problems()
        else:
            problems = [read_problem(arguments.csv, arguments.target, arguments.task)]
    except DataError as error:
        parser.exit(1, f"quickstart.py: {error}\n")
    tour(problems)


if __name__ == "__main__":
    main()
