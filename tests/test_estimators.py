"""Two citizens of scikit-learn: its own checks, and drop-in use in its tools."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import VotingClassifier
from sklearn.inspection import permutation_importance
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklboost import XGBClassifierLite, XGBRegressorLite

ESTIMATORS = [XGBRegressorLite, XGBClassifierLite]
COLUMNS = dict(colsample_bytree=0.7, colsample_bylevel=0.8, colsample_bynode=0.8)
SETTINGS = [
    {},
    dict(n_estimators=5, grow_policy="lossguide", max_depth=0, max_leaves=8, n_jobs=2),
    dict(n_estimators=5, max_bin=16, pruning="full", gamma=0.1, reg_alpha=0.1, random_state=0),
    dict(n_estimators=5, subsample=0.5, random_state=0) | COLUMNS,
    dict(n_estimators=5, subsample=0.5, sampling_method="gradient_based", random_state=0),
]


@parametrize_with_checks([estimator(**given) for estimator in ESTIMATORS for given in SETTINGS])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def regression():
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def binary():
    return load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="module")
def multiclass():
    return load_iris(return_X_y=True)


def small(estimator, **parameters):
    return estimator(**(dict(n_estimators=8, max_depth=3) | parameters))


def outputs(model, X):
    return model.predict_proba(X) if is_classifier(model) else model.predict(X)


# --- learning ------------------------------------------------------------------------------------


def test_regressor_learns(regression):
    assert is_regressor(XGBRegressorLite())
    X_train, X_test, y_train, y_test = train_test_split(*regression, random_state=0)
    model = XGBRegressorLite(n_estimators=60, learning_rate=0.1, max_depth=3).fit(X_train, y_train)
    assert model.score(X_train, y_train) > 0.75
    assert r2_score(y_test, model.predict(X_test)) > 0.25
    assert model.score(X_test, y_test) == r2_score(y_test, model.predict(X_test))


@pytest.mark.parametrize("data", ["binary", "multiclass"])
def test_classifier_learns(data, request):
    X, y = request.getfixturevalue(data)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    model = XGBClassifierLite(n_estimators=40, learning_rate=0.2, max_depth=3).fit(X_train, y_train)
    assert model.score(X_test, y_test) > 0.9
    assert log_loss(y_test, model.predict_proba(X_test)) < 0.3
    assert_array_equal(model.classes_, np.unique(y))


def test_more_rounds_never_raise_the_training_loss(binary):
    X, y = binary
    losses = [
        log_loss(y, XGBClassifierLite(n_estimators=n, max_depth=2).fit(X, y).predict_proba(X))
        for n in (1, 3, 10, 30)
    ]
    assert sorted(losses, reverse=True) == losses


# --- tools ---------------------------------------------------------------------------------------


def test_pipeline_and_cross_validation(binary):
    pipeline = make_pipeline(StandardScaler(), small(XGBClassifierLite))
    scores = cross_val_score(pipeline, *binary, cv=3)
    assert scores.min() > 0.9
    # trees do not care for the scale
    alone = cross_val_predict(small(XGBClassifierLite), *binary, cv=3)
    assert np.mean(alone == cross_val_predict(pipeline, *binary, cv=3)) > 0.98


def test_grid_search(regression):
    grid = {"max_depth": [1, 2], "learning_rate": [0.01, 0.5]}
    search = GridSearchCV(small(XGBRegressorLite), grid, cv=3).fit(*regression)
    assert search.best_params_["learning_rate"] == 0.5
    assert search.best_estimator_.get_params()["learning_rate"] == 0.5


def test_in_other_estimators(binary):
    X, y = binary
    calibrated = CalibratedClassifierCV(small(XGBClassifierLite), cv=2).fit(X, y)
    assert calibrated.score(X, y) > 0.9
    voting = VotingClassifier([("a", small(XGBClassifierLite)), ("b", small(XGBClassifierLite))])
    assert voting.set_params(voting="soft").fit(X, y).score(X, y) > 0.9
    result = permutation_importance(small(XGBClassifierLite).fit(X, y), X, y, n_repeats=1)
    assert result.importances_mean.max() > 0


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_clone_and_parameters(estimator, binary):
    model = small(estimator, gamma=0.5).fit(*binary)
    copied = clone(model)
    assert copied.get_params() == model.get_params()
    assert not hasattr(copied, "n_features_in_")
    assert "gamma=0.5" in repr(copied)
    assert copied.set_params(max_depth=1) is copied
    assert copied.fit(*binary).trees_to_dataframe().groupby("Tree").size().max() == 3


@pytest.mark.parametrize("data", ["regression", "binary", "multiclass"])
def test_pickle_joblib_and_deepcopy(data, request, tmp_path):
    X, y = request.getfixturevalue(data)
    estimator = XGBRegressorLite if data == "regression" else XGBClassifierLite
    model = small(estimator).fit(X, y)
    joblib.dump(model, tmp_path / "model.joblib")
    for copied in (
        pickle.loads(pickle.dumps(model)),
        joblib.load(tmp_path / "model.joblib"),
        joblib.load(tmp_path / "model.joblib", mmap_mode="r"),
        copy.deepcopy(model),
    ):
        assert_array_equal(outputs(copied, X), outputs(model, X))
        assert_array_equal(copied.apply(X), model.apply(X))
        pd.testing.assert_frame_equal(copied.trees_to_dataframe(), model.trees_to_dataframe())


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fitting_again_forgets_the_first_fit(estimator, binary):
    X, y = binary
    fresh = small(estimator).fit(X[:100, :5], y[:100])
    model = small(estimator).fit(pd.DataFrame(X).add_prefix("c"), y).fit(X[:100, :5], y[:100])
    assert model.n_features_in_ == 5
    assert not hasattr(model, "feature_names_in_")
    assert_array_equal(outputs(model, X[:, :5]), outputs(fresh, X[:, :5]))


def test_same_model_each_time(regression):
    for random_state in (None, 3):
        first, second = (
            small(XGBRegressorLite, random_state=random_state).fit(*regression) for _ in range(2)
        )
        assert_array_equal(first.predict(regression[0]), second.predict(regression[0]))


def test_random_state_instance(regression):
    model = small(XGBRegressorLite, random_state=np.random.RandomState(0)).fit(*regression)
    assert_array_equal(model.predict(regression[0]).shape, regression[1].shape)


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 8, -1, -2])
def test_n_jobs(n_jobs, regression):
    X, y = regression
    expected = small(XGBRegressorLite, n_jobs=1).fit(X, y).predict(X)
    assert_array_equal(small(XGBRegressorLite, n_jobs=n_jobs).fit(X, y).predict(X), expected)


def test_verbose_writes_the_training_loss(regression, capsys):
    small(XGBRegressorLite).fit(*regression)
    assert capsys.readouterr().out == ""
    small(XGBRegressorLite, n_estimators=6, verbose=2).fit(*regression)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:4] for line in lines] == [
        ["round", str(n), "of", "6:"] for n in (2, 4, 6)
    ]
    losses = [float(line.split()[-1]) for line in lines]
    assert sorted(losses, reverse=True) == losses


# --- labels --------------------------------------------------------------------------------------

LABELS = {
    "text": np.array(["no", "yes"]),
    "objects": np.array(["zebra", "ant"], dtype=object),
    "booleans": np.array([True, False]),
    "integers": np.array([7, -3]),
    "unsigned": np.array([200, 3], dtype=np.uint8),
    "whole floats": np.array([2.0, 1.0]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_kind(kind, binary):
    X, y = binary
    labels = LABELS[kind][y]
    model = small(XGBClassifierLite).fit(X, labels)
    assert_array_equal(model.classes_, np.unique(LABELS[kind]))
    prediction = model.predict(X)
    assert prediction.dtype == labels.dtype
    assert np.mean(prediction == labels) > 0.95
    assert_array_equal(prediction, model.classes_[model.predict_proba(X).argmax(axis=1)])
    # the sign of the scores, and the order of the columns, follow classes_
    positive = labels == model.classes_[1]
    assert model.decision_function(X)[positive].mean() > 1
    assert model.predict_proba(X)[positive, 1].mean() > 0.8


def test_labels_from_pandas(multiclass):
    X, y = multiclass
    names = np.array(["setosa", "versicolor", "virginica"])
    expected = small(XGBClassifierLite).fit(X, names[y]).predict(X)
    for labels in (pd.Series(names[y]), pd.Series(names[y], dtype="category"), list(names[y])):
        assert_array_equal(small(XGBClassifierLite).fit(X, labels).predict(X), expected)


def test_probabilities_are_probabilities(binary, multiclass):
    for X, y in (binary, multiclass):
        model = small(XGBClassifierLite, n_estimators=50).fit(X, y)
        probabilities = model.predict_proba(X)
        assert probabilities.shape == (len(y), len(model.classes_))
        assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
        assert probabilities.min() >= 0
        raw = model.decision_function(X)
        if len(model.classes_) == 2:
            assert raw.shape == (len(y),)
            assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-raw)), rtol=1e-12)
        else:
            exponentials = np.exp(raw)
            expected = exponentials / exponentials.sum(axis=1, keepdims=True)
            assert_allclose(probabilities, expected, rtol=1e-12)


# --- data ----------------------------------------------------------------------------------------


def as_kinds(X):
    """Give the same numbers (exact in float32) in every form that estimators take."""
    names = [f"c{i}" for i in range(X.shape[1])]
    read_only = X.copy()
    read_only.setflags(write=False)
    padded = np.zeros((2 * len(X), X.shape[1] + 3))
    padded[::2, 1:-2] = X
    frame = pd.DataFrame(X, columns=names)
    return {
        "float64": X,
        "float32": X.astype(np.float32),
        "big-endian": X.astype(">f8"),
        "read-only": read_only,
        "Fortran order": np.asfortranarray(X),
        "strided": padded[::2, 1:-2],
        "reversed": X[::-1, ::-1].copy()[::-1, ::-1],
        "list": X.tolist(),
        "objects": X.astype(object),
        "pandas": frame,
        "pandas float32": frame.astype(np.float32),
        "pandas nullable": frame.convert_dtypes(),
        "polars": pl.DataFrame(X, schema=names),
        "pyarrow": pa.table(dict(zip(names, X.T, strict=True))),
    }


@pytest.mark.parametrize("kind", as_kinds(np.zeros((2, 2))))
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_same_model_from_every_form_of_the_data(estimator, kind, binary):
    X, y = binary
    X = np.asarray(X[:, :6], dtype=np.float32).astype(float)
    expected = small(estimator).fit(X, y)
    data = as_kinds(X)[kind]
    model = small(estimator).fit(data, y)
    assert_array_equal(outputs(model, data), outputs(expected, X))
    assert_array_equal(model.apply(data), expected.apply(X))
    own, other = model.trees_to_dataframe(), expected.trees_to_dataframe()
    assert_array_equal(own["Split"], other["Split"])


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, bool])
def test_integers_and_booleans(dtype, binary):
    X, y = binary
    X = (X[:, :5] > X[:, :5].mean(axis=0)).astype(dtype)
    model, expected = (small(XGBClassifierLite).fit(data, y) for data in (X, X.astype(float)))
    assert_array_equal(outputs(model, X), outputs(expected, X.astype(float)))


def test_large_integers_and_timestamps_are_not_rounded_to_float32():
    # neighbours that are the same number in float32
    start = 1_700_000_000
    X = start + np.arange(40)[:, np.newaxis]
    assert len(np.unique(X.astype(np.float32))) == 1
    y = (np.arange(40) % 8 < 4).astype(float)
    model = XGBRegressorLite(n_estimators=1, learning_rate=1.0, reg_lambda=0, max_depth=0)
    for data in (X, X.astype(float)):
        assert_allclose(model.fit(data, y).predict(data), y)
    assert model.trees_to_dataframe()["Split"].dropna().isin(start + np.arange(40) - 0.5).all()


def test_float32_model_on_float64_rows():
    # 0.1 as float32 is larger than 0.1: thresholds are between the numbers that were seen
    X = np.array([[0.1], [0.2], [0.3], [0.4]], dtype=np.float32)
    model = XGBRegressorLite(n_estimators=1, max_depth=0).fit(X, [0.0, 1.0, 0.0, 1.0])
    assert_array_equal(model.predict(X), model.predict(X.astype(float)))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_inputs_are_left_as_they_were(estimator, binary):
    X, y = (array.copy() for array in binary)
    weight = np.linspace(0, 1, len(y))
    before = X.copy(), y.copy(), weight.copy()
    outputs(small(estimator).fit(X, y, sample_weight=weight), X)
    for array, expected in zip((X, y, weight), before, strict=True):
        assert_array_equal(array, expected)


def test_missing_values_are_learnt_from():
    X = np.array([[1.0], [2.0], [np.nan], [3.0], [np.nan], [np.nan]])
    y = np.array([0.0, 0.0, 5.0, 0.0, 5.0, 5.0])
    model = XGBRegressorLite(n_estimators=1, learning_rate=1.0, reg_lambda=0.0).fit(X, y)
    assert_allclose(model.predict(X), y, atol=1e-6)


def test_missing_values_at_predict_only_go_right(regression):
    X, y = regression
    model = small(XGBRegressorLite, n_estimators=1, max_depth=1).fit(X, y)
    top = model.trees_to_dataframe().iloc[0]
    assert top["Missing"] == top["No"]
    assert_array_equal(model.apply(np.full((1, X.shape[1]), np.nan)), [[2]])


def leaf_covers(X, y, **parameters):
    """Give the covers of the leaves of one tree that splits wherever there is a cut."""
    free = dict(n_estimators=1, max_depth=0, reg_lambda=0.0, min_child_weight=0.0)
    weight = parameters.pop("sample_weight", None)
    model = XGBRegressorLite(**free, **parameters).fit(X, y, sample_weight=weight)
    frame = model.trees_to_dataframe()
    return frame.loc[frame["Feature"] == "Leaf", "Cover"].to_numpy()


@pytest.mark.interpreted
def test_more_values_than_bins_are_cut_into_bins_of_equal_weight():
    x = np.exp(np.linspace(0.0, 20.0, 96))[:, np.newaxis]  # skewed: weight counts, not distance
    y = np.arange(96.0) ** 2
    assert_allclose(leaf_covers(x, y, max_bin=96), 1.0)
    assert_allclose(leaf_covers(x, y, max_bin=8), 12.0, atol=1)
    assert_allclose(leaf_covers(x, y, max_bin=2), 48.0, atol=1)
    weight = np.where(np.arange(96) < 48, 3.0, 1.0)
    covers = leaf_covers(x, y, max_bin=8, sample_weight=weight)
    assert len(covers) == 8
    assert_allclose(covers, weight.sum() / 8, atol=3)
    # a value that is most of the weight has a bin of its own, and the others still have all theirs
    heavy = np.where(np.arange(96) == 40, 1000.0, 1.0)
    covers = leaf_covers(x, y, max_bin=8, sample_weight=heavy)
    assert len(covers) == 8
    assert 1000.0 in covers


@pytest.mark.interpreted
def test_missing_values_have_one_of_the_bins():
    x = np.linspace(0.0, 1.0, 60)[:, np.newaxis]
    x[::6] = np.nan
    y = np.where(np.isnan(x[:, 0]), -50.0, np.arange(60.0) ** 2)
    covers = leaf_covers(x, y, max_bin=6)
    assert len(covers) == 6
    assert_allclose(covers, 10.0, atol=1)


def test_single_row_and_single_value():
    model = XGBRegressorLite(n_estimators=3).fit([[1.0]], [4.0])
    assert_allclose(model.predict([[1.0], [np.nan], [-9.0]]), 4.0)
    model = XGBRegressorLite(n_estimators=3).fit(np.arange(6.0).reshape(-1, 1), np.full(6, 2.5))
    assert_allclose(model.predict([[0.0], [100.0]]), 2.5)


# --- weights -------------------------------------------------------------------------------------


def test_a_scalar_weight_is_a_weight_for_every_row(regression):
    X, y = regression
    expected = small(XGBRegressorLite).fit(X, y, sample_weight=np.full(len(y), 2.0))
    assert_array_equal(
        small(XGBRegressorLite).fit(X, y, sample_weight=2.0).predict(X), expected.predict(X)
    )


def test_weights_all_equal_change_nothing_without_regularisation(regression):
    X, y = regression
    settings = dict(reg_lambda=0.0, min_child_weight=0.0)
    plain = small(XGBRegressorLite, **settings).fit(X, y).predict(X)
    for scale in (0.25, 1.0, 8.0):
        weighted = small(XGBRegressorLite, **settings).fit(X, y, sample_weight=[scale] * len(y))
        assert_allclose(weighted.predict(X), plain, rtol=1e-6)


def test_heavier_rows_are_fitted_better(binary):
    X, y = binary
    weight = np.where(y == 1, 20.0, 1.0)
    plain, weighted = (
        small(XGBClassifierLite, n_estimators=2, max_depth=1).fit(X, y, sample_weight=w)
        for w in (None, weight)
    )
    assert np.mean(weighted.predict(X)[y == 1]) > np.mean(plain.predict(X)[y == 1])


# --- looking inside ------------------------------------------------------------------------------


def test_staged_predict_ends_with_predict(regression, binary, multiclass):
    for estimator, (X, y) in (
        (XGBRegressorLite, regression),
        (XGBClassifierLite, binary),
        (XGBClassifierLite, multiclass),
    ):
        model = small(estimator).fit(X, y)
        stages = list(model.staged_predict(X))
        assert len(stages) == 8
        assert_array_equal(stages[-1], model.predict(X))
        for n_estimators in (1, 5):
            shorter = small(estimator, n_estimators=n_estimators).fit(X, y)
            assert_array_equal(stages[n_estimators - 1], shorter.predict(X))


def test_stages_stay_as_they_were_yielded(regression):
    X, y = regression
    stages = small(XGBRegressorLite).fit(X, y).staged_predict(X)
    first = next(stages)
    before = first.copy()
    next(stages)
    assert_array_equal(first, before)


def test_staged_predict_may_be_left_half_way(regression):
    X, y = regression
    model = small(XGBRegressorLite).fit(X, y)
    assert len(next(model.staged_predict(X))) == len(y)
    one, other = model.staged_predict(X), model.staged_predict(X)
    for a, b in zip(one, other, strict=True):  # two at a time
        assert_array_equal(a, b)


def test_apply_gives_leaves(multiclass):
    X, y = multiclass
    model = small(XGBClassifierLite).fit(X, y)
    leaves = model.apply(X)
    assert leaves.shape == (150, 24)
    assert np.issubdtype(leaves.dtype, np.integer)
    frame = model.trees_to_dataframe()
    known = set(frame.loc[frame["Feature"] == "Leaf", "ID"])
    assert {f"{tree}-{node}" for row in leaves for tree, node in enumerate(row)} <= known


def test_trees_of_a_multiclass_model_take_turns(multiclass):
    X, y = multiclass
    model = small(XGBClassifierLite, n_estimators=2, base_score=0.0).fit(X, y)
    frame = model.trees_to_dataframe().set_index(["Tree", "Node"])
    raw = np.zeros((len(y), 3))
    for tree, nodes in enumerate(model.apply(X).T):
        raw[:, tree % 3] += frame.loc[[(tree, node) for node in nodes], "Gain"].to_numpy()
    assert_allclose(model.decision_function(X), raw, rtol=1e-12, atol=1e-12)


def test_table_of_the_trees(binary):
    X, y = binary
    names = [f"cell {i}" for i in range(X.shape[1])]
    model = small(XGBClassifierLite).fit(pd.DataFrame(X, columns=names), y)
    assert_array_equal(model.feature_names_in_, names)
    frame = model.trees_to_dataframe()
    expected = ["Tree", "Node", "ID", "Feature", "Split", "Yes", "No", "Missing"]
    assert list(frame.columns) == [*expected, "Gain", "Cover", "Category", "Similarity", "Output"]
    is_leaf = frame["Feature"] == "Leaf"
    assert set(frame["Feature"][~is_leaf]) <= set(names)
    assert list(frame["ID"]) == [f"{t}-{n}" for t, n in zip(frame.Tree, frame.Node, strict=True)]
    assert frame.loc[is_leaf, ["Split", "Yes", "No", "Missing"]].isna().all(axis=None)
    assert frame.loc[~is_leaf, ["Split", "Yes", "No", "Missing"]].notna().all(axis=None)
    assert frame["Category"].isna().all()
    assert frame[["Gain", "Cover", "Similarity", "Output"]].notna().all(axis=None)
    leaves = frame[is_leaf]
    assert_allclose(leaves["Gain"], model.learning_rate * leaves["Output"], rtol=1e-12)
    # the squares of the definition, lambda = 1
    sums = frame["Output"] * (frame["Cover"] + 1)
    assert_allclose(frame["Similarity"], sums**2 / (frame["Cover"] + 1), rtol=1e-9, atol=1e-12)
    assert list(small(XGBClassifierLite).fit(X, y).trees_to_dataframe()["Feature"][~is_leaf]) == [
        f"f{names.index(name)}" for name in frame["Feature"][~is_leaf]
    ]


def test_feature_importances_are_average_gains(regression):
    X, y = regression
    X = np.column_stack([X, np.zeros(len(y))])
    model = small(XGBRegressorLite).fit(X, y)
    frame = model.trees_to_dataframe()
    gains = frame[frame["Feature"] != "Leaf"].groupby("Feature")["Gain"].mean()
    expected = np.array([gains.get(f"f{i}", 0.0) for i in range(11)])
    assert_allclose(model.feature_importances_, expected / expected.sum(), rtol=1e-9)
    assert model.feature_importances_[10] == 0
    assert model.feature_importances_.shape == (11,)


def test_feature_importances_of_trees_without_a_split():
    model = XGBRegressorLite(n_estimators=2).fit(np.zeros((5, 2)), np.arange(5.0))
    assert_array_equal(model.feature_importances_, [0.0, 0.0])
