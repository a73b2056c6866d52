"""What all tests share: settings of libraries, data, scripts as processes of their own."""

import os
import signal
import subprocess
import sys
import traceback
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]
# Tests that call a kernel of their own, or one that only kernels call, are skipped where there is
# no compiler: 2,141 when this was written. Many more: the machine code has lost a kernel.
MOST_SKIPS = 2_200
REASON = "calls a kernel itself"

# Read when scipy is imported. Without it scikit-learn skips its checks of array API input.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# Read when matplotlib is imported: pictures need no window.
os.environ["MPLBACKEND"] = "Agg"
# Read when scikit-learn, XGBoost and LightGBM are imported. Their threads wait for one another at
# full speed otherwise, on processors that other tests could use: LightGBM takes twice the time.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Read when dask is imported. Workers look every 10 ms at what their threads do otherwise.
os.environ.setdefault("DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED", "False")
# Each process of a cluster looks every 20 ms whether its event loop runs, and every 500 ms at its
# memory, processor and network: two workers that have nothing to do take a ninth of a processor.
os.environ.setdefault("DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL", "1s")
os.environ.setdefault("DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL", "10s")
# A shell starts what runs in the background with Ctrl-C ignored, as do all its children: tests of
# Ctrl-C would fail, or wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(scope="session", autouse=True)
def unknown_load(tmp_path_factory):
    """Keep from the tests what else runs on the machine, which the number of threads depends on."""
    from sklboost.engine import parallel as placement

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement, "_LOAD", tmp_path_factory.getbasetemp() / "no_load")
        yield


@pytest.fixture(autouse=True)
def closed_figures():
    """Close the figures that a test has drawn."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session")
def regression():
    return _load("diabetes")


@pytest.fixture(scope="session")
def binary():
    return _load("breast_cancer")


@pytest.fixture(scope="session")
def multiclass():
    return _load("iris")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    """Skip a test whose fixtures call a kernel that only kernels call."""
    return (yield from _skip_without_compiler())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skip a test that calls a kernel of its own, or one that only kernels call.

    The machine code of a wheel has what the package calls from Python, and no more. What the
    package itself calls must be there: then it is a failure.
    """
    return (yield from _skip_without_compiler())


def _skip_without_compiler():
    try:
        return (yield)
    except ImportError as error:
        if error.name != "numba" or not _is_called_by_a_test(error):
            raise
        pytest.skip(f"{REASON}: {error}")


def pytest_sessionfinish(session):
    """Fail a run that skipped more tests for want of a kernel than there is reason to."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []  # workers have no reporter
    n_skips = sum(REASON in str(report.longrepr) for report in skipped)
    if n_skips > MOST_SKIPS:
        reporter.write_line(f"{n_skips} tests call a kernel that is not there", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _is_called_by_a_test(error):
    """Whether it was a test that called the kernel, and not the package."""
    package, tests = ROOT / "sklboost", ROOT / "tests"
    paths = [Path(frame.f_code.co_filename) for frame, _ in traceback.walk_tb(error.__traceback__)]
    engine = package / "engine"  # which calls kernels for those who give them, and for itself
    own = [path for path in paths if path.is_relative_to(package) or path.is_relative_to(tests)]
    callers = [path for path in own if not path.is_relative_to(engine)]
    return callers[-1].is_relative_to(tests) and callers[-1].name != "conftest.py"


def _load(name):
    # imported here: scikit-learn imports scipy, which must find the setting above
    from sklearn import datasets

    return getattr(datasets, f"load_{name}")(return_X_y=True)


def skip_without_imports(code: str) -> None:
    """Skip a test of code that imports numba, or shap, which requires it, where that is not."""
    for name in ("numba", "shap"):
        if f"import {name}\n" in code and find_spec(name) is None:
            pytest.skip(f"runs code that imports {name}, which is not installed")


def draw_again(folder: Path, out: Path) -> Path:
    """Let the script of a folder of pictures draw all of them into another folder."""
    script = folder / "draw.py"
    skip_without_imports(script.read_text("utf-8"))
    subprocess.run(
        [sys.executable, str(script), "--out", str(out)],
        check=True,
        timeout=280,
        cwd=ROOT,
    )
    return out


def start_python(text: str, folder: Path, stdin: int | None = None) -> subprocess.Popen:
    """Write Python text to a file in `folder` and start it as a process of its own there."""
    path = folder / "script.py"
    path.write_text(text, encoding="utf-8")
    search_path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, str(path)],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env=dict(os.environ, PYTHONUNBUFFERED="1", PYTHONPATH=search_path),
        start_new_session=True,
    )


def finish(process: subprocess.Popen, timeout: float) -> str:
    """Wait for a process and return all that it printed; one that hangs is ended, and fails."""
    try:
        output, _ = process.communicate(timeout=timeout)
    except BaseException as error:  # Ctrl-C and the test's own time limit, too
        end_with_children(process)
        output, _ = process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            pytest.fail(f"no end after {timeout} s; the process printed:\n{output}")
        raise
    return output


def end_with_children(process: subprocess.Popen) -> None:
    """Kill a process and what it started, which would keep its output open and run on."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def run_python(text: str, folder: Path, timeout: float = 200) -> str:
    """Run Python text in a process of its own and return the last line that it printed."""
    with start_python(text, folder) as process:
        output = finish(process, timeout)
    assert process.returncode == 0, output
    return output.strip().splitlines()[-1]


# The package without what its `__init__` imports: the estimators, and with them scikit-learn, which
# takes three times as long as all the rest.
ENGINE_ALONE = f"""
import sys, types
sys.modules["sklboost"] = types.ModuleType("sklboost")
sys.modules["sklboost"].__path__ = [{str(ROOT / "sklboost")!r}]
"""


def run_kernels(text: str, folder: Path) -> str:
    """Run Python text as `run_python` does; of the package it imports the engine only."""
    return run_python(ENGINE_ALONE + text, folder)


@pytest.fixture(scope="session")
def browser():
    """Return the driver of a headless browser, which all tests of pages share."""
    from tests.browser import start_browser  # only where it is needed: for a library less

    driver = start_browser()
    yield driver
    driver.quit()
