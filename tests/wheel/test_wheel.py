"""The wheel with machine code in an environment without numba: what it promises, one by one."""

import json
import zipfile
from statistics import median

import pytest

MOST_BYTES = 8_000_000
MOST_OF_THE_IMPORT = 1.05  # of that of sklearn.ensemble
MOST_SECONDS_OF_A_FIRST_FIT = 0.050  # more than the second takes
N_IMPORTS, N_FIRST_FITS = 31, 7


@pytest.fixture(scope="module")
def levels(wheel, installed):
    """The processor levels of the wheel that this machine has."""
    with zipfile.ZipFile(wheel) as files:
        of_wheel = json.loads(files.read("sklboost/machine_code/index.json"))["libraries"]
    found = [level for level in of_wheel if _has(installed, level)]
    assert found, of_wheel
    return found


def _has(installed, level):
    tried = (
        "try: import sklboost\n"
        "except ImportError as error: print('no' if 'this processor has' in str(error) else error)"
    )
    seen = installed.run("-c", tried, SKLBOOST_BACKEND=level)
    assert seen in ("", "no"), seen
    return seen == ""


# --- the file, and what is installed


def test_its_size(wheel):
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes")
    assert wheel.stat().st_size <= MOST_BYTES


def test_it_brings_no_compiler(installed):
    script = "from importlib.util import find_spec as f; print(f('numba'), f('llvmlite'))"
    assert installed.run("-c", script) == "None None"


def test_it_says_which_code_runs(installed, levels):
    shown = installed.run("-c", "import sklboost; sklboost.show_versions()")
    code = next(line for line in shown.splitlines() if line.startswith("code "))
    assert code.split(maxsplit=1)[1] == f"machine code of the wheel ({levels[-1]})"
    assert "numba" not in shown


def test_what_needs_the_compiler_says_what_to_install(installed):
    script = "try: import sklboost\nexcept ImportError as error: print(error)"
    message = installed.run("-c", script, SKLBOOST_BACKEND="compiler")
    assert "numba" in message
    assert message.endswith("pip install sklboost[jit]")


# --- time


IMPORT = "import time; begin = time.process_time(); import {}; print(time.process_time() - begin)"


@pytest.mark.timing
def test_importing_it_takes_no_longer_than_scikit_learns_ensembles(installed):
    """Processor seconds of new processes, pair by pair, so that a busy machine slows both."""
    pairs = []
    for number in range(N_IMPORTS + 1):
        names = ("sklboost", "sklearn.ensemble")[:: 1 if number % 2 else -1]
        seconds = {name: float(installed.run("-c", IMPORT.format(name))) for name in names}
        pairs.append((seconds["sklboost"], seconds["sklearn.ensemble"]))
    ratio = median(ours / usual for ours, usual in pairs[1:])  # the first reads from the disk
    ours, usual = map(median, zip(*pairs, strict=True))
    print(f"import: {ours:.3f} s, sklearn.ensemble: {usual:.3f} s, ratio {ratio:.3f}")
    assert ratio <= MOST_OF_THE_IMPORT


FIRST_FITS = """
import gc
import time
import numpy as np
from sklboost import {estimator}
X = np.random.default_rng(0).normal(size=(2_000, 10))
y = {y}
def seconds():
    gc.collect()  # what the imports have made is no cost of a fit
    begin = time.process_time()
    {estimator}(n_estimators=20).fit(X, y).predict(X)
    return time.process_time() - begin
print(seconds(), seconds())
"""


@pytest.mark.timing
@pytest.mark.parametrize(
    ("estimator", "y"),
    [("XGBRegressorLite", "X[:, 0]"), ("XGBClassifierLite", "np.digitize(X[:, 0], [-0.5, 0.5])")],
)
def test_the_first_fit_takes_no_longer_than_the_second(installed, estimator, y):
    script = FIRST_FITS.format(estimator=estimator, y=y)
    runs = [map(float, installed.run("-c", script).split()) for _ in range(N_FIRST_FITS)]
    first, second = map(median, zip(*runs, strict=True))
    print(f"{estimator}: first fit {first:.3f} s, second {second:.3f} s")
    assert first - second <= MOST_SECONDS_OF_A_FIRST_FIT


# --- results


def _digests(environment, *options, **variables):
    return json.loads(environment.run("-m", "tests.kinds_of_models", *options, **variables))


@pytest.fixture(scope="module")
def compiled(compiling):
    """The digests of all kinds of models as compiled code makes them, which are then pickled."""
    script = "from sklboost.engine import backend; print(backend.description())"
    assert compiling.run("-c", script) == "compiled on this machine"
    return _digests(compiling, "--save", "compiled.pickle")


def test_every_level_makes_the_bits_that_compiled_code_makes(installed, levels, compiled):
    assert len(compiled) >= 50
    for level in levels:
        made = _digests(installed, "--save", "wheel.pickle", SKLBOOST_BACKEND=level)
        assert [name for name in compiled if made[name] != compiled[name]] == [], level
    print(f"{len(compiled)} kinds of models, the same bits with {', '.join(levels)}")


def test_pickles_go_to_an_environment_that_compiles_and_back(installed, compiling, compiled):
    assert _digests(installed, "--load", "compiled.pickle") == compiled
    _digests(installed, "--save", "wheel.pickle")
    assert _digests(compiling, "--load", "wheel.pickle") == compiled


def test_so_do_model_files(installed, compiling, compiled):
    for there, here in [(compiling, installed), (installed, compiling)]:
        _digests(there, "--files", "--save", "models")
        loaded = _digests(here, "--files", "--load", "models")
        assert loaded == {name: compiled[name] for name in loaded}
        assert len(loaded) == len(compiled) - 1  # a loss in Python is no part of a file


ON_A_CLUSTER = """
import pickle
from importlib.util import find_spec
import dask.array as da
import numpy as np
from distributed import Client
from sklearn.base import clone
from sklboost import XGBClassifierLite, XGBRegressorLite

random = np.random.default_rng(0)
X = random.normal(size=(20_000, 6))
X[:, 4] = random.integers(0, 9, len(X))
signal = X[:, 0] + np.sin(3 * X[:, 1]) + X[:, 4] % 3 + random.normal(size=len(X))
classes = np.array(["low", "middle", "high"])[np.digitize(signal, [0.0, 2.0])]
weight = random.integers(0, 4, len(X)).astype(float)
alphas = [0.1, 0.5]
regressor, classifier = XGBRegressorLite(n_estimators=3), XGBClassifierLite(n_estimators=3)
by_gradient = dict(subsample=0.3, sampling_method="gradient_based", max_bin=1000)
fits = {
    "squared error, categories": (clone(regressor).set_params(categorical_features=[4]), signal),
    "classes, by gradient": (clone(classifier).set_params(**by_gradient), classes),
    "quantiles": (regressor.set_params(objective="quantile", quantile_alpha=alphas), signal),
}
with Client(n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
    assert [find_spec("numba"), *client.run(find_spec, "numba").values()] == [None] * 3
    for name, (model, y) in fits.items():
        for values in (X, X.astype(np.float32)):
            rows = (values, y, weight)
            parts = [da.from_array(each, chunks=(3000, *each.shape[1:])) for each in rows]
            there, here = clone(model).fit(*parts), clone(model).fit(*rows)
            for field in ("nodes", "outputs", "tree_starts", "base_score", "tops"):
                of_both = [pickle.dumps(getattr(each.model_, field)) for each in (there, here)]
                assert of_both[0] == of_both[1], (name, field)
            print(*there.fit_report_.traffic)
"""


def test_training_on_a_cluster_needs_no_compiler_and_makes_the_same_bits(with_dask):
    """What only workers run: sums of several machines, their spreads, samples and quantiles."""
    told = with_dask.run("-c", ON_A_CLUSTER).splitlines()
    assert len(told) == 6
    assert {"sampling", "quantiles"} <= set(" ".join(told).split())


PAGE = """
from sklearn.datasets import load_breast_cancer
from sklboost import XGBClassifierLite
X, y = load_breast_cancer(return_X_y=True)
model = XGBClassifierLite(n_estimators=5).fit(X, y)
model.to_html("page.html", X, y)
print(model.explain_split(tree=0, node=0).title)
"""


def test_the_page_and_the_derivation_of_a_model(installed):
    assert installed.run("-c", PAGE).startswith("Tree 0, node 0: split at ")
    assert "</html>" in (installed.folder / "page.html").read_text("utf-8")
