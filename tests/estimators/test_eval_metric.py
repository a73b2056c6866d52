import re
from functools import partial
from typing import NamedTuple

import lightgbm
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import metrics as sklearn_metrics
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.metrics import get_scorer, make_scorer, r2_score

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.estimators.fit.eval_metric import resolve_metrics
from sklboost.estimators.input.targets import RegressionTargets
from sklboost.objectives.losses.classes import LogLoss, Softmax
from sklboost.objectives.losses.regression import AbsoluteError, QuantileError
from sklboost.objectives.losses.squared_error import SquaredError

NO_WEIGHT = np.empty(0)


class Case(NamedTuple):
    """A fitted model, its rows, and the same as the rounds of boosting know it."""

    task: str
    model: XGBClassifierLite | XGBRegressorLite
    X: np.ndarray
    labels: np.ndarray
    y: np.ndarray
    raw_score: np.ndarray
    weight: np.ndarray

    @property
    def classes(self):
        return getattr(self.model, "classes_", None)

    @property
    def loss(self):
        own = {"regression": SquaredError, "binary": LogLoss}
        return Softmax(len(self.classes)) if self.task == "multiclass" else own[self.task]()

    def link(self, raw_score):
        loss = self.loss
        return (
            loss.predictions(raw_score) if self.classes is None else loss.probabilities(raw_score)
        )

    def predictions(self):
        prediction = self.link(self.raw_score)
        return prediction[:, 1] if self.task == "binary" else prediction

    def resolve(self, eval_metric, weight=NO_WEIGHT):
        start = (self.y, np.zeros_like(self.raw_score), weight)
        return resolve_metrics(eval_metric, self.model._trained.targets, self.loss, start=start)

    def value(self, eval_metric, weight=NO_WEIGHT):
        (metric,) = self.resolve(eval_metric, weight)
        return metric.value(self.y, self.raw_score, weight)


def make_case(task):
    load = dict(regression=load_diabetes, binary=load_breast_cancer, multiclass=load_wine)[task]
    X, y = load(return_X_y=True)
    weight = np.random.default_rng(0).exponential(size=len(y))
    if task == "regression":
        model = XGBRegressorLite(n_estimators=5, max_depth=2).fit(X, y)
        return Case(task, model, X, y, y, model.predict(X)[np.newaxis], weight)
    labels = np.array(["ham", "spam", "egg"])[y]
    model = XGBClassifierLite(n_estimators=5, max_depth=2).fit(X, labels)
    codes = np.searchsorted(model.classes_, labels).astype(float)
    raw_score = np.ascontiguousarray(np.atleast_2d(model.decision_function(X).T))
    return Case(task, model, X, labels, codes, raw_score, weight)


@pytest.fixture(scope="module", params=["regression", "binary", "multiclass"])
def case(request):
    return make_case(request.param)


@pytest.fixture(scope="module")
def regression():
    return make_case("regression")


@pytest.fixture(scope="module")
def binary():
    return make_case("binary")


# --- names of ours -------------------------------------------------------------------------------


def test_a_loss_decides_its_metric_and_parameters(regression):
    def resolve(eval_metric, loss):
        start = (regression.y, np.zeros((loss.n_outputs, len(regression.y))), NO_WEIGHT)
        (metric,) = resolve_metrics(eval_metric, RegressionTargets(1), loss, start=start)
        return metric

    assert resolve(None, AbsoluteError()).name == "mae"
    assert resolve("quantile@0.3", QuantileError(1, (0.8,))).parameters == (0.3,)
    with pytest.raises(ValueError, match="'quantile' needs an alpha"):
        resolve("quantile", AbsoluteError())
    # predictions of several levels are put in order
    alphas = [0.9, 0.2]
    several = resolve(None, QuantileError(1, tuple(alphas)))
    assert several.formula is None
    raw_score = np.random.default_rng(0).normal(100.0, 50.0, size=(2, len(regression.y)))
    low, high = np.sort(raw_score, axis=0)
    expected = [
        sklearn_metrics.mean_pinball_loss(regression.y, own, alpha=alpha)
        for own, alpha in ((low, 0.2), (high, 0.9))
    ]
    assert_allclose(several.value(regression.y, raw_score, NO_WEIGHT), np.mean(expected))


@pytest.mark.parametrize("name", ["quantile", "expectile"])
def test_a_metric_of_several_alphas_is_that_of_the_predictions(name):
    rng = np.random.default_rng(0)
    X, alphas = rng.normal(size=(400, 3)), np.array([0.4, 0.5, 0.6])
    y = X[:, 0] + rng.normal(size=400)
    settings = {"objective": f"reg:{name}error", f"{name}_alpha": alphas, "learning_rate": 0.5}
    model = XGBRegressorLite(**settings, n_estimators=30).fit(
        X[:200], y[:200], X_val=X[200:], y_val=y[200:]
    )
    below = y[200:, np.newaxis] - model.predict(X[200:])
    losses = np.where(below > 0, alphas, 1 - alphas) * abs(below) ** (1 + (name == "expectile"))
    assert_allclose(model.evals_result_["validation_0"][name][-1], losses.mean())
    raw_score = model._scored(X[200:])[1]
    assert (np.diff(raw_score, axis=0) < 0).any()  # which predictions put in order


def test_a_target_outside_the_domain_of_a_metric_fails_before_the_training():
    X, y = np.zeros((20, 1)), np.r_[np.ones(19), -3.0]
    model = XGBRegressorLite(eval_metric="poisson-deviance")
    with pytest.raises(ValueError, match="poisson-deviance of a target of -3 in row 19"):
        model.fit(X, y, X_val=X, y_val=y)


# --- scorers -------------------------------------------------------------------------------------

SCORERS = {
    "regression": [
        *("neg_mean_squared_error", "neg_median_absolute_error", "explained_variance"),
        "neg_mean_poisson_deviance",
    ],
    "binary": [
        *("accuracy", "balanced_accuracy", "roc_auc", "neg_log_loss", "matthews_corrcoef"),
    ],
    "multiclass": ["accuracy", "balanced_accuracy", "roc_auc_ovr", "neg_log_loss", "f1_macro"],
}


@pytest.mark.parametrize("weighted", [False, True])
def test_scorers_see_what_the_fitted_model_would_say(case, weighted):
    weight = case.weight if weighted else NO_WEIGHT
    arguments = {"sample_weight": weight} if weighted else {}
    for name in SCORERS[case.task]:
        expected = get_scorer(name)(case.model, case.X, case.labels, **arguments)
        (metric,) = case.resolve(name, weight)
        assert (metric.name, metric.greater_is_better, metric.formula) == (name, True, None)
        assert metric.value(case.y, case.raw_score, weight) == expected
        assert case.value(get_scorer(name), weight) == expected


def test_a_scorer_of_a_label(binary):
    scorer = make_scorer(sklearn_metrics.f1_score, pos_label="ham")
    (metric,) = binary.resolve(scorer)
    assert metric.name == repr(scorer)
    value = metric.value(binary.y, binary.raw_score, NO_WEIGHT)
    assert 0.5 < value < 1.0
    assert value == scorer(binary.model, binary.X, binary.labels)


def test_a_function_of_an_estimator_is_a_scorer(case):
    def my_scorer(estimator, X, y):
        assert len(X) == len(y)
        assert_array_equal(y, case.labels)
        assert_array_equal(estimator.predict(X), case.model.predict(case.X))
        if case.task != "regression":
            assert_array_equal(estimator.predict_proba(X), case.model.predict_proba(case.X))
            scores = case.model.decision_function(case.X)
            assert_array_equal(estimator.decision_function(X), scores)
            assert_array_equal(estimator.classes_, case.classes)
        return -7

    (metric,) = case.resolve(my_scorer, case.weight)
    assert (metric.name, metric.greater_is_better) == ("my_scorer", True)
    assert metric.value(case.y, case.raw_score, case.weight) == -7.0


@pytest.mark.parametrize(
    "look",
    [
        lambda estimator, X, y: estimator.predict(X[:5]).sum(),
        lambda estimator, X, y: np.asarray(X).sum(),
        lambda estimator, X, y: estimator.predict(np.zeros((3, 2))).sum(),
    ],
)
def test_a_scorer_sees_no_features(case, look):
    with pytest.raises(TypeError, match="sees the predictions of all validation rows, not their f"):
        case.value(look)


def test_a_scorer_whose_function_takes_no_weights(regression):
    scorer = make_scorer(sklearn_metrics.max_error, greater_is_better=False)
    assert regression.value(scorer) < 0.0
    with pytest.raises(TypeError, match=r"scorer .make_scorer\(max_error.* takes no sample_we"):
        regression.value(scorer, regression.weight)
    assert regression.value(
        lambda estimator, X, y: scorer(estimator, X, y), regression.weight
    ) == regression.value(scorer)

    def broken(estimator, X, y, sample_weight=None):
        raise TypeError("broken")

    with pytest.raises(TypeError, match=r"^broken$"):
        regression.value(broken, regression.weight)


# --- functions -----------------------------------------------------------------------------------


def test_functions_see_labels_and_predictions(case):
    seen = []

    def spread(y_true, y_pred):
        seen.append((y_true, y_pred))
        return np.float32(0.5)

    (metric,) = case.resolve(spread, case.weight)
    assert len(seen) == 1  # before the first round, so that mistakes show before the training
    assert type(metric.value(case.y, case.raw_score, case.weight)) is float
    y_true, y_pred = seen[1]
    assert_array_equal(y_true, case.labels)
    assert_array_equal(y_pred, case.predictions())


def test_functions_of_scikit_learn():
    for task, function, greater_is_better, weighted in [
        ("regression", sklearn_metrics.mean_absolute_error, False, True),
        ("regression", partial(sklearn_metrics.d2_pinball_score, alpha=0.9), True, False),
        ("binary", sklearn_metrics.roc_auc_score, True, True),
        ("multiclass", sklearn_metrics.log_loss, False, False),
    ]:
        case = make_case(task)
        weight = case.weight if weighted else NO_WEIGHT
        (metric,) = case.resolve(function, weight)
        name = getattr(function, "__name__", "d2_pinball_score")
        found = (metric.name, metric.greater_is_better, metric.formula)
        assert found == (name, greater_is_better, None)
        expected = function(
            case.labels, case.predictions(), sample_weight=weight if weighted else None
        )
        assert metric.value(case.y, case.raw_score, weight) == expected


@pytest.mark.parametrize("classifier", [False, True])
def test_what_a_function_writes_to_its_arguments_no_other_metric_sees(classifier):
    def spoiled(y_true, y_pred):
        y_true[:], y_pred[:] = 0, 0.0
        return 1.0

    X, y = load_diabetes(return_X_y=True)
    estimator = XGBClassifierLite if classifier else XGBRegressorLite
    y, metric = (y > 140).astype(int) if classifier else y, "auc" if classifier else "r2"
    settings = dict(n_estimators=4, max_depth=2, n_jobs=1)
    logs = [
        estimator(eval_metric=metrics, **settings).fit(X, y, X_val=X, y_val=y).evals_result_
        for metrics in ([metric], [spoiled, metric])
    ]
    assert logs[1]["validation_0"][metric] == logs[0]["validation_0"][metric]


def test_a_function_of_labels_is_told_to_be_a_scorer(binary):
    message = r"'f1_score' failed on probabilities.*continuous.*give make_scorer\(f1_score\)"
    with pytest.raises(ValueError, match=message):
        binary.resolve(sklearn_metrics.f1_score)
    (metric,) = binary.resolve(sklearn_metrics.make_scorer(sklearn_metrics.accuracy_score))
    assert metric.value(binary.y, binary.raw_score, NO_WEIGHT) > 0.8


def test_a_function_without_weights_is_not_weighted(regression):
    (metric,) = regression.resolve(lambda y_true, y_pred: np.abs(y_true - y_pred).mean())
    assert not metric.greater_is_better
    value = metric.value(regression.y, regression.raw_score, regression.weight)
    assert_allclose(value, regression.value("mae"))


@pytest.mark.parametrize("is_higher_better", [False, True])
def test_a_triple_says_its_name_and_direction(regression, is_higher_better):
    def any_score(y_true, y_pred):
        return "bias", (y_true - y_pred).mean(), is_higher_better

    (metric,) = regression.resolve(any_score)
    assert (metric.name, metric.greater_is_better) == ("bias", is_higher_better)
    assert metric.formula is None
    bias = (regression.y - regression.raw_score[0]).mean()
    assert metric.value(regression.y, regression.raw_score, NO_WEIGHT) == bias


@pytest.mark.filterwarnings("ignore::lightgbm.basic.LGBMDeprecationWarning")
def test_a_list_of_triples_is_several_metrics():
    calls = []

    def both(y_true, y_pred):
        calls.append(len(y_true))
        return [("bias", (y_true - y_pred).mean(), False), ("r2", r2_score(y_true, y_pred), True)]

    X, y = load_diabetes(return_X_y=True)
    data = dict(X=X[:300], y=y[:300], eval_set=[(X[300:], y[300:])])
    theirs = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1)
    theirs.fit(**data, eval_metric=both)
    calls.clear()
    model = XGBRegressorLite(n_estimators=5, eval_metric=[both, "mae"]).fit(**data)
    (log,) = model.evals_result_.values()
    assert list(log) == ["bias", "r2", "mae"]
    assert set(log) - {"mae"} < set(theirs.evals_result_["valid_0"])
    assert len(calls) == 6  # before the first round, and once a round
    for name in ("bias", "r2"):
        prediction = model.predict(X[300:])
        expected = dict(pair[:2] for pair in both(y[300:], prediction))[name]
        assert log[name][-1] == pytest.approx(expected)
    stopping = XGBRegressorLite(n_estimators=50, eval_metric=both, early_stopping_rounds=3)
    assert stopping.fit(**data).best_score_ == max(stopping.evals_result_["validation_0"]["r2"])


def test_triples_of_one_name_are_refused(regression):
    def twice(y_true, y_pred):
        return [("bias", 1.0, False), ("bias", 2.0, False)]

    with pytest.raises(
        ValueError, match="eval_metric has two metrics called 'bias': leave one out"
    ):
        regression.resolve(twice)


def test_a_function_cannot_disturb_the_training(case):
    def vandal(y_true, y_pred, sample_weight):
        for array in (y_true, y_pred, sample_weight):
            array[:] = array[0]
        return 1.0

    before = [array.copy() for array in (case.y, case.raw_score, case.weight)]
    case.value(vandal, case.weight)
    for array, copy in zip((case.y, case.raw_score, case.weight), before, strict=True):
        assert_array_equal(array, copy)


# --- forms of functions ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda y, p, sample_weight: np.average(np.abs(y - p), weights=sample_weight),
        lambda y_true, y_pred, weight: np.average(np.abs(y_true - y_pred), weights=weight),
        lambda truth, guess, w: np.average(np.abs(truth - guess), weights=w),
        lambda y, p, *, sample_weight: np.average(np.abs(y - p), weights=sample_weight),
        lambda y, p, weight=None: np.average(np.abs(y - p), weights=weight),
    ],
)
def test_weights_are_ones_where_there_are_none(regression, function):
    for weight in (NO_WEIGHT, regression.weight):
        error = np.abs(regression.y - regression.raw_score[0])
        expected = np.average(error, weights=weight if len(weight) else None)
        assert_allclose(regression.value(function, weight), expected)


class MyScorer:
    def __call__(self, clf, rows, labels):
        return (clf.predict(rows) == labels).mean()


@pytest.mark.parametrize(
    "scorer",
    [
        lambda model, X, y: (model.predict(X) == y).mean(),
        lambda clf, rows, labels: (clf.predict(rows) == labels).mean(),
        lambda m, X, y, sample_weight=None: (m.predict(X) == y).mean(),
        lambda m, X, y, sample_weight: np.average(m.predict(X) == y, weights=sample_weight),
        lambda estimator, X, y=None: (estimator.predict(X) == y).mean(),
        partial(lambda power, m, X, y: (m.predict(X) == y).mean() ** power, 1),
        MyScorer(),
        make_scorer(sklearn_metrics.accuracy_score),
    ],
)
def test_a_scorer_is_known_by_its_three_parameters(binary, scorer):
    (metric,) = binary.resolve(scorer)
    assert metric.greater_is_better
    value = metric.value(binary.y, binary.raw_score, NO_WEIGHT)
    assert value == (binary.model.predict(binary.X) == binary.labels).mean()


@pytest.mark.parametrize(
    "function",
    [
        lambda: 0.0,
        lambda y: 0.0,
        lambda y_true, y_pred, weight, group: 0.0,
        lambda a, b, c, d, e: 0.0,
        lambda y, p, *, power: 0.0,
    ],
)
def test_other_parameters(regression, function):
    message = (
        r"eval_metric: <lambda>\(.*\) cannot be called \(.*\): it must be a function \(y_true, y_p"
        r".*sample_weight\), or a scorer \(estimator, X, y\)"
    )
    with pytest.raises(TypeError, match=message):
        regression.resolve(function)


def test_functions_of_native_interfaces(regression):
    message = r"'native' is for XGBoost's or LightGBM's native interface .*\(y_true, y_pred\)"
    for function in (
        lambda predictions, dtrain: dtrain.get_label().mean(),
        lambda predictions, train_data: train_data.get_label().mean(),
    ):
        function.__name__ = "native"
        with pytest.raises(TypeError, match=message):
            regression.resolve(function)
    with pytest.raises(AttributeError, match="no attribute 'meen'"):
        regression.resolve(lambda y, p: y.meen())


# --- several, and errors -------------------------------------------------------------------------


MISSPELT = (
    "eval_metric='acuracy' is not known; did you mean 'accuracy'? The metrics for two classes "
    "are logloss, error, error@t, auc, aucpr, average_precision_score, brier, rmse, mae, "
    "kullback_leibler; or a name of sklearn.metrics.get_scorer_names()"
)
NEITHER = [3, {"a": "auc"}, [None], [["auc"]]]


def test_several_keep_their_order(binary):
    metrics = binary.resolve(["auc", "accuracy", sklearn_metrics.log_loss, "error@0.3", "logloss"])
    names = [metric.name for metric in metrics]
    assert names == ["auc", "accuracy", "log_loss", "error@0.3", "logloss"]
    assert [metric.greater_is_better for metric in metrics] == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["auc", "auc"], "two metrics called 'auc': leave one out, or give"),
        ([lambda y, p: 0.0, lambda y, p: 1.0], "two metrics called '<lambda>': leave one out"),
        ("mape", "'mape' is a metric for regression, not for two classes"),
        ("acuracy", f"^{re.escape(MISSPELT)}$"),
        *((own, "must be a name, a scikit-learn scorer or a function") for own in NEITHER),
        ([], r"eval_metric=\[\] is empty: name a metric, or give None"),
    ],
)
def test_metrics_that_cannot_be(binary, given, words):
    with pytest.raises(ValueError, match=words):
        binary.resolve(given)


@pytest.mark.parametrize("bad", [None, np.nan, 1j, "0.5", np.zeros(2), np.array(0.5), (0.5, True)])
def test_what_is_no_number(regression, bad):
    message = rf"the metric 'odd' gave {re.escape(repr(bad))}: it must be one real number"

    def odd(y_true, y_pred):
        return bad

    with pytest.raises(ValueError, match=message):  # before the first round
        regression.resolve(odd)
    with pytest.raises(ValueError, match=message.replace("odd", "<lambda>")):
        regression.value(lambda estimator, X, y: bad)


def test_a_metric_that_fails_later(regression):
    def failing(y_true, y_pred):
        return np.inf if not y_pred.any() else np.nan  # infinity is a number

    (metric,) = regression.resolve(failing)
    with pytest.raises(ValueError, match="the metric 'failing' gave nan: it must be one real n"):
        metric.value(regression.y, regression.raw_score, NO_WEIGHT)
