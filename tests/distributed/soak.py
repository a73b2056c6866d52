"""Workers killed at random moments, and what becomes of calls: `python -m tests.distributed.soak`.

Trainings run one after the other on three workers, which are killed again and again, whatever they
do: fits, and calls of a group. Each goes on with whoever is left and ends with the bits that it
would have had in peace, or the script says what broke.
"""

import argparse
import faulthandler
import os
import random
import signal
import time
from threading import Event, Thread

import dask.array
import numpy as np
from sklearn.base import clone

from sklboost import XGBRegressorLite
from sklboost.distributed.worker_group import LostWorkersError, WorkerGroup
from tests.distributed.worker_groups import open_group, start, wait_until, worker_threads

N_CALLS = 5
YOUTH = 1.0  # seconds
LONGEST = 60.0  # seconds of a training with all its losses


def call(group: WorkerGroup, rng: random.Random) -> None:
    """Do some calls, and those again that lost workers."""
    n_done = 0
    n_times, n_bytes = rng.choice([(300, 100), (100, 50_000), (20, 3_000_000)])
    while n_done < N_CALLS:
        try:
            start(group, group._client.submit(time.sleep, rng.random() / 20, pure=False))
            while n_done < N_CALLS:
                sums = group.call("exchange", n_times, n_bytes)
                size = len(sums)
                assert sums == [[(r + n_times - 1) % 256 * n_bytes for r in range(size)]] * size
                n_done += 1
        except LostWorkersError:
            continue
    group.stop()


def fit(group: WorkerGroup, rng: random.Random) -> None:
    """Fit, and compare with a fit on this machine."""
    values = np.random.default_rng(rng.randrange(1000)).normal(size=(20_000, 8))
    X, y = values[:, 1:], np.sin(3 * values[:, 1]) + values[:, 0]
    model = XGBRegressorLite(n_estimators=20, max_depth=5, subsample=0.8, random_state=0)
    model.fit(*(dask.array.from_array(part, chunks=(3000, *part.shape[1:])) for part in (X, y)))
    np.testing.assert_array_equal(model.predict(X), clone(model).fit(X, y).predict(X))


def kill(group: WorkerGroup, rng: random.Random, done: Event, n_kills: int, log: list[str]) -> None:
    """Kill workers, one after the other, at random moments."""
    since: dict[str, float] = {}  # when each was seen first

    def grown() -> list[str]:
        """Return workers that have been there for a while: Dask gives up those killed at once."""
        now = time.monotonic()
        return [a for a in group.workers() if now - since.setdefault(a, now) > YOUTH]

    while len(log) < n_kills:
        wait_until(lambda: len(grown()) > 1, LONGEST)
        time.sleep(rng.expovariate(2.0))
        addresses = rng.sample(grown(), 1) if grown() else []  # they may leave by themselves
        found = group._client.run(os.getpid, workers=addresses, on_error="ignore")
        for address, process in found.items():
            os.kill(process, signal.SIGKILL)
            log.append(address)
    done.set()


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng, done, log = random.Random(arguments.seed), Event(), []
    with open_group(3, processes=True) as group:
        killer = Thread(
            target=kill,
            args=(group, random.Random(arguments.seed + 1), done, arguments.kills, log),
            daemon=True,
        )
        killer.start()
        seconds = []
        while not done.is_set():
            begin = time.monotonic()
            faulthandler.dump_traceback_later(LONGEST)
            rng.choice([call, fit, fit])(group, rng)
            faulthandler.cancel_dump_traceback_later()
            seconds.append(time.monotonic() - begin)
            assert seconds[-1] < LONGEST, "a training took too long"
            assert killer.is_alive() or done.is_set(), "nobody kills any more"
        wait_until(lambda: worker_threads(group) == [])
    print(
        f"{len(log)} kills in {len(seconds)} trainings, all finished with the same bits, within "
        f"{max(seconds):.0f} s"
    )


if __name__ == "__main__":
    main()
