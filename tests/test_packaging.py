"""What is packed, what package indexes and scikit-learn's diagrams show: whole addresses."""

import json
import re
import shutil
import tarfile
import tomllib
import zipfile
from email import message_from_bytes

import hatchling.build
import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sklboost
from tests.conftest import ROOT

ESTIMATORS = [name for name in sklboost.__all__ if name.startswith("XGB")]
VERSION = sklboost.__version__
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = CONFIG["project"]
REQUIREMENTS = CONFIG["tool"]["hatch"]["metadata"]["hooks"]["custom"]["dependencies"]
COMPILER = PROJECT["optional-dependencies"]["jit"]
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
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    # of files of this version
    source = PROJECT["urls"]["Source"]
    raw = source.replace("https://github.com", "https://raw.githubusercontent.com")
    places = (f"{source}/blob/v{VERSION}/", f"{raw}/v{VERSION}/")
    own = [link for link in links if link.startswith((source, raw))]
    assert len(own) >= 30
    for link in own:
        assert link.startswith(places)
        file = link.removeprefix(places[0]).removeprefix(places[1]).partition("#")[0]
        assert (ROOT / file).exists(), link
        assert link.startswith(places[1]) == file.endswith((".svg", ".png", ".webp")), link
    relative = '[a](docs/a.md) ![b](b.svg)\n[c]: c.md\n<img src="d.svg"> `[e](e)`\n'
    assert targets(relative) == ["docs/a.md", "b.svg", "c.md", "d.svg"]  # which would be seen


def test_the_description_is_readme_but_for_its_links(description):
    def shown(text):
        return re.sub(r"\]\([^)]*\)", "]", text)

    readme = (ROOT / "README.md").read_text("utf-8")
    assert shown(description) == shown(readme)
    assert re.findall(r"^```.*?^```$", description, flags=re.M | re.S) == re.findall(
        r"^```.*?^```$", readme, flags=re.M | re.S
    )


def test_a_source_archive_has_what_building_from_it_needs(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    name = hatchling.build.build_sdist(str(tmp_path))
    with tarfile.open(tmp_path / name) as archive:
        files = {file.partition("/")[2] for file in archive.getnames()}
    needed = {"README.md", "LICENSE", "pyproject.toml", "sklboost/__init__.py"}
    assert needed | {"hatch_build.py", "export_machine_code.py"} <= files


# --- requirements and machine code ---------------------------------------------------------------


@pytest.fixture
def small_package(tmp_path, monkeypatch):
    """A package of this name that is built as ours is, and "compiles" in a moment."""
    root = tmp_path / "source"
    (root / "sklboost").mkdir(parents=True)
    for file in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "sklboost/version.py"):
        shutil.copy(ROOT / file, root / file)
    (root / "sklboost" / "__init__.py").touch()
    _export(root, "pathlib.Path(sys.argv[1], 'index.json').write_text('{}')")
    monkeypatch.chdir(root)
    monkeypatch.delenv("SKLBOOST_MACHINE_CODE", raising=False)
    return root


def _export(root, *lines):
    text = "\n".join(["import json, os, pathlib, sys", *lines, ""])
    (root / "export_machine_code.py").write_text(text, encoding="utf-8")


def _build(kind, machine_code, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("SKLBOOST_MACHINE_CODE", str(int(machine_code)))
        return getattr(hatchling.build, f"build_{kind}")("dist")


def _requirements(metadata):
    requirements = message_from_bytes(metadata).get_all("Requires-Dist")
    return sorted(text for text in requirements if "extra ==" not in text)


def test_a_checkout_requires_the_compiler():
    """Editable installations have this metadata, and wheels and archives unless they change it."""
    core = ProjectMetadata(str(ROOT), PluginManager()).core
    assert core.dependencies == sorted(REQUIREMENTS + COMPILER)
    assert core.optional_dependencies["jit"] == sorted(COMPILER)
    assert [re.match(r"\w+", text)[0] for text in COMPILER] == ["llvmlite", "numba"]


def test_a_wheel_without_machine_code_is_pure_python_and_requires_the_compiler(
    small_package, monkeypatch
):
    name = _build("wheel", False, monkeypatch)
    assert name == f"sklboost-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(small_package / "dist" / name) as wheel:
        metadata = wheel.read(f"sklboost-{VERSION}.dist-info/METADATA")
        assert not any("machine_code" in file for file in wheel.namelist())
    assert _requirements(metadata) == sorted(REQUIREMENTS + COMPILER)
    for value in ("", "0"):
        monkeypatch.setenv("SKLBOOST_MACHINE_CODE", value)
        assert hatchling.build.get_requires_for_build_wheel() == []


def test_a_wheel_with_machine_code_is_for_a_platform_and_requires_no_compiler(
    small_package, monkeypatch
):
    name = _build("wheel", True, monkeypatch)
    assert re.fullmatch(rf"sklboost-{re.escape(VERSION)}-py3-none-(?!any)\w+\.whl", name)
    with zipfile.ZipFile(small_package / "dist" / name) as wheel:
        metadata, kind = (
            wheel.read(f"sklboost-{VERSION}.dist-info/{file}") for file in ("METADATA", "WHEEL")
        )
        assert "sklboost/machine_code/index.json" in wheel.namelist()
    assert _requirements(metadata) == sorted(REQUIREMENTS)
    assert message_from_bytes(metadata).get_all("Provides-Extra").count("jit") == 1
    assert message_from_bytes(kind)["Root-Is-Purelib"] == "false"
    monkeypatch.setenv("SKLBOOST_MACHINE_CODE", "1")
    assert hatchling.build.get_requires_for_build_wheel() == sorted(REQUIREMENTS + COMPILER)
    first = (small_package / "dist" / name).read_bytes()
    assert _build("wheel", True, monkeypatch) == name
    assert (small_package / "dist" / name).read_bytes() == first
    with pytest.raises(ValueError, match="SKLBOOST_MACHINE_CODE=1: an editable"):
        _build("editable", True, monkeypatch)


def test_a_source_archive_gives_the_same_wheels(small_package, monkeypatch, tmp_path):
    archive = _build("sdist", True, monkeypatch)
    with tarfile.open(small_package / "dist" / archive) as packed:
        packed.extractall(tmp_path, filter="data")
    unpacked = tmp_path / archive.removesuffix(".tar.gz")
    metadata = (unpacked / "PKG-INFO").read_bytes()
    assert _requirements(metadata) == sorted(REQUIREMENTS + COMPILER)
    assert message_from_bytes(metadata).get_all("Dynamic") == ["Requires-Dist"]
    for machine_code in (False, True):
        name = _build("wheel", machine_code, monkeypatch)
        monkeypatch.chdir(unpacked)
        assert _build("wheel", machine_code, monkeypatch) == name
        monkeypatch.chdir(small_package)
        wheels = [root / "dist" / name for root in (small_package, unpacked)]
        contents = [_contents(wheel) for wheel in wheels]
        assert contents[0] == contents[1]


def _contents(path):
    """Return the files of a wheel; descriptions and the digests of RECORD are left out."""
    with zipfile.ZipFile(path) as wheel:
        files = {name: wheel.read(name) for name in wheel.namelist()}
    metadata = files.pop(f"sklboost-{VERSION}.dist-info/METADATA")
    del files[f"sklboost-{VERSION}.dist-info/RECORD"]
    return files, _requirements(metadata)


def test_settings_of_the_user_do_not_reach_the_machine_code(small_package, monkeypatch):
    _export(
        small_package,
        "names = ['NUMBA_CACHE_DIR', 'NUMBA_DISABLE_JIT', 'SKLBOOST_BACKEND', 'PYTHONHASHSEED']",
        "cache, *others = map(os.environ.get, names)",
        "text = json.dumps([os.listdir(cache), *others])",
        "pathlib.Path(sys.argv[1], 'index.json').write_text(text)",
    )
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.setenv("SKLBOOST_BACKEND", "interpreter")
    name = _build("wheel", True, monkeypatch)
    with zipfile.ZipFile(small_package / "dist" / name) as wheel:
        seen = json.loads(wheel.read("sklboost/machine_code/index.json"))
    assert seen == [[], None, None, "0"]


@pytest.mark.parametrize("end", ["sys.exit(3)", ""], ids=["error", "nothing written"])
def test_machine_code_that_cannot_be_made_is_one_error(small_package, monkeypatch, end):
    _export(small_package, "print('first', *range(100), sep='\\n')", "print('no linker')", end)
    message = (
        r"status [30]\. Mend what it says, or build without SKLBOOST_MACHINE_CODE(?s:.)*99\nno"
    )
    with pytest.raises(RuntimeError, match=message) as error:
        _build("wheel", True, monkeypatch)
    assert str(error.value).endswith("\n99\nno linker")


# --- addresses -----------------------------------------------------------------------------------


def test_addresses_agree():
    assert PROJECT["urls"]["Source"].startswith("https://github.com/")
    for name in ("Issues", "Changelog"):
        assert PROJECT["urls"][name].startswith(f"{PROJECT['urls']['Source']}/")
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f'repository-code: "{PROJECT["urls"]["Source"]}"\n' in citation
    assert f'url: "{PROJECT["urls"]["Documentation"]}"\n' in citation
    assert f"version: {VERSION}\n" in citation


def test_the_diagram_of_an_estimator_links_to_no_site_that_is_not_there():
    """It would: scikit-learn asks an estimator for the address of its page."""
    diagram = make_pipeline(StandardScaler(), sklboost.XGBRegressorLite())._repr_html_()
    assert PROJECT["urls"]["Documentation"].partition("/en")[0] not in diagram
    assert "scikit-learn.org" in diagram  # the scaler is theirs
    assert not re.search(r'href="[^"]*(XGB|sklboost)', diagram)
