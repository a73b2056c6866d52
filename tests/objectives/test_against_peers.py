"""The values are those that XGBoost and LightGBM print for the same predictions.

Errors and log losses of classes, of which there is one definition: test_metrics.py.
"""

from functools import partial

import lightgbm
import numpy as np
import pytest
import xgboost
from numpy.testing import assert_allclose

from sklboost import (
    XGBClassifierLite,
    XGBRankerLite,
    XGBRegressorLite,
    XGBSurvivalLite,
    survival_targets,
)
from sklboost.objectives.registry import OBJECTIVES, find_metric

NO_WEIGHT = np.empty(0)
N_ROWS = 300
WEIGHT = np.random.default_rng(9).exponential(size=N_ROWS)
# Their predictions, and XGBoost's targets, are float32.
FLOAT32 = 2e-6


def make_scores(y, n_columns, scale=1.0):
    """Return raw scores that have something to do with the targets, float32 in float64."""
    random = np.random.default_rng(1)
    scores = scale * random.normal(size=(N_ROWS, n_columns)) + 0.3 * y.reshape(N_ROWS, -1)
    return scores.astype(np.float32).astype(np.float64)


def check(name, task, y, prediction, theirs, rtol=FLOAT32, **parameters):
    """Compare with what a function gives for a weight, without weights and with some."""
    function = find_metric(name, task, parameters).function
    for weight in (NO_WEIGHT, WEIGHT):
        assert_allclose(function(y, prediction, weight), theirs(weight), rtol=rtol)


# --- XGBoost -------------------------------------------------------------------------------------


def xgboost_value(name, y, raw_score, weight, **parameters):
    """Let XGBoost take `raw_score` for what was predicted before a round that changes nothing."""
    rows = xgboost.DMatrix(
        np.zeros((N_ROWS, 1)), y, weight=weight if len(weight) else None, base_margin=raw_score
    )
    results = {}
    xgboost.train(
        {"eval_metric": name, "learning_rate": 0.0, "verbosity": 0, "base_score": 0.5} | parameters,
        *(rows, 1),
        evals=[(rows, "rows")],
        evals_result=results,
        verbose_eval=False,
    )
    ((values,),) = (own.values() for own in results.values())
    return values[0]


@pytest.mark.parametrize(
    "name",
    [
        *("rmse", "rmsle", "mae", "mape", "mphe", "poisson-nloglik", "gamma-nloglik"),
        *("gamma-deviance", "tweedie-nloglik@1.3", "tweedie-nloglik@1.8"),
    ],
)
def test_xgboost_regression(name):
    random, slope = np.random.default_rng(0), {"huber_slope": 0.7}
    # it adds 1e-6 to what it divides
    rtol = 1e-5 if name == "gamma-deviance" else FLOAT32
    for n_targets in (1, 3):
        y = random.poisson(3.0, (N_ROWS, n_targets)).astype(float) + 1.0
        prediction = 0.1 + np.abs(make_scores(y, n_targets)).astype(np.float32)
        theirs = partial(xgboost_value, name, y, prediction, **slope)
        check(name, "regression", y, prediction.astype(float), theirs, rtol, **slope)


@pytest.mark.parametrize("alphas", [[0.3], [0.1, 0.5, 0.9]])
def test_xgboost_quantiles(alphas):
    y = np.random.default_rng(0).normal(size=N_ROWS).astype(np.float32).astype(float)
    prediction, parameters = make_scores(y, len(alphas)), {"quantile_alpha": alphas}
    objective = {"objective": "reg:quantileerror"}
    theirs = partial(xgboost_value, "quantile", y, prediction, **parameters, **objective)
    check("quantile", "regression", y, prediction, theirs, **parameters)


@pytest.mark.parametrize(("name", "n_labels"), [("auc", 2), ("auc", 4), ("aucpr", 2)])
def test_xgboost_areas_of_rankings(name, n_labels):
    random = np.random.default_rng(0)
    y, query = random.integers(0, n_labels, N_ROWS).astype(float), np.arange(N_ROWS) // 20
    # nothing relevant, nothing else, too few documents
    y[query == 3], y[query == 4], query[-2:] = 0.0, 1.0, query[-1] + 1
    scores = np.round(make_scores(y, 1)[:, 0], 1).astype(np.float32)
    rows = xgboost.DMatrix(np.zeros((N_ROWS, 1)), y, qid=query, base_margin=scores)
    booster = xgboost.train({"objective": "rank:ndcg", "eval_metric": name}, rows, 0)
    own = find_metric(name, "ranking").function(
        np.column_stack([y, query]).astype(float), scores.astype(float), NO_WEIGHT
    )
    assert float(booster.eval(rows).split(":")[-1]) == pytest.approx(own, rel=FLOAT32)


def test_areas_of_two_classes_are_those_of_xgboost():
    random = np.random.default_rng(0)
    y = random.integers(0, 2, N_ROWS).astype(float)
    score = np.round(make_scores(y, 1)[:, 0], 1)
    for name in ("auc", "aucpr"):
        theirs = partial(xgboost_value, name, y, score.astype(np.float32))
        check(name, "binary", y, score, theirs)


OURS_ALONE = {
    *("reg:expectileerror", "reg:huber", "reg:logcosh", "reg:fair", "reg:mape"),
    *("binary:focal", "multi:onevsrest", "rank:xendcg", "rank:yeti"),
}
_EVENTS = np.arange(N_ROWS) % 3 > 0


@pytest.mark.parametrize(
    ("task", "objective"),
    [(task, entry.name) for task in OBJECTIVES for entry in OBJECTIVES[task]],
)
def test_the_default_metric_is_that_of_xgboost(task, objective):
    random, settings = np.random.default_rng(0), dict(n_estimators=3, objective=objective)
    X, y, more = random.normal(size=(N_ROWS, 3)), random.uniform(0.1, 0.9, N_ROWS), {}
    y = y.astype(np.float32).astype(float)
    kind, given, margin_sign = XGBRegressorLite, {}, 1.0
    if task in ("binary", "multiclass", "multilabel"):
        kind, y = XGBClassifierLite, np.digitize(y, [0.5, 0.7] if task == "multiclass" else [0.5])
        y = np.column_stack([y, 1 - y]) if task == "multilabel" else y
        more = {"num_class": 3} if task == "multiclass" else {}
    elif objective == "reg:quantileerror":
        more = {"quantile_alpha": 0.3}
    elif objective == "reg:expectileerror":
        settings["expectile_alpha"] = 0.3
    elif task == "ranking":
        kind, y, given = XGBRankerLite, (y > 0.5).astype(float), {"group": [20] * 15}
        settings["min_child_weight"] = 0.1  # a query's neighbours have little cover
    y_own = y
    if task == "survival":
        kind, y_own = XGBSurvivalLite, survival_targets(_EVENTS, y)
        margin_sign = -1.0 if objective == "survival:aft" else 1.0
        y = np.where(_EVENTS, y, -y)
    validation = {"eval_set": [(X, y_own)]}
    if task == "ranking":
        validation["eval_group"] = [[20] * 15]
    model = kind(**settings, **{k: v for k, v in more.items() if k != "num_class"})
    model.fit(X, y_own, **given, **validation)
    ((name, values),) = model.evals_result_["validation_0"].items()

    # raw scores are logarithms of 1 + p here, and p there
    is_same_scale = objective != "reg:squaredlogerror"
    raw_score = margin_sign * model.predict(X, output_margin=is_same_scale)
    rows = xgboost.DMatrix(X, np.abs(y), base_margin=raw_score, **given)
    if objective == "survival:cox":
        rows.set_label(y)
    if objective == "survival:aft":
        rows.set_float_info("label_lower_bound", np.abs(y))
        rows.set_float_info("label_upper_bound", np.where(_EVENTS, y, np.inf))
    if objective in OURS_ALONE:
        with pytest.raises(xgboost.core.XGBoostError, match="Unknown objective"):
            xgboost.train({"objective": objective}, rows, 0)
        return
    booster = xgboost.train({"objective": objective, **more}, rows, 0)
    their_name, value = booster.eval(rows).split("eval-")[1].split(":")
    assert name == their_name
    # gamma-deviance adds a millionth to what it divides
    assert float(value) == pytest.approx(values[-1], rel=1e-5)


# --- LightGBM ------------------------------------------------------------------------------------


def lightgbm_value(name, y, raw_score, weight, **parameters):
    rows = lightgbm.Dataset(
        np.zeros((N_ROWS, 1)),
        *(y, None, weight if len(weight) else None),
        init_score=raw_score.ravel(order="F"),
    )
    results = {}
    lightgbm.train(
        {"metric": name, "learning_rate": 1e-300, "verbose": -1, "min_data_in_leaf": 1}
        | parameters,
        *(rows, 1),
        valid_sets=[rows],
        callbacks=[lightgbm.record_evaluation(results)],
    )
    ((values,),) = (own.values() for own in results.values())
    return values[0]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        *(("l1", {}), ("l2", {}), ("rmse", {}), ("fair@1", {}), ("huber", {}), ("gamma", {})),
        *(("huber@0.4", {"alpha": 0.4}), ("fair@2.5", {"fair_c": 2.5})),
        *(("quantile@0.3", {"alpha": 0.3}), ("tweedie@1.2", {"tweedie_variance_power": 1.2})),
    ],
)
def test_lightgbm_regression(name, parameters):
    y = np.random.default_rng(0).exponential(size=N_ROWS).astype(np.float32).astype(float) + 0.1
    prediction = 0.1 + np.abs(make_scores(y, 1))
    own = {"objective": "regression"} | parameters
    theirs = partial(lightgbm_value, name.partition("@")[0], y, prediction, **own)
    check(name, "regression", y, prediction, theirs)


@pytest.mark.parametrize("name", ["cross_entropy", "kullback_leibler"])
def test_lightgbm_shares_of_two_classes(name):
    y = np.random.default_rng(0).uniform(size=N_ROWS).astype(np.float32).astype(float)
    raw_score = make_scores(y, 1)[:, 0]
    own = dict(objective="cross_entropy", boost_from_average=False)
    theirs = partial(lightgbm_value, name, y, raw_score, **own)
    check(name, "binary", y, 1 / (1 + np.exp(-raw_score)), theirs)


# --- both ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("peer", "objective", "name"),
    [
        (xgboost_value, "multi:softprob", "auc"),
        (xgboost_value, "multi:softprob", "aucpr"),
        (lightgbm_value, "multiclass", "auc_mu"),
    ],
)
def test_more_than_two_classes(peer, objective, name):
    y = np.random.default_rng(0).integers(0, 4, N_ROWS).astype(float)
    raw_score = make_scores(y, 4)
    theirs = partial(peer, name, y, raw_score, objective=objective, num_class=4)
    probability = np.exp(raw_score) / np.exp(raw_score).sum(axis=1, keepdims=True)
    check(name, "multiclass", y, probability, theirs)
