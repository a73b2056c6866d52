"""How long members of a team wait for one another, and what teams of many cores would do.

Each fit is in a process of its own, see `threads_child.py`, whose functions note when members come
and go; it has the trees of a plain fit, or there is an error. A record of the kind "waits" is one
fit of a real team, pinned to the first two processors; `waits` reads its notes. A record of the
kind "cores" is of a model, for a team that need not fit this machine: `replay` takes the notes of
one thread that did the work of a team alone, piece by piece, and gives the pieces to simulated
members: a serial piece to member 0, a task to the member that is free first, a share to all.

Run `python -m benchmarks.threads`; it writes `threads.jsonl` and `.md`.
"""

import hashlib
import heapq
import json
import math
import os
import subprocess
import sys
import time

import numpy as np

from sklboost.engine.parallel import GROUP_SIZE

from . import datasets, peers, runner
from .runner import OURS

PROCESSORS = 2

# Where members meet. A note of a share is SHARE + N_NOTES * its number of items.
PHASES = ("gradients", "serial steps", "histograms", "rows", "split search", "other")
PHASES += ("beginning of a call",)
_HISTOGRAMS = PHASES.index("histograms")
ENTERING, LEAVE, TASK, SERIAL, SHARE, N_NOTES = range(len(PHASES) - 1, len(PHASES) + 5)
# Seconds in which a cache line comes from another core: of one socket, of two.
LATENCIES = (100e-9, 200e-9)


def waits(notes, seconds):
    """Return the share of a member's time that is waiting, by phase, and how late members come.

    Parameters
    ----------
    notes : list of ndarray of int64, shape (n_notes, 2)
        Of each member: what, and when in nanoseconds.
    seconds : float
        Of the fit.
    """
    is_arrival = [of_member[:, 0] <= ENTERING for of_member in notes]
    where = notes[0][is_arrival[0], 0]
    came = np.array([each[at, 1] for each, at in zip(notes, is_arrival, strict=True)])
    left = np.array([each[each[:, 0] == LEAVE, 1] for each in notes])
    late = came.max(axis=0) - came.min(axis=0)
    waiting = (left - came).mean(axis=0) / 1e9
    in_calls = (left[:, -1] - came[:, 0]).mean() / 1e9
    found = {"fit_seconds": seconds, "call_seconds": in_calls, "phases": {}}
    for what in np.unique(where):
        at = where == what
        found["phases"][PHASES[what]] = {
            "meetings": int(at.sum()),
            "wait_seconds": waiting[at].sum(),
            "late_microseconds": [float(v) / 1e3 for v in np.percentile(late[at], (50, 90, 99))],
            "release_microseconds": float(np.median((left.max(0) - came.max(0))[at])) / 1e3,
        }
    found["wait_ratio"] = waiting.sum() / seconds
    return found


def expect(all_notes, seconds, n_members):
    """Yield what :func:`replay` says of a team of so many, for each of the latencies.

    `all_notes` are those of one thread in several fits of the same trees: of each piece the least
    time counts, since the rest is what disturbed it.
    """
    what, spent = all_notes[0][:-1, 0], [np.diff(notes[:, 1]) for notes in all_notes]
    pieces = list(zip(what.tolist(), (np.min(spent, axis=0) / 1e9).tolist(), strict=True))
    # before the team is there and after it has gone
    around = min(all_ - each.sum() / 1e9 for all_, each in zip(seconds, spent, strict=True))
    for latency in LATENCIES:
        yield replay([(SERIAL, around), *pieces], n_members, latency)


def replay(pieces, n_members, latency):
    """Return the seconds that the pieces take `n_members` members, and what keeps them from less.

    A meeting takes a latency for each arrival at the counters on the way of the last member, since
    those of a group need the line of its counter one after the other, and one for the release. A
    task takes one latency more, for its number: too much for those of a member's own share, but a
    member also looks for tasks of others.

    Returns
    -------
    dict of float
        seconds
            Of the fit; the sum of all the following.
        work
            What has been divided, as if evenly.
        python
            Of member 0, between calls of kernels.
        serial
            Of member 0 within them.
        merging
            To add up parts of histograms.
        meetings
            The cost of barriers.
        uneven
            The rest: members are idle, as tasks are few or differ.
    """
    meeting, claim = (n_in_turn(n_members) + 1) * latency, latency
    if n_members == 1:
        meeting = claim = 0.0
    total = dict.fromkeys(("seconds", "work", "python", "serial", "merging", "meetings"), 0.0)
    segment = []
    for what, seconds in [*pieces, (ENTERING, 0.0)]:
        if what > ENTERING:
            segment.append((what, seconds))
            continue
        _add_segment(segment, what, n_members, claim, total)
        total["meetings"] += meeting
        total["seconds"] += meeting
        segment = []
    named = sum(total.values()) - total["seconds"]
    return total | {"uneven": total["seconds"] - named, "latency": latency}


def n_in_turn(n_members):
    """Return the arrivals that follow one another at a barrier, where members meet in groups."""
    total = 0
    while n_members > 1:
        total += min(n_members, GROUP_SIZE)
        n_members = math.ceil(n_members / GROUP_SIZE)
    return total


def _add_segment(segment, meeting, n_members, claim, total):
    """Add the time until a meeting from the one before."""
    first, others, free = 0.0, 0.0, []  # clocks: of member 0, of the others, of all during tasks
    for what, seconds in segment:
        if what == TASK:
            free = free or [others] * (n_members - 1) + [first]
            heapq.heapreplace(free, free[0] + seconds + claim)
            total["work"] += seconds / n_members
            continue
        if free:
            first, others, free = max(free), max(free), []
        if what < SHARE:
            first += seconds
            total["python" if meeting == ENTERING else "serial"] += seconds
            continue
        n_items = max(1, what // N_NOTES)
        part = seconds * math.ceil(n_items / n_members) / n_items
        if meeting == _HISTOGRAMS:  # of each member's part; alone there was one
            part *= n_members
            total["merging"] += part
        else:
            total["work"] += seconds / n_members
        first, others = first + part, others + part
    total["seconds"] += max([first, others, *free])


# --- measuring ------------------------------------------------------------------------------------


def main(arguments=None):
    """Measure teams of each size on each data set, then write the tables."""
    parser = runner.parser("benchmarks.threads", __doc__)
    add = parser.add_argument
    add("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    add("--trees", type=int, default=100)
    add("--members", type=int, nargs="+", default=[1, 2, 4, 8, 16], help="of real teams")
    add("--modelled", type=int, nargs="+", default=[1, 2, 4, 8, 16, 64], help="of the model")
    add("--repeats", type=int, default=5)
    options = parser.parse_args(arguments)
    shown = ("kind", "workload", "threads", "fit_seconds", "wait_ratio", "seconds")
    runner.write_results("threads", _records(options), shown, write_table, options)


def _records(options):
    settings = peers.Settings(n_estimators=options.trees)
    for n_rows in options.rows:
        name = f"binary-{n_rows}x28"
        repeats = runner.more_for_small(runner.Options([], options.repeats, 0.0), n_rows).repeats
        members = {"waits": options.members, "cores": options.modelled}
        yield from measure(name, settings, members, repeats)


def measure(name, settings, members, n_repeats):
    """Yield a record for each fit whose meetings were noted, then those of the model.

    Parameters
    ----------
    name : str
        Of a data set.
    settings : Settings
    members : dict
        The sizes of the teams of each kind, "waits" and "cores".
    n_repeats : int
        Fits of each team.
    """
    dataset = datasets.load(name).as_float32()
    facts = {"workload": name, "settings": settings._asdict(), **dataset.facts}
    peers.fit(OURS, dataset, settings._replace(n_estimators=2), 1)  # compiles
    start = time.perf_counter()
    model = peers.fit(OURS, dataset, settings, 1)
    facts |= {"library": OURS, "plain_seconds": time.perf_counter() - start}
    digest = hashlib.sha256(model.model_.nodes.tobytes()).hexdigest()
    for kind, sizes in members.items():
        for n_members in sizes:
            for record in fit_in_child(kind, name, settings, n_members, n_repeats):
                if record.pop("digest") != digest:
                    raise RuntimeError(f"{n_members} members noted what they did, in other trees")
                yield {"kind": kind, **facts, "threads": n_members, **record}


def fit_in_child(kind, name, settings, n_members, n_repeats):
    """Return what a process that fits so many times tells: a dict a line."""
    how = [json.dumps(settings._asdict()), n_members, n_repeats, kind]
    child = [sys.executable, "-m", "benchmarks.threads_child", name, *map(str, how)]
    available = getattr(os, "sched_getaffinity", lambda process: ())(0)

    def pin():
        if available:
            os.sched_setaffinity(0, sorted(available)[:PROCESSORS])

    environment = {**os.environ, "SKLBOOST_BACKEND": "compiler"}
    done = subprocess.run(
        child, env=environment, preexec_fn=pin, stdout=subprocess.PIPE, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


# --- tables ---------------------------------------------------------------------------------------


def write_table(records):
    """Return the lines of the page `threads.md`."""
    kinds = {kind: own for (kind,), own in runner.grouped(records, "kind").items()}
    waiting = [["data", "members", "seconds", "a member waits", "members meet for", "meetings"]]
    waiting[0] += ["waiting", "last one late, µs: median", "of 99 %", "release, µs"]
    for (name, n_members), fits in runner.grouped(kinds["waits"], "workload", "threads").items():
        median = sorted(fits, key=lambda record: record["fit_seconds"])[(len(fits) - 1) // 2]
        seconds = median["fit_seconds"]
        fit = [name, str(n_members), f"{seconds:.3g}", f"{100 * median['wait_ratio']:.0f} %"]
        for phase, each in median["phases"].items():
            share = f"{100 * each['wait_seconds'] / seconds:.1f} %"
            late = (f"{each['late_microseconds'][0]:.1f}", f"{each['late_microseconds'][2]:,.0f}")
            release = f"{each['release_microseconds']:.1f}"
            waiting.append([*fit, phase, f"{each['meetings']:,}", share, *late, release])
            fit = [""] * 4
    parts = ("work", "python", "serial", "uneven", "merging", "meetings")
    expected = [["data", "members", "a cache line comes in", "seconds", "speed-up"]]
    expected[0] += [f"{part}, %" for part in parts]
    for (name,), own in runner.grouped(kinds["cores"], "workload").items():
        latest = {(record["threads"], record["latency"]): record for record in own}
        alone = np.median([r["seconds"] for r in latest.values() if r["threads"] == 1])
        for (n_members, latency), each in latest.items():
            if n_members > 1:
                shares = [f"{100 * each[part] / each['seconds']:.0f}" for part in parts]
                row = [name, str(n_members), f"{1e9 * latency:.0f} ns", f"{each['seconds']:.3g}"]
                expected.append([*row, f"{alone / each['seconds']:.1f}", *shares])
    trees = ", ".join(
        f"{name} {of[-1]['settings']['n_estimators']}"
        for (name,), of in runner.grouped(records, "workload").items()
    )
    return [
        "# Waiting, and many cores\n",
        f"Fits of depth 6; trees: {trees}. What it means is told in "
        "[threads](../../docs/explanation/threads.md#where-members-wait).\n",
        "## Teams on two processors\n",
        "The median of the fits of each team, and where its members wait.\n",
        *runner.markdown(waiting),
        "\n## Expected of many cores\n",
        "By a model, not measured.\n",
        *runner.markdown(expected),
        f"\n{runner.origin(records, 'threads')}",
    ]


if __name__ == "__main__":
    runner.start(main)
