"""Rows, importances and learning curves on the page; and what is wrong with arguments."""

import numpy as np
import pandas as pd
import pytest

from sklboost import XGBClassifierLite, XGBRegressorLite
from tests.estimators.page.examples import DOSAGE, EFFECT, WORKED


def table_of(page, selector):
    return [
        [cell.get_attribute("textContent") for cell in row.find_elements("css selector", "th, td")]
        for row in page.all(f"{selector} tbody tr")
    ]


def test_what_features_add_leads_to_the_prediction(opened, cancer, binary):
    X, y = binary
    page = opened(cancer, X, y, rows=[3, 5])
    page.set("#row", 1)
    table = table_of(page, "#rows")
    values = cancer.shap_values(X[[5]])[0]
    order = [f for f in np.argsort(-abs(values), kind="stable") if values[f] != 0.0]
    assert [row[0] for row in table[1:]] == [f"f{f}" for f in order]
    added = [float(row[2]) for row in table[1:]]
    np.testing.assert_allclose(added, values[order], atol=6e-5)
    raw_score, chance = map(float, table[-1][4:])
    assert raw_score == pytest.approx(cancer.decision_function(X[[5]])[0], abs=2e-4)
    assert chance == pytest.approx(cancer.predict_proba(X[[5]])[0, 1], abs=1e-4)
    assert f"True value: {y[5]}." in page.first("#rows [role=status]").text


def test_the_path_of_a_row_is_marked(opened, cancer, binary):
    X, y = binary
    page = opened(cancer, X, y, rows=[0, 40, 200])
    for row, number in enumerate([0, 40, 200]):
        page.set("#row", row)
        last = page.all(".node.on-path")[-1]
        ends = {int(box.get_attribute("data-node")) for box in page.all(".node.on-path")}
        assert cancer.apply(X[[number]])[0, 0] in ends
        assert "value" in last.text
        leaf = cancer.apply(X[[number]])[0, 0]
        assert page.first("#tree-status").text.endswith(f"Row {number} ends in leaf {leaf}.")
    assert page.first("#path-control").text == "Show the selected row's path"
    page.first("#show-path").click()
    assert page.all(".on-path") == []
    assert "ends in leaf" not in page.first("#tree-status").text


def test_contributions_to_each_class(opened, flowers):
    model, X, y = flowers
    page = opened(model, X, y)
    assert len(page.texts("#row option")) == 20
    page.set("#row-output", 1)
    table = table_of(page, "#rows")
    assert len(table[0]) == 5  # a raw score alone is no probability
    assert float(table[-1][4]) == pytest.approx(model.decision_function(X[:1])[0, 1], abs=2e-4)
    assert dict(row[:2] for row in table)["petals"] == "'<script>alert(2)</script>'"


def test_importances_are_bars_largest_first(opened, cancer, binary):
    page = opened(cancer, *binary)
    values = sorted(cancer.get_score("gain").values(), reverse=True)
    table = table_of(page, "#importances")
    assert len(table) == 20
    np.testing.assert_allclose([float(row[1]) for row in table[: len(values)]], values, atol=1e-4)
    assert all(row[1] == "0" for row in table[len(values) :])
    page.first("#importances button").click()
    assert len(table_of(page, "#importances")) == 30
    kinds = page.texts("#importance-kind option")
    page.set("#importance-kind", kinds.index("SHAP"))
    shap = np.sort(abs(cancer.shap_values(binary[0][:20])).mean(axis=0))[::-1]
    own = [float(row[1]) for row in table_of(page, "#importances")]
    np.testing.assert_allclose(own, shap, atol=1e-4)


def test_learning_curves(opened, cancer):
    page = opened(cancer)
    assert page.texts("figcaption") == ["logloss", "error"]
    last = cancer.evals_result_["validation_0"]["logloss"][-1]
    label = page.first(".chart").get_attribute("aria-label")
    assert float(label.split()[-1]) == pytest.approx(last, abs=1e-6)


def test_without_rows_and_validation_the_page_says_so(opened):
    page = opened(XGBRegressorLite(**WORKED).fit(DOSAGE, EFFECT), derivations=False, title="<i>")
    assert "to_html(path, X)" in page.first("#rows").text
    assert "without validation data (eval_set)" in page.first("#curves").text
    assert page.first("h1").text == page.driver.title == "<i>"
    page.first(".node").click()
    assert "explain_split(0, 0)" in page.first("#node").text


def test_linear_leaves_have_no_contributions(opened, regression):
    X, y = regression
    model = XGBRegressorLite(n_estimators=3, max_depth=2, linear_tree=True).fit(X, y)
    page = opened(model, X, y)
    assert "no SHAP values for models with linear leaves" in page.first("#rows").text
    assert "SHAP" not in page.texts("#importance-kind option")


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((None, EFFECT), {}, "y is given without X"),
        ((), dict(rows=[0]), "rows is given without X"),
        ((DOSAGE,), dict(rows=[0, 4]), "rows=4: list numbers of rows of X, from 0 to 3"),
        ((DOSAGE,), dict(rows=[]), r"rows=\[\]: "),
        ((DOSAGE,), dict(rows=[0.5]), "rows=0.5: "),
        ((DOSAGE, EFFECT[:3]), {}, r"y has shape \(3,\), but X has 4 rows"),
    ],
)
def test_errors_name_what_is_wrong(tmp_path, arguments, options, words):
    model = XGBRegressorLite(**WORKED).fit(DOSAGE, EFFECT)
    with pytest.raises(ValueError, match=words):
        model.to_html(tmp_path / "model.html", *arguments, **options)
    assert not (tmp_path / "model.html").exists()


@pytest.mark.parametrize("dtype", ["U", object, "category", "string"])
def test_targets_that_are_text_stand_beside_predictions(tmp_path, dtype):
    labels = np.array(["low", "high", "high", "low"])
    labels = labels.astype(dtype) if dtype in ("U", object) else pd.Series(labels, dtype=dtype)
    model = XGBClassifierLite(n_estimators=1, min_child_weight=0).fit(DOSAGE, labels)
    model.to_html(tmp_path / "model.html", DOSAGE, labels)
    text = (tmp_path / "model.html").read_text("utf-8")
    assert text.count("True value: 'low'.") == text.count("True value: 'high'.") == 2
