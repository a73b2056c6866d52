"""Columns of a Dask frame become what those of the same rows in one place become."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from sklboost import XGBRegressorLite
from tests.distributed.fit_reading import assert_same, read

N_ROWS = 600
DAYS = pd.to_datetime("2024-01-01") + pd.to_timedelta(np.arange(N_ROWS) * 7 % 50, "D")
FRAME = pd.DataFrame(
    {
        "city": [["Oslo", "Rome", None][row % 3] for row in range(N_ROWS)],
        "day": DAYS.strftime("%d/%m/%Y"),
        "born": pd.Series(DAYS.date, dtype=object),
        "open": np.arange(N_ROWS) % 5 > 2,
        "flag": pd.array(np.arange(N_ROWS) % 7 > 2, dtype="boolean"),
        "size": np.arange(N_ROWS) % 11 / 4,
    }
)


def test_same_encodings_and_rows(cluster):
    weight = np.arange(N_ROWS) % 4 / 2
    for given in ({}, {"sample_weight": weight}):
        settings = dict(categorical_features="auto", **given)
        rows, fitted = read(dd.from_pandas(FRAME, npartitions=4), **settings)
        local, fitted_here = read(FRAME, **settings)
        assert repr(fitted) == repr(fitted_here)
        assert list(fitted.attributes["categories_"]) == ["city", "open", "flag"]
        assert_same(cluster, rows, local)


def test_the_same_model_and_predictions(cluster):
    y = FRAME["size"] + FRAME["open"] + FRAME["city"].eq("Oslo")
    model = XGBRegressorLite(n_estimators=3, max_depth=3, categorical_features="auto")
    expected = model.fit(FRAME, y).predict(FRAME)
    lazy = dd.from_pandas(FRAME, npartitions=3)
    assert_array_equal(model.predict(lazy).compute(), expected)
    assert_array_equal(model.fit(lazy, y).predict(FRAME), expected)


def test_nearly_distinct_text_is_refused_as_elsewhere(cluster):
    names = [f"user {row // 2 * 2 if row % 3 else row}" for row in range(N_ROWS)]
    named = FRAME.assign(name=names)
    for X in (named, dd.from_pandas(named, npartitions=4)):
        with pytest.raises(ValueError, match=r"'name' \(str\w*\) has 400 distinct"):
            read(X, categorical_features="auto")
