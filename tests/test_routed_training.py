"""Validation data, groups and margins, passed on to `fit` by scikit-learn's tools."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    cross_validate,
    train_test_split,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metadata_routing import MetadataRequest

from sklboost import XGBClassifierLite, XGBRegressorLite

pytestmark = pytest.mark.usefixtures("routing")


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def stopping(estimator, **parameters):
    """Return an estimator that overfits soon, and stops when it does."""
    early = dict(n_estimators=200, learning_rate=0.5, early_stopping_rounds=5)
    return estimator(**(early | parameters))


def test_early_stopping_in_a_pipeline_that_transforms_the_validation_data(binary):
    X, y = binary
    X_train, X_val, y_train, y_val = train_test_split(X, y, random_state=0)
    validation = dict(y_val=y_val, sample_weight_val=np.where(y_val == 1, 1.0, 30.0))
    model = stopping(XGBClassifierLite)
    model.set_fit_request(X_val=True, y_val=True, sample_weight_val=True)
    pipeline = Pipeline([("scale", StandardScaler()), ("model", model)], transform_input=["X_val"])
    pipeline.fit(X_train, y_train, X_val=X_val, **validation)
    assert pipeline[-1].stop_reason_ == "early_stopping"
    scaler = StandardScaler().fit(X_train)
    by_hand = stopping(XGBClassifierLite).fit(
        scaler.transform(X_train), y_train, X_val=scaler.transform(X_val), **validation
    )
    assert pipeline[-1].evals_result_ == by_hand.evals_result_
    assert pipeline[-1].best_iteration_ == by_hand.best_iteration_
    assert_array_equal(
        pipeline.predict_proba(X_val), by_hand.predict_proba(scaler.transform(X_val))
    )


def test_groups_reach_the_fit_only_where_they_are_asked_for(regression):
    X, y = regression
    groups = np.arange(len(y)) % 40

    def curves(model):
        search = GridSearchCV(model, {"max_depth": [3]}, cv=GroupKFold(3))
        return search.fit(X, y, groups=groups).best_estimator_.evals_result_

    model = stopping(XGBRegressorLite, random_state=0, max_depth=3)
    asking = clone(model).set_fit_request(groups=True)
    assert curves(model) == clone(model).fit(X, y).evals_result_
    assert curves(asking) == clone(model).fit(X, y, groups=groups).evals_result_
    assert curves(asking) != curves(model)  # other rows are held out


def test_other_arguments_of_fit_have_to_be_asked_for_or_not(binary):
    X, y = binary
    params = {"groups": np.arange(len(y)) % 40, "sample_weight": np.ones(len(y))}
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        cross_validate(XGBClassifierLite(), X, y, cv=GroupKFold(3), params=params)


class MarginScorer:
    """Minus the mean squared error of predictions that start from margins."""

    def __call__(self, estimator, X, y, base_margin):
        return -mean_squared_error(y, estimator.predict(X, base_margin=base_margin))

    def get_metadata_routing(self):
        request = MetadataRequest(owner="MarginScorer")
        request.score.add_request(param="base_margin", alias=True)
        return request


def test_cross_validation_with_weights_and_margins(regression):
    X, y = regression
    weight = np.where(y > 150, 5.0, 1.0)
    margin = 1000.0 + 2 * y
    model = XGBRegressorLite(n_estimators=5, max_depth=2)
    result = cross_validate(
        clone(model).set_fit_request(sample_weight=True, base_margin=True),
        X,
        y,
        cv=KFold(3),
        params={"sample_weight": weight, "base_margin": margin},
        scoring=MarginScorer(),
        return_estimator=True,
        return_indices=True,
    )
    for k, fitted in enumerate(result["estimator"]):
        train, test = result["indices"]["train"][k], result["indices"]["test"][k]
        by_hand = clone(model).fit(
            X[train], y[train], sample_weight=weight[train], base_margin=margin[train]
        )
        predicted = by_hand.predict(X[test], base_margin=margin[test])
        assert_array_equal(fitted.predict(X[test], base_margin=margin[test]), predicted)
        assert result["test_score"][k] == -mean_squared_error(y[test], predicted)
        # margins are worth something: the trees add to them
        assert not np.allclose(predicted, by_hand.predict(X[test], base_margin=np.zeros(len(test))))


def test_margins_at_fit_and_predict_of_a_pipeline(regression):
    X, y = regression
    margin = y + np.where(X[:, 2] > 0, 30.0, -30.0)
    model = XGBRegressorLite(n_estimators=30, max_depth=1)
    asking = clone(model).set_fit_request(base_margin=True).set_predict_request(base_margin=True)
    pipeline = make_pipeline(StandardScaler(), asking).fit(X, y, base_margin=margin)
    # the trees take away what the margin has too much
    assert np.abs(pipeline.predict(X, base_margin=margin) - y).max() < 1
    scaled = StandardScaler().fit_transform(X)
    by_hand = model.fit(scaled, y, base_margin=margin).predict(scaled, base_margin=margin)
    assert_array_equal(pipeline.predict(X, base_margin=margin), by_hand)
