import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.displays import SplitValuesDisplay
from sklboost.estimators.input.feature_names import by_feature

random = np.random.default_rng(0)
X = random.normal(size=(120, 3))
Y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + random.normal(size=120)
FRAME = pd.DataFrame(X, columns=["age", "debt", "income"])


def fit(data=FRAME, **parameters):
    common = dict(n_estimators=3, n_jobs=1, random_state=0)
    return XGBRegressorLite(**{**common, **parameters}).fit(data, Y)


def assert_same_model(one, other):
    for name in one.model_.nodes.dtype.names:
        assert_array_equal(one.model_.nodes[name], other.model_.nodes[name])


@pytest.mark.parametrize(
    "constraints",
    [
        {"age": 1, "income": -1},
        {0: 1, 2: -1},
        {"age": 1, 2: -1, "debt": 0},
        (1, 0, -1),
        np.array([1, 0, -1], dtype=np.int8),
        [1.0, 0.0, -1.0],
        *("(1,0,-1)", "[1, 0, -1]", " ( 1, 0, -1 ) ", "{'age': 1, 2: -1}"),  # as in XGBoost
    ],
    ids=repr,
)
def test_ways_to_write_monotone_constraints(constraints):
    model = fit(monotone_constraints=constraints)
    assert model.monotone_constraints is constraints  # as it was given: scikit-learn's rule
    assert_same_model(model, fit(monotone_constraints=[1, 0, -1]))
    assert_same_model(clone(model).fit(FRAME, Y), model)
    assert model.verify_monotone().holds
    assert model.verify_monotone(constraints).holds
    assert not fit().verify_monotone(constraints).holds


def test_unnamed_features_have_xgboosts_names():
    assert_same_model(fit(X, monotone_constraints={"f1": 1}), fit(monotone_constraints=[0, 1, 0]))


@pytest.mark.parametrize(
    "groups",
    [
        *([["age", "debt"], ["income"]], [(0, 1)], ({1, 0}, {2}), [["debt", 0]]),
        *("[[0, 1], [2]]", "[['age', 'debt'], ['income']]", "((0,1),(2,))"),  # as in XGBoost
    ],
    ids=repr,
)
def test_ways_to_write_interaction_constraints(groups):
    model = fit(interaction_constraints=groups)
    assert_same_model(model, fit(interaction_constraints=[[0, 1]]))
    one, other = fit(interaction_constraints="no_interactions"), fit(interaction_constraints=[])
    assert_same_model(one, other)


@pytest.mark.parametrize("weights", [{"debt": 9.0}, [1, 9, 1], np.array([1.0, 9.0, 1.0])], ids=repr)
def test_ways_to_write_feature_weights(weights):
    drawn = dict(colsample_bynode=0.4)
    assert_same_model(fit(feature_weights=weights, **drawn), fit(feature_weights={1: 9}, **drawn))


def test_a_single_feature_and_none():
    one = XGBRegressorLite(monotone_constraints="(1)").fit(X[:, :1], Y)
    assert_same_model(one, XGBRegressorLite(monotone_constraints=[1]).fit(X[:, :1], Y))
    for nothing in ("()", ""):
        both = dict(monotone_constraints=nothing, interaction_constraints=nothing)
        assert_same_model(fit(**both), fit())


@pytest.mark.parametrize(
    "drawn",
    [
        dict(colsample_bytree=0.4),
        dict(colsample_bytree=0.99),  # more than there are of positive weight
        dict(colsample_bylevel=0.7),
        dict(colsample_bynode=0.9),
        dict(colsample_bytree=0.7, colsample_bynode=0.5),
        dict(colsample_bynode=0.9, interaction_constraints=[[0], [1, 2]]),
        dict(colsample_bynode=0.9, multi_strategy="multi_output_tree"),
    ],
    ids=repr,
)
def test_features_of_weight_0_are_never_drawn(drawn):
    settings = dict(n_estimators=30, **drawn)
    scores = fit(feature_weights=[0, 1, 2], **settings).get_score()
    assert "age" not in scores
    assert scores
    assert set(fit(feature_weights={"age": 0, "debt": 0.0}, **settings).get_score()) == {"income"}
    assert "age" in fit(feature_weights=[1, 1, 2], **settings).get_score()


def test_they_may_be_split_on_where_nothing_is_drawn():
    assert_same_model(fit(feature_weights=[0, 1, 2]), fit())


def test_what_lays_down_nothing_changes_nothing():
    free = fit(colsample_bynode=0.7)
    for nothing in (
        dict(monotone_constraints={}),
        dict(monotone_constraints=[0, 0, 0]),
        dict(interaction_constraints=[[0, 1, 2]]),
        dict(feature_weights=[2.5, 2.5, 2.5]),
        dict(feature_weights={}),
    ):
        assert_same_model(fit(colsample_bynode=0.7, **nothing), free)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            dict(monotone_constraints={"agee": 1}),
            "'agee', but X has no such feature; did you mean 'age'?",
        ),
        (dict(monotone_constraints={3: 1}), "feature 3, but X has the features 0 to 2"),
        (dict(monotone_constraints={-1: 1}), "feature -1, but X has the features 0 to 2"),
        (dict(monotone_constraints={0.5: 1}), "0.5: it must be the name or number of a feature"),
        (dict(monotone_constraints={True: 1}), "True: it must be the name or number"),
        (dict(monotone_constraints={"age": 1, 0: -1}), "feature 0 twice, as 'age' and as 0"),
        (dict(monotone_constraints=[1, 0]), "monotone_constraints has 2 values, but X has 3 feat"),
        (dict(monotone_constraints={"age": 2}), "monotone_constraints={'age': 2}: it must be"),
        (dict(monotone_constraints=[1, 0, 0.5]), "it must be None, a dict of names or numbers"),
        (dict(monotone_constraints=[True, 0, 0]), "it must be"),
        (dict(monotone_constraints="(1,0"), "monotone_constraints='(1,0': it must be"),
        (dict(monotone_constraints="(1,0,2)"), "monotone_constraints=(1, 0, 2): it must be"),
        (dict(monotone_constraints="exit()"), "monotone_constraints='exit()': it must be"),
        (dict(monotone_constraints=1), "it must be"),
        (
            dict(interaction_constraints=[["age", "dept"]]),
            "'dept', but X has no such feature; did you mean 'de",
        ),
        (dict(interaction_constraints=[[0, 7]]), "feature 7, but X has the features 0 to 2"),
        (dict(interaction_constraints=["age", "debt"]), "it must be None, 'pairwise', 'no_inter"),
        (dict(interaction_constraints="pairs"), "interaction_constraints='pairs': it must be"),
        (dict(interaction_constraints=[0, 1]), "it must be"),
        (dict(interaction_constraints="[0, 1]"), "interaction_constraints=[0, 1]: it must be"),
        (dict(feature_weights=[1, 2]), "feature_weights has 2 values, but X has 3 features"),
        (dict(feature_weights=[1, 2, -1]), "feature_weights=[1, 2, -1]: it must be"),
        (dict(feature_weights=[0, 0, 0.0]), "feature_weights=[0, 0, 0.0] is 0 for every feature"),
        (dict(feature_weights={"age": np.inf}), "it must be"),
    ],
    ids=repr,
)
def test_errors(parameters, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        fit(**parameters)


def test_a_name_that_several_features_have():
    # some versions of scikit-learn refuse such frames, others do not
    names = ["a", "a", "b"]
    with pytest.raises(ValueError, match="'a', which several features are called: use numbers"):
        by_feature("monotone_constraints", {"a": 1}, names, 0)
    assert by_feature("monotone_constraints", {0: 1, "b": -1}, names, 0) == [1, 0, -1]


# --- columns that are named by something else than text


@pytest.mark.parametrize(
    "names",
    [
        *([1, 2, 3], [2, 0, 1], [2019, 2020, 2021], [1.0, 2.0, 3.0]),
        pd.to_datetime(["2019", "2020", "2021"]),
        pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "x")]),
    ],
    ids=repr,
)
def test_names_that_are_not_text_are_names_everywhere(names):
    frame, plain = pd.DataFrame(X, columns=names), pd.DataFrame(X, columns=["f0", "f1", "f2"])
    names = frame.columns.tolist()
    texts = [" ".join(name) if isinstance(name, tuple) else str(name) for name in names]
    drawn = dict(colsample_bynode=0.4)
    for place, name in enumerate(names):
        by_name = {name: -1}
        model = fit(frame, monotone_constraints=by_name)
        assert_same_model(model, fit(plain, monotone_constraints={f"f{place}": -1}))
        assert list(model.verify_monotone(by_name).features) == [texts[place]]
        for parameters, same in [
            ({"interaction_constraints": [[name]]}, {"interaction_constraints": [[place]]}),
            ({"feature_weights": {name: 9.0}} | drawn, {"feature_weights": {place: 9.0}} | drawn),
            ({"categorical_features": [name]}, {"categorical_features": [place]}),
        ]:
            assert_same_model(fit(frame.round(), **parameters), fit(plain.round(), **same))
        assert list(fit(frame.round(), categorical_features=[name]).categories_) == [name]
        assert SplitValuesDisplay.from_estimator(model, name).feature_name == texts[place]
    assert list(model.get_score()) == texts
    assert set(model.trees_to_dataframe()["Feature"]) == {*texts, "Leaf"}
    assert model.shap_explanation(frame[:1]).feature_names == texts
    assert model.explain_split(0).title.split("split at ")[1].startswith(tuple(texts))
    # which are keys as well
    again = fit(frame, monotone_constraints={texts[2]: -1})
    assert_same_model(again, fit(plain, monotone_constraints=[0, 0, -1]))


def test_a_number_is_no_position_where_numbers_are_names():
    years = pd.DataFrame(X, columns=[2019, 2020, 2021])
    message = (
        r"^monotone_constraints has 1, but X has no such feature: it has 2019, 2020, 2021; where "
        "columns are named by numbers, a number is a name and no position$"
    )
    with pytest.raises(ValueError, match=message):
        fit(years, monotone_constraints={1: 1})
    with pytest.raises(ValueError, match="has True: it must be the name or number"):
        fit(years.set_axis([1, 2, 3], axis=1), monotone_constraints={True: 1})
    # 0, 1, 2 are what columns without names are called; other names have positions, too
    counted = fit(years.set_axis([0, 1, 2], axis=1), monotone_constraints={1: 1})
    for names in (["1", "2", "3"], pd.MultiIndex.from_tuples([(1, 1), (2, 0), (0, 0)])):
        assert_same_model(fit(years.set_axis(names, axis=1), monotone_constraints={1: 1}), counted)


# --- verify_monotone -----------------------------------------------------------------------------


@pytest.mark.parametrize("constraints", [None, {}, [0, 0, 0], {"age": 0}])
def test_nothing_to_prove(constraints):
    with pytest.raises(ValueError, match="no feature is constrained"):
        fit().verify_monotone(constraints)


def test_what_cannot_be_proved():
    with pytest.raises(ValueError, match="'agee'"):
        fit().verify_monotone({"agee": 1})
    with pytest.raises(ValueError, match="it must be"):
        fit().verify_monotone({"age": 3})
    with pytest.raises(NotFittedError):
        XGBClassifierLite().verify_monotone({0: 1})


def test_a_continued_model_is_not_constrained_backwards():
    first = fit()
    again = XGBRegressorLite(n_estimators=2, monotone_constraints=[1, 0, 0])
    proof = again.fit(FRAME, Y, init_model=first).verify_monotone().features["age"]
    assert proof.n_trees == 5
    assert {own.tree for own in proof.violations} == {0, 1, 2}
