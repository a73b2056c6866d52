"""LightGBM's models predict here what they predict there, and are explained."""

import io

import lightgbm
import numpy as np
import pandas as pd
import pytest

from sklboost import ModelFileError, UnknownCategoryWarning, from_lightgbm

N_ROWS = 200
OBJECTIVES = (
    *("regression", "regression_l1", "huber", "fair", "poisson", "quantile", "mape", "gamma"),
    *("tweedie", "cross_entropy", "binary", "multiclass", "multiclassova"),
)
SETTINGS = {
    "plain": {},
    "sampled": dict(bagging_freq=1, bagging_fraction=0.6, lambda_l2=1.0),
    "dart": dict(boosting="dart", drop_rate=0.5, skip_drop=0.2),
    "forest": dict(boosting="rf", bagging_freq=1, bagging_fraction=0.6),
    "not from the mean": dict(boost_from_average=False, learning_rate=1.0),
    "sigmoid": dict(sigmoid=0.5, lambda_l1=0.1),
    "zero is missing": dict(zero_as_missing=True),
    "nothing is missing": dict(use_missing=False),
    "linear": dict(linear_tree=True),
}


def numbers(seed):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(N_ROWS, 3)), 1)
    X[rng.random(X.shape) < 0.2] = 0.0
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def frame(seed):
    rng = np.random.default_rng(seed)
    words = rng.permutation(["é", "zz", "b", "", "last"])
    kinds = pd.Categorical(rng.choice(words, N_ROWS), categories=words)
    sizes = pd.Categorical(rng.choice([5, -3, 11], N_ROWS))
    X = pd.DataFrame(numbers(seed), columns=[*"uvw"]).assign(kind=kinds, size=sizes)
    X.loc[::9, "kind"] = np.nan
    return X


def targets(objective, X, seed):
    score = np.nan_to_num(np.asarray(X)[:, 0].astype(float))
    score = score + 0.3 * np.random.default_rng(seed).normal(size=len(score))
    if objective in ("poisson", "gamma", "tweedie", "mape"):
        return np.exp(score)
    if objective == "cross_entropy":
        return 1 / (1 + np.exp(-score))
    if objective == "binary":
        return score > 0
    return np.digitize(score, [-0.5, 0.5]) if "multi" in objective else score + 50


def train(objective, X, seed=0, **params):
    few = dict(num_leaves=6, min_data_in_leaf=3, min_data_per_group=1, verbose=-1, seed=seed)
    few |= dict(num_class=3) if "multi" in objective else {}
    data = lightgbm.Dataset(X, targets(objective, X, seed))
    return lightgbm.train({"objective": objective, **few, **params}, data, 5)


def unseen(X):
    """Rows of the training, and some that it never had."""
    if isinstance(X, pd.DataFrame):
        return X
    special = np.random.default_rng(1).choice([np.nan, 0.0, -0.0, 1e300, -1e300], (20, X.shape[1]))
    return np.vstack([X, X[:20] + 0.05, special])


def check_same(booster, model, X, objective):
    theirs, found = booster.predict(X), model.predict(X)
    if hasattr(model, "classes_"):
        found = model.predict_proba(X)
        found = found[:, 1] if objective == "binary" else found
    if objective == "multiclassova":
        theirs = theirs / theirs.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, theirs, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(
    ("objective", "setting"),
    [
        *((objective, "plain") for objective in OBJECTIVES),
        *(("regression", setting) for setting in SETTINGS if setting != "plain"),
        *(("binary", setting) for setting in ("dart", "forest", "sigmoid", "not from the mean")),
        *(("multiclassova", setting) for setting in ("forest", "sigmoid", "zero is missing")),
    ],
)
def test_predictions_are_the_same(objective, setting):
    X = numbers(OBJECTIVES.index(objective))
    booster = train(objective, X, **SETTINGS[setting])
    rows = X if setting == "linear" else unseen(X)  # e to the power of 1e300 is out of range
    check_same(booster, from_lightgbm(booster), rows, objective)


@pytest.mark.parametrize(
    ("objective", "max_cat_to_onehot"), [("regression", 1), ("binary", 10), ("multiclass", 1)]
)
def test_categories_of_frames(objective, max_cat_to_onehot):
    X = frame(1)
    booster = train(objective, X, max_cat_to_onehot=max_cat_to_onehot, cat_smooth=1.0)
    model = from_lightgbm(booster)
    check_same(booster, model, X, objective)
    assert sorted(model.categories_) == ["kind", "size"]
    other = X.assign(kind=X["kind"].cat.add_categories("new"))
    other.loc[::2, "kind"] = "new"
    with pytest.warns(UnknownCategoryWarning):
        check_same(booster, model, other, objective)


def test_categories_that_are_integers():
    X = np.column_stack([numbers(0), np.random.default_rng(0).integers(-1, 90, N_ROWS)])
    y = np.sin(X[:, 3]) + np.nan_to_num(X[:, 0])
    params = dict(verbose=-1, min_data_in_leaf=3, min_data_per_group=1, cat_smooth=1.0)
    data = lightgbm.Dataset(X, y, categorical_feature=[3])
    booster = lightgbm.train(params, data, 5)
    model = from_lightgbm(booster)
    X[:40, 3] = [*range(-20, 0), *range(1000, 1020)]
    with pytest.warns(UnknownCategoryWarning):
        check_same(booster, model, X, "regression")


def test_ordered_categories_are_refused():
    X = frame(0).assign(order=pd.Categorical([1, 2] * (N_ROWS // 2), ordered=True))
    with pytest.raises(ModelFileError, match="3 pandas columns, but 2 features are categories"):
        from_lightgbm(train("regression", X))


def test_a_classifier_has_its_labels(tmp_path):
    X = numbers(0)
    labels = np.array(["low", "middle", "high"])[targets("multiclass", X, 0)]
    theirs = lightgbm.LGBMClassifier(n_estimators=4, verbose=-1, random_state=3).fit(X, labels)
    model = from_lightgbm(theirs)
    assert model.classes_.tolist() == theirs.classes_.tolist()
    assert (model.predict(X) == theirs.predict(X)).all()
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), rtol=1e-6)
    assert (model.n_estimators, model.random_state, model.learning_rate) == (4, 3, 0.1)
    path = tmp_path / "model.txt"
    theirs.booster_.save_model(path)
    text = path.read_text()
    for source in (path, str(path), text, text.encode(), io.StringIO(text)):
        same = from_lightgbm(source)
        assert same.classes_.tolist() == [0, 1, 2]
        assert (same.predict_proba(X) == model.predict_proba(X)).all()


def test_the_best_iteration_is_the_last():
    X = numbers(0)
    y = targets("regression", X, 0)
    theirs = lightgbm.LGBMRegressor(n_estimators=200, learning_rate=0.5, verbose=-1)
    stop = lightgbm.early_stopping(5, verbose=False)
    theirs.fit(X[:100], y[:100], eval_X=X[100:], eval_y=y[100:], callbacks=[stop])
    model = from_lightgbm(theirs)
    assert model.best_iteration_ + 1 == theirs.best_iteration_ == model.n_estimators < 200
    np.testing.assert_allclose(model.predict(X), theirs.predict(X), rtol=1e-6)


def square(prediction, data):
    return prediction - data.get_label(), np.ones(len(prediction))


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        ("lambdarank", "objective: must be one of .* and is 'lambdarank"),
        ("cross_entropy_lambda", "objective: must be one of .* and is 'cross_entropy_lambda"),
        (square, "the user's own"),
    ],
)
def test_other_objectives_are_refused_by_name(objective, words):
    X = numbers(0)
    data = lightgbm.Dataset(X, targets("binary", X, 0), group=[N_ROWS])
    booster = lightgbm.train({"objective": objective, "verbose": -1}, data, 2)
    with pytest.raises(ModelFileError, match=words):
        from_lightgbm(booster)


def test_shap_values_are_the_same():
    X = frame(0)
    booster = train("regression", X)  # covers are numbers of rows, which LightGBM takes
    found = from_lightgbm(booster).predict(X, pred_contribs=True)
    np.testing.assert_allclose(found, booster.predict(X, pred_contrib=True), atol=1e-9)


def test_gradients_are_those_of_the_training():
    X = numbers(0)
    booster = train("binary", X)
    y = targets("binary", X, 0)
    model = from_lightgbm(booster)
    share = 1 / (1 + np.exp(-model.model_.base_score[0]))
    np.testing.assert_allclose(share, y.mean(), rtol=1e-6)
    leaves = model.apply(X)[:, 0]
    nodes = model.model_.nodes[: model.model_.tree_starts[1]]
    for leaf in np.unique(leaves):
        rows = leaves == leaf
        np.testing.assert_allclose(nodes.gradient[leaf], (share - y)[rows].sum(), rtol=1e-5)
        np.testing.assert_allclose(nodes.cover[leaf], rows.sum() * share * (1 - share), rtol=1e-5)
    assert "gain of the split: gain = S_L + S_R - S" in str(model.explain_split(0, 0))


def test_constraints_are_taken_over():
    X = numbers(0)[:, :2]
    model = from_lightgbm(train("regression", X, monotone_constraints=[1, 0]))
    assert model.monotone_constraints == [1, 0]
    assert model.verify_monotone().holds


def test_parameters_of_the_training_that_are_not_allowed_here():
    X, y = numbers(0), targets("regression", numbers(0), 0)
    theirs = lightgbm.LGBMRegressor(n_estimators=2, n_jobs=0, num_leaves=5, verbosity=-1).fit(X, y)
    model = from_lightgbm(theirs)
    assert (model.n_jobs, model.max_leaves) == (None, 5)


def test_columns_of_one_value_among_the_categories():
    X = frame(3).assign(number=1.0)
    rare = pd.Categorical(["usual"] * (N_ROWS - 1) + ["rare"])  # which LightGBM leaves out
    X.insert(1, "street", rare)
    y = targets("regression", X[["u"]], 3)
    model = lightgbm.LGBMRegressor(n_estimators=5, min_child_samples=5, verbose=-1).fit(X, y)
    np.testing.assert_allclose(from_lightgbm(model).predict(X), model.predict(X), rtol=1e-9)


def test_columns_of_one_value_that_could_be_either():
    names = [f"c{i}" for i in range(3)]
    X = pd.DataFrame({name: pd.Categorical(["a", "b"] * (N_ROWS // 2)) for name in names})
    X.insert(0, "one", pd.Categorical(["a"] * N_ROWS, categories=["a", "b"]))
    X.insert(2, "other", 1.0)
    model = lightgbm.LGBMRegressor(n_estimators=2, verbose=-1).fit(X, X.c0 == "a")
    with pytest.raises(ModelFileError, match="without columns of one value"):
        from_lightgbm(model)
