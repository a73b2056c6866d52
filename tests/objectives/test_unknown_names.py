"""What is said of names of objectives and metrics that a task does not have."""

import pytest

from sklboost.objectives.registry import METRICS, OBJECTIVES, find_metric, find_objective


@pytest.mark.parametrize(
    ("names", "task"),
    [
        (["rank:pairwise", "rank:ndcg", "rank:map", "lambdarank", "rank_xendcg"], "ranking"),
        (["YetiRank", "PairLogit", "QueryRMSE"], "ranking"),
        (["survival:cox", "survival:aft", "Cox", "SurvivalAft:dist=Normal"], "survival times"),
    ],
)
def test_objectives_of_tasks_that_are_not_here(names, task):
    for name in names:
        for known in OBJECTIVES:
            words = (
                rf"^objective='{name}' is for {task}, which sklboost does not have\. The objecti"
            )
            with pytest.raises(ValueError, match=words):
                find_objective(name, known)


@pytest.mark.parametrize(
    ("names", "task"),
    [
        (["ndcg", "ndcg@5", "ndcg@3-", "map", "map@2", "pre@4"], "ranking"),
        (["cox-nloglik", "aft-nloglik", "interval-regression-accuracy"], "survival times"),
    ],
)
def test_metrics_of_tasks_that_are_not_here(names, task):
    for name in names:
        for known in METRICS:
            words = rf"^eval_metric='{name}' is for {task}, which sklboost does not have\. The metr"
            with pytest.raises(ValueError, match=words):
                find_metric(name, known, other_names=["roc_auc", "average_precision"])


@pytest.mark.parametrize(
    ("name", "task", "meant"),
    [
        ("RMSE", "regression", "reg:squarederror"),  # CatBoost
        ("mean_absolute_error", "regression", "reg:absoluteerror"),
        ("friedman_mse", "regression", "reg:squarederror"),
        ("Huber", "regression", "huber"),
        ("huber_loss", "regression", "huber"),
        ("Logloss", "binary", "log_loss"),
        ("deviance", "binary", "log_loss"),
        ("binary:logitraw", "binary", "binary:logistic"),
        ("MultiClass", "multiclass", "multiclass"),
        ("softmax", "multiclass", "multi:softprob"),
        ("count:poison", "regression", "count:poisson"),
    ],
)
def test_objectives_of_other_libraries(name, task, meant):
    with pytest.raises(ValueError, match=rf"'{name}' is not known; did you mean '{meant}'\? The "):
        find_objective(name, task)


@pytest.mark.parametrize(
    ("name", "task", "meant"),
    [
        ("RMSE", "regression", "rmse"),
        ("AUC", "binary", "auc"),
        ("auc_roc", "binary", "auc"),
        ("accuracy_score", "multiclass", "accuracy"),
        ("f1_score", "binary", "f1"),
    ],
)
def test_metrics_of_other_libraries(name, task, meant):
    with pytest.raises(ValueError, match=rf"'{name}' is not known; did you mean '{meant}'\? The "):
        find_metric(name, task, other_names=["accuracy", "f1", "roc_auc"])


@pytest.mark.parametrize("name", ["foo", "x", "reg", "profit", "custom_loss"])
def test_what_is_near_to_nothing_has_no_suggestion(name):
    for task in OBJECTIVES:
        with pytest.raises(ValueError, match=rf"'{name}' is not known\. The objectives for "):
            find_objective(name, task)
        with pytest.raises(ValueError, match=rf"'{name}' is not known\. The metrics for "):
            find_metric(name, task)
