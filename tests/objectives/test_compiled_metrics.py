"""Of raw scores, compiled metrics give what they give of predictions, for any number of threads."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklboost.engine.compiling import kernel
from sklboost.engine.parallel import ThreadTeam, share
from sklboost.objectives.domains import IDENTITY, LOG, LOG_ODDS, SOFTMAX
from sklboost.objectives.losses.classes import Softmax
from sklboost.objectives.metric import add_losses, compile_metrics, finish_metric
from sklboost.objectives.registry import METRICS, find_metric

pytestmark = pytest.mark.interpreted

NO_WEIGHT = np.empty(0)
PARAMETERS = {"quantile_alpha": [0.3], "expectile_alpha": [0.3]}
# The links that losses of a task can have.
LINKS = {
    "regression": (IDENTITY, LOG, LOG_ODDS),
    "binary": (LOG_ODDS,),
    "multiclass": (SOFTMAX,),
    "multilabel": (LOG_ODDS,),
}
COMPILED = [
    (task, link, entry.title.replace("@t", "@0.3"))
    for task, links in LINKS.items()
    for link in links
    for entry in METRICS[task]
    if not entry.greater_is_better
    # log-odds are those of probabilities, and a mean is mostly none
    and not (task == "regression" and entry.of.reads == LOG_ODDS and link != LOG_ODDS)
]
N_CLASSES, N_LABELS = 4, 3


@kernel
def add_all_losses(team, metrics, raw_score):
    """Let each member do its share of the blocks."""
    start, stop = share(team, metrics.sums.shape[1])
    for block in range(start, stop):
        add_losses(metrics, 0, block, raw_score, metrics.scratch[team.rank], metrics.sums[0])


def compiled_value(name, task, link, rows, *, parameters=PARAMETERS, n_threads=1):
    y, raw_score, weight = rows if len(rows) == 3 else (*rows, NO_WEIGHT)
    metric, rows = find_metric(name, task, parameters), (np.atleast_2d(y), weight)
    with ThreadTeam(n_threads) as team:
        metrics = compile_metrics([metric], link, rows, len(raw_score), n_threads=team.size)
        metrics.sums[:], metrics.scratch[:] = np.nan, np.nan
        team.run(add_all_losses, metrics, raw_score)
    return finish_metric(metrics, 0, metrics.sums[0])


def predict(task, link, raw_score):
    """Return what users see of raw scores."""
    if link == SOFTMAX:
        prediction = Softmax(len(raw_score)).probabilities(raw_score).T
    else:
        change = {IDENTITY: np.array, LOG: np.exp, LOG_ODDS: lambda z: 1 / (1 + np.exp(-z))}
        prediction = change[link](raw_score)
    return prediction[0] if len(prediction) == 1 else prediction.T


def make_data(task, link, n_rows):
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


@pytest.mark.parametrize(("task", "link", "name"), COMPILED)
def test_equals_the_function_of_predictions_and_is_a_number_of_extreme_scores(task, link, name):
    function = find_metric(name, task, PARAMETERS).function
    y, raw_score = make_data(task, link, 600)
    prediction = predict(task, link, raw_score)
    for weight in (NO_WEIGHT, np.random.default_rng(0).exponential(size=600)):
        value = compiled_value(name, task, link, (y, raw_score, weight))
        assert_allclose(value, function(y.T, prediction, weight), rtol=1e-12, atol=1e-15)
    signs = np.array([1.0]) if (task, link) == ("regression", IDENTITY) else np.array([1.0, -1.0])
    for size in (1e-300, 40.0, 1e4, 1e100):
        extreme = np.ascontiguousarray(np.abs(raw_score) * size * np.resize(signs, 600))
        assert np.isfinite(compiled_value(name, task, link, (y, extreme)))


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("n_rows", [1, 7, 255, 256, 257, 512, 513])
def test_any_number_of_rows(n_rows, n_threads):
    y, raw_score = make_data("regression", IDENTITY, n_rows)
    squares = (y - raw_score[0]) ** 2
    asked = dict(name="mse", task="regression", link=IDENTITY, n_threads=n_threads)
    assert_allclose(compiled_value(rows=(y, raw_score), **asked), np.mean(squares), rtol=1e-14)
    weight = np.random.default_rng(0).exponential(size=n_rows)
    value = compiled_value(rows=(y, raw_score, weight), **asked)
    assert_allclose(value, np.average(squares, weights=weight), rtol=1e-14)


def test_confident_rows_keep_their_small_loss():
    rows = np.array([1.0, 0.0]), np.array([[50.0, -50.0]])
    value = compiled_value("logloss", "binary", LOG_ODDS, rows)
    assert_allclose(value, np.exp(-50.0), rtol=1e-14)


# --- several outputs -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "task", "link", "weighted"),
    [
        ("rmse", "regression", IDENTITY, False),
        ("poisson-nloglik", "regression", LOG, True),
        ("logloss", "multilabel", LOG_ODDS, True),
    ],
)
def test_targets_that_are_not_known_do_not_count(name, task, link, weighted):
    random = np.random.default_rng(0)
    y, raw_score = random.integers(0, 2, (2, 300)).astype(float), random.normal(size=(2, 300))
    y[random.random(y.shape) < 0.3] = np.nan
    weight = random.exponential(size=300) if weighted else np.ones(300)
    value = compiled_value(name, task, link, (y, raw_score, weight if weighted else NO_WEIGHT))
    known = ~np.isnan(y)
    flat = y[known], raw_score[known][np.newaxis], np.tile(weight, (2, 1))[known]
    assert_allclose(value, compiled_value(name, task, link, flat), rtol=1e-13)


def test_levels_have_an_output_each_and_the_same_target():
    random = np.random.default_rng(0)
    y, raw_score = random.normal(size=300), random.normal(size=(3, 300))
    alphas = [0.1, 0.5, 0.9]
    each = [
        compiled_value(f"quantile@{alpha}", "regression", IDENTITY, (y, own[np.newaxis]))
        for alpha, own in zip(alphas, raw_score, strict=True)
    ]
    parameters = {"quantile_alpha": alphas}
    value = compiled_value(
        "quantile", "regression", IDENTITY, (y, raw_score), parameters=parameters
    )
    assert_allclose(value, np.mean(each), rtol=1e-13)


# --- at the ends ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "prediction"), [("rmsle", -1.0), ("poisson-nloglik", 0.0), ("gamma-deviance", -3.0)]
)
def test_outside_the_domain_there_is_no_number(name, prediction):
    y, raw_score = make_data("regression", IDENTITY, 300)
    assert np.isfinite(compiled_value(name, "regression", IDENTITY, (y, raw_score)))
    raw_score[0, 299] = prediction
    assert np.isnan(compiled_value(name, "regression", IDENTITY, (y, raw_score)))
