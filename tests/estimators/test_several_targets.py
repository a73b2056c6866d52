"""Several targets in one model: as good as a loop, missing values, everything around a fit."""

import copy
import itertools

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import d2_pinball_score, mean_absolute_error, r2_score, root_mean_squared_error
from sklearn.model_selection import GridSearchCV

from sklboost import (
    Checkpoint,
    LearningRateScheduler,
    TrainingCallback,
    XGBRegressorLite,
    bin_features,
)
from tests.small_models import small

N_TARGETS = 3


def make_data(n_samples=300, n_features=5):
    """Return features on a grid of 50 values, and three targets of different size and shape."""
    random = np.random.default_rng(0)
    X = np.round(random.uniform(0, 49, size=(n_samples, n_features)))
    noise = random.normal(size=(n_samples, N_TARGETS))
    smooth = X[:, 0] + X[:, 1] ** 2 / 50
    targets = np.column_stack([smooth, np.sin(X[:, 2] / 10), 300 * (X[:, 3] > 20)])
    return X, targets + noise * [1.0, 0.1, 30.0]


X, Y = make_data()
WEIGHT = np.random.default_rng(1).integers(1, 4, size=len(X)) * 0.75
IS_UNKNOWN = np.random.default_rng(2).random(Y.shape) < [0.1, 0.5, 0.8]
GAPS = np.where(IS_UNKNOWN, np.nan, Y)  # some rows have no target at all


# --- as a loop -----------------------------------------------------------------------------------

SETTINGS = {
    "defaults": {},
    "lossguide": dict(grow_policy="lossguide", max_depth=0, max_leaves=6),
    "full pruning": dict(pruning="full", gamma=1.0, reg_alpha=0.2),
    "absolute error": dict(objective="reg:absoluteerror"),
    "one quantile": dict(objective="reg:quantileerror", quantile_alpha=0.8),
    "one start": dict(base_score=2.5),
    "probabilities": dict(objective="reg:logistic"),
}


@pytest.mark.parametrize(
    ("name", "weight"), list(zip(SETTINGS, itertools.cycle([None, WEIGHT]), strict=False))
)
def test_the_same_bits_as_a_loop(name, weight):
    model = small(XGBRegressorLite, **SETTINGS[name])
    targets = (Y - Y.min(axis=0)) / np.ptp(Y, axis=0) if name == "probabilities" else Y
    together = copy.copy(model).fit(X, targets, sample_weight=weight)
    alone = [copy.copy(model).fit(X, y, sample_weight=weight) for y in targets.T]
    assert_array_equal(together.predict(X), np.column_stack([one.predict(X) for one in alone]))
    for stage, *stages in zip(
        together.staged_predict(X), *(one.staged_predict(X) for one in alone), strict=True
    ):
        assert_array_equal(stage, np.column_stack(stages))
    leaves = together.apply(X)
    assert leaves.shape == (len(X), 8 * N_TARGETS)
    trees = together.trees_to_dataframe()
    for target, one in enumerate(alone):
        assert_array_equal(leaves[:, target::N_TARGETS], one.apply(X))
        own = trees[trees["Tree"] % N_TARGETS == target].reset_index()
        columns = ["Feature", "Split", "Gain", "Cover", "Output"]
        pd.testing.assert_frame_equal(own[columns], one.trees_to_dataframe()[columns])


def test_levels_of_several_targets():
    alphas, parameters = [0.9, 0.1], dict(objective="reg:quantileerror")
    prediction = small(XGBRegressorLite, quantile_alpha=alphas, **parameters).fit(X, Y).predict(X)
    assert prediction.shape == (len(X), 2 * N_TARGETS)
    for place, alpha in enumerate(sorted(alphas)):
        for target, y in enumerate(Y.T):
            alone = small(XGBRegressorLite, quantile_alpha=alphas, **parameters).fit(X, y)
            own = prediction[:, place * N_TARGETS + target]
            assert_array_equal(own, alone.predict(X)[:, place])
            assert abs(np.mean(y <= own) - alpha) < 0.1


def test_start_scores_and_margins():
    given = [1.0, -2.0, 300.0]
    model = small(XGBRegressorLite, base_score=given).fit(X, Y)
    assert_array_equal(model.model_.base_score, given)
    margin = np.random.default_rng(0).normal(size=Y.shape)
    model = small(XGBRegressorLite).fit(X, Y, base_margin=margin)
    alone = [
        small(XGBRegressorLite).fit(X, y, base_margin=own)
        for y, own in zip(Y.T, margin.T, strict=True)
    ]
    expected = [one.predict(X, base_margin=own) for one, own in zip(alone, margin.T, strict=True)]
    assert_array_equal(model.predict(X, base_margin=margin), np.column_stack(expected))


@pytest.mark.parametrize("method", ["uniform", "gradient_based"])
def test_samples_are_the_same_on_any_number_of_threads(method):
    X, y = make_data(30_000)
    y[np.random.default_rng(0).random(y.shape) < 0.3] = np.nan
    parameters = dict(n_estimators=3, subsample=0.5, colsample_bytree=0.8, random_state=0)
    one, three = (
        XGBRegressorLite(**parameters, sampling_method=method, n_jobs=n).fit(X, y) for n in (1, 3)
    )
    assert one.model_.nodes.tobytes() == three.model_.nodes.tobytes()
    assert one.score(X, y) > 0.5


# --- forms of y ----------------------------------------------------------------------------------


def test_one_column_is_one_target():
    model = small(XGBRegressorLite).fit(X, Y[:, 0])
    for column in (Y[:, :1], pd.DataFrame(Y[:, :1], columns=["y"])):
        with pytest.warns(DataConversionWarning, match="column-vector"):
            other = small(XGBRegressorLite).fit(X, column)
        assert_array_equal(other.predict(X), model.predict(X))


FORMS = {
    "list": lambda y: y.tolist(),
    "list of arrays": list,
    "Fortran order": np.asfortranarray,
    "pandas": lambda y: pd.DataFrame(y, columns=["a", "b", "c"]),
    "pandas Float64": lambda y: pd.DataFrame(y).astype("Float64"),
    "polars": lambda y: pl.DataFrame(y, schema=["a", "b", "c"]),
    "objects": lambda y: np.where(np.isnan(y), None, y),
    "float32": lambda y: y.astype(np.float32),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_containers(form):
    y = GAPS.astype(np.float32).astype(float)
    expected = small(XGBRegressorLite).fit(X, y, X_val=X, y_val=y)
    model = small(XGBRegressorLite).fit(X, form(y), X_val=X, y_val=form(y))
    prediction = model.predict(X)
    assert prediction.dtype == float
    assert prediction.flags.c_contiguous
    assert_array_equal(prediction, expected.predict(X))
    assert model.evals_result_ == expected.evals_result_
    assert model.score(X, form(y)) == expected.score(X, y)


# --- targets that are not known ------------------------------------------------------------------

FEW_GAPS = {
    "defaults": {},
    "absolute error": dict(objective="reg:absoluteerror"),
    "lossguide": dict(grow_policy="lossguide", max_depth=0, max_leaves=6),
    "small leaves": dict(min_child_weight=0, reg_lambda=0, max_depth=7),
    "large leaves": dict(min_child_weight=20, max_depth=12),
}


@pytest.mark.parametrize(
    ("name", "weight"), list(zip(FEW_GAPS, itertools.cycle([WEIGHT, None]), strict=False))
)
def test_each_target_is_learnt_from_its_known_rows(name, weight):
    features = X.copy()
    features[::7, 0] = np.nan  # the bin of missing values has rows of unknown targets, too
    bins, model = bin_features(features), small(XGBRegressorLite, **FEW_GAPS[name])
    together = copy.copy(model).fit(bins, GAPS, sample_weight=weight)
    for target, y in enumerate(GAPS.T):
        known = ~np.isnan(y)
        own_weight = None if weight is None else weight[known]
        alone = copy.copy(model).fit(bins[known], y[known], sample_weight=own_weight)
        assert_allclose(together.predict(bins)[:, target], alone.predict(bins), rtol=1e-7)
        leaves = together.trees_to_dataframe().query(f"Tree % 3 == {target} and Feature == 'Leaf'")
        expected = alone.trees_to_dataframe().query("Feature == 'Leaf'")
        assert_allclose(leaves["Cover"], expected["Cover"], rtol=1e-7)


def test_a_row_without_any_target_is_left_out():
    some = ~np.isnan(GAPS).all(axis=1)
    assert 0 < some.sum() < len(X)
    model = small(XGBRegressorLite, early_stopping_rounds=3, random_state=0)
    expected, groups = copy.copy(model), np.arange(len(X)) % 7
    model.fit(X, GAPS, groups=groups, sample_weight=WEIGHT)
    expected.fit(X[some], GAPS[some], groups=groups[some], sample_weight=WEIGHT[some])
    assert_array_equal(model.predict(X), expected.predict(X))
    assert model.fit_report_.n_samples == expected.fit_report_.n_samples


def test_weight_two_is_the_row_twice():
    weight = 1 + np.arange(len(X)) % 2
    rows = np.repeat(np.arange(len(X)), weight)
    groups = np.arange(len(X)) // 10  # without them, single rows would be held out
    for settings in ({}, dict(early_stopping_rounds=3, subsample=0.8, random_state=0)):
        weighted = small(XGBRegressorLite, **settings)
        weighted.fit(X, GAPS, sample_weight=weight, groups=groups)
        repeated = small(XGBRegressorLite, **settings).fit(X[rows], GAPS[rows], groups=groups[rows])
        assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-7)


def test_draws_without_a_known_row():
    targets = np.column_stack([Y[:, 0], np.full(len(Y), np.nan)])
    targets[0, 1] = 7.0
    model = XGBRegressorLite(n_estimators=10, subsample=0.3, reg_lambda=0, random_state=0)
    assert_array_equal(model.fit(X, targets).predict(X)[:, 1], 7.0)


def test_scores_of_quantiles_and_expectiles_are_d2():
    for alphas in ([0.3], [0.9, 0.1, 0.5]):
        model = small(XGBRegressorLite, objective="reg:quantileerror", quantile_alpha=alphas)
        for y in (Y[:, 0], GAPS):
            columns = np.atleast_2d(y.T)
            prediction = np.atleast_2d(model.fit(X, y).predict(X).T)
            for weight in (None, WEIGHT):
                scores = []
                for output, alpha in enumerate(np.repeat(sorted(alphas), len(columns))):
                    target = columns[output % len(columns)]
                    rows = ~np.isnan(target)
                    # with weights, since older releases interpolate the quantile without them
                    weights = np.ones(rows.sum()) if weight is None else weight[rows]
                    scores.append(
                        d2_pinball_score(
                            *(target[rows], prediction[output, rows]),
                            sample_weight=weights,
                            alpha=alpha,
                        )
                    )
                assert_allclose(model.score(X, y, weight), np.mean(scores))
    search = GridSearchCV(model, dict(max_depth=[1, 2]), error_score="raise").fit(X, Y[:, 0])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    # of alpha 0.5 the loss is half the squared error, and its best constant the mean
    model = small(XGBRegressorLite, objective="reg:expectileerror", expectile_alpha=0.5).fit(X, Y)
    expected = r2_score(Y, model.predict(X), sample_weight=WEIGHT)
    assert_allclose(model.score(X, Y, WEIGHT), expected)
    # a weight of 2 is the row twice, and the best constant has score 0
    model.set_params(expectile_alpha=[0.2, 0.7]).fit(X, Y)
    twice = np.repeat(np.arange(len(X)), np.round(WEIGHT / 0.75).astype(int))
    assert_allclose(model.score(X, Y, WEIGHT), model.score(X[twice], Y[twice]))
    constant = model.set_params(learning_rate=1e-12).fit(X, Y)
    assert_allclose(constant.score(X, Y), 0.0, atol=1e-9)
    absolute = small(XGBRegressorLite, objective="reg:absoluteerror").fit(X, Y[:, 0])
    assert_allclose(absolute.score(X, Y[:, 0]), r2_score(Y[:, 0], absolute.predict(X)))


def test_score_of_known_targets():
    model = small(XGBRegressorLite).fit(X, Y)
    prediction = model.predict(X)
    assert_allclose(model.score(X, Y, WEIGHT), r2_score(Y, prediction, sample_weight=WEIGHT))
    known = ~np.isnan(GAPS)
    scores = [
        r2_score(Y[rows, k], prediction[rows, k], sample_weight=WEIGHT[rows])
        for k, rows in enumerate(known.T)
    ]
    assert_allclose(model.score(X, GAPS, WEIGHT), np.mean(scores))
    assert model.score(X, Y) > 0.8


# --- validation ----------------------------------------------------------------------------------


def test_early_stopping_and_metrics():
    names = ["mae", "rmse"]
    model = XGBRegressorLite(learning_rate=0.5, early_stopping_rounds=3, eval_metric=names)
    model.fit(X[:200], Y[:200], X_val=X[200:], y_val=Y[200:], sample_weight_val=WEIGHT[200:])
    assert model.stop_reason_ == "early_stopping"
    log, rounds = model.evals_result_["validation_0"], model.best_iteration_ + 1
    assert model.n_estimators_ == rounds
    weight = np.repeat(WEIGHT[200:], N_TARGETS)
    for prediction, mae, rmse in zip(model.staged_predict(X[200:]), *log.values(), strict=False):
        errors = Y[200:].ravel(), prediction.ravel()
        assert_allclose(mae, mean_absolute_error(*errors, sample_weight=weight))
        assert_allclose(rmse, root_mean_squared_error(*errors, sample_weight=weight))
    assert model.best_score_ == min(log["rmse"]) == log["rmse"][rounds - 1]
    model = small(XGBRegressorLite, eval_metric=["r2", "neg_mean_absolute_error"])
    log = model.fit(X, Y, X_val=X, y_val=Y).evals_result_["validation_0"]
    assert_allclose(log["r2"][-1], r2_score(Y, model.predict(X)))
    assert_allclose(log["neg_mean_absolute_error"][-1], -mean_absolute_error(Y, model.predict(X)))


def test_metrics_of_known_targets():
    metrics = ["rmse", "r2", lambda y_true, y_pred: np.nanmax(np.abs(y_true - y_pred))]
    model = small(XGBRegressorLite, eval_metric=metrics)
    validation = GAPS[200:].copy()
    validation[:, 2] = np.nan  # none is known here
    model.fit(X[:200], GAPS[:200], eval_set=[(X, GAPS), (X[200:], validation)])
    for own_X, own_y, log in zip(
        (X, X[200:]), (GAPS, validation), model.evals_result_.values(), strict=True
    ):
        error = own_y - model.predict(own_X)
        assert_allclose(log["rmse"][-1], np.sqrt(np.nanmean(error**2)))
        assert_allclose(log["<lambda>"][-1], np.nanmax(np.abs(error)))
        scores = [
            1 - np.nanmean(e**2) / np.nanvar(y)
            for e, y in zip(error.T, own_y.T, strict=True)
            if (~np.isnan(y)).any()
        ]
        assert_allclose(log["r2"][-1], np.mean(scores))


@pytest.mark.parametrize("how", ["random", "time", "groups"])
def test_rows_held_out(how):
    groups = np.arange(len(X)) // 10 if how == "groups" else None
    split = "time" if how == "time" else "random"
    model = XGBRegressorLite(
        early_stopping_rounds=3, validation_split=split, refit=True, random_state=0
    ).fit(X, GAPS, groups=groups)
    assert model.best_iteration_ + 1 == model.n_estimators_
    some = ~np.isnan(GAPS).all(axis=1)
    expected = XGBRegressorLite(n_estimators=model.n_estimators_, random_state=0)
    assert_array_equal(model.predict(X), expected.fit(X[some], GAPS[some]).predict(X))
    targets = Y.copy()
    targets[:-20, 2] = np.nan
    if how == "time":
        with pytest.raises(ValueError, match=r"no known value of y\[:, 2\] is left to train on"):
            model.fit(X, targets)


# --- around a fit --------------------------------------------------------------------------------


def test_callbacks_see_all_targets(tmp_path):
    class Watch(TrainingCallback):
        def after_iteration(self, training, epoch, evals_log):
            shapes.append(training.snapshot().predict(X).shape)
            losses.append(training.training_loss())
            return epoch == 3

    shapes, losses = [], []
    schedule = LearningRateScheduler(lambda epoch: 0.3 * 0.5**epoch)
    callbacks = [Watch(), schedule, Checkpoint(tmp_path, interval=2)]
    model = small(XGBRegressorLite, callbacks=callbacks).fit(X, GAPS)
    assert shapes == [Y.shape] * 4
    error = (GAPS - model.predict(X)) ** 2 / 2
    assert_allclose(losses[-1], np.nanmean(error))
    saved = joblib.load(tmp_path / "model_2.joblib")
    assert_array_equal(saved.predict(X), model.predict(X, iteration_range=(0, 2)))


# --- errors --------------------------------------------------------------------------------------

NO_COLUMN = np.column_stack([Y[:, 0], np.full(len(Y), np.nan)])


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (GAPS[:, 0], "y contains NaN"),
        (GAPS[:, :1], "y contains NaN"),
        (NO_COLUMN, r"^y\[:, 1\] is NaN, not known, in every row of positive weight"),
        (Y * [1, 1e31, 1], r"^y\[:, 1\] contains .*divide it by"),
        (Y[:, :0], r"0 feature\(s\)"),
        (Y.astype(str), "^y holds text, such as "),
    ],
)
def test_unusable_targets(y, words):
    if isinstance(y, np.ndarray) and y.dtype.kind == "U":
        y = np.char.add(y, "x")
    with pytest.raises(ValueError, match=words):
        small(XGBRegressorLite).fit(X, y)


def test_validation_targets_that_do_not_fit():
    model = small(XGBRegressorLite)
    for y, y_val, words in (
        (Y, Y[:, :2], r"\(300, 2\), but y of the fit has 3"),
        (Y, Y[:, 0], r"\(300,\), but y of the fit has 3"),
        (Y[:, 0], Y, r"\(300, 3\), but y of the fit has 1"),
    ):
        with pytest.raises(ValueError, match=rf"^y of eval_set\[0\] has shape {words}"):
            model.fit(X, y, eval_set=[(X, y_val)])
    with pytest.raises(ValueError, match=r"^y of X_val is NaN, not known, in every row"):
        model.fit(X, Y, X_val=X[:5], y_val=np.full((5, 3), np.nan))
    with pytest.raises(ValueError, match=r"y has shape .* 3 target"):
        model.fit(X, Y).score(X, Y[:, :2])


def test_other_numbers_of_scores_than_targets():
    for given in ([1.0, 2.0], [], [1.0] * 4):
        with pytest.raises(ValueError, match=r"y has 3 target.* a list of 3"):
            small(XGBRegressorLite, base_score=given).fit(X, Y)
    with pytest.raises(ValueError, match="y has 1 target"):
        small(XGBRegressorLite, base_score=[1.0, 2.0]).fit(X, Y[:, 0])
    with pytest.raises(
        ValueError, match="objective='reg:logistic' predicts numbers between 0 and 1"
    ):
        small(XGBRegressorLite, base_score=2.0, objective="reg:logistic").fit(X, Y > 0)
    with pytest.raises(ValueError, match=r"2 column.* 3 raw score"):
        small(XGBRegressorLite).fit(X, Y, base_margin=Y[:, :2])
    with pytest.raises(ValueError, match=r"2 raw score.* init_model for .* 3 raw score"):
        small(XGBRegressorLite).fit(X, Y[:, :2], init_model=small(XGBRegressorLite).fit(X, Y))
    quantiles = dict(objective="reg:quantileerror", quantile_alpha=[0.1, 0.9], eval_metric="r2")
    with pytest.raises(ValueError, match="one prediction for each target"):
        small(XGBRegressorLite, **quantiles).fit(X, Y, X_val=X, y_val=Y)
