"""The page that describes model files has the keys that the code writes, and no others."""

import io
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from sklboost import XGBDistributionLite, XGBRegressorLite, XGBSurvivalLite, survival_targets
from sklboost.estimators.files.model_files import FORMAT_VERSION
from sklboost.files.values import _READERS
from tests.conftest import ROOT
from tests.kinds_of_models import KINDS, data, file_of

PAGE = (ROOT / "docs" / "reference" / "model_file.md").read_text(encoding="utf-8")
FILE, VALUES = "key of the file", "type"
# What a user or a training has given names to.
WITH_ANY_KEYS = {"parameters", "loss.parameters", "training.metrics"}
WITH_ANY_KEYS |= {"training.report.seconds", "training.report.traffic"}
WHOLE_VALUES = {
    *("features.encodings.ranks", "features.encodings.categories", "targets.classes"),
    "targets.strata",
    *("training.split_seed", "training.best_iteration", "training.best_score"),
    "training.chosen_params.value",
}
# What is the same in several places has tables of its own.
TABLES = {"unpruned": "trees", "trees": "trees", "settings": "settings"}


def keys_of_table(head):
    """Return what stands in code in the first column of the tables with this head."""
    tables = re.findall(rf"^\| {head} \|.*\n\| --- .*\n((?:\|.*\n)+)", PAGE, flags=re.MULTILINE)
    cells = [row.split(" | ")[0] for table in tables for row in table.splitlines()]
    return [key for cell in cells for key in re.findall(r"`([^`]+)`", cell)]


def keys_of(document, path=""):
    """Return the keys in a document, as the page names them."""
    if path in WITH_ANY_KEYS | WHOLE_VALUES:
        return set()
    if isinstance(document, list):
        return set().union(*(keys_of(part, path) for part in document if isinstance(part, dict)))
    if not isinstance(document, dict):
        return set()
    if set(document) == {"integers", "exponents"}:
        path = "sums"
    found = set()
    for key, value in document.items():
        place = f"{path}.{key}".removeprefix(".")
        found |= {place} | keys_of(value, TABLES.get(key, place))
    return found


def refitted():
    X, y = data("numbers")
    settings = dict(n_estimators=9, learning_rate=1.0, early_stopping_rounds=2)
    return XGBRegressorLite(refit=True, warm_start=True, **settings).fit(X, y["signal"])


def with_strata():
    X, y = data("numbers")
    times = survival_targets(y["signal"] > 0, np.abs(y["signal"]) + 1.0, strata=y["signal"] > 0.5)
    return XGBSurvivalLite(n_estimators=2).fit(X, times)


def of_distributions():
    X, y = data("numbers")
    return XGBDistributionLite(n_estimators=2).fit(X, y["signal"])


def of_a_cluster():
    X, y = data("numbers")
    model = XGBRegressorLite(n_estimators=2).fit(X, y["signal"])
    model.fit_report_ = replace(model.fit_report_, traffic={"splits": (2, 100)})
    return model


def chosen():
    X, y = data("numbers")
    return XGBRegressorLite(preset="auto", n_estimators=5, max_depth=2).fit(X, y["signal"])


def with_large_sets():
    codes = np.tile(np.arange(200), 10)
    X = pd.DataFrame({"level": pd.Categorical(codes)})
    settings = dict(n_estimators=1, max_depth=1, max_ctr_complexity=1)
    return XGBRegressorLite(**settings).fit(X, codes >= 100)


@pytest.fixture(scope="module")
def documents():
    names = [
        *("single", "several targets", "several labels", "categories", "quantiles"),
        *("vector trees", "linear leaves", "pruned", "early stopping", "dart"),
    ]
    models = [KINDS[name].fit() for name in names]
    models += [refitted(), chosen(), of_a_cluster(), with_strata(), of_distributions()]
    models.append(with_large_sets())
    files = [file_of(model, "json") for model in models]
    with pytest.warns(UserWarning, match="left out of the model file: objective"):
        files.append(file_of(KINDS["loss in Python"].fit(), "json", format="auto"))
    return [*map(json.loads, files)]


def test_the_page_has_all_keys_and_no_others(documents):
    written = set().union(*(keys_of(document["sklboost"]) for document in documents))
    listed = keys_of_table("key")
    assert sorted(listed) == sorted(written)
    assert sorted(keys_of_table(VALUES)) == sorted(_READERS)
    assert f"`format_version`, which is {FORMAT_VERSION}." in PAGE
    assert f"| `format_version` | integer | {FORMAT_VERSION} |" in PAGE


def test_each_key_has_what_the_page_says(documents):
    """But for what is null, and for what only some models have."""
    kinds = dict(
        re.findall(r"^\| `([\w.]+)` \| (object|text|integer|integers|floats)\b", PAGE, re.M)
    )
    assert len(kinds) > 40
    types = {
        "object": dict,
        "text": str,
        "integer": int,
        "integers": list,
        "floats": list,
    }
    n_checked = 0
    for document in documents:
        for path, kind in kinds.items():
            value = document["sklboost"]
            for key in path.split("."):
                value = value.get(key) if isinstance(value, dict) else None
            if value is not None:
                assert isinstance(value, types[kind]), path
                n_checked += 1
    assert n_checked > 20 * len(documents)


def test_keys_of_the_file():
    X, y = data("numbers")
    file = io.BytesIO()
    XGBRegressorLite(n_estimators=1).fit(X, y["signal"]).save_model(file, raw_format="json")
    assert keys_of_table(FILE) == list(json.loads(file.getvalue()))
