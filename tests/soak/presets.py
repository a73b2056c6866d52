"""Fits that choose: the preset, early stopping, time that is short, on data that is hard to part.

Rows are few, unbalanced, grouped, censored or mostly 0, so some parts of them have nothing to learn
from, or nothing to judge by.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from sklboost import (
    XGBClassifierLite,
    XGBDistributionLite,
    XGBRankerLite,
    XGBRegressorLite,
    XGBSurvivalLite,
    survival_targets,
)
from sklboost.objectives.registry import DISTRIBUTIONS
from tests.soak.cases import Case
from tests.soak.columns import Random
from tests.soak.promises import ALLOWED, outputs, quiet


def check_presets(seed: int, number: int) -> str:
    """Check one of the promises of fits that choose; return its name."""
    random = np.random.default_rng([seed, number])
    chosen = PROMISES[number % len(PROMISES)]
    with quiet():
        return f"{chosen(random)} {chosen.__name__}"


# --- data


def draw_hard_case(random: Random) -> Case:
    """Return a fit without anything that is chosen, on rows that are hard to part."""
    n_rows = int(random.choice([1, 2, 5, 19, 20, 25, 60, 200]))
    X = random.normal(size=(n_rows, 2))
    if random.random() < 0.3:
        X = np.round(X)
    draw = DRAWERS[random.integers(len(DRAWERS))]
    estimator, parameters, y, arguments = draw(random, X)
    if random.random() < 0.3:
        weight = random.choice([0.0, 1.0, 2.5, 1e6], max(n_rows, 9))
        weight[0] += 1.0
        arguments["sample_weight"] = weight[arguments.get("qid", np.arange(n_rows))]
    if random.random() < 0.3 and "qid" not in arguments:
        arguments["groups"] = random.integers(0, random.choice([1, 2, 5]), n_rows)
    parameters |= {"n_estimators": 3, "random_state": int(random.integers(9)), "n_jobs": 1}
    return Case(estimator, parameters, X, y, arguments)


def _seldom(random: Random, n_rows: int) -> np.ndarray:
    """Return where something seldom happens: at least once, perhaps everywhere."""
    happens = random.random(n_rows) < random.choice([0.0, 0.05, 0.3, 1.0])
    happens[random.integers(n_rows)] = True
    return happens


def _draw_numbers(random: Random, X: np.ndarray) -> tuple[Any, ...]:
    y = np.where(_seldom(random, len(X)), np.exp(X[:, 0]), 0.0)
    if random.random() < 0.3:
        y = np.column_stack([y, np.where(_seldom(random, len(X)), X[:, 1], np.nan)])
    objective = [None, "reg:tweedie", "count:poisson", "reg:absoluteerror"][random.integers(4)]
    return XGBRegressorLite, {"objective": objective}, y, {}


def _draw_labels(random: Random, X: np.ndarray) -> tuple[Any, ...]:
    y = _seldom(random, len(X)).astype(int) + 2 * _seldom(random, len(X))
    metric = [None, "auc", "aucpr", "error"][random.integers(4)]
    return XGBClassifierLite, {"eval_metric": metric}, y, {}


def _draw_distribution(random: Random, X: np.ndarray) -> tuple[Any, ...]:
    amounts = np.exp(X[:, 0])
    name = [*DISTRIBUTIONS][random.integers(len(DISTRIBUTIONS))]
    if "zero" in name or "binomial" in name or name == "poisson":
        amounts = np.where(_seldom(random, len(X)), np.ceil(amounts), 0.0)
    metric = [None, "crps", "rmse"][random.integers(3)]
    return XGBDistributionLite, {"distribution": name, "eval_metric": metric}, amounts, {}


def _draw_relevances(random: Random, X: np.ndarray) -> tuple[Any, ...]:
    y = np.where(_seldom(random, len(X)), 1.0, 0.0)
    qid = random.integers(0, random.choice([1, 2, 9]), len(X))
    objective = ["rank:ndcg", "rank:map", "rank:pairwise", "rank:yeti"][random.integers(4)]
    return XGBRankerLite, {"objective": objective}, y, {"qid": qid}


def _draw_times(random: Random, X: np.ndarray) -> tuple[Any, ...]:
    event, when = _seldom(random, len(X)), random.exponential(size=len(X)) + 0.1
    if random.random() < 0.3:
        when = np.ceil(when)
    strata = random.integers(0, random.choice([1, 3]), len(X)) if random.random() < 0.4 else None
    parameters: dict[str, Any] = {"eval_metric": [None, "cindex"][random.integers(2)]}
    if strata is None and random.random() < 0.3:
        parameters = {"objective": "survival:aft"}
    return XGBSurvivalLite, parameters, survival_targets(event, when, strata=strata), {}


DRAWERS: list[Callable[[Random, np.ndarray], tuple[Any, ...]]] = [
    *(_draw_numbers, _draw_labels, _draw_distribution, _draw_relevances, _draw_times),
]


# --- promises


def _plain_fit(case: Case) -> Any:
    """Return the model of a case, None if it is refused."""
    try:
        return case.fit()
    except ALLOWED:
        return None


def parts_are_no_reason_to_fail(random: Random) -> str:
    """What is fitted plainly is with the preset; early stopping may ask for validation data."""
    case = draw_hard_case(random)
    if _plain_fit(case) is None:
        return "refused"
    is_preset = random.random() < 0.5
    changes: dict[str, Any] = {"preset": "auto"}
    if not is_preset:
        changes = {"early_stopping_rounds": 2, "refit": random.random() < 0.3}
        changes["validation_fraction"] = float(random.choice([0.01, 0.1, 0.5, 0.9]))
    try:
        model = case.fit(**changes)
        assert np.isfinite(outputs(model, case.X)).all(), f"a prediction, {changes}, {case}"
    except ALLOWED as error:
        words = str(error)
        if is_preset or "X_val" not in words or "y_val" not in words:
            raise AssertionError(f"{type(error).__name__}: {words} -- {changes}, {case}") from error
        return "refused"
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error} -- {changes}, {case}") from error
    return "fitted"


def whole_weights_choose_as_others(random: Random) -> str:
    """Weights of 2 and of 2 + 1e-9 have the preset choose the same, and give about one model."""
    case = draw_hard_case(random)
    # rows of whole weights are drawn one by one, but for documents: so nearly all are
    parameters = case.parameters | {"preset": "auto", "subsample": 1.0 - 1e-9}
    models = []
    for weight in (2.0, 2.0 + 1e-9):
        arguments = case.arguments | {"sample_weight": np.full(len(case.y), weight)}
        model = _plain_fit(case._replace(parameters=parameters, arguments=arguments))
        if model is None:
            return "refused"
        models.append(model)
    one, other = (model.chosen_params_ for model in models)
    assert {*one} == {*other}, f"{one}, {other}, {case}"
    for name in one:
        assert np.isclose(one[name], other[name], rtol=1e-6), f"{name}: {one}, {other}, {case}"
    return "fitted"


def more_time_is_no_worse(random: Random) -> str:
    """Held-out loss: never above that of the mean, nor what less time won given away again."""
    n_classes = int(random.choice([0, 2, 9]))  # 0: a number
    n_rows, noise = 400, random.choice([0.3, 3.0])
    X = random.normal(size=(2 * n_rows, 5))
    y = X[:, 0] + noise * random.normal(size=2 * n_rows)
    if n_classes:
        y = np.argsort(np.argsort(y)) * n_classes // len(y)
    delay = random.choice([0.001, 0.005])

    def slow(y: np.ndarray, prediction: np.ndarray) -> float:
        time.sleep(delay)
        return float(_losses(y, prediction).mean())

    estimator = XGBClassifierLite if n_classes else XGBRegressorLite
    first = estimator(n_estimators=1, learning_rate=0.0).fit(X[:n_rows], y[:n_rows])
    before = _losses(y[n_rows:], outputs(first, X[n_rows:]))
    constant = before
    for max_time in np.sort(random.choice([0.02, 0.1, 0.3, 0.7, 1.5], 3, replace=False)):
        settings = {"preset": "auto", "max_time": max_time, "n_jobs": 1, "eval_metric": slow}
        model = estimator(**settings).fit(X[:n_rows], y[:n_rows])
        losses = _losses(y[n_rows:], outputs(model, X[n_rows:]))
        # Two standard errors of a difference are what chance may give: of these rows, and of the
        # fifth of as many that a choice was judged by if there was time for one part only. And half
        # of what less time won: it may have been lucky.
        for other, lost in ((constant, 0.0), (before, 0.5 * (constant - before).mean())):
            margin = 2.0 * (losses - other).std() * np.sqrt(1 / n_rows + 5 / n_rows) + max(lost, 0)
            assert losses.mean() <= other.mean() + margin, (
                f"{losses.mean():.4f} in {max_time} s, {other.mean():.4f} in less, or without "
                f"splits: {n_classes} classes, noise {noise}, delay {delay}, {model.chosen_params_}"
            )
        before = losses
    return "fitted"


def _losses(y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    """Return squared errors, or of whole numbers, which are classes, log losses."""
    if y.dtype.kind == "f" and (y != np.floor(y)).any():
        return (y - prediction) ** 2
    if prediction.ndim == 1:  # of two classes, the probability of the second
        prediction = np.column_stack([1.0 - prediction, prediction])
    return -np.log(np.maximum(prediction[np.arange(len(y)), y.astype(int)], 1e-15))


PROMISES: list[Callable[[Random], str]] = [
    *[parts_are_no_reason_to_fail] * 4,
    whole_weights_choose_as_others,
    more_time_is_no_worse,
]
