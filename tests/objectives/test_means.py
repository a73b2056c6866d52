"""Of raw scores, compiled metrics give what they give of predictions, for any number of threads."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklboost.engine.compiling import kernel
from sklboost.engine.parallel import ThreadTeam, share
from sklboost.objectives.blocks import nothing
from sklboost.objectives.links import IDENTITY, LOG, LOG_ODDS, SOFTMAX
from sklboost.objectives.losses.several_classes import Softmax
from sklboost.objectives.means import (
    add_losses,
    allocate_sums,
    finish_metric,
    mean_losses,
)
from sklboost.objectives.registry import METRICS, find_metric, make_loss

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


@pytest.mark.parametrize(
    ("task", "name"),
    [
        (task, entry.title)
        for task in ("regression", "binary", "multiclass")
        for entry in METRICS[task]
        # an objective's own metric, of which nothing is subtracted
        if entry.objective and entry.factor == 1.0 and entry.of.less is nothing
        if entry.objective != "binary:hinge"
        # of probabilities, which that objective does not predict
        if task == "regression" or not entry.objective.startswith("reg:")
    ],
)
def test_a_metric_of_a_loss_is_its_value(task, name):
    own_scale = {"binary": LOG_ODDS, "multiclass": SOFTMAX}.get(task, IDENTITY)
    entry = next(entry for entry in METRICS[task] if entry.title == name)
    own_scale = entry.of.reads if task == "regression" else own_scale
    y, raw_score = make_data(task, own_scale, 500)
    given = {"huber_slope": 1.0, "fair_c": 1.0, "tweedie_variance_power": 1.5, **PARAMETERS}
    if name == "logloss" and task == "regression":
        y, objective = np.round(y), "reg:logistic"
    else:
        objective = entry.objective
    loss = make_loss(objective, task, len(raw_score), given)
    metric = round_metric(name, task, own_scale, given)
    for scale in (1e-9, 1.0, 100.0, 1e5):
        value = compiled_value(metric, y, scale * raw_score)
        assert_allclose(value, loss.value(y, scale * raw_score, NO_WEIGHT), rtol=1e-13)


@pytest.mark.parametrize(
    ("task", "scale", "name", "weighted"),
    [
        ("regression", IDENTITY, "rmse", False),
        ("multiclass", SOFTMAX, "mlogloss", True),
        ("multilabel", LOG_ODDS, "logloss", True),
    ],
)
def test_number_of_threads_changes_no_bit(task, scale, name, weighted):
    metric = round_metric(name, task, scale)
    y, raw_score = make_data(task, scale, 5000)
    weight = np.random.default_rng(0).exponential(size=5000) if weighted else NO_WEIGHT
    one = compiled_value(metric, y, raw_score, weight)
    for n_threads in (2, 30):
        assert compiled_value(metric, y, raw_score, weight, n_threads) == one


def test_a_block_has_sums_of_its_own():
    y, raw_score = make_data("regression", IDENTITY, 1024)
    sums = allocate_sums(2, len(y), 1)
    sums.blocks[:] = np.nan
    metrics = mean_losses(
        [round_metric(name, "regression", IDENTITY) for name in ("mae", "rmse")], 1
    )
    rows = (y[np.newaxis], raw_score, NO_WEIGHT)
    add_losses(metrics, 1, 2, rows, sums.scratch[0], sums.blocks[1])
    squares = (y - raw_score[0])[512:768] ** 2
    # of half the squares, which is the loss
    assert_allclose(sums.blocks[1, 2], [squares.sum() / 2, 256], rtol=1e-14)
    assert np.isnan(sums.blocks).sum() == sums.blocks.size - 2


def test_equal_scores_predict_the_first_class():
    metric = round_metric("merror", "multiclass", SOFTMAX)
    raw_score = np.array([[1.0, 0.0, 3.0], [1.0, 2.0, 2.0], [0.0, 2.0, 3.0]])
    assert compiled_value(metric, np.array([0.0, 1.0, 0.0]), raw_score) == 0.0
    assert compiled_value(metric, np.array([1.0, 2.0, 2.0]), raw_score) == 1.0
    # two classes: class 1 is predicted above 0, as XGBClassifierLite.predict does
    metric = round_metric("error", "binary", LOG_ODDS)
    assert compiled_value(metric, np.zeros(3), np.array([[0.0, -0.0, -1.0]])) == 0.0
    assert compiled_value(metric, np.ones(3), np.array([[0.0, -0.0, 1e-30]])) == 2 / 3


def test_confident_rows_keep_their_small_loss():
    metric = round_metric("logloss", "binary", LOG_ODDS)
    value = compiled_value(metric, np.array([1.0, 0.0]), np.array([[50.0, -50.0]]))
    assert_allclose(value, np.exp(-50.0), rtol=1e-14)


# --- several outputs -----------------------------------------------------------------------------


def test_several_targets_are_entries_of_one_mean():
    random = np.random.default_rng(0)
    y, raw_score = random.normal(size=(2, 3, 300))
    weight = random.exponential(size=300)
    value = compiled_value(round_metric("rmse", "regression", IDENTITY), y, raw_score, weight)
    expected = np.sqrt(np.average((y - raw_score) ** 2, weights=np.broadcast_to(weight, y.shape)))
    assert_allclose(value, expected, rtol=1e-13)


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
