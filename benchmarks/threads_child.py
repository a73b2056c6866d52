"""A process whose fits note when members of the team come and go: what threads.py measures.

The package's functions are compiled with other ones in the places of `barrier` and `assemble`;
kernels of other processes have nothing of that.
"""

import hashlib
import json
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
from sklboost.tree.core import growing, histogram, partition, splitting

from . import datasets, threads
from .peers import Settings, make_estimator
from .runner import OURS

ir = cgutils.ir  # of llvmlite, which numba requires
MODULES = (rounds, growing, histogram, partition, splitting)  # as threads.PHASES
LEAVE, ENTERING = np.int64(threads.LEAVE), np.int64(threads.ENTERING)
ROOM = np.int64(1 << 22)  # cells of the state for the notes of a member: their number, then pairs
MOST_MEMBERS = 64
FIRST = np.int64(parallel.state_size(MOST_MEMBERS))  # of the state: the notes, behind what counts
NAMES = ("barrier", "begin_step", "next_task", "assemble", "ThreadTeam")
REAL = [getattr(parallel, name) for name in NAMES]
real_barrier, real_begin_step, real_next_task, real_assemble, RealTeam = REAL
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
    if 2 * place + 1 < ROOM:
        team.state[start] = place
        team.state[start + 2 * place] = what
        team.state[start + 2 * place + 1] = now()


def meeting(what):
    """Return the barrier of a module."""

    def barrier(team):
        note(team, what)
        real_barrier(team)
        note(team, LEAVE)

    return made_kernel(barrier, f"{what}")


@kernel
def begin_step(team, by_caller):
    """As in the package."""
    counter = team.state[FIRST + ROOM * team.rank + ROOM - 1]
    note(team, np.int64(PHASE_OF_COUNTER[counter]))
    is_mine = real_begin_step(team, by_caller)
    note(team, LEAVE)
    return is_mine


@kernel
def next_task(team, counter, n_tasks):
    """As in the package."""
    team.state[FIRST + ROOM * team.rank + ROOM - 1] = counter
    return real_next_task(team, counter, n_tasks)


@kernel
def assemble(team):
    """As in the package."""
    note(team, ENTERING)
    is_there = real_assemble(team)
    note(team, LEAVE)
    return is_there


class NotedTeam(RealTeam):
    """A team whose notes are read after the fit."""

    notes = ()

    def __init__(self, n_threads):
        super().__init__(n_threads)
        state = self._state
        self._state = np.zeros(FIRST + ROOM * n_threads, dtype=np.int64)
        self._state[: len(state)] = state

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
        noting = (meeting(what), begin_step, next_task, assemble, NotedTeam)
        for name, real, other in zip(NAMES, REAL, noting, strict=True):
            if module is not parallel and vars(module).get(name) is real:
                setattr(module, name, other)


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


def main(name, settings, n_members, n_repeats):
    """Print a line of JSON for each fit."""
    replace_functions()
    dataset, n_members = datasets.load(name).as_float32(), int(n_members)
    settings = Settings(**json.loads(settings))
    fit(dataset, settings._replace(n_estimators=2), n_members)  # compiles
    all_notes, seconds, digests = zip(
        *(fit(dataset, settings, n_members) for _ in range(int(n_repeats))), strict=True
    )
    found = map(threads.waits, all_notes, seconds)
    for record, digest in zip(found, digests, strict=True):
        print(json.dumps({"digest": digest, **record}))


if __name__ == "__main__":
    main(*sys.argv[1:])
