"""Splits on categories found by statistics of the target: ``max_ctr_complexity=1``."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest

from sklboost import XGBClassifierLite, XGBRegressorLite, bin_features, load_model
from sklboost.boosting.category_statistics import FEWEST_CATEGORIES, cross_fit_means

N_LEVELS = 60
SETTINGS = dict(n_estimators=12, max_depth=4, max_ctr_complexity=1, random_state=0)


@pytest.fixture(scope="module")
def data():
    """Rows of a category of many levels, with missing ones, one of few, and a number."""
    random = np.random.default_rng(0)
    level, number = random.integers(0, N_LEVELS, 1200), random.normal(size=1200)
    y = random.normal(size=N_LEVELS)[level] + 0.5 * number + random.normal(size=1200)
    names = np.char.add("level ", np.char.zfill(level.astype(str), 2)).astype(object)
    names[random.random(1200) < 0.05] = None
    few = np.array(["a", "b", "c"], dtype=object)[random.integers(0, 3, 1200)]
    frame = {"level": pd.Categorical(names), "number": number, "few": pd.Categorical(few)}
    return pd.DataFrame(frame), y


@pytest.mark.parametrize("weighted", [False, True])
def test_values_of_rows_are_means_over_rows_of_other_parts(weighted):
    random = np.random.default_rng(1)
    codes, part = random.integers(0, 7, 90), random.integers(0, 5, 90)
    gradient = codes + random.normal(size=90)
    hessian = random.uniform(0.5, 2.0, 90) if weighted else np.ones(90)
    of_rows, of_codes = cross_fit_means(codes, 9, (gradient, hessian), part, 3.0)
    mean = gradient.sum() / hessian.sum()
    # k is at least cat_smooth; one of them fits all rows and codes
    is_zero = codes == 0
    G, H = gradient[is_zero].sum(), hessian[is_zero].sum()
    k = (G - H * of_codes[0]) / (of_codes[0] - mean)
    assert k >= 3.0 * (1 - 1e-9)
    for row in range(90):
        others = (codes == codes[row]) & (part != part[row])
        expected = (gradient[others].sum() + k * mean) / (hessian[others].sum() + k)
        assert of_rows[row] == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert of_codes[7:] == pytest.approx(mean)  # of no row


def test_no_target_is_in_the_value_of_its_own_row():
    random = np.random.default_rng(2)
    codes, part = random.integers(0, 40, 200), random.integers(0, 5, 200)
    gradient = random.normal(size=40)[codes] + random.normal(size=200)
    # another row of the part takes what this one loses, so that the mean and k of all stay
    row = 7
    other = np.flatnonzero((part == part[row]) & (codes == codes[row]))[-1]
    exchanged = gradient.copy()
    exchanged[[row, other]] = gradient[[other, row]]
    sums = (gradient, np.ones(200)), (exchanged, np.ones(200))
    before, after = (cross_fit_means(codes, 41, own, part, 2.0)[0] for own in sums)
    assert after == pytest.approx(before)
    # with smoothing beyond what is estimated k is the same for all targets; the mean is not
    moved = gradient.copy()
    moved[row] += 5.0
    values = [
        cross_fit_means(codes, 41, (own, np.ones(200)), part, 1e5)[0] for own in (gradient, moved)
    ]
    rest = np.arange(200) != row
    change = values[1] - values[0]
    reads_it = (codes == codes[row]) & (part != part[row])
    assert change[row] == pytest.approx(change[rest & ~reads_it].mean(), rel=1e-2)
    assert (change[reads_it] > change[row] + 1e-6).all()


def test_splits_become_sets_of_categories(data):
    X, y = data
    model = XGBRegressorLite(**SETTINGS).fit(X, y)
    trees = model.trees_to_dataframe()
    assert set(trees["Feature"]) <= {"level", "number", "few", "Leaf"}
    on_level = trees[trees["Feature"] == "level"]
    assert len(on_level) > 0
    assert on_level["Split"].isna().all()
    assert {len(own) for own in on_level["Category"]} - {1}  # more than one against the others
    assert model.n_features_in_ == len(model.feature_importances_) == 3
    contributions = model.shap_values(X[:50])
    base = model.predict(X[:50]) - contributions.sum(axis=1)
    assert np.ptp(base) < 1e-6


def test_same_bits_for_any_number_of_threads_and_from_bins(data):
    X, y = data
    models = [XGBRegressorLite(**SETTINGS, n_jobs=n).fit(X, y) for n in (1, 2, 3)]
    models.append(XGBRegressorLite(**SETTINGS).fit(bin_features(X), y))
    expected = models[0].predict(X)
    for model in models[1:]:
        assert model.model_.nodes.tobytes() == models[0].model_.nodes.tobytes()
        assert (model.predict(X) == expected).all()


@pytest.mark.filterwarnings("ignore:X has categories that no row of the training has")
def test_what_is_learnt_holds_for_new_rows():
    random = np.random.default_rng(0)
    level, numbers = random.integers(0, 800, 6000), random.normal(size=(6000, 3))
    y = random.normal(size=800)[level] + 0.5 * numbers[:, 0] + random.normal(size=6000)
    X = pd.DataFrame(numbers, columns=list("abc")).assign(level=pd.Categorical(level))
    settings = SETTINGS | dict(n_estimators=60, learning_rate=0.1)
    losses = []
    for complexity in (0, 1):
        model = XGBRegressorLite(**settings | dict(max_ctr_complexity=complexity))
        model.fit(X[:3000], y[:3000])
        losses.append(np.mean((model.predict(X[3000:]) - y[3000:]) ** 2))
    assert losses[1] < 0.97 * losses[0]


def test_categories_that_mean_nothing_are_searched_as_they_are():
    random = np.random.default_rng(3)
    X = pd.DataFrame({"id": pd.Categorical(random.integers(0, 100, 600))})
    y = random.normal(size=600)
    models = [XGBRegressorLite(**SETTINGS | dict(max_ctr_complexity=n)).fit(X, y) for n in (0, 1)]
    assert models[0].model_.nodes.tobytes() == models[1].model_.nodes.tobytes()


def test_unknown_and_missing_categories_and_rows_alone(data):
    X, y = data
    model = XGBRegressorLite(**SETTINGS).fit(X, y)
    new = X[:40].astype({"level": object})
    new.loc[new.index[:5], "level"] = "another"
    with pytest.warns(UserWarning, match="no row of the training has"):
        known = model.predict(new)
    missing = new.replace({"level": {"another": None}})
    assert (model.predict(missing) == known).all()
    alone = [model.predict(missing[row : row + 1])[0] for row in range(40)]
    assert (np.array(alone) == known).all()


@pytest.mark.parametrize("objective", ["binary:logistic", "multi:softprob"])
def test_files_and_pickles(data, objective, tmp_path):
    X, y = data
    n_classes = 2 if objective.startswith("binary") else 3
    y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    model = XGBClassifierLite(**SETTINGS, early_stopping_rounds=5, refit=True, keep_pruned=True)
    model.fit(X, y)
    path = tmp_path / "model.json"
    model.save_model(path)
    for other in (load_model(path), pickle.loads(pickle.dumps(model))):
        assert (other.predict_proba(X) == model.predict_proba(X)).all()
        assert (other.model_.tops.bits.words == model.model_.tops.bits.words).all()


def test_few_categories_are_searched_as_without_it(data):
    X, y = data
    X = X[["number", "few"]]
    plain = XGBRegressorLite(**SETTINGS | dict(max_ctr_complexity=0)).fit(X, y)
    model = XGBRegressorLite(**SETTINGS).fit(X, y)
    assert FEWEST_CATEGORIES > 3
    assert model.model_.nodes.tobytes() == plain.model_.nodes.tobytes()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (dict(booster="dart", rate_drop=0.1), "booster='dart': set booster='gbtree'"),
        (dict(linear_tree=True), "linear_tree=True: set linear_tree=False"),
    ],
)
def test_what_it_does_not_go_with(data, changes, words):
    words = f"max_ctr_complexity=1 does not go with {words}"
    with pytest.raises(ValueError, match=re.escape(words)):
        XGBRegressorLite(**SETTINGS, **changes).fit(*data)


def test_no_model_is_continued(data):
    model = XGBRegressorLite(**SETTINGS, warm_start=True).fit(*data)
    expected = model.predict(data[0])
    with pytest.raises(ValueError, match="max_ctr_complexity=1 does not go with the model of warm"):
        model.set_params(n_estimators=20).fit(*data)
    assert (model.predict(data[0]) == expected).all()


def test_a_preset_compares_searches_with_and_without_it(data):
    X, y = data
    X, y = X.loc[[*X.index, *X.index]], np.append(y, y)
    given = dict(extra_trees=False, max_depth=2, min_child_weight=1, colsample_bylevel=1.0)
    model = XGBRegressorLite(preset="auto", n_estimators=20, learning_rate=0.3, **given).fit(X, y)
    assert re.search("with [01]", model.chosen_params_.reasons["max_ctr_complexity"])
    for frame in (X[["few"]], X[:1000]):  # of few categories, of few rows
        assert "max_ctr_complexity" not in model.fit(frame, y[: len(frame)]).chosen_params_
    model.set_params(linear_tree=True)  # which it does not go with
    assert "max_ctr_complexity" not in model.fit(X, y).chosen_params_
