"""Roots of several outputs in one pass over the bins: the same trees as root by root."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.boosting import rounds
from sklboost.tree.options import several_outputs


@pytest.fixture(autouse=True)
def _few_rows_are_enough(monkeypatch):
    monkeypatch.setattr(several_outputs, "LEAST_ROWS", 1)


def make_data(n_rows=5000, n_classes=5, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 13)).astype(np.float32)  # read as words of 8 and one by one
    X[random.random(X.shape) < 0.1] = np.nan
    noise = random.gumbel(size=(n_rows, n_classes))
    y = np.argmax(np.nan_to_num(X[:, :1]) * np.arange(n_classes) + noise, axis=1)
    y[:n_classes] = np.arange(n_classes)
    return X, y, random.integers(1, 4, n_rows) / 2


def fit(X, y, weight=None, **settings):
    """Return the model, and whether its roots were shared."""
    estimator = XGBRegressorLite if y.dtype.kind == "f" else XGBClassifierLite
    settings = dict(n_estimators=3, max_depth=3, random_state=1, n_jobs=1) | settings
    seen, allocate = [], rounds.allocate_shared_roots

    def noted(*arguments, **keywords):
        seen.append(allocate(*arguments, **keywords))
        return seen[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "allocate_shared_roots", noted)
        model = estimator(**settings).fit(X, y, sample_weight=weight)
    return model, seen[0].packed.size > 0


def assert_same_alone(monkeypatch, *arguments, **settings):
    """Check that roots are shared, and that the trees are those of roots built one by one."""
    model, is_shared = fit(*arguments, **settings)
    assert is_shared
    monkeypatch.setattr(several_outputs, "SHARED_BYTES", 0)
    alone, is_shared = fit(*arguments, **settings)
    assert not is_shared
    trees, others = model.model_, alone.model_
    assert trees.nodes.tobytes() == others.nodes.tobytes()
    assert_array_equal(trees.tree_starts, others.tree_starts)


@pytest.mark.interpreted
@pytest.mark.parametrize("n_classes", [3, 4, 5, 6])
def test_few_rows(n_classes, monkeypatch):
    X, y, weight = make_data(60, n_classes)
    assert_same_alone(monkeypatch, X, y, weight, n_estimators=2, max_depth=2)


@pytest.mark.parametrize(("n_classes", "n_jobs"), [(3, 1), (5, 2), (6, 3), (9, 2)])
def test_classes(n_classes, n_jobs, monkeypatch):
    X, y, _ = make_data(n_classes=n_classes)
    assert_same_alone(monkeypatch, X, y, n_jobs=n_jobs)


@pytest.mark.parametrize(
    "settings",
    [
        dict(max_depth=1),
        dict(max_depth=8, n_jobs=2),
        dict(grow_policy="lossguide", max_depth=0, max_leaves=15),
        dict(max_bin=1000, n_jobs=2),
        dict(num_parallel_tree=2, colsample_bytree=0.9),
        dict(colsample_bynode=0.5),
        dict(booster="dart", rate_drop=0.5),
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_settings(settings, monkeypatch):
    X, y, weight = make_data()
    assert_same_alone(monkeypatch, X, y, weight, **settings)


def test_categories_and_more_columns_than_one_block(monkeypatch):
    X, y, _ = make_data(1000)
    frame = pd.DataFrame(np.tile(X, 4)).add_prefix("column ")
    # so many that what they gain is held against how the gradients of the rows spread
    codes = (y + np.random.default_rng(1).integers(0, 3, len(y))) % 8
    frame["category"] = pd.Categorical.from_codes(codes, list("abcdefgh"))
    assert_same_alone(monkeypatch, frame, y)


@pytest.mark.parametrize("n_targets", [3, 6])
def test_targets_some_of_them_unknown(n_targets, monkeypatch):
    X, _, weight = make_data(1000)
    y = np.random.default_rng(1).normal(size=(1000, n_targets)) + np.nan_to_num(X[:, :1])
    y[::3, 0] = np.nan
    assert_same_alone(monkeypatch, X, y, weight)


def test_quantiles_whose_leaves_are_renewed(monkeypatch):
    X, _, weight = make_data(1000)
    y = np.random.default_rng(1).normal(size=1000) + np.nan_to_num(X[:, 0])
    quantiles = dict(objective="reg:quantileerror", quantile_alpha=[0.1, 0.5, 0.9])
    assert_same_alone(monkeypatch, X, y, weight, n_jobs=2, **quantiles)


@pytest.mark.parametrize(
    "settings",
    [
        dict(subsample=0.5),
        dict(subsample=0.5, sampling_method="gradient_based"),
        dict(colsample_bytree=0.5),
        dict(min_child_samples=5),
        dict(multi_strategy="multi_output_tree"),
    ],
    ids=lambda settings: "-".join(settings),
)
def test_not_where_roots_have_other_rows_or_columns(settings):
    X, y, _ = make_data(300)
    assert not fit(X, y, **settings)[1]


def test_roots_are_shared_where_that_saves_time(monkeypatch):
    X, y, _ = make_data(2000, 3)
    assert not fit(X, (y > 1).astype(int))[1]  # one output has no other to share with
    monkeypatch.undo()
    assert fit(X, y, n_estimators=1)[1]
    assert not fit(X[:-1], y[:-1], n_estimators=1)[1]
    assert not fit(X, np.column_stack([y, y]).astype(float), n_estimators=1)[1]
