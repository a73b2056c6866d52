"""A model's page in a real browser: what it shows, and that a keyboard is enough for it."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from sklboost import XGBClassifierLite, XGBRegressorLite
from tests.browser import Page

EVIL = "</script><img src=x onerror=alert(1)>"
DOSAGE, EFFECT = [[10], [20], [25], [35]], [-10, 7, 8, -7]
WORKED = dict(n_estimators=1, learning_rate=1, reg_lambda=0, base_score=0.5, max_depth=2)


@pytest.fixture
def opened(browser, tmp_path):
    """Give a function that opens the page of an estimator; in the end nothing was wrong."""

    def open_page(estimator, *arguments, **options):
        path = tmp_path / "model.html"
        estimator.to_html(path, *arguments, **options)
        return Page(browser, path)

    yield open_page
    assert [entry["message"] for entry in browser.get_log("browser")] == []


@pytest.fixture(scope="module")
def cancer(binary):
    X, y = binary
    settings = dict(n_estimators=6, max_depth=4, gamma=0.5, keep_pruned=True)
    model = XGBClassifierLite(**settings, eval_metric=["logloss", "error"])
    return model.fit(X[100:], y[100:], X_val=X[:100], y_val=y[:100])


@pytest.fixture(scope="module")
def flowers(multiclass):
    """Give a model of features and classes with names that would be HTML."""
    X, y = multiclass
    frame = pd.DataFrame(X, columns=["sepal length", EVIL, "petal length", "{{script}}"])
    frame["kind"] = pd.Categorical(np.where(np.arange(150) % 3 == 0, "<b>", "a & b")[::-1])
    frame["petals"] = pd.Categorical(np.where(y == 0, "<script>alert(2)</script>", "</script>"))
    names = np.array(["<script>alert(3)</script>", "b", "&lt;"])
    model = XGBClassifierLite(n_estimators=4, max_depth=3).fit(frame, names[y])
    return model, frame, names[y]


def node_texts(page):
    """Unfold every node of every tree and give the text of each derivation."""
    return page.run("""
        const set = (id, value) => {
          document.getElementById(id).value = value;
          document.getElementById(id).dispatchEvent(new Event("change", { bubbles: true }));
        };
        set("gamma", -1e300);
        const panel = document.getElementById("node");
        const textOf = (element) => element.tagName === "TABLE"
          ? [...element.rows].map((row) => [...row.cells].map((c) => c.textContent).join(": "))
          : [element.textContent];
        const texts = [];
        const last = Number(document.getElementById("tree-number").max);
        for (let tree = 0; tree <= last; tree += 1) {
          set("tree-number", tree);
          const nNodes = document.querySelectorAll(".node").length;
          for (let node = 0; node < nNodes; node += 1) {
            panel.hidden = true;
            const box = document.querySelector(`[data-node="${node}"]`);
            box.dispatchEvent(new MouseEvent("click", { bubbles: true }));
            texts.push([...panel.querySelectorAll("h3, h4, p, table")].flatMap(textOf));
          }
        }
        return texts;
    """)


def expected_texts(model):
    """Give the same from Python; symbols with lower letters for `_` are not told apart here."""
    trees = json.loads(model.trees_to_dataframe()["Tree"].value_counts().to_json())
    texts = []
    for tree in range(len(trees)):
        node = 0
        while True:
            try:
                text = str(model.explain_split(tree, node))
            except ValueError:
                break
            texts.append([line.strip() for line in text.splitlines() if line])
            node += 1
    return texts


def plain(texts):
    return [[line.replace("_", "") for line in lines] for lines in texts]


# --- what is in the file ---------------------------------------------------------------------------


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
    assert any("in {'<script>alert(2)</script>'}" in line for line in texts)


# --- trees -----------------------------------------------------------------------------------------


def test_the_worked_example_to_the_number(opened):
    page = opened(XGBRegressorLite(**WORKED).fit(DOSAGE, EFFECT))
    boxes = [box.text.splitlines() for box in page.all(".node")]
    assert boxes == [
        ["f0 < 15", "gain 120.3333, cover 4"],
        ["value -10.5", "cover 1"],
        ["f0 < 30", "gain 140.1667, cover 3"],
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


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_derivations_of_several_outputs(opened, flowers, strategy):
    model, X, y = flowers
    model = XGBClassifierLite(n_estimators=2, max_depth=2, multi_strategy=strategy).fit(X, y)
    assert plain(node_texts(opened(model))) == plain(expected_texts(model))


def test_keys_walk_the_tree(opened, cancer):
    page = opened(cancer)
    page.run("document.querySelector('.node').focus()")

    def press(*keys):
        page.driver.switch_to.active_element.send_keys(*keys)
        return page.run("return Number(document.activeElement.dataset.node)")

    down, up, left, right, enter, page_down, end, home = (
        *("\ue015", "\ue013", "\ue012", "\ue014", "\ue007", "\ue00f", "\ue010", "\ue011"),
    )
    root = cancer.model_.nodes[0]
    assert press(right) == root.left
    assert press(left) == 0
    assert press(left) == 0  # there is nothing above
    assert press(down) == root.left
    assert press(up) == 0
    leaf = press(end)
    assert press(right) == leaf  # nor below
    assert press(home) == 0
    press(enter)
    assert page.first("#node h3").text.startswith("Tree 0, node 0")
    press(right)  # what is unfolded follows
    assert page.first("#node h3").text.startswith(f"Tree 0, node {root.left}:")
    assert press(page_down) == 0
    assert page.first("#tree-status").text.startswith("Tree 1,")
    before = page.first("#drawing").get_attribute("viewBox")
    press("+")
    assert page.first("#drawing").get_attribute("viewBox") != before
    press("0")
    page.run(
        "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}))"
    )
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
    expected = {
        f"Tree {own.Tree}, node {own.Node}" for own in table.itertuples() if own.Feature == name
    }
    page.first("#search-text").send_keys(name + " ")
    found = set()
    for _ in expected:
        page.first("#search button").click()
        found.add(page.first("#found").text)
        number = page.run("return document.activeElement.dataset.node")
        assert page.first("#found").text.endswith(f"node {number}")
    assert {own for own in found if own in expected} == found
    page.set("#search-text", "no such feature")
    page.first("#search button").click()
    assert page.first("#found").text == "No split has that."


def test_the_drawing_zooms_and_moves(opened, cancer):
    page = opened(cancer)

    def box():
        return list(map(float, page.first("#drawing").get_attribute("viewBox").split()))

    whole = box()
    page.first("#zoom-in").click()
    assert box()[2] < whole[2]
    page.first("#zoom-out").click()
    assert box() == pytest.approx(whole)
    action = __import__("selenium.webdriver", fromlist=["ActionChains"]).ActionChains(page.driver)
    action.drag_and_drop_by_offset(page.first(".node"), 60, 40).perform()
    moved = box()
    assert moved[0] < whole[0]
    assert moved[1] < whole[1]
    assert not page.first("#node").is_displayed()  # that was no click
    page.first("#zoom-fit").click()
    assert box() != moved


# --- pruning ---------------------------------------------------------------------------------------


def drawn(page):
    """Give what is in the boxes, root first: gain, cover, condition or value."""
    return [re.sub(r"^Node \d+, pruned split", "", box) for box in page.texts(".node text")]


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
    assert "1 leaves" in page.first("#tree-status").text
    assert page.first(".node text").text == "value -1"


def test_the_slider_goes_from_everything_to_the_root_alone(opened, cancer):
    page = opened(cancer)
    slider = page.first("#gamma-slider")
    page.set("#gamma-slider", 1000, "input")
    assert len(page.all(".node")) == 1
    assert float(page.first("#gamma").get_attribute("value")) > cancer.model_.nodes.gain.max()
    slider.send_keys("\ue011")  # the key Home
    assert float(page.first("#gamma").get_attribute("value")) == 0.0
    n_all = len(page.all(".node"))
    page.first("#reset-gamma").click()
    assert len(page.all(".node")) == cancer.model_.tree_starts[1] < n_all


# --- rows, importances, curves ---------------------------------------------------------------------


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
    assert f"y: {y[5]}." in page.first("#rows [role=status]").text


def test_the_way_of_a_row_is_marked(opened, cancer, binary):
    X, y = binary
    page = opened(cancer, X, y, rows=[0, 40, 200])
    for row, number in enumerate([0, 40, 200]):
        page.set("#row", row)
        last = page.all(".node.on-way")[-1]
        ends = {int(box.get_attribute("data-node")) for box in page.all(".node.on-way")}
        assert cancer.apply(X[[number]])[0, 0] in ends
        assert "value" in last.text
    page.first("#show-way").click()
    assert page.all(".on-way") == []


def test_contributions_to_each_class(opened, flowers):
    model, X, y = flowers
    page = opened(model, X, y)
    assert len(page.texts("#row option")) == 20
    page.set("#row-output", 1)
    table = table_of(page, "#rows")
    assert len(table[0]) == 5  # a raw score alone is no probability
    assert float(table[-1][4]) == pytest.approx(model.decision_function(X[:1])[0, 1], abs=2e-4)
    listed = {row[0]: row[1] for row in table[1:]}
    assert listed.get("petals", "'<script>alert(2)</script>'") == "'<script>alert(2)</script>'"


def test_importances_are_bars_largest_first(opened, cancer, binary):
    page = opened(cancer, *binary)
    values = np.sort(cancer.feature_importances_)[::-1]
    table = table_of(page, "#importances")
    assert len(table) == 20
    np.testing.assert_allclose([float(row[1]) for row in table], values[:20], atol=1e-6)
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
    assert "without validation rows" in page.first("#curves").text
    assert page.first("h1").text == page.driver.title == "<i>"
    page.first(".node").click()
    assert "explain_split(0, 0)" in page.first("#node").text


def test_linear_leaves_have_no_contributions(opened, regression):
    X, y = regression
    model = XGBRegressorLite(n_estimators=3, max_depth=2, linear_tree=True).fit(X, y)
    page = opened(model, X, y)
    assert "no SHAP values of linear leaves" in page.first("#rows").text
    assert "SHAP" not in page.texts("#importance-kind option")


# --- for everybody ---------------------------------------------------------------------------------

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
        page.driver.switch_to.active_element.send_keys("\ue004")
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


# --- errors ----------------------------------------------------------------------------------------


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
