"""Each kernel has one version; what data and settings there are adds none; warmup has them all.

A version that is not needed is seconds of a user's time, at the first fit of its kind. What is
counted is told in :mod:`tests.compiler.versions`. The fits are tiny, since versions differ in
types, which do not depend on the number of rounds, and hardly on that of rows; a few are on the
rows of a thread team.
"""

import json
import re

import pytest

from tests.conftest import run_python

SCRIPT = """
import json, sys
from tests.compiler.versions import versions_after_fits
print(json.dumps(versions_after_fits(sys.path[0], {})))
"""
# As in a container into which nothing else was installed, and where a wheel is built.
WARMUP = """
import json, sys
class Finder:
    def find_spec(name, path, target=None):
        if name in {"matplotlib", "pandas", "polars", "pyarrow", "shap", "tqdm"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Finder)
import sklboost, warnings
warnings.simplefilter("error")  # its steps are silent
assert 0.0 < sklboost.warmup() < 280.0
sys.meta_path.remove(Finder)
from tests.compiler.versions import versions
print(json.dumps(versions()))
"""


@pytest.fixture(scope="module")
def after_fits(tmp_path_factory):
    """Return the versions after each kind of fits, in turn, in a process of their own."""
    folder = tmp_path_factory.mktemp("fits")
    return json.loads(run_python(SCRIPT.format({"the rest"}), folder, 580))


@pytest.fixture(scope="module")
def after_all_fits(tmp_path_factory):
    return json.loads(run_python(SCRIPT.format("()"), tmp_path_factory.mktemp("all"), 580))


@pytest.fixture(scope="module")
def after_warmup(tmp_path_factory):
    return json.loads(run_python(WARMUP, tmp_path_factory.mktemp("warmup"), 580))


def new_kernels(before, after):
    return {name.removesuffix(".entry") for name in after if after[name] != before.get(name)}


def without_literals(signatures):
    """Return the set of signatures. To numba a constant argument has a type of its own.

    So have one lane and four, which are compiled beside one another on purpose.
    """
    one_or_four = r"UniTuple\(int64( x |, )[14]\)"
    names = {re.sub(r"Literal\[int\]\(-?\d+\)", "int64", signature) for signature in signatures}
    return {re.sub(one_or_four, "lanes", name) for name in names}


def without_dtypes(signatures):
    """Return the signatures with arrays of floats, their bits, bins and ranks taken for one."""
    # a tuple tells ranks from bins
    names = (signature.replace("Tuple()", "lanes") for signature in signatures)
    dtypes = r"array\((float32|float64|uint8|uint32|uint64)"
    return {re.sub(dtypes, "array(x", signature, flags=re.I) for signature in names}


def n_kinds_of_rows(name):
    """Prediction goes through raw values or ranks, evaluation through bins, by the same kernels."""
    rooms = ("sklboost.tree.predict.prediction.", "sklboost.tree.predict.walking.")
    return 3 if name.startswith(rooms) else 1


def test_one_version_a_kernel(after_fits):
    assert len(after_fits["float64"]) > 100
    for name, signatures in after_fits["float64"].items():
        versions = without_literals(signatures)
        assert len(versions) <= n_kinds_of_rows(name), name
        assert len(without_dtypes(versions)) <= 1, name


def test_another_form_of_the_same_numbers_adds_none(after_fits):
    assert after_fits["other forms"] == after_fits["float64"]


def test_bins_add_only_what_reads_them(after_fits):
    of_features = {f"sklboost.data.features.{name}" for name in ("fill_columns", "fill_values")}
    assert new_kernels(after_fits["other forms"], after_fits["bins"]) == of_features


def test_another_form_of_the_same_bins_adds_none(after_fits):
    assert after_fits["other bins"] == after_fits["bins"]


def test_another_dtype_adds_only_what_reads_the_raw_data(after_fits):
    """Two versions of a kernel differ in the width of the raw data and in nothing else."""
    changed = set()
    for name, signatures in after_fits["float32"].items():
        versions = without_literals(signatures)
        assert len(versions) <= 2 * n_kinds_of_rows(name), name
        assert len(without_dtypes(versions)) <= 1, name
        changed |= {name.removesuffix(".entry")} if len(versions) >= 2 else set()
    assert 1 <= len(changed) <= 22


@pytest.mark.slow  # the whole warm-up
@pytest.mark.parametrize("fits", ["after_fits", "after_all_fits"])
def test_after_warmup_nothing_is_left_to_compile(request, after_warmup, fits):
    *_, last = request.getfixturevalue(fits).values()
    left = {
        name: missing
        for name, signatures in last.items()
        if (missing := set(signatures) - set(after_warmup.get(name, [])))
    }
    assert left == {}
