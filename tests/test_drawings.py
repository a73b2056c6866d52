"""The drawings that the documentation shows are what their scripts draw now."""

import xml.etree.ElementTree as ElementTree

import pytest

from tests.conftest import ROOT, draw_again

FOLDER = ROOT / "docs" / "drawings"
KEPT = sorted(FOLDER.glob("*.svg"))


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Draw everything again, into another folder."""
    return draw_again(FOLDER, tmp_path_factory.mktemp("drawings"))


def test_all_are_kept(drawn):
    assert [path.name for path in KEPT] == sorted(path.name for path in drawn.iterdir())


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.stem)
def test_the_drawing_is_up_to_date(kept, drawn):
    remedy = f"draw it again and look at it: python docs/drawings/draw.py {kept.stem}"
    assert (drawn / kept.name).read_text("utf-8") == kept.read_text("utf-8"), remedy


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.stem)
def test_the_drawing_says_what_it_shows_and_a_page_shows_it(kept):
    title = ElementTree.parse(kept).getroot().find("{http://www.w3.org/2000/svg}title")
    assert title is not None
    assert title.text
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert any(f"drawings/{kept.name})" in page.read_text("utf-8") for page in pages)
