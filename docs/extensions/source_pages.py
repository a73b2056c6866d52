"""Links to source files lead to pages of the site that show them.

In comes a link such as ``[growing.py](../../sklboost/tree/core/growing.py)``, which MyST takes for
a download. Out goes a link to a page ``source/sklboost/tree/core/growing.py.html``, made for every
file that is linked, or for a script of the gallery a link to its page.
"""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import relpath
from typing import Any

from docutils import nodes
from navigation import is_tutorial, page_of
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx.addnodes import download_reference
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

SHOWN = {".py", ".toml", ".yml", ""}  # Makefile and LICENSE have none


class LinkSourcePages(SphinxTransform):
    """Turns downloads of source files into links to their pages."""

    default_priority = 100

    def apply(self, **arguments: Any) -> None:
        root = Path(self.app.srcdir)
        folder = Path(self.env.doc2path(self.env.docname)).parent
        for node in list(self.document.findall(download_reference)):
            path = (folder / node["reftarget"]).resolve()
            file = path.relative_to(root).as_posix()
            if path.suffix in SHOWN or is_tutorial(file):
                node.replace_self(self.link(node, file))

    def link(self, node: nodes.Element, file: str) -> nodes.reference:
        """Return the link that takes the place of a download."""
        page = page_of(file) if is_tutorial(file) else f"source/{file}"
        here = PurePosixPath(self.env.docname).parent
        link = nodes.reference("", "", *node.children, refuri=f"{relpath(page, here)}.html")
        if not is_tutorial(file):
            link["source_file"] = file
        return link


def source_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, str], str]]:
    """Yield the name, the content and the template of each page."""
    files = {
        link["source_file"]
        for page in app.env.found_docs
        for link in app.env.get_doctree(page).findall(nodes.reference)
        if "source_file" in link
    }
    for file in sorted(files):
        content = {"title": file, "body": f"<h1>{file}</h1>{highlighted(Path(app.srcdir) / file)}"}
        yield f"source/{file}", content, "page.html"


def highlighted(path: Path) -> str:
    """Return the text of a file as HTML."""
    try:
        lexer = get_lexer_for_filename(path.name)
    except ClassNotFound:
        lexer = get_lexer_for_filename("a.txt")
    return highlight(path.read_text("utf-8"), lexer, HtmlFormatter(linenos="inline"))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(LinkSourcePages)
    app.connect("html-collect-pages", source_pages)
    return {"parallel_read_safe": True}
