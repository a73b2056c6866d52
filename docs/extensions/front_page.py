"""The front page: its tables are cards, and the site opens with it.

In comes Markdown that can be read where the repository is browsed as well: a table whose rows begin
with a link or a picture. Here it gets a class, and the style sheet makes a card of each row. The
page itself lies in a folder, as in the repository; index.html is the same, with other links.
"""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import dirname, join, normpath

from docutils import nodes
from sphinx.application import Sphinx

OWN_LINK = re.compile(
    r'\b(?P<attribute>href|src|action|data-content_root)="(?P<link>(?![a-z]+:|//|#)[^"]+)"'
)


def make_cards(app: Sphinx, doctree: nodes.document) -> None:
    """Give the tables of the front page the class of cards, or of pictures, and room."""
    if app.env.docname == app.config.root_doc:
        app.env.metadata[app.env.docname]["html_theme.sidebar_secondary.remove"] = True
        for table in doctree.findall(nodes.table):
            with_pictures = any(table.findall(nodes.image))
            table["classes"].append("pictures" if with_pictures else "cards")


def name_overview(app: Sphinx, docname: str, source: list[str]) -> None:
    """Give README.md, which has the name of the package as its title, one of its own."""
    if docname == "README":
        source[0] = source[0].replace("# sklboost\n", "# Overview\n", 1)


def write_index(app: Sphinx, error: Exception | None) -> None:
    """Write the front page once more, as index.html."""
    if error is not None or app.builder.name != "html":
        return
    folder = dirname(app.config.root_doc)

    def moved(found: re.Match[str]) -> str:
        link = normpath(join(folder, found["link"]))
        return f'{found["attribute"]}="{"./" if link == "." else link}"'

    page = Path(app.outdir, f"{app.config.root_doc}.html").read_text("utf-8")
    Path(app.outdir, "index.html").write_text(OWN_LINK.sub(moved, page), "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", make_cards)
    app.connect("source-read", name_overview)
    app.connect("build-finished", write_index)
    return {"parallel_read_safe": True}
