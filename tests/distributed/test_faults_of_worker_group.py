"""Workers that are killed, suspended, retired; clients and schedulers that die; Ctrl-C."""

import os
import signal
import time
from multiprocessing import get_context
from pathlib import Path
from threading import Timer

import pytest
from distributed import Client

from sklboost.distributed.worker_group import LostSchedulerError, LostWorkersError, WorkerGroup
from tests.distributed.worker_groups import open_group, start, wait_until, worker_threads


@pytest.fixture(scope="module")
def cluster():
    with open_group(3, processes=True, memory_limit="600MiB") as group:
        yield group


@pytest.fixture
def group(cluster):
    """Give machines on two workers, at least; those that a test kills come back after a while."""
    wait_until(lambda: len(cluster.workers()) >= 2, 60)
    start(cluster)
    yield cluster
    cluster.stop()


def process_of(group, rank):
    address = group._members[rank].address
    return group._client.run(os.getpid, workers=[address])[address]


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


def check_recovery(group):
    """Machines on those that are left do their work, and those of before are gone."""
    wait_until(lambda: worker_threads(group) == [])
    start(group)
    ranks = list(range(len(group._members)))
    assert group.call("get_rank") == ranks
    assert group.call("exchange", 3, 10) == [[(rank + 2) * 10 for rank in ranks]] * len(ranks)


def test_a_worker_killed_during_a_call(group):
    address = group._members[1].address
    begin = time.monotonic()
    with pytest.raises(LostWorkersError, match="killed") as caught:
        group.call("kill", 1)
    assert caught.value.addresses == (address,)
    assert time.monotonic() - begin < 5
    assert address not in group.workers()
    check_recovery(group)


@pytest.mark.slow
@pytest.mark.parametrize("late", [1.0, 60.0])
def test_a_scheduler_that_notices_late_that_workers_are_killed(group, monkeypatch, late):
    killed = {machine.address for machine in group._members[1:]}
    last, ask, noticed = group._members[-1].address, group._n_threads, []

    async def ask_deaf(addresses=None):
        found = await ask(addresses)
        if addresses and last not in found:
            noticed.append(time.monotonic())
            if time.monotonic() < noticed[0] + late:
                found[last] = 1
        return found

    monkeypatch.setattr(group, "_n_threads", ask_deaf)
    # all workers report that they are lost
    monkeypatch.setattr("sklboost.distributed.worker_group._GRACE_OF_LOSS", 2.0)
    begin = time.monotonic()
    with pytest.raises(LostWorkersError, match="killed, for its use of memory perhaps") as caught:
        group.call("kill_others", 0)
    assert time.monotonic() - begin < 15
    assert set(caught.value.addresses) == killed
    monkeypatch.undo()
    assert killed.isdisjoint(group.workers())
    check_recovery(group)


def test_a_suspended_worker_is_lost_after_a_while(group):
    process, address = process_of(group, 1), group._members[1].address
    group.silence = 2.0
    try:
        with pytest.raises(LostWorkersError, match="did not answer for 2 seconds") as caught:
            group.call("kill", 1, signal.SIGSTOP)
        assert caught.value.addresses == (address,)
    finally:
        del group.silence
        os.kill(process, signal.SIGCONT)
    check_recovery(group)


def test_ctrl_c_during_a_call(group, later):
    later(0.4, os.kill, os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        group.call("wait_for_others")
    wait_until(lambda: worker_threads(group) == [], 2)
    check_recovery(group)


def run_client(address, told):
    with Client(address) as client:
        group = start(WorkerGroup(client))
        told.put("started")
        group.call("wait_for_others")


def run_cluster(told):
    with open_group(2, processes=True) as group:
        told.put(group._client.scheduler.address)
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


def test_machines_end_when_their_client_is_killed(group, process):
    group.stop()
    wait_until(lambda: worker_threads(group) == [])
    client, _ = process(run_client, group._client.scheduler.address)
    assert len(worker_threads(group)) >= 2
    client.kill()
    wait_until(lambda: worker_threads(group) == [])


@pytest.mark.slow
def test_the_end_of_the_scheduler_is_told(process, later):
    cluster, address = process(run_cluster)
    with Client(address) as client:
        group = start(WorkerGroup(client))
        workers = client.run(os.getpid)
        later(0.2, cluster.kill)
        with pytest.raises(LostSchedulerError, match="lost the scheduler"):
            group.call("wait_for_others")
        group.stop()
    wait_until(lambda: not any(map(is_alive, workers.values())), 30)


def is_alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False
