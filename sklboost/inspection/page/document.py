"""One HTML document that needs no other file and no network.

The style and the scripts beside this file are put into ``page.html`` as they are. What the page
shows is JSON, which the scripts read; they put it on the page as text and never as HTML.
"""

import base64
import hashlib
import html
import json
import re
from importlib.resources import files
from typing import Any

# In the order in which they build on one another.
SCRIPTS = (
    *("numbers.js", "elements.js", "trees.js", "layout.js", "derivations.js", "drawing.js"),
    *("view.js", "node_panel.js", "tree_section.js", "curves.js", "importances.js"),
    *("rows.js", "start.js"),
)
# What could end the element of the data, or begin another; and what ends lines in JavaScript.
_ESCAPED = "<>&\u2028\u2029"


def html_document(title: str, data: dict[str, Any]) -> str:
    """Return the text of the document.

    Parameters
    ----------
    title : str
    data : dict
        Numbers in it are finite.
    """
    style = _text_of("page.css")
    script = "\n".join(map(_text_of, SCRIPTS))
    parts = {
        "title": html.escape(title),
        "policy": f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'",
        "style": style,
        "data": as_json(data),
        "script": script,
    }
    # all at once: what is put in may itself contain such marks
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: parts[mark[1]], _text_of("page.html"))


def as_json(data: Any) -> str:
    """Return JSON that may stand inside a script element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in _ESCAPED:
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _text_of(name: str) -> str:
    return files("sklboost.inspection.page").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return what stands for a text in a Content-Security-Policy, which then allows it alone."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
