"""The wheel with machine code, an environment that has nothing else, and one that compiles."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import ROOT

# The folder of the wheel. These tests are of something built, so they run when it is named:
# make check-wheel.
VARIABLE = "SKLBOOST_WHEEL"
collect_ignore_glob = [] if VARIABLE in os.environ else ["test_*.py"]


class Environment(NamedTuple):
    """An interpreter, and a folder to run it in, which has the kinds of models but no package."""

    python: Path
    folder: Path
    search_path: Path | None = None  # where the package is, unless it is installed

    def run(self, *arguments: str, **variables: str) -> str:
        """Run the interpreter, and return what it prints; a failure is one of the test."""
        run = subprocess.run(
            [self.python, *arguments],
            cwd=self.folder,
            env=self._variables() | variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=580,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout.strip()

    def _variables(self) -> dict[str, str]:
        """Return the variables of this process, without those that change what Python runs."""
        dropped = ("PYTHON", "SKLBOOST_", "NUMBA_DISABLE_JIT")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        return kept | ({"PYTHONPATH": str(self.search_path)} if self.search_path else {})


@pytest.fixture(scope="session")
def wheel() -> Path:
    """The one wheel for a platform in the folder that is named."""
    folder = Path(os.environ[VARIABLE])
    found = sorted(set(folder.glob("*.whl")) - set(folder.glob("*-none-any.whl")))
    assert len(found) == 1, f"{VARIABLE}={folder}: needs one wheel with machine code, has {found}"
    return found[0]


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "tests").mkdir()
    for name in ("__init__.py", "kinds_of_models.py"):
        shutil.copy(ROOT / "tests" / name, folder / "tests" / name)
    return folder


@pytest.fixture(scope="session")
def installed(wheel, folder, tmp_path_factory) -> Environment:
    """An environment with the wheel, and with what pip installs for it."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, with_pip=True, symlinks=os.name != "nt")
    python = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)]
    subprocess.run([python, *install], check=True, timeout=580)
    return Environment(python, folder)


@pytest.fixture(scope="session")
def with_dask(installed, tmp_path_factory) -> Environment:
    """That environment and, in a folder beside it, what the extra dask adds."""
    place = str(tmp_path_factory.mktemp("dask"))
    # sklboost itself is there; compiling the bytes of pandas and Arrow would take longest
    quickly = ["--quiet", "--disable-pip-version-check", "--no-compile"]
    installed.run("-m", "pip", "install", *quickly, "--prefix", place, "sklboost[dask]")
    added = sysconfig.get_path("purelib", "venv", {"base": place})
    return installed._replace(search_path=Path(added))


@pytest.fixture(scope="session")
def compiling(folder) -> Environment:
    """The environment of these tests, with the checkout, whose kernels are compiled."""
    return Environment(Path(sys.executable), folder, ROOT)
