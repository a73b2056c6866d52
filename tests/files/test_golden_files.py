"""Files of earlier versions load for ever, and give the same bits."""

import json

import pytest

from sklboost import load_model
from tests.files.golden_models import ALL, file_name, results_of
from tests.files.make_golden_files import EXPECTED, GOLDEN, formats_of, main

FILES = [(name, file_name(name, raw_format)) for name in ALL for raw_format in formats_of(name)]


def test_all_are_there_and_no_others():
    names = {path.name for path in GOLDEN.iterdir()}
    assert names == {path for _, path in FILES} | {EXPECTED.name}


@pytest.mark.parametrize(("name", "path"), FILES, ids=lambda value: value)
def test_a_golden_file_predicts_what_it_did(name, path):
    expected = json.loads(EXPECTED.read_text())[name]
    assert results_of(load_model(GOLDEN / path), name) == expected


def test_files_that_are_there_stay():
    before = {path: path.stat().st_mtime_ns for path in GOLDEN.iterdir() if path != EXPECTED}
    text = EXPECTED.read_text()
    main()
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert EXPECTED.read_text() == text
