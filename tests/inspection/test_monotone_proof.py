import itertools

import numpy as np
import pytest

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.inspection.monotone_proof import (
    FeatureProof,
    MonotoneReport,
    Violation,
    prove_monotone,
)
from sklboost.tree.predict.assembly import assemble_model
from tests.tree.growth import as_trees, make_nodes, params

inf, nan = np.inf, np.nan


def prove(*nodes, sign=1, feature=0):
    model = assemble_model(as_trees([make_nodes(*nodes)], params()), np.zeros(1), 3)
    return prove_monotone(model, {feature: sign}, ["a", "b", "c"], []).features["abc"[feature]]


def split(feature, threshold, left, default_left=0):
    links = dict(left=left, right=left + 1, default_left=default_left)
    return dict(feature=feature, threshold=threshold, **links)


def leaf(value):
    return dict(value=value)


def crossing(threshold_left, threshold_right):
    """Return a tree split on a, then on b on both sides: below its threshold 0 and 1, else 5, 9."""
    return (
        split(0, 0.0, 1),
        split(1, threshold_left, 3, 1),
        split(1, threshold_right, 5, 1),
        *map(leaf, (0.0, 5.0, 1.0, 9.0)),
    )


def test_leaves_that_agree_in_the_other_feature():
    # 5, where b is at least the left threshold, and 1, where it is less than the right one
    assert prove(*crossing(7.0, 7.0)).holds
    assert prove(*crossing(8.0, 7.0)).holds
    proof = prove(*crossing(6.0, 7.0))
    assert proof.violations == (Violation(0, 4, 5, -4.0),)


@pytest.mark.parametrize("sign", [1, -1])
def test_missing_values_have_no_order(sign):
    # only missing values are left of -inf
    assert prove(split(0, -inf, 1, 1), leaf(5.0), leaf(1.0), sign=sign).holds
    # and right of inf there is inf
    assert prove(split(0, inf, 1), leaf(5.0), leaf(1.0), sign=sign).holds == (sign == -1)
    # in another feature they part missing values from all others
    nodes = (split(0, 0.0, 1), split(1, -inf, 3, 1), split(1, -inf, 5, 1))
    assert prove(*nodes, *map(leaf, (5.0, 0.0, 6.0, 1.0))).holds
    assert not prove(*nodes, *map(leaf, (5.0, 0.0, 4.0, 1.0))).holds


# --- against plain evaluation: rows that have a value in each piece ------------------------------


def plain_worst(model, tree, feature, sign):
    """Return the largest step in the wrong direction between rows that differ in one feature."""
    nodes = model.nodes[model.tree_starts[tree] : model.tree_starts[tree + 1]]
    axes = []
    for other in range(model.n_features):
        cuts = np.unique(nodes.threshold[nodes.feature == other])
        axes.append([-inf, *cuts, inf, *([] if other == feature else [nan])])

    def value(row):
        node = nodes[0]
        while node.left >= 0:
            x = row[node.feature]
            goes_left = node.default_left if np.isnan(x) else x < node.threshold
            node = nodes[node.left if goes_left else node.right]
        return node.value

    others = [axis for own, axis in enumerate(axes) if own != feature]
    worst = 0.0
    for rest in itertools.product(*others):
        rows = [[*rest[:feature], x, *rest[feature:]] for x in axes[feature]]
        values = [value(row) for row in rows]
        for low, high in itertools.combinations(values, 2):
            worst = max(worst, -sign * (high - low))
    return worst


@pytest.mark.parametrize("seed", range(4))
def test_exactly_what_plain_evaluation_finds(seed):
    random = np.random.default_rng(seed)
    X = random.integers(0, 4, (80, 3)).astype(float)
    X[random.random(X.shape) < 0.2] = nan
    y = np.nan_to_num(X[:, 0]) * seed + random.normal(size=80)
    signs = (1, -1, 0) if seed % 2 else None
    model = XGBRegressorLite(n_estimators=4, max_depth=3, monotone_constraints=signs, n_jobs=1)
    model.fit(X, y)
    n_violations = 0
    for feature, sign in itertools.product(range(3), (1, -1)):
        report = model.verify_monotone({feature: sign})
        found = {own.tree: abs(own.step) for own in report.features[f"f{feature}"].violations}
        for tree in range(4):
            assert found.get(tree, 0.0) == plain_worst(model.model_, tree, feature, sign)
        n_violations += len(found)
    assert n_violations > 3


@pytest.mark.parametrize("seed", range(6))
def test_leaves_agree_in_the_levels_of_categories(seed):
    random = np.random.default_rng(seed)
    # in some seeds there are levels that no split lists, in some there are none
    categories, x = random.integers(0, 5 + 5 * (seed % 2), 200), random.normal(size=200).round(1)
    X = np.column_stack([np.where(random.random(200) < 0.1, nan, categories), x])
    y = (
        np.where(categories % 2 == 0, 2.0, 0.4) * x
        + 3 * (categories % 3)
        + random.normal(size=200) / 2
    )
    settings = dict(max_depth=4, cat_smooth=0.0, max_cat_to_onehot=1 + 4 * (seed % 3))
    model = XGBRegressorLite(n_estimators=5, categorical_features=[0], n_jobs=1, **settings)
    model.fit(X, y)
    found = {own.tree: own.step for own in model.verify_monotone({1: 1}).features["f1"].violations}
    nodes, starts = model.model_.nodes, model.model_.tree_starts
    cuts = np.unique(nodes.threshold[nodes.feature == 1])
    grid = [[a, b] for a in [*range(10), nan] for b in [-inf, *cuts, inf]]
    known = [a for a in grid if a[0] != a[0] or a[0] in model.categories_[0]]
    for tree, leaves in enumerate(model.apply(known).T):
        values = nodes.value[starts[tree] + leaves].reshape(-1, len(cuts) + 2)
        falls = values - np.maximum.accumulate(values, axis=1)
        assert found.get(tree, 0.0) == falls.min()


# --- the report ----------------------------------------------------------------------------------


def test_report():
    good = FeatureProof(1, 5, ())
    bad = FeatureProof(-1, 5, (Violation(1, 3, 4, 0.5), Violation(2, 7, 9, 1.25)))
    assert MonotoneReport({"age": good}).holds
    report = MonotoneReport({"age": good, "debt": bad})
    assert not report.holds
    assert repr(report).splitlines() == [
        "MonotoneReport: does not hold",
        "  age (+1): all 5 trees",
        "  debt (-1): not in 2 of 5 trees; worst in tree 2, from leaf 7 to leaf 9: +1.25",
    ]
    assert repr(MonotoneReport({"age": good})).startswith("MonotoneReport: holds")


def test_trees_of_all_classes():
    random = np.random.default_rng(0)
    X = random.normal(size=(90, 2))
    model = XGBClassifierLite(n_estimators=3, n_jobs=1).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    proof = model.verify_monotone({0: 1}).features["f0"]
    assert proof.n_trees == 9
    # the highest class rises, the lowest falls
    assert {own.tree % 3 for own in proof.violations} == {0, 1}


def test_names_that_occur_twice():
    model = assemble_model(as_trees([make_nodes(leaf(1.0))], params()), np.zeros(1), 2)
    report = prove_monotone(model, {0: 1, 1: -1}, ["a", "a"], [])
    assert list(report.features) == ["a (column 0)", "a (column 1)"]
