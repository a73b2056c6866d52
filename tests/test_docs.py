"""The pages of the documentation: their examples run, their links lead somewhere, none is lost."""

import doctest
import importlib.util
import itertools
import re
import runpy
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import matplotlib.pyplot as plt
import pytest

import sklboost
from sklboost import displays, onnx
from sklboost import shap as front_door
from tests.conftest import ROOT, skip_without_imports

TRACKED = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=True,
)
PAGES = [ROOT / line for line in TRACKED.stdout.splitlines() if (ROOT / line).exists()]
EXTENSIONS = ROOT / "docs" / "extensions"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# a block that prints, and below it what it printed, "..." for lines left out
SHOWN = re.compile(r"^```python\n([^`]*)^```\n\nIt prints\n\n```text\n([^`]*)^```$", re.MULTILINE)
# folders whose pages show what their code draws, and what draws
SHOWING = {"how_to", "guide"}
DRAWS = re.compile(r"\bplot_\w+\(|Display\S*\(|shap\.plots\.|\.to_html\(")
LINK = re.compile(r"\]\(([^)\s]+)\)")
# what the steps of this page make is tested in tests/objectives/test_add_a_loss.py
PARTS_OF_FILES = {"add_a_loss.md"}
INDEX_PAGES = sorted((ROOT / "docs").glob("*/README.md"))


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def text_of(page):
    return page.read_text(encoding="utf-8")


def without_code(text):
    """Leave out blocks and pieces of code, in which brackets are no links."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))


def extension(name):
    """Import a part of the site's build."""
    spec = importlib.util.spec_from_file_location(name, EXTENSIONS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pictures():
    """The part of the site's build that shows what pages draw."""
    return extension("pictures")


# --- examples ------------------------------------------------------------------------------------

WITH_CODE = [
    page for page in PAGES if BLOCK.search(text_of(page)) and page.name not in PARTS_OF_FILES
]
# Of each folder one page is run by "make test", the others by "make test-all".
QUICK = {
    "README.md",
    "docs/README.md",
    "docs/explanation/how_a_tree_grows.md",
    "docs/guide/classes.md",
    "docs/how_to/categories.md",
    "docs/moving/from_lightgbm.md",
    "docs/reference/model_file.md",
}


def run_block(block, variables, page):
    """Run a block with what those before it have left; give how many examples failed."""
    if ">>> " not in block:
        exec(compile(block, name_of(page), "exec"), variables)
        return 0
    test = doctest.DocTestParser().get_doctest(block, {}, name_of(page), str(page), 0)
    test.globs = variables
    return doctest.DocTestRunner().run(test, clear_globs=False).failed


def can_run(block):
    """scikit-learn's callbacks are documented for versions that have them."""
    return "sklearn.callback" not in block or importlib.util.find_spec("sklearn.callback")


def test_a_page_of_each_folder_with_examples_is_quick():
    assert {(ROOT / name).parent for name in QUICK} == {page.parent for page in WITH_CODE}
    assert set(map(name_of, WITH_CODE)) > QUICK


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[] if name_of(page) in QUICK else pytest.mark.slow)
        for page in WITH_CODE
    ],
    ids=name_of,
)
def test_every_python_block_runs_and_prints_what_it_shows(page, pictures, monkeypatch, tmp_path):
    """And has drawn a figure, or written a file, where the site shows one below it."""
    skip_without_imports(text_of(page))
    monkeypatch.chdir(tmp_path)
    variables = {"__name__": "__main__"}
    for part in pictures.PART.finditer(text_of(page)):
        if part["code"] is not None:
            assert not can_run(part["code"]) or run_block(part["code"], variables, page) == 0
        elif part["picture"]:
            assert plt.get_fignums(), part["picture"]
            plt.close("all")
        else:
            assert Path(part["file"]).read_text("utf-8").startswith("<!DOCTYPE html>")
    plt.close("all")


def test_what_a_page_draws_stands_below_its_code(pictures):
    showing = [page for page in WITH_CODE if page.parent.name in SHOWING]
    assert len(showing) >= 15
    for page in showing:
        codes = [part["code"] for part in pictures.PART.finditer(text_of(page))]
        for code, below in itertools.pairwise([*codes, "the end of the page"]):
            if code is not None and DRAWS.search(code):
                assert below is None, (name_of(page), code)


WITHOUT_OPTIONAL_PACKAGES = """\
import sys
class NotInstalled:
    def find_spec(self, name, path, target=None):
        if name in {"matplotlib", "pandas", "tqdm"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NotInstalled())
"""


def test_the_first_block_of_the_readme_needs_no_extra_and_prints_what_stands_below_it():
    text = text_of(ROOT / "README.md")
    block, shown = SHOWN.search(text).groups()
    assert BLOCK.search(text).group(1) == block
    run = subprocess.run(
        [sys.executable, "-X", "utf8", "-W", "error", "-c", WITHOUT_OPTIONAL_PACKAGES + block],
        capture_output=True,
        encoding="utf-8",
        cwd=ROOT,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    assert doctest.OutputChecker().check_output(shown, run.stdout, doctest.ELLIPSIS), run.stdout


def test_no_example_is_outside_of_a_block():
    outside = [name_of(page) for page in PAGES if ">>> " in BLOCK.sub("", text_of(page))]
    assert outside == []


# --- links ---------------------------------------------------------------------------------------


def anchors_of(page):
    """Return what the headings of a page can be linked by, as browsers of repositories make it."""
    text = re.sub(r"^```.*?^```$", "", text_of(page), flags=re.M | re.S)
    headings = re.findall(r"^#+ +(.*)$", text, flags=re.M)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


def leads_nowhere(link, page):
    """Whether a link of a page within the repository has no file, or no such heading."""
    if re.match(r"https?:|mailto:", link):
        return False
    path, _, anchor = unquote(link).partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return True
    return bool(anchor) and target.suffix == ".md" and anchor not in anchors_of(target)


def test_links_lead_somewhere():
    links = [(page, link) for page in PAGES for link in LINK.findall(without_code(text_of(page)))]
    assert len(links) > 500
    assert [(name_of(page), link) for page, link in links if leads_nowhere(link, page)] == []


def test_a_wrong_link_is_seen():
    page = ROOT / "docs" / "README.md"
    assert leads_nowhere("no_such_page.md", page)
    assert leads_nowhere("../README.md#no-such-heading", page)
    assert not leads_nowhere("../README.md#when-not-to-use-it", page)


# --- the site ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def navigation():
    """The part of the site's build that reads the tables of index pages."""
    return extension("navigation")


def test_an_index_page_lists_all_pages_beside_it(navigation):
    """The site's navigation is made from these tables."""
    for index in INDEX_PAGES:
        name = name_of(index).removesuffix(".md")
        listed = [page for _, page in navigation.listed_pages(name, text_of(index))]
        beside = {name_of(path).removesuffix(".md") for path in index.parent.glob("*.md")} - {name}
        assert sorted(listed) == sorted(beside)


def test_the_front_page_lists_the_index_pages_and_no_others(navigation):
    """Its table is what the site has at the top of each page; others are listed in their folder."""
    listed = navigation.listed_pages("docs/README", text_of(ROOT / "docs" / "README.md"))
    pages = [page for _, page in listed]
    assert sorted(page for page in pages if page.startswith("docs/")) == sorted(
        ["docs/tutorials/index", *(name_of(index).removesuffix(".md") for index in INDEX_PAGES)]
    )
    assert len(INDEX_PAGES) >= 4
    assert ("Contributing", "CONTRIBUTING") in listed


def test_pages_of_scripts(navigation):
    assert navigation.page_of("docs/examples/first_model.py") == "docs/tutorials/first_model"
    page = "docs/tutorials/losses/quantile_bands"
    assert navigation.page_of("docs/examples/losses/quantile_bands.py") == page
    assert not navigation.is_tutorial("docs/examples/data/SOURCE.txt")
    assert navigation.page_of("docs/examples/README.txt") == "docs/tutorials/index"
    assert navigation.is_tutorial("docs/examples/README.txt")
    assert navigation.page_of("docs/how_to/stop_early.md") == "docs/how_to/stop_early"
    assert not navigation.is_tutorial("docs/examples/quickstart.py")


def test_copy_buttons_copy_code_without_prompts_and_output():
    """Of a block with prompts the site copies the lines with one, less what matches this."""
    settings = runpy.run_path(str(ROOT / "docs" / "conf.py"))
    assert settings["copybutton_prompt_is_regexp"]
    prompt = re.compile(f"^({settings['copybutton_prompt_text']})(.*)")  # as the button does
    block = ">>> for x in [1]:\n...     print(x)\n...\n1\n\n>>> f'>>> {x}'\n$ make docs\n"
    lines = [found[2] for line in block.splitlines() if (found := prompt.match(line))]
    assert lines == ["for x in [1]:", "    print(x)", "", "f'>>> {x}'", "make docs"]
    assert not settings["copybutton_copy_empty_lines"]  # those between outputs
    assert "copybutton_exclude" not in settings  # the prompts tell code from output


def test_the_reference_lists_all_that_is_public():
    page = text_of(ROOT / "docs" / "reference" / "api.md")
    listed = re.findall(r"^   ([\w.]+)$", page, flags=re.M)
    rooms = {
        "displays": displays.__all__,
        "onnx": onnx.__all__,
        "shap": front_door.__all__,
    }
    public = [f"{room}.{name}" for room, names in rooms.items() for name in names]
    public += sklboost.__all__
    assert sorted(listed) == sorted(public)


def test_a_script_says_what_it_is():
    scripts = list((ROOT / "docs" / "examples").rglob("*.py"))
    assert len(scripts) > 5
    assert [name_of(s) for s in scripts if not re.match(r'"""\n?\w.*', text_of(s))] == []
