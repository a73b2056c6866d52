import ctypes
import sys
import threading
import time
import weakref
from array import array

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.engine import parallel
from sklboost.engine.backend import PackedCall
from sklboost.engine.compiling import kernel
from sklboost.engine.instructions import (
    above,
    add_where,
    at_least,
    atomic_add,
    atomic_load,
    atomic_store,
    prefetch,
    prefetch_l2,
    trailing_zeros,
    yield_processor,
)
from sklboost.engine.parallel import (
    N_TASK_COUNTERS,
    SideBySide,
    Submitted,
    Team,
    ThreadTeam,
    _Job,
    assemble,
    barrier,
    begin_step,
    end_step,
    is_last,
    next_rows,
    next_task,
    reset_tasks,
    share,
    state_size,
    tell_helpers,
)

pytestmark = pytest.mark.timeout(60)

SIZES = [1, 2, 5]


# --- kernels of these tests ----------------------------------------------------------------------


@kernel
def meet(team, n_rounds, places, wrong):
    """Write the round's number, meet, and count the members whose number is another one."""
    if not assemble(team):
        return
    for round_ in range(n_rounds):
        places[8 * team.rank] = round_
        barrier(team)
        for rank in range(team.size):
            if places[8 * rank] != round_:
                atomic_add(wrong, 0, 1)
        barrier(team)


@kernel
def take_turns(team, n_rounds, by_caller, n_steps, wrong):
    """Let one member a round count the round, and count all that read another number after."""
    if not assemble(team):
        return
    for round_ in range(n_rounds):
        if begin_step(team, by_caller) == 1:
            n_steps[team.rank] += 1
            end_step(team)
        if n_steps.sum() != round_ + 1:
            atomic_add(wrong, 0, 1)
        barrier(team)


@kernel
def comes_last(team):
    return np.int64(is_last(team))


@kernel
def take_tasks(team, n_tasks, counter, taken):
    """Count in `taken` how often each task was given out; then begin again from 0."""
    if not assemble(team):
        return
    for _ in range(2):
        task = next_task(team, counter, n_tasks)
        while task < n_tasks:
            taken[task] += 1
            task = next_task(team, counter, n_tasks)
        barrier(team)
        if team.rank == 0:
            reset_tasks(team)
        barrier(team)


@kernel
def note_rank(team, ranks):
    if not assemble(team):
        return
    ranks[team.rank] += team.size


@kernel
def count_to(team, n, total):
    for _ in range(n):
        atomic_add(total, 0, 1)


def run(function, *arguments, size):
    with ThreadTeam(size) as team:
        assert team.size == size
        team.run(function, *arguments)


# --- one member ----------------------------------------------------------------------------------


def use_atomics(numbers):
    atomic_store(numbers, 1, 5)
    before = atomic_add(numbers, 1, 2)
    prefetch(numbers, 2, 0)
    prefetch_l2(numbers, 2, 0)
    yield_processor()
    return before, atomic_load(numbers, 1)


@pytest.mark.interpreted
@pytest.mark.parametrize("use", [kernel(use_atomics), use_atomics], ids=["kernel", "Python"])
def test_atomics(use):
    numbers = np.zeros(3, dtype=np.int64)
    assert use(numbers) == (5, 7)
    assert list(numbers) == [0, 7, 0]


@kernel
def count_trailing_zeros(bits):
    return trailing_zeros(bits)


@pytest.mark.interpreted
@pytest.mark.parametrize("count", [count_trailing_zeros, trailing_zeros])
def test_trailing_zeros(count):
    for bits, expected in [(1, 0), (2, 1), (12, 2), (2**63, 63), (2**64 - 1, 0)]:
        assert count(np.uint64(bits)) == expected


@kernel
def compare_and_add(values, threshold, numbers):
    bits = at_least(values, np.uint64(2), threshold)
    add_where(numbers, bits, np.uint8(3))
    return bits, above(values, np.uint64(2), threshold)


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_64_numbers_at_once(dtype):
    random = np.random.default_rng(0)
    values = random.normal(size=66).astype(dtype)
    values[[2, 7, 65]] = values[9]
    values[11] = np.nan
    numbers = random.integers(0, 50, 64).astype(np.uint8)
    is_at_least = values[2:] >= values[9]
    expected = numbers + 3 * is_at_least
    bits, bits_above = map(int, compare_and_add(values, values[9], numbers))
    assert [bits >> i & 1 for i in range(64)] == is_at_least.tolist()
    assert [bits_above >> i & 1 for i in range(64)] == (values[2:] > values[9]).tolist()
    assert_array_equal(numbers, expected)


@pytest.mark.interpreted
def test_a_team_of_one(monkeypatch):
    monkeypatch.delattr(parallel, "_Job")  # what helpers are told of
    ranks, taken, wrong = np.zeros(1, int), np.zeros(7, int), np.zeros(1, int)
    run(note_rank, ranks, size=1)
    run(meet, 3, np.zeros(8, int), wrong, size=1)
    run(take_tasks, 7, 0, taken, size=1)
    assert list(ranks) == [1]
    assert list(taken) == [2] * 7
    assert wrong[0] == 0


@pytest.mark.interpreted
@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("n_items", [0, 1, 5, 7, 100])
def test_shares_are_neighbours_of_about_equal_size(size, n_items):
    state = np.zeros(1, dtype=np.int64)
    shares = [share(Team(rank, size, state), n_items) for rank in range(size)]
    starts, stops = zip(*shares, strict=True)
    assert starts[0] == 0
    assert stops[-1] == n_items
    assert starts[1:] == stops[:-1]
    lengths = np.subtract(stops, starts)
    assert lengths.min() >= n_items // size
    assert lengths.max() <= -(-n_items // size)


# --- several members -----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 5])
def test_atomic_additions_lose_nothing(size):
    total = np.zeros(1, dtype=np.int64)
    run(count_to, 100_000, total, size=size)
    assert total[0] == 100_000 * size


@pytest.mark.parametrize("size", [*SIZES, 21])
def test_nobody_passes_a_barrier_alone(size):
    wrong = np.zeros(1, dtype=np.int64)
    run(meet, 300 if size <= 5 else 20, np.zeros(8 * size, dtype=np.int64), wrong, size=size)
    assert wrong[0] == 0


@pytest.mark.parametrize("by_caller", [0, 1])
@pytest.mark.parametrize("size", [*SIZES, 21])
def test_one_member_does_a_step_and_the_others_see_what_it_did(size, by_caller):
    n_rounds, wrong = 300 if size <= 5 else 20, np.zeros(1, dtype=np.int64)
    n_steps = np.zeros(size, dtype=np.int64)
    run(take_turns, n_rounds, np.int64(by_caller), n_steps, wrong, size=size)
    assert wrong[0] == 0
    assert n_steps.sum() == n_rounds
    if by_caller == 1:
        assert n_steps[0] == n_rounds


@pytest.mark.interpreted
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 16, 17, 21, 64, 65, 100])
def test_only_the_last_one_to_come_is_told_so(size):
    state, rng = np.zeros(state_size(size), dtype=np.int64), np.random.default_rng(size)
    for _ in range(5):
        order = rng.permutation(size)
        told = [comes_last(Team(rank, size, state)) for rank in order.tolist()]
        assert told == [0] * (size - 1) + [1]
        assert not state.any()  # ready for the next time


@pytest.mark.parametrize("counter", range(N_TASK_COUNTERS))
@pytest.mark.parametrize("size", SIZES)
def test_each_task_is_given_to_one_member(size, counter):
    taken = np.zeros(20_000, dtype=np.int64)
    run(take_tasks, len(taken), counter, taken, size=size)
    assert (taken == 2).all()  # once in each of two rounds


@pytest.mark.interpreted
def test_task_counters_are_independent():
    team, all_counters = Team(0, 1, np.zeros(state_size(1), dtype=np.int64)), range(N_TASK_COUNTERS)
    given = [[next_task(team, c, 9) for _ in range(c + 1)] for c in all_counters]
    assert given == [list(range(c + 1)) for c in all_counters]
    reset_tasks(team)
    assert [next_task(team, c, 9) for c in all_counters] == [0] * N_TASK_COUNTERS


@pytest.mark.interpreted
def test_a_member_takes_its_own_share_first_then_what_others_left():
    state = np.zeros(state_size(3), dtype=np.int64)
    first, second, third = (Team(rank, 3, state) for rank in range(3))
    # shares of 8: 0 and 1; 2, 3 and 4; 5, 6 and 7
    assert [next_task(second, 0, 8) for _ in range(4)] == [2, 3, 4, 5]
    assert [next_task(first, 0, 8) for _ in range(2)] == [0, 1]
    assert [next_task(third, 0, 8) for _ in range(3)] == [6, 7, 8]
    assert [next_task(team, 0, 8) for team in (first, second, third, first)] == [8] * 4


@pytest.mark.interpreted
@pytest.mark.parametrize("n_tasks", [0, 1, 2, 7])
def test_fewer_tasks_than_members(n_tasks):
    state = np.zeros(state_size(5), dtype=np.int64)
    given = [next_task(Team(rank, 5, state), 1, n_tasks) for _ in range(8) for rank in range(5)]
    assert sorted(given) == list(range(n_tasks)) + [n_tasks] * (40 - n_tasks)
    blocks_of_rows = Team(0, 1, np.zeros(state_size(1), dtype=np.int64))
    assert [next_rows(blocks_of_rows, 10, 4) for _ in range(4)] == [0, 4, 8, 12]


def test_counters_have_cache_lines_of_their_own():
    cells = [parallel._ENTERED, parallel._ABORTED, parallel._GENERATION]
    cells += [parallel._BEGUN, parallel._SERVED, parallel._WAITING]
    cells += [parallel._MEMBERS, parallel._GROUPS, parallel._CELL]
    assert np.diff(sorted(cells)).min() * 8 >= 64
    for size in SIZES:
        state = np.zeros(state_size(size), dtype=np.int64)
        for rank in range(size):
            for counter in range(N_TASK_COUNTERS):
                next_task(Team(rank, size, state), counter, size)
        used = np.flatnonzero(state[parallel._MEMBERS :])  # no cell for calls among them
        assert len(used) == size * N_TASK_COUNTERS  # each of its own
        of_member = used.reshape(size, N_TASK_COUNTERS)
        assert (of_member[1:, 0] - of_member[:-1, -1]).min(initial=64) * 8 >= 64


# --- errors --------------------------------------------------------------------------------------


def raise_in(rank, error, team, ranks):
    """Raise in one member before it enters the kernel, for which the others are waiting."""
    if team.rank == rank:
        raise error
    note_rank(team, ranks)


@pytest.mark.parametrize(
    ("size", "rank", "error"),
    [
        (1, 0, ValueError("broken")),
        (2, 0, KeyboardInterrupt()),
        (2, 1, ValueError("broken")),
        (5, 0, ValueError("broken")),
        (5, 3, KeyboardInterrupt()),
    ],
)
def test_an_error_before_the_team_has_assembled_ends_the_call(size, rank, error):
    ranks = np.zeros(size, dtype=np.int64)
    n_threads = threading.active_count()
    with ThreadTeam(size) as team:
        with pytest.raises(type(error)):
            team.run(lambda team: raise_in(rank, error, team, ranks))
        assert not ranks.any()  # nobody worked
        ranks[:] = 0
        team.run(note_rank, ranks)  # and the team, if smaller, still does
        assert list(ranks[: team.size]) == [team.size] * team.size
    assert threading.active_count() == n_threads


class InterruptedQueue:
    """A queue whose first `put` meets Ctrl-C."""

    def __init__(self, queue):
        self.queue, self.n_calls = queue, 0

    def put(self, job):
        self.n_calls += 1
        if self.n_calls == 1:
            raise KeyboardInterrupt
        self.queue.put(job)


@pytest.mark.parametrize(("kind", "settings"), [(ThreadTeam, (3,)), (SideBySide, (2, 1))])
def test_an_interrupt_at_any_line_of_the_start_leaves_no_thread_behind(kind, settings):
    n_threads, entrances = threading.active_count(), [kind.__enter__, parallel._Threads._start]
    codes = [function.__code__ for function in entrances]
    before, n_lines, n_allowed = sys.gettrace(), 0, 0

    def trace(frame, event, _):
        nonlocal n_lines
        if frame.f_code not in codes:
            return None
        n_lines += event == "line"
        if n_lines > n_allowed:
            raise KeyboardInterrupt
        return trace

    while True:
        threads, n_lines = kind(*settings), 0
        sys.settrace(trace)
        try:
            threads.__enter__()
        except KeyboardInterrupt:
            is_returning = len(threads._threads) == 2  # with all there is nothing left to do
        else:
            break
        finally:
            sys.settrace(before)
        if is_returning:
            threads.__exit__()
        assert threading.active_count() == n_threads
        n_allowed += 1
    threads.__exit__()
    assert threading.active_count() == n_threads
    assert n_allowed > 8


def test_an_interrupt_while_the_work_is_handed_out():
    n_threads = threading.active_count()
    ranks = np.zeros(3, dtype=np.int64)
    with ThreadTeam(3) as team:
        team._queues[1] = InterruptedQueue(team._queues[1])
        with pytest.raises(KeyboardInterrupt):
            team.run(note_rank, ranks)  # the first helper has the job already
    assert threading.active_count() == n_threads
    assert not ranks.any()


def test_a_second_interrupt_while_the_first_is_handled(monkeypatch):
    n_threads = threading.active_count()
    calls, abort = [], _Job.abort

    def interrupted_once(job):
        calls.append(job)
        if len(calls) == 1:
            raise KeyboardInterrupt
        abort(job)

    monkeypatch.setattr(_Job, "abort", interrupted_once)
    ranks = np.zeros(3, dtype=np.int64)
    with pytest.raises(KeyboardInterrupt), ThreadTeam(3) as team:  # noqa: PT012
        team._queues[1] = InterruptedQueue(team._queues[1])
        team.run(note_rank, ranks)
    assert len(calls) > 1
    assert threading.active_count() == n_threads
    assert not ranks.any()


def test_threads_end_with_the_team_and_errors_in_everybody_give_one():
    def fail(team):
        raise ValueError(f"member {team.rank}")

    n_threads = threading.active_count()
    with pytest.raises(ValueError, match="member 0"), ThreadTeam(4) as team:  # noqa: PT012
        assert threading.active_count() == n_threads + 3
        assert team.size == 4
        team.run(fail)
    assert threading.active_count() == n_threads
    assert team.size == 1


def test_helpers_wait_awake_for_the_next_call_but_not_for_ever():
    ranks = np.zeros(2, dtype=np.int64)
    with ThreadTeam(2) as team:
        for _ in range(3):
            team.run(note_rank, ranks)
        assert team._state[parallel._BEGUN] == 3
        for pause in (0.0, 0.1):  # still awake, asleep
            time.sleep(pause)
            team.run(note_rank, ranks)
        team.run(lambda team: None)  # does not assemble: told in another way
        team.run(note_rank, ranks)
        assert team._state[parallel._BEGUN] == 7
    before = time.process_time()
    with ThreadTeam(2) as team:
        team.run(note_rank, ranks)
        time.sleep(0.5)
        assert time.process_time() - before < 0.25


def test_a_helper_that_cannot_wait_awake_waits_asleep(monkeypatch):
    def fail(*arguments):
        raise MemoryError

    monkeypatch.setattr(parallel, "serve", fail)
    ranks = np.zeros(2, dtype=np.int64)
    with ThreadTeam(2) as team:
        for _ in range(2):
            ranks[:] = 0
            team.run(note_rank, ranks)
            assert list(ranks) == [2, 2]


PACKED_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)


def packed_calls(function, groups, arguments):
    """Return calls as of machine code, which in fact call a kernel of these tests or Python."""

    def call_of(team):
        def packed_function(words, result):
            try:
                function(team, *arguments)
            except ValueError:
                return 1
            return 0

        address = PACKED_FUNCTION(packed_function)
        return PackedCall("call", address, "none", array("q", [team.rank]), [])

    return list(map(call_of, groups))


@pytest.mark.parametrize("size", [2, 3, 7])
def test_helpers_that_are_awake_are_told_of_machine_code_in_their_cells(size, monkeypatch):
    ranks, team = np.zeros(size, dtype=np.int64), ThreadTeam(size)
    for times in (1, 2):  # a team may be entered again
        with team:
            team.run(note_rank, ranks)
            before = team._n_served
            with monkeypatch.context() as packed:
                packed.setattr(parallel, "calls_of", packed_calls)
                for _ in range(20):
                    team.run(note_rank, ranks)
                n_served, state = team._n_served, team._state
                while (state[parallel._CELL :: parallel.FAR_APART][1:] != parallel._AWAY).any():
                    time.sleep(0.01)
                team.run(note_rank, ranks)  # they are asleep, and told in their queues
                assert team._n_served == n_served
                team.run(lambda team: None)  # does not assemble
            assert n_served - before > 10 * (size - 1)
            team.run(note_rank, ranks)  # Python's calls, again
            assert list(ranks) == [23 * size * times] * size
            assert team._state[parallel._SERVED] == team._n_served


@pytest.mark.parametrize("rank", [0, 1])
def test_machine_code_that_fails_in_a_member_ends_the_call(rank, monkeypatch):
    ranks, n_threads = np.zeros(2, dtype=np.int64), threading.active_count()
    monkeypatch.setattr(parallel, "calls_of", packed_calls)
    with pytest.raises(RuntimeError, match="failed"), ThreadTeam(2) as team:  # noqa: PT012
        for _ in range(3):
            team.run(note_rank, ranks)
        team.run(lambda team: raise_in(rank, ValueError(), team, ranks))
    assert list(ranks) == [6, 6]
    assert threading.active_count() == n_threads


def test_an_interrupt_after_helpers_were_told_in_their_cells(monkeypatch):
    """The caller is interrupted before it enters the call that the helpers are in."""
    ranks, n_threads = np.zeros(3, dtype=np.int64), threading.active_count()
    monkeypatch.setattr(parallel, "calls_of", packed_calls)
    with pytest.raises(KeyboardInterrupt), ThreadTeam(3) as team:  # noqa: PT012
        for _ in range(3):
            team.run(note_rank, ranks)
        before = ranks.copy()

        def interrupted(*given):
            tell_helpers(*given)
            raise KeyboardInterrupt

        monkeypatch.setattr(parallel, "tell_helpers", interrupted)
        team.run(note_rank, ranks)
    assert list(ranks) == list(before)
    assert threading.active_count() == n_threads


def test_the_caller_tells_the_helpers_when_it_assembles():
    """Not before: it holds the interpreter's lock then, for which a helper would sleep."""
    state = np.zeros(state_size(2), dtype=np.int64)
    state[parallel._ENTERED] = 1
    assert assemble(Team(1, 2, state))
    assert state[parallel._BEGUN] == 0
    assert assemble(Team(0, 2, state))
    assert state[parallel._BEGUN] == 1


def test_idle_threads_keep_no_arguments():
    class Argument:
        pass

    with ThreadTeam(2) as team:
        argument = Argument()
        team.run(lambda team, argument: None, argument)
        reference = weakref.ref(argument)
        del argument
        assert reference() is None


def test_a_smaller_team_where_the_system_refuses_threads(monkeypatch):
    start = threading.Thread.start
    n_started = []

    def refuse_the_third(thread):
        n_started.append(thread)
        if len(n_started) == 3:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_the_third)
    ranks = np.zeros(5, dtype=np.int64)
    with ThreadTeam(5) as team:
        assert team.size == 3
        team.run(note_rank, ranks)
    assert list(ranks) == [3, 3, 3, 0, 0]


@pytest.mark.parametrize("make", [lambda: ThreadTeam(3), lambda: SideBySide(2, n_threads=1)])
def test_an_error_of_a_start_that_was_interrupted_is_raised(make, monkeypatch):
    """As from Python's lock, if Ctrl-C comes while it waits for the thread to begin."""
    start, before = threading.Thread.start, set(threading.enumerate())

    def interrupted(thread):
        start(thread)
        try:
            raise KeyboardInterrupt
        finally:
            threading.Lock().release()

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(RuntimeError, match="unlocked"), make():
        pass
    assert set(threading.enumerate()) <= before


def test_a_team_whose_end_is_interrupted_works_alone_afterwards(monkeypatch):
    join, joined, ranks = threading.Thread.join, [], np.zeros(2, dtype=np.int64)

    def interrupted(thread):
        joined.append(thread)
        raise KeyboardInterrupt

    def work(team):
        if team.rank == 0:
            raise KeyboardInterrupt

    with ThreadTeam(2) as team:
        monkeypatch.setattr(threading.Thread, "join", interrupted)
        with pytest.raises(KeyboardInterrupt):
            team.run(work)
        team.run(note_rank, ranks)
        assert list(ranks) == [1, 0]
        monkeypatch.setattr(threading.Thread, "join", join)
    (helper,) = joined
    assert not helper.is_alive()


# --- tasks side by side ---------------------------------------------------------------------------


def submit(beside, function, *arguments):
    """Submit a task; return its Future."""
    future = Submitted()
    beside.submit(future, function, *arguments)
    return future


def test_tasks_side_by_side_begin_in_order_with_teams_of_their_own():
    begun, both, ends = [], threading.Barrier(3, timeout=30), [threading.Event(), threading.Event()]

    def task(team, number):
        begun.append((number, team.size, np.geterr()["over"]))
        if number < 2:
            both.wait()
            ends[number].wait(30)
        elif number == 3:
            raise MemoryError(f"of {number}")

    with SideBySide(2, n_threads=2) as beside:
        with np.errstate(over="raise"):
            tasks = [submit(beside, task, number) for number in range(5)]
        both.wait()  # the first two run at the same time
        assert sorted(begun) == [(0, 2, "raise"), (1, 2, "raise")]
        assert [each.cancel() for each in tasks] == [False, False, True, True, True]
        assert not beside.wait(tasks[0], 0.0)
        tasks[3:] = [submit(beside, task, number) for number in (3, 4)]
        ends[0].set()
        with pytest.raises(MemoryError, match="of 3"):
            tasks[3].result()
        assert beside.wait(tasks[4], 30)  # in the thread that is free
        assert [number for number, *_ in begun][2:] == [3, 4]
        ends[1].set()
    assert all(each.done() for each in tasks)


@pytest.mark.parametrize("raised", [RuntimeError("can't start new thread"), KeyboardInterrupt()])
def test_threads_side_by_side_where_not_all_start(raised, monkeypatch):
    start, started, before = threading.Thread.start, [], set(threading.enumerate())

    def start_one(thread):
        start(thread)
        started.append(thread)
        if len(started) == 2:
            raise raised

    def refuse_the_second(thread):
        if started:
            raise raised
        start_one(thread)

    is_limit = isinstance(raised, RuntimeError)
    monkeypatch.setattr(threading.Thread, "start", refuse_the_second if is_limit else start_one)
    beside = SideBySide(3, n_threads=1)
    if is_limit:
        with beside:
            assert beside.size == 1
            submit(beside, lambda team: None).result()
    else:
        with pytest.raises(KeyboardInterrupt):
            beside.__enter__()
    assert set(threading.enumerate()) <= before


def test_a_second_ctrl_c_waits_for_tasks_side_by_side_all_the_same(monkeypatch):
    end, join, joined = threading.Event(), threading.Thread.join, []

    def interrupted(thread):
        joined.append(thread)
        if len(joined) == 1:
            raise KeyboardInterrupt
        end.set()
        join(thread)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    given_up = []
    beside = SideBySide(2, n_threads=1, give_up=lambda: given_up.append(len(joined)))
    with pytest.raises(KeyboardInterrupt), beside:
        task = submit(beside, lambda team: end.wait(30))
    assert task.done()
    assert given_up == [0, 1]  # before it waits, each time
    assert not any(thread.is_alive() for thread in joined)
