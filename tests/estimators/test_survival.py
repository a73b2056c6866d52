"""The estimator of survival times."""

import pickle

import numpy as np
import pytest
import xgboost
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklboost import XGBSurvivalLite, load_model, survival_targets
from tests.kinds_of_models import file_of

N_ROWS = 400
SMALL = dict(n_estimators=10, max_depth=2, learning_rate=0.2)


def make_data(seed=0, n_rows=N_ROWS, **fields):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 3))
    time = random.exponential(np.exp(-X[:, 0] - 0.5 * X[:, 1] ** 2))
    censored = random.exponential(2.0, size=n_rows)
    return X, survival_targets(time < censored, np.minimum(time, censored), **fields)


X, Y = make_data()
STRATA = np.random.default_rng(1).choice(["a", "b"], N_ROWS)


@parametrize_with_checks([XGBSurvivalLite(n_estimators=5)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# --- functions of time ---------------------------------------------------------------------------


def baseline_by_sums(y, score):
    """Breslow's estimator at the times of events, of a row of score 0."""
    times = np.unique(y["time"][y["event"]])
    risk = np.exp(score)
    steps = [
        (y["event"] & (y["time"] == time)).sum() / risk[y["time"] >= time].sum() for time in times
    ]
    return times, np.cumsum(steps)


def test_functions_are_those_of_breslow():
    model = XGBSurvivalLite(**SMALL).fit(X, Y)
    score = model.predict(X)
    times, hazard = baseline_by_sums(Y, score)
    expected = np.exp(score[:, np.newaxis]) * hazard
    n_times = len(times)
    assert_array_equal(model.unique_times_[:n_times], times)
    assert_array_equal(model.unique_times_[n_times:], Y["time"].max())  # it was censored
    found = model.predict_cumulative_hazard_function(X, return_array=True)
    assert_allclose(found[:, :n_times], expected, rtol=1e-11)
    assert_allclose(found[:, n_times], expected[:, -1], rtol=1e-11)
    survival = model.predict_survival_function(X, return_array=True)
    assert_allclose(survival, np.exp(-found))
    function = model.predict_survival_function(X)[7]
    assert_array_equal(function(model.unique_times_), survival[7])
    assert_array_equal(function.x, model.unique_times_)
    assert_array_equal(function.y, survival[7])


def test_step_functions():
    function = XGBSurvivalLite(**SMALL).fit([[0], [1], [2], [3]], [1, 2, 3, -5])
    (hazard,) = function.predict_cumulative_hazard_function([[0]])
    (survival,) = function.predict_survival_function([[0]])
    assert hazard.domain == survival.domain == (0.0, 5.0)
    assert hazard(0.5) == 0.0
    assert survival(0.5) == 1.0
    assert isinstance(survival(1), float)
    between = survival([[1.0, 1.5], [2.0, 4.9]])
    assert between.shape == (2, 2)
    assert between[0, 0] == between[0, 1] == survival.y[0] > between[1, 0]
    for times in (-0.1, 5.1, np.nan, [1.0, np.inf]):
        with pytest.raises(ValueError, match="times must be from 0 to 5, the last known"):
            survival(times)
    assert survival == pickle.loads(pickle.dumps(survival))
    assert survival != hazard
    assert repr(survival).startswith("StepFunction(x=array([1.,")


def test_quantiles_of_times():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 2))
    event, time = random.random(200) < 0.6, random.exponential(np.exp(-X[:, 0])) + 0.1
    y, levels = survival_targets(event, time), [0.25, 0.5, 0.97]
    model = XGBSurvivalLite(n_estimators=5, max_depth=2).fit(X, y)
    curves = model.predict_survival_function(X)
    expected = [
        [next((t for t in curve.x if curve(t) <= 1 - q), np.inf) for q in levels]
        for curve in curves
    ]
    found = model.predict_quantile(X, levels)
    assert_allclose(found, expected)
    assert np.isinf(found).any()
    assert_array_equal(model.predict_quantile(X, 0.5), found[:, 1])
    noises = dict(normal=stats.norm, logistic=stats.logistic, extreme=stats.gumbel_l)
    for name, noise in noises.items():
        aft = XGBSurvivalLite(
            objective="survival:aft",
            n_estimators=5,
            aft_loss_distribution=name,
            aft_loss_distribution_scale=0.7,
        ).fit(X, y)
        found = aft.predict_quantile(X, levels)
        assert_allclose(found, np.exp(0.7 * noise.ppf(levels) - aft.predict(X)[:, np.newaxis]))
        shares = [aft.predict_survival_function(X[:1])[0](t) for t in aft.unique_times_]
        below = aft.unique_times_ < found[0, 1]
        assert (np.array(shares)[below] > 0.5).all()
    for q in (0.0, 1.0, [], [[0.5]], "half", np.nan):
        with pytest.raises(ValueError, match="must be a number between 0 and 1"):
            model.predict_quantile(X, q)


def test_strata_have_baselines_of_their_own():
    model = XGBSurvivalLite(**SMALL).fit(X, Y, strata=STRATA)
    score, hazards = model.predict(X), np.empty((N_ROWS, len(model.unique_times_)))
    for label in ("a", "b"):
        rows = label == STRATA
        times, hazard = baseline_by_sums(Y[rows], score[rows])
        at = np.searchsorted(times, model.unique_times_, side="right")
        hazards[rows] = np.exp(score[rows, np.newaxis]) * np.append(0.0, hazard)[at]
    found = model.predict_cumulative_hazard_function(X, True, strata=STRATA)
    assert_allclose(found, hazards, rtol=1e-11)
    with pytest.raises(ValueError, match=r"fitted with the strata \['a', 'b'\], .*: pass strata"):
        model.predict_survival_function(X)
    with pytest.raises(ValueError, match=r"strata has shape \(1,\): .* the 400 rows"):
        model.predict_survival_function(X, strata=["a"])
    with pytest.raises(ValueError, match="strata that the fit had no rows of, 'c': they have no b"):
        model.predict_survival_function(X[:1], strata=["c"])
    with pytest.raises(ValueError, match="strata are given, but the model was fitted without"):
        XGBSurvivalLite(**SMALL).fit(X, Y).predict_survival_function(X[:1], strata=["a"])


def test_strata_apart_are_two_likelihoods():
    """Times of one stratum moved behind all of the other change no tree."""
    moved = Y.copy()
    moved["time"] += 1000.0 * (STRATA == "b")
    model = XGBSurvivalLite(**SMALL).fit(X, moved, strata=STRATA)
    expected = XGBSurvivalLite(**SMALL).fit(X, Y, strata=STRATA)
    assert_array_equal(model.predict(X), expected.predict(X))
    assert not np.array_equal(XGBSurvivalLite(**SMALL).fit(X, moved).predict(X), model.predict(X))


def test_entry_times_are_arguments_or_fields():
    entry = Y["time"] * np.random.default_rng(2).random(N_ROWS)
    model = XGBSurvivalLite(**SMALL).fit(X, Y, entry_time=entry)
    y = survival_targets(Y["event"], Y["time"], entry_time=entry)
    assert_array_equal(model.predict(X), XGBSurvivalLite(**SMALL).fit(X, y).predict(X))
    assert not np.array_equal(model.predict(X), XGBSurvivalLite(**SMALL).fit(X, Y).predict(X))


# --- training ------------------------------------------------------------------------------------


def test_order_of_rows_and_threads_change_no_bit():
    order = np.random.default_rng(0).permutation(N_ROWS)
    expected = XGBSurvivalLite(n_jobs=1, **SMALL).fit(X, Y)
    model = XGBSurvivalLite(n_jobs=3, **SMALL).fit(X, Y)
    assert_array_equal(model.predict(X), expected.predict(X))
    assert_array_equal(
        model.predict_survival_function(X, True), expected.predict_survival_function(X, True)
    )
    shuffled = XGBSurvivalLite(**SMALL).fit(X[order], Y[order])
    assert_allclose(shuffled.predict(X), expected.predict(X), rtol=1e-7)


@pytest.mark.parametrize("strata", [None, STRATA])
def test_weight_2_is_the_row_twice(strata):
    weight = np.random.default_rng(0).integers(0, 4, N_ROWS)
    copies = np.repeat(np.arange(N_ROWS), weight)
    weighted = XGBSurvivalLite(**SMALL).fit(X, Y, sample_weight=weight, strata=strata)
    copied = XGBSurvivalLite(**SMALL).fit(
        X[copies], Y[copies], strata=None if strata is None else strata[copies]
    )
    assert_allclose(weighted.predict(X), copied.predict(X), rtol=1e-7)
    assert_allclose(
        weighted.predict_survival_function(X, True, strata=strata),
        copied.predict_survival_function(X, True, strata=strata),
        rtol=1e-7,
    )
    score = copied.score(X[copies], Y[copies])
    assert weighted.score(X, Y, sample_weight=weight) == pytest.approx(score, rel=1e-12)


def test_early_stopping_and_metrics():
    model = XGBSurvivalLite(
        **SMALL | dict(n_estimators=300, random_state=0),
        early_stopping_rounds=5,
        eval_metric=["cox-nloglik", "cindex"],
    ).fit(X, Y)
    assert 0 < model.best_iteration_ < 299
    log = model.evals_result_["validation_0"]
    assert model.best_score_ == max(log["cindex"])
    X_val, y_val = make_data(1)
    no_pair = survival_targets([False, True], [1.0, 2.0])
    with pytest.raises(ValueError, match="cindex needs validation rows of which it is known"):
        XGBSurvivalLite(**SMALL, eval_metric="cindex").fit(X, Y, X_val=X[:2], y_val=no_pair)
    model = XGBSurvivalLite(**SMALL, eval_metric=["cox-nloglik", "cindex"])
    model.fit(X, Y, X_val=X_val, y_val=y_val)
    log = model.evals_result_["validation_0"]
    assert log["cindex"][-1] == model.score(X_val, y_val)
    assert log["cox-nloglik"][-1] < log["cox-nloglik"][0]

    def own_score(y_true, y_pred):
        assert y_true.dtype.names == ("event", "time")
        return float(np.mean(y_true["time"] * y_pred))

    model.set_params(eval_metric=[own_score, lambda estimator, X, y: estimator.predict(X).sum()])
    model.fit(X, Y, eval_set=[(X_val, y_val)])
    of_user = model.evals_result_["validation_0"]["own_score"][-1]
    assert of_user == pytest.approx(np.mean(y_val["time"] * model.predict(X_val)))


def test_functions_of_a_refit_are_those_of_all_rows():
    X, y = make_data()
    given, last = slice(0, 100), slice(100, None)
    y["time"][last] += 50.0
    model = XGBSurvivalLite(n_estimators=9, early_stopping_rounds=3, refit=True)
    model.fit(X[given], y[given], X_val=X[last], y_val=y[last])
    alone = XGBSurvivalLite(n_estimators=model.n_estimators_).fit(X, y)
    for of_refit, expected in zip(
        model.predict_survival_function(X[:3]), alone.predict_survival_function(X[:3]), strict=True
    ):
        assert_array_equal(of_refit.x, expected.x)
        assert_array_equal(of_refit.y, expected.y)


def test_events_on_both_sides_of_what_is_held_out():
    few = Y[:100].copy()
    few["event"] = False
    few["event"][:1] = True
    model = XGBSurvivalLite(early_stopping_rounds=2, **SMALL)
    with pytest.raises(ValueError, match="cox-nloglik needs validation rows of an event, and"):
        model.fit(X[:100], few)
    few["event"][:3] = True
    model.fit(X[:100], few)


def test_a_stratum_is_not_held_out_whole():
    # all rows have an event, and two of the strata few rows
    random = np.random.default_rng(0)
    strata = np.array([2] * 56 + [0] * 2 + [1] * 2)
    times = random.exponential(size=60)
    y = survival_targets(np.ones(60, bool), times, strata=strata)
    settings = dict(early_stopping_rounds=2, validation_fraction=0.5, **SMALL)
    for seed in range(10):
        model = XGBSurvivalLite(random_state=seed, **settings).fit(X[:60], y)
        survives = model.predict_survival_function(X[:3], True, strata=[0.0, np.int64(1), True])
        assert (survives[:, -1] < 1.0).all()
    words = "no event of stratum 0 is left to train on, since all of them are held out"
    with pytest.raises(ValueError, match=words):
        XGBSurvivalLite(validation_split="time", **settings).fit(X[:60], y[::-1][np.r_[4:60, :4]])
    with pytest.raises(ValueError, match=r"no event of stratum . is left to train on"):
        XGBSurvivalLite(**settings).fit(X[:60], y, groups=strata)
    # censored rows of a stratum do not stand in for its event
    y["event"][strata == 0] = [True, False]
    for seed in range(10):
        model = XGBSurvivalLite(random_state=seed, **settings).fit(X[:60], y)
        assert model.predict_survival_function(X[:1], True, strata=[0])[0, -1] < 1.0
    with pytest.raises(ValueError, match=r"no rows of, 'a', 3: they have"):
        model.predict_survival_function(X[:3], strata=np.array([0, "a", 3], dtype=object))


def test_copies_of_events_would_be_tied():
    # a weight that all rows have cancels, and there are no ties
    y = survival_targets(np.ones(40, bool), np.random.default_rng(0).exponential(size=40))
    settings = dict(ties="efron", subsample=0.9, n_estimators=5, random_state=0, reg_lambda=0.0)
    one, other = (
        XGBSurvivalLite(**settings, min_child_weight=weight)
        .fit(X[:40], y, sample_weight=np.full(40, weight))
        .predict_cumulative_hazard_function(X[:40], return_array=True)
        for weight in (30.0, 30.5)
    )
    assert_allclose(one, other, rtol=1e-4)


def test_targets_without_events_or_with_bounds():
    y = Y.copy()
    y["event"] = False
    with pytest.raises(ValueError, match="y has no event: there is nothing to learn from"):
        XGBSurvivalLite().fit(X, y)
    with pytest.raises(ValueError, match="cox-nloglik needs validation rows of an event, and"):
        XGBSurvivalLite().fit(X, Y, X_val=X, y_val=y)
    with pytest.raises(ValueError, match="no pair of rows of y is it known"):
        XGBSurvivalLite(**SMALL).fit(X, Y).score(X, y)
    bounds = survival_targets(lower=Y["time"], upper=Y["time"] + 1.0)
    with pytest.raises(ValueError, match="needs times of events, or of right censoring"):
        XGBSurvivalLite().fit(X, bounds)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (dict(ties="exact"), "ties='exact': it must be one of 'breslow', 'efron'"),
        (
            dict(objective="reg:squarederror"),
            "for regression, not for survival times: take XGBRegressorLite",
        ),
        (
            dict(objective=lambda y, p: (y, p)),
            "objective=.*: it must be None, 'survival:cox' or",
        ),
        (dict(eval_metric="rmse"), "not for survival times: choose one of cox-nloglik, aft-nl"),
    ],
)
def test_parameters_that_do_not_fit(parameters, message):
    with pytest.raises(ValueError, match=message):
        XGBSurvivalLite(**parameters).fit(X, Y)


@pytest.mark.parametrize(
    "parameters",
    [
        dict(linear_tree=True),
        dict(subsample=0.5, sampling_method="gradient_based", random_state=0),
        dict(ties="efron", ccp_alpha=0.001, base_score=0.5),
    ],
    ids=str,
)
def test_options(parameters):
    model = XGBSurvivalLite(**SMALL | parameters).fit(X, Y)
    assert model.score(X, Y) > 0.7
    loaded = load_model(file_of(model))
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert_array_equal(
        loaded.predict_survival_function(X, True), model.predict_survival_function(X, True)
    )


def test_a_preset():
    model = XGBSurvivalLite(preset="auto", max_time=1.0).fit(X, Y)
    assert model.score(X, Y) > 0.6
    assert model.chosen_params_


def test_copies_and_files():
    model = XGBSurvivalLite(**SMALL, ties="efron").fit(X, Y, strata=STRATA)
    expected = model.predict_survival_function(X, True, strata=STRATA)
    for copied in (pickle.loads(pickle.dumps(model)), load_model(file_of(model, "json"))):
        assert copied.ties == "efron"
        assert_array_equal(copied.predict_survival_function(X, True, strata=STRATA), expected)
        assert_array_equal(copied.unique_times_, model.unique_times_)
    assert clone(model).get_params()["ties"] == "efron"
    risks = model.to_xgboost().predict(xgboost.DMatrix(X), output_margin=True)
    assert_allclose(risks, model.predict(X), rtol=1e-5, atol=1e-5)


def test_continued_training():
    whole = XGBSurvivalLite(**SMALL).fit(X, Y)
    half = XGBSurvivalLite(**SMALL | dict(n_estimators=5))
    warm = clone(half).set_params(warm_start=True).fit(X, Y).set_params(n_estimators=10)
    continued = clone(half).fit(X, Y, init_model=half.fit(X, Y))
    for model in (warm.fit(X, Y), continued):
        assert_allclose(model.predict(X), whole.predict(X), rtol=1e-12)
        assert_allclose(
            model.predict_survival_function(X, True), whole.predict_survival_function(X, True)
        )


def test_in_tools_of_scikit_learn():
    pipeline = make_pipeline(StandardScaler(), XGBSurvivalLite(**SMALL))
    assert cross_val_score(pipeline, X, Y).mean() > 0.65
    y = survival_targets(Y["event"], Y["time"], strata=STRATA)
    assert cross_val_score(XGBSurvivalLite(**SMALL), X, y).mean() > 0.6
