"""First steps with sklboost, on real data that comes with it or on a CSV file of your own.

    python docs/examples/quickstart.py
    python docs/examples/quickstart.py houses.csv --target price

It prints scores and times compared with scikit-learn's HistGradientBoosting, a small grid search,
the first tree of a model and where its first split comes from, and writes two files: the tree as a
picture, and the model as a page to open in a browser. That takes less than a minute, most of it in
HistGradientBoosting; the first run on a machine compiles for another twenty seconds.

Needs ``pip install ".[demo]"``, which adds matplotlib, pandas and tqdm.
"""

import argparse
import difflib
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

try:
    import matplotlib.pyplot as plt
    import numpy as np
    import pandas as pd
    from sklearn import datasets
    from sklearn.base import BaseEstimator
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.metrics import get_scorer
    from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
    from tqdm import tqdm

    from sklboost import UnknownCategoryWarning, XGBClassifierLite, XGBRegressorLite
    from sklboost.displays import plot_tree
except ModuleNotFoundError as error:
    sys.exit(
        f"quickstart.py needs {error.name}, which is not installed.\n"
        'In a copy of the repository: pip install ".[demo]"'
    )

ADULT = Path(__file__).parent / "data" / "adult.csv.gz"
N_TREES = 50
LEARNING_RATE = 0.2
MAX_DEPTH = 3
N_FOLDS = 5
GRID = {"max_depth": [2, 4], "learning_rate": [0.1, 0.3]}
SEARCH_FOLDS = 3
# Of larger files so many rows are drawn, so that the tour stays quick.
MOST_ROWS = 50_000
# A column of whole numbers with no more distinct values than this is taken for a set of classes.
MOST_CLASSES = 20
# A column of text with more distinct values a row than this is taken for names of the rows. The
# estimators refuse columns from 0.5 on, and the rows of a fold have more.
MOST_DISTINCT = 0.3
MOST_CATEGORIES_OF_HISTGB = 255
DATE = r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}"
DATE_FORMATS = ["ISO8601", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y"]


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
    """Load real data: a sample of the census of 1994, and two sets that scikit-learn has."""
    diabetes, digits = (
        load(return_X_y=True, as_frame=True)
        for load in (datasets.load_diabetes, datasets.load_digits)
    )
    return [
        read_problem(ADULT, "income"),
        Problem("diabetes", *diabetes, "regression"),
        Problem("digits", *digits, "classification"),
    ]


def read_problem(path: Path, target: str, task: str | None = None) -> Problem:
    """Read a CSV file; `task` None: guess it from the target column."""
    table = read_table(path)
    if target not in table.columns:
        raise DataError(no_such_column(target, list(table.columns)))
    if len(table) > MOST_ROWS:
        print(f"{len(table):,} rows: {MOST_ROWS:,} of them, drawn at random, are used.")
        table = table.sample(MOST_ROWS, random_state=0)
    known = table[target].notna()
    if not known.any():
        raise DataError(f"--target {target}: that column has no values")
    if not known.all():
        print(f"{(~known).sum()} rows without a value of {target!r} are left out.")
    X, y = table.loc[known].drop(columns=target), table.loc[known, target]
    if task is None:
        task = guess_task(y)
        print(f"{target!r} has {y.nunique()} distinct values: taken for {task} (--task overrides).")
    if task == "classification":
        frequent = has_enough_rows(y)
        X, y = X[frequent], y[frequent]
    check_target(y, task)
    return Problem(path.name.split(".")[0], features(X), y, task)


def read_table(path: Path) -> pd.DataFrame:
    """Read a file whose columns are parted by commas, semicolons or tabs."""
    try:
        for separator in ",;\t":
            table = read_csv(path, separator)
            if table.shape[1] > 1:
                return table if separator == "," else with_decimal_commas(table, path, separator)
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: cannot be read as UTF-8; save it with that encoding") from None
    except (OSError, ValueError) as error:  # pandas' own errors are ValueErrors
        raise DataError(f"{path}: cannot be read as CSV: {error}") from None
    raise DataError(f"{path}: one column only; there is nothing to predict its values from")


def read_csv(path: Path, separator: str, decimal: str = ".") -> pd.DataFrame:
    # low_memory=False: one type for a whole column, not one for each chunk of the file.
    settings = dict(sep=separator, decimal=decimal, skipinitialspace=True, low_memory=False)
    return pd.read_csv(path, **settings)


def with_decimal_commas(table: pd.DataFrame, path: Path, separator: str) -> pd.DataFrame:
    """Read numbers such as 3,14, too, if that leaves fewer columns of text."""
    other = read_csv(path, separator, decimal=",")
    fewer = sum(map(is_text, other.dtypes)) < sum(map(is_text, table.dtypes))
    return other if fewer else table


def no_such_column(target: str, columns: list[str]) -> str:
    """Say which names are near, whatever their case, or else which there are."""
    by_lower = {name.lower(): name for name in columns}
    near = [by_lower[name] for name in difflib.get_close_matches(target.lower(), by_lower)]
    if near:
        hint = f"did you mean {' or '.join(map(repr, near))}?"
    else:
        more = f" and {len(columns) - 20} more" if len(columns) > 20 else ""
        hint = f"the columns are {', '.join(columns[:20])}{more}"
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
    if len(rare) == len(counts):
        hint = "" if is_text(y) else "; to predict a number say --task regression"
        raise DataError(f"no class of {y.name!r} has {N_FOLDS} rows{hint}")
    if len(rare):
        names = ", ".join(str(name) for name in rare[:10])
        print(f"{len(rare)} classes of fewer than {N_FOLDS} rows are left out: {names}.")
    return ~y.isin(rare)


def check_target(y: pd.Series, task: str) -> None:
    """Say what is wrong with the target before any model does."""
    if len(y) < 2 * N_FOLDS:
        raise DataError(f"{len(y)} rows usable for {task}: {2 * N_FOLDS} are needed at least")
    if task == "regression" and is_text(y):
        raise DataError(f"--task regression: {y.name!r} is text; its first value is {y.iloc[0]!r}")
    if task == "regression" and not np.isfinite(y.to_numpy(dtype=float)).all():
        raise DataError(f"{y.name!r} has infinite values; leave out those rows")
    if y.nunique() == 1:
        raise DataError(f"{y.name!r} is {y.iloc[0]} in every row: there is nothing to predict")


def features(X: pd.DataFrame) -> pd.DataFrame:
    """Leave out columns that nothing can be learnt from; text and dates stay as they are."""
    reasons = {}
    for name, column in X.items():
        if column.isna().all():
            reasons[name] = "they have no values"
            continue
        are_names = is_text(column) and column.nunique() > MOST_DISTINCT * column.count()
        if are_names and as_times(column) is None:
            reasons[name] = "they name the rows"
    for reason in sorted(set(reasons.values())):
        names = ", ".join(name for name in reasons if reasons[name] == reason)
        print(f"Columns left out, since {reason}: {names}.")
    if len(reasons) == X.shape[1]:
        raise DataError("there is no column left to predict from")
    return X.drop(columns=list(reasons))


# --- models --------------------------------------------------------------------------------------


def our_model(problem: Problem, **settings: object) -> BaseEstimator:
    model = XGBRegressorLite if problem.task == "regression" else XGBClassifierLite
    defaults = dict(n_estimators=N_TREES, learning_rate=LEARNING_RATE, max_depth=MAX_DEPTH)
    # "auto": columns of text are categories, or times if they hold dates.
    return model(**defaults | settings, categorical_features="auto")


def scikit_learn_model(problem: Problem) -> BaseEstimator:
    """Return the HistGradientBoosting that comes nearest to the same settings."""
    regression = problem.task == "regression"
    model = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    return model(
        max_iter=N_TREES,
        learning_rate=LEARNING_RATE,
        max_depth=MAX_DEPTH,
        max_leaf_nodes=None,
        min_samples_leaf=1,
        l2_regularization=1.0,
        early_stopping=False,
    )


def for_scikit_learn(X: pd.DataFrame) -> pd.DataFrame:
    """Turn into numbers and categories what HistGradientBoosting does not take as it is."""

    def converted(column: pd.Series) -> pd.Series:
        if not is_text(column):
            return column.replace([np.inf, -np.inf], np.nan)
        if (times := as_times(column)) is not None:
            return times.astype("int64").where(times.notna())
        column = column.astype("category")
        few = len(column.cat.categories) <= MOST_CATEGORIES_OF_HISTGB
        return column if few else column.cat.codes.where(column.notna())

    return X.apply(converted)


def as_times(column: pd.Series) -> pd.Series | None:
    """Return a column of dates, such as 2024-01-31 or 1/31/2024, as times; of others None."""
    if column.dropna().astype(str).str.match(DATE).all():
        for date_format in DATE_FORMATS:
            try:
                return pd.to_datetime(column, format=date_format)
            except ValueError:
                pass
    return None


# --- scores and times ----------------------------------------------------------------------------


def seconds(function: Callable, *arguments: object) -> float:
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def compile_kernels(problems: list[Problem]) -> float:
    """Fit and predict once with each kind of model, and give the seconds that took.

    numba compiles in the first fit and keeps the result on disk for later processes.
    """

    def first_use(problem: Problem) -> None:
        our_model(problem, n_estimators=1).fit(problem.X, problem.y).predict(problem.X)

    return sum(seconds(first_use, problem) for problem in problems)


def shuffled_folds(problem: Problem, n_folds: int) -> KFold | StratifiedKFold:
    """Divide the rows at random: many files are sorted."""
    folds = KFold if problem.task == "regression" else StratifiedKFold
    return folds(n_folds, shuffle=True, random_state=0)


def compare(problem: Problem) -> dict[str, str]:
    """Make a row of the table: mean scores and fit times of both models on the same folds."""
    models = {
        "sklboost": (our_model(problem), problem.X),
        "HistGB": (scikit_learn_model(problem), for_scikit_learn(problem.X)),
    }
    score = get_scorer(problem.scoring)
    scores: dict[str, list[float]] = {name: [] for name in models}
    times: dict[str, list[float]] = {name: [] for name in models}
    for train, test in shuffled_folds(problem, N_FOLDS).split(problem.X, problem.y):
        for name, (model, X) in models.items():  # in turn, so that both see the same machine
            times[name].append(seconds(model.fit, X.iloc[train], problem.y.iloc[train]))
            scores[name].append(score(model, X.iloc[test], problem.y.iloc[test]))
    return {
        "data": problem.name,
        "rows": f"{len(problem.X):,}",
        "columns": str(problem.X.shape[1]),
        "score": problem.scoring,
        **{name: f"{np.mean(found):.3f} +- {np.std(found):.3f}" for name, found in scores.items()},
        **{f"{name} fit": f"{median(taken):.3f} s" for name, taken in times.items()},
    }


def print_comparison(problems: list[Problem]) -> None:
    """Print a table, each row of it when it is known."""
    for number_of_row, row in enumerate(map(compare, problems)):
        if number_of_row == 0:
            print("".join(f"{name:>16}" for name in row))
        print("".join(f"{text:>16}" for text in row.values()), flush=True)


# --- grid search ---------------------------------------------------------------------------------


def search(problem: Problem) -> GridSearchCV:
    """Try a small grid of parameters, with a bar that moves at every model fitted and scored."""
    n_fits = SEARCH_FOLDS * int(np.prod([len(values) for values in GRID.values()]))
    scorer = get_scorer(problem.scoring)
    with tqdm(total=n_fits, desc="grid search", unit="fit") as bar:

        def scorer_with_bar(model: BaseEstimator, X: pd.DataFrame, y: pd.Series) -> float:
            score = scorer(model, X, y)
            bar.update()
            return score

        # One model after the other (n_jobs is left alone): each of them uses all the cores.
        cv = shuffled_folds(problem, SEARCH_FOLDS)
        grid = GridSearchCV(our_model(problem), GRID, cv=cv, scoring=scorer_with_bar)
        return grid.fit(problem.X, problem.y)


# --- a tree --------------------------------------------------------------------------------------


def print_first_tree(model: BaseEstimator) -> None:
    """Print the similarity, gain, cover and output of each node of a model's first tree."""
    nodes = model.trees_to_dataframe()
    lines = tree_lines(nodes[nodes["Tree"] == 0].set_index("ID"))
    width = max(len(text) for text, _ in lines)
    columns = ["Similarity", "Gain", "Cover", "Output"]
    print(f"{'node':{width}}" + "".join(f"{name.lower():>13}" for name in columns))
    for text, node in lines:
        print(f"{text:{width}}" + "".join(f"{number(node, name):>13}" for name in columns))


def tree_lines(
    nodes: pd.DataFrame, node_id: str = "0-0", before: str = "", depth: int = 0
) -> list[tuple[str, pd.Series]]:
    """List the nodes from the root down, each with its text, indented by its depth."""
    node = nodes.loc[node_id]
    lines = [("  " * depth + before + node_text(node), node)]
    if node["Feature"] != "Leaf":
        for answer in ("Yes", "No"):
            lines += tree_lines(nodes, node[answer], f"{answer.lower()}: ", depth + 1)
    return lines


def number(node: pd.Series, column: str) -> str:
    if column == "Gain" and node["Feature"] == "Leaf":
        return ""  # a leaf has none: the column holds the leaf's value there, as in XGBoost
    value = round(node[column], 4) + 0.0  # + 0.0 turns -0.0 into 0.0
    return f"{value:.4f}" if abs(value) < 1e6 else f"{value:.4e}"


def node_text(node: pd.Series) -> str:
    if node["Feature"] == "Leaf":
        return "leaf"
    if isinstance(node["Category"], list):
        names = [str(name) for name in node["Category"]]
        if len(names) > 3:
            names[2:] = [f"{len(names) - 2} more"]
        return f"{node['Feature']} in {{{', '.join(names)}}}?"
    return f"{node['Feature']} < {node['Split']:.6g}?"


# --- the tour ------------------------------------------------------------------------------------


def tour(problems: list[Problem], folder: Path) -> None:
    first_use = compile_kernels(problems)
    print(
        f"\nFirst use: {first_use:.1f} s, in which kernels are compiled, or loaded if they were.\n"
    )

    print(
        f"{N_TREES} trees, depth {MAX_DEPTH}, learning rate {LEARNING_RATE}, {N_FOLDS} folds:\n",
        flush=True,
    )
    print_comparison(problems)

    problem = problems[0]
    print(f"\nGrid search on {problem.name}:\n", flush=True)
    found = search(problem)
    best = ", ".join(f"{name}={value}" for name, value in found.best_params_.items())
    print(f"Best of the grid: {best}; {problem.scoring} {found.best_score_:.3f}")

    model = our_model(problem, n_estimators=1).fit(problem.X, problem.y)
    print(f"\nThe first tree of a model of {problem.name}:\n")
    print_first_tree(model)
    print("\nWhere its first split comes from:\n")
    print(model.explain_split(tree=0, node=0))

    plot_tree(model).figure.savefig(folder / "tree.png", dpi=150)
    plt.close("all")
    found.best_estimator_.to_html(folder / "model.html", problem.X, problem.y)
    print(f"\nThe tree as a picture: {(folder / 'tree.png').as_uri()}")
    print(f"The best model of the search, as a page: {(folder / 'model.html').as_uri()}")


def main() -> None:
    # A fold may be without a rare category; in the rows held out it then counts as missing.
    warnings.filterwarnings("ignore", category=UnknownCategoryWarning)
    start = time.perf_counter()
    parser = argparse.ArgumentParser(description="First steps with sklboost.")
    parser.add_argument(
        "csv", nargs="?", type=Path, help="a CSV file; none: data that comes with it"
    )
    parser.add_argument("--target", help="the column of the CSV file to predict")
    parser.add_argument("--task", choices=["regression", "classification"], help="none: guessed")
    parser.add_argument("--out", type=Path, default=Path("sklboost_quickstart"), help="a folder")
    arguments = parser.parse_args()
    if (arguments.csv is None) != (arguments.target is None):
        parser.error("a CSV file and --target go together")
    try:
        if arguments.csv is None:
            problems = bundled_problems()
        else:
            problems = [read_problem(arguments.csv, arguments.target, arguments.task)]
        arguments.out.mkdir(parents=True, exist_ok=True)
    except DataError as error:
        parser.exit(1, f"quickstart.py: {error}\n")
    except OSError as error:
        parser.exit(1, f"quickstart.py: {error}; choose another folder with --out\n")
    tour(problems, arguments.out.resolve())
    print(f"All of this took {time.perf_counter() - start:.0f} s.")


if __name__ == "__main__":
    main()
