"""Treelite, which compiles trees of all libraries, reads our files by XGBoost's schema."""

import numpy as np
import pytest
import treelite
import xgboost

from sklboost import XGBClassifierLite, XGBRegressorLite, from_xgboost
from tests.files.test_xgboost_writing import CLASS, CODES, IS_HIGH, LABELS, NUMBER, SHARE, X


def known_of(model, X):
    """Predictions as treelite has them: of two classes the probability of the second."""
    if not isinstance(model, XGBClassifierLite):
        return model.predict(X)
    chances = model.predict_proba(X)
    return chances[:, 1] if chances.shape[1] == 2 else chances


def check_same(forest, model, X):
    found, known = treelite.gtil.predict(forest, X), known_of(model, X)
    np.testing.assert_allclose(found.reshape(known.shape), known, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(
    ("model", "X", "y"),
    [
        (XGBRegressorLite(), X, NUMBER),
        (XGBRegressorLite(num_parallel_tree=3, subsample=0.5, random_state=0), X, NUMBER),
        (XGBRegressorLite(categorical_features=[4]), CODES, NUMBER),
        (XGBRegressorLite(objective="count:poisson"), X, SHARE),
        (XGBRegressorLite(multi_strategy="multi_output_tree"), X, np.column_stack([NUMBER, SHARE])),
        (XGBClassifierLite(booster="dart", rate_drop=0.4, random_state=0), X, IS_HIGH),
        (XGBClassifierLite(), X, CLASS),
        (XGBClassifierLite(), X, LABELS),
    ],
)
# treelite says that it leaves our own section alone
@pytest.mark.filterwarnings("ignore:.*unknown key")
def test_our_files(model, X, y, tmp_path):
    model.set_params(n_estimators=5).fit(X, y)
    for suffix, form in {"json": "json", "ubj": "ubjson"}.items():
        path = tmp_path / f"model.{suffix}"
        model.save_model(path)
        options = {"format_choice": form, "allow_unknown_field": True}
        check_same(treelite.frontend.load_xgboost_model(path, **options), model, X)


@pytest.mark.parametrize(
    ("theirs", "X", "y"),
    [
        (xgboost.XGBRegressor(), X, NUMBER),
        (
            xgboost.XGBRegressor(feature_types=["float"] * 4 + ["c"], enable_categorical=True),
            CODES,
            NUMBER,
        ),
        (xgboost.XGBClassifier(booster="dart", rate_drop=0.4), X, CLASS),
    ],
)
def test_both_ways(theirs, X, y):
    """A model of XGBoost's, and what becomes of it here and there again, is one for treelite."""
    ours = from_xgboost(theirs.set_params(n_estimators=5, n_jobs=1).fit(X, y))
    for booster in (theirs.get_booster(), ours.to_xgboost()):
        check_same(treelite.frontend.from_xgboost(booster), ours, X)
