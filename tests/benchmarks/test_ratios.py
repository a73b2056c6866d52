"""Ratios of held-out losses: over shared splits, with the error of the paired ratios."""

import math

import pytest

from benchmarks.ratios import as_text, mean_of, paired_ratio


def test_mean_over_the_splits():
    assert mean_of({0: 1.0, 3: 2.0}) == 1.5


def test_only_shared_splits_count():
    ratio, error = paired_ratio({0: 1.0, 1: 3.0, 2: 50.0}, {0: 1.0, 1: 2.0, 5: 70.0})
    assert ratio == pytest.approx(4.0 / 3.0)
    assert error == pytest.approx(0.25)  # ratios 1 and 1.5: deviation 0.5 / sqrt(2), over sqrt(2)


def test_what_cannot_be_known_is_left_empty():
    assert as_text(*paired_ratio({0: 1.0}, {0: 2.0})) == ["0.5000", ""]
    assert all(map(math.isnan, paired_ratio({0: 1.0}, {1: 2.0})))
