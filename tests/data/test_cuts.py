import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost.data import cuts as cuts_module
from sklboost.data import raw_values as row_arrays
from sklboost.data.cuts import find_cuts, sample_rows
from sklboost.engine.parallel import ThreadTeam
from tests.data.test_feature_cuts import NO_WEIGHT, FeatureCuts, assert_same_cuts, cut
from tests.data.test_shared_bins import table_of
from tests.test_hashing import plain_mix

nan = np.nan


# --- all features --------------------------------------------------------------------------------


def find(X, max_bin=256, weight=NO_WEIGHT, n_threads=1):
    with ThreadTeam(n_threads) as team:
        cuts, has_missing = find_cuts(team, X, weight, max_bin)
    assert_array_equal(has_missing, np.isnan(X).any(axis=0))
    return cuts


@pytest.mark.interpreted
@pytest.mark.parametrize("form", [np.asarray, table_of], ids=["array", "table"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_few_values_are_looked_at_in_blocks_of_all_rows(form, is_weighted, monkeypatch):
    random = np.random.default_rng(0)
    X = random.integers(-3, 3, (400, 3)).astype(np.float32)
    X[random.random(X.shape) < 0.1] = nan
    X[:, 2] = random.normal(size=400)
    X[399, 0], X[:, 1] = 99, nan
    weight = random.uniform(0.1, 3, 400) if is_weighted else NO_WEIGHT
    expected = find(X, 8, weight)
    # now the rows are a sample of all, which has few of them
    monkeypatch.setattr(cuts_module, "rows_to_look_at", lambda n: np.arange(0, n, 8))
    monkeypatch.setattr(row_arrays, "BLOCK_ROWS", 30)
    with ThreadTeam(2) as team:
        found, _ = find_cuts(team, form(X), weight, 8)
    for feature in (0, 1):
        assert_same_cuts(of_feature(found, feature), of_feature(expected, feature))


def of_feature(cuts, feature):
    within = slice(cuts.starts[feature], cuts.starts[feature + 1])
    values = slice(within.start + feature, within.stop + feature + 1)
    return FeatureCuts(cuts.cuts[within], cuts.lower[values], cuts.upper[values])


class RecordingTeam(ThreadTeam):
    """Keeps what it ran."""

    def __init__(self, n_threads):
        super().__init__(n_threads)
        self.ran = []

    def run(self, function, *arguments):
        self.ran.append(function)
        super().run(function, *arguments)


@pytest.mark.interpreted
@pytest.mark.parametrize("n_looked_at", [400, 100])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_all_features_are_cut_in_one_call(n_looked_at, is_weighted, monkeypatch):
    """Members that run Python would wait for one another; here they run two kernels, in all."""
    X = np.random.default_rng(0).normal(size=(400, 30))
    monkeypatch.setattr(cuts_module, "rows_to_look_at", lambda n: np.arange(n_looked_at))
    with RecordingTeam(2) as team:
        find_cuts(team, X, np.ones(400) if is_weighted else NO_WEIGHT, 20)
    assert team.ran == [cuts_module.look_at, cuts_module.cut_features]


# --- the sample ----------------------------------------------------------------------------------


def chosen(n_samples):
    rows = np.empty(cuts_module.SAMPLE_ROWS + 5000, dtype=np.int64)
    return rows[: sample_rows(n_samples, rows)]


@pytest.mark.parametrize("n_samples", [200_001, 1_000_000])
def test_sample_is_chosen_by_a_hash_of_the_row(n_samples):
    rows = chosen(n_samples)
    assert abs(len(rows) - 200_000) < 5 * 450
    assert (np.diff(rows) > 0).all()
    some = [*range(n_samples - 1000, n_samples), *range(0, n_samples - 1000, n_samples // 1000)]
    expected = [row for row in some if plain_mix(row) * n_samples < 200_000 * 2**32]
    assert sorted(expected) == np.intersect1d(rows, some).tolist()


def test_many_rows_are_cut_by_their_sample():
    random = np.random.default_rng(0)
    X = random.normal(size=(250_000, 2))
    X[:, 1] = np.round(X[:, 1])
    weight = random.uniform(0.5, 2, len(X))
    rows = chosen(len(X))
    found = find(X, 20, weight)
    by_feature = [cut(X[rows, feature], 20, weight[rows]) for feature in range(2)]
    assert_array_equal(found.cuts, np.concatenate([feature.cuts for feature in by_feature]))
    assert_array_equal(found.lower, np.concatenate([feature.lower for feature in by_feature]))
    assert_same_cuts(found, find(np.asfortranarray(X), 20, weight, n_threads=3))
    shares = np.diff(np.searchsorted(np.sort(X[:, 0]), found.cuts[: found.starts[1]]))
    assert_allclose(shares, 12_500, rtol=0.05)


def test_nothing_in_the_sample():
    X = np.full((250_000, 1), nan)
    outside = np.setdiff1d(np.arange(len(X)), chosen(len(X)))
    X[outside] = 4.0
    found = find(X)
    assert len(found.cuts) == 0
    assert len(found.lower) == 1
