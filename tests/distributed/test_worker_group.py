"""Machines on workers of one process, by every protocol: calls, messages, errors, ends."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Timer
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import Status, wait

from sklboost.distributed.messages import StoppedError
from sklboost.distributed.partitions import current_client
from sklboost.distributed.worker_group import LostSchedulerError, LostWorkersError, WorkerGroup
from tests.distributed.worker_groups import Recorder, open_group, start, wait_until, worker_threads


@pytest.fixture(scope="module", params=["inproc://", "tcp://"])
def group(request):
    with open_group(3, protocol=request.param) as group:
        yield group


# What does not depend on how machines talk.
by_tcp = pytest.mark.parametrize("group", ["tcp://"], indirect=True)


def test_ranks_are_in_the_order_of_the_arguments(group):
    addresses = list(reversed(group.workers()))
    group.start(Recorder, {address: (address,) for address in addresses})
    assert group.call("get_rank") == [0, 1, 2]
    assert group.call("get_arguments") == [(address,) for address in addresses]
    workers = group._client.run(lambda dask_worker: dask_worker.address)
    assert set(workers) == set(addresses) == set(group.workers())


@by_tcp
def test_dask_brings_what_futures_stand_for(group):
    client = group._client
    future = client.submit(np.arange, 5, pure=False)
    later = client.submit(pow, client.submit(sum, [future, future]), 2)
    large = np.arange(200_000.0)
    group.start(
        Recorder, {address: (future, [later, {"a": future}], large) for address in group.workers()}
    )
    for one, (two, named), array in group.call("get_arguments"):
        np.testing.assert_array_equal(one, np.arange(5))
        np.testing.assert_array_equal(two, 4 * np.arange(5) ** 2)
        np.testing.assert_array_equal(named["a"], np.arange(5))
        np.testing.assert_array_equal(array, large)


@by_tcp
def test_large_arrays_are_sent_beside_the_tasks(group):
    large, rows = np.zeros(3_000_000, dtype=np.uint8), np.arange(2_000_000)  # Dask warns at 10 MB
    group.start(Recorder, dict.fromkeys(group.workers(), (large, (large, rows), (1, slice(None)))))
    for array, (again, numbers), small in group.call("get_arguments"):
        assert array.size == again.size == 3_000_000
        assert numbers[-1] == 1_999_999
        assert small == (1, slice(None))


def test_two_trainings_at_a_time_do_not_mix_or_wait_for_one_another(group):
    other = WorkerGroup(group._client)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(start, [group, other]))
        calls = [
            threads.submit(one.call, "exchange", 200, n_bytes)
            for one, n_bytes in ((group, 10), (other, 30_000))
        ]
        sums = [call.result(timeout=60) for call in calls]
    assert sums == [[[(rank + 199) * n for rank in range(3)]] * 3 for n in (10, 30_000)]
    other.stop()
    assert group.call("exchange", 1, 10) == [[0, 10, 20]] * 3


@by_tcp
def test_other_tasks_run_while_machines_wait_and_compute(group):
    start(group)
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(group.call, "sleep", 0.5)
        tasks = [
            group._client.submit(pow, 2, 5, workers=[address], pure=False)
            for address in group.workers()
        ]
        assert group._client.gather(tasks) == [32] * 3
        assert not call.done()
        assert call.result(timeout=10) == [0, 1, 2]


@pytest.mark.parametrize("rank", [0, 2])
def test_the_error_of_one_machine_is_the_one_that_is_reported(group, rank):
    start(group)
    with pytest.raises(KeyError, match="cause") as caught:
        group.call("fail", rank, KeyError("cause"))
    (note,) = caught.value.__notes__
    assert f"On the worker {list(group.workers())[rank]}" in note
    assert "raise error" in note
    wait_until(lambda: worker_threads(group) == [])


@by_tcp
def test_an_error_that_cannot_be_sent_is_told(group):
    start(group)
    with pytest.raises(RuntimeError, match="OddError: no name"):
        group.call("fail_oddly")


@by_tcp
def test_an_error_while_the_objects_are_made(group):
    with pytest.raises(TypeError, match="expected 2 arguments, got 3"):
        group.start(divmod, dict.fromkeys(group.workers(), (1, 2)))
    with pytest.raises(ZeroDivisionError):
        start(group, group._client.submit(lambda: 1 / 0))
    wait_until(lambda: worker_threads(group) == [])
    assert start(group).call("get_rank") == [0, 1, 2]


def test_a_stop_ends_machines_that_wait_and_frees_them(group):
    start(group)
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(group.call, "wait_for_others", 1)
        wait_until(lambda: worker_threads(group) == [(0, False), (1, False), (2, False)])
        time.sleep(0.1)
        group.stop()
        group.stop()
        with pytest.raises(StoppedError, match="was stopped"):
            call.result(timeout=7)
    wait_until(lambda: worker_threads(group) == [])
    with pytest.raises(StoppedError, match="start them first"):
        group.call("get_rank")


@by_tcp
def test_tasks_that_others_cancel_are_lost(group):
    start(group)
    group._client.cancel([future for machine in group._members for future in machine.futures])
    with pytest.raises(LostWorkersError):
        group.call("wait_for_others")


def test_machines_talk_by_tls():
    with open_group(2, protocol="tls://") as group:
        start(group)
        for n_bytes in (10, 20_000, 1_000_000):
            sums = [(rank + 1) * n_bytes for rank in range(2)]
            assert group.call("exchange", 2, n_bytes) == [sums] * 2
        with pytest.raises(KeyError, match="cause"):
            group.call("fail", 1, KeyError("cause"))
        wait_until(lambda: worker_threads(group) == [])


def test_a_paused_worker_is_not_used_and_not_waited_for():
    def pause(dask_worker):
        dask_worker.status = Status.paused

    with open_group(2, memory_limit=0) as group:
        paused, running = group.workers()
        group._client.run(pause, workers=[paused])
        wait_until(lambda: list(group.workers()) == [running])
        group.silence = 3.0
        with pytest.raises(LostWorkersError, match="is paused, since its memory is full") as caught:
            group.start(Recorder, dict.fromkeys([paused, running], ()))
        assert caught.value.addresses == (paused,)
        del group.silence
        assert start(group).call("get_rank") == [0]


def test_the_tasks_of_the_actors_end_with_the_last_call(group):
    """A worker that is closed after a fit has none to cancel, of which Dask would warn."""
    start(group)
    tasks = [member.futures[0] for member in group._members]
    assert group.traffic() == [{}] * 3
    assert not wait(tasks, timeout=20).not_done
    group.stop()


def test_an_asynchronous_client_is_refused(monkeypatch):
    monkeypatch.setattr("distributed.get_client", lambda: SimpleNamespace(asynchronous=True))
    with pytest.raises(ValueError, match="is asynchronous, and fit waits for its workers"):
        current_client()


@by_tcp
def test_a_scheduler_that_is_gone_is_told(group, monkeypatch):
    monkeypatch.setattr(group._client, "status", "connecting")
    with pytest.raises(LostSchedulerError, match=r"lost the scheduler of <Client.* is conn"):
        group.workers()


def test_a_worker_is_waited_for_while_there_is_none():
    with open_group(0) as group:
        group.absence = 0.3
        with pytest.raises(RuntimeError, match=r"has had no workers for 0\.3 seconds: start some"):
            group.workers()
        group.absence = 30.0
        timer = Timer(0.3, group._client.cluster.scale, (1,))
        timer.start()
        assert list(group.workers().values()) == [1]
        timer.join()
