"""The tables of the index pages are the site's navigation.

An index page is a README.md, but for that of the repository. In comes its Markdown, out goes the
same with a hidden table of contents: the pages that its tables link to, in their order. So a page
is listed once, in words that can be read where the repository is browsed as well.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the tests look at these tables too, and have no Sphinx
    from sphinx.application import Sphinx

# the link that a row of a table begins with
LINK_OF_ROW = re.compile(r"^\| *\[([^]]*)\]\(([^)#]+\.(?:md|py|txt))\)", re.MULTILINE)
TUTORIALS = PurePosixPath("docs/tutorials")
SCRIPTS = "docs/examples"
GALLERY = f"{SCRIPTS}/README.txt"


def page_of(path: str) -> str:
    """Return the page of a file of the repository; those of the gallery are made from scripts."""
    own = PurePosixPath(path)
    if path == GALLERY:
        return f"{TUTORIALS}/index"
    if is_tutorial(path):
        return str(TUTORIALS / own.relative_to(SCRIPTS).with_suffix(""))
    return str(own.with_suffix(""))


def is_tutorial(path: str) -> bool:
    """Whether a file of the repository becomes a page of the gallery, its first one included."""
    is_script = path.startswith(f"{SCRIPTS}/") and path.endswith(".py")
    return path == GALLERY or (is_script and "quickstart" not in path)


def listed_pages(index: str, text: str) -> list[tuple[str, str]]:
    """Return the titles and names of the pages that the tables of an index page link to."""
    folder = str(PurePosixPath(index).parent)
    links = LINK_OF_ROW.findall(text)
    return [(title, page_of(normpath(f"{folder}/{link}"))) for title, link in links]


def add_contents(app: Sphinx, docname: str, source: list[str]) -> None:
    """Append the table of contents to an index page."""
    if docname == "README" or not docname.endswith("README"):
        return
    listed = listed_pages(docname, source[0])
    lines = [f"{title} </{page}>" for title, page in listed]
    source[0] += "\n".join(["", "```{toctree}", ":hidden:", "", *lines, "```", ""])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", add_contents)
    return {"parallel_read_safe": True}
