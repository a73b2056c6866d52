"""Actors and clusters that the tests of worker groups share."""

import os
import signal
import time
from contextlib import contextmanager

import dask
import numpy as np
from distributed import Client, LocalCluster, Security
from distributed.utils import get_mp_context

from sklboost.distributed.worker_group import WorkerGroup


class Recorder:
    """An object that keeps what it was made of and exchanges what a test asks for."""

    def __init__(self, peers, *arguments):
        self.peers = peers
        self.arguments = arguments

    def get_arguments(self):
        return self.arguments

    def get_rank(self):
        return self.peers.rank

    def exchange(self, n_times, n_bytes=100, phase="test"):
        """Send rank + step to all so many times; return the sums of what came last."""
        self.peers.phase = phase
        for step in range(n_times):
            part = np.full(n_bytes, (self.peers.rank + step) % 256, dtype=np.uint8)
            received = self.peers.gather(part)
            for rank, part in enumerate(received):
                assert len(part) == n_bytes
                assert (part == (rank + step) % 256).all()
        return [int(part.sum()) for part in received]

    def fail(self, rank, error):
        if self.peers.rank == rank:
            raise error
        self.wait_for_others()

    def fail_oddly(self):
        class OddError(Exception):  # which pickle does not find
            pass

        raise OddError("no name")

    def kill(self, rank, signal_number=signal.SIGKILL):
        if self.peers.rank == rank:
            os.kill(os.getpid(), signal_number)
        self.wait_for_others()

    def kill_others(self, rank):
        """Kill all workers but one."""
        if self.peers.rank != rank:
            os.kill(os.getpid(), signal.SIGKILL)
        self.wait_for_others()

    def wait_for_others(self, only=None):
        """Exchange for ever, or wait for what one rank alone never sends."""
        while only is None or self.peers.rank != only:
            self.peers.gather(np.zeros(10, dtype=np.uint8))

    def sleep(self, seconds):
        time.sleep(seconds)
        return self.peers.rank


def start(group, *arguments):
    group.start(Recorder, dict.fromkeys(group.workers(), arguments))
    return group


def _seats_of(dask_worker):
    worker_threads = dask_worker.extensions.get("sklboost-threads", {}).values()
    return [(thread.place[2], thread.actor is None) for thread in worker_threads]


def worker_threads(group):
    """Return the ranks of machines on all workers, and whether they have no object."""
    found = group._client.run(_seats_of, on_error="ignore")
    return sorted(thread for of_worker in found.values() for thread in of_worker)


def wait_until(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


_SETTINGS = {
    "distributed.worker.multiprocessing-method": "forkserver",
    # Dask gives up a worker that is away at this time after it was lost, even if it came between
    "distributed.deploy.lost-worker-timeout": "1 hour",
}


@contextmanager
def open_group(n_workers=2, **settings):
    """Give a group on a cluster of its own, by default of threads of this process."""
    settings = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0"} | settings
    security = Security.temporary() if settings.get("protocol") == "tls://" else None
    with (
        dask.config.set(_SETTINGS),
        LocalCluster(n_workers=n_workers, security=security, **settings) as cluster,
        Client(cluster, security=security) as client,
    ):
        group = WorkerGroup(client)
        yield group
        group.stop()


def _import_once():
    """Have the processes of workers begin with what is imported here."""
    with dask.config.set(_SETTINGS):
        get_mp_context().set_forkserver_preload(["distributed", __name__])


_import_once()
