"""A team of threads that runs one kernel together: the only file of the package with threads."""

import ctypes
import math
import os
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from multiprocessing import current_process
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeAlias

import joblib
import numpy as np
from joblib.parallel import ThreadingBackend, get_active_backend

from sklboost.engine.backend import BACKEND, Backend, PackedCall, calls_of
from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.instructions import (
    atomic_add,
    atomic_load,
    atomic_store,
    call_packed,
    pause,
    yield_processor,
)

# A task is small if no more threads are useful for it, and it is done no more times.
_FEW_THREADS, _FEW_TIMES = 4, 200


def default_n_threads() -> int:
    """Return the number of threads this process may use without crowding others out.

    The smallest of the processors it may run on (affinity and cgroup quota), the limit that joblib
    sets in its worker processes, and 1 in joblib's worker threads, whose number is not known. It is
    1, too, in a task of a Dask worker, which has a thread for each of its tasks, and in processes
    of a ``multiprocessing.Pool``.
    """
    # before joblib is asked, which would warn, or ask Dask's scheduler how large the cluster is
    if current_process().daemon or library_of_task():
        return 1
    limits: list[int] = [joblib.cpu_count(), joblib.effective_n_jobs(-1)]
    inner_limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]  # a list: by nesting
    if inner_limit.isdigit() and int(inner_limit) > 0:
        limits.append(int(inner_limit))
    return max(1, min(limits))


def is_main_thread() -> bool:
    """Whether this is the main thread of a process that no pool has started for its work."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and current_process().name == "MainProcess"


def library_of_task() -> str:
    """Return whose task this thread works on: ``"dask"``, ``"joblib"``, or ``""`` for its own.

    Dask is not imported to know that. Of joblib, a task in a worker thread or a worker process.
    """
    state = getattr(sys.modules.get("distributed.utils"), "thread_state", None)
    if hasattr(state, "execution_state"):
        return "dask"
    backend, _ = get_active_backend()
    is_joblib = isinstance(backend, ThreadingBackend) and backend.nesting_level > 0
    return "joblib" if is_joblib else ""


def n_threads_for(n_jobs: int | None, work: int, unit: int, n_times: int = 1) -> int:
    """Return the number of threads for a task that is done `n_times`, as for each round.

    `n_jobs` is the most the user allows; None: :func:`default_n_threads`, -1: all processors, -2:
    all but one, ... `unit` is the work that one thread does in the time that another one costs.
    Each thread takes its share of the `work` and adds its cost, so the least time is where their
    number is the square root of the units. A small task has no more than find a processor at once:
    to wait takes longer than they save.
    """
    n_useful = max(1, math.isqrt(work // unit))
    if n_useful == 1:
        return 1  # to learn the limits of this process takes longer than predicting a row
    limit = most_threads(n_jobs)
    if limit > 1 and n_useful <= _FEW_THREADS and n_times <= _FEW_TIMES:
        limit = n_that_find_one(limit)
    return min(limit, n_useful)


def most_threads(n_jobs: int | None) -> int:
    """Return the most threads that the user allows, or else the process."""
    if n_jobs is None:
        return default_n_threads()
    return n_jobs if n_jobs > 0 else max(1, joblib.cpu_count() + 1 + n_jobs)


_LOAD = Path("/proc/loadavg")


def _find_getcpu() -> Callable[[], int]:
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            # which keeps the interpreter's lock: the call takes less time than giving it back
            getcpu: Callable[[], int] = ctypes.PyDLL(None).sched_getcpu
            return getcpu
    return lambda: -1


# Returns the number of the processor that this thread runs on; -1 if that is unknown.
current_processor = _find_getcpu()


def allowed_processors() -> set[int]:
    """Return the processors that this thread may run on; an empty set if they are unknown."""
    if sys.platform == "linux":
        with suppress(OSError):
            return os.sched_getaffinity(0)
    return set()


def n_spare_processors(allowed: set[int]) -> int | None:
    """Return the number of processors less the number of threads that run or wait for one.

    It is negative on a busy machine. None if it is unknown, for example if `allowed`, the
    processors that this thread may run on, are not all.
    """
    with suppress(OSError, ValueError, IndexError):
        if len(allowed) == os.cpu_count():
            n_running, _ = _LOAD.read_bytes().split()[3].split(b"/")
            return len(allowed) - int(n_running)
    return None


def n_that_find_one(limit: int) -> int:
    """Return how many of `limit` threads, this one among them, have a processor at once.

    At least 1; all if that is unknown.
    """
    n_spare = n_spare_processors(allowed_processors())
    return limit if n_spare is None else max(1, min(limit, 1 + n_spare))


class Placement:
    """Where the members of a team were last seen.

    Made by the caller's thread, which is member 0 and never moved.
    """

    def __init__(self, n_members: int):
        self._processors = [-1] * n_members
        self._has_moved = [False] * n_members
        self._allowed = allowed_processors() if n_members > 1 else set()

    def look(self, rank: int) -> None:
        """Note where a member is, to be called by itself."""
        self._processors[rank] = current_processor()

    def run_apart(self, rank: int, run: Callable[[int], None]) -> None:
        """Call ``run(rank)`` in a helper, on a processor of its own if one is idle."""
        # without memory, say, it runs where it is
        with suppress(Exception):
            self._move_apart(rank)
        run(rank)
        with suppress(Exception):  # it may run on all processors again
            if self._has_moved[rank]:
                _run_on(self._allowed)
                self._has_moved[rank] = False

    def _move_apart(self, rank: int) -> None:
        """Move this helper off the processor of another member, if it is there.

        But only if another processor is idle: sharing one with a thread of another program, or of
        a library that waits for work without sleeping, is slower than sharing it with its team.
        """
        self.look(rank)
        taken = {*self._processors[:rank], *self._processors[rank + 1 :]} - {-1}
        others, here = self._allowed - taken, self._processors[rank]
        if here not in taken or not others:
            return
        n_spare = n_spare_processors(self._allowed)
        # 0 is enough, since two of the threads that were counted share a processor
        if n_spare is not None and n_spare >= 0:
            self._has_moved[rank] = True
            _run_on(others)
            self.look(rank)


def _run_on(processors: set[int]) -> None:
    if sys.platform == "linux":
        with suppress(OSError):
            os.sched_setaffinity(0, processors)


# Cells of ``Team.state``. Each has a cache line of its own (8 int64): neighbours on one line would
# make every member's spin slow down every other member's work.
_LINE = 8
# The first three go on counting through all calls: calls begun, calls that helpers have finished of
# which they were told in their cell, and how often they began to wait for these.
_BEGUN, _SERVED, _WAITING, _ENTERED, _ABORTED, _GENERATION, _MEMBERS = (_LINE * i for i in range(7))
# From the last on, each member has its counters of tasks, all on one line, on the next line the
# counters of the groups that it leads at a barrier, and on the third its cell for calls.
N_TASK_COUNTERS = 5
# Kernels keep what each member writes so many words or records apart, for the same reason.
FAR_APART = 3 * _LINE
_GROUPS, _CELL = _MEMBERS + _LINE, _MEMBERS + 2 * _LINE
# In a helper's cell: it waits awake; it does not, and looks at its queue. Else the address of the
# words of a call; the address of the function is behind it.
_AWAKE, _AWAY = np.int64(0), np.int64(1)
# Of so many members, or groups, the last one to come to a barrier is told at one counter.
_GROUP_BITS = np.int64(2)
GROUP_SIZE = 1 << int(_GROUP_BITS)

# What `assemble` returns: numbers, since Python calls it, too, to which wheels give no bool.
_ASSEMBLED, _ABANDONED = np.int64(1), np.int64(0)
# A barrier is usually over in less time than a system call takes, so members first spin; a turn
# takes 20 to 70 ns.
_SPINS_BEFORE_YIELD = 100
# Between two calls members stay awake, for a millisecond or two: a thread that is woken may start
# late, see `Placement`.
_SPINS_BEFORE_SLEEP = 5000


class Team(NamedTuple):
    """The team of a kernel, as one member has it."""

    rank: int  # this member's number, 0 to ``size - 1``
    size: int  # number of members
    # int64, shape (state_size(size),) or more: the counters that all members share
    state: np.ndarray


# --- what kernels call


@kernel
def assemble(team):
    """Wait until the whole team is inside the kernel; return 0 if the call was aborted, else 1.

    Nothing has been read or written yet, so here, and only here, a member may leave safely: when
    another one failed to start, or Ctrl-C reached the main thread before it entered.
    """
    if team.size == 1:
        return _ASSEMBLED
    if team.rank == 0:
        # Only now, when this thread no longer holds the interpreter's lock: a helper that found it
        # taken would go to sleep.
        atomic_add(team.state, _BEGUN, 1)
    atomic_add(team.state, _ENTERED, 1)
    spins = 0
    while atomic_load(team.state, _ENTERED) < team.size:
        if atomic_load(team.state, _ABORTED) != 0:
            return _ABANDONED
        spins = wait_a_moment(spins)
    return _ASSEMBLED


@inlined
def wait_a_moment(spins):
    """Wait before looking again for what another thread does; return the number of looks so far."""
    pause()
    if spins > _SPINS_BEFORE_YIELD:
        yield_processor()
    return spins + 1


@kernel
def barrier(team):
    """Wait for every member; what any of them wrote before is seen by all of them after."""
    if team.size > 1 and begin_step(team, np.int64(0)) == 1:
        end_step(team)


@kernel
def begin_step(team, by_caller):
    """Wait for every member; return 1 to the one that does the serial step that follows, else 0.

    It is the last member to come, so that no one waits for it once more; or, if `by_caller` is 1,
    member 0, whose thread may call Python. The others return when it calls :func:`end_step`.
    """
    if team.size == 1:
        return np.int64(1)
    generation, is_mine = atomic_load(team.state, _GENERATION), np.int64(0)
    if is_last(team):
        if by_caller == 0:
            return np.int64(1)
        atomic_store(team.state, _GENERATION, generation + 1)  # all are there
    if by_caller == 1 and team.rank == 0:
        is_mine = np.int64(1)
    least, spins = generation + 1 + by_caller - is_mine, 0
    while atomic_load(team.state, _GENERATION) < least:
        spins = wait_a_moment(spins)
    return is_mine


@kernel
def end_step(team):
    """End a serial step; what was written in it is seen by all members after."""
    atomic_store(team.state, _GENERATION, atomic_load(team.state, _GENERATION) + 1)


@inlined
def is_last(team):
    """Note that this member has come to a barrier; whether it is the last one of the team.

    Members meet in groups of four, the last ones of these groups in groups of four, and so on: the
    counter of one group is not what 64 members wait for in turn (a combining tree, Mellor-Crummey
    and Scott, 1991).
    """
    leader, shift, cell = np.int64(team.rank), np.int64(0), np.int64(_GROUPS)
    while team.size > 1 << shift:
        leader &= -(np.int64(1) << (shift + _GROUP_BITS))
        n_others = min(GROUP_SIZE, ((team.size - leader - 1) >> shift) + 1) - 1
        counter = cell + FAR_APART * leader
        if atomic_add(team.state, counter, 1) < n_others:
            return False
        atomic_store(team.state, counter, 0)
        shift += _GROUP_BITS
        cell += 1
    return True


@kernel
def next_task(team, counter, n_tasks):
    """Return each of ``0, ..., n_tasks - 1`` to one asking member, then `n_tasks`.

    A member is given the tasks of its share first, in order, and then those that are left of the
    other members' shares. So the same rows mostly go to the same member in every phase, in whose
    cache they are. Until the counter is reset `n_tasks` is the same in all calls.
    ``counter < N_TASK_COUNTERS``.
    """
    for step in range(team.size):
        owner = (team.rank + step) % team.size
        # the member's share, as `share` says: the same of rows, blocks and tasks
        start, stop = n_tasks * owner // team.size, n_tasks * (owner + 1) // team.size
        cell = _MEMBERS + FAR_APART * owner + counter
        # first only read: who adds takes the line from the cache of its owner
        if start < stop and start + atomic_load(team.state, cell) < stop:
            task = start + atomic_add(team.state, cell, 1)
            if task < stop:
                return task
    return n_tasks


@inlined
def next_rows(team, n_samples, n_rows):
    """Return the first row of the next block of `n_rows`; `n_samples` or more: none is left."""
    return next_task(team, np.int64(0), (n_samples + n_rows - 1) // n_rows) * n_rows


@kernel
def reset_tasks(team):
    """Start all task counters again. One member calls it, between two barriers."""
    for owner in range(team.size):
        for counter in range(N_TASK_COUNTERS):
            atomic_store(team.state, _MEMBERS + FAR_APART * owner + counter, 0)


@kernel
def serve(state, rank, n_calls):
    """Do the calls that this helper is told of in its cell; return how many it has done in all.

    It ends, and the helper looks at its queue, when a call has begun that is told of there, or
    after some milliseconds without one. A call in the cell begins without the interpreter's lock.
    """
    atomic_add(state, _WAITING, 1)
    cell = _CELL + FAR_APART * rank
    if atomic_add(state, cell, _AWAKE - _AWAY) != _AWAY:
        return n_calls  # the next call is in the queue already
    while True:
        spins = 0
        while spins < _SPINS_BEFORE_SLEEP and atomic_load(state, cell) == _AWAKE:
            if atomic_load(state, _BEGUN) > n_calls and atomic_load(state, cell) == _AWAKE:
                break
            spins = wait_a_moment(spins)
        words = atomic_add(state, cell, _AWAY - _AWAKE)
        if words == _AWAKE:
            return n_calls
        atomic_store(state, cell, _AWAKE)
        if call_packed(state[cell + 1], words) != 0:
            atomic_store(state, _ABORTED, 1)
        n_calls += 1
        atomic_add(state, _SERVED, 1)


@kernel
def tell_helpers(state, addresses, are_away):
    """Tell the helpers of a call in their cells; where ``are_away[rank]`` is 1 that does not help.

    `addresses`, int64, shape (size, 2): of the function, and of the words of each member.
    """
    for rank in range(1, len(addresses)):
        cell = _CELL + FAR_APART * rank
        state[cell + 1] = addresses[rank, 0]
        are_away[rank] = np.int64(atomic_add(state, cell, addresses[rank, 1]) != _AWAKE)


@kernel
def await_helpers(state, counter, least, is_patient):
    """Wait, awake, until a counter is `least`; unless patient not for ever."""
    spins = 0
    while atomic_load(state, counter) < least and (is_patient or spins < _SPINS_BEFORE_SLEEP):
        spins = wait_a_moment(spins)


@inlined
def share(team, n_items):
    """Return the half-open range of this member's share of `n_items` equal items."""
    return n_items * team.rank // team.size, n_items * (team.rank + 1) // team.size


# --- what Python calls


def state_size(n_members: int) -> int:
    """Return the length of ``Team.state``."""
    return _MEMBERS + FAR_APART * n_members


class ThreadMemory(threading.local):
    """A dictionary of each thread's own, `kept`, which ends with the thread."""

    def __init__(self) -> None:
        self.kept: dict[Any, Any] = {}


class _Job:
    """A kernel called by the whole team: the call of each member, and how it ended."""

    def __init__(self, calls: list[Any], state: np.ndarray):
        self.calls = calls
        self.state = state
        self.error: BaseException | None = None
        self.finished = threading.Semaphore(0)

    def abort(self) -> None:
        self.state[_ABORTED] = 1

    def run_as_helper(self, rank: int) -> None:
        try:
            self.calls[rank]()
        except BaseException as error:  # handed to the caller's thread, which raises it
            self.error = error
            self.abort()
        finally:
            self.finished.release()


class _Threads:
    """A context manager of threads, which do what comes in their queues until it is None.

    They end with it, also if Ctrl-C comes while they start, work or end. Where the system refuses
    more threads there are fewer.
    """

    size: int  # number of threads, with the caller's if that is one of them
    _n_callers: int  # 1 if it is, else 0
    _queues: list[SimpleQueue[Any]]  # of each thread, like the next
    _threads: list[threading.Thread]

    def _start(self, work: Callable[..., None], arguments: Iterable[tuple[Any, ...]]) -> None:
        """Start threads that call ``work(queue, *others)`` with these arguments."""
        try:
            for queue, *others in arguments:
                thread = threading.Thread(target=work, args=(queue, *others), daemon=True)
                # listed before it starts, so that Ctrl-C during its start leaves none behind
                self._queues.append(queue)
                self._threads.append(thread)
                thread.start()
                self.size += 1
        except BaseException as error:
            # Python's own error is for the system's limit on threads. One that comes of Ctrl-C, or
            # from a handler of signals, is no sign that the thread does not run.
            if type(error) is not RuntimeError or error.__context__ is not None:
                self._end()
                raise
            self._queues.pop()
            self._threads.pop()

    def __exit__(self, *exception: object) -> None:
        try:
            self._end()
        except BaseException:  # Ctrl-C while waiting for the threads to end
            self._end()
            raise

    def _end(self) -> None:
        self.size = self._n_callers  # first: if Ctrl-C comes now, they are asked for nothing more
        for queue in self._queues:
            queue.put(None)
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        self._queues.clear()
        self._threads.clear()


class ThreadTeam(_Threads):
    """`n_threads` threads, the caller's among them, that run kernels together.

    A context manager: the helper threads start at its beginning and end with it. With 1 no thread
    is started. Where the system refuses more threads the team is smaller; the results are the same
    bits whatever its size.
    """

    _n_callers = 1
    _placement: Placement  # of a team of several

    def __init__(self, n_threads: int):
        self.size, self._queues, self._threads = 1, [], []
        self._n_threads = n_threads
        self._job: _Job | None = None
        self._state = np.zeros(state_size(n_threads), dtype=np.int64)
        self._n_calls = 0
        # how often helpers were told of a call in their cell, and in their queue
        self._n_served = self._n_queued = 0

    def __enter__(self) -> "ThreadTeam":
        # interpreted, the atomics are not atomic: one member only
        if self._n_threads > 1 and BACKEND is not Backend.INTERPRETER:
            # a team may be entered again: new helpers count from 0, and leave old ones alone
            self._state = np.zeros_like(self._state)
            self._state[_CELL : state_size(self._n_threads) : FAR_APART] = _AWAY
            self._n_calls = self._n_served = self._n_queued = 0
            self._placement = Placement(self._n_threads)
            shared = (self._state, self._placement)
            ranks = range(1, self._n_threads)
            self._start(_serve, ((SimpleQueue(), rank, *shared) for rank in ranks))
        return self

    def _end(self) -> None:
        # first, and again at each call: a second Ctrl-C may have come before it was done
        if self._job is not None:
            self._job.abort()
        self._state[_BEGUN] = self._n_calls + 1  # who waits awake looks at the queue now
        super()._end()

    def run(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call ``function(team, *arguments)`` on every member and return when all are done.

        Raises what a member raised before the team had assembled, KeyboardInterrupt included; no
        member is still running then.
        """
        if self.size == 1:  # a job would take a tenth of the time of predicting a row
            self._state[_ENTERED : state_size(self._n_threads)] = 0
            function(Team(0, 1, self._state), *arguments)
            return
        self._state[_ENTERED:_MEMBERS] = 0
        counters = self._state[_MEMBERS : state_size(self._n_threads)].reshape(-1, FAR_APART)
        counters[:, : _CELL - _MEMBERS] = 0
        try:
            # by this thread, for all: Python's part of a call is done under the interpreter's lock
            teams = [Team(rank, self.size, self._state) for rank in range(self.size)]
            job = self._job = _Job(calls_of(function, teams, arguments), self._state)
            self._n_calls += 1
            self._placement.look(0)
            queues = self._tell(job)
            job.calls[0]()
            if len(queues) < len(self._queues):
                await_helpers(self._state, _SERVED, self._n_served, True)
            if queues:  # in vain, at times: then it waits asleep
                n_waits = len(self._threads) + self._n_queued
                await_helpers(self._state, _WAITING, n_waits, False)
            for _ in queues:
                job.finished.acquire()
            self._state[_BEGUN] = self._n_calls  # also if the function did not assemble
        except BaseException:
            # Ctrl-C can come anywhere above. A member that waits to assemble returns; one that is
            # past that has the whole team with it and ends by itself. Then join, so that nothing
            # that the caller frees is still written to.
            self._end()
            raise
        self._job = None
        job.calls = []  # idle threads keep their last job, and must not keep arrays with it
        if job.error is not None:
            raise job.error
        if self._state[_ABORTED] != 0:
            raise RuntimeError(f"{function} failed in a helper")

    def _tell(self, job: _Job) -> list[SimpleQueue[_Job | None]]:
        """Tell the helpers of a job; return the queues in which some were told.

        A call of machine code they are told of in their cells, if they are awake.
        """
        queues = self._queues
        if all(isinstance(call, PackedCall) for call in job.calls):
            addresses = np.array([call.addresses for call in job.calls], dtype=np.int64)
            are_away = np.zeros(self.size, dtype=np.int64)
            tell_helpers(self._state, addresses, are_away)
            queues = [queue for queue, away in zip(queues, are_away[1:], strict=True) if away]
        self._n_queued += len(queues)
        self._n_served += len(self._queues) - len(queues)
        for queue in queues:
            queue.put(job)
        return queues


Submitted: TypeAlias = Future[None]  # a task


class SideBySide(_Threads):
    """Up to `n_tasks` threads that do tasks beside the caller's, each with a ThreadTeam of its own.

    A context manager: the threads end with it, after the tasks that they have begun, which
    `give_up` is to cut short. Where the system refuses more threads there are fewer, or none: then
    nothing must be submitted.
    """

    _n_callers = 0

    def __init__(self, n_tasks: int, n_threads: int, give_up: Callable[[], None] | None = None):
        self.size, self._queues, self._threads = 0, [], []
        self._n_tasks, self._n_threads, self._give_up = n_tasks, n_threads, give_up
        self._queue: SimpleQueue[tuple[Submitted, Callable[[], None]] | None] = SimpleQueue()

    def __enter__(self) -> "SideBySide":
        self._start(_work, [(self._queue,)] * self._n_tasks)
        return self

    def submit(self, future: Submitted, function: Callable[..., None], *arguments: Any) -> None:
        """Let ``function(team, *arguments)`` be called, under the caller's ``np.errstate``.

        Tasks are begun in the order in which they are submitted; until then they can be cancelled.
        """
        call = partial(self._call, function, *arguments)
        self._queue.put((future, partial(copy_context().run, call)))

    def wait(self, future: Submitted, seconds: float) -> bool:
        """Wait so long for a task; whether it has ended."""
        return len(wait([future], seconds).done) > 0

    def _end(self) -> None:
        if self._give_up is not None:
            self._give_up()
        super()._end()
        self._give_up = None  # its owner refers to this, and would only be freed by and by

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        with ThreadTeam(self._n_threads) as team:
            function(team, *arguments)


def _work(queue: SimpleQueue[tuple[Submitted, Callable[[], None]] | None]) -> None:
    while (task := queue.get()) is not None:
        future, call = task
        if future.set_running_or_notify_cancel():
            try:
                call()
                future.set_result(None)
            except BaseException as error:  # raised where the result is asked for
                future.set_exception(error)
        del task, future, call  # an idle thread keeps no arrays


def _serve(
    queue: SimpleQueue[_Job | None], rank: int, state: np.ndarray, placement: Placement
) -> None:
    n_calls, cell = 0, _CELL + FAR_APART * rank
    while True:
        with suppress(Exception):  # no memory, say: then it waits asleep
            n_calls = serve(state, rank, n_calls)
        job = queue.get()
        if job is None:
            return
        state[cell] = _AWAY
        placement.run_apart(rank, job.run_as_helper)
        n_calls += 1
