"""Check the site that `make docs` has built: titles, links, texts of pictures, parameters.

Run `.ci/check_site.py docs/_build/html`; it lists what is wrong, and fails if there is anything.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

ROOT = Path(__file__).parents[1]
NOT_PAGES = ("_static/", "_downloads/", "pages/")


class Page(HTMLParser):
    """The title, anchors, links and pictures of a page."""

    def __init__(self, path: Path):
        super().__init__()
        self.title, self.n_headings, self.in_title = "", 0, False
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.silent_pictures: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        own = dict(attributes)
        self.anchors |= {name for name in (own.get("id"), own.get("name")) if name}
        self.in_title = tag == "title" and not self.title
        self.n_headings += tag == "h1"
        self.links += [link for link in (own.get("href"), own.get("src")) if link]
        if tag == "img" and "alt" not in own:  # "" where a caption follows
            self.silent_pictures.append(own.get("src") or "")

    def handle_data(self, data: str) -> None:
        self.title += data if self.in_title else ""

    def handle_endtag(self, tag: str) -> None:
        self.in_title = False


def read_pages(site: Path) -> dict[Path, Page]:
    """Return the pages of the site, by their files."""
    files = {file: file.relative_to(site).as_posix() for file in sorted(site.rglob("*.html"))}
    return {file: Page(file) for file, name in files.items() if not name.startswith(NOT_PAGES)}


def faults(site: Path) -> Iterator[str]:
    """Yield what is wrong, a line each."""
    pages = read_pages(site)
    if len(pages) < 50:
        yield f"{site} has {len(pages)} pages"
    same: dict[str, list[str]] = defaultdict(list)
    for file, page in pages.items():
        name = file.relative_to(site).as_posix()
        if name != "index.html":  # the front page once more
            same[page.title].append(name)
        if page.n_headings != 1:
            yield f"{name}: {page.n_headings} headings of the first level"
        yield from (f"{name}: no words for {picture}" for picture in page.silent_pictures)
        for link in page.links:
            if leads_nowhere(link, file, pages):
                yield f"{name}: nothing at {link}"
            if link.endswith("/README.txt"):
                yield f"{name}: {link} is a download where a page is meant"
    for title, names in same.items():
        if len(names) > 1:
            yield f"{title!r} is the title of {', '.join(names)}"
    yield from parameter_faults(site, pages)


def leads_nowhere(link: str, file: Path, pages: dict[Path, Page]) -> bool:
    """Whether a link within the site has no file, or no such anchor."""
    path, anchor = urldefrag(unquote(link))
    if ":" in path.partition("/")[0] or path.startswith("//"):
        return False
    target = (file.parent / path.partition("?")[0]).resolve() if path else file
    if not target.exists():
        return True
    return bool(anchor) and target in pages and anchor not in pages[target].anchors


def parameter_faults(site: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """Yield the parameters that cannot be linked to, or that the page of parameters does not."""
    sys.path.insert(0, str(ROOT))
    import sklboost

    reference = site / "docs" / "reference"
    listed = pages[reference / "parameters.html"].links
    for name in sklboost.__all__:
        if not name.startswith("XGB"):
            continue
        model = getattr(sklboost, name)()
        page = pages.get(reference / "api" / f"sklboost.{name}.html")
        if page is None:
            yield f"{name} has no page"
            continue
        for anchor in (f"parameter-{parameter}" for parameter in model.get_params()):
            if anchor not in page.anchors or page.links.count(f"#{anchor}") != 2:
                yield f"{name}: {anchor} is not in signature, table and description"
            if not any(link.endswith(f"#{anchor}") for link in listed):
                yield f"the page of parameters has no link to {anchor}"


if __name__ == "__main__":
    found = list(faults(Path(sys.argv[1]).resolve()))
    print("\n".join(found) or "The site is as it should be.")
    sys.exit(bool(found))
