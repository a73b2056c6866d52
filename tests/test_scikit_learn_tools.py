"""Drop-in use in scikit-learn's tools: what each did, by doing it by hand."""

import matplotlib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_linnerud
from sklearn.ensemble import BaggingClassifier, StackingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import PartialDependenceDisplay
from sklearn.metrics import balanced_accuracy_score, get_scorer, log_loss
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    train_test_split,
)
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklboost import XGBClassifierLite, XGBRegressorLite
from tests.small_models import small

FOLDS = StratifiedKFold(3)


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(scope="module")
def weight(binary):
    _, y = binary
    return np.where(y == 1, 1.0, 20.0)


def weighted_classifier(**parameters):
    """Return a classifier that asks for weights at fit; the routing fixture must be in use."""
    return small(XGBClassifierLite, **parameters).set_fit_request(sample_weight=True)


# --- pipelines -----------------------------------------------------------------------------------


def test_pipeline_of_frames(binary):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    pipeline = make_pipeline(StandardScaler(), small(XGBClassifierLite)).set_output(
        transform="pandas"
    )
    model = pipeline.fit(X, y)[-1]
    assert list(model.feature_names_in_) == list(X.columns)
    assert "Feature" in model.trees_to_dataframe()
    scaled = StandardScaler().fit_transform(X)
    expected = small(XGBClassifierLite).fit(scaled, y).predict_proba(scaled)
    assert_array_equal(pipeline.predict_proba(X), expected)


@pytest.mark.usefixtures("routing")
def test_weights_in_a_pipeline(binary, weight):
    X, y = binary
    pipeline = make_pipeline(
        StandardScaler().set_fit_request(sample_weight=False), weighted_classifier()
    )
    scaled = StandardScaler().fit_transform(X)
    expected = small(XGBClassifierLite).fit(scaled, y, sample_weight=weight)
    weighted = pipeline.fit(X, y, sample_weight=weight).predict_proba(X)
    assert_array_equal(weighted, expected.predict_proba(scaled))
    assert not np.array_equal(weighted, pipeline.fit(X, y).predict_proba(X))


# --- searches and validation ---------------------------------------------------------------------


@pytest.mark.usefixtures("routing")
def test_weights_in_a_grid_search(binary, weight):
    X, y = binary
    grid = {"learning_rate": [0.01, 0.5]}
    scoring = get_scorer("neg_log_loss").set_score_request(sample_weight=True)
    search = GridSearchCV(weighted_classifier(), grid, cv=FOLDS, scoring=scoring)
    search.fit(X, y, sample_weight=weight)
    expected = clone(search.best_estimator_).fit(X, y, sample_weight=weight)
    assert_array_equal(search.predict_proba(X), expected.predict_proba(X))
    results = search.cv_results_
    for candidate, mean in zip(results["params"], results["mean_test_score"], strict=True):
        scores = []
        for train, test in FOLDS.split(X, y):
            model = small(XGBClassifierLite, **candidate)
            model.fit(X[train], y[train], sample_weight=weight[train])
            probability = model.predict_proba(X[test])
            scores.append(-log_loss(y[test], probability, sample_weight=weight[test]))
        assert_allclose(mean, np.mean(scores))


# --- estimators of estimators --------------------------------------------------------------------


@pytest.mark.usefixtures("routing")
def test_stacking(binary, weight):
    X, y = binary
    first, second = weighted_classifier(), weighted_classifier(max_depth=1)
    final = small(XGBClassifierLite, n_estimators=3).set_fit_request(sample_weight=True)
    stack = StackingClassifier([("a", first), ("b", second)], final_estimator=final, cv=FOLDS)
    stack.fit(X, y, sample_weight=weight)
    held_out = [
        cross_val_predict(
            model, X, y, cv=FOLDS, params={"sample_weight": weight}, method="predict_proba"
        )[:, 1]
        for model in (first, second)
    ]
    by_hand = clone(final).fit(np.column_stack(held_out), y, sample_weight=weight)
    inputs = [
        clone(model).fit(X, y, sample_weight=weight).predict_proba(X)[:, 1]
        for model in (first, second)
    ]
    assert_array_equal(stack.predict_proba(X), by_hand.predict_proba(np.column_stack(inputs)))


def test_calibration_of_a_frozen_model(binary):
    X, y = binary
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    model = small(XGBClassifierLite, n_estimators=2).fit(X_train, y_train)
    before = model.predict_proba(X_test)
    frozen = FrozenEstimator(model)
    assert clone(frozen).fit(X_test, y_test).estimator is model
    calibrated = CalibratedClassifierCV(frozen).fit(X_test, y_test)
    assert_array_equal(model.predict_proba(X_test), before)
    # two rounds are far too careful
    assert log_loss(y_test, calibrated.predict_proba(X_test)) < 0.8 * log_loss(y_test, before)


@pytest.mark.usefixtures("routing")
def test_tuned_threshold(binary, weight):
    X, y = binary
    scoring = get_scorer("balanced_accuracy").set_score_request(sample_weight=False)
    tuned = TunedThresholdClassifierCV(
        weighted_classifier(n_estimators=2), scoring=scoring, cv=FOLDS
    )
    tuned.fit(X, y, sample_weight=weight)
    by_hand = small(XGBClassifierLite, n_estimators=2).fit(X, y, sample_weight=weight)
    probability = by_hand.predict_proba(X)[:, 1]
    assert_array_equal(tuned.predict(X), (probability >= tuned.best_threshold_).astype(int))
    # the weights have made zeros out of many ones, and the threshold makes up for it
    assert tuned.best_threshold_ < 0.4
    assert balanced_accuracy_score(y, tuned.predict(X)) > balanced_accuracy_score(
        y, by_hand.predict(X)
    )


def test_bagging(binary):
    X, y = binary
    bagging = BaggingClassifier(
        small(XGBClassifierLite), n_estimators=5, max_features=0.5, random_state=0
    ).fit(X, y)
    for model, rows, columns in zip(
        bagging.estimators_,
        bagging.estimators_samples_,
        bagging.estimators_features_,
        strict=True,
    ):
        assert model.n_features_in_ == 15
        # drawn rows and weights that count the draws give the same model
        by_hand = clone(model).fit(X[rows][:, columns], y[rows])
        assert_allclose(
            model.predict_proba(X[:, columns]), by_hand.predict_proba(X[:, columns]), atol=1e-9
        )


@pytest.mark.usefixtures("routing")
def test_several_outputs():
    X, targets = load_linnerud(return_X_y=True)
    weight = np.linspace(0.1, 2, len(X))
    model = small(XGBRegressorLite, min_child_weight=0).set_fit_request(sample_weight=True)
    multiple = MultiOutputRegressor(model).fit(X, targets, sample_weight=weight)
    by_hand = [clone(model).fit(X, y, sample_weight=weight).predict(X) for y in targets.T]
    assert_array_equal(multiple.predict(X), np.transpose(by_hand))


# --- inspection ----------------------------------------------------------------------------------


def test_partial_dependence(tmp_path):
    matplotlib.use("Agg")
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = small(XGBRegressorLite, n_estimators=20).fit(X, y)
    display = PartialDependenceDisplay.from_estimator(
        model, X, ["bmi", ("bmi", "s5")], grid_resolution=8
    )
    display.figure_.savefig(tmp_path / "partial_dependence.png")
    found = display.pd_results[0]
    by_hand = [model.predict(X.assign(bmi=value)).mean() for value in found["grid_values"][0]]
    assert_allclose(found["average"][0], by_hand)
    assert found["average"][0][-1] > found["average"][0][0] + 20
    assert display.pd_results[1]["average"].shape == (1, 8, 8)
    matplotlib.pyplot.close(display.figure_)
