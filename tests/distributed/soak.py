"""Workers killed at random moments, and what becomes of calls: `python -m tests.distributed.soak`.

Trainings run one after the other on three workers, which are killed again and again, whatever they
do: fits with targets and weights there, and calls of a group. Each goes on with whoever is left and
ends with the bits that it would have had in peace, or the script says what broke.
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

from sklboost import XGBClassifierLite, XGBRankerLite, XGBRegressorLite, XGBSurvivalLite
from sklboost.distributed import columns
from sklboost.distributed.worker_group import LostWorkersError, WorkerGroup
from tests.distributed.machines import assert_same_model
from tests.distributed.worker_groups import open_group, start, wait_until, worker_threads

N_CALLS = 5
MOST_KILLS = 3  # in a training: after 5 losses it gives up, and one may be of the training before
YOUTH = 1.0  # seconds
LONGEST = 60.0  # seconds of a training with all its losses, by default


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
    """Fit with all rows on the cluster, and compare with a fit on this machine."""
    values = np.random.default_rng(rng.randrange(1000)).normal(size=(24_000, 8))
    X, signal = values[:, 1:], np.sin(3 * values[:, 1]) + values[:, 0]
    labels = np.array(["low", "middle", "high"])[np.digitize(signal, [-1.0, 0.7])]
    estimator, y, settings = rng.choice(
        [
            (XGBRegressorLite, signal, {}),
            (XGBRegressorLite, signal, {"objective": "reg:quantileerror"}),
            (XGBRegressorLite, signal, {"linear_tree": True}),
            (XGBClassifierLite, labels, {"class_weight": "balanced"}),
            (XGBClassifierLite, labels == "low", {"class_weight": {False: 1.0, True: 3.0}}),
            (XGBRankerLite, np.digitize(signal, [-1.0, 0.7]), {"objective": "rank:yeti"}),
            (XGBSurvivalLite, np.exp(signal) * np.sign(values[:, 2]), {"ties": "efron"}),
        ]
    )
    queries = np.arange(len(y)) // 20
    rows = {"X": X, "y": y, "sample_weight": queries % 4.0}
    if estimator is XGBRankerLite:
        rows["qid"] = queries
    if rng.random() < 0.5:
        del rows["sample_weight"]
    train = {name: of_all[:20_000] for name, of_all in rows.items()}
    there = {
        name: dask.array.from_array(part, chunks=(rng.choice([3000, 7000]), *part.shape[1:]))
        for name, part in train.items()
    }
    given: dict[str, np.ndarray] = {}
    judges_are = rng.choice(["given", "held out", "none"])
    if judges_are != "none":
        settings = settings | {"early_stopping_rounds": 3, "learning_rate": 0.5}
    if judges_are == "given":
        given = {f"{name}_val": of_all[20_000:] for name, of_all in rows.items()}
    model = estimator(n_estimators=20, max_depth=5, subsample=0.8, random_state=0, **settings)
    size = rng.choice([900, 4000])
    judges = {n: dask.array.from_array(v, chunks=(size, *v.shape[1:])) for n, v in given.items()}
    model.fit(**there, **judges)
    alone = clone(model).fit(**train, **given)
    assert_same_model(model, alone)
    if judges_are != "none":
        assert model.evals_result_ == alone.evals_result_


def kill(
    group: WorkerGroup,
    rng: random.Random,
    done: Event,
    n_kills: int,
    log: list[str],
    begun: list[int],
) -> None:
    """Kill workers, one after the other, at random moments.

    `log` has those killed, `begun` how many these were when each training began.
    """
    since: dict[str, float] = {}  # when each was seen first

    def grown() -> list[str]:
        """Return workers that have been there for a while: Dask gives up those killed at once."""
        now = time.monotonic()
        return [a for a in group.workers() if now - since.setdefault(a, now) > YOUTH]

    while len(log) < n_kills:
        wait_until(lambda: len(grown()) > 1 and len(log) < begun[-1] + MOST_KILLS, 10 * LONGEST)
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
    parser.add_argument("--longest", type=float, default=LONGEST, help="seconds of a training")
    arguments = parser.parse_args()
    rng, done, log, begun = random.Random(arguments.seed), Event(), [], [0]
    columns._ROWS_OF_GROUP = 6000  # rows to hold out are chosen in several steps
    with open_group(3, processes=True) as group:
        killer = Thread(
            target=kill,
            args=(group, random.Random(arguments.seed + 1), done, arguments.kills, log, begun),
            daemon=True,
        )
        killer.start()
        seconds = []
        while not done.is_set():
            begin = time.monotonic()
            begun.append(len(log))
            faulthandler.dump_traceback_later(arguments.longest)
            rng.choice([call, fit, fit])(group, rng)
            faulthandler.cancel_dump_traceback_later()
            seconds.append(time.monotonic() - begin)
            assert seconds[-1] < arguments.longest, "a training took too long"
            assert killer.is_alive() or done.is_set(), "nobody kills any more"
        wait_until(lambda: worker_threads(group) == [])
    print(
        f"{len(log)} kills in {len(seconds)} trainings, all finished with the same bits, within "
        f"{max(seconds):.0f} s"
    )


if __name__ == "__main__":
    main()
