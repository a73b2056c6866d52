"""Models of ours predict in LightGBM what they predict here."""

import json

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost

from sklboost import (
    Loss,
    XGBClassifierLite,
    XGBRegressorLite,
    from_lightgbm,
    from_xgboost,
)

N_ROWS = 300
_RNG = np.random.default_rng(0)
X = np.round(_RNG.normal(size=(N_ROWS, 3)), 1)
X[_RNG.random(X.shape) < 0.1] = np.nan
X[_RNG.random(X.shape) < 0.1] = 0.0
SCORE = np.nan_to_num(X[:, 0]) + 0.3 * _RNG.normal(size=N_ROWS)
CLASS = np.digitize(SCORE, [-0.5, 0.5])
SPECIAL = _RNG.choice([np.nan, 0.0, -0.0, np.inf, -np.inf, 1e300], size=(40, 3))
ROWS = np.vstack([X, np.nextafter(X, 9), np.nextafter(X, -9), SPECIAL])
FRAME = pd.DataFrame(X, columns=["a b", "c", "d"]).assign(
    text=pd.Categorical(_RNG.choice(["é", "zz", "b", "", None], N_ROWS)),
    integer=pd.Categorical(_RNG.choice([5, -3, 11], N_ROWS)),
)
# with a seed: where a threshold is 0, LightGBM differs, as it takes numbers near to 0 for 0
FEW = dict(n_estimators=5, max_depth=4, n_jobs=1, random_state=0)


def check_same(model, rows):
    """LightGBM predicts the same, and so does what is made of its model again."""
    text = model.to_lightgbm()
    found = lightgbm.Booster(model_str=text).predict(rows)
    for other in (model, from_lightgbm(text)):
        expected = getattr(other, "predict_proba", other.predict)(rows)
        if expected.ndim == 2 and expected.shape[1] == 2:
            expected = expected[:, 1]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    return text


TARGETS = {
    **dict.fromkeys(("reg:mape", "count:poisson", "reg:gamma", "reg:tweedie"), np.exp(SCORE)),
    **dict.fromkeys(("reg:absoluteerror", "reg:quantileerror", "reg:huber", "reg:fair"), SCORE),
    **dict.fromkeys(("reg:expectileerror", "reg:logcosh", "reg:pseudohubererror"), SCORE),
    "reg:squarederror": SCORE + 50,
    "reg:logistic": 1 / (1 + np.exp(-SCORE)),
}


@pytest.mark.parametrize("objective", TARGETS)
def test_regression(objective):
    model = XGBRegressorLite(objective=objective, **FEW).fit(X, TARGETS[objective])
    text = model.to_lightgbm()
    found = lightgbm.Booster(model_str=text).predict(ROWS)
    np.testing.assert_allclose(found, model.predict(ROWS), rtol=1e-12)


@pytest.mark.parametrize(
    "settings",
    [
        dict(booster="dart", rate_drop=0.5),
        dict(num_parallel_tree=3, subsample=0.5),
        dict(missing=0.0),
        dict(base_score=1000.0),
        dict(gamma=1e9),  # trees of one leaf
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_settings(settings):
    # where 0 is missing, LightGBM takes numbers next to it for 0
    rows = np.vstack([X, SPECIAL]) if "missing" in settings else ROWS
    check_same(XGBRegressorLite(**FEW, **settings).fit(X, SCORE), rows)


@pytest.mark.parametrize(
    ("y", "strategy"),
    [
        (CLASS > 0, "one_output_per_tree"),
        (CLASS, "multi_output_tree"),
        (np.array([*"xyz"])[CLASS], "one_output_per_tree"),
    ],
)
def test_classes(y, strategy):
    check_same(XGBClassifierLite(multi_strategy=strategy, **FEW).fit(X, y), ROWS)


@pytest.mark.parametrize("max_cat_to_onehot", [1, 10])
def test_categories_of_frames(max_cat_to_onehot):
    y = SCORE + FRAME["text"].cat.codes + FRAME["integer"].cat.codes
    settings = dict(max_cat_to_onehot=max_cat_to_onehot, cat_smooth=0, **FEW)
    frame = FRAME.rename(columns={"a b": "a_b"})  # LightGBM's names have no spaces
    model = XGBRegressorLite(**settings).fit(frame, y)
    new = frame.assign(text=frame["text"].cat.add_categories("new"))
    new.loc[::2, "text"] = "new"
    text = check_same(model, frame)
    with pytest.warns(UserWarning, match="categories that no row"):
        check_same(model, new)
    lists = json.loads(text.rpartition("pandas_categorical:")[2])
    assert lists == [["", "b", "zz", "é"], [-3, 5, 11]]
    spaced = XGBRegressorLite(**settings).fit(FRAME, y)
    assert "feature_names=a_b c d text integer\n" in spaced.to_lightgbm()


def xgboost_on_codes(y, missing=np.nan):
    """XGBoost's model of codes, all other numbers than these going right."""
    settings = dict(n_estimators=5, max_depth=3, max_cat_to_onehot=8, n_jobs=1, missing=missing)
    theirs = xgboost.XGBRegressor(enable_categorical=True, feature_types=["c", "q"], **settings)
    codes = np.column_stack([_RNG.integers(0, 6, N_ROWS), X[:, 1]])
    codes[::4, 0] = missing
    return from_xgboost(theirs.fit(codes, y(codes[:, 0])))


@pytest.mark.parametrize("missing", [np.nan, 0.0])
def test_codes_of_xgboost(missing):
    """Missing codes go right, as all that are unknown."""
    model = xgboost_on_codes(lambda code: 4.0 * np.isin(code, [1, 4]), missing)
    rows = np.column_stack([[*range(9), 1.5, -1, 1e9, np.nan], np.ones(13)])
    if missing == 0.0:
        rows = rows[:-1]
    found = lightgbm.Booster(model_str=model.to_lightgbm()).predict(rows)
    np.testing.assert_allclose(found, model.predict(rows), rtol=1e-12)


def test_codes_of_xgboost_whose_missing_values_go_another_way():
    model = xgboost_on_codes(lambda code: np.where(np.isnan(code), -3.0, 4.0 * (code == 1)))
    with pytest.raises(ValueError, match="LightGBM has no other sides for missing and for unknown"):
        model.to_lightgbm()


def test_categories_that_are_integers():
    codes = np.column_stack([X, _RNG.integers(0, 90, N_ROWS)])
    model = XGBRegressorLite(categorical_features=[3], cat_smooth=0, **FEW)
    model.fit(codes, SCORE + 3 * np.sin(codes[:, 3]))
    codes[:40, 3] = [*range(-20, 0), *range(1000, 1020)]
    with pytest.warns(UserWarning, match="categories that no row"):
        check_same(model, codes)


@pytest.mark.parametrize(
    "values", [[3, 12, 45, 7], [3.0, 12.0, 45.0, 7.0], [False, True]], ids=repr
)
@pytest.mark.parametrize("fitted_on", ["frame", "array", "category"])
def test_integers_are_the_same_categories_in_every_container(values, fitted_on):
    shop = _RNG.choice(values, N_ROWS)
    frame = pd.DataFrame({"shop": shop, "size": SCORE})
    known = frame.astype({"shop": "category"})
    X = {"frame": frame, "array": frame.to_numpy(float), "category": known}[fitted_on]
    names = {} if fitted_on == "category" else {"categorical_features": [0]}
    model = XGBRegressorLite(**names, **FEW).fit(X, 5.0 * (shop == values[1]) + SCORE)
    if fitted_on == "array" and isinstance(values[0], bool):
        known = known.assign(shop=known["shop"].cat.rename_categories([0, 1]))
        values = [0, 1]
    theirs = lightgbm.Booster(model_str=model.to_lightgbm())
    again = known.assign(shop=known["shop"].cat.reorder_categories(values[::-1]))
    for container in (known, again, known[:50], frame.to_numpy(float)):
        expected = model.predict(X)[: len(container)]
        np.testing.assert_allclose(theirs.predict(container), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="categorical_feature do not match"):
        theirs.predict(frame)


@pytest.mark.parametrize("values", [[-3, 1, 5], [0.5, 1.0, 2.0], [1, 2**20, 3]], ids=repr)
def test_numbers_that_plain_columns_of_lightgbm_cannot_have(values):
    shop = _RNG.choice(values, N_ROWS)
    X, y = np.column_stack([shop, SCORE]), 5.0 * (shop == values[1])
    model = XGBRegressorLite(categorical_features=[0], **FEW).fit(X, y)
    with pytest.raises(ValueError, match="no categories in columns of numbers but integers from 0"):
        model.to_lightgbm()
    # columns of a categorical dtype go by value
    frame = pd.DataFrame({"shop": shop}, dtype="category").assign(size=SCORE)
    model = XGBRegressorLite(**FEW).fit(frame, y)
    check_same(model, frame)


def test_times_are_no_categories_of_lightgbm():
    spans = pd.Categorical(pd.to_timedelta(np.arange(N_ROWS) % 3, "ns"))
    model = XGBRegressorLite(**FEW).fit(pd.DataFrame({"spans": spans}), SCORE)
    with pytest.raises(ValueError, match=r"no categories such as .*: they are texts or numbers"):
        model.to_lightgbm()


def test_a_split_of_missing_values_from_all_others():
    column = np.where(np.arange(40) < 20, np.nan, 1.0)[:, np.newaxis]
    model = XGBRegressorLite(**FEW).fit(column, np.isnan(column[:, 0]) * 3.0)
    check_same(model, np.array([[np.nan], [np.inf], [-np.inf], [0.0]]))


def test_linear_leaves_of_lightgbm():
    data = lightgbm.Dataset(X, SCORE)
    booster = lightgbm.train(dict(linear_tree=True, verbose=-1), data, 5)
    check_same(from_lightgbm(booster), X)


class Square(Loss):
    name, n_outputs = "square", 1

    def gradients(self, y, raw_score):
        return raw_score - y, np.ones_like(raw_score)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (dict(linear_tree=True), "limits of linear leaves"),
        (dict(objective="quantile", quantile_alpha=[0.1, 0.9]), "several quantiles"),
        (dict(missing=-999), "missing=-999"),
        (dict(objective="reg:squaredlogerror"), "objective='reg:squaredlogerror'"),
        (dict(objective=Square()), "a loss of your own"),
    ],
    ids=["linear", "quantiles", "missing", "objective", "loss"],
)
def test_what_lightgbm_has_not_is_refused_by_name(settings, reason):
    model = XGBRegressorLite(**FEW, **settings).fit(X, np.abs(SCORE))
    with pytest.raises(ValueError, match=f"LightGBM has no {reason}"):
        model.to_lightgbm()


def test_targets_classes_and_names_that_lightgbm_has_not():
    two = XGBRegressorLite(**FEW).fit(X, np.column_stack([SCORE, SCORE]))
    labels = XGBClassifierLite(**FEW).fit(X, np.column_stack([CLASS > 0, CLASS > 1]).astype(int))
    for model in (two, labels):
        with pytest.raises(ValueError, match="several targets or labels"):
            model.to_lightgbm()
    one = XGBClassifierLite(**FEW).fit(X, np.ones(N_ROWS))
    with pytest.raises(ValueError, match=r"model of a single class, 1\.0"):
        one.to_lightgbm()
    frame = pd.DataFrame(X, columns=["a", "b", "c:d"])
    with pytest.raises(ValueError, match="has no feature name 'c:d'"):
        XGBRegressorLite(**FEW).fit(frame, SCORE).to_lightgbm()
    frame = frame.rename(columns={"c:d": "c"})
    times = frame.assign(b=pd.Timestamp(0) + pd.to_timedelta(np.arange(N_ROWS), "D"))
    with pytest.raises(ValueError, match="features of the kind datetime64"):
        XGBRegressorLite(**FEW).fit(times, SCORE).to_lightgbm()
