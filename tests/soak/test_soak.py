"""Some of the cases of ``make soak``, always the same ones."""

import pytest

from tests.soak.__main__ import outcomes, tiny_outcomes
from tests.soak.cases import ESTIMATORS, NOT_DRAWN, PARAMETERS


def test_all_parameters_are_drawn():
    names = {name for estimator in ESTIMATORS for name in estimator().get_params()}
    assert names == {*PARAMETERS, *NOT_DRAWN}


@pytest.mark.parametrize(
    ("kind", "n_cases"),
    [
        ("one", 8),
        ("together", 1),
        ("presets", 1),
        pytest.param("one", 150, marks=pytest.mark.slow),
        pytest.param("together", 2, marks=pytest.mark.slow),
        pytest.param("presets", 24, marks=pytest.mark.slow),
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
