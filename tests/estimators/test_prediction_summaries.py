"""Summaries of predictions: short for any number of trees, and their numbers add up."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.inspection.derivation import Step
from tests.estimators.test_explaining import CLASSES, MODELS, X, Y, make

BINARY = Y > 4


def steps_of(section):
    return [line for line in section.lines if isinstance(line, Step)]


@pytest.mark.parametrize("name", MODELS)
def test_numbers_add_up_to_the_prediction(name):
    model, _ = make(name, n_estimators=12)
    for row in (0, 17):
        derived = model.explain_prediction(X[row])
        full = model.explain_prediction(X[row], full=True)
        assert (derived.sections, derived.title) == (full.sections, full.title)
        assert full.summary == ()
        start, trees, *features, prediction = derived.summary
        *added, total = steps_of(trees)
        assert total.symbol == "T"
        assert_allclose(sum(step.result for step in added), total.result, atol=1e-12)
        raw_score, *results = steps_of(prediction)
        first = steps_of(start)[-1]
        assert raw_score.formula == f"{first.symbol} + T"
        assert_allclose(first.result + total.result, raw_score.result, rtol=1e-12, atol=1e-12)
        # it is a raw score of the model, and ends where the whole derivation does
        assert np.isclose(model._scored(X[row : row + 1])[1], raw_score.result, rtol=1e-12).any()
        assert raw_score.symbol in [step.symbol for step in full.steps]
        assert raw_score.result == full.result(raw_score.symbol)
        assert len(features) == (not name.startswith("linear leaves"))
        for section in features:
            assert_allclose(sum(step.result for step in section.lines), raw_score.result, rtol=1e-9)
        assert results
        for step in results:
            assert step.result == full.result(step.symbol)
        n_lines = len(full.text.splitlines())
        for form in (derived.text, derived.html, derived.latex):
            assert f"All {n_lines} lines, tree by tree: explain" in form.replace("\\_", "_")


@pytest.mark.parametrize("n_trees", [10, 300])
def test_a_summary_is_as_short_for_many_trees(n_trees):
    model = XGBClassifierLite(n_estimators=n_trees, max_depth=3).fit(X, BINARY)
    derived = model.explain_prediction(X[3])
    full = model.explain_prediction(X[3], full=True)
    assert len(full.text.splitlines()) > 4 * n_trees
    assert len(repr(derived).splitlines()) <= 25
    assert str(derived) == repr(derived) == derived.text
    assert derived._repr_html_().count("<tr>") <= 18
    assert derived._repr_latex_().count("\n") < 50
    assert f"sum of the {n_trees} trees: T = " in derived.text
    assert derived.result("p") == full.result("p") == model.predict_proba(X[3:4])[0, 1]
    assert derived.as_dict() == full.as_dict()


def test_what_adds_most_comes_first():
    model = XGBRegressorLite(n_estimators=30, max_depth=3).fit(X, Y)
    short = model.explain_prediction(X[7], iteration_range=(0, 2))
    assert short.summary == ()  # it is shown whole
    assert "Tree 1\n" in short.text
    _, trees, features, _ = model.explain_prediction(X[7]).summary
    leaves = model.apply(X[7:8])[0]
    values = model.model_.values[0][model.model_.tree_starts[:-1] + leaves]
    order = np.argsort(-np.abs(values), kind="stable")[:3]
    names = [f"tree {tree}, leaf {leaves[tree]}" for tree in order]
    assert [step.name for step in trees.lines[:3]] == names
    assert_allclose([step.result for step in trees.lines[:3]], values[order])
    assert trees.lines[3].name == "the other 27 trees"
    contributions = model.shap_values(X[7:8])[0]
    order = np.argsort(-np.abs(contributions), kind="stable")
    assert_allclose([step.result for step in features.lines[1:]], contributions[order])
    assert features.lines[1].name.startswith(f"f{order[0]} = ")


def test_a_summary_of_several_classes_is_of_the_predicted_one():
    model = XGBClassifierLite(n_estimators=10, max_depth=3).fit(X, CLASSES)
    derived, chances = model.explain_prediction(X[5]), model.predict_proba(X[5:6])[0]
    label = model.predict(X[5:6])[0].item()
    assert len(derived.text.splitlines()) <= 27
    assert f"probability of class {label!r}: p_{chances.argmax()} = " in derived.text
    assert f"raw score of class {label!r}" in derived.text
    (others,) = [line for line in derived.summary[-1].lines if str(line).startswith("Others: ")]
    assert others.count("probability of class") == 2


def test_a_summary_of_some_rounds():
    model = XGBRegressorLite(n_estimators=30, max_depth=3).fit(X, Y)
    derived = model.explain_prediction(X[7], iteration_range=(0, 10))
    assert "sum of the 10 trees" in derived.text
    features = derived.summary[2]
    assert_allclose(sum(step.result for step in features.lines), derived.result("y"))
    assert_allclose(derived.result("y"), model.predict(X[7:8], iteration_range=(0, 10))[0])


def test_times_and_large_integers_are_written_as_such():
    day, key, hours = (own.ravel() for own in np.mgrid[:10, :10, :10])
    frame = pd.DataFrame(
        {
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(day, "D"),
            "id": 10**17 + key,
            "lasts": pd.to_timedelta(hours, "h"),
        }
    )
    y = (day >= 4) + 3.0 * (key >= 6) + 9.0 * (hours >= 5)
    model = XGBRegressorLite(n_estimators=1, max_depth=3, reg_lambda=0).fit(frame, y)
    splits = {model.explain_split(0, node).title.split(": ")[1] for node in range(7)}
    assert splits == {
        "split at day < 2020-01-04T12:00",
        "split at id < 100000000000000006",
        "split at lasts < 4.5 hours",
    }
    row = frame[(day == 8) & (key == 5) & (hours == 7)]
    whole = model.explain_prediction(row, full=True).text
    assert "day = 2020-01-09 ≥ 2020-01-04T12:00" in whole
    assert "id = 100000000000000005 < 100000000000000006" in whole
    assert "lasts = 7 hours ≥ 4.5 hours" in whole
    many = XGBRegressorLite(n_estimators=9, max_depth=3).fit(frame, y)
    summary = many.explain_prediction(row).text
    for value in ("day = 2020-01-09: ", "id = 100000000000000005: ", "lasts = 7 hours: "):
        assert value in summary
