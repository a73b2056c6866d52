"""The page is for everybody: contrast, names, keys, narrow screens, large models."""

import re

import pytest
from selenium.webdriver import Keys

from sklboost import XGBRegressorLite

LEAST_CONTRAST = """
    const light = (color) => {
      const [r, g, b] = color.match(/[\\d.]+/g).map(Number).map((c) => c / 255)
        .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (element) => {
      if (element.closest(".node") !== null) {
        return getComputedStyle(document.querySelector(".node .box")).fill;
      }
      for (let at = element; at !== null; at = at.parentElement) {
        const color = getComputedStyle(at).backgroundColor;
        if (color !== "rgba(0, 0, 0, 0)") return color;
      }
      return "rgb(255, 255, 255)";
    };
    const ratios = [];
    for (const element of document.querySelectorAll("body *:not(script)")) {
      const hasText = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim() !== "");
      if (!hasText || element.closest("title, datalist, [hidden]") !== null) continue;
      const style = getComputedStyle(element);
      const ink = element instanceof SVGElement ? style.fill : style.color;
      const [a, b] = [light(ink), light(behind(element))];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (!element.disabled) ratios.push([ratio, element.outerHTML.slice(0, 80)]);
    }
    return [ratios.length, ...ratios.sort((a, b) => a[0] - b[0])[0]];
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("way", ["system", "switch"])
def test_contrast_in_light_and_dark(opened, cancer, binary, scheme, way):
    page = opened(cancer, *binary)
    other = {"light": "dark", "dark": "light"}[scheme]
    page.media(prefers_color_scheme=scheme if way == "system" else other)
    if way == "switch":
        page.set("#theme", scheme)
    page.first(".node").click()
    background = page.run("return getComputedStyle(document.body).backgroundColor")
    lightness = int(re.findall(r"\d+", background)[0])
    assert (lightness > 200) == (scheme == "light")
    n_texts, least, where = page.run(LEAST_CONTRAST)
    assert n_texts > 100
    assert least >= 4.5, where


def test_every_control_has_a_name_and_can_be_reached_by_tab(opened, cancer, binary):
    page = opened(cancer, *binary)
    nameless = page.run("""
        const named = (e) => e.labels?.length > 0 || e.ariaLabel || e.textContent.trim() !== "";
        return [...document.querySelectorAll("button, input, select")]
          .filter((e) => !named(e)).map((e) => e.outerHTML);
    """)
    assert nameless == []
    wanted = page.run("""
        const shown = (e) => e.checkVisibility() && !e.disabled;
        return [...document.querySelectorAll("a, button, input, select, .node[tabindex='0']")]
          .filter(shown).length;
    """)
    reached = set()
    for _ in range(wanted + 2):
        page.driver.switch_to.active_element.send_keys(Keys.TAB)
        active = page.driver.switch_to.active_element
        outline = active.value_of_css_property("outline-style")
        is_node = "node" in (active.get_attribute("class") or "")
        if active.tag_name != "body":
            assert is_node or outline == "solid", active.get_attribute("outerHTML")[:80]
            reached.add(active.id)
    assert len(reached) >= wanted
    assert page.run("return document.querySelectorAll('.node[tabindex=\"0\"]').length") == 1


def test_nothing_moves_for_whom_motion_is_too_much(opened, cancer):
    page = opened(cancer)
    page.media(prefers_reduced_motion="reduce")
    box = page.first(".node .box")
    assert box.value_of_css_property("transition-duration") == "0s"
    page.media(prefers_reduced_motion="no-preference")
    assert box.value_of_css_property("transition-duration") != "0s"


def test_a_narrow_screen_scrolls_down_only(opened, flowers):
    model, X, y = flowers
    page = opened(model, X, y)
    page.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": False},
    )
    try:
        page.all(".node")[0].click()
        assert page.run("return document.documentElement.scrollWidth") <= 360
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_thousand_trees(opened, regression):
    X, y = regression
    model = XGBRegressorLite(n_estimators=1000, max_depth=2, learning_rate=0.05).fit(X, y)
    page = opened(model)
    ready = page.run("""
        const [entry] = performance.getEntriesByType("navigation");
        return entry.domComplete;
    """)
    assert ready < 10_000
    assert len(page.all(".node")) <= 7
    page.set("#tree-number", 999)
    page.all(".node")[-1].click()
    assert page.first("#node h3").text.startswith("Tree 999, node ")
