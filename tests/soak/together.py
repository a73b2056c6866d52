"""Many fits at once, in threads and forked processes, interrupted, and one after the other."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from sklboost import XGBRegressorLite
from tests.soak.cases import Case, draw_case
from tests.soak.promises import ALLOWED, digest, quiet

_CASES = 6  # at once
_FITS = 300
_GROWTH = 24 * 2**20  # bytes that the memory may grow by in so many fits
_SECONDS_OF_CHILD = 240.0  # where others compute, too


def check_together(seed: int, number: int) -> str:
    """Check one of the ways to fit together; return its name."""
    checks = [in_threads, while_another_thread_predicts, in_forked_children, interrupted, in_a_row]
    chosen = checks[number % len(checks)]
    if hasattr(os, "fork") or chosen is not in_forked_children:
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


def in_forked_children(seed: int, number: int) -> None:
    """A child that is forked while threads fit can fit, too, and has the same bits."""
    cases = _cases(seed, number)
    alone = list(map(_told, cases))
    with ThreadPoolExecutor(2) as threads:
        busy = [threads.submit(_told, case) for case in cases]
        children = [_forked(lambda i=i: _told(cases[i]) == alone[i]) for i in range(2)]
        assert all(map(_ended_well, children)), "a child"
        assert [future.result() for future in busy] == alone


def _forked(is_right: Callable[[], bool]) -> int:
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if is_right() else 3)
        except BaseException:
            os._exit(4)
    return child


def _ended_well(child: int) -> bool:
    """Whether a child ends soon, and with 0."""
    end = time.monotonic() + _SECONDS_OF_CHILD
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def interrupted(seed: int, number: int) -> None:
    """Ctrl-C ends a fit soon, and the next one has the bits that it would have had."""
    random = np.random.default_rng([seed, number])
    X = random.normal(size=(4_000, 8))
    model = XGBRegressorLite(n_estimators=5, n_jobs=2).fit(X, X[:, 0])
    before = digest(model, X)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for _ in range(5):
            timer = threading.Timer(random.uniform(0.0, 0.1), os.kill, (os.getpid(), signal.SIGINT))
            begin = time.process_time()  # others may compute, too
            try:
                timer.start()
                XGBRegressorLite(n_estimators=10**6, n_jobs=2).fit(X, X[:, 0])
                timer.join()
                time.sleep(0.01)  # a signal after the last round
            except KeyboardInterrupt:
                pass
            assert time.process_time() - begin < 5.0, "Ctrl-C acts late"
    finally:
        signal.signal(signal.SIGINT, handler)
    model.fit(X, X[:, 0])
    assert digest(model, X) == before


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
