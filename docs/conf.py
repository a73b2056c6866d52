"""How Sphinx makes the site: `make docs`, then open docs/_build/html/index.html.

The source folder is the root of the repository, so that links between Markdown pages are the same
in the site and where the repository is browsed.
"""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs" / "extensions")]

import sklboost  # noqa: E402  # the one that the path now leads to

ADDRESSES = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]

project = "sklboost"
author = "the sklboost developers"
version = release = sklboost.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "code_blocks",
    "front_page",
    "navigation",
    "own_members",
    "parameters",
    "pictures",
    "source_pages",
]

# --- pages ---------------------------------------------------------------------------------------

root_doc = "docs/README"
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
include_patterns = [
    "docs/**.md",
    "docs/reference/api/*.rst",
    "docs/tutorials/**.rst",
    "benchmarks/**.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
]
exclude_patterns = [".*", "**/.*", "**/_build", "**/__pycache__", "build", "dist"]
myst_heading_anchors = 4
smartquotes = False  # types of parameters are code: {"gbtree", "dart"}
myst_enable_extensions = ["tasklist"]
suppress_warnings = ["config.cache"]  # a gallery has functions among its settings
nitpicky = True
nitpick_ignore = [("py:class", "sklboost.engine.model.Model")]  # a group of arrays, not for users
# Their own sites have these; fetching their lists would need the network.
nitpick_ignore_regex = [("py:.*", r"(matplotlib|numpy|pandas|shap|sklearn)\..*")]

# --- docstrings ----------------------------------------------------------------------------------

templates_path = [str(ROOT / "docs" / "theme" / "templates")]
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections say it in words
autodoc_member_order = "groupwise"
toc_object_entries_show_parents = "hide"  # "On this page" has fit(), not XGBClassifierLite.fit()
numpydoc_show_class_members = False  # the template lists them

# --- tutorials -----------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": ["docs/examples"],
    "gallery_dirs": ["docs/tutorials"],
    "filename_pattern": "",  # every script is run
    "ignore_pattern": "quickstart",  # a program for the command line, which `make docs` runs apart
    "within_subsection_order": "FileNameSortKey",
    "subsection_order": [
        f"docs/examples/{topic}"
        for topic in ("data_and_constraints", "losses", "training", "understanding")
    ],
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
}

# --- examples in pages ---------------------------------------------------------------------------

# Copied are the lines of code, without prompts and without what they print; blocks that only show
# what is printed have no button.
copybutton_prompt_text = r">>> |\.\.\.(?: |$)|\$ "
copybutton_prompt_is_regexp = True
copybutton_copy_empty_lines = False
copybutton_selector = "div:not(.highlight-text, .highlight-none) > div.highlight > pre"

# --- what it looks like --------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "sklboost"
html_baseurl = f"{ADDRESSES['Documentation']}/"
html_static_path = ["theme/static"]
html_css_files = ["site.css"]
html_logo = html_favicon = "theme/static/mark.svg"
html_sidebars = {page: [] for page in ("README", "CONTRIBUTING", "CHANGELOG")}  # none below them
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "sklboost"},
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "show_toc_level": 2,
    "icon_links": [{"name": "Source", "url": ADDRESSES["Source"], "icon": "fa-brands fa-github"}],
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "secondary_sidebar_items": ["page-toc"],
}
copyright = "the sklboost developers, BSD-3-Clause licence"
