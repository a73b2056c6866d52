"""Subclasses of users: other constructors, with fewer parameters or with those of the base."""

import inspect
import pickle
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import estimator_checks_generator

from sklboost import XGBClassifierLite, XGBRegressorLite, XGBRFClassifierLite

N_PARAMETERS = len(XGBClassifierLite().get_params())


class Few(XGBClassifierLite):
    """Has two parameters of its own, and sets one for good."""

    def __init__(self, max_depth=2, leaves=4):
        super().__init__(max_depth=max_depth, max_leaves=leaves, n_estimators=4)
        self.leaves = leaves


class Attributes(XGBRegressorLite):
    """Sets what it has, and leaves all else as the class has it."""

    def __init__(self, n_estimators=4):
        self.n_estimators = n_estimators


class Passing(XGBClassifierLite):
    def __init__(self, special=1, **kwargs):
        super().__init__(**kwargs)
        self.special = special


class PassingOn(Passing):
    def __init__(self, *args, other=2, max_depth=3, **kwargs):
        super().__init__(*args, max_depth=max_depth, **kwargs)
        self.other = other


class Mixin:
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)


class Mixed(Mixin, XGBRFClassifierLite):
    pass


class Fitting(XGBClassifierLite):
    """Takes arguments of fit by name only."""

    def fit(self, X, y, **named):
        return super().fit(X, y, **named)


@dataclass(kw_only=True, eq=False, repr=False)
class Generated(XGBRegressorLite):
    """Has a constructor that is made of fields, one of its own and one with another default."""

    label: str | None = None
    n_estimators: int = 4


CLASSES = [Few, Attributes, Generated, PassingOn, Mixed, Fitting]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    return X, (X[:, 0] + 0.3 * rng.normal(size=80) > 0).astype(int)


@pytest.mark.parametrize("kind", CLASSES)
def test_every_method_works(kind, data, tmp_path):
    X, y = data
    model = kind().fit(X, y, X_val=X, y_val=y)
    called = {"fit"}
    arguments = {
        "validation_importances": ((X, y), {"X_val": X, "y_val": y, "n_repeats": 1}),
        "cost_complexity_pruning_path": ((X, y), {}),
        "explain_prediction": ((X[0],), {}),
        "explain_split": ((0, 0), {}),
        "verify_monotone": (({0: 1},), {}),
        "to_html": ((tmp_path / "model.html", X, y), {}),
        "save_model": ((tmp_path / "model.json",), {}),
        "score": ((X, y), {}),
        "set_params": ((), {}),
    }
    public = [name for name in dir(model) if not name.startswith("_")]
    for name in public:
        method = getattr(model, name, None)  # some are there after early stopping only
        if not inspect.ismethod(method) or "_request" in name or "callback" in name:
            continue
        if name == "shap_explanation" and find_spec("shap") is None:  # it requires numba
            continue
        given, named = arguments.get(name, (None, {}))
        if given is None:
            wants = list(inspect.signature(method).parameters)[:1]
            given = (X,) if wants in (["X"], ["X_background"]) else ()
        if name != "fit":
            result = method(*given, **named)
            if inspect.isgenerator(result):
                list(result)
            called.add(name)
    assert {"predict", "apply", "shap_values", "to_html", "get_score", *arguments} <= called
    model.feature_importances_, model._repr_html_()
    assert (tmp_path / "model.html").exists()
    again = clone(model).fit(X, y)
    assert_array_equal(again.predict(X), model.predict(X)) if kind is not Mixed else None
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    warm = kind().set_params().fit(X, y, init_model=model) if kind is not Mixed else model
    assert warm.model_.n_rounds >= model.model_.n_rounds


def test_fewer_parameters(data):
    model = Few(leaves=3)
    assert model.get_params() == {"max_depth": 2, "leaves": 3}
    assert repr(model) == "Few(leaves=3)"
    assert clone(model).fit(*data).n_estimators_ == 4
    model.set_params(max_depth=1)
    assert model.fit(*data).trees_to_dataframe().groupby("Tree").size().max() == 3
    with pytest.raises(ValueError, match="Few has no parameter 'eta'"):
        model.set_params(eta=0.1)
    with pytest.raises(TypeError, match="maxdepth"):
        Few(maxdepth=1)
    # what is set on the attributes counts, whether the constructor knows it or not
    X = pd.DataFrame(data[0], columns=list("abcd"))
    model.monotone_constraints, model.random_state = {"a": 1}, 0
    found = model.validation_importances(X, data[1], X_val=X, y_val=data[1], n_repeats=1)
    assert found.feature_names == list("abcd")


def test_parameters_of_the_base_through_kwargs(data):
    model = Passing(special=5, eta=0.5, n_estimators=3, tree_method="hist")
    given = model.get_params()
    assert len(given) == N_PARAMETERS + 1
    assert (given["special"], given["learning_rate"], given["n_estimators"]) == (5, 0.5, 3)
    assert repr(model) == "Passing(learning_rate=0.5, n_estimators=3, special=5)"
    assert list(inspect.signature(Passing).parameters)[:2] == ["special", "preset"]
    assert repr(clone(model)) == repr(model)
    search = GridSearchCV(model, {"special": [7], "max_depth": [1, 2], "eta": [0.2]}, cv=2)
    best = search.fit(*data).best_estimator_
    assert (best.special, best.learning_rate, best.n_estimators) == (7, 0.2, 3)
    for wrong in ({"max_dpth": 3}, {"eta": 0.1, "learning_rate": 0.1}):
        with pytest.raises(ValueError, match="Passing has"):
            Passing(**wrong)
        with pytest.raises(TypeError, match="Passing has"):
            model.set_params(**wrong)


def test_kwargs_through_two_classes(data):
    model = PassingOn(other=3, special=4, subsample=0.5, random_state=0)
    given = model.get_params()
    assert len(given) == N_PARAMETERS + 2
    assert [given[name] for name in ("other", "special", "max_depth")] == [3, 4, 3]
    assert repr(model) == "PassingOn(other=3, random_state=0, special=4, subsample=0.5)"
    assert repr(clone(model)) == repr(model)
    assert model.fit(*data).set_params(max_depth=1).fit(*data).max_depth == 1


def test_parameters_of_a_mixin_and_of_a_dataclass():
    assert Mixed(max_depth=2).get_params()["max_depth"] == 2
    assert Mixed().get_params()["subsample"] == 0.8  # the forest's
    assert Generated(label="mine").get_params()["label"] == "mine"
    assert clone(Generated(label="mine").set_params(label=None)).label is None


def test_a_parameter_that_a_subclass_gives_twice():
    class Twice(XGBClassifierLite):
        def __init__(self, **kwargs):
            super().__init__(max_depth=1, **kwargs)

    with pytest.raises(
        TypeError, match=r"XGBClassifierLite.__init__\(\) got multiple .*'max_depth'"
    ):
        Twice(max_depth=2)


@pytest.mark.filterwarnings("ignore:.* is what the model already has")  # warm_start
def test_scikit_learn_s_checks():
    nones = dict.fromkeys(("gamma", "missing"))
    for estimator, check in estimator_checks_generator(
        Passing(n_estimators=4, max_depth=3, warm_start=True, **nones)
    ):
        check(estimator)
