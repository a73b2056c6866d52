"""Fits on categories by every booster: all who send rows down the trees agree.

Rows are routed by bins in training, by bins and values where validation data is scored, 64 at a
time and one by one in prediction, and here from the table of the trees by their levels.
"""

import warnings
from itertools import cycle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost import UnknownCategoryWarning, XGBClassifierLite, XGBRegressorLite, bin_features
from tests.small_models import outputs

N_VALIDATION = 203  # no multiple of 64: the last rows are few
DEEP = dict(max_depth=0, max_leaves=90, cat_smooth=0.0, min_child_weight=0.0)
ONE_OUTPUT = {
    "defaults": {},
    "deep": DEEP,
    "deep, without noise": DEEP | dict(cat_smooth=1.0),
    "deep, one level against the others": DEEP | dict(max_cat_to_onehot=1000),
    "leaf by leaf, short lists": dict(grow_policy="lossguide", max_leaves=30, max_cat_threshold=3),
    "long lists": DEEP | dict(max_cat_threshold=1000, max_cat_to_onehot=1, reg_lambda=0.0),
    "random places": dict(extra_trees=True, cat_smooth=1.0, colsample_bynode=0.7),
    "samples": dict(subsample=0.6, cat_smooth=2.0),
    "samples by gradient": dict(subsample=0.4, sampling_method="gradient_based"),
    "pruned": dict(gamma=5.0, cat_smooth=1.0),
    "grown in full": dict(pruning="full", gamma=2.0, max_depth=4),
    "weakest links": DEEP | dict(ccp_alpha=0.01),
    "rules": dict(monotone_constraints={"x": 1}, interaction_constraints="pairwise"),
    "dart": DEEP | dict(booster="dart", rate_drop=0.5, one_drop=True),
    "forest": DEEP | dict(num_parallel_tree=3, subsample=0.7),
    "linear leaves": dict(linear_tree=True, max_depth=3),
    "medians": dict(objective="reg:absoluteerror", cat_smooth=1.0),
}
SEVERAL_OUTPUTS = {
    "trees for each": DEEP,
    "one tree for all": DEEP | dict(multi_strategy="multi_output_tree"),
    "one tree for all, without noise": dict(multi_strategy="multi_output_tree", cat_smooth=1.0),
    "one tree for all, one level against the others": dict(
        multi_strategy="multi_output_tree", max_cat_to_onehot=1000
    ),
}


# --- data ----------------------------------------------------------------------------------------


def make_columns(seed, n_rows=700):
    """Categories as (codes, values), with some codes -1, which is missing; and two numbers."""
    random = np.random.default_rng(seed)
    columns = {}
    for k, is_text in ((5, True), (70, False), (int(random.choice([200, 255, 300])), True)):
        categories = np.sort(random.choice(10**6, k, replace=False)) / 8.0
        if is_text:
            categories = np.array([f"{category:09.1f}" for category in categories], dtype=object)
        codes = random.choice(k, n_rows, p=random.dirichlet(np.full(k, 0.5)))
        codes[random.random(n_rows) < random.choice([0.0, 0.15])] = -1
        columns[f"of {k}"] = codes, categories
    columns["x"] = random.normal(size=n_rows).round(1)
    columns["y"] = np.where(random.random(n_rows) < 0.2, np.nan, random.normal(size=n_rows))
    return columns


def make_target(seed, columns):
    """Return a number for each row that every feature has a say in."""
    random = np.random.default_rng(seed)
    target = columns["x"] + 0.3 * random.normal(size=len(columns["x"]))
    for own in columns.values():
        if isinstance(own, tuple):
            target += random.normal(size=len(own[1]) + 1)[own[0]]
    return target


def frame_of(columns, change=lambda codes, categories: (codes, categories)):
    """Return columns as a frame, each category after a change."""
    return pd.DataFrame(
        {
            name: pd.Categorical.from_codes(*change(*own)) if isinstance(own, tuple) else own
            for name, own in columns.items()
        }
    )


def in_another_order(codes, categories):
    order = np.random.default_rng(0).permutation(len(categories))
    return np.append(np.argsort(order), -1)[codes], categories[order]


def with_other_names(codes, categories):
    """Rename levels so that their order stays."""
    return codes, 3.0 * categories + 1.0 if categories.dtype == float else "new " + categories


def with_unknown(codes, categories):
    """Return a tenth of the rows a level that the training does not have."""
    unknown = categories[-1:] + (1.0 if categories.dtype == float else " and more")
    is_new = np.random.default_rng(1).random(len(codes)) < 0.1
    return np.where(is_new, len(categories), codes), np.append(categories, unknown)


def unknown_as_missing(codes, categories):
    """Return the rows missing values instead."""
    return np.where(with_unknown(codes, categories)[0] < len(categories), codes, -1), categories


def ignoring_unknown(function, *arguments, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownCategoryWarning)
        return function(*arguments, **more)


# --- the trees by their table --------------------------------------------------------------------


def leaf_of(nodes, row, known):
    """Return the number of the leaf that a row, a dict by feature, reaches in a tree."""
    node = nodes[0]
    while node["Feature"] != "Leaf":
        feature = node["Feature"]
        value, categories = row[feature], node["Category"]
        if pd.isna(value) or (categories is not None and value not in known[feature]):
            next_one = node["Missing"]
        else:
            is_yes = value < node["Split"] if categories is None else value in categories
            next_one = node["Yes" if is_yes else "No"]
        node = nodes[int(next_one.split("-")[1])]
    return node["Node"]


def leaves_by_table(model, X):
    table = model.trees_to_dataframe()
    known = {name: set(categories.tolist()) for name, categories in model.categories_.items()}
    rows = X.astype(object).to_dict("records")
    trees = [tree.to_dict("records") for _, tree in table.groupby("Tree")]
    return np.array([[leaf_of(nodes, row, known) for nodes in trees] for row in rows])


# --- checks --------------------------------------------------------------------------------------


def fitted(estimator, settings, X, y, **more):
    settings = dict(n_estimators=4, random_state=0, n_jobs=1) | settings
    return ignoring_unknown(estimator(**settings).fit, X, y, **more)


def check_metrics(model, X_val, y_val):
    """Check that the metric after each round is that of the prediction after it."""
    ((log,),) = (own.values() for own in model.evals_result_.values())
    if model.booster == "dart":  # earlier trees change later on
        log = log[-1:]
    if isinstance(model, XGBClassifierLite):
        stages = ignoring_unknown(lambda: list(model.staged_predict_proba(X_val)))
        values = [-np.log(stage[np.arange(len(y_val)), y_val]).mean() for stage in stages]
    else:
        stages = ignoring_unknown(lambda: list(model.staged_predict(X_val)))
        is_median = model.objective == "reg:absoluteerror"
        values = [
            np.abs(stage - y_val).mean() if is_median else np.sqrt(((stage - y_val) ** 2).mean())
            for stage in stages
        ]
    assert_allclose(log, values[-len(log) :], rtol=1e-12)


def check_covers(model, leaves):
    """Check that each leaf's cover is the number of rows that reach it."""
    for tree, found in enumerate(leaves.T):
        start, stop = model.model_.tree_starts[tree : tree + 2]
        nodes = model.model_.nodes[start:stop]
        is_leaf = nodes.left < 0
        counts = np.bincount(found, minlength=len(nodes))
        assert_allclose(counts[is_leaf], nodes.cover[is_leaf], rtol=1e-4)


def check_fit(estimator, settings, columns, target):
    X, X_val = frame_of(columns), frame_of(columns, with_unknown)[:N_VALIDATION]
    y_val = target[:N_VALIDATION]
    model = fitted(estimator, settings, X, target, X_val=X_val, y_val=y_val)
    check_metrics(model, X_val, y_val)
    leaves = leaves_by_table(model, X)
    assert len(np.unique(leaves)) > 4
    assert_array_equal(model.apply(X), leaves)
    assert_array_equal(ignoring_unknown(model.apply, X_val), leaves_by_table(model, X_val))
    if estimator is XGBRegressorLite and "subsample" not in settings:
        check_covers(model, leaves)
    expected, of_val = outputs(model, X), ignoring_unknown(outputs, model, X_val)
    for n_rows in (1, 7, 65):  # one by one, and together
        assert_array_equal(outputs(model, X[3 : 3 + n_rows]), expected[3 : 3 + n_rows])
    known = frame_of(columns, unknown_as_missing)[:N_VALIDATION]
    assert_array_equal(outputs(model, known), of_val)
    # only the order of levels counts, and not the number of threads
    for change in (in_another_order, with_other_names):
        changed, changed_val = frame_of(columns, change), frame_of(columns, change)[:N_VALIDATION]
        other = fitted(estimator, settings | dict(n_jobs=3), changed, target)
        assert other.model_.nodes.tobytes() == model.model_.nodes.tobytes()
        assert_array_equal(outputs(other, changed_val), expected[:N_VALIDATION])
    if not model.linear_tree:
        check_bins(model, X, target, leaves)


def check_bins(model, X, target, leaves):
    """Check that bins made before give the same model, predictions and metrics."""
    B, settings, y_val = bin_features(X), model.get_params(), target[:N_VALIDATION]
    of_bins, of_values = (
        fitted(type(model), settings, own, target, X_val=own[:N_VALIDATION], y_val=y_val)
        for own in (B, X)
    )
    assert of_bins.evals_result_ == of_values.evals_result_
    assert_array_equal(of_bins.apply(B), leaves)
    assert_array_equal(outputs(of_bins, B), outputs(model, X))


def each_of(settings):
    """Give a test each of the settings, with one of two kinds of data in turn."""
    cases = list(zip(cycle(range(2)), settings.values(), strict=False))
    return pytest.mark.parametrize(("seed", "settings"), cases, ids=settings)


@each_of(ONE_OUTPUT)
def test_one_output(seed, settings):
    columns = make_columns(seed)
    check_fit(XGBRegressorLite, settings, columns, make_target(seed, columns))


@each_of(SEVERAL_OUTPUTS)
def test_several_targets(seed, settings):
    columns = make_columns(seed)
    target = make_target(seed, columns)
    check_fit(XGBRegressorLite, settings, columns, np.array([target, np.sin(target), -target]).T)


@each_of(SEVERAL_OUTPUTS)
def test_classes(seed, settings):
    columns = make_columns(seed)
    target = make_target(seed, columns)
    classes = np.digitize(target, np.quantile(target, [0.3, 0.8]))
    check_fit(XGBClassifierLite, settings, columns, classes)
