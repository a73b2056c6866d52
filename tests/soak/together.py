"""Many fits at once, and one after the other.

Forks and Ctrl-C while others fit are in ``tests/test_robustness.py``.
"""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from sklboost import XGBRegressorLite
from tests.soak.cases import Case, draw_case
from tests.soak.promises import ALLOWED, digest, quiet

_CASES = 6  # at once
_FITS = 300
_GROWTH = 24 * 2**20  # bytes that the memory may grow by in so many fits


def check_together(seed: int, number: int) -> str:
    """Check one of the ways to fit together; return its name."""
    checks = [in_threads, while_another_thread_predicts, in_a_row]
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


def while_another_thread_predicts(seed: int, number: int) -> None:
    """Who predicts while a model is fitted again gets the old model or the new one."""
    random = np.random.default_rng([seed, number])
    X = random.normal(size=(2_000, 5))
    targets = [X[:, 0], X[:, 1] * X[:, 2]]
    one = XGBRegressorLite(n_estimators=10, n_jobs=2)
    known = {one.fit(X, y).predict(X).tobytes() for y in targets}
    done = threading.Event()

    def predict() -> set[bytes]:
        seen = set()
        while not done.is_set():
            seen.add(one.predict(X).tobytes())
        return seen

    with ThreadPoolExecutor(2) as threads:
        predicting = [threads.submit(predict) for _ in range(2)]
        try:
            for i in range(6):
                one.fit(X, targets[i % 2])
        finally:
            done.set()
        for future in predicting:
            assert future.result() <= known


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
