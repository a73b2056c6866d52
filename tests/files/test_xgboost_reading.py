"""XGBoost's models, of boosters, estimators and files, predict as XGBoost's estimators do."""

import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xgboost

import sklboost
from sklboost import ModelFileError, XGBClassifierLite, XGBRegressorLite, from_xgboost
from sklboost.files.xgboost_reading import boundaries
from tests.files.make_xgboost_models import rows
from tests.files.test_xgboost_writing import (
    CLASS,
    CODES,
    FRAME,
    IS_HIGH,
    LABELS,
    N_ROWS,
    NUMBER,
    SHARE,
    X,
)

_RNG = np.random.default_rng(0)
_NOISE = 100 * _RNG.random(N_ROWS)
_BOTH = np.column_stack([NUMBER, -3 * NUMBER])
_DATA = Path(__file__).parent / "data"
_CODED = {"feature_types": ["float"] * 4 + ["c"], "enable_categorical": True}
_FRAMES = {"enable_categorical": True}


def check_same(ours, theirs, X):
    """Labels are the same, and numbers to the rounding of float32 sums."""
    if isinstance(ours, XGBClassifierLite):
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
        found, known = ours.predict_proba(X), theirs.predict_proba(X)
    else:
        found, known = ours.predict(X), theirs.predict(X)
    np.testing.assert_allclose(found, known, rtol=1e-6, atol=1e-6 * np.abs(known).max())


def check_read(theirs, X):
    """The estimator, its booster and its file are the same model."""
    raw = theirs.get_booster().save_raw("json")
    for source in (theirs, theirs.get_booster(), bytes(raw)):
        ours = from_xgboost(source)
        if type(ours).__name__.startswith(type(theirs).__name__):
            check_same(ours, theirs, X)
    return ours


@pytest.mark.parametrize(
    ("X", "y", "parameters"),
    [
        (X, NUMBER, {}),
        (X, NUMBER, {"missing": 0.5, "learning_rate": 0.05, "reg_lambda": 3.0}),
        (X, 1e6 * NUMBER, {"num_parallel_tree": 3, "subsample": 0.5}),
        (X, NUMBER, {"booster": "dart", "rate_drop": 0.5}),
        (FRAME, NUMBER, {**_FRAMES}),
        (FRAME, NUMBER, {**_FRAMES, "max_cat_to_onehot": 100}),
        (CODES, NUMBER + (CODES[:, -1] % 3 == 0), {**_CODED}),
        (CODES, NUMBER + (CODES[:, -1] % 3 == 0), {**_CODED, "max_cat_to_onehot": 100}),
        (X, _BOTH, {"num_parallel_tree": 2, "subsample": 0.5}),
        (X, _BOTH, {"multi_strategy": "multi_output_tree"}),
        (X, SHARE, {"objective": "count:poisson"}),
        (X, SHARE, {"objective": "reg:gamma"}),
        (X, SHARE, {"objective": "reg:tweedie", "tweedie_variance_power": 1.3}),
        (X, SHARE, {"objective": "reg:pseudohubererror", "huber_slope": 2.0}),
        (X, SHARE, {"objective": "reg:quantileerror", "quantile_alpha": 0.8}),
        (X, _NOISE, {"objective": "reg:quantileerror", "quantile_alpha": [0.01, 0.99]}),
        (X, SHARE, {"objective": "reg:logistic"}),
        (X, SHARE, {"objective": "binary:logistic"}),
        (X, SHARE, {"objective": "reg:absoluteerror"}),
        (FRAME, IS_HIGH, {**_FRAMES}),
        (FRAME, CLASS, {**_FRAMES, "booster": "dart", "rate_drop": 0.3}),
        (X, CLASS, {"multi_strategy": "multi_output_tree"}),
        (X, CLASS, {"num_parallel_tree": 3, "subsample": 0.5}),
        (X, CLASS, {"objective": "multi:softmax"}),
        (X, LABELS, {}),
        (X, LABELS, {"multi_strategy": "multi_output_tree"}),
        (X, IS_HIGH, {"scale_pos_weight": 50}),
        (X, IS_HIGH, {"objective": "binary:hinge"}),
    ],
)
def test_every_kind_of_model(X, y, parameters):
    kind = xgboost.XGBRegressor if y.dtype.kind == "f" else xgboost.XGBClassifier
    theirs = kind(n_jobs=1, n_estimators=5, **parameters).fit(X, y)
    check_read(theirs, X)
    for name in ("learning_rate", "reg_lambda", "huber_slope", "tweedie_variance_power"):
        if name in parameters:
            assert getattr(from_xgboost(theirs), name) == parameters[name]


@pytest.mark.parametrize("kind", ["Regressor", "Classifier"])
def test_forests(kind):
    theirs = getattr(xgboost, f"XGBRF{kind}")(n_estimators=7, n_jobs=1).fit(X, CLASS)
    ours = from_xgboost(theirs)
    assert type(ours).__name__ == f"XGBRF{kind}Lite"
    assert ours.n_estimators == 7
    check_same(ours, theirs, X)


def test_rounds_after_the_best_are_left_out():
    theirs = xgboost.XGBClassifier(n_jobs=1, n_estimators=50, early_stopping_rounds=3)
    theirs.fit(X, CLASS, eval_set=[(X, _RNG.permutation(CLASS))], verbose=False)
    assert theirs.get_booster().num_boosted_rounds() > theirs.best_iteration + 1
    ours = check_read(theirs, X)
    assert ours.n_estimators_ == theirs.best_iteration + 1
    assert ours.best_iteration_ == theirs.best_iteration


def test_float64_values_go_where_rounding_sends_them():
    """XGBoost rounds values to float32; so do thresholds that lie where the rounding turns."""
    theirs = xgboost.XGBRegressor(n_jobs=1, n_estimators=20).fit(X, NUMBER)
    ours = from_xgboost(theirs)
    nodes = ours.model_.nodes
    edges = nodes.threshold[(nodes.left >= 0) & (nodes.feature == 0)]
    near = np.concatenate([np.nextafter(edges, -np.inf), edges, np.nextafter(edges, np.inf)])
    rows = np.full((len(near), X.shape[1]), np.nan)
    rows[:, 0] = near
    np.testing.assert_array_equal(ours.predict(rows), ours.predict(rows.astype(np.float32)))
    check_same(ours, theirs, rows)


@pytest.mark.parametrize("threshold", [0.1, -0.1, 0.0, 1e-45, 3.4e38, np.inf, -np.inf, 1.0])
def test_boundaries(threshold):
    threshold = np.float32(threshold)
    edge = boundaries(np.array([threshold], dtype=np.float64))[0]
    with np.errstate(over="ignore"):
        for value in (np.nextafter(edge, -np.inf), edge, np.nextafter(edge, np.inf)):
            assert (value < edge) == (np.float32(value) < threshold)


def test_codes_that_training_has_not():
    """Unseen and invalid codes go where XGBoost sends them, and missing ones where they went."""
    y = NUMBER + (CODES[:, -1] % 3 == 0)
    for categories in ({"max_cat_to_onehot": 100}, {"max_cat_to_onehot": 1}):
        theirs = xgboost.XGBRegressor(n_jobs=1, n_estimators=5, **_CODED, **categories)
        theirs.fit(CODES, y)
        others = CODES.copy()
        others[:, -1] = _RNG.choice([13, 64, 3000, -1, 1e9, 2.7, np.nan], N_ROWS)
        check_same(from_xgboost(theirs), theirs, others)


def test_values_of_coded_categories_are_not_known():
    y = NUMBER + (CODES[:, -1] % 3 == 0)
    ours = from_xgboost(xgboost.XGBRegressor(n_jobs=1, n_estimators=5, **_CODED).fit(CODES, y))
    frame = pd.DataFrame(CODES)
    frame[4] = pd.Categorical([*"ab"] * (N_ROWS // 2))
    with pytest.raises(ValueError, match=r"held codes of categories at fit.*\.cat\.codes"):
        ours.predict(frame)


@pytest.mark.parametrize("version", ["2.1", "3.2", "3.4"])
def test_old_files(version):
    """Files that these versions have written are read for ever."""
    known = json.loads((_DATA / f"xgboost-{version}.json").read_text())
    assert len(known) == 7
    for name, predictions in known.items():
        model = from_xgboost(_DATA / name)
        is_classifier = isinstance(model, XGBClassifierLite)
        predict = model.predict_proba if is_classifier else model.predict
        np.testing.assert_allclose(predict(rows()[:20]), predictions, rtol=1e-6, atol=1e-7)


def test_shap_values_need_covers():
    """XGBoost 2 has none for trees of several outputs; rows to compare with stand in for them."""
    model = from_xgboost(_DATA / "xgboost-2.1-vectors.ubj")
    with pytest.raises(ValueError, match="Pass X_background"):
        model.shap_values(rows()[:3])
    values = model.shap_values(rows()[:3], X_background=rows()[3:20])
    known = model.predict(rows()[:3]) - model.predict(rows()[3:20]).mean(axis=0)
    np.testing.assert_allclose(values.sum(axis=1), known, atol=1e-6)
    assert "nan" not in str(model.explain_prediction(rows()[:1], full=False))


def damaged(path, value):
    """Return a file of XGBoost with another value at a path of its keys."""
    document = json.loads((_DATA / "xgboost-3.2-one_hot.json").read_text())
    *parents, last = path
    part = document
    for key in parents:
        part = part[key]
    part[last] = value
    return json.dumps(document).encode()


_LEARNER = ["learner", "learner_model_param"]
_TREE = ["learner", "gradient_booster", "model", "trees", 0]


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        (["version"], [0, 90, 0], "version: models before XGBoost 1.7"),
        ([*_LEARNER, "num_feature"], "2147483647", "num_feature"),
        ([*_LEARNER, "base_score"], "[1E0,nan]", "base_score"),
        (["learner", "objective", "name"], "reg:mine", "objective.name"),
        ([*_TREE, "left_children", 0], 99, r"trees\[0\]"),
        ([*_TREE, "right_children", 1], -1, r"trees\[0\]: a node has one child"),
        ([*_TREE, "split_indices", 0], 3, r"trees\[0\]: splits on a feature that does not exist"),
        ([*_TREE, "sum_hessian", 0], -1.0, "sum_hessian"),
        ([*_TREE, "split_conditions", 0], "x", "split_conditions"),
        ([*_TREE, "base_weights", 0], float("inf"), "base_weights"),
        ([*_TREE, "categories_sizes", 0], 10, "categories_sizes"),
        ([*_TREE, "tree_param", "size_leaf_vector"], "3", "size_leaf_vector"),
    ],
)
def test_damaged_files(path, value, place):
    with pytest.raises(ModelFileError, match=place):
        from_xgboost(damaged(path, value))


def test_dart_has_a_weight_for_each_tree():
    booster = xgboost.XGBRegressor(booster="dart", n_estimators=3).fit(X, NUMBER).get_booster()
    document = json.loads(booster.save_raw("json"))
    document["learner"]["gradient_booster"]["weight_drop"].pop()
    with pytest.raises(ModelFileError, match="dart needs a weight for each tree"):
        from_xgboost(json.dumps(document).encode())


@pytest.mark.parametrize("digits", ["9" * 10**6, "0" * 30, "9" * 19, "-1", "²", ""])
def test_counts_are_short(digits):
    """What is checked is the number that is used."""
    for name in ("num_feature", "num_class"):
        with pytest.raises(ModelFileError, match=f"{name}: must be an integer from . to"):
            from_xgboost(damaged([*_LEARNER, name], digits))


def test_load_model_reads_files_of_xgboost(tmp_path):
    path = tmp_path / "model.ubj"
    theirs = xgboost.XGBClassifier(n_jobs=1, n_estimators=3).fit(FRAME[[*"abcd"]], CLASS)
    theirs.save_model(path)
    for ours in (sklboost.load_model(path), XGBClassifierLite().load_model(path)):
        check_same(ours, theirs, FRAME[[*"abcd"]])
        assert ours.feature_names_in_.tolist() == [*"abcd"]
        assert ours.classes_.tolist() == [0, 1, 2]


def test_settings_follow_from_the_trees():
    """Of a file nothing else says what learning rate and lambda were; sums of gradients follow."""
    settings = dict(n_estimators=5, learning_rate=0.07, reg_lambda=2.5)
    theirs = xgboost.XGBRegressor(n_jobs=1, **settings).fit(X, NUMBER)
    ours = from_xgboost(bytes(theirs.get_booster().save_raw("ubj")))
    assert (ours.learning_rate, ours.reg_lambda) == (0.07, 2.5)
    nodes = ours.model_.nodes[: ours.model_.tree_starts[1]]
    splits = nodes.left >= 0
    sums = nodes.gradient[nodes.left[splits]] + nodes.gradient[nodes.right[splits]]
    np.testing.assert_allclose(nodes.gradient[splits], sums, atol=1e-4)
    residuals = theirs.intercept_ - NUMBER
    np.testing.assert_allclose(nodes.gradient[0], residuals.sum(), atol=1e-4)


def test_unknown_sums_are_said():
    theirs = xgboost.XGBRegressor(n_jobs=1, n_estimators=2, reg_alpha=1.0).fit(X, NUMBER)
    ours = from_xgboost(theirs)
    assert np.isnan(ours.model_.nodes.gradient).all()
    for node in (0, int(np.flatnonzero(ours.model_.nodes.left < 0)[0])):
        text = str(ours.explain_split(0, node))
        assert "nan" not in text
        assert "Sums of gradients are not known" in text


@pytest.mark.parametrize(
    ("parameters", "labels", "reason"),
    [
        ({"booster": "gblinear"}, IS_HIGH, "booster='gblinear' has no trees"),
        ({"objective": "reg:squaredlogerror"}, IS_HIGH, "reg:squaredlogerror"),
        ({"objective": "binary:logitraw"}, IS_HIGH, "binary:logitraw"),
        ({"objective": "binary:logistic"}, np.zeros(N_ROWS), "the single class 0"),
        ({"objective": "binary:logistic"}, np.ones(N_ROWS), "the single class 1"),
    ],
)
def test_what_cannot_be_represented(parameters, labels, reason):
    booster = xgboost.train({"nthread": 1, **parameters}, xgboost.DMatrix(X, labels), 2)
    with pytest.raises(ModelFileError, match=reason):
        from_xgboost(booster)


@pytest.mark.parametrize(
    ("theirs", "X", "y"),
    [
        (xgboost.XGBRegressor(), X, NUMBER),
        (xgboost.XGBRegressor(reg_alpha=1.0), X, NUMBER),
        (xgboost.XGBRegressor(**_CODED), CODES, NUMBER),
        (xgboost.XGBClassifier(booster="dart", rate_drop=0.5, **_FRAMES), FRAME, CLASS),
        (xgboost.XGBClassifier(multi_strategy="multi_output_tree"), X, CLASS),
    ],
)
def test_what_estimators_do_works(theirs, X, y, tmp_path):
    """SHAP values add up, derivations are written, files and pickles keep the model."""
    ours = from_xgboost(theirs.set_params(n_jobs=1, n_estimators=3).fit(X, y))
    margins = ours.predict(X, output_margin=True)
    np.testing.assert_allclose(
        ours.predict(X, pred_contribs=True).sum(axis=-1), margins, rtol=1e-6, atol=1e-6
    )
    row = X[:1] if isinstance(X, np.ndarray) else X.iloc[:1]
    np.testing.assert_array_equal(ours.predict(row), ours.predict(X)[:1])
    texts = [str(ours.explain_split(0, node)) for node in range(5)]
    texts += [str(ours.explain_prediction(row)), str(ours.explain_prediction(row, full=True))]
    assert not any("nan" in text for text in texts)
    assert len(ours.trees_to_dataframe()) == len(ours.model_.nodes)
    path = tmp_path / "model.json"
    ours.save_model(path)
    for copy in (sklboost.load_model(path), pickle.loads(pickle.dumps(ours))):
        np.testing.assert_array_equal(copy.predict(X), ours.predict(X))
    check_same(ours, theirs, X)


def test_files_of_ours_have_the_model_for_xgboost(tmp_path):
    """As XGBoost reads it; `load_model` reads the other part of the file."""
    ours = XGBRegressorLite(n_estimators=3).fit(X, NUMBER)
    for name in ("model.json", "model.ubj"):
        ours.save_model(tmp_path / name)
        for source in (tmp_path / name, (tmp_path / name).read_bytes()):
            np.testing.assert_allclose(from_xgboost(source).predict(X), ours.predict(X), rtol=1e-5)


@pytest.mark.parametrize("given", [{"max_bin": 70_000}, {"max_leaves": 1}])
def test_parameters_of_the_training_that_are_not_allowed_here(given):
    theirs = xgboost.XGBRegressor(n_jobs=1, n_estimators=2, max_depth=3, **given).fit(X, NUMBER)
    ours = from_xgboost(theirs)
    check_same(ours, theirs, X)
    (name,) = given
    assert getattr(ours, name) == getattr(XGBRegressorLite(), name)
    assert ours.max_depth == 3


def test_new_rounds_continue_a_model():
    theirs = xgboost.XGBRegressor(n_jobs=1, n_estimators=5).fit(X, NUMBER)
    ours = from_xgboost(theirs)
    more = XGBRegressorLite(n_estimators=5).fit(X, NUMBER, init_model=ours)
    np.testing.assert_array_equal(more.predict(X, iteration_range=(0, 5)), ours.predict(X))
    errors = [np.mean((model.predict(X) - NUMBER) ** 2) for model in (ours, more)]
    assert errors[1] < 0.5 * errors[0]
