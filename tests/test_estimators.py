"""The estimators: scikit-learn's own checks, learning, fitting again."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import log_loss
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklboost import (
    XGBClassifierLite,
    XGBRegressorLite,
    XGBRFClassifierLite,
    XGBRFRegressorLite,
)
from tests.small_models import ESTIMATORS, outputs, small

# Beside the defaults, each setting with one class, and several that do not exclude one another.
COLUMNS = dict(colsample_bytree=0.7, colsample_bylevel=0.8, colsample_bynode=0.8)
LEAVES = dict(grow_policy="lossguide", max_depth=0, max_leaves=8)
BY_GRADIENT = dict(subsample=0.5, sampling_method="gradient_based")
FULL = dict(pruning="full", gamma=0.1, reg_alpha=0.1, max_bin=16)
# Seeded: of one seed in 400, two rows whose scores differ in the last bit have equal probabilities,
# and ranks of both are compared.
MODELS = [
    XGBRegressorLite(),
    XGBClassifierLite(),
    XGBRegressorLite(n_estimators=5, n_jobs=2, subsample=0.5, random_state=0, **LEAVES, **COLUMNS),
    XGBClassifierLite(n_estimators=5, random_state=0, **FULL, **BY_GRADIENT),
    XGBRegressorLite(n_estimators=20, early_stopping_rounds=2, random_state=0),
    XGBClassifierLite(
        n_estimators=9, early_stopping_rounds=2, subsample=0.8, refit=True, random_state=0
    ),
    XGBRegressorLite(
        n_estimators=5, booster="dart", rate_drop=0.3, num_parallel_tree=2, random_state=0
    ),
    XGBRFRegressorLite(max_depth=0, random_state=0),
    XGBRFClassifierLite(random_state=0),
]


def not_promised(estimator):
    """Rows are held out whole, with their weight: there, weight 2 is not the row twice."""
    if estimator.early_stopping_rounds is None:
        return {}
    check = "check_sample_weight_equivalence_on_{}_data"
    return {check.format(kind): "an internal random split" for kind in ("dense", "sparse")}


@parametrize_with_checks(MODELS, expected_failed_checks=not_promised)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_more_rounds_never_raise_the_training_loss(binary):
    X, y = binary
    losses = [
        log_loss(y, XGBClassifierLite(n_estimators=n, max_depth=2).fit(X, y).predict_proba(X))
        for n in (1, 3, 10, 30)
    ]
    assert sorted(losses, reverse=True) == losses


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fitting_again_forgets_the_first_fit(estimator, binary):
    X, y = binary
    fresh = small(estimator).fit(X[:100, :5], y[:100])
    model = small(estimator).fit(pd.DataFrame(X).add_prefix("c"), y).fit(X[:100, :5], y[:100])
    assert model.n_features_in_ == 5
    assert not hasattr(model, "feature_names_in_")
    assert_array_equal(outputs(model, X[:, :5]), outputs(fresh, X[:, :5]))


def test_a_scalar_weight_is_a_weight_for_every_row(regression):
    X, y = regression
    expected = small(XGBRegressorLite).fit(X, y, sample_weight=np.full(len(y), 2.0))
    assert_array_equal(
        small(XGBRegressorLite).fit(X, y, sample_weight=2.0).predict(X), expected.predict(X)
    )
