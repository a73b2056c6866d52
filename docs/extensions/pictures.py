"""What the code of a page draws stands below it on the site.

In comes Markdown with a comment below a block of Python: ``<!-- picture: The first tree -->``, or
``<!-- page: model.html: The model -->`` for an HTML file that the block has written. The blocks are
run in their order, and what was drawn takes the place of the comment. So no picture is kept that
could differ from what the code draws.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the tests look for these comments too, and have no Sphinx
    from sphinx.application import Sphinx

PART = re.compile(
    r"^```python\n(?P<code>.*?)^```$|^<!-- picture: (?P<picture>.*?) -->$"
    r"|^<!-- page: (?P<file>[\w.]+): (?P<page>.*?) -->$",
    re.MULTILINE | re.DOTALL,
)
FOLDER = Path("docs/_build/pictures")  # below the sources, since pages link to it
DOTS_PER_INCH, PIXELS_PER_INCH = 150, 96


def run(code: str, variables: dict[str, object]) -> None:
    """Run a block of a page, with prompts or without; what should raise an error is left out."""
    if ">>> " not in code:
        exec(compile(code, "page", "exec"), variables)
        return
    for example in doctest.DocTestParser().get_examples(code):
        if example.exc_msg is None and not example.options.get(doctest.SKIP):
            exec(compile(example.source, "page", "single"), variables)


def save_figure(path: Path) -> int:
    """Save the figure drawn last, close all, and return the width in which it is shown."""
    import matplotlib.image
    import matplotlib.pyplot as plt

    if not plt.get_fignums():
        raise ValueError(f"{path.stem}: the block above the comment has drawn nothing")
    path.parent.mkdir(parents=True, exist_ok=True)
    plt.gcf().savefig(path, dpi=DOTS_PER_INCH, bbox_inches="tight")
    plt.close("all")
    return matplotlib.image.imread(path).shape[1] * PIXELS_PER_INCH // DOTS_PER_INCH


def add_pictures(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put pictures and pages in the place of the comments that name them."""
    if all(part["code"] is not None for part in PART.finditer(source[0])):
        return
    import matplotlib

    matplotlib.use("agg")
    variables: dict[str, object] = {"__name__": "__main__"}
    own_name = docname.replace("/", "_")

    def shown(part: re.Match[str]) -> str:
        if part["code"] is not None:
            run(part["code"], variables)
            return part.group()
        name = f"{own_name}_{part.start()}"
        if part["picture"]:
            file = FOLDER / f"{name}.png"
            width = save_figure(Path(app.srcdir) / file)
            options = f":alt: {part['picture']}\n:width: {width}px"
            return f"```{{image}} /{file.as_posix()}\n{options}\n```"
        pages = Path(app.outdir) / "pages"
        pages.mkdir(parents=True, exist_ok=True)
        shutil.copy(part["file"], pages / f"{name}.html")
        address = f"{'../' * docname.count('/')}pages/{name}.html"
        return (
            f'<iframe class="model-page" src="{address}" title="{part["page"]}"></iframe>\n'
            f'<p><a href="{address}">{part["page"]}, in a tab of its own</a></p>'
        )

    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        source[0] = PART.sub(shown, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", add_pictures)
    return {"parallel_read_safe": True}
