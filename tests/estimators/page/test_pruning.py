"""Gamma on the page prunes as gamma in training does."""

import pytest
from selenium.webdriver import Keys

from sklboost import XGBRegressorLite
from tests.estimators.page.examples import DOSAGE, EFFECT, WORKED


def drawn(page):
    """Return what is written in the boxes, parents first."""
    return page.texts(".node text")


@pytest.mark.parametrize("gamma", [0.0, 1.0, 3.0, 10.0, 40.0, 1e9])
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
