"""Libraries take turns, so that a slow minute of the machine falls on all of them."""

import statistics
import time
from typing import NamedTuple

from . import environment
from .aims import OURS
from .meetings import meeting_nanoseconds

SMALL = 10_000  # rows; what is below takes milliseconds and is repeated more often
SMALL_REPEATS = 5
LEAST_REPEATS = 3  # whatever they cost, of those that decide a ratio
DECIDES = 1.5  # times the fastest peer: slower ones do not decide
# Threads of OpenMP stay awake for some milliseconds after a fit. They are given time to sleep,
# so that the next library has the processors to itself.
REST_SECONDS = 0.05


class Options(NamedTuple):
    """Who takes turns, how often, and how many seconds each of them may take in all."""

    libraries: list[str]
    repeats: int
    budget: float


def more_for_small(options, n_rows):
    """Return the options for a fit of so many rows: small ones are repeated more often."""
    factor = SMALL_REPEATS if n_rows <= SMALL else 1
    return options._replace(repeats=options.repeats * factor)


def take_turns(options, measure):
    """Measure every library so many times, each repeat beginning with another of them.

    A library whose seconds are spent stops, but for sklboost and the fastest peers, which decide
    the ratio: they have at least three turns.

    Parameters
    ----------
    options : Options
    measure : callable
        ``measure(library, repeat)`` returns a dict of figures.

    Yields
    ------
    dict
        The figures, the library, the number of the repeat, the seconds that the turn took, the
        processor seconds that other processes used meanwhile (None where that is not known) and
        the nanoseconds that a meeting of two threads took before it.
    """
    libraries = options.libraries
    spent = {library: [] for library in libraries}
    for repeat in range(options.repeats):
        first = repeat % len(libraries)
        for library in libraries[first:] + libraries[:first]:
            if not goes_on(library, spent, options.budget):
                continue
            time.sleep(REST_SECONDS)
            meeting = meeting_nanoseconds()
            others, start = environment.others_seconds(), time.perf_counter()
            figures = measure(library, repeat)
            elapsed = time.perf_counter() - start
            if others is not None:
                others = environment.others_seconds() - others
            spent[library].append(elapsed)
            turn = {"library": library, "repeat": repeat, **figures}
            yield turn | {"elapsed_seconds": elapsed, "others_cpu": others, "meeting_ns": meeting}


def goes_on(library, spent, budget):
    """Whether a library has another turn; `spent` are the seconds of all turns so far."""
    own = spent[library]
    if not own or sum(own) + statistics.mean(own) <= budget:
        return True
    if len(own) >= LEAST_REPEATS:
        return False
    # ours may have several variants, all of whose names begin with it
    peers = [min(turns) for name, turns in spent.items() if turns and not name.startswith(OURS)]
    return library.startswith(OURS) or min(own) <= DECIDES * min(peers)
