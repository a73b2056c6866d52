"""Fits of all kinds on all forms of data run: with a wheel they find the code of each kernel."""

import pytest

from tests.fits import kinds_of_fits

TITLES = ["float64", "other forms", "bins", "other bins", "float32", "the rest"]


@pytest.mark.parametrize("title", TITLES)
def test_they_run(title, tmp_path):
    dict(kinds_of_fits(tmp_path))[title]()
