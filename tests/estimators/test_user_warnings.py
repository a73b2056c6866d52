"""Warnings name the line of the user's, whichever tool calls the estimator for them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline

from sklboost import UnknownCategoryWarning, XGBClassifierLite, XGBRegressorLite
from sklboost.estimators.input.user_warnings import warn_user

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


def test_through_a_search_and_joblib():
    each_its_own = FRAME.assign(city=pd.Categorical(np.arange(20).astype(str)))
    with pytest.warns(UnknownCategoryWarning) as caught:
        cross_val_predict(XGBRegressorLite(n_estimators=1), each_its_own, Y, cv=4)
    assert {warning.filename for warning in caught} == {__file__}


def test_a_worker_without_a_line_of_the_users_warns_too():
    each_its_own = FRAME.assign(city=pd.Categorical(np.arange(20).astype(str)))
    model = XGBRegressorLite(n_estimators=1)
    with parallel_config("threading", n_jobs=2):  # noqa: SIM117, one statement in pytest.warns
        with pytest.warns(UnknownCategoryWarning, match="'city'"):
            cross_val_predict(model, each_its_own, Y, cv=4)


def test_a_margin_that_is_left_out_and_a_warm_start_without_work():
    model = XGBRegressorLite(n_estimators=1, warm_start=True).fit(FRAME, Y, base_margin=Y)
    for use in (lambda: model.predict(FRAME), lambda: model.fit(FRAME, Y, base_margin=Y)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            use()
        assert [own.filename for own in caught] == [__file__]


# --- once ----------------------------------------------------------------------------------------


def test_a_line_is_warned_once_of_the_same():
    model = XGBRegressorLite(n_estimators=1).fit(FRAME, Y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            model.predict(OTHER)
    assert len(caught) == 1


def test_as_an_error_it_is_one_each_time():
    model = XGBRegressorLite(n_estimators=1).fit(FRAME, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(UnknownCategoryWarning, match="'city': 20 row"):
                model.predict(OTHER)
