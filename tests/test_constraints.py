"""Constraints on whole models: a hunt for violations, with all that may cause one."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from sklboost import XGBClassifierLite, XGBRegressorLite

# weights are drawn that can be too small for a split
pytestmark = pytest.mark.filterwarnings("ignore:no tree has a split:UserWarning")

N_FEATURES = 4

SIGNS = st.tuples(*N_FEATURES * [st.sampled_from([-1, 0, 1])]).filter(any)
GROUPS = st.one_of(
    st.sampled_from(["pairwise", "no_interactions"]),
    st.lists(st.lists(st.integers(0, N_FEATURES - 1), min_size=1, unique=True), max_size=3),
)
GROWTH = st.fixed_dictionaries(
    dict(
        max_depth=st.integers(1, 6),
        max_leaves=st.sampled_from([0, 0, 5]),
        grow_policy=st.sampled_from(["depthwise", "lossguide"]),
        pruning=st.sampled_from(["post", "full", "pre"]),
        gamma=st.sampled_from([0.0, 0.0, 0.5, 5.0]),
        learning_rate=st.sampled_from([0.1, 1.0, 1.7]),
        reg_lambda=st.sampled_from([0.0, 1.0]),
        reg_alpha=st.sampled_from([0.0, 0.0, 0.7]),
        min_child_weight=st.sampled_from([0.0, 1.0]),
        min_child_samples=st.sampled_from([0, 0, 5]),
        max_delta_step=st.sampled_from([0.0, 0.0, 0.3]),
        path_smooth=st.sampled_from([0.0, 0.0, 3.0]),
        extra_trees=st.booleans(),
        subsample=st.sampled_from([1.0, 0.5]),
        sampling_method=st.sampled_from(["uniform", "gradient_based"]),
        colsample_bytree=st.sampled_from([1.0, 0.5]),
        colsample_bylevel=st.sampled_from([1.0, 0.5]),
        colsample_bynode=st.sampled_from([1.0, 0.5]),
        max_bin=st.sampled_from([4, 256]),
        n_jobs=st.sampled_from([1, 2]),
    )
)
TASKS = st.sampled_from(
    ["regression", "reg:absoluteerror", "reg:quantileerror", "binary", "multiclass"]
)


def make_data(seed, task):
    """Return X with ties and missing values, targets that are not monotone in anything, weights."""
    random = np.random.default_rng(seed)
    n_rows = int(random.integers(10, 150))
    X = random.integers(0, random.integers(2, 12), (n_rows, N_FEATURES)).astype(float)
    X[:, 0] += random.normal(size=n_rows)
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] - (X[:, 3] - 2) ** 2 + random.normal(size=n_rows)
    X[random.random(X.shape) < random.choice([0.0, 0.3])] = np.nan
    if task in ("binary", "multiclass"):
        y = np.digitize(y, np.quantile(y, [0.5] if task == "binary" else [0.3, 0.7]))
    return X, y, random.exponential(size=n_rows) if random.random() < 0.5 else None


def fit(task, X, y, sample_weight=None, **parameters):
    estimator = XGBClassifierLite if task in ("binary", "multiclass") else XGBRegressorLite
    if task.startswith("reg:"):
        parameters["objective"] = task
    model = estimator(**(dict(n_estimators=3, random_state=0) | parameters))
    return model.fit(X, y, sample_weight=sample_weight)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**6), task=TASKS, signs=SIGNS, growth=GROWTH)
def test_no_violation_is_found(seed, task, signs, growth):
    X, y, weight = make_data(seed, task)
    model = fit(task, X, y, weight, monotone_constraints=signs, **growth)
    report = model.verify_monotone()
    assert report.holds, report
    # and by plain evaluation, of rows old and new
    random = np.random.default_rng(seed)
    rows = X[random.integers(0, len(X), 20)]
    for feature in np.flatnonzero(signs):
        values = np.sort(np.append(X[~np.isnan(X[:, feature]), feature][:30], [-np.inf, np.inf]))
        for row in rows:
            moved = np.repeat(row[np.newaxis], len(values), axis=0)
            moved[:, feature] = values
            assert (signs[feature] * np.diff(model._scored(moved)[1], axis=1) >= 0.0).all()


def paths(model):
    """Return the set of features on the way to each leaf of all trees."""
    found = set()
    for start, stop in itertools.pairwise(model.model_.tree_starts):
        nodes = model.model_.nodes[start:stop]
        waiting = [(0, frozenset())]
        while waiting:
            node, path = waiting.pop()
            if nodes.left[node] < 0:
                found.add(path)
            else:
                path |= {int(nodes.feature[node])}
                waiting += [(nodes.left[node], path), (nodes.right[node], path)]
    return found


def is_allowed(path, groups):
    if isinstance(groups, str):
        return len(path) <= {"pairwise": 2, "no_interactions": 1}[groups]
    return len(path) <= 1 or any(path <= set(group) for group in groups)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**6), task=TASKS, groups=GROUPS, growth=GROWTH)
def test_no_path_leaves_its_group(seed, task, groups, growth):
    X, y, weight = make_data(seed, task)
    model = fit(task, X, y, weight, interaction_constraints=groups, **growth)
    for path in paths(model):
        assert is_allowed(path, groups)


def test_missing_values_may_go_beyond_all_others():
    # the lowest targets are those of rows without a value, in a feature that must fall
    X = np.array([[np.nan]] * 20 + [[0.0]] * 20 + [[1.0]] * 20)
    y = np.repeat([-5.0, 3.0, 1.0], 20)
    for signs, expected in ((1, [-5, 2, 2]), (-1, [-5, 3, 1])):
        model = XGBRegressorLite(
            n_estimators=1, learning_rate=1.0, reg_lambda=0.0, monotone_constraints=[signs]
        )
        prediction = model.fit(X, y).predict([[np.nan], [0.0], [1.0]])
        np.testing.assert_allclose(prediction, expected, atol=1e-6)


@pytest.mark.parametrize(
    "drawn",
    [dict(extra_trees=True), dict(feature_weights=[1, 2, 3, 4], colsample_bynode=0.5)],
    ids=["random thresholds", "weighted draws"],
)
def test_what_is_random_depends_on_the_seed(drawn):
    X = np.random.default_rng(0).normal(size=(300, 4))
    y = X.sum(axis=1)
    first, again, other = (
        XGBRegressorLite(n_estimators=2, random_state=seed, **drawn).fit(X, y).predict(X)
        for seed in (1, 1, 2)
    )
    assert_array_equal(first, again)
    assert (first != other).any()
