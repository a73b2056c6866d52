"""A process whose fits note when members of the team come and go: what threads.py measures.

The package's functions are compiled with other ones in the places of `barrier`, `next_task` and
what else is in `parallel.py`; kernels of other processes have nothing of that. For the kind "cores"
one thread does the work of a team of any size as its member 0: each task, each share.
"""

import hashlib
import json
import math
import sys
import time

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from sklboost.boosting import rounds
from sklboost.engine import parallel
from sklboost.engine.compiling import kernel, made_kernel
from sklboost.estimators.fit import fitting
from sklboost.tree.core import growing, histogram, partition, quantization, splitting

from . import datasets, threads
from .peers import Settings, make_estimator
from .runner import OURS

ir = cgutils.ir  # of llvmlite, which numba requires
IS_ALONE = sys.argv[-1] == "cores"
MODULES = (rounds, quantization, growing, histogram, partition, splitting)  # as threads.PHASES
LEAVE, TASK, SERIAL = map(np.int64, (threads.LEAVE, threads.TASK, threads.SERIAL))
ENTERING, SHARE = map(np.int64, (threads.ENTERING, threads.SHARE))
N_NOTES = np.int64(threads.N_NOTES)
ROOM = np.int64(1 << 22)  # cells of the state for the notes of a member: their number, then pairs
MOST_MEMBERS = 64
FIRST = np.int64(parallel.state_size(MOST_MEMBERS))  # of the state: the notes, behind what counts
NAMES = ("barrier", "begin_step", "end_step", "assemble", "next_task", "share", "reset_tasks")
REAL = [getattr(parallel, name) for name in NAMES]
real_barrier, real_begin_step, real_end_step, real_assemble = REAL[:4]
real_next_task, real_share, real_reset_tasks = REAL[4:]
RealTeam = parallel.ThreadTeam
# What members meet for before a serial step: by the counter that they took their last tasks from.
PHASE_OF_COUNTER = tuple(
    map(threads.PHASES.index, ("rows", "histograms", "split search", "rows", "histograms"))
)


@intrinsic
def now(typing_context):
    """Return the nanoseconds of the monotonic clock."""

    def codegen(context, builder, signature, args):
        number, code = ir.IntType(64), ir.IntType(32)
        kind = ir.FunctionType(code, [code, number.as_pointer()])
        function = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
        cell = cgutils.alloca_once(builder, number, size=number(2))
        builder.call(function, [code(time.CLOCK_MONOTONIC), cell])
        seconds, rest = (builder.load(builder.gep(cell, [number(i)])) for i in range(2))
        return builder.add(builder.mul(seconds, number(10**9)), rest)

    return types.int64(), codegen


now.digest_part = lambda: "clock_gettime"  # so that what calls it is kept on disk


@kernel
def note(team, what):
    """Note what this member does now, and the time."""
    start = FIRST + ROOM * team.rank
    place = team.state[start] + 1
    if 2 * place + 1 < ROOM - 1:  # the last cell is for `next_task`
        team.state[start] = place
        team.state[start + 2 * place] = what
        team.state[start + 2 * place + 1] = now()


def meeting(what):
    """Return the barrier of a module."""

    def barrier(team):
        note(team, what)
        if not IS_ALONE:
            real_barrier(team)
        note(team, LEAVE)

    return made_kernel(barrier, f"{what} {IS_ALONE}")


@kernel
def phase(team):
    """Return the phase of this member's last task."""
    return np.int64(PHASE_OF_COUNTER[team.state[FIRST + ROOM * team.rank + ROOM - 1]])


@kernel
def begin_step(team, by_caller):
    """As in the package; alone, the meeting is where the step ends."""
    if IS_ALONE:
        note(team, SERIAL)
        return np.int64(1)
    note(team, phase(team))
    is_mine = real_begin_step(team, by_caller)
    note(team, LEAVE)
    return is_mine


@kernel
def end_step(team):
    """As in the package."""
    if IS_ALONE:
        note(team, phase(team))
        note(team, LEAVE)
    else:
        real_end_step(team)


@kernel
def assemble(team):
    """As in the package."""
    note(team, ENTERING)
    is_there = np.int64(1) if IS_ALONE else real_assemble(team)
    note(team, LEAVE)
    return is_there


@kernel
def next_task(team, counter, n_tasks):
    """As in the package."""
    team.state[FIRST + ROOM * team.rank + ROOM - 1] = counter
    note(team, TASK)
    return real_next_task(team, counter, n_tasks)


@kernel
def share(team, n_items):
    """As in the package; the number of items is noted, too."""
    note(team, SHARE + N_NOTES * n_items)
    return (np.int64(0), np.int64(n_items)) if IS_ALONE else real_share(team, n_items)


@kernel
def reset_tasks(team):
    """As in the package: from here on member 0 works and the others wait."""
    note(team, SERIAL)
    real_reset_tasks(team)


class NotedTeam(RealTeam):
    """A team whose notes are read after the fit; alone, one thread in the place of all."""

    notes = ()

    def __init__(self, n_threads):
        super().__init__(n_threads)
        if IS_ALONE:
            self.size = n_threads
        n_noting = 1 if IS_ALONE else n_threads
        self._state = np.zeros(FIRST + ROOM * n_noting, dtype=np.int64)

    def __enter__(self):
        return self if IS_ALONE else super().__enter__()

    def run(self, function, *arguments):
        if not IS_ALONE:
            return super().run(function, *arguments)
        self._state[parallel._ENTERED : FIRST] = 0
        function(parallel.Team(0, self.size, self._state), *arguments)
        note(parallel.Team(0, self.size, self._state), SERIAL)

    def __exit__(self, *exception):
        super().__exit__(*exception)
        of_members = self._state[FIRST:].reshape(-1, ROOM)
        if of_members[:, 0].max() > ROOM // 2 - 2:
            raise MemoryError("more notes than there is room for: take fewer trees")
        NotedTeam.notes = [row[2 : 2 + 2 * row[0]].reshape(-1, 2).copy() for row in of_members]


def replace_functions():
    """Put functions that note what they do in the places of those of the package."""
    modules = [module for name, module in sys.modules.items() if name.startswith("sklboost.")]
    for module in modules:
        what = np.int64(MODULES.index(module) if module in MODULES else len(MODULES))
        noting = (meeting(what), begin_step, end_step, assemble, next_task, share, reset_tasks)
        names, real_ones = (*NAMES, "ThreadTeam"), (*REAL, RealTeam)
        for name, real, other in zip(names, real_ones, (*noting, NotedTeam), strict=True):
            if module is not parallel and vars(module).get(name) is real:
                setattr(module, name, other)
    if IS_ALONE:
        rounds.Rounds.seconds_per_call = math.inf  # each fit has the same calls


def fit(dataset, settings, n_members):
    """Fit with so many members; return the notes, the seconds and a digest of the trees."""
    if n_members > MOST_MEMBERS:
        raise ValueError(f"{n_members} members, but there is room for {MOST_MEMBERS}")
    fitting.n_threads_for = lambda *work: n_members
    model = make_estimator(OURS, settings, dataset.task, n_members)
    start = time.monotonic_ns()
    model.fit(dataset.X_train, dataset.y_train)
    seconds = (time.monotonic_ns() - start) / 1e9
    return NotedTeam.notes, seconds, hashlib.sha256(model.model_.nodes.tobytes()).hexdigest()


def main(name, settings, n_members, n_repeats, *_):
    """Print a line of JSON for each fit; of the model one for each latency."""
    replace_functions()
    dataset, n_members = datasets.load(name).as_float32(), int(n_members)
    settings = Settings(**json.loads(settings))
    fit(dataset, settings._replace(n_estimators=2), n_members)  # compiles
    all_notes, seconds, digests = zip(
        *(fit(dataset, settings, n_members) for _ in range(int(n_repeats))), strict=True
    )
    if IS_ALONE:
        found = threads.expect([notes[0] for notes in all_notes], seconds, n_members)
    else:
        found = map(threads.waits, all_notes, seconds)
    for record, digest in zip(found, digests, strict=False):
        print(json.dumps({"digest": digest, **record}))


if __name__ == "__main__":
    main(*sys.argv[1:])
