"""Machines on workers of one process, by every protocol: calls, messages, errors, ends."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Timer
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import Status

from sklboost.distributed.crew import Crew, LostSchedulerError, LostWorkersError
from sklboost.distributed.messages import StoppedError
from tests.distributed.crews import Recorder, open_crew, start, wait_until, worker_threads


@pytest.fixture(scope="module", params=["inproc://", "tcp://"])
def crew(request):
    with open_crew(3, protocol=request.param) as crew:
        yield crew


# What does not depend on how machines talk.
by_tcp = pytest.mark.parametrize("crew", ["tcp://"], indirect=True)


def test_ranks_are_in_the_order_of_the_arguments(crew):
    addresses = list(reversed(crew.workers()))
    crew.start(Recorder, {address: (address,) for address in addresses})
    assert crew.call("get_rank") == [0, 1, 2]
    assert crew.call("get_arguments") == [(address,) for address in addresses]
    workers = crew._client.run(lambda dask_worker: dask_worker.address)
    assert set(workers) == set(addresses) == set(crew.workers())


@by_tcp
def test_dask_brings_what_futures_stand_for(crew):
    client = crew._client
    future = client.submit(np.arange, 5, pure=False)
    later = client.submit(pow, client.submit(sum, [future, future]), 2)
    large = np.arange(200_000.0)
    crew.start(
        Recorder, {address: (future, [later, {"a": future}], large) for address in crew.workers()}
    )
    for one, (two, named), array in crew.call("get_arguments"):
        np.testing.assert_array_equal(one, np.arange(5))
        np.testing.assert_array_equal(two, 4 * np.arange(5) ** 2)
        np.testing.assert_array_equal(named["a"], np.arange(5))
        np.testing.assert_array_equal(array, large)


@by_tcp
def test_large_arrays_are_sent_beside_the_tasks(crew):
    large, rows = np.zeros(3_000_000, dtype=np.uint8), np.arange(2_000_000)  # Dask warns at 10 MB
    crew.start(Recorder, dict.fromkeys(crew.workers(), (large, (large, rows), (1, slice(None)))))
    for array, (again, numbers), small in crew.call("get_arguments"):
        assert array.size == again.size == 3_000_000
        assert numbers[-1] == 1_999_999
        assert small == (1, slice(None))


def test_two_trainings_at_a_time_do_not_mix_or_wait_for_one_another(crew):
    other = Crew(crew._client)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(start, [crew, other]))
        calls = [
            threads.submit(one.call, "exchange", 200, n_bytes)
            for one, n_bytes in ((crew, 10), (other, 30_000))
        ]
        sums = [call.result(timeout=60) for call in calls]
    assert sums == [[[(rank + 199) * n for rank in range(3)]] * 3 for n in (10, 30_000)]
    other.stop()
    assert crew.call("exchange", 1, 10) == [[0, 10, 20]] * 3


@by_tcp
def test_other_tasks_run_while_machines_wait_and_compute(crew):
    start(crew)
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(crew.call, "sleep", 0.5)
        tasks = [
            crew._client.submit(pow, 2, 5, workers=[address], pure=False)
            for address in crew.workers()
        ]
        assert crew._client.gather(tasks) == [32] * 3
        assert not call.done()
        assert call.result(timeout=10) == [0, 1, 2]


@pytest.mark.parametrize("rank", [0, 2])
def test_the_error_of_one_machine_is_the_one_that_is_reported(crew, rank):
    start(crew)
    with pytest.raises(KeyError, match="cause") as caught:
        crew.call("fail", rank, KeyError("cause"))
    (note,) = caught.value.__notes__
    assert f"On the worker {list(crew.workers())[rank]}" in note
    assert "raise error" in note
    wait_until(lambda: worker_threads(crew) == [])


@by_tcp
def test_an_error_that_cannot_be_sent_is_told(crew):
    start(crew)
    with pytest.raises(RuntimeError, match="OddError: no name"):
        crew.call("fail_oddly")


@by_tcp
def test_an_error_while_the_objects_are_made(crew):
    with pytest.raises(TypeError, match="expected 2 arguments, got 3"):
        crew.start(divmod, dict.fromkeys(crew.workers(), (1, 2)))
    with pytest.raises(ZeroDivisionError):
        start(crew, crew._client.submit(lambda: 1 / 0))
    wait_until(lambda: worker_threads(crew) == [])
    assert start(crew).call("get_rank") == [0, 1, 2]


def test_a_stop_ends_machines_that_wait_and_frees_them(crew):
    start(crew)
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(crew.call, "wait_for_others", 1)
        wait_until(lambda: worker_threads(crew) == [(0, False), (1, False), (2, False)])
        time.sleep(0.1)
        crew.stop()
        crew.stop()
        with pytest.raises(StoppedError, match="was stopped"):
            call.result(timeout=7)
    wait_until(lambda: worker_threads(crew) == [])
    with pytest.raises(StoppedError, match="start them first"):
        crew.call("get_rank")


@by_tcp
def test_tasks_that_others_cancel_are_lost(crew):
    start(crew)
    crew._client.cancel([future for machine in crew._machines for future in machine.futures])
    with pytest.raises(LostWorkersError):
        crew.call("wait_for_others")


def test_machines_talk_by_tls():
    with open_crew(2, protocol="tls://") as crew:
        start(crew)
        for n_bytes in (10, 20_000, 1_000_000):
            sums = [(rank + 1) * n_bytes for rank in range(2)]
            assert crew.call("exchange", 2, n_bytes) == [sums] * 2
        with pytest.raises(KeyError, match="cause"):
            crew.call("fail", 1, KeyError("cause"))
        wait_until(lambda: worker_threads(crew) == [])


def test_a_paused_worker_is_not_used_and_not_waited_for():
    def pause(dask_worker):
        dask_worker.status = Status.paused

    with open_crew(2, memory_limit=0) as crew:
        paused, running = crew.workers()
        crew._client.run(pause, workers=[paused])
        wait_until(lambda: list(crew.workers()) == [running])
        crew.silence = 3.0
        with pytest.raises(LostWorkersError, match="is paused, since its memory is full") as caught:
            crew.start(Recorder, dict.fromkeys([paused, running], ()))
        assert caught.value.addresses == (paused,)
        del crew.silence
        assert start(crew).call("get_rank") == [0]


def test_an_asynchronous_client_is_refused():
    with pytest.raises(ValueError, match="asynchronous"):
        Crew(SimpleNamespace(asynchronous=True))


@by_tcp
def test_a_scheduler_that_is_gone_is_told(crew, monkeypatch):
    monkeypatch.setattr(crew._client, "status", "connecting")
    with pytest.raises(LostSchedulerError, match=r"lost the scheduler of <Client.* is conn"):
        crew.workers()


def test_a_worker_is_waited_for_while_there_is_none():
    with open_crew(0) as crew:
        crew.absence = 0.3
        with pytest.raises(RuntimeError, match=r"has had no workers for 0\.3 seconds: start some"):
            crew.workers()
        crew.absence = 30.0
        timer = Timer(0.3, crew._client.cluster.scale, (1,))
        timer.start()
        assert list(crew.workers().values()) == [1]
        timer.join()
