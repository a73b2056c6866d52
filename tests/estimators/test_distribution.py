"""XGBDistributionLite: fits, predictions, errors, and what goes with the rest of the package."""

import json
import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklboost import (
    XGBClassifierLite,
    XGBDistributionLite,
    XGBRankerLite,
    XGBRegressorLite,
    XGBRFClassifierLite,
    XGBRFRegressorLite,
    XGBSurvivalLite,
    load_model,
)
from sklboost.estimators.parameters.names import UnknownParameterError
from sklboost.objectives.registry import DISTRIBUTIONS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = X[:, 0] + np.exp(0.5 * X[:, 1]) * RNG.normal(size=400)
MEAN = np.exp(0.5 * X[:, 0] + 0.5)
COUNTS = RNG.poisson(MEAN * RNG.gamma(2.0, 0.5, size=400)).astype(float)
AMOUNTS = RNG.gamma(2.0, 0.5 * MEAN)
IS_ZERO = RNG.random(400) < 1.0 / (1.0 + np.exp(-X[:, 2]))


OF_SCIPY = dict(normal="norm", student_t="t", negative_binomial="nbinom", gamma="gamma")


def targets_for(name):
    if name in ("normal", "student_t", "laplace"):
        return Y
    y = AMOUNTS if name.endswith(("gamma", "lognormal")) else COUNTS
    return np.where(IS_ZERO, 0.0, y) if name.startswith("zero") else y


def fitted(name="normal", y=None, features=X, **parameters):
    model = XGBDistributionLite(distribution=name, **{"n_estimators": 5, **parameters})
    return model.fit(features, targets_for(name) if y is None else y)


@parametrize_with_checks([XGBDistributionLite(n_estimators=3)])
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_all_distributions_learn(name):
    y = targets_for(name)
    model = XGBDistributionLite(distribution=name, n_estimators=40, gamma=1.0)
    model.set_params(eval_metric=["nll", "crps"]).fit(X, y, X_val=X, y_val=y)
    log = model.evals_result_["validation_0"]
    constant = XGBDistributionLite(distribution=name, max_depth=1, gamma=1e9).fit(X, y)
    assert log["nll"][-1] < -constant.score(X, y) - 0.1
    assert log["crps"][-1] < log["crps"][0]
    assert_allclose(model.score(X, y), -log["nll"][-1])
    short = y.astype(np.float32)
    assert model.score(X, short) == model.score(X, short.astype(np.float64))
    distribution = model.predict_dist(X)
    if name in OF_SCIPY:
        assert distribution.dist.name == OF_SCIPY[name]
    assert_allclose(model.predict(X), distribution.mean())
    intervals = model.predict_interval(X, 0.8)
    is_inside = (intervals[:, 0] <= y) & (y <= intervals[:, 1])
    assert 0.75 < is_inside.mean() < 1.0
    quantiles = model.predict_quantile(X, [0.1, 0.5, 0.9])
    assert_allclose(quantiles[:, [0, 2]], intervals)
    assert_array_equal(model.predict_quantile(X, 0.5), quantiles[:, 1])
    assert_array_equal(model.predict_quantile(X[:1], 0.5), quantiles[:1, 1])
    drawn = distribution.rvs(random_state=0)
    assert drawn.shape == (400,)
    assert_allclose(drawn.mean(), y.mean(), rtol=0.5, atol=0.2)


@pytest.mark.interpreted
def test_leaves_are_steps_of_fisher_scoring():
    """One split: the sums of gradients over those of the information, lambda added."""
    features, y = np.repeat([[0.0], [1.0]], 4, axis=0), np.array([1.0, 2, 2, 3, 7, 9, 11, 13])
    model = XGBDistributionLite(n_estimators=1, max_depth=1, learning_rate=0.5)
    model.set_params(reg_lambda=2.0, gamma=0.0, min_child_samples=1)
    model.fit(features, y)
    mean, deviation = y.mean(), y.std()
    for side in (slice(4), slice(4, 8)):
        r = (y[side] - mean) / deviation
        loc = mean + deviation * 0.5 * r.sum() / (4.0 + 2.0)
        scale = deviation * np.exp(0.5 * (r**2 - 1.0).sum() / (8.0 + 2.0))
        distribution = model.predict_dist(features[side][:1])
        assert_allclose([distribution.mean()[0], distribution.std()[0]], [loc, scale], rtol=1e-5)


@pytest.mark.parametrize("name", ["normal", "zero_inflated_negative_binomial"])
def test_the_same_bits_on_any_number_of_threads(name):
    rows = np.repeat(X, 20, axis=0)
    y = np.repeat(targets_for(name), 20)
    one, other = (fitted(name, y, rows, n_estimators=3, n_jobs=n_jobs) for n_jobs in (1, 3))
    assert_array_equal(one.model_.outputs, other.model_.outputs)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_weight_2_is_the_row_twice_and_weight_0_none(name):
    y, weight = targets_for(name), np.where(np.arange(400) < 200, 2.0, 1.0)
    weight[:7] = 0.0
    model = XGBDistributionLite(distribution=name, n_estimators=5, min_child_weight=0.0)
    twice = np.concatenate([np.arange(7, 200), np.arange(7, 400)])
    weighted = model.fit(X, y, sample_weight=weight).predict_quantile(X, 0.7)
    assert_allclose(weighted, model.fit(X[twice], y[twice]).predict_quantile(X, 0.7), rtol=1e-3)
    score = model.score(X, y, sample_weight=weight)
    assert_allclose(score, model.score(X[twice], y[twice]))


@pytest.mark.parametrize("name", ["normal", "student_t", "laplace", "lognormal", "gamma"])
def test_neither_unit_nor_origin_of_the_targets_matters(name):
    """Origins as far as float64 can tell the targets apart."""
    quantiles = fitted(name).predict_quantile(X, [0.1, 0.5, 0.9])
    for factor in (1e-9, 1e6, 1e25):
        scaled = fitted(name, factor * targets_for(name)).predict_quantile(X, [0.1, 0.5, 0.9])
        assert_allclose(scaled, factor * quantiles, rtol=1e-9)
    if name in ("normal", "student_t", "laplace"):
        for origin in (1e6, -1e9, 1e12):
            moved = fitted(name, origin + Y).predict_quantile(X, [0.1, 0.5, 0.9])
            assert_allclose(moved - origin, quantiles, atol=1e-15 * abs(origin))


@pytest.mark.parametrize("name", ["normal", "student_t", "laplace", "lognormal"])
def test_intervals_of_large_numbers_that_hardly_differ(name):
    y = 1e12 + 0.5 * RNG.normal(size=400)
    ends = fitted(name, y).predict_interval(X, 0.9)
    assert_allclose(ends[:, 1] - ends[:, 0], 1.645, rtol=0.5)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_constant_targets_and_few_rows(name):
    for n_rows in (1, 2, 50):
        y = np.full(n_rows, 3.0)
        model = fitted(name, y, X[:n_rows], n_estimators=20)
        assert np.isfinite(model.score(X[:n_rows], y))
        assert_allclose(model.predict(X[:n_rows]), 3.0, rtol=0.01)
        assert np.isfinite(model.predict_interval(X)).all()
    if name == "zero_inflated_gamma":
        with pytest.raises(ValueError, match="y is 0 in every row"):
            fitted(name, np.zeros(400))
    elif name in ("poisson", "negative_binomial", "zero_inflated_poisson"):
        model = fitted(name, np.zeros(400))
        assert model.predict(X).max() < 0.01
        assert_array_equal(model.predict_interval(X), 0.0)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_outliers(name):
    y = targets_for(name).copy()
    y[0] = 1e7
    model = fitted(name, y, n_estimators=30)
    assert np.isfinite(model.score(X, y))
    assert np.isfinite(model.predict(X)).all()
    if name == "student_t":
        assert np.abs(model.predict_quantile(X[1:], 0.5)).max() < 10.0


@pytest.mark.parametrize(
    ("name", "wrong", "words"),
    [
        ("poisson", 1.5, "y[3]=1.5: distribution='poisson' needs whole numbers >= 0 as targets"),
        ("negative_binomial", -1.0, "needs whole numbers >= 0"),
        ("zero_inflated_poisson", 0.5, "needs whole numbers >= 0"),
        ("gamma", 0.0, "distribution='gamma' needs targets > 0; choose another distribution"),
        ("lognormal", -2.0, "needs targets > 0"),
        ("zero_inflated_gamma", -2.0, "needs targets >= 0"),
    ],
)
def test_targets_that_a_distribution_cannot_give(name, wrong, words):
    y = targets_for(name).copy()
    y[3] = wrong
    with pytest.raises(ValueError, match=re.escape(words)):
        fitted(name, y)
    model = fitted(name)
    with pytest.raises(ValueError, match="needs"):
        model.score(X, y)
    with pytest.raises(ValueError, match="y of X_val"):
        model.fit(X, targets_for(name), X_val=X, y_val=y)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"distribution": "nrmal"}, "distribution='nrmal': it must be one of 'normal'"),
        ({"objective": "count:poisson"}, "the loss is the log-likelihood of `distribution`"),
        ({"base_score": 0.5}, "the start is the distribution of largest likelihood"),
        ({"monotone_constraints": [1, 0, 0]}, "they would bind all parameters alike"),
        ({"linear_tree": True}, "multi_strategy='multi_output_tree'"),
        ({"eval_metric": "nl"}, "did you mean 'nll'?"),
    ],
)
def test_parameters_that_are_refused(parameters, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        XGBDistributionLite(**parameters).fit(X, Y)


def test_parameters_without_a_use_are_not_taken(tmp_path):
    """Of no setting of an estimator: neither by name nor in searches; files may have them."""
    losses = {"quantile_alpha", "expectile_alpha", "huber_slope", "fair_c"}
    losses |= {"tweedie_variance_power", "focal_gamma"}
    rounds = {"rate_drop", "skip_drop", "one_drop", "sample_type", "normalize_type"}
    rounds |= {"validation_fraction", "refit", "warm_start"}
    of_class, of_regression = {"focal_gamma"}, losses - {"focal_gamma"}
    unused = {
        XGBRegressorLite: of_class,
        XGBClassifierLite: of_regression,
        XGBRFRegressorLite: of_class | rounds,
        XGBRFClassifierLite: of_regression | rounds,
        XGBRankerLite: losses,
        XGBSurvivalLite: losses,
        XGBDistributionLite: losses | {"objective", "base_score", "monotone_constraints"},
    }
    everything = set(XGBRegressorLite().get_params()) | of_class
    for estimator, names in unused.items():
        assert everything - set(estimator().get_params()) == names, estimator
        for name in names:
            assert repr(estimator(**{name: None})) == repr(estimator())
            for value in (0.25, [1, 0]):
                words = rf"^{name}={re.escape(repr(value))} is not supported by "
                with pytest.raises(UnknownParameterError, match=words):
                    estimator(**{name: value})
                with pytest.raises(UnknownParameterError, match=words):
                    estimator().set_params(**{name: value})
    model, path = fitted(), tmp_path / "model.json"
    model.save_model(path, format="sklboost")
    document = json.loads(path.read_text("utf-8"))
    (of_file,) = [part["parameters"] for part in document.values() if "parameters" in part]
    assert losses.isdisjoint(of_file)
    of_file.update(quantile_alpha=0.3, objective=None)  # as earlier versions wrote them
    path.write_text(json.dumps(document), "utf-8")
    assert_array_equal(load_model(path).predict(X), model.predict(X))


def test_several_targets_are_refused_with_the_remedy():
    both = np.column_stack([Y, -Y])
    with pytest.raises(ValueError, match=r"y has 2 columns.*MultiOutputRegressor"):
        XGBDistributionLite().fit(X, both)
    model = MultiOutputRegressor(XGBDistributionLite(n_estimators=3)).fit(X, both)
    assert model.predict(X).shape == (400, 2)


def test_quantiles_that_are_no_probabilities():
    model = fitted()
    masked = np.ma.array([0.5, 0.9], mask=[False, True])
    for q in (-0.1, 1.1, "half", [], [[0.5]], np.nan, None, masked):
        for method in (model.predict_quantile, model.predict_interval):
            with pytest.raises(ValueError, match="it must be a number from 0 to 1"):
                method(X, q)


def test_early_stopping_and_other_metrics():
    model = XGBDistributionLite(n_estimators=500, early_stopping_rounds=5, random_state=0)
    model.fit(X, Y)
    assert model.stop_reason_ == "early_stopping"
    assert list(model.evals_result_["validation_0"]) == ["nll"]
    for metric in ("crps", "rmse", "neg_mean_absolute_error"):
        model.set_params(eval_metric=metric).fit(X, Y)
        assert list(model.evals_result_["validation_0"]) == [metric]
    log = model.set_params(eval_metric=["rmse"], early_stopping_rounds=None, n_estimators=3)
    log.fit(X, Y, X_val=X, y_val=Y)
    rmse = log.evals_result_["validation_0"]["rmse"][-1]
    assert_allclose(rmse, np.sqrt(((log.predict(X) - Y) ** 2).mean()))


def test_continuing_keeps_the_unit_of_the_model():
    whole = fitted(n_estimators=8)
    part = fitted(n_estimators=5, warm_start=True)
    assert_allclose(part.set_params(n_estimators=8).fit(X, Y).predict(X), whole.predict(X))
    more = XGBDistributionLite(n_estimators=3).fit(X, 5.0 * Y, init_model=fitted())
    assert more._trained.targets.spread == fitted()._trained.targets.spread
    with pytest.raises(ValueError, match=r"distribution='laplace', but init_model was fitted with"):
        XGBDistributionLite(distribution="laplace").fit(X, Y, init_model=fitted())


@pytest.mark.parametrize("name", ["normal", "student_t", "gamma", "zero_inflated_poisson"])
def test_files_pickles_and_clones(name, tmp_path):
    model = fitted(name)
    path = tmp_path / "model.json"
    with pytest.raises(ValueError, match="XGBoost cannot hold distribution"):
        model.save_model(path, format="xgboost")
    model.save_model(path)
    loaded = load_model(path)
    assert type(loaded) is XGBDistributionLite
    for other in (loaded, pickle.loads(pickle.dumps(model))):
        assert_array_equal(other.predict_interval(X), model.predict_interval(X))
        assert other.score(X, targets_for(name)) == model.score(X, targets_for(name))
    assert clone(loaded).distribution == name


def test_margins_ranges_of_rounds_and_stages():
    model = fitted()
    margin = model.predict(X, output_margin=True)
    assert margin.shape == (400, 2)
    # in a unit that another fit need not have
    for name in ("normal", "zero_inflated_lognormal"):
        given = np.zeros((400, 2 + name.startswith("zero")))
        with pytest.raises(ValueError, match=rf"^base_margin .*distribution='{name}'.*subtract"):
            XGBDistributionLite(distribution=name).fit(X, np.abs(Y), base_margin=given)
    exposure, counts = np.linspace(0.5, 20, 400), np.random.default_rng(0).poisson(3, 400)
    of_counts = XGBDistributionLite(distribution="poisson", n_estimators=30, max_depth=2)
    of_counts.fit(X, counts, base_margin=np.log(exposure))
    rates = of_counts.predict(X, base_margin=np.zeros(400))
    assert_allclose(of_counts.predict(X, base_margin=np.log(exposure)), rates * exposure)
    *_, last = model.staged_predict(X)
    assert_array_equal(last, model.predict(X))
    first = model.predict_quantile(X, 0.9, iteration_range=(0, 2))
    assert_array_equal(first, fitted(n_estimators=2).predict_quantile(X, 0.9))


def test_shap_values_and_derivations_of_each_parameter(tmp_path):
    model = fitted("student_t")
    values = model.shap_values(X[:4])
    assert values.shape == (4, 3, 3)
    assert "log scale" in str(model.explain_prediction(X[:1], full=True))
    contributions = model.predict(X[:4], pred_contribs=True)
    assert_allclose(contributions.sum(axis=2), model.predict(X[:4], output_margin=True))
    model.to_html(tmp_path / "model.html")
    assert "log df" in (tmp_path / "model.html").read_text("utf-8")


@pytest.mark.parametrize(
    "parameters",
    [
        {"multi_strategy": "one_output_per_tree", "linear_tree": True},
        {"subsample": 0.5, "sampling_method": "gradient_based"},
        {"preset": "auto"},
    ],
)
def test_other_options(parameters):
    model = fitted(n_estimators=20, random_state=0, **parameters)
    assert model.score(X, Y) > -1.65


def test_other_libraries_have_no_such_models():
    model = fitted()
    with pytest.raises(ValueError, match="cannot hold distribution='normal' with the same"):
        model.to_xgboost()


def test_graphs_of_onnx_have_raw_scores():
    from skl2onnx import to_onnx

    import sklboost.onnx  # noqa: F401

    model = fitted()
    with pytest.raises(ValueError, match="raw_scores"):
        to_onnx(model, X[:1])
    graph = to_onnx(model, X[:1], options={XGBDistributionLite: {"raw_scores": True}})
    assert graph.graph.output[0].name
