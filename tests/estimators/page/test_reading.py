"""The page is for everybody: sizes of texts, contrast, names, keys, narrow screens, large trees."""

import re

import numpy as np
import pandas as pd
import pytest
from selenium.webdriver import Keys

from sklboost import XGBRegressorLite
from tests.estimators.page.examples import DOSAGE, EFFECT, WORKED

pytestmark = pytest.mark.slow  # tests/estimators/page/test_page.py opens one page in every run

SIZES = {"laptop": (1366, 768), "wide": (1920, 1080), "phone": (390, 844)}

ON_SCREEN = """
    const seen = document.documentElement.clientHeight;
    return [...document.querySelectorAll(arguments[0])].map((element) => {
      const { left, right, top, bottom } = element.getBoundingClientRect();
      return { left, right, top, bottom, seen };
    });
"""
# heights of letters on the screen, in pixels, whatever the drawing is scaled by
FONT_SIZES = """
    return [...document.querySelectorAll("#drawing text")].map((text) => {
      const scale = text.getScreenCTM().a;
      return scale * parseFloat(getComputedStyle(text).fontSize);
    });
"""
OUTSIDE = """
    return [...document.querySelectorAll(".node")].flatMap((node) => {
      const box = node.querySelector(".box").getBoundingClientRect();
      return [...node.querySelectorAll("text:not(.more)")].filter((text) => {
        const own = text.getBoundingClientRect();
        return own.left < box.left || own.right > box.right || own.bottom > box.bottom;
      }).map((text) => text.textContent);
    });
"""


@pytest.fixture
def sized(opened):
    """Return a function that opens a page in a window of a size."""
    pages = []

    def open_page(size, *arguments, **options):
        page = opened(*arguments, **options)
        width, height = SIZES[size]
        settings = dict(width=width, height=height, deviceScaleFactor=1, mobile=False)
        page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", settings)
        page.driver.refresh()
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.fixture(scope="module")
def deep():
    """Return a model with trees of many leaves, features with long names, and rows of it."""
    random = np.random.default_rng(0)
    names = [f"the {i}th measurement of the apparatus in the cellar" for i in range(4)]
    X = pd.DataFrame(random.normal(size=(2000, 4)), columns=names)
    X["place"] = pd.Categorical(random.choice(["Copenhagen", "Amsterdam", "Ulaanbaatar"], 2000))
    y = np.sin(3 * X[names[0]]) * X[names[1]] + (X["place"] == "Amsterdam") * X[names[2]]
    return XGBRegressorLite(n_estimators=3, max_depth=6).fit(X, y * 1e-7), X


@pytest.mark.parametrize("size", SIZES)
def test_calculations_open_in_view_of_the_node(sized, deep, size):
    model, X = deep
    page = sized(size, model, X[:3])
    page.first("[data-node='1']").click()
    (panel,), (box,) = page.run(ON_SCREEN, "#node"), page.run(ON_SCREEN, "[data-node='1'] .box")
    (drawing,) = page.run(ON_SCREEN, "#drawing")
    for own in (panel, box):
        assert 0 <= own["left"] < own["right"] <= SIZES[size][0]
        assert 0 <= own["top"] < own["bottom"] <= own["seen"]
    assert box["right"] <= drawing["right"]
    if size == "phone":  # in the lower half
        assert box["bottom"] < panel["top"]
        assert panel["bottom"] == panel["seen"]
    else:  # beside the tree
        assert drawing["right"] < panel["left"]
        assert abs(drawing["top"] - panel["top"]) < 2
    assert page.run("return document.documentElement.scrollWidth") <= SIZES[size][0]
    # the button is in view wherever the panel is scrolled to
    page.run("document.querySelector('#node').scrollTop = 1e6")
    (button,) = page.run(ON_SCREEN, "#node button")
    assert panel["top"] <= button["top"] < button["bottom"] <= panel["bottom"]
    page.first("#node button").click()
    assert not page.first("#node").is_displayed()
    assert page.run("return document.activeElement.dataset.node") == "1"


@pytest.mark.parametrize("size", SIZES)
def test_texts_can_be_read_as_a_tree_opens(sized, deep, size):
    model, X = deep
    page = sized(size, model, X[:3])
    for _ in range(2):
        assert min(page.run(FONT_SIZES)) >= 12
        (root,), (drawing,) = (
            page.run(ON_SCREEN, "[data-node='0'] .box"),
            page.run(ON_SCREEN, "#drawing"),
        )
        assert drawing["left"] <= root["left"] < root["right"] <= drawing["right"]
        assert drawing["top"] <= root["top"] < root["bottom"] <= drawing["bottom"]
        page.first("#next-tree").click()


def test_on_a_laptop_the_tree_is_in_the_first_window(sized, deep):
    (drawing,) = sized("laptop", *deep).run(ON_SCREEN, "#drawing")
    assert drawing["top"] < 300
    assert drawing["bottom"] <= drawing["seen"]


def test_gain_and_cover_have_four_digits_and_stay_inside(sized, deep):
    page = sized("laptop", *deep)
    page.first("#all-levels").click()
    texts = page.texts(".node .numbers")
    numbers = [number for text in texts for number in re.findall(r"[\d.]+(?:e[-+]\d+)?", text)]
    digits = [number.partition("e")[0].replace(".", "").strip("0") for number in numbers]
    assert len(numbers) > 60
    assert max(map(len, digits)) == 4
    assert any("e-" in number for number in numbers)  # the longest
    assert page.run(OUTSIDE) == []
    # all digits are in the tooltip, and what a screen reader says
    gain = deep[0].explain_split(0).text.split("gain of the split")[1].split(" = ")[3].split()[0]
    for text in (
        page.first(".node title").get_attribute("textContent"),
        page.first(".node").accessible_name,
    ):
        assert f"gain {gain}" in text


def test_large_trees_open_near_the_root_and_on_request_further(sized, deep):
    model, X = deep
    page = sized("laptop", model, X[:3])
    page.first("#show-path").click()
    frame = model.trees_to_dataframe()
    n_nodes = int((frame["Tree"] == 0).sum())
    levels = {
        int(level)
        for level in page.run(
            "return [...document.querySelectorAll('.node')].map((node) => node.ariaLevel)"
        )
    }
    assert levels == {1, 2, 3, 4}
    n_first = len(page.all(".node"))
    closed = page.all(".node[aria-expanded='false']")
    hidden = sum(int(text.split()[1]) for text in page.texts(".node .more"))
    assert len(closed) == len(page.all(".node .more")) > 3
    n_open_leaves = n_first - len(page.all(".node[aria-expanded]"))
    assert hidden + n_open_leaves == (n_nodes + 1) // 2
    # by mouse
    page.run(
        "document.querySelector('.more').dispatchEvent(new MouseEvent('click', { bubbles: true }))"
    )
    assert len(page.all(".node")) == n_first + 2
    assert not page.first("#node").is_displayed()
    # by keys: the first opens, the second goes there
    number = page.first(".node[aria-expanded='false']").get_attribute("data-node")
    page.run("document.querySelector('.node[tabindex=\"0\"]').focus()")
    for _ in range(200):
        if page.run("return document.activeElement.dataset.node") == number:
            break
        page.driver.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    page.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert page.run("return document.activeElement.dataset.node") == number
    assert len(page.all(".node")) == n_first + 4
    page.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    child = int(page.run("return document.activeElement.dataset.node"))
    assert child == model.model_.nodes[int(number)].left
    page.first("#all-levels").click()
    assert len(page.all(".node")) == n_nodes
    page.first("#all-levels").click()
    assert len(page.all(".node")) == n_first


def test_categories_are_drawn_without_quotes(sized, deep):
    page = sized("laptop", *deep)
    page.first("#all-levels").click()
    texts = [text for text in page.texts(".node text") if text.startswith("place in")]
    assert "place in {Amsterdam}" in texts
    assert "'" not in "".join(texts)
    assert any("place in {'Amsterdam'}" in text for text in page.texts(".node title"))


def test_splits_are_found_drawn_or_not(sized, deep):
    page = sized("laptop", deep[0])
    table = deep[0].trees_to_dataframe().query("Feature == 'place'")
    expected = [f"Tree {t}, node {n}" for t, n in zip(table["Tree"], table["Node"], strict=True)]
    assert len(expected) > 5
    page.first("#search-text").send_keys("place")
    found = []
    for _ in expected:
        page.first("#search button").click()
        found.append(page.first("#found").text)
        number = page.run("return document.activeElement.dataset.node")
        assert found[-1].endswith(f"node {number}")
    assert sorted(found) == sorted(expected)
    page.set("#search-text", "no such feature")
    page.first("#search button").click()
    assert page.first("#found").text == "No split found."


def test_small_trees_are_drawn_whole(sized):
    page = sized("laptop", XGBRegressorLite(**WORKED).fit(DOSAGE, EFFECT))
    assert len(page.all(".node")) == 5
    assert not page.first("#all-levels").is_displayed()
    page.first("[data-node='2']").click()
    (drawing,) = page.run(ON_SCREEN, "#drawing")
    for box in page.run(ON_SCREEN, ".node .box"):  # still, with the panel beside it
        assert drawing["left"] <= box["left"] < box["right"] <= drawing["right"]


# --- access

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


@pytest.mark.parametrize(("scheme", "way"), [("light", "switch"), ("dark", "system")])
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
