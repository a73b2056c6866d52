"""Workers killed at random moments, and what becomes of calls: `python -m tests.distributed.soak`.

Trainings of a few calls run one after the other on three workers, which are killed again and again,
whatever they do. Each training begins anew with whoever is left, goes on at the call that it lost,
and ends with the sums that it would have had in peace, or the script says what broke.
"""

import argparse
import os
import random
import signal
import time
from threading import Event, Thread

from sklboost.distributed.crew import Crew, LostWorkersError
from tests.distributed.crews import open_crew, seats, start, wait_until

N_CALLS = 5
LONGEST = 60.0  # seconds of a training with all its losses


def train(crew: Crew, rng: random.Random) -> int:
    """Do the calls of a training; return how often it lost workers."""
    n_losses = n_done = 0
    n_times, n_bytes = rng.choice([(300, 100), (100, 50_000), (20, 3_000_000)])
    end = time.monotonic() + LONGEST
    while n_done < N_CALLS:
        try:
            wait_until(crew.workers, LONGEST)
            start(crew, crew._client.submit(time.sleep, rng.random() / 20, pure=False))
            while n_done < N_CALLS:
                sums = crew.call("exchange", n_times, n_bytes)
                size = len(sums)
                assert sums == [[(r + n_times - 1) % 256 * n_bytes for r in range(size)]] * size
                n_done += 1
        except LostWorkersError:
            n_losses += 1
        assert time.monotonic() < end, "a training took too long"
    crew.stop()
    return n_losses


def kill(crew: Crew, rng: random.Random, done: Event, n_kills: int, log: list[str]) -> None:
    """Kill workers, one after the other, at random moments."""
    for _ in range(n_kills):
        wait_until(lambda: len(crew.workers()) > 1, LONGEST)
        time.sleep(rng.expovariate(2.0))
        processes = crew._client.run(os.getpid, on_error="ignore")
        address = rng.choice(list(processes))
        os.kill(processes[address], signal.SIGKILL)
        log.append(address)
    done.set()


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng, done, log = random.Random(arguments.seed), Event(), []
    with open_crew(3, processes=True) as crew:
        begin = time.monotonic()
        killer = Thread(
            target=kill,
            args=(crew, random.Random(arguments.seed + 1), done, arguments.kills, log),
            daemon=True,
        )
        killer.start()
        n_trainings = n_losses = 0
        while not done.is_set():
            n_losses += train(crew, rng)
            n_trainings += 1
            assert killer.is_alive() or done.is_set(), "nobody kills any more"
        wait_until(lambda: seats(crew) == [])
        seconds = time.monotonic() - begin
    print(
        f"{len(log)} kills, {n_losses} of them noticed by {n_trainings} trainings, all finished "
        f"in {seconds:.0f} s"
    )


if __name__ == "__main__":
    main()
