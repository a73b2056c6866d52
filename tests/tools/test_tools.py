"""Tools that are small enough for the extra "test" take the estimators; the others by hand."""

import warnings

import pytest

from sklboost import XGBClassifierLite, XGBRegressorLite
from tests.tools.check_tools import CHECKS

SMALL = ["boruta", "fairlearn", "imblearn", "mapie", "optuna", "shap", "skopt", "skops", "treelite"]


@pytest.mark.parametrize("tool", SMALL)
def test_a_tool_takes_the_estimators(tool):
    settings = {"n_estimators": 20, "max_depth": 3, "n_jobs": 1}
    _, check = CHECKS[tool]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs, of versions to come
        check(XGBClassifierLite(**settings), XGBRegressorLite(**settings))
