"""The page as a text: nothing in it leads out of the file, and data stays data."""

import base64
import hashlib
import json
import re

import pytest

from sklboost.inspection.page import SCRIPTS, as_json, html_document
from tests.conftest import ROOT

FOLDER = ROOT / "sklboost" / "inspection" / "page"
EVIL = ["</script><script>alert(1)</script>", "<!--<script>", "a & b", "\u2028\u2029", "{{script}}"]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_has_no_word_for_is_refused(value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        as_json([value])


def test_the_data_is_in_the_document_once_and_whole():
    document = html_document("title", {"names": EVIL})
    (data,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', document)
    assert json.loads(data) == {"names": EVIL}


def test_titles_stay_text():
    assert "<title>&lt;script&gt;&amp;</title>" in html_document("<script>&", {})


def test_the_policy_allows_this_style_and_this_script_alone():
    document = html_document("title", {})
    (policy,) = re.findall('Content-Security-Policy" content="(.*?)"', document)
    assert policy.startswith("default-src 'none'")
    for kind, pattern in (
        ("style", "<style>(.*?)</style>"),
        ("script", '="module">(.*?)</script>'),
    ):
        (text,) = re.findall(pattern, document, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}';" in policy


def test_every_script_is_part_of_it():
    assert set(SCRIPTS) == {path.name for path in FOLDER.glob("*.js")}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.[!p]*")), ids=lambda path: path.name)
def test_what_the_page_is_made_of(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400
    assert max(map(len, text.splitlines())) <= 120
    # data is put in as text; the one address is the name of SVG
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
    addresses = set(re.findall(r"https?://[^\"' ]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}
