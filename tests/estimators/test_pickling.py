"""Pickles of models: small, restored to the last bit, with the version of the package."""

import copy
import pickle

import joblib
import numpy as np
import pytest
import sklearn.exceptions
from numpy.testing import assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier

import sklboost
from sklboost import (
    LearningRateScheduler,
    XGBClassifierLite,
    XGBRegressorLite,
    XGBRFRegressorLite,
)
from sklboost.estimators.saving import InconsistentVersionWarning

RANDOM = np.random.default_rng(0)
X = np.c_[RANDOM.normal(size=(600, 4)), RANDOM.integers(0, 90, 600)]
Y = X[:, 0] * 40 + X[:, 1] ** 2 + X[:, 4]
CLASSES = np.digitize(Y, [20, 60])
SEVERAL = np.c_[Y, -Y, Y**2]
RATES = LearningRateScheduler(list(0.9 ** np.arange(10)))

MODELS = {
    "plain": (XGBRegressorLite(), Y),
    "one split": (XGBRegressorLite(max_depth=1), Y),
    "roots only": (XGBRegressorLite(min_child_weight=1e9), Y),
    "large trees": (XGBRegressorLite(max_depth=0, min_child_weight=0, reg_lambda=0), Y),
    "best first": (XGBRegressorLite(grow_policy="lossguide", max_depth=0, max_leaves=50), Y),
    "pruned": (XGBRegressorLite(gamma=3000, keep_pruned=True), Y),
    "categories": (XGBRegressorLite(categorical_features=[4]), Y),
    "linear leaves": (XGBRegressorLite(linear_tree=True, gamma=10, keep_pruned=True), Y),
    "dart": (XGBRegressorLite(booster="dart", rate_drop=0.3), Y),
    "absolute error": (XGBRegressorLite(objective="reg:absoluteerror"), Y),
    "forest": (XGBRFRegressorLite(), Y),
    "two classes": (XGBClassifierLite(), CLASSES > 0),
    "three classes": (XGBClassifierLite(), CLASSES),
    "vector trees": (XGBRegressorLite(multi_strategy="multi_output_tree"), SEVERAL),
    "labels": (XGBClassifierLite(), SEVERAL > 30),
    "other settings in each round": (XGBRegressorLite(callbacks=[RATES]), Y),
    "large sums": (XGBRegressorLite(), Y * 1e25),
}


def parts(group, name="model"):
    """Yield the arrays and numbers of a group, with their names."""
    for field, value in group._asdict().items():
        if hasattr(value, "_fields"):
            yield from parts(value, f"{name}.{field}")
        else:
            yield f"{name}.{field}", value


def check_same_bits(model, other):
    expected, found = dict(parts(model)), dict(parts(other))
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert isinstance(found[name], type(value)), name  # or a memory map
        if isinstance(value, np.ndarray):
            assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape), name
            assert found[name].tobytes() == value.tobytes(), name
        else:
            assert found[name] == value, name


@pytest.mark.parametrize("name", MODELS)
def test_every_bit_of_a_model_comes_back(name, tmp_path):
    estimator, y = MODELS[name]
    model = estimator.set_params(n_estimators=10).fit(X, y)
    joblib.dump(model, tmp_path / "model")
    for other in (
        *(pickle.loads(pickle.dumps(model, protocol)) for protocol in (2, 5)),
        joblib.load(tmp_path / "model"),
        joblib.load(tmp_path / "model", mmap_mode="r"),
        copy.deepcopy(model),
    ):
        check_same_bits(model.model_, other.model_)
        assert_array_equal(other.predict(X), model.predict(X))
        assert other._trained.model is other.model_  # held twice, pickled once
    as_it_is = len(pickle.dumps(tuple(model.model_)))
    assert len(pickle.dumps(model.model_)) < 0.65 * as_it_is


def test_a_training_that_a_callback_keeps_can_be_copied():
    class Keeper(sklboost.TrainingCallback):
        def after_training(self, training):
            self.training = training

    keeper = Keeper()
    model = XGBRegressorLite(n_estimators=9, early_stopping_rounds=2, callbacks=[keeper])
    model.fit(X, Y)
    other = copy.deepcopy(keeper)
    check_same_bits(other.training.snapshot().model_, keeper.training.snapshot().model_)


def test_a_hundred_trees_take_less_than_in_xgboost():
    y = (CLASSES > 0) ^ (RANDOM.uniform(size=600) < 0.2)
    values = RANDOM.normal(size=(600, 10)) + y[:, np.newaxis] / 4
    model, other = (
        cls(n_estimators=100).fit(values, y) for cls in (XGBClassifierLite, XGBClassifier)
    )
    n_nodes = len(model.model_.nodes)
    assert len(pickle.dumps(model)) < 28 * n_nodes + 4000
    assert len(pickle.dumps(model)) < 0.8 * len(pickle.dumps(other))


@pytest.mark.parametrize(
    "change",
    [
        lambda nodes: nodes.gradient.__setitem__(0, np.pi),  # no integer times a power of two
        lambda nodes: nodes.gradient.__setitem__(0, -0.0),
        lambda nodes: nodes.gradient.__setitem__(slice(None), 0.0),
        lambda nodes: nodes.cover.__setitem__(0, np.nan),
        lambda nodes: nodes.cover.__setitem__(0, 5e-324),
        lambda nodes: nodes.gain.__setitem__(-1, 1.0),  # of a leaf
        lambda nodes: nodes.feature.__setitem__(0, 70_000),
        lambda nodes: nodes.default_left.__setitem__(0, 1),
    ],
)
def test_what_a_user_has_changed_comes_back(change):
    model = XGBRegressorLite(n_estimators=2).fit(X, Y).model_
    change(model.nodes)
    assert pickle.loads(pickle.dumps(model)).nodes.tobytes() == model.nodes.tobytes()


# --- versions ------------------------------------------------------------------------------------


def test_another_version_is_a_warning_that_names_both(monkeypatch, tmp_path):
    model = XGBRegressorLite(n_estimators=1).fit(X, Y)
    pickled = pickle.dumps(model)
    joblib.dump(make_pipeline(StandardScaler(), model), tmp_path / "pipeline")
    monkeypatch.setattr("sklboost.estimators.saving.__version__", "7.8.9")
    text = r"XGBRegressorLite was pickled by sklboost 0\.1\.0 and is unpickled by 7\.8\.9"
    with pytest.warns(InconsistentVersionWarning, match=text) as caught:
        other = pickle.loads(pickled)
    assert [own.filename for own in caught] == [__file__]
    assert issubclass(caught[0].category, sklearn.exceptions.InconsistentVersionWarning)
    assert caught[0].message.original_sklearn_version == "0.1.0"
    assert_array_equal(other.predict(X), model.predict(X))
    pickle.loads(pickle.dumps(other))  # by this version: no warning
    with pytest.warns(InconsistentVersionWarning) as caught:
        joblib.load(tmp_path / "pipeline")
    assert [own.filename for own in caught] == [__file__]


def test_the_version_is_in_the_pickle_only():
    model = XGBRegressorLite(n_estimators=1).fit(X, Y)
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert vars(other).keys() == vars(model).keys()
    assert "_sklboost_version" not in vars(model)
    state = model.__getstate__()
    assert state.pop("_sklboost_version") == sklboost.__version__
    with pytest.warns(InconsistentVersionWarning, match=r"by sklboost before 0\.1\.0"):
        XGBRegressorLite().__setstate__(state)  # of an earlier version
