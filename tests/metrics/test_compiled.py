"""The compiled forms give the values of the functions, for any number of threads."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklboost.compiling import kernel
from sklboost.losses.log_loss import LogLoss
from sklboost.losses.softmax import Softmax
from sklboost.metrics.base import NOT_COMPILED
from sklboost.metrics.compiled import LossSums, add_losses, allocate_sums, finish_metric
from sklboost.metrics.registry import METRICS, find_metric
from sklboost.parallel import ThreadTeam, share

NO_WEIGHT = np.empty(0)
COMPILED = [
    (task, metric.name)
    for task, metrics in METRICS.items()
    for metric in metrics
    if metric.code != NOT_COMPILED
]
N_CLASSES = 4


@kernel
def add_all_losses(team, code, y, raw_score, weight, sums):
    """Let each member do its share of the blocks."""
    start, stop = share(team, len(sums.blocks))
    for block in range(start, stop):
        add_losses(team, code, block, y, raw_score, weight, sums)


def compiled_value(code, y, raw_score, weight=NO_WEIGHT, n_threads=1):
    with ThreadTeam(n_threads) as team:
        sums = allocate_sums(1, len(y), team.size)
        sums.blocks[:], sums.scratch[:] = np.nan, np.nan
        own = LossSums(sums.blocks[0], sums.scratch)
        team.run(add_all_losses, code, y, raw_score, weight, own)
    return finish_metric(code, own)


def make_data(task, n_rows, scale=1.0):
    random = np.random.default_rng(n_rows)
    n_outputs = N_CLASSES if task == "multiclass" else 1
    raw_score = np.round(random.normal(scale=scale, size=(n_outputs, n_rows)), 1)
    if task == "regression":
        return random.normal(size=n_rows), raw_score, raw_score[0]
    y = random.integers(0, max(2, n_outputs), n_rows).astype(float)
    if task == "binary":
        return y, raw_score, LogLoss().probabilities(raw_score)[:, 1]
    return y, raw_score, Softmax(n_outputs).probabilities(raw_score)


def test_the_common_ones_are_compiled():
    names = {"rmse", "mae", "logloss", "error", "mlogloss", "merror"}
    assert {name for _, name in COMPILED} == names


@pytest.mark.interpreted
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_rows", [1, 7, 255, 256, 257, 600])
@pytest.mark.parametrize(("task", "name"), COMPILED)
def test_equals_the_function_of_predictions(task, name, n_rows, weighted):
    metric = find_metric(name, task)
    y, raw_score, prediction = make_data(task, n_rows)
    weight = np.random.default_rng(0).exponential(size=n_rows) if weighted else NO_WEIGHT
    value = compiled_value(metric.code, y, raw_score, weight)
    assert_allclose(value, metric.function(y, prediction, weight), rtol=1e-13)


@pytest.mark.interpreted
@pytest.mark.parametrize("scale", [1e-9, 1.0, 100.0, 1e5])
@pytest.mark.parametrize(("loss", "name"), [(LogLoss(), "logloss"), (Softmax(4), "mlogloss")])
def test_log_losses_are_the_losses_of_training(loss, name, scale):
    task = "binary" if name == "logloss" else "multiclass"
    y, raw_score, _ = make_data(task, 500)
    raw_score *= scale
    value = compiled_value(find_metric(name, task).code, y, raw_score)
    assert_allclose(value, loss.value(y, raw_score, NO_WEIGHT), rtol=1e-13)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("task", "name"), COMPILED)
def test_number_of_threads_changes_no_bit(task, name, weighted):
    code = find_metric(name, task).code
    y, raw_score, _ = make_data(task, 5000)
    weight = np.random.default_rng(0).exponential(size=5000) if weighted else NO_WEIGHT
    one = compiled_value(code, y, raw_score, weight)
    for n_threads in (2, 3, 30):
        assert compiled_value(code, y, raw_score, weight, n_threads) == one


@pytest.mark.interpreted
def test_equal_scores_predict_the_first_class():
    code = find_metric("merror", "multiclass").code
    raw_score = np.array([[1.0, 0.0, 3.0], [1.0, 2.0, 2.0], [0.0, 2.0, 3.0]])
    assert compiled_value(code, np.array([0.0, 1.0, 0.0]), raw_score) == 0.0
    assert compiled_value(code, np.array([1.0, 2.0, 2.0]), raw_score) == 1.0
    # two classes: class 1 is predicted above 0, as XGBClassifierLite.predict does
    code = find_metric("error", "binary").code
    assert compiled_value(code, np.zeros(3), np.array([[0.0, -0.0, -1.0]])) == 0.0
    assert compiled_value(code, np.ones(3), np.array([[0.0, -0.0, 1e-30]])) == 2 / 3


@pytest.mark.interpreted
def test_confident_rows_keep_their_small_loss():
    code = find_metric("logloss", "binary").code
    value = compiled_value(code, np.array([1.0, 0.0]), np.array([[50.0, -50.0]]))
    assert_allclose(value, np.exp(-50.0), rtol=1e-14)
