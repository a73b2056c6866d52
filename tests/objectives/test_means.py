"""Of raw scores, compiled metrics give what they give of predictions, for any number of threads."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklboost.engine.compiling import kernel
from sklboost.engine.parallel import ThreadTeam, share
from sklboost.objectives.links import IDENTITY, LOG, LOG_ODDS, SOFTMAX
from sklboost.objectives.losses.classes import Softmax
from sklboost.objectives.means import (
    add_losses,
    allocate_sums,
    finish_metric,
    mean_losses,
)
from sklboost.objectives.registry import METRICS, find_metric

pytestmark = pytest.mark.interpreted

NO_WEIGHT = np.empty(0)
PARAMETERS = {"quantile_alpha": [0.3], "expectile_alpha": [0.3]}
# The scales of raw scores that a task can have.
SCALES = {
    "regression": (IDENTITY, LOG, LOG_ODDS),
    "binary": (LOG_ODDS,),
    "multiclass": (SOFTMAX,),
    "multilabel": (LOG_ODDS,),
}
COMPILED = [
    (task, scale, entry.title.replace("@t", "@0.3"))
    for task, scales in SCALES.items()
    for scale in scales
    for entry in METRICS[task]
    if not entry.greater_is_better
    # log-odds are those of probabilities, and a mean is mostly none
    and not (task == "regression" and entry.of.reads == LOG_ODDS and scale != LOG_ODDS)
]
N_CLASSES, N_LABELS = 4, 3


@kernel
def add_all_losses(team, metrics, rows, sums):
    """Let each member do its share of the blocks."""
    start, stop = share(team, sums.blocks.shape[1])
    for block in range(start, stop):
        add_losses(metrics, 0, block, rows, sums.scratch[team.rank], sums.blocks[0])


def round_metric(name, task, scale, parameters=PARAMETERS):
    return find_metric(name, task, parameters).mean_loss._replace(scale=scale)


def compiled_value(metric, y, raw_score, weight=NO_WEIGHT, n_threads=1):
    rows = (np.atleast_2d(y), raw_score, weight)
    metrics = mean_losses([metric], len(raw_score))
    with ThreadTeam(n_threads) as team:
        sums = allocate_sums(1, raw_score.shape[1], team.size)
        sums.blocks[:], sums.scratch[:] = np.nan, np.nan
        team.run(add_all_losses, metrics, rows, sums)
    return finish_metric(metrics, 0, sums.blocks[0])


def predict(task, scale, raw_score):
    """Return what users see of raw scores."""
    if scale == SOFTMAX:
        prediction = Softmax(len(raw_score)).probabilities(raw_score).T
    else:
        change = {IDENTITY: np.array, LOG: np.exp, LOG_ODDS: lambda z: 1 / (1 + np.exp(-z))}
        prediction = change[scale](raw_score)
    return prediction[0] if len(prediction) == 1 else prediction.T


def make_data(task, scale, n_rows):
    random = np.random.default_rng(n_rows)
    n_outputs = {"multiclass": N_CLASSES, "multilabel": N_LABELS}.get(task, 1)
    raw_score = np.round(random.normal(size=(n_outputs, n_rows)), 1)
    if task == "regression":
        # all metrics of means are defined for positive ones
        raw_score = np.abs(raw_score) + 0.1
        return random.uniform(0.1, 1.0, n_rows), raw_score
    if task == "multilabel":
        return random.integers(0, 2, (N_LABELS, n_rows)).astype(float), raw_score
    return random.integers(0, max(2, n_outputs), n_rows).astype(float), raw_score


@pytest.mark.parametrize(("task", "scale", "name"), COMPILED)
def test_equals_the_function_of_predictions_and_is_a_number_of_extreme_scores(task, scale, name):
    metric, function = round_metric(name, task, scale), find_metric(name, task, PARAMETERS).function
    y, raw_score = make_data(task, scale, 600)
    prediction = predict(task, scale, raw_score)
    for weight in (NO_WEIGHT, np.random.default_rng(0).exponential(size=600)):
        value = compiled_value(metric, y, raw_score, weight)
        assert_allclose(value, function(y.T, prediction, weight), rtol=1e-12, atol=1e-15)
    signs = np.array([1.0]) if (task, scale) == ("regression", IDENTITY) else np.array([1.0, -1.0])
    for size in (1e-300, 40.0, 1e4, 1e100):
        extreme = np.ascontiguousarray(np.abs(raw_score) * size * np.resize(signs, 600))
        assert np.isfinite(compiled_value(metric, y, extreme))


@pytest.mark.parametrize("n_rows", [1, 7, 255, 256, 257, 512, 513])
def test_any_number_of_rows(n_rows):
    y, raw_score = make_data("regression", IDENTITY, n_rows)
    metric = round_metric("mse", "regression", IDENTITY)
    squares = (y - raw_score[0]) ** 2
    assert_allclose(compiled_value(metric, y, raw_score), np.mean(squares), rtol=1e-14)
    weight = np.random.default_rng(0).exponential(size=n_rows)
    value = compiled_value(metric, y, raw_score, weight)
    assert_allclose(value, np.average(squares, weights=weight), rtol=1e-14)


def test_confident_rows_keep_their_small_loss():
    metric = round_metric("logloss", "binary", LOG_ODDS)
    value = compiled_value(metric, np.array([1.0, 0.0]), np.array([[50.0, -50.0]]))
    assert_allclose(value, np.exp(-50.0), rtol=1e-14)


# --- several outputs -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "task", "scale", "weighted"),
    [
        ("rmse", "regression", IDENTITY, False),
        ("poisson-nloglik", "regression", LOG, True),
        ("logloss", "multilabel", LOG_ODDS, True),
    ],
)
def test_targets_that_are_not_known_do_not_count(name, task, scale, weighted):
    random = np.random.default_rng(0)
    y, raw_score = random.integers(0, 2, (2, 300)).astype(float), random.normal(size=(2, 300))
    y[random.random(y.shape) < 0.3] = np.nan
    weight = random.exponential(size=300) if weighted else np.ones(300)
    metric = round_metric(name, task, scale)
    value = compiled_value(metric, y, raw_score, weight if weighted else NO_WEIGHT)
    known = ~np.isnan(y)
    flat = y[known], raw_score[known][np.newaxis], np.tile(weight, (2, 1))[known]
    assert_allclose(value, compiled_value(metric, *flat), rtol=1e-13)


def test_levels_have_an_output_each_and_the_same_target():
    random = np.random.default_rng(0)
    y, raw_score = random.normal(size=300), random.normal(size=(3, 300))
    alphas = [0.1, 0.5, 0.9]
    metric = round_metric("quantile", "regression", IDENTITY, {"quantile_alpha": alphas})
    each = [
        compiled_value(
            round_metric(f"quantile@{alpha}", "regression", IDENTITY), y, own[np.newaxis]
        )
        for alpha, own in zip(alphas, raw_score, strict=True)
    ]
    assert_allclose(compiled_value(metric, y, raw_score), np.mean(each), rtol=1e-13)


# --- at the ends ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "prediction"), [("rmsle", -1.0), ("poisson-nloglik", 0.0), ("gamma-deviance", -3.0)]
)
def test_outside_the_domain_there_is_no_number(name, prediction):
    y, raw_score = make_data("regression", IDENTITY, 300)
    metric = round_metric(name, "regression", IDENTITY)
    assert np.isfinite(compiled_value(metric, y, raw_score))
    raw_score[0, 299] = prediction
    assert np.isnan(compiled_value(metric, y, raw_score))
