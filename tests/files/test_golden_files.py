"""Files of earlier versions load for ever, and give the same bits."""

import json

import pytest
from numpy.testing import assert_allclose

from sklboost import load_model
from tests.files.golden_models import ALL, file_name, results_of
from tests.files.make_golden_files import EXPECTED, GOLDEN, formats_of

# Whose last bit depends on the processor: NumPy has several exponential functions.
WITH_EXPONENTIALS = {"intercept", "hazards"}
FILES = [(name, file_name(name, raw_format)) for name in ALL for raw_format in formats_of(name)]


def test_all_are_there_and_no_others():
    names = {path.name for path in GOLDEN.iterdir()}
    assert names == {path for _, path in FILES} | {EXPECTED.name}


@pytest.mark.parametrize(("name", "path"), FILES, ids=lambda value: value)
def test_a_golden_file_predicts_what_it_did(name, path):
    expected = json.loads(EXPECTED.read_text())[name]
    results = results_of(load_model(GOLDEN / path), name)
    for what in WITH_EXPONENTIALS & set(expected):
        both = [[float.fromhex(value) for value in of.pop(what)] for of in (results, expected)]
        assert_allclose(*both, rtol=1e-14)
    assert results == expected
