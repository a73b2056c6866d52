"""Pages of models in a browser."""

import numpy as np
import pandas as pd
import pytest

from sklboost import XGBClassifierLite
from tests.browser import Page
from tests.estimators.page.examples import EVIL


@pytest.fixture
def opened(browser, tmp_path):
    """Return a function that opens the page of an estimator; in the end nothing was wrong."""

    def open_page(estimator, *arguments, **options):
        path = tmp_path / "model.html"
        estimator.to_html(path, *arguments, **options)
        return Page(browser, path)

    yield open_page
    assert [entry["message"] for entry in browser.get_log("browser")] == []


@pytest.fixture(scope="module")
def cancer(binary):
    X, y = binary
    settings = dict(n_estimators=6, max_depth=4, gamma=2.0, keep_pruned=True)
    model = XGBClassifierLite(**settings, eval_metric=["logloss", "error"])
    return model.fit(X[100:], y[100:], X_val=X[:100], y_val=y[:100])


@pytest.fixture(scope="module")
def flowers(multiclass):
    """Return a model of features and classes with names that would be HTML."""
    X, y = multiclass
    frame = pd.DataFrame(X[:, [0, 1, 0]], columns=["sepal length", EVIL, "{{script}}"])
    frame["kind"] = pd.Categorical(np.where(np.arange(150) % 3 == 0, "<b>", "a & b")[::-1])
    frame["petals"] = pd.Categorical(np.where(y == 0, "<script>alert(2)</script>", "</script>"))
    names = np.array(["<script>alert(3)</script>", "b", "&lt;"])
    model = XGBClassifierLite(n_estimators=4, max_depth=3).fit(frame, names[y])
    return model, frame, names[y]
