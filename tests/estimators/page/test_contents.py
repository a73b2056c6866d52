"""Rows, importances and names on the page, which asks for nothing and runs its own scripts only."""

import json

import numpy as np
import pytest

from sklboost import XGBRegressorLite
from tests.browser import Page
from tests.estimators.page.examples import DOSAGE, EFFECT, EVIL, WORKED, node_texts, table_of

pytestmark = pytest.mark.slow  # tests/estimators/page/test_page.py opens one page in every run


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


def test_without_rows_and_validation_the_page_says_so(opened):
    page = opened(XGBRegressorLite(**WORKED).fit(DOSAGE, EFFECT), title="<i>")
    assert "to_html(path, X)" in page.first("#rows").text
    assert "without validation data (eval_set)" in page.first("#curves").text
    assert page.first("h1").text == page.driver.title == "<i>"


def test_linear_leaves_have_no_contributions(opened, regression):
    X, y = regression
    model = XGBRegressorLite(n_estimators=3, max_depth=2, linear_tree=True).fit(X, y)
    page = opened(model, X, y)
    assert "no SHAP values for models with linear leaves" in page.first("#rows").text
    assert "SHAP" not in page.texts("#importance-kind option")


def test_the_page_asks_for_nothing(opened, cancer, binary):
    page = opened(cancer, *binary)
    messages = [
        json.loads(entry["message"])["message"] for entry in page.driver.get_log("performance")
    ]
    sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert [own["request"]["url"] for own in sent] == [page.path.as_uri()]


def test_a_script_that_is_not_the_pages_own_does_not_run(browser, tmp_path, cancer):
    cancer.to_html(tmp_path / "model.html")
    page = Page(browser, tmp_path / "model.html")
    assert page.run("""
        const script = document.createElement("script");
        script.textContent = "window.wasRun = true";
        document.body.append(script);
        return window.wasRun === undefined;
    """)
    assert "Content Security Policy" in browser.get_log("browser")[0]["message"]


def test_names_stay_text(opened, flowers):
    model, X, y = flowers
    page = opened(model, X, y, rows=[0, 60, 120])
    assert page.run("return document.querySelectorAll('img, b').length") == 0
    assert page.run("return document.scripts.length") == 2
    assert page.texts("#output option")[0] == "class '&lt;'"
    assert EVIL in page.texts("#importances th")
    assert "Predicted class: '<script>alert(3)</script>'" in page.first("#rows [role=status]").text
    texts = [line for lines in node_texts(page) for line in lines]
    assert any("petals in {'</script>'}" in line for line in texts)
