"""Draw the pictures of the front page: `python docs/pictures/draw.py`.

They are kept beside this file, so that pages can be read where the repository is browsed. They are
made with matplotlib, shap and a browser, which draw a little differently from version to version:
a test draws them again and compares what they are, not each pixel (tests/test_pictures.py).
"""

import argparse
import sys
import tempfile
from pathlib import Path

import matplotlib

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import pandas as pd  # noqa: E402
from PIL import Image  # noqa: E402

from sklboost import XGBClassifierLite  # noqa: E402
from sklboost.displays import TreeDisplay  # noqa: E402

COLUMNS = [
    *("age", "workclass", "education", "marital_status", "occupation", "relationship"),
    *("capital_gain", "capital_loss", "hours_per_week"),
]


def read_adult() -> tuple[pd.DataFrame, pd.Series]:
    """Return what the census says of 5,000 people, and who earned more than 50,000 dollars."""
    adult = pd.read_csv(ROOT / "docs" / "examples" / "data" / "adult.csv.gz")
    X = adult[COLUMNS]
    texts = X.select_dtypes(exclude="number").columns
    return X.astype(dict.fromkeys(texts, "category")), adult["income"] == ">50K"


def draw_page(file: Path) -> None:
    """Take a picture of the page of a model, with the calculation of a gain."""
    from selenium.webdriver.support.wait import WebDriverWait

    from tests.browser import start_browser

    X, y = read_adult()
    model = XGBClassifierLite(n_estimators=60, learning_rate=0.1, max_depth=3).fit(X, y)
    driver = start_browser()
    with tempfile.TemporaryDirectory() as folder:
        page, whole = Path(folder) / "page.html", Path(folder) / "whole.png"
        model.to_html(page, X, y, rows=range(20))
        try:
            window = {"width": 1080, "height": 660, "deviceScaleFactor": 1.5, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", window)
            driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
            driver.get(page.as_uri())
            # the page draws its tree when the browser is idle
            WebDriverWait(driver, 60).until(
                lambda d: len(d.find_elements("css selector", "#drawing [role=treeitem]")) > 1
            )
            driver.execute_script(
                "document.querySelectorAll('#drawing [role=treeitem]')[1]"
                ".dispatchEvent(new MouseEvent('click', { bubbles: true }));"
                "document.querySelector('#zoom-fit').click();"
                "[...document.querySelectorAll('#trees :is(h3, h4, h5)')]"
                ".find((heading) => heading.textContent === 'Similarities').scrollIntoView();"
                "document.querySelector('#trees').scrollIntoView();"
            )
            driver.get_screenshot_as_file(str(whole))
            bottom = driver.execute_script(
                "return document.querySelector('#keys').getBoundingClientRect().top;"
            )
        finally:
            driver.quit()
        with Image.open(whole) as image:
            picture = image.crop((0, 0, image.width, int(1.5 * bottom)))
            picture.convert("RGB").save(file, quality=70, method=6)


def draw_tree(file: Path) -> None:
    """Draw a tree with a category split, as `TreeDisplay` does."""
    X, y = read_adult()
    model = XGBClassifierLite(n_estimators=1, max_depth=2).fit(X, y)
    display = TreeDisplay.from_estimator(model, tree=0)
    save(display.figure_, file)


def draw_shap(file: Path) -> None:
    """Draw what each feature adds to predictions, as shap does with our values."""
    import shap

    X, y = read_adult()
    model = XGBClassifierLite(n_estimators=60, learning_rate=0.1, max_depth=4).fit(X, y)
    shap.plots.beeswarm(model.shap_explanation(X), max_display=10, show=False, plot_size=(9, 5))
    save(plt.gcf(), file)


def save(figure: plt.Figure, file: Path) -> None:
    """Write a figure, in colours that suffice for it."""
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "whole.png"
        figure.savefig(whole, dpi=150, bbox_inches="tight", facecolor="white")
        plt.close(figure)
        with Image.open(whole) as image:
            image.convert("RGB").quantize(64).save(file, optimize=True)


PICTURES = {"page.webp": draw_page, "tree.png": draw_tree, "shap.png": draw_shap}


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the pictures of the front page.")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(PICTURES)}; none: all")
    parser.add_argument("--out", type=Path, default=HERE, help="a folder")
    arguments = parser.parse_args()
    for name in arguments.names or PICTURES:
        PICTURES[name](arguments.out / name)


if __name__ == "__main__":
    main()
