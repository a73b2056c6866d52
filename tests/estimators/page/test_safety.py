"""A page asks for nothing, runs its own scripts only, and shows names as text."""

import json

from tests.browser import Page
from tests.estimators.page.examples import EVIL, node_texts


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
