"""Tables of the front page are cards on the site, and pages have one title each.

In comes Markdown that can be read where the repository is browsed as well: a table whose rows begin
with a link or a picture. Here it gets a class, and the style sheet makes a card of each row.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx


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


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", make_cards)
    app.connect("source-read", name_overview)
    return {"parallel_read_safe": True}
