"""Parameters can be linked to, and are listed in a line each before they are described.

In come the page of parameters (docs/reference/parameters.md), which says of each in a line what it
is, and the pages of classes. On these each parameter gets an anchor, to which its name in the
signature leads; the pages of estimators begin with the lines of their parameters as a table. The
names on the page of parameters lead to the class that has most of them, to regressors for what only
these have, or to the only class.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from sklboost import XGBClassifierLite

PAGE = "docs/reference/parameters"
CLASS_WITH_MOST = "api/sklboost.XGBClassifierLite.html"  # beside that page
OF_REGRESSORS = "api/sklboost.XGBRegressorLite.html"
OF_ONE_CLASS = re.compile(r"`(XGB\w+)` only")  # in the heading of a group
GROUP_OR_ROW = re.compile(
    r"^## (?P<group>.*)$|^\| `(?P<name>\w+)` \| `[^|]*` \| (?P<line>[^|]*) \|$", re.MULTILINE
)


class Line(NamedTuple):
    """What the page says of a parameter."""

    group: str
    text: str


def read_lines(page: Path) -> dict[str, Line]:
    """Return what the page says of each parameter, by its name."""
    lines, group = {}, ""
    for found in GROUP_OR_ROW.finditer(page.read_text("utf-8")):
        group = found["group"] or group
        if found["name"]:
            lines[found["name"]] = Line(group, found["line"].strip())
    return lines


def anchor(name: str) -> str:
    """Return the anchor of a parameter on the page of its class."""
    return f"parameter-{name}"


def link_parameters(app: Sphinx, doctree: nodes.document) -> None:
    """Change a page that lists parameters."""
    lines = read_lines(Path(app.srcdir) / f"{PAGE}.md")
    if app.env.docname == PAGE:
        link_names(doctree, lines)
    for description in doctree.findall(addnodes.desc):
        if description["objtype"] == "class":
            signature, content = description[0], description[-1]
            entries = anchored_entries(content)
            link_signature(signature, entries)
            listed = [name for name in entries if name in lines]
            if len(listed) > 20:  # an estimator
                first = content.first_child_matching_class(nodes.field_list)
                content.insert(first, summary(listed, entries, lines))
            for name in listed:  # the search finds it there
                if app.env.docname.endswith(page_of(name, lines[name]).removesuffix(".html")):
                    app.env.get_domain("std").note_object("parameter", name, anchor(name))


def page_of(name: str, line: Line) -> str:
    """Return the page of a class that has a parameter."""
    of_one = OF_ONE_CLASS.search(line.group)
    if of_one:
        return f"api/sklboost.{of_one[1]}.html"
    return CLASS_WITH_MOST if name in XGBClassifierLite().get_params() else OF_REGRESSORS


def link_names(doctree: nodes.document, lines: dict[str, Line]) -> None:
    """Link the names that rows of tables begin with."""
    for row in list(doctree.findall(nodes.row)):
        names = list(row[0].findall(nodes.literal))
        if names and names[0].astext() in lines:
            name = names[0].astext()
            uri = f"{page_of(name, lines[name])}#{anchor(name)}"
            names[0].replace_self(nodes.reference("", "", names[0].deepcopy(), refuri=uri))


def anchored_entries(content: nodes.Element) -> dict[str, str]:
    """Give the entries of a class's parameters anchors; return their types, by their names."""
    entries = {}
    for field in content.findall(nodes.field):
        in_class = field.parent.parent is content
        if in_class and field[0].astext() == "Parameters":
            for item in field.findall(nodes.definition_list_item):
                name = next(item.findall(nodes.strong)).astext()
                item[0]["ids"].append(anchor(name))
                kinds = list(item.findall(nodes.classifier))
                entries[name] = kinds[0].astext() if kinds else ""
    return entries


def link_signature(signature: nodes.Element, entries: dict[str, str]) -> None:
    """Link the names of parameters in a signature to their entries."""
    for parameter in signature.findall(addnodes.desc_parameter):
        name = next(iter(parameter.findall(addnodes.desc_sig_name)), None)
        if name is not None and name.astext() in entries:
            link = nodes.reference("", "", *name.children, refid=anchor(name.astext()))
            name.children = []
            name += link


def summary(names: list[str], kinds: dict[str, str], lines: dict[str, Line]) -> nodes.table:
    """Return a table of parameters, by their groups: name, default, line."""
    rows: list[nodes.row] = []
    group = ""
    for name in names:
        if lines[name].group != group:
            group = lines[name].group
            title = nodes.entry("", nodes.paragraph("", "", nodes.strong("", group)), morecols=2)
            rows.append(nodes.row("", title, classes=["group"]))
        default = kinds[name].partition("default=")[2] or "None"
        link = nodes.reference("", "", nodes.literal("", name), refid=anchor(name))
        cells = ([link], [nodes.literal("", default)], with_code(lines[name].text))
        rows.append(
            nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells))
        )
    columns = [nodes.colspec(colwidth=width) for width in (25, 20, 55)]
    body = nodes.tgroup("", *columns, nodes.tbody("", *rows), cols=3)
    return nodes.table("", body, classes=["parameters"])


def with_code(text: str) -> list[nodes.Node]:
    """Return the nodes of a text with pieces of code between backticks."""
    pieces = enumerate(text.split("`"))
    return [nodes.literal("", own) if i % 2 else nodes.Text(own) for i, own in pieces if own]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_object_type("parameter", "parameter", objname="parameter of estimators")
    app.connect("doctree-read", link_parameters)
    return {"parallel_read_safe": True}
