"""Workers that are killed, suspended, retired; clients and schedulers that die; Ctrl-C."""

import os
import signal
import time
from multiprocessing import get_context
from pathlib import Path
from threading import Timer

import pytest
from distributed import Client

from sklboost.distributed.crew import Crew, LostSchedulerError, LostWorkersError
from tests.distributed.crews import open_crew, start, wait_until, worker_threads


@pytest.fixture(scope="module")
def cluster():
    with open_crew(3, processes=True, memory_limit="600MiB") as crew:
        yield crew


@pytest.fixture
def crew(cluster):
    """Give machines on two workers, at least; those that a test kills come back after a while."""
    wait_until(lambda: len(cluster.workers()) >= 2, 60)
    start(cluster)
    yield cluster
    cluster.stop()


def process_of(crew, rank):
    address = crew._machines[rank].address
    return crew._client.run(os.getpid, workers=[address])[address]


@pytest.fixture
def later():
    """Have things done after some seconds, in another thread."""
    timers = []

    def do(seconds, function, *arguments):
        timers.append(Timer(seconds, function, arguments))
        timers[-1].start()

    yield do
    for timer in timers:
        timer.join()


def check_recovery(crew):
    """Machines on those that are left do their work, and those of before are gone."""
    wait_until(lambda: worker_threads(crew) == [])
    start(crew)
    ranks = list(range(len(crew._machines)))
    assert crew.call("get_rank") == ranks
    assert crew.call("exchange", 3, 10) == [[(rank + 2) * 10 for rank in ranks]] * len(ranks)


def test_a_worker_killed_during_a_call(crew):
    address = crew._machines[1].address
    begin = time.monotonic()
    with pytest.raises(LostWorkersError, match="killed") as caught:
        crew.call("kill", 1)
    assert caught.value.addresses == (address,)
    assert time.monotonic() - begin < 5
    assert address not in crew.workers()
    check_recovery(crew)


@pytest.mark.slow
@pytest.mark.parametrize("late", [1.0, 60.0])
def test_a_scheduler_that_notices_late_that_workers_are_killed(crew, monkeypatch, late):
    killed = {machine.address for machine in crew._machines[1:]}
    last, ask, noticed = crew._machines[-1].address, crew._n_threads, []

    async def ask_deaf(addresses=None):
        found = await ask(addresses)
        if addresses and last not in found:
            noticed.append(time.monotonic())
            if time.monotonic() < noticed[0] + late:
                found[last] = 1
        return found

    monkeypatch.setattr(crew, "_n_threads", ask_deaf)
    monkeypatch.setattr("sklboost.distributed.crew._GRACE_OF_LOSS", 2.0)  # all say that they do
    begin = time.monotonic()
    with pytest.raises(LostWorkersError, match="killed, for its use of memory perhaps") as caught:
        crew.call("kill_others", 0)
    assert time.monotonic() - begin < 15
    assert set(caught.value.addresses) == killed
    monkeypatch.undo()
    assert killed.isdisjoint(crew.workers())
    check_recovery(crew)


def test_a_suspended_worker_is_lost_after_a_while(crew):
    process, address = process_of(crew, 1), crew._machines[1].address
    crew.silence = 2.0
    try:
        with pytest.raises(LostWorkersError, match="did not answer for 2 seconds") as caught:
            crew.call("kill", 1, signal.SIGSTOP)
        assert caught.value.addresses == (address,)
    finally:
        del crew.silence
        os.kill(process, signal.SIGCONT)
    check_recovery(crew)


def test_ctrl_c_during_a_call(crew, later):
    later(0.4, os.kill, os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        crew.call("wait_for_others")
    wait_until(lambda: worker_threads(crew) == [], 2)
    check_recovery(crew)


def run_client(address, told):
    with Client(address) as client:
        crew = start(Crew(client))
        told.put("started")
        crew.call("wait_for_others")


def run_cluster(told):
    with open_crew(2, processes=True) as crew:
        told.put(crew._client.scheduler.address)
        time.sleep(1000)


@pytest.fixture
def process():
    """Start processes that have imported what these tests have."""
    processes = []

    def begin(function, *arguments):
        context = get_context("forkserver")
        told = context.Queue()
        processes.append(context.Process(target=function, args=(*arguments, told)))
        processes[-1].start()
        return processes[-1], told.get(timeout=60)

    yield begin
    for process in processes:
        process.kill()
        process.join()
        process.close()


def test_machines_end_when_their_client_is_killed(crew, process):
    crew.stop()
    wait_until(lambda: worker_threads(crew) == [])
    client, _ = process(run_client, crew._client.scheduler.address)
    assert len(worker_threads(crew)) >= 2
    client.kill()
    wait_until(lambda: worker_threads(crew) == [])


@pytest.mark.slow
def test_the_end_of_the_scheduler_is_told(process, later):
    cluster, address = process(run_cluster)
    with Client(address) as client:
        crew = start(Crew(client))
        workers = client.run(os.getpid)
        later(0.2, cluster.kill)
        with pytest.raises(LostSchedulerError, match="lost the scheduler"):
            crew.call("wait_for_others")
        crew.stop()
    wait_until(lambda: not any(map(is_alive, workers.values())), 30)


def is_alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False
