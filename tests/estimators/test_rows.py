"""Rows of a fit: chosen, joined, repeated, held out."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from sklboost import Loss, XGBClassifierLite, XGBRegressorLite, bin_features
from sklboost.estimators.input import rows as reading_rows
from sklboost.estimators.input.rows import Rows
from sklboost.objectives.losses.cox import Cox
from sklboost.objectives.losses.ranking import LambdaRank, RankingSettings

X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
Y = np.array([0.0, 1.0, 2.0, 3.0])
NONE = np.empty(0)
NO_MARGIN = np.empty((0, 1))


def rows(weight=NONE, margin=NO_MARGIN, X=X):
    return Rows(X, Y, np.asarray(weight), margin)


def test_whole_weights_are_rows_so_often():
    margin = 10.0 * Y[:, np.newaxis]
    repeated = rows([1.0, 3.0, 1.0, 2.0], margin).repeat(Loss())
    assert_array_equal(repeated.y, [0, 1, 1, 1, 2, 3, 3])
    assert_array_equal(repeated.X[:, 0], [1, 3, 3, 3, 5, 7, 7])
    assert_array_equal(repeated.margin[:, 0], 10 * repeated.y)
    assert len(repeated.weight) == 0
    B = bin_features(X)
    assert_array_equal(rows([1, 1, 2, 1], X=B).repeat(Loss()).X.bins, B.bins[[0, 1, 2, 2, 3]])
    assert (
        len(rows([4093.0, 1.0, 1.0, 1.0]).repeat(Loss()).y) == 4096
    )  # no sum beyond it is repeated


@pytest.mark.parametrize("weight", [NONE, [1.0, 1.5, 1.0, 2.0], [4094.0, 1.0, 1.0, 1.0]])
def test_other_weights_are_left_alone(weight):
    given = rows(weight)
    assert given.repeat(Loss()) is given
    # of which a row of weight 2 is not the row twice
    for loss in (Cox("efron"), LambdaRank(RankingSettings())):
        whole = rows([1.0, 3.0, 1.0, 2.0])
        assert whole.repeat(loss) is whole


def test_chosen_rows():
    chosen = rows([1.0, 2.0, 3.0, 4.0], Y[:, np.newaxis]).take(np.array([True, False, False, True]))
    assert_array_equal(chosen.X, X[[0, 3]])
    assert_array_equal(chosen.weight, [1, 4])
    assert_array_equal(chosen.margin[:, 0], [0, 3])
    assert_array_equal(chosen.numbers, [0, 3])
    assert len(chosen.groups) == 0
    given = rows([1.0, 2.0, 1.0, 1.0])._replace(groups=np.array(["a", "b", "b", "c"]))
    assert given.take(np.array([True, False, True, False])).groups.tolist() == ["a", "b"]
    assert given.repeat(Loss()).groups.tolist() == ["a", "b", "b", "b", "c"]
    everything = rows()
    assert everything.take(np.ones(4, dtype=bool)) is everything


@pytest.mark.parametrize("kind", [np.asarray, bin_features, lambda X: X.tolist()])
def test_more_rows_than_gradients_can_be_summed_up_of(monkeypatch, kind):
    monkeypatch.setattr(reading_rows, "_MOST_ROWS", 3)
    with pytest.raises(ValueError, match="X has 4 rows: at most 3 are supported"):
        XGBRegressorLite().fit(kind(X), Y)


def test_joined_rows():
    both = rows().join(rows([1.0, 2.0, 3.0, 4.0]))
    assert_array_equal(both.X, np.concatenate([X, X]))
    assert_array_equal(both.y, [*Y, *Y])
    assert_array_equal(both.weight, [1, 1, 1, 1, 1, 2, 3, 4])
    assert len(rows().join(rows()).weight) == 0
    B = bin_features(X)
    assert_array_equal(rows(X=B).join(rows(X=B)).X.bins, B.bins[[0, 1, 2, 3] * 2])
    with pytest.raises(ValueError, match="both as raw values, or both as rows of one"):
        rows(X=B).join(rows())


def test_numbers_are_those_of_the_user():
    given = rows()
    assert given.words_for(2) == "row 2 of X"
    chosen = given.take(np.array([False, True, False, True]))
    assert chosen.words_for(1) == "row 3 of X"
    both = chosen.join(given)
    assert [both.words_for(row) for row in (0, 2)] == ["row 1 of X", "row 0 of the validation data"]
    assert_array_equal(rows([1.0, 3.0, 1.0, 1.0]).repeat(Loss()).numbers, [0, 1, 1, 1, 2, 3])


@pytest.mark.parametrize(
    ("settings", "groups"), [(dict(validation_split="time"), None), ({}, ["a"] * 4 + ["b"] * 4)]
)
def test_a_class_that_the_training_would_not_see(settings, groups):
    X, y = np.arange(8.0)[:, np.newaxis], ["no"] * 4 + ["yes"] * 4
    model = XGBClassifierLite(
        early_stopping_rounds=1, validation_fraction=0.5, random_state=0, **settings
    )
    with pytest.raises(ValueError, match=r"no row of class '(no|yes)' is left.*pass X_val"):
        model.fit(X, y, groups=groups)


@pytest.mark.parametrize("factor", [0.1, 0.3, 0.7, 1.1, 1 / 3, 2 + 1e-9])
def test_a_factor_of_all_weights_changes_neither_covers_nor_medians(factor):
    X, y = np.arange(10.0)[:, np.newaxis], np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 90.0])
    weight = np.full(10, factor)
    # a leaf of one row, and then leaves of two, have just the cover that is asked for
    for n_rows, thresholds in ((1, {8.5}), (2, {7.5})):
        model = XGBRegressorLite(n_estimators=1, max_depth=1, reg_lambda=factor)
        model.set_params(min_child_weight=n_rows * factor).fit(X, y, sample_weight=weight)
        assert set(model.trees_to_dataframe()["Split"].dropna()) == thresholds
    for objective in ("reg:absoluteerror", "reg:quantileerror"):
        model = XGBRegressorLite(n_estimators=2, objective=objective, min_child_weight=factor)
        model.set_params(max_depth=1, learning_rate=1.0, reg_lambda=factor)
        expected = clone(model).set_params(min_child_weight=1, reg_lambda=1).fit(X, y).predict(X)
        assert_array_equal(model.fit(X, y, sample_weight=weight).predict(X), expected)
        constant = clone(model).fit(0 * X, y, sample_weight=weight)
        assert_array_equal(constant.predict(X), np.full(10, 4.5))
