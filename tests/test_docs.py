"""The examples of the documentation give what the pages say."""

import doctest

import pytest

from tests.conftest import ROOT

PAGES = [
    page for page in sorted((ROOT / "docs").rglob("*.md")) if ">>> " in page.read_text("utf-8")
]


def test_there_are_pages_with_examples():
    assert len(PAGES) >= 2


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples(page):
    result = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert result.attempted > 0
    assert result.failed == 0
