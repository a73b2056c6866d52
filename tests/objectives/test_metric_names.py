import re

import numpy as np
import pytest
from sklearn.metrics import get_scorer_names

from sklboost.objectives.blocks import Formula
from sklboost.objectives.registry import (
    METRICS,
    default_metric,
    find_metric,
    is_metric_name,
)

pytestmark = pytest.mark.interpreted

# What a training loss would pass on.
PARAMETERS = {
    "huber_slope": 2.0,
    "fair_c": 3.0,
    "quantile_alpha": [0.1, 0.9],
    "expectile_alpha": 0.2,
    "tweedie_variance_power": 1.3,
    "aft_loss_distribution": "normal",
}


def parameters_of(name, task, parameters=PARAMETERS):
    return find_metric(name, task, parameters).parameters


def same(one, other):
    """Whether two metrics are the same but for their names and functions."""
    return one._replace(name="", function=None) == other._replace(name="", function=None)


# --- defaults ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objective", "name", "parameters"),
    [
        ("reg:squarederror", "rmse", (0.0,)),
        ("reg:squaredlogerror", "rmsle", (0.0,)),
        ("reg:absoluteerror", "mae", (0.0,)),
        ("reg:pseudohubererror", "mphe", (2.0,)),
        ("reg:quantileerror", "quantile", (0.1, 0.9)),
        ("reg:expectileerror", "expectile", (0.2,)),
        ("reg:gamma", "gamma-deviance", (0.0,)),
        ("reg:tweedie", "tweedie-nloglik@1.3", (1.3,)),
        ("count:poisson", "poisson-nloglik", (0.0,)),
        ("an objective of one's own", "rmse", (0.0,)),
    ],
)
def test_every_objective_has_its_metric(objective, name, parameters):
    metric = default_metric("regression", objective, PARAMETERS)
    assert metric.name == name
    assert metric.parameters == parameters


def test_objectives_of_classes():
    assert default_metric("binary", "binary:logistic").name == "logloss"
    assert default_metric("binary", "binary:hinge").name == "error"
    assert default_metric("multiclass", "multi:softprob").name == "mlogloss"


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", METRICS)
def test_every_metric_is_found_by_its_name(task):
    for entry in METRICS[task]:
        name = entry.title.replace("@t", "@0.25")
        metric = find_metric(name, task, PARAMETERS)
        assert metric.name == name
        assert metric.greater_is_better is entry.greater_is_better
        assert is_metric_name(name)
        if isinstance(entry.of, Formula):
            assert metric.formula is entry.of


def test_names_of_a_task_are_different():
    for entries in METRICS.values():
        assert len({entry.title for entry in entries}) == len(entries)


def test_another_name_is_the_same_metric_under_that_name():
    for task, entries in METRICS.items():
        for entry in entries:
            for alias in entry.aliases:
                ours, other = (
                    entry.title.replace(entry.name, name).replace("@t", "@0.25")
                    for name in (entry.name, alias)
                )
                expected, metric = (find_metric(name, task, PARAMETERS) for name in (ours, other))
                assert metric.name == other
                if expected.formula is None and task not in ("ranking", "survival"):
                    assert metric.function is expected.function
                assert same(metric, expected)
    assert parameters_of("mean_pinball_loss@0.7", "regression") == (0.7,)


_OF_ERROR = ("binary_error", "multi_error", "zero_one_loss")


def test_other_names_mean_one_thing_and_take_nothing_away():
    aliases = {alias for own in METRICS.values() for entry in own for alias in entry.aliases}
    for entries in METRICS.values():
        names = [name for entry in set(entries) for name in {entry.title, *entry.aliases}]
        shared = {name for name in names if names.count(name) > 1}
        # error and error@t, which are told apart by the @
        assert shared <= {*_OF_ERROR, "merror", "hamming_loss"}
    names = {entry.name for entries in METRICS.values() for entry in entries}
    assert aliases & names == {"logloss", "mlogloss", "error", "merror", "mse"}
    assert not aliases & set(get_scorer_names())


@pytest.mark.parametrize(
    ("task", "names", "meant"),
    [
        ("binary", ["mlogloss", "multi_logloss", "multiclass", "softmax", "ova"], "logloss"),
        ("multilabel", ["mlogloss", "multi_logloss", "binary"], "logloss"),
        ("multiclass", ["logloss", "binary_logloss", "binary", "multiclassova"], "mlogloss"),
        ("binary", ["merror", "multi_error"], "error"),
        ("multiclass", ["error", "binary_error"], "merror"),
        ("binary", ["mse", "l2", "mean_squared_error"], "brier"),
        ("binary", ["l2_root"], "rmse"),
        ("multilabel", ["l1"], "mae"),
        ("regression", ["l2", "regression_l2"], "mse"),
        ("regression", ["l1", "regression_l1"], "mae"),
    ],
)
def test_the_metric_of_the_task_is_meant(task, names, meant):
    expected = find_metric(meant, task)
    for name in names:
        assert same(find_metric(name, task), expected)
        assert find_metric(name, task).name == name


# --- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "default", "of_loss"),
    [
        ("mphe", (1.0,), (2.0,)),
        ("huber", (0.9,), (2.0,)),
        ("fair", (1.0,), (3.0,)),
        ("tweedie-nloglik", (1.5,), (1.3,)),
        ("tweedie-deviance", (1.5,), (1.3,)),
    ],
)
def test_a_parameter_is_the_names_or_the_losss_or_a_default(name, default, of_loss):
    assert parameters_of(name, "regression", {}) == default
    assert parameters_of(name, "regression") == of_loss
    assert parameters_of(f"{name}@1.25", "regression") == (1.25,)


def test_levels_have_no_default():
    assert parameters_of("quantile", "regression") == (0.1, 0.9)
    assert parameters_of("quantile", "regression", {"quantile_alpha": np.float64(0.4)}) == (0.4,)
    assert parameters_of("expectile@0.3", "regression", {}) == (0.3,)
    message = (
        "eval_metric='quantile' needs an alpha above 0 and below 1, and the loss has none: "
        "give quantile@0.9"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        find_metric("quantile", "regression")


def test_a_losss_parameter_that_the_metric_cannot_take():
    power = {"tweedie_variance_power": 2.0}
    assert parameters_of("tweedie-nloglik", "regression", power) == (2.0,)
    with pytest.raises(
        ValueError, match="with tweedie_variance_power=2: it needs a variance power"
    ):
        find_metric("tweedie-deviance", "regression", power)


def test_error_has_a_threshold_only_behind_the_name():
    assert parameters_of("error", "binary") == (0.0,)
    assert parameters_of("error@0.25", "binary") == (0.25,)
    assert find_metric("error@0.25", "binary").formula.reads == "identity"
    assert not is_metric_name("rmse@2")


@pytest.mark.parametrize("name", ["error@", "error@x", "error@1.5", "error@-0.1", "error@nan"])
def test_a_threshold_is_a_probability(name):
    with pytest.raises(ValueError, match=f"{name}.*a probability from 0 to 1, such as error@0.3"):
        find_metric(name, "binary")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mphe@0", "a number above 0, such as mphe@1"),
        ("fair@inf", "a number above 0, such as fair@1"),
        ("quantile@1", "an alpha above 0 and below 1, such as quantile@0.9"),
        ("tweedie-nloglik@2.5", "a variance power from 1 to 2, such as tweedie-nloglik@1.5"),
    ],
)
def test_a_parameter_has_a_range(name, words):
    with pytest.raises(
        ValueError, match=f"eval_metric='{name}': after the @ there must be {words}"
    ):
        find_metric(name, "regression")


# --- names that are wrong ------------------------------------------------------------------------


def test_a_name_of_another_task_says_so():
    message = (
        "eval_metric='auc_mu' is a metric for more than two classes, not for two classes: choose "
        "one of logloss, error, error@t, auc, aucpr, average_precision_score, brier, rmse, mae, "
        "kullback_leibler"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        find_metric("auc_mu", "binary")
    with pytest.raises(
        ValueError, match="two classes and more than two classes and several labels"
    ):
        find_metric("auc", "regression")
    with pytest.raises(ValueError, match="two classes and several labels, not for more than two"):
        find_metric("error@0.3", "multiclass")


@pytest.mark.parametrize(
    ("name", "task", "meant"),
    [
        ("RMSE", "regression", "rmse"),
        ("AUC", "binary", "auc"),
        ("auc_roc", "binary", "auc"),
        ("accuracy_score", "multiclass", "accuracy"),
        ("f1_score", "binary", "f1"),
        ("rsme", "regression", "rmse"),
    ],
)
def test_an_unknown_name_gets_the_nearest(name, task, meant):
    with pytest.raises(ValueError, match=rf"'{name}' is not known; did you mean '{meant}'\? The "):
        find_metric(name, task, other_names=["accuracy", "f1", "roc_auc"])
    assert not is_metric_name(name)
