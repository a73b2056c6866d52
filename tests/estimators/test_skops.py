"""Estimators in files of skops: the same bits, and few types that a reader has to trust."""

import io
import re
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skops.io import dumps, get_untrusted_types, loads

from sklboost import (
    EarlyStopping,
    Loss,
    ModelFileError,
    XGBClassifierLite,
    XGBDistributionLite,
    XGBRankerLite,
    XGBRegressorLite,
    XGBRFClassifierLite,
    XGBRFRegressorLite,
    XGBSurvivalLite,
    survival_targets,
)
from sklboost.estimators.saving import InconsistentVersionWarning
from sklboost.files.documents import read_ubjson, write_ubjson
from tests.conftest import ROOT
from tests.kinds_of_models import KINDS, data

PAGE = (ROOT / "docs" / "how_to" / "deploy_a_model.md").read_text("utf-8")
LISTED = re.findall(r'^\.\.\. +"(sklboost\.[\w.]+)",$', PAGE, re.MULTILINE)
# The file has what a model file has, which all kinds are written to; these differ in their parts.
NAMES = [
    *("bins", "categories", "linear leaves, categories", "vector trees", "several labels"),
    *("quantiles", "pruned", "early stopping", "loss in Python"),
]
SAVED_FIT = "sklboost.estimators.saving.SavedFit"
ESTIMATORS = (
    *(XGBDistributionLite, XGBSurvivalLite),
    *(XGBClassifierLite, XGBRankerLite, XGBRegressorLite, XGBRFClassifierLite, XGBRFRegressorLite),
)


def name_of(kind):
    return f"{kind.__module__}.{kind.__qualname__}"


def through_skops(estimator, *more):
    """Return what comes back, after a check that it takes the listed types and `more`."""
    file = dumps(estimator)
    own = [name_of(kind) for kind in ESTIMATORS if name_of(kind) in get_untrusted_types(data=file)]
    assert get_untrusted_types(data=file) == sorted([*own, SAVED_FIT, *more])
    return loads(file, trusted=[*LISTED, *more])


class HalfSquaredError(Loss):
    def __init__(self, scale):
        self.scale = scale

    def gradients(self, y, raw_score):
        return self.scale * (raw_score - y), np.full_like(raw_score, self.scale)


class Own(XGBRegressorLite):
    """A user's estimator."""


# --- the same bits -------------------------------------------------------------------------------


def test_the_page_lists_the_types():
    assert sorted(LISTED) == sorted([*map(name_of, ESTIMATORS), SAVED_FIT])


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_comes_back_with_the_same_bits(name):
    kind = KINDS[name]
    model = kind.fit()
    more = ["tests.kinds_of_models.absolute_error"] if name == "loss in Python" else []
    loaded = through_skops(model, *more)
    assert kind.digest(loaded) == kind.digest(model)
    assert type(loaded) is type(model)
    assert vars(loaded).keys() == vars(model).keys()
    for name in ("get_params", "evals_result_", "fit_report_", "n_estimators_"):
        values = (getattr(other, name) for other in (loaded, model))
        found, expected = (value() if callable(value) else value for value in values)
        assert repr(found) == repr(expected)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_pipeline(estimator):
    X, y = data("numbers")
    is_survival = estimator is XGBSurvivalLite
    target = survival_targets(X[:, 0] > 0, np.exp(X[:, 1])) if is_survival else y["labels"]
    model = make_pipeline(StandardScaler(), estimator(n_estimators=3, random_state=0))
    queries = dict(xgbrankerlite__qid=np.arange(len(X)) // 20) if "Ranker" in str(model) else {}
    model.fit(X, target, **queries)
    loaded = through_skops(model)
    for method in ("predict_proba", "predict") if hasattr(model, "predict_proba") else ("predict",):
        assert_array_equal(getattr(loaded, method)(X), getattr(model, method)(X))
    assert_array_equal(loaded[-1].shap_values(X[:5]), model[-1].shap_values(X[:5]))


def test_what_is_trained_on_and_what_is_not_fitted():
    X, y = data("numbers")
    model = XGBRegressorLite(n_estimators=2, random_state=0).fit(X, y["signal"])
    whole = XGBRegressorLite(n_estimators=5, random_state=0).fit(X, y["signal"])
    loaded = through_skops(model).set_params(n_estimators=5, warm_start=True)
    assert_array_equal(loaded.fit(X, y["signal"]).predict(X), whole.predict(X))
    unfitted = XGBRegressorLite(max_depth=3, missing=-1.0)
    file = dumps(unfitted)
    assert get_untrusted_types(data=file) == [name_of(XGBRegressorLite)]
    assert repr(loads(file, trusted=LISTED)) == repr(unfitted)


def test_what_users_bring_is_theirs_to_trust():
    X, y = data("numbers")
    loss, stopping = HalfSquaredError(2.0), EarlyStopping(rounds=2)
    model = Own(n_estimators=3, objective=loss, callbacks=[stopping])
    model.fit(X, y["signal"], X_val=X, y_val=y["signal"])
    loaded = through_skops(model, *map(name_of, (HalfSquaredError, EarlyStopping, Own)))
    assert type(loaded) is Own
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded._trained.loss is loaded.objective
    assert loaded.objective.scale == 2.0


# --- what is wrong with a file -------------------------------------------------------------------


def test_damage_is_an_error_that_says_so():
    X, y = data("numbers")
    file = dumps(XGBRegressorLite(n_estimators=3).fit(X, y["signal"]))
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    (fit,) = (name for name in parts if name.endswith(".bin"))
    document = read_ubjson(parts[fit], "")
    document["model"]["trees"]["left"] = document["model"]["trees"]["left"] * 2
    for damaged in (parts[fit][: len(parts[fit]) // 2], write_ubjson(document)):
        changed = io.BytesIO()
        with zipfile.ZipFile(changed, "w") as archive:
            for name, content in (parts | {fit: damaged}).items():
                archive.writestr(name, content)
        with pytest.raises(ModelFileError, match="the fit"):
            loads(changed.getvalue(), trusted=LISTED)


def test_another_version_is_a_warning(monkeypatch):
    X, y = data("numbers")
    file = dumps(XGBRegressorLite(n_estimators=1).fit(X, y["signal"]))
    loads(file, trusted=LISTED)  # no warning, which would be an error
    monkeypatch.setattr("sklboost.estimators.saving.__version__", "7.8.9")
    with pytest.warns(InconsistentVersionWarning, match=r"7\.8\.9"):
        loads(file, trusted=LISTED)
