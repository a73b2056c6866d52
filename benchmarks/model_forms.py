"""The forms that a fitted model can be kept in: how each library saves and loads it.

As a program, what a new process needs to load one: `python -m benchmarks.model_forms FORM PATH`.
"""

import json
import pickle
import sys
import time
from collections.abc import Callable
from typing import NamedTuple


class Form(NamedTuple):
    """A kind of file of one library."""

    library: str
    suffix: str
    save: Callable  # (model, path)
    load: Callable  # (path) -> model


def _save_ours(model, path):
    model.save_model(path)


def _save_ours_alone(model, path):
    model.save_model(path, format="sklboost")


def _load_ours(path):
    import sklboost

    return sklboost.load_model(path)


def _save_pickle(model, path):
    with open(path, "wb") as file:
        pickle.dump(model, file, protocol=pickle.HIGHEST_PROTOCOL)


def _load_pickle(path):
    with open(path, "rb") as file:
        return pickle.load(file)


def _save_joblib(model, path):
    import joblib

    joblib.dump(model, path)


def _load_joblib(path):
    import joblib

    return joblib.load(path)


def _load_xgboost(path):
    import xgboost

    model = xgboost.XGBClassifier()
    model.load_model(path)
    return model


def _save_lightgbm(model, path):
    model.booster_.save_model(path)


def _load_lightgbm(path):
    import lightgbm

    return lightgbm.Booster(model_file=path)


FORMS = {
    "sklboost JSON": Form("sklboost", "json", _save_ours, _load_ours),
    "sklboost UBJSON": Form("sklboost", "ubj", _save_ours, _load_ours),
    'sklboost JSON, format="sklboost"': Form("sklboost", "json", _save_ours_alone, _load_ours),
    'sklboost UBJSON, format="sklboost"': Form("sklboost", "ubj", _save_ours_alone, _load_ours),
    "sklboost pickle": Form("sklboost", "pkl", _save_pickle, _load_pickle),
    "sklboost joblib": Form("sklboost", "joblib", _save_joblib, _load_joblib),
    "XGBoost JSON": Form("xgboost", "json", _save_ours, _load_xgboost),
    "XGBoost UBJSON": Form("xgboost", "ubj", _save_ours, _load_xgboost),
    "XGBoost pickle": Form("xgboost", "pkl", _save_pickle, _load_pickle),
    "LightGBM text": Form("lightgbm", "txt", _save_lightgbm, _load_lightgbm),
}


def timed(call, *arguments):
    """Return the seconds of a call by the clock, and those of the processor in all threads."""
    start, cpu_start = time.perf_counter(), time.process_time()
    call(*arguments)
    return time.perf_counter() - start, time.process_time() - cpu_start


def _load_here(form, path):
    """Import the library and load a file, each timed; NumPy is there already."""
    import importlib

    import numpy  # noqa: F401

    form = FORMS[form]
    imported = timed(importlib.import_module, form.library)
    first = timed(form.load, path)
    return {
        "import_seconds": imported[0],
        "import_cpu_seconds": imported[1],
        "first_seconds": first[0],
        "first_cpu_seconds": first[1],
    }


if __name__ == "__main__":
    print(json.dumps(_load_here(*sys.argv[1:])))
