"""Look at every page of the built site in a browser: nothing is cut, on a laptop or a telephone.

Run `.ci/check_layout.py docs/_build/html`; it lists what is wrong, and fails if there is anything.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.browser import start_browser  # noqa: E402

NOT_PAGES = ("_static/", "_downloads/", "pages/", "source/")
# Tables fit on a laptop; on a telephone they may be scrolled, but the page may not.
CUT = {
    1366: """
        const wide = (element) => element.scrollWidth > element.clientWidth + 1;
        const tables = [...document.querySelectorAll(".pst-scrollable-table-container")];
        const contents = [...document.querySelectorAll(".bd-sidebar-secondary .nav-link")];
        const edge = document.documentElement.clientWidth;
        return [
          ...tables.filter(wide).map((table) => "table " + table.innerText.slice(0, 60)),
          ...contents.filter((link) => link.getBoundingClientRect().right > edge || wide(link)
            || /^[A-Z]\\w*\\.\\w+\\(/.test(link.innerText))
            .map((link) => "in the contents " + link.innerText),
        ];""",
    390: """
        const page = document.documentElement;
        return page.scrollWidth > page.clientWidth ? ["page of " + page.scrollWidth] : [];""",
}


def faults(site: Path) -> Iterator[str]:
    """Yield what is cut, a line each."""
    names = [file.relative_to(site).as_posix() for file in sorted(site.rglob("*.html"))]
    driver = start_browser()
    try:
        for width, script in CUT.items():
            screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
            for name in names:
                if not name.startswith(NOT_PAGES):
                    driver.get((site / name).as_uri())
                    cut = driver.execute_script(script)
                    yield from (f"{name}, {width} pixels: {own!r} is cut" for own in cut)
    finally:
        driver.quit()


if __name__ == "__main__":
    found = list(faults(Path(sys.argv[1]).resolve()))
    print("\n".join(found) or "Nothing is cut.")
    sys.exit(bool(found))
