"""Errors: each names the value received, what is wrong, and what to do."""

import inspect
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import sklboost
from sklboost import XGBClassifierLite, XGBRankerLite, XGBRegressorLite, XGBSurvivalLite
from tests.small_models import ESTIMATORS

pytestmark = pytest.mark.interpreted

NAN, INF = float("nan"), float("inf")

OUT_OF_RANGE = [
    *[("n_estimators", value, "an integer >= 1$") for value in (-3, 0, 2.5, "ten", True)],
    *[("learning_rate", value, "number >= 0") for value in (-0.1, NAN, INF, "fast")],
    *[("max_depth", value, "an integer >= 0") for value in (-1, 2.5)],
    *[("max_leaves", value, "0 .* or an integer >= 2") for value in (-1, 1, 4.0)],
    *[("grow_policy", value, "'depthwise'.*'lossguide'") for value in ("best", 1)],
    *[("max_bin", value, "from 2 to 65535") for value in (1, 65_536, 255.5)],
    *[("reg_lambda", value, "number >= 0") for value in (-1e-3, NAN, "1")],
    *[("reg_alpha", value, "number >= 0") for value in (-1, INF)],
    *[("gamma", value, "number >= 0") for value in (-0.5, NAN)],
    *[("min_child_weight", value, "number >= 0") for value in (-1, "1")],
    *[("max_ctr_complexity", value, "from 0 to 1") for value in (-1, 2, 0.5)],
    *[("min_child_samples", value, "from 0 to 2147483647") for value in (-1, 2.5, True)],
    *[("max_delta_step", value, "number >= 0") for value in (-2, INF)],
    *[("pruning", value, "'post'.*'full'.*'pre'") for value in ("none", False)],
    *[
        (name, value, "number > 0 and <= 1")
        for name in ("subsample", "colsample_bytree", "colsample_bylevel", "colsample_bynode")
        for value in (0, -0.5, 1.01, NAN, "half", True)
    ],
    *[("sampling_method", value, "'uniform'.*'gradient_based'") for value in ("goss", 1)],
    *[("base_score", value, "finite number") for value in (NAN, INF, "mean")],
    *[("n_jobs", value, "positive integer") for value in (0, 1.5, "all")],
    *[("verbose", value, "integer >= 0") for value in (-1, "yes")],
    *[
        ("early_stopping_rounds", value, r"None \(no early stopping\) or an integer >= 1$")
        for value in (0, -1, 2.0, True, "5")
    ],
    *[
        ("validation_fraction", value, "a number between 0 and 1, both excluded$")
        for value in (0, 1, -0.1, 1.5, NAN, None, "0.1")
    ],
    *[("validation_split", value, "one of 'random', 'time'$") for value in ("last", None, 0.1)],
    *[
        ("max_time", value, r"None \(no limit\) or a number of seconds > 0$")
        for value in (0, -1, NAN, INF, "1 h", True)
    ],
    *[
        (name, value, "True or False$")
        for name in ("refit", "warm_start", "keep_pruned", "linear_tree", "extra_trees")
        for value in (None, 1, "yes")
    ],
    *[("one_drop", value, "True or False$") for value in (None, 2, "yes")],
    ("enable_categorical", "yes", "True or False$"),
    ("booster", "gblinear", "one of 'gbtree', 'dart'"),
    ("rate_drop", 1.5, "a number from 0 to 1"),
    ("skip_drop", -0.1, "a number from 0 to 1"),
    ("sample_type", "no", "one of 'uniform', 'weighted'"),
    ("normalize_type", "trees", "one of 'tree', 'forest'"),
    *[("num_parallel_tree", value, "integer >= 1") for value in (0, -1, 1.5, True)],
    ("ccp_alpha", -1, "finite number >= 0"),
    ("path_smooth", -1.0, "a finite number >= 0"),
    *[("linear_lambda", value, "a finite number >= 0") for value in (-1.0, NAN)],
    *[("categorical_features", value, "None, 'from_dtype', 'auto'") for value in ("all", [[0]])],
    ("unknown_category", "new", "one of 'missing', 'error'"),
    ("missing", "?", "a number, or NaN"),
    ("huber_slope", 0, "a .*number"),
    ("fair_c", -1.0, "a .*number"),
    ("tweedie_variance_power", 2.1, "a .*number"),
    ("expectile_alpha", [0.5, 1.0], "a .*number"),
    ("quantile_alpha", 1, "a number between 0 and 1"),
    ("objective", 3, "None, a name, a function"),
]
OF_CLASSES_OUT_OF_RANGE = [
    *[("class_weight", value, "None, 'balanced' or a") for value in ("even", {1: -5})],
    ("scale_pos_weight", 0, "a finite number > 0"),
    ("calibrated_prior", "yes", "True or False"),
    ("focal_gamma", -0.1, "a .*number"),
]


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    return random.normal(size=(20, 3)), np.arange(20) % 2


@pytest.mark.parametrize(
    ("estimator", "name", "value", "rule"),
    [(XGBRegressorLite, *own) for own in OUT_OF_RANGE]
    + [(XGBClassifierLite, *own) for own in [OUT_OF_RANGE[0], *OF_CLASSES_OUT_OF_RANGE]],
)
def test_parameter_out_of_range(estimator, name, value, rule, data):
    model = estimator(**{name: value})
    words = re.escape(f"{name}={value!r}: it must be ")
    with pytest.raises(ValueError, match=f"^{words}.*{rule}"):
        model.fit(*data)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_parameters_are_checked_before_any_look_at_the_data():
    with pytest.raises(ValueError, match="max_bin=1"):
        XGBRegressorLite(max_bin=1).fit("no data", None)


@pytest.mark.parametrize("base_score", [0, 1, 1.5, -0.2])
def test_base_score_of_two_classes_is_a_probability(base_score, data):
    with pytest.raises(ValueError, match=rf"^base_score={base_score}: .*probability"):
        XGBClassifierLite(base_score=base_score).fit(*data)


@pytest.mark.parametrize(
    ("estimator", "wrong", "nearest"),
    [
        (XGBRegressorLite, "learning_rat", "learning_rate"),
        (XGBClassifierLite, "n_estimator", "n_estimators"),
        (XGBRegressorLite, "max_iter", "n_estimators"),
        (XGBClassifierLite, "maxdepth", "max_depth"),
        (XGBRegressorLite, "max_bins", "max_bin"),
    ],
)
def test_unknown_parameter_names_the_nearest(estimator, wrong, nearest):
    words = rf"^{estimator.__name__} has no parameter '{wrong}'; did you mean '{nearest}'\? help\("
    # Python's contract and scikit-learn's, whichever is relied upon
    for kind in (TypeError, ValueError):
        with pytest.raises(kind, match=words):
            estimator(**{wrong: 1})
        with pytest.raises(kind, match=words):
            estimator().set_params(**{wrong: 1})
        with pytest.raises(kind, match=words):
            make_pipeline(estimator()).set_params(**{f"{estimator.__name__.lower()}__{wrong}": 1})


def test_set_params_sets_nothing_if_a_name_is_unknown():
    model = XGBRegressorLite()
    with pytest.raises(ValueError, match="no parameter 'maxdepth'"):
        model.set_params(gamma=3.0, maxdepth=1)
    assert model.gamma == 0.0


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("sample_weights", "; did you mean 'sample_weight'?"),
        ("early_stopping_rounds", ": 'early_stopping_rounds' is a parameter of the estimator, "),
        ("categorical_feature", ": 'categorical_features' is a parameter of the estimator, XGB"),
        ("qqq", ": the arguments are X, y, "),
    ],
)
def test_unknown_argument_of_fit(estimator, name, remedy, data):
    words = rf"^{estimator.__name__}.fit\(\) got an unexpected keyword argument '{name}'"
    with pytest.raises(TypeError, match=words + re.escape(remedy)):
        estimator().fit(*data, **{name: 5})
    with (
        config_context(enable_metadata_routing=True),
        pytest.raises(TypeError, match=rf"Unexpected args: {{'{name}'}}"),
    ):
        estimator().set_fit_request(**{name: True})


@pytest.mark.parametrize("estimator", [*ESTIMATORS, XGBRankerLite, XGBSurvivalLite])
def test_a_missing_argument_is_that_of_a_method_that_users_know(estimator):
    """Not of the mixin, or whatever else the method is inherited from."""
    public = {"XGBClassifierLite", "XGBRegressorLite", "XGBRankerLite", "XGBSurvivalLite"}
    n_methods = 0
    for name in dir(estimator):
        is_own = not name.startswith(("_", "set_"))  # those are scikit-learn's
        method = getattr(estimator(), name, None) if is_own else None
        kinds = inspect.signature(method).parameters.values() if callable(method) else ()
        if any(own.default is own.empty and own.kind is own.POSITIONAL_OR_KEYWORD for own in kinds):
            n_methods += 1
            with pytest.raises(TypeError, match=r"missing .* required") as caught:
                method()
            owner, _, named = str(caught.value).partition("(")[0].rpartition(".")
            assert named == name
            assert owner in {"", *public}
    assert n_methods > 10


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_wrong_calls_name_the_estimator(estimator, data):
    model, name = estimator(n_estimators=1).fit(*data), estimator.__name__
    for call, message in [
        (model.fit, "fit() missing 2 required positional arguments: 'X' and 'y'"),
        (lambda: model.apply(*range(9)), "apply() takes from 2 to 3 positional arguments but 10"),
        (
            lambda: model.explain_prediction(X=[[0]]),
            "explain_prediction() got an unexpected keyword argument 'X'; did you mean 'x'?",
        ),
        (
            lambda: model.validation_importances(X_val=0),
            "validation_importances() missing 2 required positional arguments: 'X' and 'y'",
        ),
    ]:
        with pytest.raises(TypeError, match=rf"^{re.escape(f'{name}.{message}')}"):
            call()
    with pytest.raises(TypeError, match=r"^load_model\(\) missing 1 required .* 'fname'"):
        estimator.load_model()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_shapes(estimator, data):
    X, y = data
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        estimator().fit(X[:, 0], y)
    with pytest.raises(ValueError, match="dim 3"):
        estimator().fit(X[np.newaxis], y)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[20, 19\]"):
        estimator().fit(X, y[:-1])
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[20, 19\]"):
        estimator().fit(X, np.column_stack([y, y])[:-1])
    with pytest.raises(ValueError, match="dim 3"):
        estimator().fit(X, np.stack([np.column_stack([y, y])] * 2))
    with pytest.raises(ValueError, match="0 sample"):
        estimator().fit(X[:0], y[:0])
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        estimator().fit(X[:, :0], y)


def test_features_that_are_not_numbers(data):
    X, y = data
    text = X.astype(object)
    text[3, 1] = "blue"
    with pytest.raises(ValueError, match="blue"):
        XGBRegressorLite().fit(text, y)
    with pytest.raises(ValueError, match="Complex"):
        XGBRegressorLite().fit(X + 1j, y)


@pytest.mark.parametrize(("value", "words"), [(NAN, "NaN"), (INF, "infinity"), (-INF, "infinity")])
def test_targets_that_are_not_finite(value, words, data):
    X, y = data
    y = y.astype(float)
    y[4] = value
    for estimator in ESTIMATORS:
        with pytest.raises(ValueError, match=rf"Input y contains {words}"):
            estimator().fit(X, y)


def test_text_targets_of_a_regressor(data):
    X, y = data
    with pytest.raises(ValueError, match=r"^y holds text, such as '(no|yes)'"):
        XGBRegressorLite().fit(X, np.where(y, "yes", "no"))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_weights(estimator, data):
    X, y = data
    weight = np.ones(20)
    weight[7] = -2.0
    with pytest.raises(ValueError, match=r"sample_weight\[7\]=-2: .*must be >= 0"):
        estimator().fit(X, y, sample_weight=weight)
    for value, words in ((NAN, "NaN"), (INF, "infinity")):
        weight[7] = value
        with pytest.raises(ValueError, match=rf"sample_weight contains {words}"):
            estimator().fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match=r"sample_weight is zero for every row.*> 0"):
        estimator().fit(X, y, sample_weight=np.zeros(20))
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[19, 20\]"):
        estimator().fit(X, y, sample_weight=np.ones(19))
    with pytest.raises(ValueError, match=r"sample_weight has shape \(20, 2\).*1-D"):
        estimator().fit(X, y, sample_weight=np.ones((20, 2)))


def methods(model):
    names = ["predict", "staged_predict", "apply", "predict_proba", "decision_function"]
    return [getattr(model, name) for name in names if hasattr(model, name)]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_wrong_features_at_predict(estimator, data):
    X, y = data
    for method in methods(estimator(n_estimators=1).fit(X, y)):
        with pytest.raises(ValueError, match=r"X has 2 features.*expecting 3 features"):
            list(method(X[:, :2]))
        with pytest.raises(ValueError, match="Expected 2D array"):
            list(method(X[0]))
        with pytest.raises(ValueError, match="0 sample"):
            list(method(X[:0]))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    renamed = r"(?s)unseen at fit time:.*\bd\b.*now missing:.*\bc\b"
    for method in methods(estimator(n_estimators=1).fit(frame, y)):
        with pytest.raises(ValueError, match=renamed):
            list(method(frame.rename(columns={"c": "d"})))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_not_fitted(estimator, data):
    X, _ = data
    model = estimator()
    for method in methods(model):
        with pytest.raises(NotFittedError, match=r"not fitted yet.*Call 'fit'"):
            list(method(X))
    with pytest.raises(NotFittedError, match="not fitted"):
        model.trees_to_dataframe()
    with pytest.raises(NotFittedError, match="not fitted"):
        _ = model.feature_importances_


def test_no_article_stands_before_a_name_that_only_the_call_tells():
    # "X is a ndarray": of type
    names = re.compile(r"\b[Aa]n? \{(?:type\(|_name\(|\w*\.?__name__)")
    for file in Path(sklboost.__file__).parent.rglob("*.py"):
        assert not names.findall(file.read_text(encoding="utf-8")), file
