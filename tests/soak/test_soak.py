"""Some of the cases of ``make soak``, always the same ones."""

import numpy as np
import pytest

from sklboost import XGBRegressorLite
from tests.soak.__main__ import outcomes, tiny_outcomes
from tests.soak.cases import ESTIMATORS, NOT_DRAWN, PARAMETERS, draw_case
from tests.soak.promises import FOREIGN_WORDS, check


def test_all_parameters_are_drawn():
    names = {name for estimator in ESTIMATORS for name in estimator().get_params()}
    assert names == {*PARAMETERS, *NOT_DRAWN}


@pytest.mark.parametrize(
    ("kind", "n_cases"),
    [
        ("one", 20),
        ("together", 2),
        pytest.param("one", 150, marks=pytest.mark.slow),
        pytest.param("together", 3, marks=pytest.mark.slow),
    ],
)
def test_promises_are_kept(kind, n_cases):
    told = dict(outcomes(0, range(n_cases), kind))
    assert set(told) == set(range(n_cases))
    assert [(number, words) for number, words in told.items() if "FAILED" in words] == []
    assert sum("fitted" in words for words in told.values()) > n_cases / 2


@pytest.mark.parametrize("n_cases", [9, pytest.param(30, marks=pytest.mark.slow)])
def test_interpreted_kernels_give_the_bits_of_compiled_ones(n_cases):
    told = dict(tiny_outcomes(0, range(n_cases)))
    assert [(number, words) for number, words in told.items() if "FAILED" in words] == []
    assert sum("fitted" in words for words in told.values()) > n_cases / 3


def test_a_case_is_the_same_again():
    assert str(draw_case(3, 4)) == str(draw_case(3, 4)) != str(draw_case(3, 5))


class Broken(XGBRegressorLite):
    """A regressor with a fault in its predictions: one is NaN, or not what the stages end in."""

    def predict(self, X, **arguments):
        prediction = super().predict(X, **arguments)
        prediction[1:2] += np.nan if self.importance_type == "weight" else 1e-9
        return prediction


@pytest.mark.parametrize(
    ("importance_type", "words"), [("weight", "not finite"), ("gain", "stages_end")]
)
def test_a_broken_promise_is_noticed(importance_type, words):
    X = np.arange(20.0).reshape(-1, 1)
    case = draw_case(0, 0)._replace(
        estimator=Broken,
        parameters=dict(n_estimators=2, importance_type=importance_type),
        X=X,
        y=X[:, 0],
        arguments={},
    )
    with pytest.raises(AssertionError, match=words):
        check(case, 1)
    assert check(case._replace(estimator=XGBRegressorLite), 1).startswith("fitted")


@pytest.mark.parametrize(
    "words",
    [
        "operands could not be broadcast together with shapes (2,) (3,)",
        "index 3 is out of bounds for axis 0 with size 3",
    ],
)
def test_words_of_other_libraries_are_noticed(words):
    assert FOREIGN_WORDS.search(words)
