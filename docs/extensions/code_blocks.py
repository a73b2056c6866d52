"""Blocks of code end with their last line: doctests want an empty one, readers do not."""

from docutils import nodes
from sphinx.application import Sphinx


def strip_blocks(app: Sphinx, doctree: nodes.document) -> None:
    """Remove empty lines at the end of blocks of code."""
    for block in doctree.findall(nodes.literal_block):
        if len(block) == 1 and isinstance(block[0], nodes.Text):
            block.rawsource = block.astext().rstrip("\n")
            block[:] = [nodes.Text(block.rawsource)]


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", strip_blocks)
    return {"parallel_read_safe": True}
