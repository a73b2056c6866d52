"""What a fitted estimator shows: stages, tables, and rows alone and among others."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.data.encoding import Encoding
from sklboost.estimators.input.features import categories_by_code
from tests.small_models import small


def test_stages_stay_as_they_were_yielded(regression):
    X, y = regression
    stages = small(XGBRegressorLite).fit(X, y).staged_predict(X)
    first = next(stages)
    before = first.copy()
    next(stages)
    assert_array_equal(first, before)
    model = small(XGBRegressorLite).fit(X, y)
    one, other = model.staged_predict(X), model.staged_predict(X)
    for a, b in zip(one, other, strict=True):  # two at a time
        assert_array_equal(a, b)


KINDS = np.array([3, 0, 4, 1, 2] * 20)
DAYS = pd.Timestamp("2024-03-29") + pd.to_timedelta(KINDS, "D")
COLUMNS = {
    "ids": 2**60 + 10 * KINDS,
    "unsigned": np.uint64(2**64 - 60) + 10 * KINDS.astype(np.uint64),
    "nullable": pd.array(np.where(KINDS == 4, None, 2**60 + KINDS), dtype="Int64"),
    "days": DAYS,
    "zone": DAYS.tz_localize("Europe/Berlin"),
    "nanoseconds": pd.Timestamp("2024-01-01T00:00:00.123456789") + pd.to_timedelta(KINDS, "ns"),
    "spans": pd.to_timedelta(KINDS, "h"),
    "gaps": pd.Series(DAYS[:1].repeat(100)).where(KINDS > 2),
    "categories of days": pd.Categorical(DAYS),
    "categories of times with a zone": pd.Categorical(DAYS.tz_localize("Europe/Berlin")),
    "categories of spans": pd.Categorical(pd.to_timedelta(KINDS, "s")),
}


def scores_by_hand(table, values, start):
    """Send values down the trees of a table, comparing as Python does."""
    nodes = {row.ID: row for row in table.itertuples()}
    for value in values:
        score = start
        for tree in range(table["Tree"].max() + 1):
            node = nodes[f"{tree}-0"]
            while node.Feature != "Leaf":
                if pd.isna(value):
                    side = node.Missing
                else:
                    is_left = (
                        value < node.Split if node.Category is None else value in node.Category
                    )
                    side = node.Yes if is_left else node.No
                node = nodes[side]
            score += node.Gain
        yield score


@pytest.mark.parametrize("name", COLUMNS)
def test_the_table_predicts_by_hand(name, tmp_path):
    X = pd.DataFrame({"x": COLUMNS[name]})
    model = small(XGBRegressorLite, max_depth=3).fit(X, (KINDS > 1) * 3.0 + (KINDS == 3))
    model.save_model(tmp_path / "model.json", format="sklboost")
    again = XGBRegressorLite().load_model(tmp_path / "model.json")
    table = again.trees_to_dataframe()
    assert table.equals(model.trees_to_dataframe())
    start = model.model_.base_score[0]
    assert_allclose(list(scores_by_hand(table, X["x"], start)), model.predict(X))
    if table["Category"].isna().all() and name != "gaps":  # values next to a threshold, too
        split = table["Split"][0]
        step = 1 if isinstance(split, int) else pd.Timedelta(1, "ns")
        near = pd.DataFrame({"x": pd.Series([split - step, split, split + step])})
        assert_allclose(list(scores_by_hand(table, near["x"], start)), model.predict(near))


def test_splits_are_values_of_their_column():
    X = pd.DataFrame(
        {name: COLUMNS[name] for name in ("ids", "zone", "spans")} | {"x": 1.0 * KINDS}
    )
    for name, split in [
        ("ids", 2**60 + 11),
        ("zone", pd.Timestamp("2024-03-30 12:00", tz="Europe/Berlin")),
        ("spans", pd.Timedelta("1.5h")),
        ("x", 1.5),
    ]:
        table = small(XGBRegressorLite).fit(X[[name]], KINDS > 1).trees_to_dataframe()
        assert table["Split"][0] == split
        assert table["Split"].dtype == (np.float64 if name == "x" else object)


def test_table_of_the_trees(binary):
    X, y = binary
    names = [f"cell {i}" for i in range(X.shape[1])]
    model = small(XGBClassifierLite).fit(pd.DataFrame(X, columns=names), y)
    assert_array_equal(model.feature_names_in_, names)
    frame = model.trees_to_dataframe()
    expected = ["Tree", "Node", "ID", "Feature", "Split", "Yes", "No", "Missing"]
    assert list(frame.columns) == [*expected, "Gain", "Cover", "Category", "Similarity", "Output"]
    is_leaf = frame["Feature"] == "Leaf"
    assert set(frame["Feature"][~is_leaf]) <= set(names)
    assert frame["Category"].isna().all()
    assert list(small(XGBClassifierLite).fit(X, y).trees_to_dataframe()["Feature"][~is_leaf]) == [
        f"f{names.index(name)}" for name in frame["Feature"][~is_leaf]
    ]


def test_the_table_lists_the_levels_of_a_split():
    effect = {"a": 1.0, "b": 5.0, "c": 1.0, "d": 5.0, "e": 1.0}
    city = np.array(list(effect) * 8)
    X = pd.DataFrame({"age": np.zeros(40), "city": pd.Categorical(city)})
    y = np.array([effect[name] for name in city])
    one_split = dict(n_estimators=1, max_depth=1, cat_smooth=0)
    table = small(XGBRegressorLite, **one_split).fit(X, y).trees_to_dataframe()
    assert table["Feature"].tolist() == ["city", "Leaf", "Leaf"]
    assert table["Category"].tolist() == [["b", "d"], None, None]
    # those listed go to Yes
    assert table["Output"][2] < 0 < table["Output"][1]
    assert np.isnan(table["Split"][0])
    # more than the bits of a word
    numbers = np.arange(400) % 100
    X = pd.DataFrame({"number": pd.Categorical(numbers)})
    one_split |= dict(max_cat_threshold=100)
    model = small(XGBRegressorLite, **one_split).fit(X, (numbers % 3 == 0).astype(float))
    assert model.trees_to_dataframe()["Category"][0] == list(range(0, 100, 3))
    # levels that share a code are listed one by one
    encoding = Encoding("category", categories=np.array([3, 5, 7]), codes=np.array([0, 1, 1]))
    assert categories_by_code((Encoding(), encoding)) == [[], [[3], [5, 7]]]
    assert categories_by_code(None) == []


@pytest.mark.parametrize(
    ("estimator", "n_targets", "settings", "dtype"),
    [
        (XGBRegressorLite, 1, dict(max_depth=9), np.float32),
        (XGBRegressorLite, 1, dict(max_depth=9), np.float64),
        (XGBRegressorLite, 1, dict(linear_tree=True), np.float32),
        (XGBRegressorLite, 3, dict(multi_strategy="multi_output_tree"), np.float64),
        (XGBClassifierLite, 1, {}, np.float64),
    ],
)
def test_few_rows_have_the_bits_of_many(estimator, n_targets, settings, dtype):
    random = np.random.default_rng(0)
    values = random.normal(size=(90, 4)).astype(dtype)
    y = np.rint(values[:, :n_targets] + random.normal(size=(90, n_targets))).squeeze()
    values[::5, 1] = np.nan
    model = estimator(n_estimators=20, n_jobs=1, **settings).fit(values, y)
    predict = partial(model.predict, output_margin=True)
    margins = random.normal(size=(90, model.model_.n_outputs))
    for form in (np.ascontiguousarray, np.asfortranarray, lambda rows: rows.tolist()):
        for n_rows in (1, 7):
            parts = [slice(start, start + n_rows) for start in range(0, 90, n_rows)]
            few = [predict(form(values[rows]), base_margin=margins[rows]) for rows in parts]
            assert_array_equal(np.concatenate(few), predict(values, base_margin=margins))
    staged = [[*model.staged_predict(values[[row]])] for row in range(3)]
    together = [stage[:3] for stage in model.staged_predict(values)]
    assert_array_equal(np.concatenate(staged, axis=1), together)
