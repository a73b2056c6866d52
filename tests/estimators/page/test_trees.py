"""The trees of a page: what is drawn, clicks, keys, controls, derivations and pruning."""

import re

import numpy as np
import pandas as pd
import pytest
from selenium.webdriver import ActionChains, Keys

from sklboost import XGBClassifierLite, XGBRegressorLite
from tests.estimators.page.examples import (
    DOSAGE,
    EFFECT,
    WORKED,
    expected_texts,
    node_texts,
    plain,
)

pytestmark = pytest.mark.slow  # tests/estimators/page/test_page.py opens one page in every run


def test_the_worked_example_to_the_number(opened):
    page = opened(XGBRegressorLite(**WORKED).fit(DOSAGE, EFFECT))
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


def test_keys_walk_the_tree(opened, cancer):
    page = opened(cancer)
    page.run("document.querySelector('.node').focus()")

    def press(*keys):
        page.driver.switch_to.active_element.send_keys(*keys)
        return page.run("return Number(document.activeElement.dataset.node)")

    root = cancer.model_.nodes[0]
    assert press(Keys.ARROW_RIGHT) == root.left
    assert press(Keys.ARROW_LEFT) == 0
    assert press(Keys.ARROW_LEFT) == 0  # there is nothing above
    assert press(Keys.ARROW_DOWN) == root.left
    assert press(Keys.ARROW_UP) == 0
    leaf = press(Keys.END)
    assert press(Keys.ARROW_RIGHT) == leaf  # nor below
    assert press(Keys.HOME) == 0
    press(Keys.ENTER)
    assert page.first("#node h3").text.startswith("Tree 0, node 0")
    press(Keys.ARROW_RIGHT)  # what is unfolded follows
    assert page.first("#node h3").text.startswith(f"Tree 0, node {root.left}:")
    assert press(Keys.PAGE_DOWN) == 0
    assert page.first("#tree-status").text.startswith("Tree 1,")
    before = page.first("#drawing").get_dom_attribute("viewBox")
    press("+")
    assert page.first("#drawing").get_dom_attribute("viewBox") != before
    press("0")
    press(Keys.ESCAPE)
    assert not page.first("#node").is_displayed()


def test_trees_are_chosen_by_number_slider_and_buttons(opened, flowers):
    page = opened(flowers[0])
    status = page.first("#tree-status")
    assert status.text.startswith("Tree 0 of class '&lt;', 1 of 4:")
    page.first("#next-tree").click()
    assert status.text.startswith("Tree 3 of class '&lt;', 2 of 4:")
    page.first("#previous-tree").click()
    assert status.text.startswith("Tree 0 ")
    assert not page.first("#previous-tree").is_enabled()
    page.set("#tree-slider", 3, "input")
    assert status.text.startswith("Tree 9 ")
    assert not page.first("#next-tree").is_enabled()
    page.set("#output", 2)
    assert status.text.startswith("Tree 11 of class 'b', 4 of 4:")
    page.set("#tree-number", 7)
    assert status.text.startswith("Tree 7 of class '<script>alert(3)</script>', 3 of 4:")
    page.set("#tree-number", 99)
    assert status.text.startswith("Tree 11 ")


def test_the_drawing_zooms_and_moves(opened, cancer):
    page = opened(cancer)

    def box():
        return list(map(float, page.first("#drawing").get_dom_attribute("viewBox").split()))

    whole = box()
    page.first("#zoom-in").click()
    assert box()[2] < whole[2]
    page.first("#zoom-out").click()
    assert box() == pytest.approx(whole)
    ActionChains(page.driver).drag_and_drop_by_offset(page.first(".node"), 60, 40).perform()
    moved = box()
    assert moved[0] < whole[0]
    assert moved[1] < whole[1]
    assert not page.first("#node").is_displayed()  # that was no click
    page.first("#zoom-fit").click()
    assert box() != moved


# --- derivations


MODELS = {
    "keep_pruned": dict(gamma=2.0, keep_pruned=True),
    "full": dict(pruning="full", gamma=0.5, reg_lambda=0.0, keep_pruned=True, max_depth=2),
    "constrained": dict(
        *[dict(reg_alpha=0.3, max_delta_step=0.05, path_smooth=2.0)],
        monotone_constraints={0: 1, 2: -1},
    ),
    "dart": dict(booster="dart", rate_drop=0.5, random_state=0),
    "median": dict(objective="reg:absoluteerror"),
    "cost_complexity": dict(ccp_alpha=0.01, keep_pruned=True),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_node_says_what_explain_split_says(opened, regression, name):
    X, y = regression
    settings = dict(n_estimators=3, max_depth=3) | MODELS[name]
    model = XGBRegressorLite(**settings).fit(X[:, :5], y / 50)
    expected = plain(expected_texts(model))
    assert len(expected) > 6
    assert plain(node_texts(opened(model))) == expected


def test_times_and_large_integers_on_the_page(opened):
    rows = np.arange(300)
    frame = pd.DataFrame(
        {
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rows, "D"),
            "id": 10**17 + rows % 50,
        }
    )
    y = np.sin(rows / 30) + (rows % 50 >= 10)
    model = XGBRegressorLite(n_estimators=2, max_depth=3).fit(frame, y)
    page = opened(model, frame[:3])
    assert plain(node_texts(page)) == plain(expected_texts(model))
    drawn = page.texts(".node text")
    assert any(re.fullmatch(r"day < 2020-\d\d-\d\d", text) for text in drawn)
    assert any(re.fullmatch(r"id < 1000000000000000\d\d", text) for text in drawn)
    values = page.texts("#rows td")
    assert "2020-01-01" in values
    assert "100000000000000000" in values


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_derivations_of_several_outputs(opened, flowers, strategy):
    model, X, y = flowers
    model = XGBClassifierLite(n_estimators=2, max_depth=2, multi_strategy=strategy).fit(X, y)
    assert plain(node_texts(opened(model))) == plain(expected_texts(model))


# --- pruning


def drawn(page):
    """Return what is written in the boxes, parents first."""
    return page.texts(".node text")


@pytest.mark.parametrize("gamma", [0.0, 3.0, 1e9])
def test_the_slider_prunes_as_training_does(opened, regression, gamma):
    X, y = regression
    settings = dict(n_estimators=1, max_depth=5, reg_lambda=0.5)
    pruned = opened(XGBRegressorLite(**settings, gamma=gamma).fit(X, y / 50))
    expected = drawn(pruned)
    page = opened(XGBRegressorLite(**settings).fit(X, y / 50))
    page.set("#gamma", gamma)
    assert drawn(page) == expected
    # what pruning has removed is there again, if it was remembered
    kept = opened(XGBRegressorLite(**settings, gamma=gamma, keep_pruned=True).fit(X, y / 50))
    assert drawn(kept) == expected
    kept.set("#gamma", 0)
    page.first("#reset-gamma").click()
    assert drawn(kept) == drawn(page)


def test_a_weak_split_stays_above_a_strong_one(opened):
    page = opened(XGBRegressorLite(**WORKED).fit(DOSAGE, EFFECT))
    page.set("#gamma", 130)
    assert len(page.all(".node")) == 5
    page.set("#gamma", 150)
    assert len(page.all(".node")) == 1
    assert "0 of 2 splits, 1 leaf, pruned with gamma 150." in page.first("#tree-status").text
    assert page.first(".node text").text == "value -1"


def test_the_slider_goes_from_everything_to_the_root_alone(opened, cancer):
    page = opened(cancer)
    slider = page.first("#gamma-slider")
    page.set("#gamma-slider", 1000, "input")
    assert len(page.all(".node")) == 1
    assert float(page.first("#gamma").get_attribute("value")) > cancer.model_.nodes.gain.max()
    slider.send_keys(Keys.HOME)
    assert float(page.first("#gamma").get_attribute("value")) == 0.0
    n_all = len(page.all(".node"))
    page.first("#reset-gamma").click()
    assert len(page.all(".node")) == cancer.model_.tree_starts[1] < n_all
