"""What hatchling asks for when it builds the package: its requirements, and its machine code.

With ``SKLBOOST_MACHINE_CODE=1`` in the environment a wheel holds the kernels as machine code of one
platform, and does not require numba. What else is built compiles where it runs, and requires it.
"""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.builders.wheel import WheelBuilder
from hatchling.metadata.plugin.interface import MetadataHookInterface

SWITCH = "SKLBOOST_MACHINE_CODE"
_EXPORT = "export_machine_code"
_PLACE = "sklboost/machine_code"
_LINES_OF_AN_ERROR = 20


class Requirements(MetadataHookInterface):
    """The requirements of a package that compiles: those of pyproject.toml, and the extra jit."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the requirements."""
        compiler = metadata["optional-dependencies"]["jit"]
        metadata["dependencies"] = [*self.config["dependencies"], *compiler]


class MachineCode(BuildHookInterface[Any]):
    """The machine code of a wheel, and what follows from it: platform and requirements."""

    def dependencies(self) -> list[str]:
        """Return what a build needs: to compile all kernels, the package must run."""
        return list(self.metadata.core.dependencies) if self._is_wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the machine code, if it is wanted, and say what the wheel is then."""
        core = self.metadata.core
        if self.target_name == "sdist":
            # PEP 643: what a wheel that is built from the archive requires may be something else.
            core.dynamic.append("dependencies")
            return
        if not self._is_wanted():
            return
        if version == "editable":
            raise ValueError(
                f"{SWITCH}={os.environ[SWITCH]}: an editable installation has no machine code and "
                f"compiles; unset {SWITCH}"
            )
        folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, folder)
        _export(self.root, folder)
        platform = WheelBuilder(self.root).get_best_matching_tag().rpartition("-")[2]
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False
        build_data["force_include"][folder] = _PLACE
        # The list that METADATA is written from. Where a source archive is built, it is not made by
        # the class above but read from PKG-INFO, whatever the switch.
        for requirement in core.optional_dependencies["jit"]:
            core.dependencies.remove(requirement)

    def _is_wanted(self) -> bool:
        return self.target_name == "wheel" and os.environ.get(SWITCH, "") not in ("", "0")


def _export(root: str, folder: str) -> None:
    """Compile all kernels of the source tree into a folder, in a process of its own."""
    # Settings of numba change code; without the last, Python finds the package in the folder root.
    dropped = ("NUMBA_", "SKLBOOST_", "PYTHONSAFEPATH")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    with tempfile.TemporaryDirectory() as cache:
        run = subprocess.run(
            [sys.executable, "-B", "-m", _EXPORT, folder],
            cwd=root,
            env=variables | {"NUMBA_CACHE_DIR": cache, "PYTHONHASHSEED": "0"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    if run.returncode or not os.listdir(folder):
        last = "\n".join(run.stdout.splitlines()[-_LINES_OF_AN_ERROR:])
        raise RuntimeError(
            f"the machine code of the wheel could not be made: python -m {_EXPORT} ended with "
            f"status {run.returncode}. Mend what it says, or build without {SWITCH}.\n{last}"
        )
