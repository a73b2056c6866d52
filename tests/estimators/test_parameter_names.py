"""Names of parameters: XGBoost's other spellings, None, what has no effect, "did you mean"."""

import itertools
import pickle
import re

import numpy as np
import pytest
import xgboost
from lightgbm.basic import _ConfigAliases
from numpy.testing import assert_array_equal
from sklearn.base import clone

from sklboost import (
    XGBClassifierLite,
    XGBRegressorLite,
    XGBRFClassifierLite,
    XGBRFRegressorLite,
)
from sklboost.estimators.parameters.boosters import ClassifierParameters
from sklboost.estimators.parameters.names import (
    ALIASES,
    OTHER_NAMES,
    WITHOUT_EFFECT,
    UnknownParameterError,
    read_names,
)
from sklboost.estimators.parameters.rules import names_of
from tests.test_parameter_tables import COLUMNS, named, names_in, xgboost_names

TWINS = {
    XGBClassifierLite: xgboost.XGBClassifier,
    XGBRegressorLite: xgboost.XGBRegressor,
    XGBRFClassifierLite: xgboost.XGBRFClassifier,
    XGBRFRegressorLite: xgboost.XGBRFRegressor,
}
OURS = names_of(ClassifierParameters)
IDLE = {
    "tree_method": [None, "auto", "hist"],
    "device": [None, "cpu"],
    "verbosity": [None, 0, 1, 2, 3, -1],
    "use_label_encoder": [None, False, True],
    "validate_parameters": [None, False, True],
    "feature_types": [None],
    "predictor": [None, "auto", "cpu_predictor"],
    "gpu_id": [None, -1],
    "silent": [None, True, 1],
    "num_class": [None, 2],
    "process_type": [None, "default"],
    "updater": [None, "grow_quantile_histmaker"],
    "seed_per_iteration": [False, True],
    "max_cached_hist_node": [64],
}
WRONG = {
    "tree_method": ("exact", "trees are always grown from histograms"),
    "device": ("cuda", "there is only the CPU"),
    "process_type": ("update", "trees are always new ones"),
    "updater": ("prune", "trees are always grown from histograms"),
    "gpu_id": (0, "there is only the CPU"),
    "predictor": ("gpu_predictor", "there is only the CPU"),
    "feature_types": (["q", "x"], "name categories in 'categorical_features'"),
    "verbosity": ("loud", "'verbose'"),
    "num_class": ([2], "read from y"),
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, (X[:, 0] + rng.normal(size=60) > 0).astype(int)


# --- XGBoost's other spellings


@pytest.mark.parametrize(("name", "own"), ALIASES.items())
def test_other_spellings_are_read_and_two_of_one_parameter_refused(name, own):
    for model in (
        XGBClassifierLite(**{name: 0.25}),
        XGBClassifierLite().set_params(**{name: 0.25}),
    ):
        assert (
            model.get_params() == {**XGBClassifierLite().get_params(), own: 0.25} or own == "gamma"
        )
        assert getattr(model, own) == 0.25
        assert name not in model.get_params()
        assert getattr(clone(model), own) == 0.25
    both = {name: 1, own: 2}
    words = rf"{name}=1 and {own}=2: XGBClassifierLite has one parameter for both; give '{own}'"
    for kind in (TypeError, ValueError):
        with pytest.raises(kind, match=words):
            XGBClassifierLite(**both)
        with pytest.raises(kind, match=words):
            XGBClassifierLite().set_params(**both)
    # None is what XGBoost's get_params() has for all that is not set
    assert getattr(XGBClassifierLite(**{own: None, name: 1}), own) == 1
    assert getattr(XGBClassifierLite(**{name: 1, own: None}), own) == 1


def test_they_are_xgboost_s():
    assert set(ALIASES) - {"lambda_"} <= xgboost_names()
    # and all of them: two names of one setting, of which we have one
    config = xgboost.XGBRegressor(n_estimators=1).fit([[0.0], [1.0]], [0.0, 1.0])
    names = set(re.findall(r'"(\w+)"', config.get_booster().save_config()))
    assert {"eta", "lambda", "alpha", "min_split_loss", "seed", "nthread"} <= names & set(ALIASES)


@pytest.mark.parametrize(
    ("objective", "own"), [("quantile", "quantile_alpha"), ("huber", "huber_slope")]
)
def test_the_alpha_of_lightgbm_s_losses_is_no_penalty(objective, own):
    words = rf"^alpha=0.9 with objective='{objective}': LightGBM's alpha is '{own}' here, XGB"
    with pytest.raises(TypeError, match=words):
        XGBRegressorLite(objective=objective, alpha=0.9)
    for model, later in (({"objective": objective}, {}), ({}, {"objective": objective})):
        with pytest.raises(ValueError, match=words):
            XGBRegressorLite(**model).set_params(alpha=0.9, **later)
    assert XGBRegressorLite(objective=objective, reg_alpha=0.9).reg_alpha == 0.9
    assert XGBRegressorLite(objective=objective, alpha=None).reg_alpha is None
    assert XGBRegressorLite(objective="reg:quantileerror", alpha=0.9).reg_alpha == 0.9


# --- values without effect


@pytest.mark.parametrize(
    ("name", "estimator"), list(zip(IDLE, itertools.cycle(TWINS), strict=False))
)
def test_values_without_effect_are_accepted(name, estimator):
    for value in IDLE[name]:
        model = estimator(**{name: value})
        assert model.set_params(**{name: value}) is model
        assert repr(model) == repr(estimator())
        assert model.get_params() == pytest.approx(estimator().get_params(), nan_ok=True)


@pytest.mark.parametrize("name", WRONG)
def test_other_values_are_refused(name):
    value, remedy = WRONG[name]
    words = re.escape(f"{name}={value!r} is not supported by XGBRegressorLite: ")
    for kind in (TypeError, ValueError):
        with pytest.raises(kind, match=words + ".*" + remedy):
            XGBRegressorLite(**{name: value})
        with pytest.raises(kind, match=words):
            XGBRegressorLite().set_params(**{name: value})


def test_values_of_any_kind_are_refused():
    assert set(IDLE) == set(WITHOUT_EFFECT) - set(names_of(ClassifierParameters))
    for name in IDLE:
        with pytest.raises(UnknownParameterError, match=name):
            XGBRegressorLite(**{name: np.zeros(3)})


@pytest.mark.parametrize("name", ["scale_pos_weight", "class_weight", "calibrated_prior"])
def test_parameters_of_classifiers(name):
    assert repr(XGBRegressorLite(**{name: None})) == "XGBRegressorLite()"
    with pytest.raises(
        TypeError,
        match=f"{name}=3 is not supported by XGBRegressorLite: it is a parameter of classifiers",
    ):
        XGBRegressorLite(**{name: 3})


# --- None


@pytest.mark.parametrize(("ours", "theirs"), TWINS.items())
def test_the_parameters_of_an_xgboost_estimator(ours, theirs, data):
    given = theirs().get_params()
    model, plain = ours(**{**given, "random_state": 0}), ours(random_state=0)
    with_set_params = ours().set_params(**given).set_params(random_state=0)
    expected = plain.fit(*data).predict(data[0])
    for one in (model, with_set_params, clone(model), pickle.loads(pickle.dumps(model))):
        assert one.max_depth is None  # as it was given: scikit-learn's rule
        fitted = one.fit(*data)
        assert fitted.model_.nodes.tobytes() == plain.model_.nodes.tobytes()
        np.testing.assert_array_equal(fitted.predict(data[0]), expected)
        np.testing.assert_array_equal(fitted.feature_importances_, plain.feature_importances_)
        assert fitted.n_estimators_ == plain.n_estimators_


@pytest.mark.parametrize("estimator", [XGBClassifierLite, XGBRFRegressorLite])
def test_none_is_the_default_of_each_parameter_that_xgboost_has(estimator, data):
    expected = estimator(random_state=0).fit(*data)
    for name, value in TWINS[estimator]().get_params().items():
        if value is None or name == "missing":
            model = estimator(**{"random_state": 0, name: None}).fit(*data)
            if name != "random_state":
                assert model.model_.nodes.tobytes() == expected.model_.nodes.tobytes(), name
            model.predict(data[0]), model.feature_importances_, model.apply(data[0])


@pytest.mark.parametrize("name", ["pruning", "verbose", "validation_fraction", "path_smooth"])
def test_none_is_no_value_of_parameters_that_xgboost_has_not(name, data):
    with pytest.raises(ValueError, match=f"{name}=None: it must be"):
        XGBRegressorLite(**{name: None}).fit(*data)


# --- unknown names


def test_names_of_other_libraries_are_explained():
    for name, own in OTHER_NAMES.items():
        assert name not in OURS
        assert own in OURS
        words = rf"^XGBClassifierLite has no parameter '{name}'; did you mean '{own}'\? help"
        with pytest.raises(UnknownParameterError, match=words):
            XGBClassifierLite(**{name: 1})


@pytest.mark.parametrize("library", COLUMNS)
def test_all_names_of_the_documentation_s_table_are_known(library):
    column = 1 + COLUMNS.index(library)
    for cells in named():
        (own,) = names_in(cells[0])
        for name in names_in(cells[column]):
            understood = {**OTHER_NAMES, **ALIASES, **dict(zip(OURS, OURS, strict=True))}
            # one name of theirs may be several of ours, and what has no effect is in two tables
            assert name in understood or name in WITHOUT_EFFECT, (name, own)


def test_all_spellings_of_lightgbm_are_known():
    understood = {**OTHER_NAMES, **ALIASES, **dict(zip(OURS, OURS, strict=True))}
    for spellings in map(set, _ConfigAliases._get_all_param_aliases().values()):
        known = {understood[name] for name in spellings if name in understood}
        if known and not spellings & set(WITHOUT_EFFECT):
            assert len(known) == 1, (spellings, known)
            assert spellings <= set(understood), spellings - set(understood)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("num_leafs", "max_leaves"),
        ("early_stoping_rounds", "early_stopping_rounds"),
        ("n_job", "n_jobs"),
        ("verbosty", "verbosity"),
        ("lamda", "reg_lambda"),
    ],
)
def test_misspellings_of_any_name(name, meant):
    with pytest.raises(UnknownParameterError, match=rf"'{name}'; did you mean '{meant}'\?"):
        XGBClassifierLite(**{name: 1})


@pytest.mark.parametrize("name", ["foo", "x", "color", "temperature", "kwargs", "bias", "eval_at"])
def test_what_is_near_to_nothing_has_no_suggestion(name):
    words = rf"^XGBRegressorLite has no parameter '{name}'; help\(XGBRegressorLite\) lists its"
    with pytest.raises(UnknownParameterError, match=words) as caught:
        XGBRegressorLite(**{name: 1})
    assert len(str(caught.value)) < 120  # not all parameters


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("eval_X", "; did you mean 'X_val'?"),
        ("eval_sample_weight", "; did you mean 'sample_weight_eval_set'?"),
        ("max_iter", ": 'n_estimators' is a parameter of the estimator, XGBRegressorLite(n_est"),
        ("feature_weights", ": 'feature_weights' is a parameter of the estimator"),
    ],
)
def test_arguments_of_fit_in_other_libraries(name, remedy, data):
    with pytest.raises(TypeError, match=re.escape(f"argument {name!r}{remedy}")):
        XGBRegressorLite().fit(*data, **{name: 1})


def test_names_are_read_without_an_estimator():
    known = ["learning_rate", "other"]
    assert read_names({"eta": 1, "other__x": 2}, known, "A") == {"learning_rate": 1, "other__x": 2}
    with pytest.raises(UnknownParameterError, match="A has no parameter 'lambda'"):
        read_names({"lambda": 1}, known, "A")


def test_positional_arguments():
    with pytest.raises(TypeError, match=r"XGBClassifierLite takes no positional arguments: name"):
        XGBClassifierLite("binary:logistic")


def test_feature_types_of_an_array(data):
    X = np.column_stack([data[0], np.arange(60) % 4])
    given = XGBClassifierLite(feature_types=["q", "float", "i", "c"])
    assert given.categorical_features == [False, False, False, True]
    named = XGBClassifierLite(categorical_features=[3]).fit(X, data[1])
    assert_array_equal(given.fit(X, data[1]).predict_proba(X), named.predict_proba(X))
    with pytest.raises(ValueError, match=r"feature_types=.*has one parameter for both"):
        XGBClassifierLite(categorical_features=[3], feature_types=["q", "q", "q", "c"])
    with pytest.raises(ValueError, match="a mask of 1, but X has 3 features"):
        XGBClassifierLite(feature_types=["c"]).fit(*data)
