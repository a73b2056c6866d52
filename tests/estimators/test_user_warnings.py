"""Warnings name the line of the user's, whichever tool calls the estimator for them."""

import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline

from sklboost import UnknownCategoryWarning, XGBClassifierLite, XGBRegressorLite
from sklboost.estimators.input import user_warnings
from sklboost.estimators.input.user_warnings import warn_user
from tests.conftest import finish, start_python

Y = np.arange(20) % 2
FRAME = pd.DataFrame({"x": Y * 1.0, "city": pd.Categorical(np.where(Y > 0, "a", "b"))})
OTHER = FRAME.assign(city="c")


def test_outside_of_these_packages_it_is_the_line_itself():
    with pytest.warns(UserWarning, match="so it is") as caught:
        warn_user("so it is")
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(
    "use",
    [
        lambda: XGBRegressorLite(n_estimators=1).fit(FRAME, Y).predict(OTHER),
        lambda: XGBRegressorLite(n_estimators=1).fit(FRAME, Y).score(OTHER, Y),
        lambda: XGBClassifierLite(n_estimators=1).fit(FRAME, Y).predict_proba(OTHER),
        lambda: XGBRegressorLite(n_estimators=1).fit(FRAME, Y, X_val=OTHER, y_val=Y),
        lambda: make_pipeline(XGBRegressorLite(n_estimators=1)).fit(FRAME, Y).predict(OTHER),
    ],
)
def test_unknown_categories(use):
    with pytest.warns(UnknownCategoryWarning) as caught:
        use()
    assert [own.filename for own in caught] == [__file__]


@pytest.mark.parametrize("n_workers", [1, 2])
def test_through_a_search_and_joblib_in_threads(n_workers, monkeypatch, tmp_path):
    # nobody has warned of this line before
    monkeypatch.setattr(user_warnings, "_given", set())
    monkeypatch.setattr(user_warnings, "_claims", f"{tmp_path}/")
    each_its_own = FRAME.assign(city=pd.Categorical(np.arange(20).astype(str)))
    with (
        parallel_config("threading", n_jobs=n_workers),
        warnings.catch_warnings(record=True) as own,
    ):
        warnings.simplefilter("default")
        cross_val_predict(XGBRegressorLite(n_estimators=1), each_its_own, Y, cv=4)
    assert [warning.filename for warning in own] == [__file__]


def test_a_margin_that_is_left_out_and_a_warm_start_without_work():
    model = XGBRegressorLite(n_estimators=1, warm_start=True).fit(FRAME, Y, base_margin=Y)
    for use in (lambda: model.predict(FRAME), lambda: model.fit(FRAME, Y, base_margin=Y)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            use()
        assert [own.filename for own in caught] == [__file__]


# --- once ----------------------------------------------------------------------------------------


def predict_others(model):
    for n_rows in (5, 6, 7):  # the texts differ
        model.predict(OTHER[:n_rows])


@pytest.mark.parametrize(
    ("action", "n_expected"), [("default", 1), ("module", 1), ("always", 3), ("ignore", 0)]
)
def test_a_line_is_warned_once_unless_a_filter_says_otherwise(action, n_expected, monkeypatch):
    monkeypatch.setattr(user_warnings, "_given", set())
    monkeypatch.setattr(user_warnings, "_claims", "")  # of searches in processes
    model = XGBRegressorLite(n_estimators=1).fit(FRAME, Y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.filterwarnings(action, "X has categories", UnknownCategoryWarning)
        predict_others(model)
    assert len(caught) == n_expected


def test_as_an_error_it_is_one_each_time():
    model = XGBRegressorLite(n_estimators=1).fit(FRAME, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(UnknownCategoryWarning, match="'city': 20 row"):
                model.predict(OTHER)


def test_other_warnings_of_the_same_line_and_other_lines_are_given():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for i in range(3):
            _ = warn_user(f"one thing: {i}"), warn_user(f"another thing: {i}")
        warn_user("one thing: 3")
    texts = ["one thing: 0", "another thing: 0", "one thing: 3"]
    assert [str(own.message) for own in caught] == texts


def test_each_line_of_a_console_is_a_line_of_its_own():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for line in ("x = warn_user('so it is')", "y = warn_user('so it is')") * 2:
            exec(compile(line, "<stdin>", "exec"), {"__name__": "console", "warn_user": warn_user})
    assert [(own.filename, own.lineno) for own in caught] == [("<stdin>", 1)] * 2


SEARCHES = """
import sys, tempfile
tempfile.tempdir = sys.path[0]
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import pandas as pd
from joblib import parallel_config
from sklearn.model_selection import GridSearchCV
from sklboost import XGBRegressorLite

if __name__ == "__main__":
    X = pd.DataFrame({"city": pd.Categorical(np.arange(120) % 80)})
    y = np.arange(120.0)
    few = [X[:i] for i in range(60, 120, 10)]
    model = XGBRegressorLite(n_estimators=1)
    search = GridSearchCV(model, {"max_depth": [1, 2, 3, 4, 5]}, cv=4)
    search.fit(X, y)                                         # line 17
    search.set_params(n_jobs=2).fit(X, y)                    # line 18
    with parallel_config("threading"):
        search.fit(X, y)                                     # line 20
    model.fit(X[:50], y[:50])
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(model.predict, few))                   # line 23
    search.fit(X, y)                                         # line 24
"""


@pytest.mark.slow
def test_searches_in_threads_and_processes_warn_once_at_the_line_that_began_them(tmp_path):
    with start_python(SEARCHES, tmp_path) as process:
        output = finish(process, timeout=200)
    assert process.returncode == 0, output
    lines = [line for line in output.splitlines() if "UnknownCategoryWarning" in line]
    found = Counter(line.partition(": Unknown")[0] for line in lines)
    script = tmp_path / "script.py"
    assert found == Counter(f"{script}:{number}" for number in (17, 18, 20, 23, 24))
    assert not list(tmp_path.glob("sklboost-*"))  # in which processes agreed on who warns


def test_a_pickle_of_the_user_knows_no_line():
    assert user_warnings.work_origin() is None
    assert "_origin" not in XGBRegressorLite().__getstate__()
