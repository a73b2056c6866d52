"""The trees of a page: what is drawn, clicks, keys, controls."""

import pytest
from selenium.webdriver import ActionChains, Keys

from sklboost import XGBRegressorLite
from tests.estimators.page.examples import DOSAGE, EFFECT, WORKED


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


def test_a_click_unfolds_a_node_and_another_folds_it(opened, cancer):
    page = opened(cancer)
    panel, second = page.first("#node"), page.all(".node")[1]
    assert not panel.is_displayed()
    second.click()
    number = int(second.get_attribute("data-node"))
    title = str(cancer.explain_split(0, number)).splitlines()[0]
    assert panel.find_element("css selector", "h3").text == title
    second.click()
    assert not panel.is_displayed()


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


def test_splits_are_found(opened, cancer):
    page = opened(cancer)
    table = cancer.trees_to_dataframe()
    table = table[table["Feature"] != "Leaf"]
    counts = table["Feature"].value_counts()
    name = counts[counts > 1].index[-1]
    own = table[table["Feature"] == name]
    expected = {f"Tree {t}, node {n}" for t, n in zip(own["Tree"], own["Node"], strict=True)}
    page.first("#search-text").send_keys(f"{name} <")
    found = set()
    for _ in expected:
        page.first("#search button").click()
        found.add(page.first("#found").text)
        number = page.run("return document.activeElement.dataset.node")
        assert page.first("#found").text.endswith(f"node {number}")
    assert found == expected
    page.set("#search-text", "no such feature")
    page.first("#search button").click()
    assert page.first("#found").text == "No split found."


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


def test_bars_of_leaves_are_as_long_as_their_values(opened):
    page = opened(XGBRegressorLite(**WORKED).fit(DOSAGE, EFFECT))
    bars = [float(bar.get_attribute("width")) for bar in page.all(".node .rises, .node .falls")]
    assert max(bars) < float(page.first(".node .box").get_attribute("width")) / 2
    assert [bar / max(bars) for bar in bars] == pytest.approx([1, 7 / 10.5, 7.5 / 10.5], abs=1e-6)
