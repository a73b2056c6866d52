"""Features of a fit in Dask collections: the cuts and bins of the same rows in one place."""

import contextvars
import time

import dask
import dask.array as da
import distributed
import numpy as np
import pytest
from distributed.client import FuturesCancelledError
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from sklboost.data.features import value_array
from sklboost.data.row_hashes import hash_rows
from sklboost.distributed.features import Segment, assign_blocks
from sklboost.distributed.worker_group import LostSchedulerError
from tests.distributed.conftest import workers_here
from tests.distributed.fit_reading import assert_same, cluster_bins, local_bins, read

N_ROWS = 20_000


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 4))
    X[:, 1] = rng.integers(5, size=N_ROWS)
    X[rng.random(N_ROWS) < 0.1, 2] = np.nan
    X[:, 3] = -0.0
    return X


LENGTHS = {
    "one": [N_ROWS],
    "uneven": [1, 0, 4095, 4097, 3, 11_804],
    "many": [500] * 40,
}


@pytest.mark.parametrize(
    ("lengths", "dtype"),
    [("one", np.float32), ("uneven", np.float32), ("uneven", np.float64), ("many", np.float64)],
)
def test_same_bins_as_in_one_place(cluster, table, lengths, dtype):
    X = table.astype(dtype)
    rows, fitted = read(da.from_array(X, chunks=(tuple(LENGTHS[lengths]), 4)))
    local, fitted_here = read(X)
    assert repr(fitted) == repr(fitted_here)
    X_there, _ = assert_same(cluster, rows, local)
    assert_array_equal(X_there.found[2], [False, False, False, True])


def test_same_cuts_of_a_sample_of_many_weighted_rows(cluster):
    rng = np.random.default_rng(1)
    n_rows = 230_000
    X = rng.normal(size=(n_rows, 4)).astype(np.float32)
    X[:, 1] = (rng.random(n_rows) < 1e-5) + rng.integers(3, size=n_rows)  # a value in a few rows
    X[:, 2] = np.where(rng.random(n_rows) < 1e-5, np.nan, 7.0)
    X[:, 3] = np.nan
    weight = rng.random(n_rows) * (rng.random(n_rows) < 0.95)
    collection = da.from_array(X, chunks=((100_000, 0, 80_000, 50_000), 4))
    rows, _ = read(collection, sample_weight=da.from_array(weight, chunks=70_000))
    local, _ = read(X, sample_weight=weight)
    assert_array_equal(rows.weight, local.weight)
    assert_array_equal(rows.numbers, local.numbers)
    X_there, _ = assert_same(cluster, rows, local)
    assert len(X_there.found[0].starts) == 5
    assert 200_000 < len(rows.y) < n_rows
    assert_array_equal(X_there.found[2], [False, False, False, True])


def test_arrays_in_chunks_of_features_and_of_unknown_lengths(cluster, table):
    by_features = da.from_array(table, chunks=(3000, 2))
    unknown = by_features[by_features[:, 0] > 0.0]
    chosen = table[table[:, 0] > 0.0]
    rows, _ = read(by_features)
    assert_same(cluster, rows, read(table)[0])
    rows, _ = read(unknown, da.from_array(np.arange(float(len(chosen))), chunks=100))
    assert_same(cluster, rows, read(chosen)[0])


def test_hashes_and_values_of_chosen_rows(cluster, table):
    rows, _ = read(da.from_array(table, chunks=(3000, 4)))
    local, _ = read(table)
    assert_array_equal(rows.X.hashes(rows.y, 7), hash_rows(local.X, local.y, 7))
    mask = np.random.default_rng(2).random(N_ROWS) < 0.8
    held_out, kept = rows.take(~mask), rows.take(mask)
    assert_array_equal(held_out.X.here(), table[~mask])
    assert_array_equal(held_out.here().X, table[~mask])
    assert kept.X.shape == (mask.sum(), 4)
    assert_array_equal(kept.X.hashes(kept.y, 7), hash_rows(table[mask], local.y[mask], 7))
    assert_same(cluster, kept, local.take(mask))
    again = rows.X[np.repeat(np.arange(50), 3)]
    assert_array_equal(again.here(), np.repeat(table[:50], 3, axis=0))


def test_blocks_are_divided_evenly_and_stay_where_they_are(cluster, table):
    workers = list(cluster.scheduler_info()["workers"])
    rows, _ = read(da.from_array(table, chunks=(4096, 4)))
    found, placed = assert_same(cluster, rows, read(table)[0])
    assert set(placed) == set(workers)
    assert max(len(blocks) for blocks, *_ in placed.values()) <= 3  # of 5
    del placed
    one = found.place_bins(workers[:1])
    assert set(one) == set(workers[:1])
    assert_array_equal(one[workers[0]][0], np.arange(5))
    assert cluster_bins(one).shape == table.shape
    few, _ = read(da.from_array(table[:4096], chunks=(100, 4)))
    assert len(few.X.with_cuts(few.weight, 256).place_bins(workers)) == 1


@pytest.mark.parametrize("n_workers", [1, 2, 3, 5])
@pytest.mark.parametrize("n_blocks", [1, 4, 40])
def test_owners_have_about_the_same_load(n_workers, n_blocks):
    workers, n_owners = [f"w{i}" for i in range(n_workers)], min(n_workers, n_blocks)
    segments = [
        Segment(block, block, block * 4096, block * 4096 + 4096) for block in range(n_blocks)
    ]
    for where in ([workers[:1]] * n_blocks, [workers] * n_blocks, [()] * n_blocks):
        owners = assign_blocks(segments, where, workers)
        loads = [owners.count(worker) for worker in workers]
        assert sum(loads) == n_blocks
        assert max(loads) <= max(np.ceil(n_blocks / n_owners), 1.1 * n_blocks / n_owners)
        assert np.count_nonzero(loads) == n_owners
    spread = [[workers[block % n_workers]] for block in range(n_blocks)]
    assert assign_blocks(segments, spread, workers) == [worker for (worker,) in spread]


def test_bins_are_released_with_what_place_returned(cluster, table):
    rows, _ = read(da.from_array(table, chunks=(3000, 4)))
    X = rows.X.with_cuts(rows.weight, 256)
    placed = X.place_bins(list(cluster.scheduler_info()["workers"]))
    pieces = [arrays for _, *pieces in placed.values() for arrays, *_ in pieces]
    futures = [
        each for arrays in pieces for each in (arrays if type(arrays) is tuple else [arrays])
    ]
    del pieces
    distributed.wait(futures)
    keys = {future.key for future in futures}
    assert cluster.run_on_scheduler(tasks_known, keys) == len(keys)
    del placed, futures
    for _ in range(100):
        if cluster.run_on_scheduler(tasks_known, keys) == 0:
            return
        time.sleep(0.05)
    pytest.fail("the bins are still there")


def tasks_known(keys, dask_scheduler):
    return sum(key in dask_scheduler.tasks for key in keys)


# --- errors


def test_without_a_client(monkeypatch):
    monkeypatch.setattr("distributed.client._global_clients", {})
    nobody = contextvars.Context()  # `with Client()` is said in the context
    with (
        dask.config.set(scheduler="threads"),
        pytest.raises(ValueError, match="no client") as caught,
    ):
        nobody.run(read, da.ones((10, 2)), np.ones(10))
    assert "from distributed import Client; client = Client()" in str(caught.value)


@pytest.mark.usefixtures("cluster")
def test_errors_name_what_was_given(table):
    X = da.from_array(table, chunks=(8000, 4))
    with pytest.raises(ValueError, match=r"20,000 rows in 3 .*\(8000, 8000, 4000\), but y has 9"):
        read(X, np.ones(9))
    with pytest.raises(ValueError, match="1 dimension"):
        read(X[:, 0])
    with pytest.raises(TypeError, match=r"dask\.Delayed"):
        read(dask.delayed(1), np.ones(1))
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        read(X[:0], np.ones(0))


# --- sparse blocks


def sparse_collection(X, chunks):
    return da.from_array(X, chunks=(chunks, X.shape[1])).map_blocks(
        csr_array, meta=csr_array((0, 0))
    )


@pytest.mark.parametrize("parameters", [{}, {"missing": 2.0}], ids=str)
def test_sparse_blocks_have_the_bins_of_dense_ones(cluster, parameters):
    rng = np.random.default_rng(6)
    X = rng.integers(4, size=(9000, 5)) * (rng.random((9000, 5)) < 0.2)
    X = X.astype(np.float32)
    X[5::1000, 2] = np.nan
    rows, fitted = read(sparse_collection(X, 2500), **parameters)
    local, fitted_here = read(X, **parameters)
    assert repr(fitted) == repr(fitted_here)
    assert_same(cluster, rows, local)
    assert_array_equal(
        value_array(rows.X.here()), local.X if parameters == {} else local.X.values()
    )
    assert_array_equal(rows.X.hashes(rows.y, 1), hash_rows(local.X, local.y, 1))


@pytest.mark.usefixtures("cluster")
def test_sparse_blocks_that_are_refused():
    wide = da.from_array(np.zeros((40, 1)), chunks=(20, 1)).map_blocks(
        lambda block: csr_array((len(block), 20_000_000)),
        meta=csr_array((0, 0)),
        chunks=(20, 20_000_000),
    )
    with pytest.raises(ValueError, match=r"0\.7 GiB; one machine, fit\(X\.compute"):
        read(wide, np.zeros(40))
    X = np.eye(6)
    with pytest.raises(ValueError, match="missing=0, and X is sparse"):
        read(sparse_collection(X, 3), missing=0.0)
    with pytest.raises(ValueError, match="one-hot"):
        read(sparse_collection(X, 3), categorical_features=[0])
    with pytest.raises(ValueError, match="an integer as large as"):
        read(sparse_collection((X * 2**60).astype(np.int64), 3))
    half = da.concatenate([sparse_collection(X, 6), da.from_array(X, chunks=(6, 6))])
    with pytest.raises(ValueError, match="partition 1 of X is dense"):
        read(half)


def test_large_cuts_of_two_fits_at_once(cluster):
    rng = np.random.default_rng(7)
    workers = list(cluster.scheduler_info()["workers"])
    kept = []
    for scale in (1.0, 100.0):
        X = rng.normal(scale=scale, size=(3000, 30))
        rows, _ = read(da.from_array(X, chunks=(1000, 30)))
        found, placed = assert_same(cluster, rows, read(X)[0], max_bin=500)
        assert found.found[0].cuts.nbytes > 1e5  # what Dask calls large
        kept.append((found, placed))
    assert set(kept[0][0].place_bins(workers)) <= set(workers)


def test_workers_that_are_lost():
    """The bins are made again by those who are left, and what was sent is sent again."""
    X = np.random.default_rng(8).normal(size=(20_000, 3))
    weight = np.ones(len(X))
    with workers_here(3) as client:
        rows, _ = read(da.from_array(X, chunks=(3000, 3)), sample_weight=weight)
        mask = np.arange(len(X)) % 10 > 0
        rows, local = rows.take(mask), read(X)[0].take(mask)
        assert_same(client, rows, local)
        lose_worker(client)
        assert_same(client, rows, local)
        sent = rows.X.partitions._sent

        def send_and_lose(arguments):
            futures = sent(arguments)
            if len(client.scheduler_info()["workers"]) == 2:
                lose_worker(client)
            return futures

        rows.X.partitions._sent = send_and_lose
        assert_array_equal(rows.X.here(), X[mask])
        assert len(client.scheduler_info()["workers"]) == 1
        assert_same(client, rows, local)


def lose_worker(client):
    """Let a worker disappear with all that it has."""
    running = [w for w in client.cluster.workers.values() if w.status.name == "running"]
    client.sync(running[0].close)


def test_a_cluster_without_workers(monkeypatch):
    monkeypatch.setattr("sklboost.distributed.partitions._PATIENCE", 0.3)
    with workers_here(0), pytest.raises(RuntimeError, match=r"no workers for 0\.3 sec"):
        read(da.ones((10, 2)), np.ones(10))


def test_in_a_task_of_the_only_worker(table):
    def read_there():
        rows, _ = read(da.from_array(table, chunks=(9000, 4)))
        cuts = rows.X.with_cuts(rows.weight, 256).found[0].cuts
        distributed.get_client().close()  # the worker's own
        return cuts

    # not the default: the worker, in this process, would use this client, and not one of its own
    with workers_here(1, set_as_default=False) as client:
        found = client.submit(read_there).result(timeout=60)
    assert_array_equal(found, local_bins(read(table)[0])[1].cuts)


def test_a_lost_scheduler(cluster, monkeypatch):
    def cancelled(futures, timeout):
        raise FuturesCancelledError([])

    rows, _ = read(da.ones((10, 2), chunks=(5, 2)), np.ones(10))
    monkeypatch.setattr("distributed.wait", cancelled)
    with pytest.raises(RuntimeError, match="lost with their workers again and again"):
        rows.X.here()
    monkeypatch.setattr(cluster, "status", "connecting")
    with pytest.raises(LostSchedulerError, match="lost the scheduler of <Client"):
        rows.X.here()
