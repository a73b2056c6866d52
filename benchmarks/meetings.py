"""How far apart two processors are at the moment: the time of a meeting of two threads.

A virtual machine is moved about by its host: its processors share a cache in one minute and not in
the next. What threads read of one another then takes several times as long.
"""

import time

from sklboost.engine.compiling import kernel
from sklboost.engine.parallel import ThreadTeam, assemble, barrier

from . import environment

N_TRIES, N_MEETINGS = 10, 500  # 0.5 to 5 ms


@kernel
def meet(team, n_times):
    """Have all members of the team meet so many times."""
    if assemble(team):
        for _ in range(n_times):
            barrier(team)


def meeting_nanoseconds():
    """Return the nanoseconds of a meeting of two threads; None where there is one processor.

    The least of several tries: threads of a library that was measured before may still be spinning.
    """
    if environment.n_cores() < 2:
        return None
    with ThreadTeam(2) as team:
        team.run(meet, 1)  # compiles, and wakes the helper
        return min(_nanoseconds(team) for _ in range(N_TRIES))


def _nanoseconds(team):
    start = time.perf_counter()
    team.run(meet, N_MEETINGS)
    return (time.perf_counter() - start) / N_MEETINGS * 1e9
