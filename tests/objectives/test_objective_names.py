import numpy as np
import pytest

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.objectives.registry import OBJECTIVES, find_metric, find_objective


@pytest.mark.parametrize("task", OBJECTIVES)
def test_every_name_and_alias_is_found_and_none_means_two_things(task):
    names = [word for own in OBJECTIVES[task] for word in (own.name, *own.aliases)]
    assert len(names) == len(set(names))
    for objective in OBJECTIVES[task]:
        for word in (objective.name, *objective.aliases):
            assert find_objective(word, task) is objective


# --- names that are wrong ------------------------------------------------------------------------


def test_objectives_of_tasks_that_are_not_here():
    for known in OBJECTIVES:
        with pytest.raises(
            ValueError,
            match=r"^objective='SurvivalAft:dist=Normal' is for survival times with other "
            r"distributions, which sklboost does not have\. The objecti",
        ):
            find_objective("SurvivalAft:dist=Normal", known)


def test_names_of_rankings():
    with pytest.raises(
        ValueError, match="for rankings, not for regression: take XGBRankerLite, or"
    ):
        find_objective("rank:ndcg", "regression")
    with pytest.raises(
        ValueError, match="for regression, not for rankings: take XGBRegressorLite, or"
    ):
        find_objective("reg:gamma", "ranking")
    with pytest.raises(ValueError, match=r"^eval_metric='map@2-' is a metric for rankings, no"):
        find_metric("map@2-", "binary")
    for task in OBJECTIVES:
        for name in ("StochasticRank", "PairLogit", "QueryRMSE"):
            with pytest.raises(ValueError, match="is for rankings, but XGBRankerLite does not"):
                find_objective(name, task)
    for name in ("ndcg@0", "ndcg@", "ndcg@2.5", "ndcg--", "pre@-1"):
        with pytest.raises(
            ValueError, match="The metrics for rankings are ndcg, map, pre, mrr, auc, aucpr"
        ):
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


@pytest.mark.parametrize("name", ["foo", "x", "reg", "profit", "custom_loss"])
def test_what_is_near_to_nothing_has_no_suggestion(name):
    for task in OBJECTIVES:
        with pytest.raises(ValueError, match=rf"'{name}' is not known\. The objectives for "):
            find_objective(name, task)
        with pytest.raises(ValueError, match=rf"'{name}' is not known\. The metrics for "):
            find_metric(name, task)


# --- fits ----------------------------------------------------------------------------------------

X, Y = np.arange(40.0)[:, np.newaxis], np.arange(40.0)


def test_estimators_know_the_objectives_of_their_task():
    with pytest.raises(
        ValueError, match="for regression, not for two classes: take XGBRegressorLite"
    ):
        XGBClassifierLite(objective="reg:squarederror").fit(X, Y > 3)
    # as with XGBoost, one name does for both numbers of classes
    for objective in ("binary:logistic", "multi:softprob"):
        for y in (Y > 20, Y // 14):
            model = XGBClassifierLite(objective=objective, n_estimators=2).fit(X, y)
            plain = XGBClassifierLite(n_estimators=2).fit(X, y)
            np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))


def test_several_levels_never_cross():
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 3))
    y = X[:, 0] + random.normal(size=500) * np.exp(X[:, 1])
    model = XGBRegressorLite(objective="quantile", quantile_alpha=[0.9, 0.1, 0.5]).fit(X, y)
    predictions = model.predict(random.normal(size=(1000, 3)) * 2)
    assert predictions.shape == (1000, 3)
    assert (np.diff(predictions, axis=1) >= 0).all()
    shares = (y[:, np.newaxis] <= model.predict(X)).mean(axis=0)
    np.testing.assert_allclose(shares, [0.1, 0.5, 0.9], atol=0.06)
    # without the order that they are put in, some would cross
    raw = np.diff(model._scored(X)[1], axis=0)
    assert (raw < 0).any()
