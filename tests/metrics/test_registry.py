import re

import pytest

from sklboost.metrics.base import NOT_COMPILED
from sklboost.metrics.registry import METRICS, default_metric, find_metric, is_metric_name

pytestmark = pytest.mark.interpreted


def test_defaults():
    defaults = {task: default_metric(task).name for task in METRICS}
    assert defaults == {"regression": "rmse", "binary": "logloss", "multiclass": "mlogloss"}


@pytest.mark.parametrize("task", METRICS)
def test_every_metric_is_found_by_its_name(task):
    for metric in METRICS[task]:
        assert find_metric(metric.name, task) is metric
        assert is_metric_name(metric.name)
    codes = [metric.code for metric in METRICS[task] if metric.code != NOT_COMPILED]
    assert len(codes) == len(set(codes)) == 2


def test_codes_belong_to_one_metric_each():
    codes = [metric.code for metrics in METRICS.values() for metric in metrics]
    compiled = [code for code in codes if code != NOT_COMPILED]
    assert sorted(compiled) == list(range(6))


def test_a_threshold_is_part_of_the_name():
    metric = find_metric("error@0.25", "binary")
    assert metric.name == "error@0.25"
    assert metric.code == NOT_COMPILED
    assert metric.function.keywords == {"threshold": 0.25}
    assert is_metric_name("error@0.25")


@pytest.mark.parametrize("name", ["error@", "error@x", "error@1.5", "error@-0.1", "error@nan"])
def test_a_threshold_is_a_probability(name):
    with pytest.raises(ValueError, match=f"{name}.*a probability from 0 to 1, such as error@0.3"):
        find_metric(name, "binary")


def test_a_name_of_another_task_says_so():
    message = (
        "eval_metric='mlogloss' is a metric for more than two classes, not for two classes: choose "
        "one of logloss, error, auc, aucpr, brier, error@t"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        find_metric("mlogloss", "binary")
    with pytest.raises(ValueError, match="for two classes and more than two classes, not for regr"):
        find_metric("auc", "regression")
    with pytest.raises(ValueError, match="a metric for two classes, not for more than two classes"):
        find_metric("error@0.3", "multiclass")


def test_an_unknown_name_gets_the_nearest():
    message = (
        "eval_metric='rsme' is not known; did you mean 'rmse'? The metrics for regression are "
        "rmse, rmsle, mae, mape, r2"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        find_metric("rsme", "regression")
    with pytest.raises(ValueError, match="did you mean 'accuracy'"):
        find_metric("acuracy", "binary", other_names=["accuracy"])
    assert not is_metric_name("rsme")
