"""Check random fits for some minutes, and print those that break a promise.

``python -m tests.soak --minutes 120 --seed 0``; ``--case 17`` checks one, with its traceback. Every
case of a process that crashes or takes long is a failure, too. Tiny cases are compared with those
of kernels that are not compiled.
"""

import argparse
import collections
import sys
import time
from collections.abc import Iterator
from functools import partial

from tests.soak.cases import draw_case
from tests.soak.presets import check_presets
from tests.soak.promises import check
from tests.soak.together import check_together
from tests.watched import watch, work

# Cases of these kinds for each other one.
SHARES = {"tiny": 0.1, "together": 0.05, "presets": 0.2}
_ALONE = {"together": check_together, "presets": check_presets}
_AT_ONCE = 200


def outcome_of(seed: int, number: int, kind: str) -> str:
    """Check a case; of a tiny one only the digest is asked."""
    if kind in _ALONE:
        return _ALONE[kind](seed, number)
    is_tiny = kind == "tiny"
    return check(draw_case(seed, number, is_tiny=is_tiny), number, only_digest=is_tiny)


def outcomes(seed: int, numbers: range, kind: str = "one") -> Iterator[tuple[int, str]]:
    """Yield (number, outcome) of cases that are checked in a process of their own."""
    return watch("tests.soak", ["--seed", str(seed), "--kind", kind], numbers)


def tiny_outcomes(seed: int, numbers: range) -> Iterator[tuple[int, str]]:
    """Yield those of tiny cases: failed, if kernels that are not compiled give other bits."""
    arguments = ["--seed", str(seed), "--kind", "tiny"]
    compiled = watch("tests.soak", arguments, numbers)
    interpreted = watch("tests.soak", arguments, numbers, interpreted=True)
    for (number, one), (_, other) in zip(compiled, interpreted, strict=True):
        failed = next((told for told in (one, other) if told.startswith("FAILED")), None)
        if failed is None and one != other:
            failed = f"FAILED compiled: {one}, interpreted: {other}"
        yield number, failed or one


def main() -> None:
    """Check cases until the time is up."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--case", type=int)
    parser.add_argument("--kind", choices=["one", *SHARES], default="one", help="of that case")
    parser.add_argument("--work", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case is not None:
        print(outcome_of(given.seed, given.case, given.kind))
        return
    if given.work:
        work(lambda n: outcome_of(given.seed, n, given.kind), range(*given.work))
        return
    sys.exit(_soak(given.seed, given.first, 60.0 * given.minutes) > 0)


def _soak(seed: int, first: int, seconds: float) -> int:
    """Check batches of cases until the time is up; return how many failed."""
    counts: collections.Counter[str] = collections.Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for kind in ("one", *SHARES):
            numbers = range(first, first + int(_AT_ONCE * SHARES.get(kind, 1.0)))
            ask = tiny_outcomes if kind == "tiny" else partial(outcomes, kind=kind)
            for number, outcome in ask(seed, numbers):
                counts[outcome.split()[0]] += 1
                if outcome.startswith("FAILED"):
                    print(f"--seed {seed} --case {number} --kind {kind}: {outcome}", flush=True)
                if time.monotonic() > end:
                    break
        first += _AT_ONCE
    print(f"{sum(counts.values())} cases, seed {seed}: {dict(counts)}")
    return counts["FAILED"]


if __name__ == "__main__":
    main()
