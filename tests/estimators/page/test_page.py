"""What a page holds: one page in a browser, and what can be read without one."""

import numpy as np
import pandas as pd
import pytest
from selenium.webdriver import Keys

from sklboost import XGBClassifierLite, XGBRegressorLite
from tests.estimators.page.examples import (
    DOSAGE,
    EFFECT,
    WORKED,
    expected_texts,
    node_texts,
    plain,
    table_of,
)


def test_one_page_in_a_browser(opened, cancer, binary):
    X, y = binary
    page = opened(cancer, X, y, rows=[3, 5])
    assert page.first("h1").text == "XGBClassifierLite, 6 trees"
    assert page.texts("h2") == [
        "Trees",
        "Predictions, row by row",
        "Feature importance",
        "Learning curves",
    ]
    # the drawing, by keys
    root = cancer.model_.nodes[0]
    page.run("document.querySelector('.node').focus()")
    page.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert page.run("return Number(document.activeElement.dataset.node)") == root.left
    page.driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert page.first("#node h3").text.startswith(f"Tree 0, node {root.left}:")
    # a row: its path, and what features add to its prediction
    page.set("#row", 1)
    leaf = cancer.apply(X[[5]])[0, 0]
    ends = {int(box.get_attribute("data-node")) for box in page.all(".node.on-path")}
    assert leaf in ends
    assert page.first("#tree-status").text.endswith(f"Row 5 ends in leaf {leaf}.")
    page.first("#show-path").click()
    assert page.all(".on-path") == []
    table = table_of(page, "#rows")
    values = cancer.shap_values(X[[5]])[0]
    order = [f for f in np.argsort(-abs(values), kind="stable") if values[f] != 0.0]
    assert [row[0] for row in table[1:]] == [f"f{f}" for f in order]
    np.testing.assert_allclose([float(row[2]) for row in table[1:]], values[order], atol=6e-5)
    raw_score, chance = map(float, table[-1][4:])
    assert raw_score == pytest.approx(cancer.decision_function(X[[5]])[0], abs=2e-4)
    assert chance == pytest.approx(cancer.predict_proba(X[[5]])[0, 1], abs=1e-4)
    assert f"True value: {y[5]}." in page.first("#rows [role=status]").text
    # importances and learning curves
    largest = max(cancer.get_score("gain").values())
    assert float(table_of(page, "#importances")[0][1]) == pytest.approx(largest, abs=1e-4)
    assert page.texts("figcaption") == ["logloss", "error"]
    last = cancer.evals_result_["validation_0"]["logloss"][-1]
    label = page.first(".chart").get_attribute("aria-label")
    assert float(label.split()[-1]) == pytest.approx(last, abs=1e-6)
    # pruning, and the derivation of every node, pruned ones included
    assert float(page.first("#gamma").get_attribute("value")) == 2.0
    page.set("#gamma", 1e9)
    assert len(page.all(".node")) == 1
    assert plain(node_texts(page)) == plain(expected_texts(cancer))


def test_the_worked_example_to_the_number(opened):
    page = opened(XGBRegressorLite(**WORKED).fit(DOSAGE, EFFECT), derivations=False)
    boxes = [box.text.splitlines() for box in page.all(".node")]
    assert boxes == [
        ["f0 < 15", "gain 120.3, cover 4"],
        ["value -10.5", "cover 1"],
        ["f0 < 30", "gain 140.2, cover 3"],
        ["value 7", "cover 2"],
        ["value -7.5", "cover 1"],
    ]
    bars = [float(bar.get_attribute("width")) for bar in page.all(".node .rises, .node .falls")]
    assert max(bars) < float(page.first(".node .box").get_attribute("width")) / 2
    assert [bar / max(bars) for bar in bars] == pytest.approx([1, 7 / 10.5, 7.5 / 10.5], abs=1e-6)
    page.first(".node").click()
    assert "explain_split(0, 0)" in page.first("#node").text


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


def test_nodes_have_derivations_unless_they_are_not_wanted(tmp_path):
    model, sizes = XGBRegressorLite(**WORKED).fit(DOSAGE, EFFECT), {}
    for options in ({}, dict(derivations=True), dict(derivations=False)):
        model.to_html(tmp_path / "model.html", **options)
        sizes[str(options)] = (tmp_path / "model.html").stat().st_size
    plain, wanted, unwanted = sizes.values()
    assert plain == wanted > unwanted


@pytest.mark.parametrize("dtype", [object, "category"])
def test_targets_that_are_text_stand_beside_predictions(tmp_path, dtype):
    labels = pd.Series(["low", "high", "high", "low"], dtype=dtype)
    model = XGBClassifierLite(n_estimators=1, min_child_weight=0).fit(DOSAGE, labels)
    model.to_html(tmp_path / "model.html", DOSAGE, labels)
    text = (tmp_path / "model.html").read_text("utf-8")
    assert text.count("True value: 'low'.") == text.count("True value: 'high'.") == 2
