"""What the notes of a fit say: how long members wait, and how long a larger team would take.

:func:`waits` reads the notes of a real team. :func:`replay` takes those of one thread that did the
work of a team alone, piece by piece, and gives the pieces to simulated members: a serial piece to
member 0, a task to the member that is free first, a share to all. See waits_child.py.
"""

import heapq
import math

import numpy as np

from sklboost.engine.parallel import GROUP_SIZE

# Where members meet. A note of a share is SHARE + N_NOTES * its number of items.
PHASES = ("gradients", "quantising", "serial steps", "histograms", "rows", "split search", "other")
PHASES += ("beginning of a call",)
_QUANTISING, _HISTOGRAMS = PHASES.index("quantising"), PHASES.index("histograms")
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
    segment, shared, n_quantising = [], 0, 0
    for what, seconds in [*pieces, (ENTERING, 0.0)]:
        if what > ENTERING:
            segment.append((what, seconds))
            continue
        if what == _QUANTISING:
            # of three segments the last has the shares of the first, not asked for again
            n_quantising += 1
            shared = segment[-1][0] if n_quantising % 3 == 1 else shared
            if n_quantising % 3 == 0:
                segment[0] = (shared, segment[0][1])
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
