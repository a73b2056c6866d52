"""Several labels that each row has or has not: as a loop of classifiers, and as scikit-learn's."""

import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import accuracy_score, f1_score, log_loss, make_scorer, roc_auc_score
from sklearn.neural_network import MLPClassifier

from sklboost import XGBClassifierLite, bin_features
from tests.small_models import small

N_LABELS = 3


def make_data(n_samples=300):
    random = np.random.default_rng(0)
    X = np.round(random.uniform(0, 49, size=(n_samples, 4)))
    scores = np.column_stack([X[:, 0] - 25, X[:, 1] * X[:, 2] / 50 - 20, X[:, 3] - 40])
    return X, (scores + 5 * random.normal(size=scores.shape) > 0).astype(int)


X, Y = make_data()
WEIGHT = np.random.default_rng(1).integers(1, 4, size=len(X)) * 0.75
IS_UNKNOWN = np.random.default_rng(2).random(Y.shape) < [0.1, 0.3, 0.7]
GAPS = np.where(IS_UNKNOWN, np.nan, Y)


# --- as a loop -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "weight"),
    [
        (dict(objective="log_loss", min_child_weight=0), None),
        (dict(base_score=0.3), WEIGHT),
        (dict(objective="binary:focal", focal_gamma=1.5, base_score=0.4), None),
        (dict(objective="hinge"), WEIGHT),
    ],
)
def test_the_same_bits_as_a_loop(settings, weight):
    model = small(XGBClassifierLite, **settings)
    together = copy.copy(model).fit(X, Y, sample_weight=weight)
    alone = [copy.copy(model).fit(X, y, sample_weight=weight) for y in Y.T]
    for method in ("predict", "predict_proba", "decision_function"):
        ours = getattr(together, method)(X)
        stages = list(getattr(together, f"staged_{method}")(X))
        assert_array_equal(stages[-1], ours)
        assert len(stages) == 8
        theirs = [getattr(one, method)(X) for one in alone]
        if method == "predict_proba":
            theirs = [own[:, 1] for own in theirs]
        assert_array_equal(ours, np.column_stack(theirs))
        assert ours.flags.c_contiguous


def test_as_scikit_learn_has_it():
    model = small(XGBClassifierLite).fit(X, Y)
    peer = MLPClassifier(max_iter=300, random_state=0, tol=1e-2).fit(X, Y)
    assert_array_equal(model.classes_, peer.classes_)
    for method in ("predict", "predict_proba"):
        ours, theirs = getattr(model, method)(X), getattr(peer, method)(X)
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
    assert model.score(X, Y) == accuracy_score(Y, model.predict(X)) > 0.7
    assert_array_equal(model.predict(X), model.predict_proba(X) > 0.5)
    assert_array_equal(model.predict(X), model.decision_function(X) > 0)


# --- forms of y ----------------------------------------------------------------------------------

FORMS = {
    "list": lambda y: y.tolist(),
    "booleans": lambda y: y.astype(bool),
    "floats": lambda y: y.astype(np.float32),
    "pandas": pd.DataFrame,
    "pandas boolean": lambda y: pd.DataFrame(y).astype("boolean"),
    "polars": lambda y: pl.DataFrame(y, schema=["a", "b", "c"]),
    "objects": lambda y: y.astype(object),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_containers(form):
    expected = small(XGBClassifierLite).fit(X, Y)
    labels = form(Y)
    model = small(XGBClassifierLite).fit(X, labels, X_val=X, y_val=labels)
    assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    prediction = model.predict(X)
    assert_array_equal(prediction, expected.predict(X))
    if isinstance(labels, np.ndarray) and labels.dtype != object:
        assert prediction.dtype == labels.dtype


def test_a_label_that_no_row_has():
    labels = np.column_stack([Y[:, 0], np.zeros(len(Y), dtype=int), np.ones(len(Y), dtype=int)])
    probabilities = small(XGBClassifierLite).fit(X, labels).predict_proba(X)
    assert 0 < probabilities[:, 1].max() < 1e-6
    assert 1 - 1e-6 < probabilities[:, 2].min() < 1


# --- labels that are not known -------------------------------------------------------------------


def test_each_label_is_learnt_from_its_known_rows():
    bins = bin_features(X)
    together = small(XGBClassifierLite, min_child_weight=0)
    together.fit(bins, GAPS, X_val=bins, y_val=GAPS)
    for label, y in enumerate(GAPS.T):
        known = ~np.isnan(y)
        alone = small(XGBClassifierLite, min_child_weight=0).fit(bins[known], y[known])
        ours, theirs = together.decision_function(bins)[:, label], alone.decision_function(bins)
        assert_allclose(ours, theirs, rtol=1e-7, atol=1e-7)
    probability = together.predict_proba(bins)[~IS_UNKNOWN]
    loss = together.evals_result_["validation_0"]["logloss"][-1]
    assert_allclose(loss, log_loss(Y[~IS_UNKNOWN], probability))
    prediction = together.predict(bins)
    assert prediction.dtype == float
    assert np.mean(prediction == Y) > 0.8


# --- validation ----------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_the_score_counts_known_labels_only(weight):
    model = small(XGBClassifierLite).fit(X, Y)
    prediction, right, rows = model.predict(X), 0.0, 0.0
    for row, labels in enumerate(GAPS):
        known = [column for column in range(N_LABELS) if not IS_UNKNOWN[row, column]]
        own = 1.0 if weight is None else weight[row]
        if known:
            rows += own
            right += own * all(prediction[row, column] == labels[column] for column in known)
    assert IS_UNKNOWN.all(axis=1).any()
    assert_allclose(model.score(X, GAPS, sample_weight=weight), right / rows, rtol=1e-12)
    table = pd.DataFrame(GAPS).astype("boolean")
    assert model.score(X, table, sample_weight=weight) == model.score(X, GAPS, weight)
    assert model.score(X, Y, weight) == accuracy_score(Y, prediction, sample_weight=weight)


def test_metrics():
    names = ["error", "auc", "brier", "logloss"]
    model = XGBClassifierLite(learning_rate=0.5, early_stopping_rounds=3, eval_metric=names)
    model.fit(X[:200], Y[:200], X_val=X[200:], y_val=Y[200:])
    assert model.stop_reason_ == "early_stopping"
    log = model.evals_result_["validation_0"]
    assert min(log["logloss"]) == model.best_score_ == log["logloss"][model.best_iteration_]
    probability, truth = model.predict_proba(X[200:]), Y[200:]
    expected = {
        "error": np.mean((probability > 0.5) != truth),
        "auc": roc_auc_score(truth, probability),
        "brier": np.mean((probability - truth) ** 2),
        "logloss": np.mean([log_loss(y, p) for y, p in zip(truth.T, probability.T, strict=True)]),
    }
    for name, value in expected.items():
        assert_allclose(log[name][model.best_iteration_], value)


def test_scorers_and_functions():
    labels, seen = Y[:, :2], []

    def worst(y_true, y_pred):
        seen.append((y_true, y_pred))
        return np.abs(y_true - y_pred).max()

    metrics = [
        "accuracy",
        "f1_macro",
        "roc_auc",
        make_scorer(f1_score, average="samples", zero_division=1),
        worst,
    ]
    model = small(XGBClassifierLite, eval_metric=metrics).fit(X, labels, X_val=X, y_val=labels)
    log = {name: values[-1] for name, values in model.evals_result_["validation_0"].items()}
    prediction, probability = model.predict(X), model.predict_proba(X)
    assert log["accuracy"] == accuracy_score(labels, prediction)
    assert_allclose(log["f1_macro"], f1_score(labels, prediction, average="macro"))
    assert_allclose(log["roc_auc"], roc_auc_score(labels, probability))
    assert_allclose(log["worst"], np.abs(labels - probability).max())
    assert_array_equal(seen[-1][0], labels)
    assert_array_equal(seen[-1][1], probability)


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "value"),
    [
        (Y + 1, "2.0"),
        (np.where(Y == 1, 0.3, 0.0), "0.3"),
        (np.array(["no", "yes"])[Y], "no"),
        (np.array(["no", "yes"], dtype=object)[Y], "no"),
    ],
)
def test_columns_of_anything_else(labels, value):
    with pytest.raises(
        ValueError, match=rf"^y has 3 columns and the value {value}: .*MultiOutputC"
    ):
        small(XGBClassifierLite).fit(X, labels)
    with pytest.raises(ValueError, match=r"^y of X_val has 3 columns and the value"):
        small(XGBClassifierLite).fit(X, Y, X_val=X, y_val=labels)


def test_probabilities_are_for_the_regressor():
    share = np.linspace(0, 1, len(X))
    with pytest.raises(
        ValueError, match=r"^Unknown label type: .*XGBRegressorLite\(objective='reg:l"
    ):
        small(XGBClassifierLite).fit(X, share)
    with pytest.raises(ValueError, match=r"^Unknown label type: ") as caught:
        small(XGBClassifierLite).fit(X, 2 * share)
    assert "reg:logistic" not in str(caught.value)
    with pytest.raises(ValueError, match=r"XGBRegressorLite\(objective='reg:logistic'\)"):
        small(XGBClassifierLite).fit(X, np.column_stack([share, 1 - share]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("class_weight", "balanced"),
        ("class_weight", {0: 1.0, 1: 2.0}),
        ("scale_pos_weight", 2.0),
        ("calibrated_prior", True),
    ],
)
def test_weights_of_classes_are_for_one_label(name, value):
    with pytest.raises(ValueError, match=rf"^{name}=.*, but y has 3 labels.*MultiOutputClassifier"):
        small(XGBClassifierLite, **{name: value}).fit(X, Y)


def test_base_scores_objectives_and_metrics_are_those_of_labels():
    for given in (1.5, [0.5, 0.5, 1.0]):
        with pytest.raises(ValueError, match="for two classes, or labels, it is a probability"):
            small(XGBClassifierLite, base_score=given).fit(X, Y)
    with pytest.raises(ValueError, match="and more than two classes, not for several labels"):
        small(XGBClassifierLite, objective="multi:softprob").fit(X, Y)
    with pytest.raises(ValueError, match="is a metric for more than two classes, not for several"):
        small(XGBClassifierLite, eval_metric="auc_mu").fit(X, Y, X_val=X, y_val=Y)
    model = small(XGBClassifierLite, base_score=[0.2, 0.5, 0.8]).fit(X, Y)
    assert_allclose(1 / (1 + np.exp(-model.model_.base_score)), [0.2, 0.5, 0.8])


def test_what_does_not_fit_the_first_model():
    first = small(XGBClassifierLite).fit(X, Y)
    classes = np.arange(len(X)) % N_LABELS  # as many raw scores, and the same classes_
    with pytest.raises(ValueError, match=r"for more than two classes .* init_model for several l"):
        small(XGBClassifierLite).fit(X, classes, init_model=first)
    with pytest.raises(ValueError, match=r"for several labels .* init_model for more than two"):
        small(XGBClassifierLite).fit(X, Y, init_model=small(XGBClassifierLite).fit(X, classes))
    for labels, other in ((Y, Y[:, :2]), (Y[:, 0], Y), (Y, Y[:, 0])):
        with pytest.raises(ValueError, match=r"^y of X_val has shape \(300,.* y of the fit has"):
            small(XGBClassifierLite).fit(X, labels, X_val=X, y_val=other)
