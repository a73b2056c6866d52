"""The trees of a page: what is drawn, clicks, keys, controls, derivations and pruning."""

import pytest
from selenium.webdriver import ActionChains, Keys

from sklboost import XGBClassifierLite, XGBRegressorLite
from tests.estimators.page.examples import (
    expected_texts,
    node_texts,
    plain,
)

pytestmark = pytest.mark.slow  # tests/estimators/page/test_page.py opens one page in every run


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
