"""What package indexes and scikit-learn's diagrams show: whole addresses, of this version."""

import re
import tarfile
import tomllib
from html import unescape

import hatchling.build
import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from sklearn import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sklboost
from sklboost import XGBClassifierLite
from sklboost.estimators import documentation_link
from tests.conftest import ROOT

ESTIMATORS = [name for name in sklboost.__all__ if name.startswith("XGB")]
VERSION = sklboost.__version__
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# of Markdown, written out below or as HTML
TARGET = re.compile(r"""\]\(([^)\s]+)|^\[[^]]+\]: *(\S+)|(?:src|srcset|href)=["']([^"']+)""", re.M)


def targets(text):
    """Return what the links and pictures of a page in Markdown lead to."""
    without_code = re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))
    return ["".join(groups) for groups in TARGET.findall(without_code)]


@pytest.fixture(scope="module")
def description():
    """README.md as a package index shows it."""
    metadata = ProjectMetadata(str(ROOT), PluginManager())
    assert metadata.core.readme_content_type == "text/markdown"
    return metadata.core.readme


# --- README.md on package indexes ----------------------------------------------------------------


def test_every_link_of_the_description_is_a_whole_address(description):
    links = targets(description)
    assert len(links) >= 30
    assert [link for link in links if not link.startswith(("https://", "#"))] == []


def test_links_of_the_description_lead_to_files_of_this_version(description):
    source = PROJECT["urls"]["Source"]
    raw = source.replace("https://github.com", "https://raw.githubusercontent.com")
    places = (f"{source}/blob/v{VERSION}/", f"{raw}/v{VERSION}/")
    own = [link for link in targets(description) if link.startswith((source, raw))]
    assert len(own) >= 30
    for link in own:
        assert link.startswith(places)
        file = link.removeprefix(places[0]).removeprefix(places[1]).partition("#")[0]
        assert (ROOT / file).exists(), link
        assert link.startswith(places[1]) == file.endswith((".svg", ".png", ".webp")), link


def test_the_description_is_readme_but_for_its_links(description):
    def shown(text):
        return re.sub(r"\]\([^)]*\)", "]", text)

    readme = (ROOT / "README.md").read_text("utf-8")
    assert shown(description) == shown(readme)
    assert re.findall(r"^```.*?^```$", description, flags=re.M | re.S) == re.findall(
        r"^```.*?^```$", readme, flags=re.M | re.S
    )


def test_relative_links_are_seen():
    text = '[a](docs/a.md) ![b](b.svg)\n[c]: c.md\n<img src="d.svg"> `[e](e)`\n'
    assert targets(text) == ["docs/a.md", "b.svg", "c.md", "d.svg"]


def test_a_source_archive_has_what_building_from_it_needs(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    name = hatchling.build.build_sdist(str(tmp_path))
    with tarfile.open(tmp_path / name) as archive:
        files = {file.partition("/")[2] for file in archive.getnames()}
    assert {"README.md", "LICENSE", "pyproject.toml", "sklboost/__init__.py"} <= files


# --- addresses -----------------------------------------------------------------------------------


def test_addresses_agree():
    assert PROJECT["urls"]["Documentation"] == f"{documentation_link.SITE}/stable"
    assert PROJECT["urls"]["Source"].startswith("https://github.com/")
    for name in ("Issues", "Changelog"):
        assert PROJECT["urls"][name].startswith(f"{PROJECT['urls']['Source']}/")
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f'repository-code: "{PROJECT["urls"]["Source"]}"\n' in citation
    assert f'url: "{PROJECT["urls"]["Documentation"]}"\n' in citation
    assert f"version: {VERSION}\n" in citation


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_diagram_of_an_estimator_links_to_its_page(name):
    model = getattr(sklboost, name)(max_depth=3)
    link = f"{documentation_link.SITE}/v{VERSION}/docs/reference/api/sklboost.{name}.html"
    assert model._get_doc_link() == clone(model)._get_doc_link() == link
    diagram = unescape(make_pipeline(StandardScaler(), model)._repr_html_())
    assert f'href="{link}"' in diagram
    assert "scikit-learn.org" in diagram  # the scaler is theirs


def test_the_page_of_an_estimator_is_where_the_link_says():
    """The pages of classes are written to this folder, and named by the names that are listed."""
    page = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")
    assert ".. currentmodule:: sklboost\n" in page
    first = page.partition("## Estimators")[2].partition("## ")[0]
    assert ":toctree: api\n" in first
    assert re.findall(r"^   (XGB\w+)$", first, flags=re.M) == sorted(ESTIMATORS, key=first.index)


def test_a_subclass_of_a_user_has_no_page_of_ours():
    class Own(XGBClassifierLite):
        __module__ = "somewhere.else"

    assert Own()._get_doc_link() == ""
