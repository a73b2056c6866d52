"""What is said of names of objectives and metrics that a task does not have."""

import pytest

from sklboost.objectives.registry import OBJECTIVES, find_metric, find_objective


@pytest.mark.parametrize(
    ("names", "task"),
    [
        (["SurvivalAft:dist=Normal"], "survival times with other distributions"),
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


def test_names_of_rankings():
    with pytest.raises(ValueError, match="is an objective for rankings, not for regression"):
        find_objective("rank:ndcg", "regression")
    with pytest.raises(ValueError, match="is an objective for regression, not for rankings"):
        find_objective("reg:gamma", "ranking")
    with pytest.raises(ValueError, match=r"^eval_metric='map@2-' is a metric for rankings, no"):
        find_metric("map@2-", "binary")
    for task in OBJECTIVES:
        for name in ("YetiRank", "PairLogit", "QueryRMSE"):
            with pytest.raises(ValueError, match="is for rankings, and no name of XGBRankerLite's"):
                find_objective(name, task)
    for name in ("ndcg@0", "ndcg@", "ndcg@2.5", "ndcg--", "pre@-1"):
        with pytest.raises(ValueError, match="The metrics for rankings are ndcg, map, pre, mrr"):
            find_metric(name, "ranking")


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
