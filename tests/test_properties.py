"""What must hold for any data: properties, with examples that hypothesis looks for."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from sklboost import XGBClassifierLite, XGBRegressorLite

LOSSES = ["squared_error", "log_loss", "softmax"]

growth = st.sampled_from(
    [
        dict(max_depth=3),
        dict(max_depth=0, max_leaves=6),
        dict(max_depth=0, max_leaves=6, grow_policy="lossguide"),
        dict(max_depth=2, pruning="full"),
        dict(max_depth=3, pruning="pre", gamma=0.1),
        dict(max_depth=3, reg_lambda=0.0, reg_alpha=0.2, gamma=0.3),
        dict(max_depth=3, max_bin=3),
    ]
)


@st.composite
def problems(draw, max_rows=24):
    """Draw (loss, X, y): few distinct values, so many ties; missing values; small targets."""
    n_rows = draw(st.integers(4, max_rows))
    n_features = draw(st.integers(1, 3))
    value = st.one_of(st.integers(-3, 3).map(float), st.just(np.nan))
    X = draw(arrays(float, (n_rows, n_features), elements=value))
    loss = draw(st.sampled_from(LOSSES))
    if loss == "squared_error":
        y = draw(arrays(float, n_rows, elements=st.integers(-40, 40).map(lambda k: k / 8)))
    else:
        n_classes = 2 if loss == "log_loss" else 3
        y = draw(arrays(int, n_rows, elements=st.integers(0, n_classes - 1)))
        assume(len(np.unique(y)) == n_classes)
    return loss, X, y


def build(loss, **parameters):
    # a given start: the mean is the same to the last bit but one only, if weights replace copies
    plain = dict(n_estimators=3, min_child_weight=0.1, base_score=0.5, n_jobs=1)
    estimator = XGBRegressorLite if loss == "squared_error" else XGBClassifierLite
    return estimator(**(plain | parameters))


def raw_scores(model, X):
    """Return the raw scores, shape (n_rows,) or (n_rows, n_classes)."""
    return model.predict(X) if isinstance(model, XGBRegressorLite) else model.decision_function(X)


def assert_same_model(one, other, X):
    numbers = ["Split", "Gain", "Cover", "Similarity", "Output"]
    first, second = one.trees_to_dataframe(), other.trees_to_dataframe()
    assert list(first["Feature"]) == list(second["Feature"])
    assert_array_equal(first[numbers], second[numbers])
    assert_array_equal(raw_scores(one, X), raw_scores(other, X))


@given(problem=problems(), growth=growth, data=st.data())
@settings(max_examples=60)
def test_weight_k_is_the_row_k_times(problem, growth, data):
    loss, X, y = problem
    copies = data.draw(arrays(int, len(y), elements=st.integers(0, 3)))
    repeated = np.repeat(np.arange(len(y)), copies)
    assume(len(repeated) > 0)
    assume(loss == "squared_error" or len(np.unique(y[repeated])) == len(np.unique(y)))
    weighted = build(loss, **growth).fit(X, y, sample_weight=copies)
    assert_same_model(weighted, build(loss, **growth).fit(X[repeated], y[repeated]), X)


@pytest.mark.filterwarnings("ignore:no tree has a split:UserWarning")
@given(problem=problems(), growth=growth, data=st.data())
@settings(max_examples=60)
def test_weight_zero_is_the_row_gone(problem, growth, data):
    loss, X, y = problem
    weight = data.draw(arrays(float, len(y), elements=st.sampled_from([0.0, 0.3, 1.0, 2.5])))
    kept = weight > 0
    assume(kept.any())
    assume(loss == "squared_error" or len(np.unique(y[kept])) == len(np.unique(y)))
    X_strange = X.copy()
    X_strange[~kept] += 0.5  # values that no other row has must not become bins
    with_zeros = build(loss, **growth).fit(X_strange, y, sample_weight=weight)
    without = build(loss, **growth).fit(X[kept], y[kept], sample_weight=weight[kept])
    assert_same_model(with_zeros, without, X)


@given(problem=problems(), growth=growth, data=st.data())
@settings(max_examples=60)
def test_an_increasing_map_of_a_feature_changes_no_prediction(problem, growth, data):
    loss, X, y = problem
    steps = data.draw(arrays(float, (7, X.shape[1]), elements=st.sampled_from([1e-3, 1.0, 1e4])))
    images = np.cumsum(steps, axis=0) - 5.0
    mapped = np.full(X.shape, np.nan)
    for feature in range(X.shape[1]):
        known = ~np.isnan(X[:, feature])
        mapped[known, feature] = images[X[known, feature].astype(int) + 3, feature]
    before, after = build(loss, **growth).fit(X, y), build(loss, **growth).fit(mapped, y)
    assert_array_equal(raw_scores(before, X), raw_scores(after, mapped))
    assert_array_equal(before.apply(X), after.apply(mapped))


@pytest.mark.filterwarnings("ignore:no tree has a split:UserWarning")
@given(problem=problems(), growth=growth, data=st.data())
@settings(max_examples=60)
def test_the_order_of_the_rows_changes_nothing(problem, growth, data):
    loss, X, y = problem
    order = np.array(data.draw(st.permutations(range(len(y)))))
    weight = data.draw(arrays(float, len(y), elements=st.sampled_from([0.4, 1.0, 1.7])))
    growth = growth | dict(base_score=None)
    one = build(loss, **growth).fit(X, y, sample_weight=weight)
    other = build(loss, **growth).fit(X[order], y[order], sample_weight=weight[order])
    assert_same_model(one, other, X)


@given(problem=problems(), growth=growth)
@settings(max_examples=60)
def test_the_table_of_nodes_agrees_with_itself_and_with_the_predictions(problem, growth):
    loss, X, y = problem
    model = build(loss, **growth).fit(X, y)
    frame = model.trees_to_dataframe().set_index("ID")
    splits = frame[frame["Feature"] != "Leaf"]
    yes, no = frame.loc[splits["Yes"]], frame.loc[splits["No"]]
    covers = yes["Cover"].to_numpy() + no["Cover"].to_numpy()
    assert_allclose(covers, splits["Cover"], rtol=1e-12)
    similarities = yes["Similarity"].to_numpy() + no["Similarity"].to_numpy()
    assert_allclose(similarities - splits["Similarity"], splits["Gain"], rtol=1e-9, atol=1e-9)
    assert set(splits["Missing"]) <= set(splits["Yes"]) | set(splits["No"])

    leaves = model.apply(X)
    n_outputs = 3 if loss == "softmax" else 1
    assert leaves.shape == (len(X), 3 * n_outputs)
    total = np.zeros((len(X), n_outputs))
    for tree in range(leaves.shape[1]):
        own = frame.loc[[f"{tree}-{node}" for node in leaves[:, tree]]]
        assert set(own["Feature"]) == {"Leaf"}
        total[:, tree % n_outputs] += own["Gain"].to_numpy()
        if loss == "squared_error":
            counts = own.groupby(level=0)["Cover"].agg(["first", "size"])
            assert_allclose(counts["first"], counts["size"], rtol=1e-6)
    start = raw_scores(model, X).reshape(len(X), n_outputs) - total
    assert_allclose(start, start[0, 0], atol=1e-9)
    if loss != "softmax":
        assert_allclose(start, 0.5 if loss == "squared_error" else 0.0, atol=1e-9)


@given(problem=problems(), depth=st.integers(1, 4), leaves=st.integers(2, 9), data=st.data())
@settings(max_examples=40)
def test_limits_are_kept(problem, depth, leaves, data):
    loss, X, y = problem
    policy = data.draw(st.sampled_from(["depthwise", "lossguide"]))
    least = data.draw(st.sampled_from([0.0, 0.3, 2.0]))
    model = build(
        loss, max_depth=depth, max_leaves=leaves, grow_policy=policy, min_child_weight=least
    )
    frame = model.fit(X, y).trees_to_dataframe().set_index("ID")
    is_leaf = frame["Feature"] == "Leaf"
    assert is_leaf.groupby(frame["Tree"]).sum().max() <= leaves
    depths = {}
    for name, node in frame.iterrows():  # parents come before their children
        depths.setdefault(name, 0)
        if node["Feature"] != "Leaf":
            depths[node["Yes"]] = depths[node["No"]] = depths[name] + 1
    assert max(depths.values()) <= depth
    children = frame[[depths[name] > 0 for name in frame.index]]
    assert (children["Cover"] >= least * (1 - 1e-6)).all()
