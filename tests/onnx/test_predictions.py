"""Graphs predict what models predict: all kinds of models, both precisions, every threshold."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklboost import (
    Loss,
    XGBClassifierLite,
    XGBRegressorLite,
    XGBRFClassifierLite,
    XGBRFRegressorLite,
)
from tests.kinds_of_models import KINDS, data
from tests.onnx.running import check, run

# Of those left out, metrics change no model, and many rows only how one is made.
CONVERTED = [name for name in KINDS if not name.startswith(("linear", "metrics", "many rows"))]
N_ROWS = 300


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    X = random.normal(size=(N_ROWS, 4))
    X[::9, 1] = np.nan
    return X, X[:, 0] + np.nan_to_num(X[:, 1]) ** 2 + X[:, 2] * X[:, 3]


@pytest.mark.parametrize("name", CONVERTED)
def test_every_kind_of_model(name):
    kind = KINDS[name]
    X, _ = data("numbers" if kind.features == "bins" else kind.features)
    model, rows = kind.fit(), (X.toarray() if hasattr(X, "toarray") else X)[:N_ROWS]
    check(model, rows.astype(np.float64))
    if set(kind.parameters) != {"objective"}:  # a loss changes only what becomes of the sums
        check(model, rows.astype(np.float32), rtol=1e-6)  # results are of the type of the input


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_at_every_threshold_go_the_same_way(table, dtype):
    X, y = table
    model = XGBRegressorLite(n_estimators=3, learning_rate=1.0, max_depth=8, reg_lambda=0)
    nodes = model.fit(X, y).trees_to_dataframe().query("Feature != 'Leaf'")
    tables = []
    for feature, splits in nodes.groupby("Feature"):
        values = splits["Split"].to_numpy().astype(dtype)
        values = np.concatenate([np.nextafter(values, dtype(-9)), values, values + dtype(1e-9)])
        values = np.concatenate([values, np.nextafter(values, dtype(9))])
        rows = np.tile(X[:40].astype(dtype), (len(values), 1))
        rows[:, int(feature[1:])] = values.repeat(40)
        tables.append(rows)
    X = np.concatenate(tables)
    (predictions,) = run(model, X)
    wanted = model.predict(X)
    assert_allclose(predictions[:, 0], wanted, rtol=1e-6, atol=1e-6)
    assert np.diff(np.unique(wanted.round(6))).size > 100  # leaves are told apart


def test_leaf_values_that_later_trees_take_back(table):
    """As float32 in one part or two, sums would be wrong by 1e5 or 2e-3."""
    X, y = table
    y = np.where(np.arange(N_ROWS) == 7, 1e12, y)
    settings = dict(n_estimators=100, learning_rate=1.0, reg_lambda=0, max_depth=2, subsample=0.9)
    model = XGBRegressorLite(**settings, random_state=0).fit(X, y)
    check(model, X, rtol=1e-12, atol=3e-4)


@pytest.mark.parametrize(
    ("n_classes", "settings"),
    [
        (2, dict(class_weight="balanced", calibrated_prior=True)),
        (3, dict(class_weight="balanced", calibrated_prior=True)),
    ],
)
def test_classes(table, settings, n_classes):
    X, y = table
    labels = np.digitize(y, [-1.0, 1.0][: n_classes - 1])
    check(XGBClassifierLite(n_estimators=6, **settings).fit(X, labels), X)


@pytest.mark.parametrize("forest", [XGBRFClassifierLite, XGBRFRegressorLite])
def test_forests(table, forest):
    X, y = table
    y = np.digitize(y, [-1.0, 1.0]) if forest is XGBRFClassifierLite else y
    check(forest(n_estimators=7, random_state=0).fit(X, y), X)


def test_hinge_loss_of_labels(table):
    X, y = table
    labels = np.column_stack([y > 0.0, y > 1.0]).astype(int)
    model = XGBClassifierLite(n_estimators=4, objective="binary:hinge", base_score=0.3)
    model.fit(X, labels)
    assert abs(model.decision_function(X)).min() > 1e-6  # rounding puts none on the other side
    check(model, X)


@pytest.mark.parametrize("objective", ["reg:quantileerror", "reg:expectileerror"])
def test_several_alphas_of_several_targets_are_in_order(table, objective):
    X, y = table
    alphas = dict(quantile_alpha=[0.1, 0.5, 0.9], expectile_alpha=[0.1, 0.5, 0.9])
    model = XGBRegressorLite(n_estimators=9, objective=objective, learning_rate=1.0, **alphas)
    model.fit(X, np.column_stack([y, -y]))
    raw_scores = model.predict(X, output_margin=True).reshape(N_ROWS, 3, 2)
    assert (np.diff(raw_scores, axis=1) < 0).any()  # some of them cross
    check(model, X)


class SquaredErrorOfLogarithms(Loss):
    link = "log"

    def gradients(self, y, raw_score):
        return raw_score - y, np.ones_like(raw_score)


def test_a_loss_of_a_user_that_has_a_link_beyond_the_range_of_its_exponentials():
    X = np.arange(20.0)[:, np.newaxis]
    y = np.where(X[:, 0] < 10, -2000.0, 2000.0)
    settings = dict(n_estimators=3, learning_rate=1.0, reg_lambda=0)
    model = XGBRegressorLite(objective=SquaredErrorOfLogarithms(), **settings).fit(X, y)
    assert model.predict(X).max() > 1e300
    check(model, X, atol=0)


# --- labels and options --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [["low", "high"], ["ä", "", "c"], [False, True], [7], ["only"], [-3, 2**40], [0.0, 2.0, 1.0]],
)
def test_labels_of_every_type(table, labels):
    X, _ = table
    y = np.array(labels)[np.arange(N_ROWS) % len(labels)]
    check(XGBClassifierLite(n_estimators=3).fit(X, y), X)


def test_a_zipmap_columns_or_numbers_of_classes(table):
    X, y = table
    model = XGBClassifierLite(n_estimators=3).fit(X, np.where(y > 0, "yes", "no"))
    known, chances = model.predict(X), model.predict_proba(X)
    labels, probabilities = run(model, X)  # skl2onnx's default: a dictionary for each row
    assert labels.tolist() == known.tolist()
    for row, wanted in zip(probabilities, chances, strict=True):
        assert row == pytest.approx(dict(zip(["no", "yes"], wanted, strict=True)), abs=1e-6)
    _, *columns = run(model, X, zipmap="columns")
    assert_allclose(np.column_stack(columns), chances, atol=1e-9)
    labels, _ = run(model, X, nocl=True, zipmap=False)
    assert labels.tolist() == (known == "yes").astype(int).tolist()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_raw_scores_of_classes(table, n_classes):
    X, y = table
    model = XGBClassifierLite(n_estimators=3).fit(X, np.digitize(y, [-1, 1][: n_classes - 1]))
    _, scores = run(model, X, raw_scores=True, zipmap=False)
    wanted = model.decision_function(X)
    wanted = np.column_stack([-wanted, wanted]) if n_classes == 2 else wanted
    assert_allclose(scores, wanted, rtol=1e-9)


def test_raw_scores_are_without_the_margin_of_the_training(table):
    X, y = table
    margin = np.linspace(0, 1, N_ROWS)
    model = XGBRegressorLite(n_estimators=3, objective="reg:gamma")
    model.fit(X, np.exp(y), base_margin=margin)
    (scores,) = run(model, X, raw_scores=True)
    assert_allclose(np.exp(scores[:, 0] + margin), model.predict(X, base_margin=margin))


# --- what is refused -----------------------------------------------------------------------------


class OwnPredictions(Loss):
    link = "other"

    def gradients(self, y, raw_score):
        return raw_score - y, np.ones_like(raw_score)

    def predictions(self, raw_score):
        return np.round(raw_score[0])


def test_a_loss_with_predictions_of_its_own_is_refused(table):
    X, y = table
    model = XGBRegressorLite(n_estimators=2, objective=OwnPredictions()).fit(X, y)
    with pytest.raises(ValueError, match=r"objective=OwnPredictions .*'raw_scores': True"):
        run(model, X)
    (scores,) = run(model, X, raw_scores=True)
    assert_allclose(np.round(scores[:, 0]), model.predict(X))


@pytest.mark.parametrize(
    ("model", "labels", "fit", "words"),
    [
        (XGBRegressorLite(linear_tree=True), (0, 1), {}, "fit with linear_tree=False"),
        (
            XGBClassifierLite(),
            (False, True),
            dict(base_margin=np.zeros(N_ROWS)),
            "XGBClassifierLite was fitted with base_margin",
        ),
        (
            XGBClassifierLite(),
            (np.uint64(1), np.uint64(2**63)),
            {},
            r"the classes are \[1, 9223372036854775808\]",
        ),
    ],
)
def test_what_no_graph_can_say_is_refused(table, model, labels, fit, words):
    X, y = table
    model.set_params(n_estimators=2).fit(X, np.where(y > 0, labels[1], labels[0]), **fit)
    with pytest.raises(ValueError, match=words):
        run(model, X)
