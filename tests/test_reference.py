"""The package against the slow, plain oracle of reference.py, on small random data.

Same trees (nodes in the same order, same features, thresholds, directions), numbers to 1e-6.
"""

from functools import cache
from itertools import cycle, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.boosting.settings import feature_rules
from sklboost.engine.elementary import hash_key
from sklboost.estimators.parameters.boosters import seeds
from sklboost.tree.options.column_sampling import (
    allocate_column_sample,
    choose_tree_features,
)
from sklboost.tree.options.row_sampling import is_drawn, row_keys
from tests.reference import ReferenceBooster
from tests.tree.growth import binned, features_of_node, params

pytestmark = pytest.mark.interpreted

LOSSES = ["squared_error", "log_loss", "softmax"]
PRUNING = ["post", "full", "pre"]
GROWTH = {
    "depthwise": dict(max_depth=3),
    "depthwise, 5 leaves": dict(max_depth=4, max_leaves=5),
    "depthwise, unlimited": dict(max_depth=0),
    "lossguide": dict(grow_policy="lossguide", max_depth=3),
    "lossguide, 5 leaves": dict(grow_policy="lossguide", max_depth=0, max_leaves=5),
    "symmetric": dict(grow_policy="symmetric", max_depth=3),
    "symmetric, deeper": dict(grow_policy="symmetric", max_depth=6),
}
REGULARISERS = {
    "reg_lambda": 3.0,
    "reg_alpha": 0.4,
    "gamma": 0.8,
    "ccp_alpha": 0.3,
    "min_child_weight": 2.5,
    "min_child_samples": 6,
    "max_delta_step": 0.25,
}


def make_data(seed, loss, missing=False, n_rows=30):
    """Return X with repeated values, so with ties between splits, and targets of that loss."""
    random = np.random.default_rng([seed, LOSSES.index(loss)])
    X = random.integers(0, 6, (n_rows, 3)).astype(float)
    X[:, 0] = random.normal(size=n_rows)
    signal = X[:, 1] - X[:, 2] * (X[:, 0] > 0) + random.normal(size=n_rows)
    if loss == "squared_error":
        y = signal
    elif loss == "log_loss":
        y = (signal > np.median(signal) - 0.5).astype(int)
    else:
        y = np.digitize(signal, np.quantile(signal, [0.3, 0.7]))
    if missing:
        X[random.random(X.shape) < 0.2] = np.nan
    return X, y


def make_weight(seed, n_rows=30):
    return np.random.default_rng([seed, 99]).uniform(0.5, 2.0, n_rows)


def fit_model(loss, X, y, sample_weight=None, **settings):
    estimator = XGBRegressorLite if loss == "squared_error" else XGBClassifierLite
    settings = dict(n_estimators=2, min_child_weight=0.3) | settings
    return estimator(n_jobs=1, **settings).fit(X, y, sample_weight=sample_weight)


def fit_both(loss, X, y, sample_weight=None, sampling=None, draws=None, **settings):
    """Fit model and oracle; `sampling` is for the model, `draws` is what comes of it."""
    settings = dict(n_estimators=2, min_child_weight=0.3) | settings
    model = fit_model(loss, X, y, sample_weight, **settings, **(sampling or {}))
    oracle = ReferenceBooster(loss, **settings).fit(X, y, sample_weight, **(draws or {}))
    return model, oracle


def rows_of(oracle):
    """Return what trees_to_dataframe() should hold, as lists."""
    table = []
    for number, tree in enumerate(oracle.trees):
        for node_number, node in enumerate(tree.nodes):
            is_leaf = not node.children
            leaf_value = oracle.settings.learning_rate * node.weight
            yes, no = (
                (None, None)
                if is_leaf
                else (f"{number}-{tree.number(child)}" for child in node.children)
            )
            table.append(
                dict(
                    Tree=number,
                    Node=node_number,
                    ID=f"{number}-{node_number}",
                    Feature="Leaf" if is_leaf else f"f{node.feature}",
                    Split=np.nan if is_leaf else node.threshold,
                    Yes=yes,
                    No=no,
                    Missing=yes if node.default_left else no,
                    Gain=leaf_value if is_leaf else node.gain,
                    Cover=node.hessian,
                    Similarity=node.similarity,
                    Output=node.weight,
                )
            )
    return table


def raw_score(model, X):
    """Return the raw scores of a model, shape (n_outputs, n_rows)."""
    if isinstance(model, XGBRegressorLite):
        return model.predict(X)[np.newaxis]
    return np.atleast_2d(model.decision_function(X).T)


def assert_same(model, oracle, X):
    frame, expected = model.trees_to_dataframe(), rows_of(oracle)
    for name in ("Tree", "Node", "ID", "Feature"):
        assert list(frame[name]) == [row[name] for row in expected], name
    for name in ("Yes", "No", "Missing"):
        links = [link if isinstance(link, str) else None for link in frame[name]]
        assert links == [row[name] for row in expected], name
    thresholds = [row["Split"] for row in expected]
    assert_allclose(frame["Split"].astype(float), thresholds, rtol=1e-15)
    for name in ("Cover", "Output", "Similarity", "Gain"):
        values = np.array([row[name] for row in expected])
        # a gain is a difference of similarities, and no more precise than they are
        scale = max(1.0, np.abs([row["Similarity"] for row in expected]).max())
        assert_allclose(frame[name], values, rtol=1e-6, atol=1e-6 * scale, err_msg=name)
    assert_allclose(raw_score(model, X), oracle.raw_score(X), rtol=1e-6, atol=1e-6)
    assert_array_equal(model.apply(X), oracle.apply(X))


def new_rows(X):
    """Return rows the model has not seen: missing values in every feature, values out of range."""
    rows = np.nan_to_num(X[:9]) + 0.3
    rows[0:3] = np.where(np.eye(3), np.nan, rows[0:3])
    rows[3], rows[4], rows[5] = np.nan, np.inf, -np.inf
    return rows


@pytest.mark.parametrize("growth", GROWTH)
@pytest.mark.parametrize("pruning", PRUNING)
def test_growth_and_pruning(pruning, growth):
    for seed, loss in enumerate(LOSSES):
        X, y = make_data(seed, loss, missing=True)
        model, oracle = fit_both(loss, X, y, pruning=pruning, gamma=0.2, **GROWTH[growth])
        assert_same(model, oracle, X)
        assert_same(model, oracle, new_rows(X))


@cache
def plain_scores(loss, seed):
    X, y = make_data(seed, loss)
    plain = ReferenceBooster(loss, n_estimators=2, min_child_weight=0.3, max_depth=3)
    return plain.fit(X, y).raw_score(X)


@pytest.mark.parametrize("name", REGULARISERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_each_regulariser(loss, name):
    effects = []
    for seed in range(2):
        X, y = make_data(seed, loss)
        model, oracle = fit_both(loss, X, y, max_depth=3, **{name: REGULARISERS[name]})
        assert_same(model, oracle, X)
        effects.append(np.abs(plain_scores(loss, seed) - oracle.raw_score(X)).max())
    assert max(effects) > 1e-3


@pytest.mark.parametrize("pruning", PRUNING)
@pytest.mark.parametrize("loss", LOSSES)
def test_all_regularisers_at_once_with_weights_and_missing_values(loss, pruning):
    for seed in range(3):
        X, y = make_data(seed, loss, missing=True)
        settings = dict(
            reg_lambda=0.7,
            reg_alpha=0.1,
            gamma=0.1,
            min_child_weight=0.8,
            min_child_samples=4,
            max_delta_step=1.8,  # rarely both children: the gain would then not depend on the rows
            learning_rate=0.5,
        )
        weight = make_weight(seed)
        model, oracle = fit_both(loss, X, y, weight, max_depth=3, pruning=pruning, **settings)
        assert_same(model, oracle, X)


@pytest.mark.parametrize("base_score", [None, 0.2, 0.9])
@pytest.mark.parametrize("loss", LOSSES)
def test_no_regulariser_at_all_and_probabilities(loss, base_score):
    # weights, since few rows of few classes would make many gains equal in all but rounding
    X, y = make_data(5, loss)
    settings = dict(reg_lambda=0.0, min_child_weight=0.05, learning_rate=0.8, base_score=base_score)
    model, oracle = fit_both(loss, X, y, make_weight(5), max_depth=2, **settings)
    if loss == "softmax" and base_score is not None:
        # the same constant for all classes, which no probability shows
        difference = raw_score(model, X) - oracle.raw_score(X)
        assert_allclose(difference, difference[0, 0], atol=1e-6)
    else:
        assert_same(model, oracle, X)
    if loss != "squared_error":
        raw = oracle.raw_score(X)
        raw = np.vstack([np.zeros_like(raw), raw]) if loss == "log_loss" else raw
        probabilities = (np.exp(raw) / np.exp(raw).sum(axis=0)).T
        assert_allclose(model.predict_proba(X), probabilities, rtol=1e-5, atol=1e-7)
        assert_array_equal(model.predict(X), probabilities.argmax(axis=1))


@pytest.mark.parametrize("loss", ["log_loss", "softmax"])
def test_largest_step_of_a_rare_class(loss):
    X, y = make_data(4, loss, n_rows=60)
    rare = y.max()
    y[y == rare] = 0
    y[:2] = rare
    model, oracle = fit_both(loss, X, y, make_weight(4, 60), reg_lambda=0.0, min_child_weight=0.0)
    assert_same(model, oracle, X)
    outputs = [abs(row["Output"]) for row in rows_of(oracle)]
    assert max(outputs) == 10.0
    assert sum(output == 10.0 for output in outputs) < len(outputs) / 2


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_targets_of_any_magnitude(scale):
    X, y = make_data(1, "squared_error")
    model, oracle = fit_both("squared_error", X, scale * y, max_depth=3, gamma=0.0)
    frame, expected = model.trees_to_dataframe(), rows_of(oracle)
    assert list(frame["Feature"]) == [row["Feature"] for row in expected]
    assert_allclose(model.predict(X) / scale, oracle.raw_score(X)[0] / scale, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_linear_leaves(loss, missing):
    # numbers of the slopes come from single gradients, which are float32
    effects = []
    for seed in range(4):
        X, y = make_data(seed, loss, missing)
        X[::9, 0] = np.inf if missing else X[::9, 0]
        settings = dict(linear_tree=True, linear_lambda=0.5 + seed, learning_rate=0.5)
        settings |= dict(max_depth=2 + seed, min_child_weight=1.0, gamma=0.2, n_estimators=3)
        model, oracle = fit_both(loss, X, y, make_weight(seed) if seed else None, **settings)
        assert_same(model, oracle, X)
        assert_same(model, oracle, new_rows(X))
        plain = ReferenceBooster(loss, **(settings | dict(linear_tree=False)))
        effects.append(np.abs(plain.fit(X, y).raw_score(X) - oracle.raw_score(X)).max())
    assert max(effects) > 0.1


@pytest.mark.parametrize("loss", LOSSES)
def test_linear_leaves_within_max_delta_step(loss):
    X, y = make_data(1, loss)
    settings = dict(linear_tree=True, linear_lambda=0.1, max_depth=2, max_delta_step=0.4)
    settings |= dict(reg_lambda=200.0)  # so that no weight is limited, but lines are
    assert_same(*fit_both(loss, X, y, **settings), X)


def test_infinite_values_are_ordinary_values():
    X, y = make_data(4, "squared_error", missing=True)
    X[::5, 0], X[1::5, 0] = np.inf, -np.inf
    X[::7, 1] = np.where(np.arange(len(X[::7])) % 2, np.inf, -np.inf)
    assert_same(*fit_both("squared_error", X, y, max_depth=4), X)


NAN, INF, NEXT = np.nan, np.inf, np.nextafter(1.0, 2.0)
ONE_FEATURE = {
    "infinities and NaN only": ([-INF, -INF, INF, INF, NAN], [0.0, 1.0, 5.0, 6.0, 9.0]),
    "missing alone goes left": ([1.0, 2.0, 3.0, NAN, NAN], [0.0, 0.1, 0.05, 7.0, 7.1]),
    "neighbours with no float between": ([1.0, 1.0, NEXT, NEXT], [0.0, 0.0, 1.0, 1.0]),
    "a sum that overflows": ([-1.7e308, 1e308, 1.7e308, 5e-324, 0.0], [0.0, 3.0, 9.0, 5.0, 7.0]),
    "of equal gains the lower position": ([0.0, 1.0, 2.0, 3.0], [1.0, 0.0, 0.0, 1.0]),
    "of the same two groups missing right": ([0.0, NAN, 1.0], [0.0, 1.0, 0.0]),
}


@pytest.mark.parametrize("max_depth", [1, 2, 3])
@pytest.mark.parametrize("name", ONE_FEATURE)
def test_one_feature(name, max_depth):
    x, y = map(np.array, ONE_FEATURE[name])
    model, oracle = fit_both("squared_error", x[:, np.newaxis], y, max_depth=max_depth)
    assert_same(model, oracle, np.append(x, [-INF, INF, NAN])[:, np.newaxis])


def test_columns_that_hold_nothing_to_split():
    X, y = make_data(6, "squared_error")
    X = np.column_stack([np.full(30, np.nan), np.full(30, 3.0), X])
    assert_same(*fit_both("squared_error", X, y, max_depth=3), X)
    assert_same(*fit_both("squared_error", X[:, :2], y), X[:, :2])


@pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
def test_a_gain_that_is_only_rounding_error_is_no_gain(loss):
    # two constant groups: once they are apart, every further split gains exactly nothing
    for n_rows in range(4, 40, 3):
        X = np.arange(float(n_rows))[:, np.newaxis]
        y = (X[:, 0] >= n_rows // 3).astype(int)
        start = 0.1 + n_rows / 50
        settings = dict(reg_lambda=0.0, min_child_weight=0.0, base_score=start, n_estimators=3)
        model, oracle = fit_both(loss, X, y, max_depth=0, **settings)
        assert (model.trees_to_dataframe().groupby("Tree").size() <= 3).all()
        assert_same(model, oracle, X)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_ties_go_to_the_lower_feature(order):
    # one feature, a copy of it and its mirror image: every split ties with two others
    X, y = make_data(7, "squared_error", missing=True)
    X = np.column_stack([X[:, 1], X[:, 1], -X[:, 1]])[:, order]
    for growth in GROWTH.values():
        assert_same(*fit_both("squared_error", X, y, **growth), X)


# --- what is laid down for single features, and the parent's weight -------------------------------

HELD = {
    "rising": dict(monotone_constraints=(0, 1, 0)),
    "rising and falling": dict(monotone_constraints=(-1, 1, 1), reg_alpha=0.3),
    "against the data": dict(monotone_constraints=(0, -1, 1), max_delta_step=0.6),
    "smoothed": dict(path_smooth=2.0),
    "smoothed and falling": dict(path_smooth=5.0, monotone_constraints=(-1, -1, -1)),
    "apart": dict(interaction_constraints=[[0, 1]]),
    "overlapping": dict(interaction_constraints=[[0, 1], [1, 2]], monotone_constraints=(1, 0, 0)),
    "alone": dict(interaction_constraints=[]),
}


# Each of HELD with each growth, a loss and a way of pruning in turn.
CASES = [
    (*own, loss, pruning)
    for own, loss, pruning in zip(
        product(HELD, GROWTH), cycle(LOSSES), cycle(["post", *PRUNING]), strict=False
    )
    # nodes that share their splits cannot keep to such groups
    if not (own[1].startswith("symmetric") and "interaction_constraints" in HELD[own[0]])
]


@pytest.mark.parametrize(("held", "growth", "loss", "pruning"), CASES)
def test_constraints_and_smoothing(held, growth, loss, pruning):
    X, y = make_data(5, loss, missing=True)
    weight, settings = make_weight(5), GROWTH[growth] | dict(pruning=pruning, gamma=0.2)
    model, oracle = fit_both(loss, X, y, weight, **settings, **HELD[held])
    assert_same(model, oracle, X)
    free = fit_model(loss, X, y, weight, **settings)
    assert np.any(raw_score(free, X) != raw_score(model, X))


# --- sampling: the oracle is told what the hashes drew -------------------------------------------


def drawn_rows(X, y, subsample, seed):
    """Return a function from the round to a mask of the rows drawn in it."""
    keys = row_keys(binned(X), y.astype(float)[np.newaxis], np.empty(0))

    def rows(round_):
        key = np.uint64(hash_key(seed, round_, -1))
        return np.array([is_drawn(row_key, key, np.float32(subsample)) for row_key in keys])

    return rows


def chosen_features(n_features, fractions, seed):
    """Return a function from round and output to the features that a node may be split on."""
    settings = params(**fractions)

    def features(round_, output):
        sample = allocate_column_sample(feature_rules(n_features), n_features, 1)
        sample.key[0] = hash_key(seed, round_, -2 - output)
        choose_tree_features(settings, sample)

        def of_node(number, depth):
            return features_of_node(sample, settings, number, depth)

        return of_node

    return features


@pytest.mark.parametrize("growth", [*GROWTH, "linear leaves"])
def test_sampled_rows(growth):
    settings = GROWTH.get(growth, dict(linear_tree=True, max_depth=2))
    for random_state, loss in enumerate(LOSSES):
        X, y = make_data(random_state, loss, missing=True)
        _, seed = seeds(random_state, True)
        sampling = dict(subsample=0.6, random_state=random_state)
        draws = dict(rows=drawn_rows(X, y, 0.6, seed))
        model, oracle = fit_both(loss, X, y, None, sampling, draws, **settings)
        assert_same(model, oracle, X)
        assert 5 < draws["rows"](0).sum() < 25


@pytest.mark.parametrize(("growth", "loss"), list(zip(GROWTH, cycle(LOSSES), strict=False)))
def test_sampled_rows_and_columns(growth, loss):
    X, y = make_data(3, loss)
    X = np.column_stack([X, np.roll(X, 5, axis=0), np.roll(X, 9, axis=0)])
    fractions = dict(colsample_bytree=0.8, colsample_bylevel=0.6, colsample_bynode=0.8)
    _, seed = seeds(0, True)
    sampling = dict(subsample=0.8, random_state=0, **fractions)
    draws = dict(rows=drawn_rows(X, y, 0.8, seed), features=chosen_features(9, fractions, seed))
    model, oracle = fit_both(loss, X, y, None, sampling, draws, **GROWTH[growth])
    assert_same(model, oracle, X)
    assert len(draws["features"](0, 0)(0, 0)) == 3
