"""What `import sklboost` loads, what a first fit loads, and the names that wait to be asked for."""

import importlib
import json
import pickle
import sys

import pytest

import sklboost
from tests.conftest import run_python

LATER = sorted(sklboost._LATER)
# What a plain fit and predict do without, and much of which takes long to import.
NOT_NEEDED = {
    "dask",
    "distributed",
    "matplotlib",
    "onnx",
    "pandas",
    "polars",
    "pyarrow",
    "shap",
    "skl2onnx",
    "tqdm",
    "sklearn.ensemble",
    "sklearn.metrics",
    "sklearn.model_selection",
    "sklearn.preprocessing",
    "sklboost.data.parquet_files",
    "sklboost.displays",
    "sklboost.estimators.fit.check_loss",
    "sklboost.estimators.forests",
    "sklboost.estimators.parameters.kinds",
    "sklboost.estimators.input.bins",
    "sklboost.estimators.predict.explanations",
    "sklboost.estimators.predict.page",
    "sklboost.estimators.predict.shadow_features",
    "sklboost.inspection.derivation",
    "sklboost.inspection.monotone_proof",
    "sklboost.inspection.page",
    "sklboost.inspection.shap",
    "sklboost.inspection.tables",
    "sklboost.onnx",
    "sklboost.shap",
    "sklboost.tree.options.linear_leaves",
    "sklboost.warmup.steps",
}
FIT = """
import json, os, sys
os.environ["SKLBOOST_BACKEND"] = "interpreter"  # the compiler imports what it compiles
import numpy as np
import sklearn.base  # which itself imports pandas, if it is there
before = set(sys.modules)
import sklboost
imported = set(sys.modules)
X = np.arange(20.0)[:, np.newaxis]
sklboost.XGBRegressorLite(n_estimators=2).fit(X, X[:, 0]).predict(X)
model = sklboost.XGBClassifierLite(n_estimators=2).fit(X, X[:, 0] > 8)
model.predict_proba(X)
fitted = set(sys.modules)
print(json.dumps([sorted(imported - before), sorted(fitted - imported)]))
"""

# What loading a model of boosted trees does without.
NOT_LOADED = {
    "sklboost.estimators.files.foreign_models",
    "sklboost.estimators.forests",
    "sklboost.files.lightgbm",
    "sklboost.files.xgboost_reading",
    "sklboost.files.xgboost_writing",
}
LOAD = """
import json, os, sys
os.environ["SKLBOOST_BACKEND"] = "interpreter"
import sklboost
sklboost.load_model("model.ubj")
print(json.dumps(sorted(sys.modules)))
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """What is loaded by the import, and what by the first fits and predictions after it."""
    return json.loads(run_python(FIT, tmp_path_factory.mktemp("fit")))


def test_importing_loads_nothing_that_a_plain_fit_does_without(modules):
    loaded, _ = modules
    assert "sklboost.estimators.fit.fitting" in loaded
    assert sorted(NOT_NEEDED & set(loaded)) == []


def test_a_first_fit_imports_nothing(modules):
    """An import that is only moved from the import to the first fit saves nobody time."""
    _, later = modules
    packages = ("sklboost", "sklearn", "scipy", "numpy", "joblib")
    assert [name for name in later if name.partition(".")[0] in packages] == []


def test_loading_imports_what_a_model_needs(tmp_path):
    """Not what saving needs, or files of other libraries, or a forest."""
    X = [[0.0], [1.0], [2.0]]
    sklboost.XGBRegressorLite(n_estimators=1).fit(X, [0, 1, 2]).save_model(tmp_path / "model.ubj")
    text = LOAD.replace("model.ubj", (tmp_path / "model.ubj").as_posix())
    loaded = json.loads(run_python(text, tmp_path))
    assert "sklboost.files.stored_trees" in loaded
    assert sorted(NOT_LOADED & set(loaded)) == []


def test_the_list_names_modules():
    for name in NOT_NEEDED | NOT_LOADED:
        if name.startswith("sk"):  # others may not be installed
            importlib.import_module(name)


# --- names that wait to be asked for -------------------------------------------------------------


@pytest.mark.parametrize("name", LATER)
def test_a_name_that_waits_is_there_when_it_is_asked_for(name, monkeypatch):
    monkeypatch.delattr(sklboost, name, raising=False)
    assert name in dir(sklboost)
    found = getattr(sklboost, name)
    assert vars(sklboost)[name] is found  # asked for once
    module, _, inner = sklboost._LATER[name].partition(":")
    assert found is (getattr(sys.modules[module], inner) if inner else sys.modules[module])
    assert inner in ("", name)
    if name in sklboost.__all__:
        assert pickle.loads(pickle.dumps(found)) is found  # by its name


def test_dir_shows_what_users_call():
    shown = {name for name in dir(sklboost) if not name.startswith("__")}
    assert shown == {*sklboost.__all__, "displays", "onnx", "shap"}
    assert set(LATER) < shown
    assert {"__version__", "__doc__"} < set(dir(sklboost))
    names = {}
    exec("from sklboost import *", names)
    assert set(sklboost.__all__) < set(names)


def test_a_room_whose_package_is_not_installed_is_not_there(monkeypatch):
    """Else whoever looks at all names, as help() does, would see an ImportError."""
    monkeypatch.delattr(sklboost, "shap", raising=False)
    monkeypatch.delitem(sys.modules, "sklboost.shap", raising=False)
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(AttributeError, match=r"sklboost\.shap needs shap: pip install"):
        _ = sklboost.shap
    with pytest.raises(ImportError, match=r"sklboost\.shap needs shap: pip install"):
        from sklboost import shap  # noqa: F401


def test_other_names_are_not_there():
    assert not hasattr(sklboost, "XGBClassifier")
    with pytest.raises(AttributeError, match=r"has no attribute 'plot_tre'$"):
        _ = sklboost.plot_tre
    with pytest.raises(AttributeError, match=r"'to_graphviz': take plot_tree$"):
        _ = sklboost.to_graphviz
    with pytest.raises(AttributeError, match=r"'Booster': take load_model\(path\), from_xgboost"):
        _ = sklboost.Booster
    with pytest.raises(
        ImportError, match=r"cannot import name 'XGBClassifier'.*: take XGBClassifierLite"
    ):
        from sklboost import XGBClassifier  # noqa: F401
