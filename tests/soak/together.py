"""Many fits at once, and one after the other.

Forks and Ctrl-C while others fit are in ``tests/test_robustness.py``, fits again while others
predict in ``tests/estimators/test_refit_in_threads.py``.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.soak.cases import Case, draw_case
from tests.soak.promises import ALLOWED, digest, quiet

_CASES = 6  # at once
_FITS = 300
_GROWTH = 24 * 2**20  # bytes that the memory may grow by in so many fits


def check_together(seed: int, number: int) -> str:
    """Check one of the ways to fit together; return its name."""
    checks = [in_threads, in_a_row]
    chosen = checks[number % len(checks)]
    with quiet():
        chosen(seed, number)
    return f"fitted {chosen.__name__}"


def _told(case: Case) -> str:
    """Return a digest of a fit, or the error that it is refused with."""
    try:
        model = case.fit()
    except ALLOWED as error:
        return str(error)
    return digest(model, case.X)


def _cases(seed: int, number: int) -> list[Case]:
    first = 1_000_000 + _CASES * number
    return [draw_case(seed, first + i) for i in range(_CASES)]


def in_threads(seed: int, number: int) -> None:
    """Fits in several threads are those of one."""
    cases = _cases(seed, number)
    with ThreadPoolExecutor(4) as threads:
        at_once = list(threads.map(_told, cases * 2))
    alone = list(map(_told, cases))
    assert at_once == alone * 2


def in_a_row(seed: int, number: int) -> None:
    """Memory does not grow with the number of fits."""
    case = next(case for i in range(99) if (case := draw_case(seed, 99 * number + i)).X.size < 9999)

    def fit(n_fits: int) -> int:
        for _ in range(n_fits):
            _told(case)
        return _memory()

    before = fit(_FITS // 10)
    assert fit(_FITS) - before < _GROWTH, f"memory grows with fits of {case}"


def _memory() -> int:
    """Return the bytes of this process in memory; 0 where that is not known."""
    if sys.platform != "linux":
        return 0
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
