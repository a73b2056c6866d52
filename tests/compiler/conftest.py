"""What tests of the compiler share."""

import os
import subprocess

import pytest

from sklboost.engine.compiler import caching
from tests.conftest import ENGINE_ALONE, end_with_children, run_kernels, start_python

# What a process begins with that keeps its kernels in the folder of its script.
OWN_CACHE = """
import os, sys
os.environ["NUMBA_CACHE_DIR"] = sys.path[0] + "/mine"
"""
# Imports numba and the engine, and forks for each folder that it is told, to run its script.py as a
# process would that begins as above.
FORKING = """
import os, runpy, sys, traceback
import numba
import sklboost.engine.compiler.kernels

numba.njit(lambda x: x + 1)(1)  # the first that is compiled makes numba read its own tables
for line in sys.stdin:
    folder = line[:-1]
    child = os.fork()
    if child == 0:
        try:
            output = os.open(folder + "/output", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
            os.dup2(output, 1)
            os.dup2(output, 2)
            sys.path[0] = folder
            os.environ["NUMBA_CACHE_DIR"] = folder + "/mine"
            numba.config.reload_config()
            runpy.run_path(folder + "/script.py")
            sys.stdout.flush()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """Let kernels be kept in an empty folder, not found where an earlier run has left them."""
    folder = tmp_path / "code"
    folder.mkdir()
    monkeypatch.setattr(caching, "_folders", lambda: [folder])
    return folder


def run_alone(text, folder):
    """Run Python text as `run_kernels` does, with a folder of kernels in the script's own."""
    return run_kernels(OWN_CACHE + text, folder)


@pytest.fixture(scope="session")
def run_forked(tmp_path_factory):
    """Return what does the same, in a process that has not to import numba."""
    if not hasattr(os, "fork"):
        yield run_alone
        return
    server = start_python(
        ENGINE_ALONE + FORKING, tmp_path_factory.mktemp("server"), subprocess.PIPE
    )

    def run(text, folder):
        (folder / "script.py").write_text(text, encoding="utf-8")
        server.stdin.write(f"{folder}\n")
        server.stdin.flush()
        status, output = server.stdout.readline(), (folder / "output").read_text()
        assert status == "0\n", output
        return output.strip().splitlines()[-1]

    with server:
        yield run
        end_with_children(server)
