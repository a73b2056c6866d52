import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost import XGBRegressorLite
from sklboost.estimators.parameters.boosters import seeds

pytestmark = pytest.mark.interpreted


@pytest.fixture
def global_state():
    """Return back NumPy's global state as it was."""
    before = np.random.get_state()
    yield
    np.random.set_state(before)


def test_a_number_gives_the_same_seeds_each_time():
    assert seeds(3, True) == seeds(np.int64(3), True) != seeds(4, True)
    rounding, sampling = seeds(3, True)
    assert rounding != sampling
    assert seeds(3, False) == (rounding, 0)


@pytest.mark.parametrize("value", [-1, 2**32, 0.5, "seven"])
def test_anything_else_is_an_error(value):
    with pytest.raises(ValueError, match=rf"^random_state={value!r}: it must be None, an integer"):
        XGBRegressorLite(random_state=value).fit([[0.0], [1.0]], [0.0, 1.0])


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_an_instance_moves_no_further_than_needed(make):
    assert seeds(make(3), True) == seeds(make(3), True)
    assert all(type(seed) is int and 0 <= seed < 2**31 for seed in seeds(make(3), True))
    one, two, three = make(3), make(3), make(3)
    assert seeds(one, False)[0] == seeds(two, True)[0]
    assert seeds(one, False)[0] == seeds(three, True)[1]
    if make is np.random.RandomState:  # which begins as a number does
        assert seeds(make(3), True) == seeds(3, True)


def test_none_is_0_and_other_draws_are_asked_for(global_state):
    assert seeds(None, True)[1] == seeds(0, True)[1]  # and rounding is fixed
    np.random.seed(5)
    first, second = seeds(np.random, True), seeds(np.random, True)
    assert first != second
    np.random.seed(5)
    assert seeds(np.random, True) == first


@pytest.mark.parametrize("name", ["subsample", "colsample_bytree", "colsample_bynode"])
def test_of_a_fit(name, global_state):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 6)), random.normal(size=60)

    def predict(**settings):
        return XGBRegressorLite(n_estimators=3, max_depth=3, **settings).fit(X, y).predict(X)

    first = predict(**{name: 0.5})
    assert_array_equal(predict(**{name: 0.5}), first)
    assert_array_equal(predict(random_state=0, **{name: 0.5}), first)
    state = np.random.RandomState(0)
    first, second = (predict(random_state=state, **{name: 0.5}) for _ in range(2))
    assert np.any(first != second)
    generators = [np.random.default_rng(1) for _ in range(2)]
    one, two = (predict(random_state=generator, **{name: 0.5}) for generator in generators)
    assert_array_equal(one, two)


def test_early_stopping_ends_at_the_same_round_each_time():
    X, y = np.random.default_rng(0).normal(size=(2, 300, 1))
    fits = [XGBRegressorLite(early_stopping_rounds=3).fit(X, y[:, 0]) for _ in range(2)]
    assert fits[0].evals_result_ == fits[1].evals_result_
    other = XGBRegressorLite(early_stopping_rounds=3, random_state=1).fit(X, y[:, 0])
    assert other.evals_result_ != fits[0].evals_result_
