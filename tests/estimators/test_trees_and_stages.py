"""What a fitted estimator shows: stages, leaves, tables, importances."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.data.encoding import Encoding
from sklboost.estimators.input.feature_tables import categories_by_code
from tests.small_models import small


def test_staged_predict_ends_with_predict(regression, binary, multiclass):
    for estimator, (X, y) in (
        (XGBRegressorLite, regression),
        (XGBClassifierLite, binary),
        (XGBClassifierLite, multiclass),
    ):
        model = small(estimator).fit(X, y)
        stages = list(model.staged_predict(X))
        assert len(stages) == 8
        assert_array_equal(stages[-1], model.predict(X))
        for n_estimators in (1, 5):
            shorter = small(estimator, n_estimators=n_estimators).fit(X, y)
            assert_array_equal(stages[n_estimators - 1], shorter.predict(X))


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


def test_apply_gives_leaves_of_trees_that_take_turns(multiclass):
    X, y = multiclass
    model = small(XGBClassifierLite, n_estimators=2, base_score=0.0).fit(X, y)
    frame = model.trees_to_dataframe().query("Feature == 'Leaf'").set_index(["Tree", "Node"])
    assert model.apply(X).shape == (150, 6)
    assert np.issubdtype(model.apply(X).dtype, np.integer)
    raw = np.zeros((len(y), 3))
    for tree, nodes in enumerate(model.apply(X).T):
        raw[:, tree % 3] += frame.loc[[(tree, node) for node in nodes], "Gain"].to_numpy()
    assert_allclose(model.decision_function(X), raw, rtol=1e-12, atol=1e-12)


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
    assert list(frame["ID"]) == [f"{t}-{n}" for t, n in zip(frame.Tree, frame.Node, strict=True)]
    assert frame.loc[is_leaf, ["Split", "Yes", "No", "Missing"]].isna().all(axis=None)
    assert frame.loc[~is_leaf, ["Split", "Yes", "No", "Missing"]].notna().all(axis=None)
    assert frame["Category"].isna().all()
    assert frame[["Gain", "Cover", "Similarity", "Output"]].notna().all(axis=None)
    leaves = frame[is_leaf]
    assert_allclose(leaves["Gain"], model.learning_rate * leaves["Output"], rtol=1e-12)
    # the squares of the definition, lambda = 1
    sums = frame["Output"] * (frame["Cover"] + 1)
    assert_allclose(frame["Similarity"], sums**2 / (frame["Cover"] + 1), rtol=1e-9, atol=1e-12)
    assert list(small(XGBClassifierLite).fit(X, y).trees_to_dataframe()["Feature"][~is_leaf]) == [
        f"f{names.index(name)}" for name in frame["Feature"][~is_leaf]
    ]


def test_feature_importances_are_average_gains(regression):
    X, y = regression
    X = np.column_stack([X, np.zeros(len(y))])
    model = small(XGBRegressorLite).fit(X, y)
    frame = model.trees_to_dataframe()
    gains = frame[frame["Feature"] != "Leaf"].groupby("Feature")["Gain"].mean()
    expected = np.array([gains.get(f"f{i}", 0.0) for i in range(11)])
    assert_allclose(model.feature_importances_, expected / expected.sum(), rtol=1e-9)
    assert model.feature_importances_[10] == 0
    assert model.feature_importances_.shape == (11,)
    model = XGBRegressorLite(n_estimators=2).fit(np.zeros((5, 2)), np.arange(5.0))
    assert_array_equal(model.feature_importances_, [0.0, 0.0])  # there is no split


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
