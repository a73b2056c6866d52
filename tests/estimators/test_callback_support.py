"""What is found of scikit-learn's callbacks, and life without them."""

from importlib.util import find_spec

import pytest

from sklboost import XGBRegressorLite
from sklboost.estimators.fit.sklearn_callbacks import FitTasks
from tests.conftest import run_python

# Before it is hidden, what imports it: scikit-learn's own tools.
WITHOUT = """
import os, sys
os.environ["SKLBOOST_BACKEND"] = "interpreter"  # a few rows need no compiler
import sklearn.model_selection, sklearn.pipeline, sklearn.preprocessing
sys.modules["sklearn.callback"] = None

from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklboost import XGBRegressorLite
from sklboost.estimators.fit.sklearn_callbacks import FitTasks

X, y = (array[:20] for array in load_diabetes(return_X_y=True))
model = XGBRegressorLite(n_estimators=3, max_depth=2)
assert not hasattr(model, "set_callbacks")
assert FitTasks.of(model, X, y, None) == []
pipeline = make_pipeline(StandardScaler(), model)
search = GridSearchCV(pipeline, {"xgbregressorlite__max_depth": [1, 2]}, cv=2).fit(X, y)
# nor is anything of other estimators imported
assert not [name for name in sys.modules if "losses.distributions" in name]
print(search.best_estimator_[-1].model_.n_rounds)
"""


def test_without_callbacks_of_scikit_learn(tmp_path):
    assert run_python(WITHOUT, tmp_path) == "3"


def test_found_where_it_is_and_nothing_is_opened_or_left_where_nobody_listens():
    has_callbacks = find_spec("sklearn.callback") is not None
    assert hasattr(XGBRegressorLite, "set_callbacks") == has_callbacks
    model = XGBRegressorLite(n_estimators=1)
    assert FitTasks.of(model, [[0.0]], [0.0], None) == []
    model.fit([[0.0], [1.0]], [0.0, 1.0])
    assert not [name for name in vars(model) if name.startswith("_") and "callback" in name]


@pytest.mark.parametrize("listens", [False, True])
def test_a_context_that_hides_its_callbacks_is_used(listens):
    class Context:
        if not listens:
            _callbacks = ()

    class Estimator:
        def _init_callback_context(self, max_subtasks):
            assert max_subtasks is None
            return Context()

    assert len(FitTasks.of(Estimator(), None, None, None)) == listens


def test_copies_of_a_fit_lack_what_callbacks_left():
    model = XGBRegressorLite(callbacks=[]).fit([[0.0], [1.0]], [0.0, 1.0])
    model._skl_callbacks = model._callback_fit_ctx = model._parent_callback_ctx = object()
    copied = model._fitted_copy(model._trained.attributes)
    assert not [name for name in vars(copied) if name.startswith("_") and "callback" in name]
    assert (copied.model_, copied.callbacks) == (model.model_, [])
