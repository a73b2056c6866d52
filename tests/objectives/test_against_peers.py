"""The values are those that XGBoost and LightGBM print for the same predictions.

Errors and log losses of classes, of which there is one definition: test_metrics.py.
"""

from functools import partial

import lightgbm
import numpy as np
import pytest
import xgboost
from numpy.testing import assert_allclose

from sklboost.objectives.registry import find_metric

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
        (lightgbm_value, "multiclass", "auc_mu"),
    ],
)
def test_more_than_two_classes(peer, objective, name):
    y = np.random.default_rng(0).integers(0, 4, N_ROWS).astype(float)
    raw_score = make_scores(y, 4)
    theirs = partial(peer, name, y, raw_score, objective=objective, num_class=4)
    probability = np.exp(raw_score) / np.exp(raw_score).sum(axis=1, keepdims=True)
    check(name, "multiclass", y, probability, theirs)
